#include "gateway/control/control_watchdog.h"

bool watch_step(struct watch *watch, uint64_t turned, nsec_t elapsed)
{
	if (watch->turned != turned) {
		*watch = (struct watch){ .turned = turned };
		return false;
	}
	watch->still += elapsed < 2 * WATCH_PERIOD ? elapsed : 2 * WATCH_PERIOD;
	if (watch->hangs || watch->still < WATCH_PATIENCE)
		return false;
	watch->hangs = true;
	return true;
}
