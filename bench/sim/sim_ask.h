/* sim_ask.h - what a provider request asks for, as far as the simulator cares.
 *
 * Slices are raw JSON inside the request's body and live as long as that. Pure. */
#ifndef BENCH_SIM_SIM_ASK_H
#define BENCH_SIM_SIM_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/sim/sim_buf.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum sim_dialect { SIM_ANTHROPIC, SIM_OPENAI, SIM_RESPONSES, SIM_DIALECTS };

struct sim_ask {
	enum sim_dialect dialect;
	struct slice model;  /* between its quotes */
	struct slice tools;  /* the array; absent: none offered, or tool choice none */
	struct slice forced; /* name of the tool that must be called; absent: none in particular */
	struct slice
		results; /* tool results at the end of the history, `[` and `]` cut off; absent: none */
	uint64_t max_tokens; /* UINT64_MAX: not given */
	bool must_call;
	bool counts; /* tokens alone: /v1/messages/count_tokens */
	bool stream;
	bool stream_usage; /* OpenAI: stream_options.include_usage */
	size_t body_len;
};

/* Whether requests for `path` (without a query) belong to a dialect: any path that ends in
 * /chat/completions, /responses, /v1/messages or /v1/messages/count_tokens; and whether it is the last. */
MUST_USE bool sim_ask_dialect(struct slice path, enum sim_dialect *out);
MUST_USE bool sim_ask_counts(struct slice path);

/* NULL on success; else what a provider would complain about, and *out is not to be used. */
MUST_USE const char *sim_ask_read(enum sim_dialect dialect, bool counts, struct slice body,
				  struct sim_ask *out);

/* Whether a provider would answer with tool calls; `loop`: also after results. */
bool sim_ask_wants_calls(const struct sim_ask *ask, bool loop);

/* The name of the tool that call `i` of an answer goes to: the forced one, else the i-th offered,
 * counted round. */
struct slice sim_ask_tool_name(const struct sim_ask *ask, size_t i);

/* An input for that tool: every property of its schema with a plain value of its type. */
void sim_ask_tool_input(const struct sim_ask *ask, struct slice name, struct sim_buf *out);

/* The texts of all results, still escaped, joined by ", ". */
void sim_ask_quote_results(const struct sim_ask *ask, struct sim_buf *out);

#endif
