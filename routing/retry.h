/* retry.h - a retry budget: retries are a share of the requests, so that an outage is not multiplied.
 *
 * Every request puts in a part of a retry, every retry takes a whole one out. What was not used is kept
 * up to a tenth of what a window's requests put in, and who sends little gets a few retries per window
 * all the same. In the long run there are at most `share` retries per request, or `floor` per window.
 * Pure: time is an argument. */
#ifndef ROUTING_RETRY_H
#define ROUTING_RETRY_H

#include "codec/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct retry_settings {
	double share;   /* retries per request; 0: only the floor's */
	uint32_t floor; /* retries per window for who has few requests; 0: none */
	nsec_t window;  /* at least 1 */
};
extern const struct retry_settings retry_settings_default;

/* Zero-initialised: full to the floor at first use. */
struct retry_budget {
	nsec_t at;     /* when it was last brought up to date; 0: never */
	double recent; /* requests of about the last window, fading */
	double left;   /* retries that may be made now */
};

/* A request begins (not a retry of it). */
void retry_note_request(struct retry_budget *budget, const struct retry_settings *settings,
			nsec_t now);

/* Whether there is a retry left. */
bool retry_has(struct retry_budget *budget, const struct retry_settings *settings, nsec_t now);

/* Takes one; retry_has said yes. */
void retry_take(struct retry_budget *budget);

#endif
