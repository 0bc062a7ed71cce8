/* http_h2o_edge.h - one accepted connection: the only owner of its socket's read callback.
 *
 * h2o installs its callbacks, edge_settle puts ours in their place: each read goes through the guard
 * first, and a request in flight over HTTP/1.1 is watched for its client leaving. Every call into
 * h2o that may touch the connection is followed by edge_settle (edge_send does it). The recipe and
 * its reasons: h2o arms reading from read, write and timer callbacks alike, and frees connections
 * under its caller. All on one thread. */
#ifndef GATEWAY_HTTP_HTTP_H2O_EDGE_H
#define GATEWAY_HTTP_HTTP_H2O_EDGE_H

#include "gateway/base/http_chunk.h"
#include "gateway/http/h1_guard.h"
#include "gateway/http/h2_guard.h"
#include "gateway/http/http.h"
#include "gateway/net/net_h2o.h"

#include <stdatomic.h>

/* Counters are written by the server's thread alone. */
static inline void edge_count(_Atomic uint64_t *counter)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

struct edge;

/* What the connections of a server share; filled in by http_h2o.c. */
struct edge_host {
	struct net_loop *loop;
	h2o_context_t *ctx;
	h2o_hostconf_t **hosts;
	struct http_counters *counters;
	struct guard_budget budget;
	h2o_buffer_prototype_t http2_input; /* what connections over HTTP/2 read into */
	h2o_linklist_t all, unsettled;
	h2o_linklist_t owing; /* connections that owe answers to bodies that have ended early */
	h2o_linklist_t idle;  /* without a request; first who has been so for longest */
	struct h1_answer refusals[H1_FAULTS]; /* what a faulty request is answered */
	struct net_timer tick;
	nsec_t shutdown_at, last_goaway_at; /* 0: not yet */
	size_t count;
	uint32_t numbered; /* so many were ever opened, modulo 2^32 */
	size_t leaving;    /* of those: evicted, not closed yet */
	/* The client of a watched request left. edge_send must follow, at once. */
	void (*left)(void *owner, void *watched);
	/* The head of a request over HTTP/1.1 is there that waits for 100 Continue. False: it is refused, by what is in
	 * edge->h1.answer. */
	bool (*expects)(void *owner, struct edge *edge, struct slice head);
	/* Time may have made room for a request that is held. */
	void (*room)(void *owner, struct edge *edge);
	/* A connection is gone: there is room for another. */
	void (*closed)(void *owner);
	/* Once a second. */
	void (*second)(void *owner, nsec_t now);
	void *owner;
};

enum edge_proto { EDGE_OPENING, EDGE_HTTP1, EDGE_HTTP2 };

/* Whether it is us who do not read. */
enum edge_reading {
	EDGE_READS,
	EDGE_GATED,  /* HTTP/2: until what is being written has left */
	EDGE_PAUSED, /* HTTP/2: until `again` */
};

struct edge {
	struct edge_host *host;
	h2o_socket_t *sock;
	SSL *ssl;     /* NULL on clear text and before the ClientHello; valid while the socket is */
	SSL_CTX *tls; /* ours: h2o makes `ssl` of it with the first bytes only */
	struct tls_names *names;      /* of the client's certificate, or NULL */
	struct tally wrongs;          /* the handler's */
	uint8_t alert[32], alert_len; /* the last one that the handshake wrote */
	enum edge_proto proto;
	enum edge_reading reading;
	bool killed, evicted;
	bool many_callers;            /* the peer is a proxy, and multiplexes */
	bool loopback;                /* its listener's address */
	bool probed;                  /* the kernel asks from time to time whether the peer lives */
	uint32_t listener;            /* that accepted it: its place among its host's */
	enum guard_verdict why;       /* it was killed */
	bool refused;                 /* gets an answer of ours, and h2o nothing more */
	h2o_socket_cb h2o_read;       /* what h2o wants called; _cb.read holds ours */
	h2o_socket_cb h2o_write;      /* likewise, while _cb.write holds ours */
	struct {                      /* h2o is to send GOAWAY before it closes */
		nsec_t since;         /* 0: it is not */
		uint32_t last_stream; /* that was begun then */
	} goodbye;
	bool *gone; /* set when the connection dies under a caller */
	h2o_linklist_t all, unsettled, owing, idle;
	struct timeval connected_at; /* for h2o */
	nsec_t since; /* opened; then HTTP/1.1: a request's first byte; HTTP/2: its first request; 0: none yet */
	struct {                       /* an answer waits to be taken */
		nsec_t since, moved;   /* 0: none does */
		uint64_t first, taken; /* bytes acknowledged, then and when they last moved */
	} reader;
	nsec_t idle_since;
	uint32_t requests;   /* from edge_watch to edge_request_over */
	uint32_t begun;      /* of those: handed over */
	uint32_t unsent;     /* those of which h2o has something that has not left */
	uint32_t number;     /* of its host's, one after the other */
	h2o_linklist_t held; /* requests that may not be handed over yet; http_h2o.c's */
	const void *next;    /* that was the first of them, and is about to begin; NULL: none is */
	struct net_timer again; /* set while paused */
	struct net_timer more;  /* one of those held may; set while it is new and has some */
	union {
		struct h2_guard guard; /* HTTP/2 */
		struct {
			struct guard_holder holder;
			struct guard_body
				body; /* what is buffered; it has no holder while there is none */
			struct h1_guard head;      /* of the request that h2o reads */
			struct http_chunks chunks; /* likewise, of its body */
			size_t judged; /* end of the input that was judged, once the head is whole */
			void *watched;       /* request in flight, NULL once it is being answered */
			h2o_req_t *req;      /* that one, for as long as its input is held */
			h2o_buffer_t *held;  /* h2o's input while a request is in flight */
			bool last;           /* the end of its answer was sent */
			bool served;         /* a request was in flight once */
			bool rests;          /* the one in flight may last for hours */
			size_t req_len;      /* of that request, in `held`; then come others */
			h2o_buffer_t *early; /* what came behind that request */
			h2o_buffer_t
				*answer;  /* of the handler's, to a request refused by its head */
			size_t discarded; /* after a refusal */
			bool lingers; /* after a refusal: what still comes is thrown away for a while */
		} h1;
	};
};

/* So that who has a holder has its edge. */
_Static_assert(offsetof(struct edge, guard.holder) == offsetof(struct edge, h1.holder),
	       "the same place for both protocols");

void edge_host_init(struct edge_host *host);
/* Everything is filled in: starts the 1 s tick and the look before each wait. */
void edge_host_start(struct edge_host *host);

/* A new record for an accepted socket; on memory refused the socket is closed. It is freed when the
 * socket closes. */
struct edge *edge_new(struct edge_host *host, h2o_socket_t *sock);

/* The protocol is known: hands over to h2o what has come so far. The edge may be gone afterwards. */
void edge_begin(struct edge *edge, enum edge_proto proto);

/* Instead of edge_begin: it means HTTP/2, but its preface is none (RFC 9113 3.4). Says so, and closes it. */
void edge_refuse_preface(struct edge *edge);

/* A TLS connection whose client has said that it sends no more. What it sends all the same, SSL_read
 * leaves where it is, and h2o would keep it: nothing may be read any more. */
bool edge_tls_closed(const struct edge *edge);

/* Whether h2o writes each slice of an answer as a TLS record of its own. */
static inline bool edge_seals_slices(const struct edge *edge)
{
	return edge->ssl != NULL && edge->proto == EDGE_HTTP1;
}

/* The connection of a request. */
static inline struct edge *edge_of(const h2o_req_t *req)
{
	return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

/* A request has arrived and is not answered yet; `watched` is passed to host->left if the client
 * leaves before edge_send (HTTP/1.1 only: h2o tells of the others by disposing the request). */
void edge_watch(struct edge *edge, h2o_req_t *req, void *watched);

/* It ends in a tick: its client is not heard leave any more (HTTP/1.1). */
static inline void edge_unwatch(struct edge *edge)
{
	if (edge->proto == EDGE_HTTP1)
		edge->h1.watched = NULL;
}

/* The next bytes of an answer, or all: the only way to h2o_send. With any state but IN_PROGRESS they are
 * the last, and the request is not watched any more. */
void edge_send(struct edge *edge, h2o_req_t *req, h2o_iovec_t *body, size_t count,
	       h2o_send_state_t state);

/* Status and fields of an answer that goes on, by themselves: h2o_send does not do that. Over HTTP/1.1 the answer's
 * generator is told when they have left, over HTTP/2 nobody is; edge_taken must follow. */
void edge_send_head(struct edge *edge, h2o_req_t *req);

/* What edge_send or edge_send_head was called with has left, and the answer goes on. */
void edge_taken(struct edge *edge);

/* Ends an answer that goes on, in the middle. HTTP/1.1: its client is not heard leave any more, and edge_send must follow,
 * with H2O_SEND_STATE_ERROR. HTTP/2: the stream is reset, and the request may be over at once; not from inside of
 * libh2o. */
void edge_cut(struct edge *edge, h2o_req_t *req);

/* Nobody looks at a request any more whose answer goes on. */
void edge_forget(struct edge *edge);

/* A request that was handed over rests (true), or does not any more: it does not count among those begun. */
void edge_rest(struct edge *edge, bool rests);

/* Whether, and why, the body of a request that has just arrived is cut off: GUARD_BODY_TOO_LARGE, GUARD_UPLOADS,
 * or GUARD_PASS. */
enum guard_verdict edge_body_refused(const struct edge *edge, h2o_req_t *req);

/* Whether a watched request may be handed over now; if not, ask again when another one is over, and when
 * host->room says so. */
bool edge_may_begin(const struct edge *edge);

/* Ends one stream over HTTP/2, whatever has come of it or is being done for it: its client gets RST_STREAM
 * (REFUSED_STREAM, "nothing was done, try again", for GUARD_UNFINISHED_BYTES; else CANCEL), libh2o sees no more of it, and the other streams
 * go on. Not from inside of libh2o; the connection must be libh2o's still: it reads, or has a request. */
void edge_reset(struct edge *edge, uint32_t stream, enum guard_verdict why);

/* A request with a body of so many bytes is held, and no more. False: that would be too much. */
MUST_USE bool edge_hold(struct edge *edge, size_t body);
void edge_let_go(struct edge *edge, size_t body);

/* Requests are held: has host->room called when the connection is old enough for another one. That it forgives
 * what was given up, h2_guard_check_pace, host->room hears of in any case. */
void edge_await_room(struct edge *edge);

/* It is handed over. */
void edge_begun(struct edge *edge);

/* The request is being disposed of by h2o. `unsent`: edge_send was called for it, and edge_taken not
 * since. */
void edge_request_over(struct edge *edge, bool unsent, enum guard_ending ending);

/* One of its answers is not taken. */
void edge_stalled(struct edge *edge);

/* At the cap: whether somebody has been idle for long enough to make room, and makes one do so; false
 * when there is none after all. Its place is free once it has closed. */
bool edge_host_has_idle(const struct edge_host *host);
bool edge_host_evict(struct edge_host *host);

/* GOAWAY on HTTP/2; closes what is idle, now or as soon as it is. Bodies that are being uploaded and
 * answers that are being read are not idle. */
void edge_host_shutdown(struct edge_host *host);

#endif
