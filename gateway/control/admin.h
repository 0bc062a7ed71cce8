/* admin.h - the operator's HTTP: /healthz, /readyz, /metrics, /reload, /lessons, /tenants/ID (DESIGN 4.2, 4.5).
 *
 * Over evhttp on the control thread's loop. What is asked is answered through hooks; a client that is
 * slow or gone holds up nobody. /reload, /lessons and /tenants are allowed only on the UNIX socket and from loopback. These and
 * /metrics are for no browser: without an Origin, and at the address with localhost, an IP address or a configured name as
 * the Host. */
#ifndef GATEWAY_CONTROL_ADMIN_H
#define GATEWAY_CONTROL_ADMIN_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdbool.h>
#include <stdio.h>

struct admin;
struct event_base;

/* Each writes the answer's text and returns its HTTP status. */
typedef int admin_answer_fn(void *arg, FILE *out);

/* The same of one tenant: its id as the path names it, and what was posted. Writes JSON with 200, else text. */
typedef int admin_tenant_fn(void *arg, struct slice id, struct slice body, FILE *out);

struct admin_hooks {
	admin_answer_fn *healthz, *readyz, *metrics, *lessons, *reload;
	admin_tenant_fn *tenant, *budget;
	bool (*is_name)(void *arg,
			struct slice host); /* one that the operator has given the address */
	void *arg;
};

/* Serves the listening sockets `tcp_fd` and `unix_fd` (-1: none) until the process ends. NULL: memory. */
struct admin *admin_new(struct event_base *base, const struct admin_hooks *hooks, int tcp_fd,
			int unix_fd);

#endif
