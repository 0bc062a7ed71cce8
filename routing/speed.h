/* speed.h - how fast a model answers, from its answers: time to the first token, time per token.
 *
 * Moving averages in which an answer fades with those that follow. A streamed answer tells both
 * figures apart; of a whole one only its length and its duration are known, and a line is laid through
 * these (ridge regression: as long as all answers are equally long, the slope is a usual one). Pure. */
#ifndef ROUTING_SPEED_H
#define ROUTING_SPEED_H

#include "codec/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPEED_ANSWERS_MIN = 20 }; /* DESIGN 5: before that, what is declared counts */

/* Zero-initialised: nothing known. */
struct speed {
	uint32_t answers;
	double tokens, took;   /* means: tokens of an answer, ms until its end */
	double tokens2, cross; /* means of tokens^2 and tokens x ms */
	double first;          /* mean ms to the first token, of streamed answers */
	uint32_t streamed;     /* how many of these there were */
};

/* What routing reads: one entry per model of the catalogue. */
struct model_speed {
	bool measured;  /* else the model's declared speed counts */
	float ttft_ms;  /* until the first token */
	float token_ms; /* per token */
};

/* A complete answer of `tokens` output tokens. `first` is when the first token came if the answer was
 * streamed, else 0; both since the request was sent. */
void speed_note(struct speed *speed, nsec_t first, nsec_t took, uint64_t tokens);

struct model_speed speed_estimate(const struct speed *speed);

/* Milliseconds that a token takes: as measured, or a usual figure. NULL: nothing is known. Above 0. */
double speed_token_ms(const struct model_speed *speed);

#endif
