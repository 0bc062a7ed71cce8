/* control_watchdog.h - the watchdog's judgement of one worker. Pure.
 *
 * A loop that has not turned for 5 s hangs: libh2o 2.2.5 can be made to spin. Time in which the
 * watchdog did not run itself (a stopped or starved process) is not held against the worker. */
#ifndef GATEWAY_CONTROL_CONTROL_WATCHDOG_H
#define GATEWAY_CONTROL_CONTROL_WATCHDOG_H

#include "codec/base/clock.h"

#include <stdbool.h>

#define WATCH_PERIOD (250 * MSEC)
#define WATCH_PATIENCE (5 * SEC)

struct watch {
	uint64_t turned; /* as last seen */
	nsec_t still;    /* for how long it has been that */
	bool hangs;      /* said so, and nothing has moved since */
};

/* One look: `elapsed` since the last one. True, once: the worker hangs. */
bool watch_step(struct watch *watch, uint64_t turned, nsec_t elapsed);

#endif
