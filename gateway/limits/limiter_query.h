/* limiter_query.h - what the control thread asks of a store that a worker is connected to: the figures of
 * a tenant and its parts, and to add to its budget before.
 *
 * One thread asks and waits, another answers; whoever lets go last frees it. */
#ifndef GATEWAY_LIMITS_LIMITER_QUERY_H
#define GATEWAY_LIMITS_LIMITER_QUERY_H

#include "gateway/limits/limit_table.h"

#include <stddef.h>

struct store_question;

enum store_said {
	STORE_SAID_NOTHING, /* no answer in time, or the connection broke: what was to be done may be done */
	STORE_SAID_AWAY, /* not there, or it refused: nothing was done */
	STORE_SAID_DONE, /* done, and every state is known */
};

/* About `count` (at least 1) keys of the tenant whose key is `tag`, the first of which `top_up` nano-USD
 * are added to for the current day and month; 0: none. Copies. NULL: memory. */
struct store_question *store_question_new(const uint8_t tag[16], const uint8_t (*keys)[16],
					  uint32_t count, uint64_t top_up);

/* ---- the asking thread ---- */

/* Until it is answered, at most so long; asked once. */
enum store_said store_question_wait(struct store_question *question, nsec_t at_most);

/* Of key `i`, after STORE_SAID_DONE; times by CLOCK_MONOTONIC, no refusals. Lives as long as the question. */
const struct limit_state *store_question_state(const struct store_question *question, uint32_t i);

/* Lets go of it, also before it is answered; NULL is allowed. */
void store_question_free(struct store_question *question);

/* ---- the answering thread ---- */
const uint8_t *store_question_tag(const struct store_question *question);
const uint8_t *store_question_key(const struct store_question *question, uint32_t i);
uint32_t store_question_count(const struct store_question *question);
uint64_t store_question_top_up(const struct store_question *question);

/* To be filled before STORE_SAID_DONE. */
struct limit_state *store_question_fill(struct store_question *question, uint32_t i);

/* Exactly once: lets go of it. */
void store_question_answer(struct store_question *question, enum store_said said);

#endif
