/* sim_due.h - whom a fault hits: of its conditions in struct sim_spec all must hold. */
#ifndef BENCH_SIM_SIM_DUE_H
#define BENCH_SIM_SIM_DUE_H

#include "bench/sim/sim_shared.h"

/* Whether the fault has begun and is not over. */
bool sim_due_by_time(const struct sim_spec *spec, nsec_t now);

/* Takes the fault out of *spec if it spares this request: of this key, on connection number
 * `connection`, at `now`. Counts those that the other conditions would let it hit, for `every` and
 * `first`. */
void sim_due_spare(struct sim_shared *shared, struct sim_spec *spec, struct slice key,
		   uint64_t connection, nsec_t now);

#endif
