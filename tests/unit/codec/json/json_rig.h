/* json_rig.h - what the tests of json_read.h share: a work area, and all instruction sets' verdict. */
#ifndef TESTS_UNIT_CODEC_JSON_RIG_H
#define TESTS_UNIT_CODEC_JSON_RIG_H

#include "codec/json/json_read.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct json_work *work;

static int open_work(void **state)
{
	(void)state;
	work = json_work_new(codec_set_best());
	return work == NULL;
}

static int close_work(void **state)
{
	(void)state;
	json_work_free(work);
	return 0;
}

/* A copy on the heap of exactly that size: a read past the end is seen by the sanitizer. */
struct exact {
	struct slice text;
	char *bytes;
};

static struct exact exact(struct slice text)
{
	char *bytes = malloc(text.len == 0 ? 1 : text.len);

	assert_non_null(bytes);
	(void)memcpy(bytes, text.at, text.len);
	return (struct exact){ slice_of(bytes, text.len), bytes };
}

/* What all instruction sets say. */
static enum err judge(struct slice text, struct fault *fault)
{
	const struct codec_set *set;
	struct exact copy = exact(text);
	struct fault first = { .err = ERR_OK };

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++) {
		struct fault own = { .err = ERR_OK };
		bool valid = set->json_valid(copy.text, NULL, work, &own);
		assert_int_equal(valid, own.err == ERR_OK);
		if (i == 0)
			first = own;
		if (own.err != first.err || own.offset != first.offset ||
		    !slice_eq(slice_str(own.detail), slice_str(first.detail)))
			fail_msg("%s: err %d at %u, not %d at %u: %.*s", set->name, (int)own.err,
				 own.offset, (int)first.err, first.offset, (int)text.len, text.at);
	}
	if (fault != NULL)
		*fault = first;
	free(copy.bytes);
	return first.err;
}

#endif
