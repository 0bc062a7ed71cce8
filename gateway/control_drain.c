#include "gateway/control_drain.h"

#include "codec/base/must.h"

void drain_begin(struct drain *drain, nsec_t now, nsec_t total)
{
	must(drain->phase == DRAIN_NOT);
	*drain = (struct drain){
		.phase = DRAIN_QUIET,
		.since = now,
		.quiet = total / 10 < 5 * SEC ? total / 10 : 5 * SEC,
		.deadline = now + total,
	};
}

static void enter(struct drain *drain, enum drain_phase phase, nsec_t now)
{
	drain->phase = phase;
	drain->since = now;
	drain->calm = 0;
}

static bool has_left(const struct drain *drain, nsec_t now, uint64_t connections)
{
	if (now >= drain->deadline)
		return true;
	return drain->calm >= DRAIN_CALM_LOOKS &&
	       (connections == 0 || now - drain->since >= DRAIN_LINGER);
}

enum drain_phase drain_step(struct drain *drain, nsec_t now, uint64_t in_flight,
			    uint64_t connections)
{
	drain->calm = in_flight == 0 ? drain->calm + 1 : 0;
	if (drain->phase == DRAIN_QUIET &&
	    (now - drain->since >= drain->quiet || drain->calm >= DRAIN_CALM_LOOKS))
		enter(drain, DRAIN_LEAVING, now);
	else if (drain->phase == DRAIN_LEAVING && has_left(drain, now, connections))
		enter(drain, DRAIN_OVER, now);
	return drain->phase;
}
