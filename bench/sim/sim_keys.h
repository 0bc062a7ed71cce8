/* sim_keys.h - what each API key has asked for, and its rate limit, as providers have one.
 *
 * A window begins with a key's first request and lasts as long as the behaviour says; what is left of
 * the key's quota is told with every answer, and a request for which nothing is left is refused. */
#ifndef BENCH_SIM_SIM_KEYS_H
#define BENCH_SIM_SIM_KEYS_H

#include <pthread.h>

#include "bench/sim/sim_ask.h"
#include "bench/sim/sim_http.h"
#include "bench/sim/sim_spec.h"

#define SIM_KEYS_MAX 32
#define SIM_KEY_MAX 96

struct sim_key {
	char name[SIM_KEY_MAX];
	uint64_t requests, refused; /* refused: for want of quota */
	nsec_t began;               /* the window */
	uint64_t used, tokens;      /* in it */
};

struct sim_keys {
	pthread_mutex_t lock;
	struct sim_key rows[SIM_KEYS_MAX];
	size_t count;
};

/* What a key may still do after a request; {0}: as much as it likes. */
struct sim_quota {
	uint64_t limit, left;              /* requests; limit 0: any number */
	uint64_t token_limit, tokens_left; /* the same */
	nsec_t reset;                      /* until the window is over */
	bool refused;                      /* nothing was left for this one, and it took nothing */
};

void sim_keys_init(struct sim_keys *keys);
void sim_keys_fini(struct sim_keys *keys);

/* The key that a provider would find in the request; "" for none. */
struct slice sim_keys_of(const struct sim_http *http, enum sim_dialect dialect);

/* Counts a request of `key` that takes so many tokens. Keys beyond the table's size, or longer than its
 * names, are not counted and have no limit. */
struct sim_quota sim_keys_take(struct sim_keys *keys, struct slice key, const struct sim_spec *spec,
			       uint64_t tokens, nsec_t now);

/* Headers with what is left, in the dialect's form. */
void sim_keys_headers(const struct sim_quota *quota, enum sim_dialect dialect, struct sim_buf *out);

/* As JSON: {"KEY":{"requests":3,"refused":1}}. */
void sim_keys_print(struct sim_keys *keys, struct sim_buf *out);

/* No key has asked for anything. */
void sim_keys_reset(struct sim_keys *keys);

#endif
