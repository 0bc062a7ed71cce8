#include "gateway/control/control_filewatch.h"

#include <string.h>

bool files_due(const struct files_watch *watch, nsec_t now, nsec_t period)
{
	nsec_t wait = watch->changed && period > FILES_SETTLE ? FILES_SETTLE : period;

	return period != 0 && now - watch->looked >= wait;
}

bool files_step(struct files_watch *watch, nsec_t now, bool changed,
		const uint8_t state[SHA256_BYTES])
{
	bool still = watch->changed && memcmp(watch->state, state, sizeof(watch->state)) == 0;

	watch->looked = now;
	watch->changed = changed;
	memcpy(watch->state, state, sizeof(watch->state));
	return changed && still;
}

void files_loaded(struct files_watch *watch)
{
	watch->changed = false;
}
