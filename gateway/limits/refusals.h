/* refusals.h - what a worker was last told that tenants must wait for.
 *
 * A tenant that asks again and again while it must wait costs a question to the limiter each time, and, with a tool loop, all
 * that is kept of it. For REFUSALS_LAST after a refusal the worker does without: a rate that is still in the way refuses by
 * itself, and of a loop nothing is read before the tenant's limits have granted the request.
 *
 * Only a rate's wait is exact, and says by itself what it is for another number of units. Who waits for a place or for money
 * is asked for each time: a request may end, and a budget be topped up, at any moment.
 *
 * One thread; no clock. Bounded: of a tenant a few refusals, of all tenants that share a row the latest. */
#ifndef GATEWAY_LIMITS_REFUSALS_H
#define GATEWAY_LIMITS_REFUSALS_H

#include "gateway/limits/limiter.h"

#define REFUSALS_LAST (100 * MSEC)

enum { REFUSALS_ROWS = 64, REFUSALS_OF_ROW = 4 };

struct refused {
	uint8_t tenant[16], scope[16]; /* keys, of whose limit it is */
	nsec_t since, until;           /* until 0: nothing is here */
	struct limit_refusal refusal;
	struct quota_limit
		rate; /* of ERR_RATE_LIMITED: the one in the way, and how much was asked of it */
	uint64_t asked;
};

/* All zero: nothing is remembered. */
struct refusals {
	nsec_t until; /* later than that of all */
	struct refused rows[REFUSALS_ROWS][REFUSALS_OF_ROW];
};

/* The limiter has refused the reservation at `now`. */
void refusals_note(struct refusals *refusals, const struct reservation *reservation, nsec_t now);

/* Whether the tenant was refused lately, for whatever reason. */
bool refusals_has(const struct refusals *refusals, const uint8_t tenant[16], nsec_t now);

/* True: the reservation is refused, as the limiter would by what it said, and is filled in. A rate that is another one by
 * now, or has enough for this request, refuses nothing. */
MUST_USE bool refusals_answer(const struct refusals *refusals, struct reservation *reservation);

/* Some of what the tenant had reserved was given back: tokens may do now. */
void refusals_settled(struct refusals *refusals, const uint8_t tenant[16], nsec_t now);

#endif
