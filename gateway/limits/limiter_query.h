/* limiter_query.h - what the control thread asks of a limiter that a worker is connected to: the figures of
 * a tenant and its parts, and to add to its budget before.
 *
 * One thread asks and waits, another answers; whoever lets go last frees it. */
#ifndef GATEWAY_LIMITS_LIMITER_QUERY_H
#define GATEWAY_LIMITS_LIMITER_QUERY_H

#include "gateway/limits/limit_table.h"

#include <stddef.h>

struct limiter_query;

enum limiter_said {
	LIMITER_SAID_NOTHING, /* no answer in time, or the connection broke: what was to be done may be done */
	LIMITER_SAID_AWAY, /* not there, or it refused: nothing was done */
	LIMITER_SAID_DONE, /* done, and every state is known */
};

/* About `count` (at least 1) keys of the tenant whose key is `tag`, the first of which `top_up` nano-USD
 * are added to for the current day and month; 0: none. Copies. NULL: memory. */
struct limiter_query *limiter_query_new(const uint8_t tag[16], const uint8_t (*keys)[16],
					uint32_t count, uint64_t top_up);

/* ---- the asking thread ---- */

/* Until it is answered, at most so long; asked once. */
enum limiter_said limiter_query_wait(struct limiter_query *question, nsec_t at_most);

/* Of key `i`, after LIMITER_SAID_DONE; times by CLOCK_MONOTONIC, no refusals. Lives as long as the question. */
const struct limit_state *limiter_query_state(const struct limiter_query *question, uint32_t i);

/* Lets go of it, also before it is answered; NULL is allowed. */
void limiter_query_free(struct limiter_query *question);

/* ---- the answering thread ---- */
const uint8_t *limiter_query_tag(const struct limiter_query *question);
const uint8_t *limiter_query_key(const struct limiter_query *question, uint32_t i);
uint32_t limiter_query_count(const struct limiter_query *question);
uint64_t limiter_query_top_up(const struct limiter_query *question);

/* To be filled before LIMITER_SAID_DONE. */
struct limit_state *limiter_query_fill(struct limiter_query *question, uint32_t i);

/* Exactly once: lets go of it. */
void limiter_query_answer(struct limiter_query *question, enum limiter_said said);

#endif
