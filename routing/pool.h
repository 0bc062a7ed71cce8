/* pool.h - which of a provider's endpoints the next call goes to.
 *
 * Power of two choices: one endpoint has its turn by weight (smooth weighted round robin), another is
 * drawn by weight; the call goes to the first unless the second is clearly better, by expected latency
 * (a moving average that jumps up to a peak and fades, after Finagle's peak EWMA) times calls in flight
 * beside its fair part of them. So equal endpoints share exactly by weight, whatever the load, while a
 * slow, hanging or crowded one is avoided at once, and is tried again when its peak has faded.
 *
 * Endpoints of the own zone go first while at least half of them can be used. One that is far worse
 * than its peers, in latency or failures, is ejected for a while; at most half of them are. Pure: time
 * and chance are arguments. */
#ifndef ROUTING_POOL_H
#define ROUTING_POOL_H

#include "codec/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { POOL_MEMBERS_MAX = 64, POOL_SHARE_FULL = 256, POOL_DRAWN_MAX = 2 };

/* What is known of an endpoint; outlives the pools it is a member of. Zero-initialised: nothing. */
struct pool_load {
	double peak_ns;     /* latency; 0: not known yet */
	nsec_t seen_at;     /* of the last sample */
	uint32_t in_flight; /* the owner counts */
	/* what outliers are told by, since about the last tens of calls */
	uint32_t calls, bad;
	double mean_ns; /* of good answers; 0: none yet */
	uint32_t ejections;
	nsec_t ejected_until;
};

/* An endpoint's place in one pool. */
struct pool_member {
	struct pool_load *load;
	uint32_t weight; /* at least 1 */
	uint32_t share;  /* 1..POOL_SHARE_FULL: what of its weight counts now (slow start) */
	bool own_zone;
	int64_t turn; /* private to pool_pick */
};

/* The choice, and between whom it was made: for the log. */
struct pool_drawn {
	uint32_t member;
	float cost; /* latency in ms x calls in flight / its fair part of them, with the slack of pool.c */
};
struct pool_choice {
	uint32_t member;
	struct pool_drawn drawn[POOL_DRAWN_MAX];
	uint32_t drawn_count;
};

/* Picks one of the members in `may` (a bit each, not 0). `count` at most POOL_MEMBERS_MAX. */
struct pool_choice pool_pick(struct pool_member *members, uint32_t count, uint64_t may, nsec_t now,
			     uint64_t random);

/* What a call brought: `took` until its answer, or until it was given up; 0: not to be counted. */
void pool_note(struct pool_load *load, bool good, nsec_t took, nsec_t now);

/* A call was given up after `waited` without an answer: it takes that long at least. */
void pool_waited(struct pool_load *load, nsec_t waited, nsec_t now);

/* Looks for outliers; about once a second. */
void pool_review(struct pool_member *members, uint32_t count, nsec_t now);

#endif
