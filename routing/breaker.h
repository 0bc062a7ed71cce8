/* breaker.h - whether an endpoint gets calls: closed, open, half open.
 *
 * Closed, it counts: a row of failures, or a share of a window's calls, opens it. Open, it admits
 * nothing until its time is over, then one call at a time (half open): one that succeeds closes it,
 * one that fails opens it again for twice as long. A probe that takes long does not lock the endpoint
 * out: after the same time the next one may go. Once closed, its share of the traffic rises slowly.
 *
 * An endpoint that fails some of its calls and not all is worth more than none: where there is nobody else
 * to ask, an open breaker says with what chance a call may go all the same (breaker_chance). One that has
 * died is spared.
 *
 * What one tenant's requests make of it is not everybody's affair: where all that opened it were failures of one
 * tenant's requests, answered or not, it is open for that tenant alone, and the first call of another decides: it
 * closes it, or opens it for all. Connections that fail are nobody's: they open it for all.
 *
 * Several tenants may be one attacker. A call that took too long, while the endpoint answered somebody else, shows
 * nothing about the endpoint: it never opens the breaker for all. And where it is open for all, the tenants whose
 * failures it remembers do not keep the others out: who was answered well lately, and has not failed since, may
 * go if there is nobody else to ask, and the rest have a probe of their own.
 *
 * Active checks speak too: while they fail, nothing is admitted; when they pass again, nothing has to
 * be waited for. Pure: time is an argument; what counts as a failure is the caller's judgement (never
 * what the request itself, its key or its deadline is to blame for). */
#ifndef ROUTING_BREAKER_H
#define ROUTING_BREAKER_H

#include "codec/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct breaker_settings {
	uint32_t row;   /* failures in a row that open it; at least 1 */
	double ratio;   /* failed calls in a window that open it; 0: these are not looked at */
	uint32_t calls; /* the window has to have at least so many */
	nsec_t window;
	nsec_t open_first, open_max; /* how long it stays open: doubled with each failed probe */
	nsec_t ramp;                 /* slow start after closing; 0: none */
};
extern const struct breaker_settings breaker_settings_default;

/* As the metric sluice_breaker_state counts them. */
enum breaker_state { BREAKER_CLOSED, BREAKER_HALF_OPEN, BREAKER_OPEN };

enum breaker_result {
	BREAKER_GOOD,
	BREAKER_BAD,
	BREAKER_LATE, /* bad: it took longer than it may */
	BREAKER_MUTE  /* the call says nothing about the endpoint: cancelled, refused by its key */
};

/* As what a call was admitted; breaker_ended wants to know. Zero: while it was closed. */
struct breaker_pass {
	uint32_t opening; /* which of them it began in; 0: none */
	bool probe;       /* it decides; else it went by chance */
	bool spared;      /* it was open for another tenant alone */
	bool fair;        /* beside the probes of the tenants that are to blame */
	nsec_t began;
};

enum {
	BREAKER_SHARE_FULL = 256,
	BREAKER_CHANCE_FULL = 1 << 16,
	BREAKER_BLAMED_MAX = 8,
	BREAKER_WELL_MAX = 16
};

/* Zero-initialised: closed, nothing known. */
struct breaker {
	bool open;
	bool failing;    /* active checks say so */
	uint32_t row;    /* failures since the last success */
	uint64_t row_of; /* whose, as all that follows: a tenant's tag; 0: not of one alone */
	uint32_t own; /* late calls since the tenant's last success, while others were answered */
	uint64_t own_of;
	uint64_t only;     /* open: for whom alone */
	uint32_t openings; /* since it last stayed closed for a while */
	uint32_t number;   /* of openings ever: tells this one's calls from those of others */
	uint32_t good; /* open: of its calls, lately, how many are good; of BREAKER_CHANCE_FULL */
	nsec_t until;  /* open: nothing is admitted before */
	nsec_t closed_at; /* the last time; 0: it was never open */
	nsec_t half_from; /* the window as two halves, of which the older one fades */
	struct breaker_half {
		uint32_t calls, bad;
		uint64_t bad_of;
	} halves[2];
	/* The latest success, and the latest one of another tenant. */
	struct breaker_good {
		uint64_t of;
		nsec_t at;
	} answered[2];
	/* Of the tenants that come to the same place the one answered last, unless it has failed since. */
	struct breaker_good well[BREAKER_WELL_MAX];
	/* Whose failures these were, since the row began: the latest tenants. None: somebody's was nobody's. */
	uint64_t blamed[BREAKER_BLAMED_MAX];
	uint32_t blamed_count; /* ever since, those that were overwritten too */
	nsec_t fair_at;        /* open for all: no probe of another tenant before */
};

/* How many of `blamed` there are. */
static inline uint32_t breaker_blamed(const struct breaker *breaker)
{
	return breaker->blamed_count < BREAKER_BLAMED_MAX ? breaker->blamed_count
							  : BREAKER_BLAMED_MAX;
}

enum breaker_state breaker_state(const struct breaker *breaker, nsec_t now);

/* Whether a call may go; half open: as a probe. */
bool breaker_admits(const struct breaker *breaker, nsec_t now);

/* Whether it is open for others alone, and not for that tenant (a tag; 0: nobody's). */
bool breaker_spares(const struct breaker *breaker, uint64_t tenant);

/* When a call of that tenant may go if there is nobody else to ask: open for as long as the first time. To wait
 * longer spares nobody then, and keeps callers from a provider that is well again. NSEC_NEVER: active checks
 * fail. Not for one that admits. */
nsec_t breaker_early(const struct breaker *breaker, const struct breaker_settings *settings,
		     uint64_t tenant, nsec_t now);

/* With what chance, of BREAKER_CHANCE_FULL, a call may go if there is nobody else to ask and it is not
 * even early: thrice the share of its calls that are good lately. 0: it was well until it did nothing but
 * fail, or active checks fail. Not for one that admits. */
uint32_t breaker_chance(const struct breaker *breaker);

/* A call of that tenant begins, for one of the four reasons above. Open, it is a probe unless it went by
 * chance. */
struct breaker_pass breaker_began(struct breaker *breaker, const struct breaker_settings *settings,
				  uint64_t tenant, nsec_t now);

/* It ended. `of`: whose request may be to blame for a failure; 0: nobody's. While the breaker is open, what began before
 * says one thing only: by failing, that not one tenant alone does, and so that it is open for all. A probe of an
 * earlier opening decides nothing. */
void breaker_ended(struct breaker *breaker, const struct breaker_settings *settings,
		   struct breaker_pass pass, enum breaker_result result, uint64_t of, nsec_t now);

/* What an active check found. */
void breaker_checked(struct breaker *breaker, bool passes, nsec_t now);

/* Of its full traffic, in 1/256: less during slow start, never 0. */
uint32_t breaker_share(const struct breaker *breaker, const struct breaker_settings *settings,
		       nsec_t now);

#endif
