/* stream_case.h - an answer's stream from its text to what came of it, as one text, for unit tests. */
#ifndef TESTS_SUPPORT_STREAM_CASE_H
#define TESTS_SUPPORT_STREAM_CASE_H

#include "tests/support/stream_cut.h"

/* Everything a run owns. stream_case_init, any number of runs, stream_case_fini. */
struct stream_case {
	const struct dialect *dialect;
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
	struct decode_context context; /* tools "get_weather" and "a", model "asked" */
	struct stream_limits limits;   /* 1 MiB, events of STREAM_EVENT_ROOM */
	size_t memory;                 /* what the arena may give; 8 MiB */
	enum stream_ending ending;
	bool without_shapes; /* every event is read as JSON */
	struct stream_slab streams;
	struct stream *stream;           /* the only one of these */
	struct stream_progress progress; /* of the last run */
	size_t used;                     /* bytes of the arena before the end */
	enum stream_state state;         /* the last one, before the end */
	enum err err;
	struct sampling_result result;
	struct provider_failure failure;
	char why[1024];
};

void stream_case_init(struct stream_case *c, enum dialect_id id);
void stream_case_fini(struct stream_case *c);

/* Runs it; what the run before returned is gone. What came of it, with a NUL behind it:
 *   stop, then of each block `"text"` or `id name input`, then `usage in/out/read/write/reasoning` where
 *   known and the codes of adjustments, all separated by " | "; or
 *   code, text, "retryable" where it is, usage where known. */
const char *stream_case_run(struct stream_case *c, const char *body, struct stream_cut cut);

/* The same for any bytes; absent when memory was refused on the way to the text. */
struct slice stream_case_read(struct stream_case *c, struct slice body, struct stream_cut cut);

bool stream_progress_same(const struct stream_progress *a, const struct stream_progress *b);

/* The same in one read with every instruction set, byte by byte, cut in two at every place (of long
 * bodies at every 37th), and with every event read as JSON. NULL when all of them come to `expect`; else what the first other one came
 * to, and how it was cut. */
const char *stream_case_differs(struct stream_case *c, const char *body, const char *expect);

#endif
