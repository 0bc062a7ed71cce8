/* control_clock.c - the clock of the control thread. */
#include "gateway/control/control_parts.h"

#include "codec/base/must.h"

#include <time.h>

nsec_t control_now(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}
