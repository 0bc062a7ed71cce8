/* keys.h - which of a provider's keys a call is made with: cool-downs and head-room.
 *
 * Providers limit rates by key and model, so that a key has a lane per model: one that hit its limit
 * cools as long as the provider said, else 1 s, doubled with every further time, and one with next to
 * nothing left of a limit is taken last until that limit is renewed. A key that was refused (401, 403)
 * is left alone for a minute, one whose money is spent for an hour, for all models; but where no other
 * key is left these two are tried all the same, now and then: the provider's own refusal tells more than
 * ours, and an operator who has paid does not wait. Pure. */
#ifndef ROUTING_KEYS_H
#define ROUTING_KEYS_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/err.h"
#include "codec/dialect/dialect.h"

enum { KEYS_MAX = 16, KEY_LANES = 8 };

/* What is left of one of a key's limits. */
struct key_room {
	bool known;
	uint64_t limit, left; /* limit 0: not said */
	nsec_t renewed;       /* it counts until then; NSEC_NEVER: not said */
};

/* Zero-initialised: nothing known. */
struct key {
	enum err why; /* ERR_OK: does not cool; ERR_PROVIDER_OPERATOR or ERR_PROVIDER_BILLING */
	nsec_t until; /* it cools */
	nsec_t again; /* it may be tried where there is no other */
};

/* A key as one model sees it; likewise. */
struct key_lane {
	nsec_t until;     /* it cools */
	uint32_t strikes; /* rate limits in a row */
	struct key_room rooms[RATE_KINDS];
};

/* Those of one key; zero-initialised: nothing known. */
struct key_lanes {
	uint64_t models[KEY_LANES]; /* what stands for a model; 0: the lane is free */
	struct key_lane lanes[KEY_LANES];
};

/* What is known of a model: an empty lane where that is nothing. `model` is not 0. */
const struct key_lane *key_lane_of(const struct key_lanes *lanes, uint64_t model);
/* The model's own lane, made where there is none: in place of the one that cools for the shortest time
 * if all are taken. */
struct key_lane *key_lane_for(struct key_lanes *lanes, uint64_t model);
/* For how long one of them cools; 0: none does. */
nsec_t key_lanes_cool(const struct key_lanes *lanes, nsec_t now);

/* Picks one: not in `tried` (a bit each) if another can be had, in turn from `turn` on. ERR_OK, or why
 * the one that is back first cools (ERR_PROVIDER_RATE, ERR_PROVIDER_BILLING), with *wait until then.
 * `lanes` belong to the keys in their order; `count` 1..KEYS_MAX. */
MUST_USE enum err keys_pick(struct key *const *keys, const struct key_lane *const *lanes,
			    uint32_t count, uint32_t tried, uint32_t turn, nsec_t now,
			    uint32_t *picked, nsec_t *wait);

/* Whether nothing speaks against it: it does not cool, and its limits have room. */
bool key_is_free(const struct key *key, const struct key_lane *lane, nsec_t now);

/* Whether keys_pick would find one; true where there are no keys. */
bool keys_any(struct key *const *keys, const struct key_lane *const *lanes, uint32_t count,
	      nsec_t now);

/* It was refused: ERR_PROVIDER_OPERATOR (401, 403) or ERR_PROVIDER_BILLING. */
void key_refused(struct key *key, enum err why, nsec_t now);
/* It was good for an answer. */
void key_accepted(struct key *key);
/* For how long it still cools; 0: it does not. */
nsec_t key_cools(const struct key *key, nsec_t now);

/* A call is made: one request less to go. */
void key_lanes_began(struct key_lanes *lanes, uint64_t model, nsec_t now);
/* It was good for an answer. */
void key_lanes_accepted(struct key_lanes *lanes, uint64_t model, nsec_t now);
/* Its rate limit was hit; `retry_after_ms` 0 or less: the provider said nothing of a time. */
void key_lane_limited(struct key_lane *lane, int64_t retry_after_ms, nsec_t now);
/* What the headers of an answer say of its limits; `wall_ns` is now since the epoch. */
void key_lane_note_rates(struct key_lane *lane, const struct rate_header rates[RATE_KINDS],
			 nsec_t now, uint64_t wall_ns);
nsec_t key_lane_cools(const struct key_lane *lane, nsec_t now);

#endif
