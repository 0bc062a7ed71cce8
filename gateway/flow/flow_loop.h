/* flow_loop.h - what a request knows of its tool loop; in its flow_state. */
#ifndef GATEWAY_FLOW_FLOW_LOOP_H
#define GATEWAY_FLOW_FLOW_LOOP_H

#include "gateway/providers/health.h"

#include <stdbool.h>
#include <stdint.h>

struct flow_loop {
	uint32_t
		unknown; /* calls of the last round that were not issued here, as far as that is known */
	struct health_target held; /* where the last round was answered; zero: not known */
	const char *
		spent; /* name of a limit that the loop has spent before this request; NULL: none */
	bool unbound; /* the provider did not take the blocks that it was given: none are given now */
};

#endif
