/* http.h - what the gateway asks of HTTP: requests in, one answer out, whole or in pieces.
 * http_h2o.c and http_h2o_answer.c implement it.
 *
 * HTTP/1.1 and HTTP/2 (clear text: with prior knowledge; TLS: by ALPN) behind the guard (h2_guard). A
 * request is handed over one tick after h2o has it, so that a client that resets at once costs
 * nothing. All on one thread.
 */
#ifndef GATEWAY_HTTP_HTTP_H
#define GATEWAY_HTTP_HTTP_H

#include "codec/base/attr.h"
#include "codec/base/err.h"
#include "gateway/base/tally.h"
#include "gateway/net/net.h"

struct ssl_ctx_st;
struct tls_names;
struct http_server;
struct http_exchange; /* one request that waits for its answer */
struct http_early;    /* one whose body is still to come */

struct http_field {
	struct slice name, value; /* name in lower case */
};

/* Headers that every request is asked for: found once, when it comes. All others: http_find_header. */

enum http_header {
	HTTP_AUTHORIZATION,
	HTTP_CONTENT_TYPE,
	HTTP_CONTENT_ENCODING,
	HTTP_ACCEPT,
	HTTP_ORIGIN,
	HTTP_PROTOCOL_VERSION, /* mcp-protocol-version */
	HTTP_SESSION_ID,       /* mcp-session-id */
	HTTP_IDEMPOTENCY_KEY,
	HTTP_TIMEOUT, /* sluice-timeout */
	HTTP_TRACEPARENT,
	HTTP_HEADER_COUNT
};

/* Lives, as all that its slices and pointers refer to, until the exchange ends (`sent` or `gone`). */
struct http_incoming {
	/* Memory that the handler may use for as long; aligned to 8, a multiple of it. NULL: none. */
	void *room;
	size_t room_bytes;
	struct slice method;    /* as it was sent; any method comes, with or without a body */
	struct slice path;      /* without the query */
	struct slice query;     /* without its '?'; absent: there is none */
	struct slice authority; /* :authority or Host, as it was sent; absent: neither was */
	struct slice headers[HTTP_HEADER_COUNT]; /* absent when not sent; first one if repeated */
	struct slice body;
	const void *fields;            /* private: of http_find_header and http_next_header */
	const struct tls_names *names; /* of the client's certificate, verified; NULL: none */
	/* The connection's, shared by all its requests, for the handler to count what is wrong with
	 * them; NULL: there is no connection. */
	struct tally *wrongs;
	uint32_t connection; /* its number, one after the other */
	uint32_t listener;   /* that accepted the connection: its place in http_server_new's list */
	nsec_t came_at; /* as a whole, by net_now: it may have waited until its connection might have another */
	bool body_too_large; /* over the limit: body is absent, answer 413 */
	bool no_room;        /* for the body, which is absent: answer 503 */
	bool http2;
	bool loopback; /* the listener's address is a loopback one, or that of a UNIX socket */
	bool early;    /* a head whose body is still to come: http_handler.expects */
};

/* The value of the first header of that name (in lower case), without blanks around it; absent: not sent. */
struct slice http_find_header(const struct http_incoming *in, struct slice name);

/* Walks all headers in their order; a name that was sent twice comes twice. *at is 0 at first. False: there are no more,
 * and *field is untouched. Not among them are pseudo headers, Host (`authority`), and what frames the message:
 * Content-Length, Transfer-Encoding, Expect and Upgrade. */
bool http_next_header(const struct http_incoming *in, size_t *at, struct http_field *field);

struct http_handler {
	void *owner; /* passed to the callbacks */
	/* A request, one tick after it was complete. Returns what belongs to it (passed to the
	 * others), or NULL when there is no room for it: then http_refuse must have been called.
	 * The handler may answer from inside. */
	void *(*begin)(void *owner, struct http_exchange *exchange, const struct http_incoming *in);
	/* The client left, or the stream was reset, before the answer was complete. The exchange is
	 * invalid from now on. Called at most once, never after `sent`. */
	void (*gone)(void *owner, void *request);
	/* The answer has been handed to the kernel or is dropped: its memory may go, the exchange
	 * too. */
	void (*sent)(void *owner, void *request);
	/* What http_begin_pieces or http_more was given has left: its memory may go, and the answer
	 * may go on, from inside too. Never from inside of these. NULL where no answer comes in pieces. */
	void (*ready)(void *owner, void *request);
	/* The head of a request over HTTP/1.1 that waits for 100 Continue before it sends its body; `in`, without a
	 * body and without room, lives for the call. True: it gets it, and `begin` is called when the body is there.
	 * False: it is refused whatever the body is, and http_refuse_early was called from inside. NULL: all get it. */
	bool (*expects)(void *owner, struct http_early *early, const struct http_incoming *in);
};

struct http_limits {
	size_t body_bytes_max;
	uint32_t connections_max; /* of this worker */
	size_t unfinished_bytes_max; /* of bodies not yet complete, of this worker; one body at least */
	nsec_t patience;             /* for slow frames, bodies, handshakes and readers; 0: 10 s */
};

/* Counters of this thread, read by others with relaxed loads. */
struct http_counters {
	_Atomic uint64_t connections, connections_open, requests, guard_kills[10], foreign_reads;
	_Atomic uint64_t tls_full, tls_resumed, tls_failed; /* handshakes */
};
/* Label of guard_kills[n], NULL past the last. */
const char *http_guard_cause(size_t n);

struct http_listener {
	int fd;                 /* listening, non-blocking; kept open for the process's life */
	struct ssl_ctx_st *tls; /* of tls_server_new; NULL: clear text */
	bool trusted_proxy;     /* an HTTP/2 connection carries many callers' requests */
};

/* NULL: memory. `listeners` and `handler` are copied, contexts are shared: the servers of several threads that have
 * the same ones must all be made before the first of these threads runs. */
struct http_server *http_server_new(struct net_loop *loop, const struct http_listener *listeners,
				    size_t listener_count, const struct http_handler *handler,
				    const struct http_limits *limits);

/* Makes a context ready for http_set_tls: once, before any thread has it. */
void http_prepare_tls(struct ssl_ctx_st *tls);

/* After a reload: the context of listener `n`'s connections from now on, which is prepared; those that are there go on
 * with theirs. A listener never changes between clear text and TLS. */
void http_set_tls(struct http_server *server, size_t n, struct ssl_ctx_st *tls);

const struct http_counters *http_counters(const struct http_server *server);

/* Limits of a reload; connections over the new cap are left alone. */
void http_set_limits(struct http_server *server, const struct http_limits *limits);

/* ---- answers ----
 *
 * `status` is 200 to 599. There may be any number of `fields`; names are in lower case, values are sent as they are. None
 * is content-length, connection, transfer-encoding, date or server (must): the server writes these. */

/* Memory that the next answer's fields are kept in, HTTP_FIELD_BYTES for each: for answers with many of them, which would
 * not fit beside the request. It stays the caller's until `sent` or `gone`. */
enum { HTTP_FIELD_BYTES = 48 };
void http_lend(struct http_exchange *exchange, void *room, size_t bytes);

/* Answers once. Headers and body stay the caller's until `sent` or `gone`. The body may be empty; it is not sent where
 * there is to be none (HEAD, and 204, 205, 304). */
void http_answer(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, const struct iovec *body, size_t body_count,
		 size_t body_total);

/* Answers once, with copies, so that the handler is done with the exchange: neither `sent` nor `gone` follows,
 * and what begin returns, if this is inside of it, is not used. */
void http_refuse(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, struct slice body);

/* The answer to a request that will not get 100 Continue, with copies; then its connection ends, and what still comes of
 * it is thrown away. Once, from inside of `expects`. */
void http_refuse_early(struct http_early *early, int status, const struct http_field *fields,
		       size_t field_count, struct slice body);

/* After http_refuse, when nothing refers to the request's body any more: its memory is given back now, and not
 * when the answer has left. */
void http_drop_body(struct http_exchange *exchange);

/* ---- answers in pieces: event streams ----
 *
 * http_begin_pieces once, http_more as often as there is something to tell, http_end or http_cut once. There is one
 * piece at a time: http_more and http_end need that `ready` has come for the one before. What is given stays the
 * caller's, unchanged, until then, that of http_end until `sent`; or until `gone`. A client that leaves is noticed
 * meanwhile (`gone`). A client that waits for us is not a slow reader, and no idle timeout ends its connection, however
 * long it waits; one that does not take what is there for it is slow. Not for HEAD, 204, 205 and 304. */

/* `first` may be empty: then status and fields leave by themselves, and `ready` follows. */
void http_begin_pieces(struct http_exchange *exchange, int status, const struct http_field *fields,
		       size_t field_count, struct slice first);
/* A piece, which is not empty. Its list may go when these return. */
void http_more(struct http_exchange *exchange, struct slice piece);
void http_more_of(struct http_exchange *exchange, const struct iovec *piece, size_t count,
		  size_t total);
/* The last piece, which may be empty: `total` 0. */
void http_end(struct http_exchange *exchange, const struct iovec *body, size_t body_count,
	      size_t body_total);
/* Ends the answer so that its reader sees that it is not whole: HTTP/2 resets the stream (INTERNAL_ERROR), HTTP/1.1
 * closes the connection without the last chunk. At any moment after http_begin_pieces; a piece that has not left may be
 * lost. `sent` or `gone` follows, not from inside. */
void http_cut(struct http_exchange *exchange);

/* The handler does not use in->room, and it goes to the answer's head: else that may take another page, which an answer
 * that lasts keeps. From inside of `begin`, before an answer. */
void http_return_room(struct http_exchange *exchange);

/* Nothing refers any more to what the request's slices hold, `room` and `names` apart: its memory is given back, for a
 * stream that goes on for long. Once the answer has begun in pieces; `in` holds no slices from now on, and has no headers. */
void http_forget_request(struct http_exchange *exchange);

/* An answer in pieces comes to rest (true) or is at work again (false): a GET that is open for hours and mostly silent.
 * At rest it takes pieces as before, but counts neither in http_in_flight, so that no drain waits for it, nor among the
 * requests that its connection may have at once; a client that leaves it has not given up anything (guard). TCP
 * keepalive finds a dead client within two minutes. http_end and http_cut end the rest. The same value again: nothing.
 *
 * A front that has open GETs puts each to rest when it begins it, and ends them all itself (http_end) when the gateway
 * leaves: http_shutdown does not, and the connections of those that it forgets hold up the drain to its deadline. */
void http_rest(struct http_exchange *exchange, bool rests);

/* ---- leaving ---- */

/* Drain, first: everything is served as before, but answers over HTTP/1.1 end their connections, so
 * that callers look elsewhere before it is too late. */
void http_quiet(struct http_server *server);
/* Drain: stops accepting on every listener. */
void http_stop_accepting(struct http_server *server);
/* Drain, then: GOAWAY on HTTP/2; every connection is closed as soon as it is idle. Bodies that are
 * being uploaded and answers that are being read are not; what they ask is served. */
void http_shutdown(struct http_server *server);
/* Requests handed over whose answer has not left to its last byte, those at rest left out; and connections open. */
size_t http_in_flight(const struct http_server *server);
size_t http_connections(const struct http_server *server);

#endif
