#include "bench/sim/sim_due.h"

bool sim_due_by_time(const struct sim_spec *spec, nsec_t now)
{
	const nsec_t begin = spec->since + spec->after;

	return now >= begin && (spec->lasts == 0 || now < begin + spec->lasts);
}

static bool key_due(const struct sim_spec *spec, struct slice key)
{
	const struct slice end = slice_str(spec->key);

	return key.len >= end.len && slice_eq(slice_of(key.at + key.len - end.len, end.len), end);
}

/* Every request that comes so far is counted. */
static bool turn_due(struct sim_shared *shared, const struct sim_spec *spec)
{
	if (spec->every <= 1 && spec->first_only == 0)
		return true;
	const uint64_t nth = atomic_fetch_add(&shared->faults_due, 1) + 1;

	return (spec->every <= 1 || nth % spec->every == 0) &&
	       (spec->first_only == 0 || nth <= spec->first_only);
}

void sim_due_spare(struct sim_shared *shared, struct sim_spec *spec, struct slice key,
		   uint64_t connection, nsec_t now)
{
	if (spec->fault == SIM_FAULT_NONE)
		return;
	if (!sim_due_by_time(spec, now) || !key_due(spec, key) ||
	    (spec->every_connection > 1 && connection % spec->every_connection != 0) ||
	    !turn_due(shared, spec))
		spec->fault = SIM_FAULT_NONE;
}
