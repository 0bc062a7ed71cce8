#include "gateway/control/control_drain.h"

#include "codec/base/must.h"

static nsec_t least(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

void drain_begin(struct drain *drain, nsec_t now, nsec_t total)
{
	must(drain->phase == DRAIN_NOT);
	*drain = (struct drain){
		.phase = DRAIN_QUIET,
		.since = now,
		.quiet = least(total / 10, 5 * SEC),
		.give_up_at = now + total - least(total / 10, DRAIN_LAST_WORDS),
		.deadline = now + total,
		.seen = now,
	};
}

/* A connection that came and went between two looks is somebody, too. */
static void look(struct drain *drain, nsec_t now, const struct drain_load *load)
{
	bool somebody =
		load->in_flight > 0 || load->connections > 0 || load->accepted != drain->accepted;

	drain->accepted = load->accepted;
	drain->calm = somebody ? 0 : drain->calm + 1;
	if (somebody)
		drain->seen = now;
}

static bool phase_is_over(const struct drain *drain, nsec_t now)
{
	nsec_t lasted = now - drain->since;

	switch (drain->phase) {
	case DRAIN_QUIET:
		return lasted >= drain->quiet || now - drain->seen >= DRAIN_QUIET_PATIENCE;
	case DRAIN_CLOSING:
		return lasted >= DRAIN_HANDSHAKES;
	case DRAIN_LEAVING:
		return drain->calm >= DRAIN_CALM_LOOKS || now >= drain->give_up_at;
	case DRAIN_GIVING_UP:
		return drain->calm >= DRAIN_CALM_LOOKS;
	case DRAIN_NOT:
	case DRAIN_OVER:
		break;
	}
	return false;
}

enum drain_phase drain_step(struct drain *drain, nsec_t now, const struct drain_load *load)
{
	must(drain->phase != DRAIN_NOT);
	look(drain, now, load);
	if (now >= drain->deadline) {
		drain->phase = DRAIN_OVER;
	} else if (phase_is_over(drain, now)) {
		bool nobody = drain->phase == DRAIN_LEAVING && drain->calm >= DRAIN_CALM_LOOKS;
		drain->phase = nobody ? DRAIN_OVER : drain->phase + 1;
		drain->since = now;
		drain->calm = 0;
	}
	return drain->phase;
}
