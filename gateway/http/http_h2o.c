/* http_h2o.c - http.h over libh2o: requests from h2o to the handler; their answers are in
 * http_h2o_answer.c.
 *
 * An exchange lives in its request's pool. Two h2o callbacks make its life: on_req begins it, and
 * the access logger, which h2o calls for every request it disposes of, whatever the reason, ends
 * it. Everything else about a connection is in http_h2o_edge. */
#include "gateway/http/http.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"
#include "gateway/http/http_h2o_exchange.h"
#include "gateway/http/http_h2o_parts.h"

/* A body is taken for a quarter of the limit more, and this, so that the handler can say that it is too
 * large; what is larger than that the guards cut off. h2o's own answers would be worse: over HTTP/2 it
 * resets the stream as "safe to try again". So its limit is out of reach. */
enum { BODY_SLACK_MIN = 64 << 10 };

/* A connection may be unused for so long. Requests that come slowly are the guard's. */
enum { IDLE_MS = 75000 };

enum { CONN_BYTES_MIN = 4 << 20 };

/* Of what all connections may have, so much is for those that have little. */
enum { LITTLE_PART = 16 };
#define PATIENCE_DEFAULT (10 * SEC)

_Static_assert(COUNT_OF(((struct http_counters *)NULL)->guard_kills) == GUARD_CAUSES,
	       "a counter for each cause");

/* h2o's records that carry a pointer of ours. */
struct server_handler {
	h2o_handler_t super;
	struct http_server *server;
};

const char *http_guard_cause(size_t n)
{
	return n < GUARD_CAUSES ? guard_verdict_name((enum guard_verdict)n) : NULL;
}

/* ---- the request as the handler sees it ---- */
const struct slice exchange_headers[HTTP_HEADER_COUNT] = {
	[HTTP_AUTHORIZATION] = SLICE_INIT("authorization"),
	[HTTP_CONTENT_TYPE] = SLICE_INIT("content-type"),
	[HTTP_CONTENT_ENCODING] = SLICE_INIT("content-encoding"),
	[HTTP_ACCEPT] = SLICE_INIT("accept"),
	[HTTP_ORIGIN] = SLICE_INIT("origin"),
	[HTTP_PROTOCOL_VERSION] = SLICE_INIT("mcp-protocol-version"),
	[HTTP_SESSION_ID] = SLICE_INIT("mcp-session-id"),
	[HTTP_IDEMPOTENCY_KEY] = SLICE_INIT("idempotency-key"),
	[HTTP_TIMEOUT] = SLICE_INIT("sluice-timeout"),
	[HTTP_TRACEPARENT] = SLICE_INIT("traceparent"),
};

/* A list that comes in several lines is put together up to here; what is beyond is left out. Over HTTP/2 a line
 * of 4 KiB is a byte that refers to it, and each one more copies all before it. */
enum { ACCEPT_JOINED_MAX = 1024 };

/* A list may come in several lines (RFC 9110 5.3); of any other header the first line counts. */
static void take_header(h2o_req_t *req, enum http_header name, h2o_iovec_t value,
			struct slice headers[HTTP_HEADER_COUNT])
{
	struct slice *at = &headers[name];

	if (slice_absent(*at))
		*at = to_slice(value);
	else if (name == HTTP_ACCEPT && at->len + value.len <= ACCEPT_JOINED_MAX)
		*at = to_slice(h2o_concat(&req->pool, h2o_iovec_init(at->at, at->len),
					  h2o_iovec_init(H2O_STRLIT(", ")), value));
}

/* Into `headers`, all absent before. */
static void read_headers(h2o_req_t *req, struct slice headers[HTTP_HEADER_COUNT])
{
	for (size_t i = 0; i < req->headers.size; i++) {
		const h2o_header_t *header = &req->headers.entries[i];
		const struct slice name = to_slice(*header->name); /* in lower case */
		size_t n = 0;
		while (n < HTTP_HEADER_COUNT && !slice_eq(name, exchange_headers[n]))
			n++;
		if (n < HTTP_HEADER_COUNT)
			take_header(req, (enum http_header)n, header->value, headers);
	}
}

static void split_query(struct http_incoming *in, size_t at)
{
	in->query = slice_of(in->path.at + at + 1, in->path.len - at - 1);
	in->path.len = at;
}

static void read_request(h2o_req_t *req, const struct edge *edge, size_t body_bytes_max,
			 struct http_incoming *in)
{
	in->method = to_slice(req->method);
	in->path = to_slice(req->path);
	if (req->query_at != SIZE_MAX)
		split_query(in, req->query_at);
	if (req->authority.base != req->hostconf->authority.hostport.base) /* libh2o's own */
		in->authority = to_slice(req->authority);
	in->fields = &req->headers;
	read_headers(req, in->headers);
	const enum guard_verdict cut = edge_body_refused(edge, req);
	in->no_room = cut == GUARD_UPLOADS;
	in->body_too_large = req->entity.len > body_bytes_max || cut == GUARD_BODY_TOO_LARGE;
	in->body = in->body_too_large || in->no_room ? slice_of(NULL, 0) : to_slice(req->entity);
	in->http2 = req->version >= 0x200;
	in->connection = edge->number;
	in->listener = edge->listener;
	in->loopback = edge->loopback;
}

/* h2o's pool uses a sixth of its chunk of 4 KiB, the only one that most requests have: what is left is the
 * handler's, but for what h2o takes for an answer. The pool cuts pieces from its chunk, one behind the other;
 * for those of a quarter or more it asks malloc. */
static void take_room(h2o_mem_pool_t *pool, struct http_incoming *in)
{
	enum {
		CHUNK = 4096 - 2 * sizeof(void *),
		PIECE_MAX = 1008,
		OF_HTTP2 = 384,
		OF_HTTP1 = 576
	};
	const size_t end = CHUNK - (in->http2 ? OF_HTTP2 : OF_HTTP1);
	const size_t room = pool->chunk_offset < end ? end - pool->chunk_offset : 0;

	while (in->room_bytes < room) {
		const size_t left = room - in->room_bytes;
		const size_t piece = left < PIECE_MAX ? left : PIECE_MAX;
		char *at = h2o_mem_alloc_pool(pool, piece);
		if (in->room == NULL)
			in->room = at;
		must(at == (char *)in->room + in->room_bytes);
		in->room_bytes += piece;
	}
}

/* Where nothing has been cut off behind it: the pool shows that with its next piece. */
void http_return_room(struct http_exchange *exchange)
{
	enum { PIECE = 16 };
	struct http_incoming *in = &exchange->in;
	h2o_mem_pool_t *pool = &exchange->req->pool;

	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_BEGUN);
	if (in->room_bytes != 0 &&
	    h2o_mem_alloc_pool(pool, PIECE) == (char *)in->room + in->room_bytes)
		pool->chunk_offset -= in->room_bytes + PIECE;
	in->room = NULL;
	in->room_bytes = 0;
}

/* ---- an exchange's begin and end ---- */
void exchange_tick_soon(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	h2o_timeout_link(server->ctx.loop, &server->ctx.zero_timeout, &exchange->tick);
}

/* In front of those that are held already, or behind them. */
static void hold(struct http_exchange *exchange, bool in_front)
{
	struct edge *edge = exchange->edge;
	const size_t body = exchange->req->entity.len;

	if (!edge->killed && !edge_hold(edge, body)) {
		edge_reset(edge, http2_stream_id(exchange->req), GUARD_UNFINISHED_BYTES);
		return;
	}
	h2o_linklist_insert(in_front ? edge->held.next : &edge->held, &exchange->listed);
	if (edge->killed)
		return;
	exchange->held = body;
	edge_await_room(edge);
}

static void let_go(struct http_exchange *exchange)
{
	h2o_linklist_unlink(&exchange->listed);
	if (exchange->held != 0)
		edge_let_go(exchange->edge, exchange->held);
	exchange->held = 0;
}

/* The end of another may have made room. One at a time: the next is asked for when this has begun. */
void exchange_begin_held(struct edge *edge)
{
	if (edge->next != NULL || h2o_linklist_is_empty(&edge->held) || !edge_may_begin(edge))
		return;
	struct http_exchange *first = CONTAINER_OF(edge->held.next, struct http_exchange, listed);
	let_go(first);
	edge->next = first;
	exchange_tick_soon(first);
}

static void begin(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	must(exchange->state == EXCHANGE_WAITING);
	struct edge *edge = exchange->edge;
	const bool is_next = edge->next == exchange;
	const bool overtakes =
		!is_next && (edge->next != NULL || !h2o_linklist_is_empty(&edge->held));
	if (is_next)
		edge->next = NULL;
	if (overtakes || !edge_may_begin(edge)) {
		hold(exchange, is_next);
		return;
	}
	exchange->state = EXCHANGE_BEGUN;
	exchange->begun = true;
	edge_begun(edge);
	server->in_flight++;
	edge_count(&server->counters.requests);
	/* h2o ends no request inside of this call: an answer is only queued. */
	void *request = server->handler.begin(server->handler.owner, exchange, &exchange->in);
	exchange->request = exchange->refused ? NULL : request;
	must(exchange->request != NULL || exchange->state == EXCHANGE_ANSWERED);
	exchange_begin_held(edge);
}

/* ---- how much is begun in a turn of the loop ---- */
static bool turn_takes(struct http_server *server, size_t body)
{
	const nsec_t now = net_now(server->edges.loop); /* of this turn alone */
	if (server->turn.at != now)
		server->turn.bodies = 0;
	server->turn.at = now;
	if (server->turn.bodies >= TURN_BODIES)
		return false;
	server->turn.bodies += body;
	return true;
}

/* One at least, whatever has come meanwhile: nobody waits for more turns than there are others in front. */
static void on_later(struct net_task *task)
{
	struct http_server *server = CONTAINER_OF(task, struct http_server, turn.later);
	for (bool first = true; !h2o_linklist_is_empty(&server->turn.waiting); first = false) {
		struct http_exchange *exchange =
			CONTAINER_OF(server->turn.waiting.next, struct http_exchange, listed);
		if (!turn_takes(server, exchange->in.body.len) && !first) {
			net_soon(server->edges.loop, task);
			return;
		}
		h2o_linklist_unlink(&exchange->listed);
		begin(exchange);
	}
}

static void wait_for_turn(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	if (server->turn.later.prev == NULL)
		net_soon(server->edges.loop, &server->turn.later);
	h2o_linklist_insert(&server->turn.waiting, &exchange->listed);
}

/* One tick after h2o has the request: one that its client has reset at once never gets here. */
static void on_exchange_tick(h2o_timeout_entry_t *entry)
{
	struct http_exchange *exchange = CONTAINER_OF(entry, struct http_exchange, tick);
	struct http_server *server = exchange->server;
	const size_t body = exchange->in.body.len;
	must_obj(exchange, EXCHANGE_MAGIC);
	if (body <= TURN_SHORT ||
	    (h2o_linklist_is_empty(&server->turn.waiting) && turn_takes(server, body)))
		begin(exchange);
	else
		wait_for_turn(exchange);
}

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
	struct http_server *server = CONTAINER_OF(self, struct server_handler, super)->server;
	struct http_exchange *exchange = h2o_mem_alloc_pool(&req->pool, sizeof(*exchange));
	*exchange = (struct http_exchange){ .magic = EXCHANGE_MAGIC,
					    .server = server,
					    .edge = edge_of(req),
					    .req = req,
					    .tick.cb = on_exchange_tick };
	if (exchange->edge->proto == EDGE_HTTP2)
		exchange->body = http2_take_body(req);
	read_request(req, exchange->edge, server->limits.body_bytes_max, &exchange->in);
	exchange->in.came_at = net_now(exchange->server->edges.loop);
	exchange->in.names = exchange->edge->names;
	exchange->in.wrongs = &exchange->edge->wrongs;
	/* The one place of a request that is ours, to find the exchange again in the logger. */
	h2o_req_getenv(req, H2O_STRLIT("exchange"), 1)->base = (char *)exchange;
	take_room(&req->pool, &exchange->in);
	exchange_tick_soon(exchange);
	edge_watch(exchange->edge, req, exchange);
	return 0;
}

void exchange_free_body(struct http_exchange *exchange)
{
	if (exchange->body == NULL)
		return;
	exchange->req->entity = h2o_iovec_init(NULL, 0);
	h2o_buffer_dispose(&exchange->body);
}

void exchange_drop(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	if (exchange->rests)
		exchange_end_rest(exchange);
	if (exchange->state == EXCHANGE_WAITING && h2o_linklist_is_linked(&exchange->listed))
		let_go(exchange);
	else if (h2o_timeout_is_linked(&exchange->tick))
		h2o_timeout_unlink(&exchange->tick);
	if (exchange->edge->next == exchange)
		exchange->edge->next = NULL;
	if (exchange->state == EXCHANGE_BEGUN || exchange->state == EXCHANGE_STREAMING) {
		server->in_flight--;
		server->handler.gone(server->handler.owner, exchange->request);
	}
}

static enum guard_ending ending_of(const struct http_exchange *exchange)
{
	if (!exchange->begun)
		return GUARD_UNBEGUN;
	if (exchange->rests || exchange->cut) /* nothing was done in vain, or not by its client */
		return GUARD_ANSWERED;
	bool answered = exchange->state == EXCHANGE_ANSWERED &&
			exchange->req->bytes_sent >= exchange->body_total;
	return answered ? GUARD_ANSWERED : GUARD_GIVEN_UP;
}

static void on_request_over(h2o_logger_t *self, h2o_req_t *req)
{
	(void)self;
	const h2o_iovec_t *slot = h2o_req_getenv(req, H2O_STRLIT("exchange"), 0);
	if (slot == NULL)
		return; /* refused by h2o itself */
	struct http_exchange *exchange = (struct http_exchange *)(void *)slot->base;
	must_obj(exchange, EXCHANGE_MAGIC);
	const struct http_handler *handler = &exchange->server->handler;
	enum guard_ending ending = ending_of(exchange);
	exchange_drop(exchange);
	if (h2o_linklist_is_linked(&exchange->listed))
		h2o_linklist_unlink(&exchange->listed);
	if (exchange->state == EXCHANGE_ANSWERED)
		exchange->server->in_flight--;
	if (exchange->state == EXCHANGE_ANSWERED && exchange->request != NULL)
		(ending == GUARD_ANSWERED ? handler->sent : handler->gone)(handler->owner,
									   exchange->request);
	edge_request_over(exchange->edge, exchange->unsent, ending);
	exchange_begin_held(exchange->edge);
	exchange_free_body(exchange);
	exchange->magic = 0;
}

/* ---- the server ---- */
static void on_second(void *owner, nsec_t now)
{
	struct http_server *server = owner;
	for (h2o_linklist_t *at = server->answered.next; at != &server->answered; at = at->next) {
		struct http_exchange *exchange = CONTAINER_OF(at, struct http_exchange, listed);
		if (exchange_stalled(exchange, now))
			edge_stalled(exchange->edge);
	}
	listeners_refresh(&server->listeners); /* somebody may have been idle for long enough */
}

static void on_room(void *owner, struct edge *edge)
{
	(void)owner;
	exchange_begin_held(edge);
	if (!h2o_linklist_is_empty(&edge->held))
		edge_await_room(edge);
}

static void on_connection_closed(void *owner)
{
	struct http_server *server = owner;
	listeners_refresh(&server->listeners);
}

static void configure_h2o(struct http_server *server)
{
	h2o_globalconf_t *config = &server->config;
	h2o_config_init(config);
	config->server_name.len = 0; /* no Server header */
	config->http1.req_timeout = IDLE_MS;
	config->http1.upgrade_to_http2 = 0; /* the guard would miss the change */
	config->http2.idle_timeout = IDLE_MS;
	config->max_request_entity_size = SIZE_MAX;
	h2o_hostconf_t *host =
		h2o_config_register_host(config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
	/* No path is registered, so that every request falls back to this, "*" and all. */
	h2o_pathconf_t *any = &host->fallback_path;
	h2o_handler_t *handler = h2o_create_handler(any, sizeof(struct server_handler));
	CONTAINER_OF(handler, struct server_handler, super)->server = server;
	handler->on_req = on_req;
	h2o_create_logger(any, sizeof(h2o_logger_t))->log_access = on_request_over;
	h2o_context_init(&server->ctx, net_h2o_loop(server->edges.loop), config);
}

static void apply_limits(struct http_server *server, const struct http_limits *limits)
{
	struct guard_budget *budget = &server->edges.budget;
	size_t body_max = limits->body_bytes_max;
	size_t slack = body_max / 4 > BODY_SLACK_MIN ? body_max / 4 : BODY_SLACK_MIN;
	size_t whole_max = body_max + slack;
	must(limits->connections_max > 0);
	server->limits = *limits;
	server->listeners.connections_max = limits->connections_max;
	budget->body_bytes_max = whole_max;
	budget->conn_bytes_max = 4 * body_max > CONN_BYTES_MIN ? 4 * body_max : CONN_BYTES_MIN;
	budget->worker_bytes_max = limits->unfinished_bytes_max;
	if (budget->worker_bytes_max < whole_max)
		budget->worker_bytes_max = whole_max;
	budget->large_bytes_max = budget->worker_bytes_max - budget->worker_bytes_max / LITTLE_PART;
	if (budget->large_bytes_max < whole_max)
		budget->large_bytes_max = whole_max;
	budget->patience = limits->patience != 0 ? limits->patience : PATIENCE_DEFAULT;
}

void http_set_limits(struct http_server *server, const struct http_limits *limits)
{
	must_obj(server, SERVER_MAGIC);
	apply_limits(server, limits);
	listeners_refresh(&server->listeners);
}

struct http_server *http_server_new(struct net_loop *loop, const struct http_listener *listeners,
				    size_t listener_count, const struct http_handler *handler,
				    const struct http_limits *limits)
{
	struct http_server *server = calloc(1, sizeof(*server));
	if (server == NULL)
		return NULL;
	server->magic = SERVER_MAGIC;
	server->handler = *handler;
	server->turn.later.run = on_later;
	h2o_linklist_init_anchor(&server->turn.waiting);
	h2o_linklist_init_anchor(&server->answered);
	edge_host_init(&server->edges);
	server->edges.loop = loop;
	server->edges.counters = &server->counters;
	server->edges.left = exchange_left;
	server->edges.expects = exchange_expects;
	server->edges.room = on_room;
	server->edges.closed = on_connection_closed;
	server->edges.second = on_second;
	server->edges.owner = server;
	configure_h2o(server);
	server->edges.ctx = &server->ctx;
	server->edges.hosts = server->config.hosts;
	apply_limits(server, limits);
	edge_host_start(&server->edges);
	for (size_t i = 0; i < listener_count; i++)
		if (listeners[i].tls != NULL)
			http_prepare_tls(listeners[i].tls);
	listeners_init(&server->listeners, &server->edges, listeners, listener_count);
	return server;
}

void http_set_tls(struct http_server *server, size_t n, SSL_CTX *tls)
{
	must_obj(server, SERVER_MAGIC);
	listeners_set_tls(&server->listeners, n, tls);
}

const struct http_counters *http_counters(const struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	return &server->counters;
}

void http_stop_accepting(struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	listeners_stop(&server->listeners);
}

void http_quiet(struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	server->quiet = true;
}

void http_shutdown(struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	if (server->edges.shutdown_at != 0)
		return;
	server->quiet = true;
	listeners_stop(&server->listeners);
	edge_host_shutdown(&server->edges);
}

size_t http_in_flight(const struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	return server->in_flight;
}

size_t http_connections(const struct http_server *server)
{
	must_obj(server, SERVER_MAGIC);
	return server->edges.count;
}
