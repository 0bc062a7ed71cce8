/* fetch.h - one request by HTTP or HTTPS on a loop of libevent's.
 *
 * A GET, or a POST where there is something to send, over HTTP/1.1 on a connection of its own, read by
 * upstream_http: bounded in bytes and in time, no redirects, no compression. Under TLS the context decides
 * whom to trust (tls.h). Addresses are tried in turn: the next one when a connection fails, or is not there
 * after its share of the time. What was sent once is not sent again. */
#ifndef GATEWAY_FETCH_FETCH_H
#define GATEWAY_FETCH_FETCH_H

#include "codec/base/clock.h"
#include "gateway/upstream/upstream.h"

struct event_base;
struct fetch;
struct ssl_ctx_st;

/* `problem` NULL: status 200 (or, if asked so, any of 2xx), and `body` is what came, valid during the call. Else what went wrong, in
 * words for the log; nothing of what the peer has sent is in it. The fetch is gone when this returns. */
typedef void fetch_done_fn(void *arg, const char *problem, struct slice body);

/* The answer as it comes, whatever its status: `type` is its Content-Type (absent: none), `piece` what has come
 * of its body, perhaps nothing. At least one call before the `done` that has no problem. The fetch must not
 * be cancelled from inside. */
typedef void fetch_piece_fn(void *arg, uint32_t status, struct slice type, struct slice piece);

/* Everything that is pointed at must live until `done` or fetch_cancel. */
struct fetch_ask {
	struct event_base *base;
	const char *host;             /* for SNI */
	struct slice authority, path; /* Host header and target */
	const char *accept;           /* Accept header */
	struct slice head;            /* further header lines, each with its CR LF; absent: none */
	struct slice body;            /* of a POST; absent: a GET */
	bool any_success;             /* all of 2xx are as good as 200 */
	struct ssl_ctx_st *tls;       /* of tls_client_new; NULL: clear text */
	const struct upstream_address *addresses; /* with ports */
	uint32_t address_count;                   /* at least 1 */
	nsec_t deadline;                          /* of all of it, from now */
	nsec_t silence; /* how long nothing may come once it is sent; 0: for all the time there is */
	nsec_t patience; /* with an address until it is connected; 0: its share of the deadline */
	size_t body_max;
	fetch_piece_fn *piece; /* NULL: the body is given to `done`, if the status is good */
	fetch_done_fn *done;
	void *arg;
};

/* `done` is called from the loop, never from inside of this. NULL: memory. */
struct fetch *fetch_start(const struct fetch_ask *ask);

/* It is not wanted any more: `done` is not called. Takes it and leaves NULL; accepts a pointer to NULL. */
void fetch_cancel(struct fetch **fetch);

#endif
