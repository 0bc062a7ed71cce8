/* schema_rig.h - what the tests of codec/schema/schema.h have in common. */
#ifndef TESTS_UNIT_CODEC_SCHEMA_RIG_H
#define TESTS_UNIT_CODEC_SCHEMA_RIG_H

#include "codec/base/must.h"
#include "codec/schema/schema.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_CAP = 256 * 1024 * 1024 };

struct rig {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
};

static inline int begin(void **state)
{
	static struct rig rig;

	rig = (struct rig){ .work = json_work_new(codec_set_best()) };
	must(rig.work != NULL);
	arena_init(&rig.arena, &rig.pool, ARENA_CAP);
	*state = &rig;
	return 0;
}

static inline int end(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	return 0;
}

/* A text of the test's, which must be JSON, as the caller promises. */
static inline struct slice valid(struct rig *rig, const char *text)
{
	must(text != NULL);
	if (!json_valid(slice_str(text), NULL, rig->work, NULL))
		fail_msg("the test's text is not JSON: %.200s", text);
	return slice_str(text);
}

static inline struct schema_finding check(struct rig *rig, const char *schema_text,
					  const char *value)
{
	struct schema schema;
	struct schema_finding found;

	assert_int_equal(schema_read(valid(rig, schema_text), rig->work, &rig->arena, &schema),
			 ERR_OK);
	assert_int_equal(schema_check(&schema, valid(rig, value), &rig->arena, &found), ERR_OK);
	assert_true(found.steps <= SCHEMA_STEPS_MAX + 1 && found.looks <= SCHEMA_LOOKS_MAX + 1);
	return found;
}

#define YES SCHEMA_HOLDS
#define NO SCHEMA_VIOLATED
#define PART SCHEMA_UNCHECKED
#define MUCH SCHEMA_TOO_MUCH

static inline const char *name_of(enum schema_verdict verdict)
{
	static const char *const names[] = { "holds", "unchecked", "violated", "too much" };

	return names[verdict];
}

/* A text made of pieces, in the arena. */
static inline const char *repeat(struct rig *rig, const char *front, const char *piece,
				 size_t count, const char *rear)
{
	const size_t one = strlen(piece) + 12;
	const size_t room = strlen(front) + one * count + strlen(rear) + 1;
	char *text = arena_take(&rig->arena, room), *at = text;

	must(text != NULL);
	at += sprintf(at, "%s", front);
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, piece, (unsigned)i); /* NOLINT: pieces are the test's */
	(void)strcpy(at, rear);
	return text;
}

#endif
