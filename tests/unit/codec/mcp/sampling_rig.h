/* sampling_rig.h - what the tests of sampling_read share: one worker's memory and one call. */
#ifndef TESTS_UNIT_CODEC_SAMPLING_RIG_H
#define TESTS_UNIT_CODEC_SAMPLING_RIG_H

#include "codec/mcp/sampling.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
	struct jsonrpc rpc;
	struct sampling_request request;
	struct fault fault;
};

static inline int rig_set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return 1;
	rig->work = json_work_new(codec_set_best());
	arena_init(&rig->arena, &rig->pool, (size_t)64 * 1024 * 1024);
	*state = rig;
	return rig->work == NULL;
}

static inline int rig_tear_down(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	free(rig);
	return 0;
}

/* A body of exactly its size in the arena; what was there before is given back. */
static inline struct slice rig_body(struct rig *rig, const char *head, const char *params,
				    const char *tail)
{
	size_t len = strlen(head) + strlen(params) + strlen(tail);

	arena_give(&rig->arena);
	char *text = arena_take(&rig->arena, len + 1);
	assert_non_null(text);
	(void)snprintf(text, len + 1, "%s%s%s", head, params, tail);
	return slice_of(text, len);
}

static inline enum err rig_read(struct rig *rig, struct slice body, enum revision revision)
{
	return sampling_read(body, revision, NULL, rig->work, &rig->arena, &rig->rpc, &rig->request,
			     &rig->fault);
}

/* Reads a createMessage with these params (a whole JSON value). */
static inline enum err rig_params(struct rig *rig, const char *params)
{
	static const char head[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":";

	return rig_read(rig, rig_body(rig, head, params, "}"), REVISION_2025_11_25);
}

/* The same with these messages (without the brackets), maxTokens and `more` members. */
static inline enum err rig_messages(struct rig *rig, const char *messages, const char *more)
{
	static const char head[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		"\"sampling/createMessage\",\"params\":{\"maxTokens\":9,\"messages\":[";
	char tail[2048];

	assert_true((size_t)snprintf(tail, sizeof(tail), "]%s}}", more) < sizeof(tail));
	return rig_read(rig, rig_body(rig, head, messages, tail), REVISION_2025_11_25);
}

#define assert_ok(call)                                                                 \
	do {                                                                            \
		if ((call) != ERR_OK)                                                   \
			fail_msg("%s: %s at %u %.*s", err_info(rig->fault.err)->reason, \
				 rig->fault.detail == NULL ? "" : rig->fault.detail,    \
				 rig->fault.offset, (int)rig->fault.path.len,           \
				 rig->fault.path.len == 0 ? "" : rig->fault.path.at);   \
	} while (0)

#define assert_slice(slice, expected) assert_true(slice_eq(slice, SLICE(expected)))

#define rig_test(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

#endif
