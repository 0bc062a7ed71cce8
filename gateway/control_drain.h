/* control_drain.h - leaving: what a server that was told to stop does next. Pure.
 *
 * First it only says that it is not ready any more and goes on serving (a tenth of the drain, at most
 * 5 s), because load balancers notice late; then it stops accepting and lets what is in flight end.
 * Each of the two is over as soon as nothing is in flight. */
#ifndef GATEWAY_CONTROL_DRAIN_H
#define GATEWAY_CONTROL_DRAIN_H

#include "codec/base/clock.h"

#include <stdbool.h>

enum drain_phase {
	DRAIN_NOT,     /* zero-initialised */
	DRAIN_QUIET,   /* readyz fails; still serving */
	DRAIN_LEAVING, /* accepts nothing; requests in flight end */
	DRAIN_OVER
};

struct drain {
	enum drain_phase phase;
	nsec_t since;    /* when the phase began */
	nsec_t quiet;    /* how long DRAIN_QUIET may take */
	nsec_t deadline; /* of everything */
	uint32_t calm;   /* looks in a row at which nothing was in flight */
};

/* Looks that must find nothing in flight before that is believed: workers publish once per turn, so
 * one look can miss a request that has just come in. */
enum { DRAIN_CALM_LOOKS = 3 };
/* How long clients have to close idle connections once nothing is in flight. */
#define DRAIN_LINGER (1500 * MSEC)

void drain_begin(struct drain *drain, nsec_t now, nsec_t total);

/* One look, every 50 ms or so; returns the phase it is in now. */
enum drain_phase drain_step(struct drain *drain, nsec_t now, uint64_t in_flight,
			    uint64_t connections);

#endif
