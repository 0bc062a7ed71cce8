/* keys.h - which of a provider's keys a call is made with: cool-downs and head-room.
 *
 * A key cools after its rate limit was hit: as long as the provider said, else 1 s, doubled with every
 * further time. One that was refused (401, 403) is left alone for a minute, one whose money is spent
 * for an hour; but where no other key is left these two are tried all the same, now and then: the
 * provider's own refusal tells more than ours, and an operator who has paid does not wait. A key that
 * has next to nothing left of a limit is taken last until that limit is renewed. Pure. */
#ifndef ROUTING_KEYS_H
#define ROUTING_KEYS_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/err.h"
#include "codec/dialect.h"

enum { KEYS_MAX = 16 };

/* What is left of one of a key's limits. */
struct key_room {
	bool known;
	uint64_t limit, left; /* limit 0: not said */
	nsec_t renewed;       /* it counts until then; NSEC_NEVER: not said */
};

/* Zero-initialised: nothing known. */
struct key {
	enum err why;     /* ERR_OK: does not cool; ERR_PROVIDER_RATE, _OPERATOR or _BILLING */
	nsec_t until;     /* it cools */
	nsec_t again;     /* it may be tried where there is no other */
	uint32_t strikes; /* rate limits in a row */
	struct key_room rooms[RATE_KINDS];
};

/* Picks one: not in `tried` (a bit each) if another can be had, in turn from `turn` on. ERR_OK, or why
 * the one that is back first cools (ERR_PROVIDER_RATE, ERR_PROVIDER_BILLING), with *wait until then.
 * `count` 1..KEYS_MAX. */
MUST_USE enum err keys_pick(struct key *const *keys, uint32_t count, uint32_t tried, uint32_t turn,
			    nsec_t now, uint32_t *picked, nsec_t *wait);

/* Whether keys_pick would find one. */
bool keys_any(struct key *const *keys, uint32_t count, nsec_t now);

/* A call is made with it: one request less to go. */
void key_began(struct key *key, nsec_t now);

/* It was refused: ERR_PROVIDER_RATE, ERR_PROVIDER_OPERATOR (401, 403) or ERR_PROVIDER_BILLING.
 * `retry_after_ms` below 0: the provider said nothing. */
void key_refused(struct key *key, enum err why, int64_t retry_after_ms, nsec_t now);

/* It was good for an answer. */
void key_accepted(struct key *key, nsec_t now);

/* What the headers of an answer say of its limits; `wall_ns` is now since the epoch. */
void key_note_rates(struct key *key, const struct rate_header rates[RATE_KINDS], nsec_t now,
		    uint64_t wall_ns);

/* For how long it still cools; 0: it does not. */
nsec_t key_cools(const struct key *key, nsec_t now);

#endif
