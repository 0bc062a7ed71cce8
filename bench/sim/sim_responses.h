/* sim_responses.h - OpenAI Responses, as the simulator speaks it: what is asked, and the answer. */
#ifndef BENCH_SIM_SIM_RESPONSES_H
#define BENCH_SIM_SIM_RESPONSES_H

#include "bench/sim/sim_answer.h"

/* Whether a request that is otherwise good breaks a rule of this format: NULL, or what the provider would
 * complain about. `body` is the whole of it, `input` that member. Finds the results that end the input. */
MUST_USE const char *sim_responses_read(struct slice body, struct slice input, struct sim_ask *ask);

/* A row of sim_wire.h. */
void sim_responses_whole(const struct sim_answer *a, struct sim_buf *out);
void sim_responses_start(const struct sim_answer *a, struct sim_buf *out);
void sim_responses_text(const struct sim_answer *a, uint64_t piece, struct slice text,
			struct sim_buf *out);
void sim_responses_call(const struct sim_answer *a, uint64_t i, struct slice input,
			struct sim_buf *out);
void sim_responses_end(const struct sim_answer *a, struct sim_buf *out);

#endif
