/* control_drain.h - leaving: what a server that was told to stop does next. Pure.
 *
 * First it only says that it is not ready any more and goes on serving (a tenth of the drain, at most
 * 5 s), because load balancers notice late. Then it stops listening without losing a connection that
 * is being made, and lets what is there end: bodies being uploaded, requests at a provider, answers
 * being read. What has not ended shortly before the deadline is told so. */
#ifndef GATEWAY_CONTROL_CONTROL_DRAIN_H
#define GATEWAY_CONTROL_CONTROL_DRAIN_H

#include "codec/base/clock.h"

#include <stdbool.h>

enum drain_phase {
	DRAIN_NOT,       /* zero-initialised */
	DRAIN_QUIET,     /* readyz fails; still serving */
	DRAIN_CLOSING,   /* no new connection can begin; those that have begun are accepted */
	DRAIN_LEAVING,   /* not listening; what is there is served, idle connections are closed */
	DRAIN_GIVING_UP, /* requests that still wait are refused */
	DRAIN_OVER
};

/* What the workers publish. */
struct drain_load {
	uint64_t in_flight;   /* requests without an answer */
	uint64_t connections; /* open */
	uint64_t accepted;    /* connections, ever */
};

struct drain {
	enum drain_phase phase;
	nsec_t since;      /* when the phase began */
	nsec_t quiet;      /* how long DRAIN_QUIET may take */
	nsec_t give_up_at; /* before the deadline */
	nsec_t deadline;   /* of everything */
	nsec_t seen;       /* when a caller was last seen */
	uint64_t accepted; /* at the last look */
	uint32_t calm;     /* looks in a row at which there was nobody */
};

/* Looks that must find nobody before that is believed: workers publish once per turn, so one look can
 * miss a request that has just come in. */
enum { DRAIN_CALM_LOOKS = 3 };
/* The quiet period ends early when there was nobody for so long. */
#define DRAIN_QUIET_PATIENCE (1 * SEC)
/* For connections that are being made: a few round trips. */
#define DRAIN_HANDSHAKES (200 * MSEC)
/* For the refusals at the end, or a tenth of the drain. */
#define DRAIN_LAST_WORDS (1 * SEC)

void drain_begin(struct drain *drain, nsec_t now, nsec_t total);

/* One look, every 50 ms or so; returns the phase it is in now: the same or the next, or OVER. */
enum drain_phase drain_step(struct drain *drain, nsec_t now, const struct drain_load *load);

#endif
