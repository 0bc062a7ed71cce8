/* http_h2o_exchange.h - what http_h2o.c and http_h2o_answer.c share: a server and its exchanges. */
#ifndef GATEWAY_HTTP_HTTP_H2O_EXCHANGE_H
#define GATEWAY_HTTP_HTTP_H2O_EXCHANGE_H

#include "gateway/http/http_h2o_edge.h"
#include "gateway/http/http_h2o_listen.h"

enum { SERVER_MAGIC = 0x48535256, EXCHANGE_MAGIC = 0x45584348 };

struct http_server {
	uint32_t magic;
	struct http_handler handler;
	struct http_limits limits;
	struct http_counters counters;
	struct edge_host edges;
	struct listeners listeners;
	h2o_linklist_t
		answered; /* exchanges whose answer, or a piece of it, has not left; oldest first */
	h2o_globalconf_t config;
	h2o_context_t ctx;
	size_t in_flight;
	struct {
		nsec_t at;     /* the turn's time */
		size_t bodies; /* bytes of those begun in it */
		h2o_linklist_t
			waiting; /* exchanges that were too much for theirs; first comes first */
		struct net_task later; /* begins them */
	} turn;
	bool quiet; /* answers over HTTP/1.1 end their connections */
};

enum exchange_state {
	EXCHANGE_WAITING, /* for its tick, or until its connection may have another */
	EXCHANGE_BEGUN,
	EXCHANGE_STREAMING, /* its answer has begun, in pieces */
	EXCHANGE_ANSWERED,  /* all of it was given */
	EXCHANGE_LEFT,      /* told the handler, or never begun; h2o is still to end the request */
};

struct http_exchange {
	uint32_t magic;
	enum exchange_state state;
	bool begun;   /* was handed over */
	bool refused; /* the handler is done with it */
	bool rests;   /* http_rest */
	bool cut;     /* http_cut; answered then, but not to the end */
	bool lent;    /* in.room is for the fields of the answer */
	struct http_server *server;
	struct edge *edge;
	h2o_req_t *req;
	void *request;         /* the handler's; NULL: it knows nothing of this exchange */
	size_t held;           /* bytes that its edge counts while it may not begin */
	size_t body_total;     /* given so far */
	h2o_linklist_t listed; /* among its edge's held ones, later among its server's answered */
	bool unsent;           /* something was given that has not left */
	nsec_t answered_at;    /* when that was */
	h2o_generator_t generator; /* of an answer in pieces */
	struct {                   /* of an answer over HTTP/2 */
		nsec_t moved_at;
		uint64_t sent;  /* of it, by then */
		size_t written; /* by its connection, by then */
	} progress;
	/* Begins it. Of an answer in pieces: what comes a tick after it was asked for. */
	h2o_timeout_entry_t tick;
	struct http_incoming in;
	h2o_buffer_t *body; /* of HTTP/2: what in.body is in, unless that is short */
};

/* ---- http_h2o.c ---- */

/* The names of what is handed over, in lower case. */
extern const struct slice exchange_headers[HTTP_HEADER_COUNT];

/* Nothing of the handler's is needed any more, or ever was. */
void exchange_drop(struct http_exchange *exchange);

/* Its tick comes. */
void exchange_tick_soon(struct http_exchange *exchange);

/* One may begin that had to wait for others of its connection. */
void exchange_begin_held(struct edge *edge);

/* Frees in.body, if that is the exchange's. */
void exchange_free_body(struct http_exchange *exchange);

/* ---- http_h2o_fields.c ----
 *
 * in->fields is a h2o_headers_t; where in->early, a struct slice: the lines up to the empty one, names in lower case. */

/* Cuts a line off the front of `rest`; without its CRLF, which h1_guard has seen to. */
struct slice exchange_next_line(struct slice *rest);

/* ---- http_h2o_expect.c ---- */

/* The handler is asked whether a request gets 100 Continue (edge_host.expects). */
bool exchange_expects(void *owner, struct edge *edge, struct slice head);

/* ---- http_h2o_answer.c ---- */

/* The phrase of a status (200 to 599); static. */
const char *http_reason(int status);

/* Private: exchange_writes where the length does not say no. */
bool exchange_writes_one_of_its_length(struct slice name);

/* Whether the server writes the field of that name itself, so that no caller may give it: date, server, connection,
 * content-length and transfer-encoding. */
static inline bool exchange_writes(struct slice name)
{
	const uint32_t lengths = 1u << 4 | 1u << 6 | 1u << 10 | 1u << 14 | 1u << 17;

	return name.len < 32 && (lengths >> name.len & 1) != 0 &&
	       exchange_writes_one_of_its_length(name);
}

/* Whether an answer of this status has a body (RFC 9110 15.3.5, 15.3.6, 15.4.5). */
static inline bool exchange_has_body(int status)
{
	return status != 204 && status != 205 && status != 304;
}

/* Its content-length (8.6), where `total` bytes were given; SIZE_MAX: none. */
static inline size_t exchange_length(int status, size_t total)
{
	if (exchange_has_body(status))
		return total;
	return status == 205 ? 0 : SIZE_MAX;
}

/* It is not at rest any more. */
void exchange_end_rest(struct http_exchange *exchange);

/* The client of a watched exchange left (edge_host.left). */
void exchange_left(void *owner, void *watched);

/* Whether what was given is not taken by its reader. */
bool exchange_stalled(struct http_exchange *exchange, nsec_t now);

#endif
