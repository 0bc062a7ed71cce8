/* control_fetch.h - one small document by HTTP or HTTPS, on the control thread's loop.
 *
 * One GET over HTTP/1.1, read by upstream_http: bounded in bytes and in time, no redirects, no
 * compression. Under TLS the context decides whom to trust (tls.h). Addresses are tried in turn: the
 * next one when a connection fails, or is not there after its share of the time. */
#ifndef GATEWAY_CONTROL_CONTROL_FETCH_H
#define GATEWAY_CONTROL_CONTROL_FETCH_H

#include "codec/base/clock.h"
#include "gateway/upstream/upstream.h"

struct event_base;
struct fetch;
struct ssl_ctx_st;

/* `problem` NULL: status 200 (or, if asked so, any of 2xx), and `body` is what came, valid during the call. Else what went wrong, in
 * words for the log; nothing of what the peer has sent is in it. The fetch is gone when this returns. */
typedef void fetch_done_fn(void *arg, const char *problem, struct slice body);

/* Everything that is pointed at must live until `done` or fetch_cancel. */
struct fetch_ask {
	struct event_base *base;
	const char *host;                         /* for SNI */
	struct slice authority, path;             /* Host header and target */
	const char *accept;                       /* Accept header */
	bool any_success;                         /* all of 2xx are as good as 200 */
	struct ssl_ctx_st *tls;                   /* of tls_client_new; NULL: clear text */
	const struct upstream_address *addresses; /* with ports */
	uint32_t address_count;                   /* at least 1 */
	nsec_t deadline;                          /* of all of it, from now */
	size_t body_max;
	fetch_done_fn *done;
	void *arg;
};

/* `done` is called from the loop, never from inside of this. NULL: memory. */
struct fetch *fetch_start(const struct fetch_ask *ask);

/* It is not wanted any more: `done` is not called. Takes it and leaves NULL; accepts a pointer to NULL. */
void fetch_cancel(struct fetch **fetch);

#endif
