/* control_filewatch.h - when a configuration that has changed on disk is taken over (reload_watch). Pure.
 *
 * Somebody may be writing the files just now, so that a change is acted upon when it has stood still
 * from one look to the next. */
#ifndef GATEWAY_CONTROL_CONTROL_FILEWATCH_H
#define GATEWAY_CONTROL_CONTROL_FILEWATCH_H

#include "codec/base/clock.h"
#include "codec/base/sha256.h"

#include <stdbool.h>

/* Between the look that finds a change and the next one, or the period if that is shorter. */
#define FILES_SETTLE (1 * SEC)

struct files_watch {
	nsec_t looked;               /* when it was looked last; at first, when the process began */
	bool changed;                /* then: not as the last load has seen them */
	uint8_t state[SHA256_BYTES]; /* then */
};

/* Whether to look again; `period` is reload_watch, 0: never. */
bool files_due(const struct files_watch *watch, nsec_t now, nsec_t period);

/* What a look has found (settings_seen_look). True: load them now. */
bool files_step(struct files_watch *watch, nsec_t now, bool changed,
		const uint8_t state[SHA256_BYTES]);

/* They have been loaded, whatever came of it. */
void files_loaded(struct files_watch *watch);

#endif
