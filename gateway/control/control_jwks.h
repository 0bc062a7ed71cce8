/* control_jwks.h - the keys that issuers of tokens publish: fetched by the control thread, told to all
 * workers (DESIGN 2 and 4.2, identity.jwt).
 *
 * One source per place (struct jwks_place), which outlives snapshots. When to fetch is decided by
 * control_jwks_plan, how by fetch. An issuer that cannot be reached keeps nobody from starting:
 * its tokens are refused until its keys are there, and after a day without news again. */
#ifndef GATEWAY_CONTROL_CONTROL_JWKS_H
#define GATEWAY_CONTROL_CONTROL_JWKS_H

#include "gateway/base/config.h"
#include "gateway/identity/jwt_keys.h"
#include "gateway/upstream/upstream.h"

struct jwks;
struct event_base;

/* The keys at that place from now on, NULL: none; `keys` is lent, share it. */
typedef void jwks_told_fn(void *arg, struct slice place, struct jwt_keys *keys);

/* `told` is called from the loop. Lives until the process ends. NULL: memory. */
struct jwks *control_jwks_new(struct event_base *base, jwks_told_fn *told, void *arg);

/* From now on the places of that configuration, and no others; before control_dns_want, which tells
 * where they are. */
void control_jwks_want(struct jwks *jwks, const struct config *config, nsec_t now);

/* What DNS has found of a name; count 0: it is not known. Ports are ignored. */
void control_jwks_resolved(struct jwks *jwks, struct slice host,
			   const struct upstream_address *addresses, uint32_t count);

/* A worker has seen a token whose key is not among those at that place. */
void control_jwks_refetch(struct jwks *jwks, struct slice place, nsec_t now);

/* Every 50 ms. */
void control_jwks_tick(struct jwks *jwks, nsec_t now);

/* The families of the metrics. */
void control_jwks_print(const struct jwks *jwks, nsec_t now, FILE *out);

#endif
