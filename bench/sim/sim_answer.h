/* sim_answer.h - writes the provider's answer, whole or event by event.
 *
 * An answer is a pure function of request, behaviour, number and time: a stream's events are made when
 * they are due, so ten thousand slow streams cost no memory for what was not sent yet. */
#ifndef BENCH_SIM_SIM_ANSWER_H
#define BENCH_SIM_SIM_ANSWER_H

#include "bench/sim/sim_ask.h"
#include "bench/sim/sim_buf.h"
#include "bench/sim/sim_keys.h"
#include "bench/sim/sim_spec.h"

/* Words that appear in errors only, so that a test can look for provider text that leaked. */
#define SIM_CANARY "sim-provider-text"

/* Borrows everything; the scratch buffers may be shared by all answers of a thread. */
struct sim_answer {
	const struct sim_ask *ask;
	const struct sim_spec *spec;
	const struct sim_quota *quota; /* what is left to the request's key */
	uint64_t number;               /* makes the ids of answer and calls unique */
	nsec_t now;                    /* for events that say when they were written */
	bool keep_alive;
	struct sim_buf *scratch, *input;
};

/* The whole HTTP answer, not streamed. A fault that changes bytes is in it; *cut_at is where the
 * connection is to be closed, SIZE_MAX for nowhere, counted from out->len before the call. */
void sim_answer_whole(const struct sim_answer *answer, struct sim_buf *out, size_t *cut_at);

/* Status line and headers of a stream. */
void sim_answer_head(const struct sim_answer *answer, struct sim_buf *out);

/* Number of steps that the stream has, at least 1. */
uint64_t sim_answer_steps(const struct sim_answer *answer);

/* What is sent in step `step`; the last one ends the stream. */
void sim_answer_step(const struct sim_answer *answer, uint64_t step, struct sim_buf *out);

/* Bytes of the text that answers have, from `from` on. */
void sim_answer_filler(struct sim_buf *out, uint64_t from, uint64_t len);

/* Any other HTTP answer with that body; `headers` NULL, or lines that each end in CRLF. */
void sim_answer_plain(struct sim_buf *out, unsigned status, const char *type, const char *headers,
		      struct slice body, bool keep_alive);

#endif
