/* supervisor_restart.h - when a dead server process is started again. Pure.
 *
 * At once for 3 deaths in 10 s; then after 100 ms, doubling to 5 s, until a server has lived for 10 s.
 * Five deaths in a row before the server was ready: never, because nothing will change by itself. */
#ifndef GATEWAY_PROCESS_SUPERVISOR_RESTART_H
#define GATEWAY_PROCESS_SUPERVISOR_RESTART_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <stdbool.h>

enum { RESTARTS_AT_ONCE = 3, RESTARTS_UNREADY_MAX = 5 };
#define RESTART_WINDOW (10 * SEC)
#define RESTART_DELAY_MIN (100 * MSEC)
#define RESTART_DELAY_MAX (5 * SEC)

/* Zero-initialised is ready. */
struct supervisor_restart {
	nsec_t deaths[RESTARTS_AT_ONCE + 1]; /* the latest ones, as a ring */
	uint32_t death_count;
	uint32_t unready; /* deaths in a row before ready */
	nsec_t delay;     /* of the last restart */
};

/* A server that was started at `started` is dead at `now`. False: give up. Else *delay is how long to
 * wait before the next start. */
MUST_USE bool supervisor_restart(struct supervisor_restart *r, nsec_t started, nsec_t now,
				 bool was_ready, nsec_t *delay);

#endif
