/* control_dns.h - addresses of the names of providers, MCP servers, store and issuers, by evdns: hosts file, search domains, A and AAAA.
 *
 * Each name that an endpoint has for a host is asked for when it appears and then every 30 s (5 s after
 * a failure). The last good addresses stay in force while the name cannot be resolved. Addresses that
 * this machine has no route to (IPv6 on most) are left out as long as there are others. */
#ifndef GATEWAY_CONTROL_CONTROL_DNS_H
#define GATEWAY_CONTROL_CONTROL_DNS_H

#include "gateway/base/config.h"
#include "gateway/upstream/upstream.h"

struct dns;
struct event_base;

/* The addresses of `host`, ports 0; count 0: it cannot be resolved and never could. */
typedef void dns_found_fn(void *arg, struct slice host, const struct upstream_address *addresses,
			  uint32_t count);

/* `found` is called from the loop, and from inside control_dns_want. Lives until the process ends.
 * NULL: memory. */
struct dns *control_dns_new(struct event_base *base, dns_found_fn *found, void *arg);

/* From now on the names of that configuration, and no others. What is known of them is told again at
 * once, for pools that are new. */
void control_dns_want(struct dns *dns, const struct config *config);

/* Asks for that name now, rather than when it is due; nothing for names that are not wanted. */
void control_dns_again(struct dns *dns, struct slice host);

/* Puts the port into an address. */
void control_dns_port(struct upstream_address *address, uint16_t port);

#endif
