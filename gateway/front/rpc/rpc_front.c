/* rpc_front.c - takes requests from HTTP to the core, and what becomes of them back. */
#include "gateway/front/rpc/rpc.h"

#include "codec/base/must.h"

/* ---- the end of a request ---- */

static void free_call(struct rpc_call *call)
{
	call->magic = 0;
	arena_give(&call->arena);
	slab_give(&call->host->records, call);
}

static void end_call(struct rpc_call *call, enum err how)
{
	must_obj(call, RPC_MAGIC);
	if (rpc_progress_wanted(&call->progress))
		rpc_stream_fini(call);
	sampling_end(call->call, how);
	free_call(call);
}

/* ---- answers ---- */

/* Refused before the core was asked: the answer leaves as a copy, so that its reader, who may take any time, holds
 * nothing else. */
static void refuse(struct rpc_call *call)
{
	const struct rpc_answer *answer = &call->answer;

	http_refuse(call->exchange, answer->status, answer->fields, answer->field_count,
		    gather_flat(&answer->body, &call->arena));
	sampling_refused(call->host->core, &call->ask, &rpc_sampling, call, call->wrote);
}

static void refuse_and_free(struct rpc_call *call)
{
	struct http_exchange *exchange = call->exchange;

	refuse(call);
	free_call(call);
	http_drop_body(exchange);
}

/* Whether an answer waits for its reader by itself: a short one, whose reader may never take it, while a body is kept that
 * is large, or that nobody counts. */
static bool is_left_alone(const struct rpc_call *call, bool held)
{
	enum { SHORT_MAX = 4 << 10, MUCH = 64 << 10 };

	return call->answer.body.total <= SHORT_MAX && (!held || call->in->body.len >= MUCH);
}

/* With a copy, so that the place and the request's body are free at once; the answer may wait for long. */
static void leave_alone(struct rpc_call *call, struct slice body)
{
	const struct rpc_answer *answer = &call->answer;
	struct http_exchange *exchange = call->exchange;

	http_refuse(exchange, answer->status, answer->fields, answer->field_count, body);
	end_call(call, call->wrote);
	http_drop_body(exchange);
}

/* Of its own session; without one closing the connection works. */
static void cancel_named(struct rpc_call *call)
{
	const struct slice id =
		call->in_session ? rpc_cancelled_id(call, call->host->json) : slice_of(NULL, 0);

	if (!slice_absent(id))
		sampling_cancel(call->host->core, &call->caller, call->ask.session, id);
}

static void on_done(void *owner, const struct sampling_outcome *outcome)
{
	struct rpc_call *call = owner;
	const struct rpc_answer *answer = &call->answer;
	struct slice copy = { NULL, 0 };

	must_obj(call, RPC_MAGIC);
	if (rpc_progress_wanted(&call->progress))
		rpc_stream_fini(call);
	rpc_write(call, outcome);
	call->phase = RPC_ANSWERED;
	if (outcome->end == SAMPLING_NO_SAMPLE && call->rpc.method == RPC_CANCELLED)
		cancel_named(call);
	if (rpc_progress_begun(&call->progress)) {
		rpc_stream_end(call);
		return;
	}
	if (is_left_alone(call, outcome->held))
		copy = gather_flat(&answer->body, &call->arena);
	if (!slice_absent(copy))
		leave_alone(call, copy);
	else
		http_answer(call->exchange, answer->status, answer->fields, answer->field_count,
			    answer->body.v, answer->body.count, answer->body.total);
}

/* ---- what the core asks and tells ---- */

static void on_admitted(void *owner, nsec_t now)
{
	struct rpc_call *call = owner;

	rpc_progress_admit(&call->progress, now);
	rpc_stream_arm(call);
}

static void on_progress(void *owner, uint64_t output_bytes, nsec_t now)
{
	struct rpc_call *call = owner;

	(void)now;
	call->progress.streams = true;
	call->progress.output = output_bytes;
	rpc_stream_arm(call);
}

static void on_prefetch(const void *owner, enum prefetch step)
{
	enum { EXCHANGE_LINES = 3 }; /* whether it begins one or not */
	const struct rpc_call *call = owner;

	_Static_assert(offsetof(struct rpc_call, magic) <= 3 * PREFETCH_LINE, "few lines");
	if (step == PREFETCH_STREAM)
		prefetch_lines(call, 4);
	else if (step == PREFETCH_TEXT)
		prefetch_lines(call->exchange, EXCHANGE_LINES);
}

const struct sampling_front rpc_sampling = {
	.name = "sampling",
	.digest = rpc_digest,
	.known = rpc_know,
	.admitted = on_admitted,
	.progress = on_progress,
	.prefetch = on_prefetch,
	.keep = rpc_keep,
	.done = on_done,
	.report = rpc_report,
};

/* ---- from HTTP ---- */

/* Before it costs anything to read. (What is seldom called has frames of its own: the usual request's is small.) */
__attribute__((noinline)) static bool may_hold(struct rpc_call *call, struct front_host *host)
{
	struct fault fault;
	struct error_data data;

	return sampling_has_room(host->core, &call->caller, call->in->body.len, &fault, &data) ||
	       rpc_refuse(call, &fault, &data);
}

static bool read_request(struct rpc_call *call, struct front_host *host, bool found)
{
	return rpc_read_head(call, host, found) &&
	       (call->in->body.len <= BODY_SMALL || may_hold(call, host)) &&
	       rpc_read_body(call, host->json);
}

static void init(struct rpc_call *call, struct front_host *host, struct http_exchange *exchange,
		 const struct http_incoming *in)
{
	sampling_new_ids(host->core, in->headers[HTTP_TRACEPARENT], &call->ids);
	call->host = host;
	call->exchange = exchange;
	rpc_init(call, in, net_wall_ns(host->loop) - (net_now(host->loop) - in->came_at));
}

/* There is no place for the call: it is refused from here. */
__attribute__((noinline)) static void refuse_busy(struct front_host *host,
						  struct http_exchange *exchange,
						  const struct http_incoming *in)
{
	struct rpc_call call;

	arena_init(&call.arena, host->arenas, REQUEST_ARENA_MAX);
	init(&call, host, exchange, in);
	(void)rpc_refuse_err(&call, ERR_BUSY);
	refuse(&call);
	arena_give(&call.arena);
	http_drop_body(exchange);
}

static void *on_begin(struct front_host *host, struct http_exchange *exchange,
		      const struct http_incoming *in, bool found)
{
	struct rpc_call *call = slab_take(&host->records);

	if (call == NULL) {
		refuse_busy(host, exchange, in);
		return NULL;
	}
	arena_init_in(&call->arena, host->arenas, REQUEST_ARENA_MAX, in->room, in->room_bytes);
	init(call, host, exchange, in);
	if (!read_request(call, host, found)) {
		refuse_and_free(call);
		return NULL;
	}
	call->call = sampling_begin(host->core, &call->ask, &rpc_sampling, call);
	if (call->call != NULL)
		return call;
	(void)rpc_refuse_err(call, ERR_BUSY);
	refuse_and_free(call);
	return NULL;
}

static bool on_expects(struct front_host *host, struct http_early *early,
		       const struct http_incoming *in, bool found)
{
	const struct rpc_answer *answer;
	struct rpc_call call;

	arena_init(&call.arena, host->arenas, REQUEST_ARENA_MAX);
	init(&call, host, NULL, in);
	const bool good = rpc_read_early(&call, host, found);
	answer = &call.answer;
	if (!good) {
		http_refuse_early(early, answer->status, answer->fields, answer->field_count,
				  gather_flat(&answer->body, &call.arena));
		sampling_refused(host->core, &call.ask, &rpc_sampling, &call, call.wrote);
	}
	arena_give(&call.arena);
	return good;
}

static void on_gone(void *request)
{
	struct rpc_call *call = request;

	must_obj(call, RPC_MAGIC);
	if (call->phase == RPC_ANSWERED &&
	    call->wrote != ERR_OK) { /* it was refused, whether or not anybody hears of it */
		end_call(call, call->wrote);
		return;
	}
	if (rpc_progress_wanted(&call->progress))
		rpc_stream_fini(call);
	sampling_abandon(call->call);
	free_call(call);
}

static void on_sent(void *request)
{
	struct rpc_call *call = request;

	end_call(call, call->wrote);
}

static void on_ready(void *request)
{
	rpc_stream_ready(request);
}

const struct front rpc_front = {
	.record_bytes = sizeof(struct rpc_call),
	.begin = on_begin,
	.expects = on_expects,
	.gone = on_gone,
	.sent = on_sent,
	.ready = on_ready,
};
