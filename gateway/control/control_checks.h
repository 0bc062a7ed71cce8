/* control_checks.h - active checks of providers' endpoints (providers.*.check): asked by the control
 * thread, told to all workers.
 *
 * One per provider, endpoint and path, which outlives snapshots. How is decided by fetch, what a
 * row of results means by control_checks_plan. An endpoint is good until its checks say otherwise. */
#ifndef GATEWAY_CONTROL_CONTROL_CHECKS_H
#define GATEWAY_CONTROL_CONTROL_CHECKS_H

#include "gateway/base/config.h"
#include "gateway/upstream/upstream.h"

struct checks;
struct event_base;

/* Whose endpoint, which one (its identity and the path of its URL), and whether it is to get calls. */
typedef void checks_told_fn(void *arg, struct slice provider, struct slice identity,
			    struct slice path, bool up);

/* `told` is called from the loop when a verdict changes, and from inside control_checks_want. Lives until
 * the process ends. NULL: memory. */
struct checks *control_checks_new(struct event_base *base, checks_told_fn *told, void *arg);

/* From now on the endpoints of that configuration, and no others; after the workers were told of it, and
 * before control_dns_want, which says where they are. Bad verdicts are told again, for endpoints that
 * are new to a worker; one that is not checked any more is good again. */
void control_checks_want(struct checks *checks, const struct config *config, nsec_t now);

/* What DNS has found of a name; count 0: it is not known. Ports are ignored. */
void control_checks_resolved(struct checks *checks, struct slice host,
			     const struct upstream_address *addresses, uint32_t count);

/* Every 50 ms. */
void control_checks_tick(struct checks *checks, nsec_t now);

/* The families of the metrics. */
void control_checks_print(const struct checks *checks, FILE *out);

#endif
