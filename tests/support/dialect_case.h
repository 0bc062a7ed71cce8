/* dialect_case.h - one request or answer through a dialect, from text to text, for unit tests. */
#ifndef TESTS_SUPPORT_DIALECT_CASE_H
#define TESTS_SUPPORT_DIALECT_CASE_H

#include "codec/dialect/dialect.h"

/* Everything a run owns. case_init, any number of runs, case_fini. */
struct dialect_case {
	const struct dialect *dialect;
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
	struct profile
		profile; /* the dialect's defaults with image set; change what the test wants */
	bool final_round;
	const struct slice *replay; /* encode_in's; the provider is "p" */
	uint32_t replay_count;
	struct sampling_request request;
	struct encode_out out;
	struct fault fault;
	struct decode_context
		context; /* a tool "get_weather"; after an encode that request's own */
	struct provider_answer answer; /* status 200; body is set by case_decode */
	struct sampling_result result;
	struct provider_failure failure;
};

void case_init(struct dialect_case *c, enum dialect_id id);
void case_fini(struct dialect_case *c);

/* Gives all memory back; what earlier runs returned is gone. */
void case_reset(struct dialect_case *c);

/* `params` of sampling/createMessage, without maxTokens (100) and the outer braces, read, which must
 * succeed, and encoded. On ERR_OK c->out and c->context are set. */
enum err case_encode(struct dialect_case *c, const char *params);

/* Only the encoding, of what case_encode read last. */
enum err case_encode_again(struct dialect_case *c);

/* The body of the last encode as one text with a NUL behind it. */
const char *case_body(struct dialect_case *c);

/* `body` decoded in c->context; c->result or c->failure. */
enum err case_decode(struct dialect_case *c, const char *body);

/* The bare result of the last decode as one text with a NUL behind it. */
const char *case_result(struct dialect_case *c);

/* Runs `run` with 0, 8, 16, ... bytes of memory until it succeeds, and then with each refused chunk;
 * every failure must be ERR_BUSY. The number of failures. */
size_t case_starve(struct dialect_case *c, enum err (*run)(struct dialect_case *c));

/* The codes of a set, sorted as in the table, separated by spaces, with a NUL. */
const char *case_adjustments(struct dialect_case *c, adjust_set set);

/* fault.detail or the row's text. */
const char *case_fault_text(const struct dialect_case *c);
const char *case_failure_text(const struct dialect_case *c);

#endif
