/* sim_admin.h - the paths that are not a provider's: GET /stats, GET /last, GET /last/body,
 * POST /reset, POST /default with words of behaviour as its body. */
#ifndef BENCH_SIM_SIM_ADMIN_H
#define BENCH_SIM_SIM_ADMIN_H

#include "bench/sim/sim_shared.h"

/* Writes the whole answer to a request for `path`, also when there is no such path. `scratch` is
 * overwritten. */
void sim_admin_answer(struct sim_shared *shared, const struct sim_http *http, struct slice path,
		      struct sim_buf *scratch, struct sim_buf *out);

#endif
