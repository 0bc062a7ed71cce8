/* direct_front.c - takes requests of the direct APIs from HTTP to the core, and what becomes of them back. */
#include "gateway/front/api/direct.h"

#include "codec/base/must.h"

/* ---- the end of a request ---- */

static void free_call(struct direct_call *call)
{
	direct_stream_over(call);
	call->magic = 0;
	direct_stream_free(call);
	arena_give(&call->arena);
	slab_give(&call->host->records, call);
}

static void end_call(struct direct_call *call, enum err how)
{
	must_obj(call, DIRECT_MAGIC);
	sampling_end(call->call, how);
	free_call(call);
}

/* Refused before the core was asked: a copy leaves. */
static void refuse(struct direct_call *call)
{
	const struct direct_answer *answer = &call->answer;

	http_refuse(call->exchange, answer->status, answer->fields, answer->field_count,
		    gather_flat(&answer->body, &call->arena));
	sampling_refused(call->host->core, &call->ask, call->kind->row, call, call->wrote);
}

static void refuse_and_free(struct direct_call *call)
{
	struct http_exchange *exchange = call->exchange;

	refuse(call);
	free_call(call);
	http_drop_body(exchange);
}

/* The answer's fields lie with the call: they do not fit beside the request. */
static void lend_room(struct direct_call *call)
{
	const size_t bytes = call->answer.field_count * HTTP_FIELD_BYTES;
	void *room = arena_take(&call->arena, bytes);

	if (room != NULL)
		http_lend(call->exchange, room, bytes);
}

/* ---- what the core tells ---- */

void direct_done(void *owner, const struct sampling_outcome *outcome)
{
	struct direct_call *call = owner;
	const struct direct_answer *answer = &call->answer;

	must_obj(call, DIRECT_MAGIC);
	if (call->stream != NULL && call->stream->begun) {
		direct_stream_end(call, outcome);
		return;
	}
	direct_write(call, outcome);
	lend_room(call);
	http_answer(call->exchange, answer->status, answer->fields, answer->field_count,
		    answer->body.v, answer->body.count, answer->body.total);
}

const struct sampling_front direct_messages_sampling = {
	.name = "messages",
	.digest = direct_digest,
	.delta = direct_cross_take,
	.raw = direct_stream_take,
	.keep = direct_keep,
	.done = direct_done,
	.report = direct_report,
};

const struct sampling_front direct_chat_sampling = {
	.name = "chat",
	.digest = direct_digest,
	.delta = direct_cross_take,
	.raw = direct_stream_take,
	.keep = direct_keep,
	.done = direct_done,
	.report = direct_report,
};

/* ---- from HTTP ---- */

static bool may_hold(struct direct_call *call, struct front_host *host)
{
	struct fault fault;
	struct error_data data;

	return call->in->body.len <= BODY_SMALL ||
	       sampling_has_room(host->core, &call->caller, call->in->body.len, &fault, &data) ||
	       direct_refuse(call, &fault, &data);
}

static bool read_request(struct direct_call *call, struct front_host *host)
{
	return direct_read_head(call, host) && may_hold(call, host) && direct_read_body(call, host);
}

void direct_start(struct direct_call *call, enum api api, struct front_host *host,
		  struct http_exchange *exchange, const struct http_incoming *in)
{
	sampling_new_ids(host->core, in->headers[HTTP_TRACEPARENT], &call->ids);
	call->api = api;
	call->host = host;
	call->exchange = exchange;
	direct_init(call, in, net_wall_ns(host->loop) - (net_now(host->loop) - in->came_at));
}

static void init(struct direct_call *call, const struct direct_kind *kind, struct front_host *host,
		 struct http_exchange *exchange, const struct http_incoming *in)
{
	direct_start(call, kind->api, host, exchange, in);
	call->kind = kind;
	call->front.front = kind->front;
}

/* There is no place for the call: it is refused from here. */
static __attribute__((noinline)) void refuse_busy(const struct direct_kind *kind,
						  struct front_host *host,
						  struct http_exchange *exchange,
						  const struct http_incoming *in)
{
	struct direct_call call;

	arena_init(&call.arena, host->arenas, REQUEST_ARENA_MAX);
	init(&call, kind, host, exchange, in);
	(void)direct_refuse_err(&call, ERR_BUSY);
	refuse(&call);
	arena_give(&call.arena);
	http_drop_body(exchange);
}

void *direct_begin(const struct direct_kind *kind, struct front_host *host,
		   struct http_exchange *exchange, const struct http_incoming *in)
{
	struct direct_call *call = slab_take(&host->records);

	if (call == NULL) {
		refuse_busy(kind, host, exchange, in);
		return NULL;
	}
	arena_init_in(&call->arena, host->arenas, REQUEST_ARENA_MAX, in->room, in->room_bytes);
	init(call, kind, host, exchange, in);
	if (!read_request(call, host)) {
		refuse_and_free(call);
		return NULL;
	}
	call->call = sampling_begin(host->core, &call->ask, call->kind->row, call);
	if (call->call != NULL)
		return call;
	(void)direct_refuse_err(call, ERR_BUSY);
	refuse_and_free(call);
	return NULL;
}

static const struct direct_kind messages = { API_MESSAGES, &direct_messages_front,
					     &direct_messages_sampling };
static const struct direct_kind chat = { API_CHAT, &direct_chat_front, &direct_chat_sampling };

static void *on_begin_messages(struct front_host *host, struct http_exchange *exchange,
			       const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_begin(&messages, host, exchange, in);
}

static void *on_begin_chat(struct front_host *host, struct http_exchange *exchange,
			   const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_begin(&chat, host, exchange, in);
}

/* Only what needs no body is looked at. */
bool direct_expects(const struct direct_kind *kind, struct front_host *host,
		    struct http_early *early, const struct http_incoming *in)
{
	const struct direct_answer *answer;
	struct direct_call call;

	arena_init(&call.arena, host->arenas, REQUEST_ARENA_MAX);
	init(&call, kind, host, NULL, in);
	const bool good = direct_read_head(&call, host);
	answer = &call.answer;
	if (!good) {
		http_refuse_early(early, answer->status, answer->fields, answer->field_count,
				  gather_flat(&answer->body, &call.arena));
		sampling_refused(host->core, &call.ask, call.kind->row, &call, call.wrote);
	}
	arena_give(&call.arena);
	return good;
}

static bool on_expects_messages(struct front_host *host, struct http_early *early,
				const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_expects(&messages, host, early, in);
}

static bool on_expects_chat(struct front_host *host, struct http_early *early,
			    const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_expects(&chat, host, early, in);
}

void direct_gone(void *request)
{
	struct direct_call *call = request;

	must_obj(call, DIRECT_MAGIC);
	if (call->wrote != ERR_OK) { /* it was refused, whether or not anybody hears of it */
		end_call(call, call->wrote);
		return;
	}
	sampling_abandon(call->call);
	free_call(call);
}

void direct_sent(void *request)
{
	struct direct_call *call = request;

	end_call(call, call->wrote);
}

static void on_ready(void *request)
{
	direct_stream_ready(request);
}

const struct front direct_messages_front = {
	.record_bytes = sizeof(struct direct_call),
	.begin = on_begin_messages,
	.expects = on_expects_messages,
	.gone = direct_gone,
	.sent = direct_sent,
	.ready = on_ready,
};

const struct front direct_chat_front = {
	.record_bytes = sizeof(struct direct_call),
	.begin = on_begin_chat,
	.expects = on_expects_chat,
	.gone = direct_gone,
	.sent = direct_sent,
	.ready = on_ready,
};
