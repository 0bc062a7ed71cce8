/* sim_error.h - the error bodies of both dialects. */
#ifndef BENCH_SIM_SIM_ERROR_H
#define BENCH_SIM_SIM_ERROR_H

#include "bench/sim/sim_answer.h"

/* A refusal of the provider: `status` with `message` in the dialect's error body; the behaviour
 * adds Retry-After and error code. */
void sim_error_answer(const struct sim_answer *answer, enum sim_dialect dialect, unsigned status,
		      const char *message, struct sim_buf *out);

#endif
