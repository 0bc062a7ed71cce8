#include "gateway/process/supervisor_restart.h"

#include "codec/base/must.h"

/* Whether this death and the RESTARTS_AT_ONCE before it lie within one window. */
static bool too_many(const struct supervisor_restart *r, nsec_t now)
{
	if (r->death_count <= RESTARTS_AT_ONCE)
		return false;
	/* The ring's next place holds the oldest. */
	return now - r->deaths[r->death_count % COUNT_OF(r->deaths)] < RESTART_WINDOW;
}

static nsec_t next_delay(const struct supervisor_restart *r, nsec_t lived, nsec_t now)
{
	bool backing_off = r->delay > 0 && lived < RESTART_WINDOW;

	if (!backing_off)
		return too_many(r, now) ? RESTART_DELAY_MIN : 0;
	return r->delay * 2 < RESTART_DELAY_MAX ? r->delay * 2 : RESTART_DELAY_MAX;
}

bool supervisor_restart(struct supervisor_restart *r, nsec_t started, nsec_t now, bool was_ready,
			nsec_t *delay)
{
	must(started <= now);
	r->deaths[r->death_count++ % COUNT_OF(r->deaths)] = now;
	r->unready = was_ready ? 0 : r->unready + 1;
	if (r->unready == RESTARTS_UNREADY_MAX)
		return false;
	r->delay = next_delay(r, now - started, now);
	*delay = r->delay;
	return true;
}
