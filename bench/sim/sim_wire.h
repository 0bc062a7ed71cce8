/* sim_wire.h - what a dialect of the simulator is made of: how it writes an answer. */
#ifndef BENCH_SIM_SIM_WIRE_H
#define BENCH_SIM_SIM_WIRE_H

#include "bench/sim/sim_answer.h"

/* One row per dialect, in sim_answer.c. Each writes JSON or events, no HTTP; `text` and `input` are the
 * insides of JSON strings. */
struct sim_wire {
	void (*whole)(const struct sim_answer *a, struct sim_buf *out);
	/* Of a stream: its first events, those of a piece of text, of call `i` with its input, and the
	 * last ones. */
	void (*start)(const struct sim_answer *a, struct sim_buf *out);
	void (*text)(const struct sim_answer *a, uint64_t piece, struct slice text,
		     struct sim_buf *out);
	void (*call)(const struct sim_answer *a, uint64_t i, struct slice input,
		     struct sim_buf *out);
	void (*end)(const struct sim_answer *a, struct sim_buf *out);
	const char *error; /* the events of an error midway */
};

/* ---- what an answer is to say, the same in all dialects ---- */

bool sim_answer_calls(const struct sim_answer *a);    /* it calls tools */
bool sim_answer_quotes(const struct sim_answer *a);   /* its text is about tool results */
bool sim_answer_at_limit(const struct sim_answer *a); /* it ends for the token limit */
void sim_answer_text(const struct sim_answer *a, struct sim_buf *out);
uint64_t sim_answer_tokens_in(const struct sim_answer *a);
uint64_t sim_answer_tokens_out(const struct sim_answer *a);

/* The input of call `i`, ready to stand inside a JSON string; lives until the next call of this. */
struct slice sim_answer_input(const struct sim_answer *a, uint64_t i);

#endif
