/* sampling_stream.c - a request's streams: the provider's, as it comes, and the caller's progress.
 *
 * The two are coupled by time alone: pieces of the provider's change what is to be told, and it is told
 * at the end of the turn in which it is due, or by a timer; where many answers stream, what is told behind the
 * first is told together with what others on its connection are told, and the less often the more they are. While a notification has not left, the next one waits; if it becomes due
 * meanwhile, the caller does not keep up, and nothing more is read for it. */
#include "gateway/worker/worker_parts.h"

#include "codec/base/must.h"

static struct request *of_call(struct upstream_call *call)
{
	struct flow *flow = CONTAINER_OF(call, struct flow, call);

	return CONTAINER_OF(flow, struct request, flow);
}

/* ---- to the caller ---- */

/* The timer is set again only when it would fire too late, and left alone by what is due already: a move
 * within many timers costs more than all else that is done for an event. */
static void arm(struct request *r)
{
	struct net_loop *loop = r->worker->loop;
	const bool rose = flow_progress_rose(&r->flow.progress);
	nsec_t due = flow_progress_due(&r->flow.progress);

	if (due >= r->told.timer.due || r->told.soon.prev != NULL)
		return;
	if (rose)
		due = net_together_at(loop, r->connection, due);
	if (due <= net_now(loop))
		net_soon(loop, &r->told.soon);
	else if (!(rose && net_together(loop, &r->told.soon, due)) && due < r->told.timer.due)
		net_timer_set(loop, &r->told.timer, due);
}

static void tell(struct request *r, nsec_t now)
{
	struct flow *flow = &r->flow;
	const bool first = !flow->progress.begun;
	const struct slice event = flow_tell(flow, now);

	r->unsent = true;
	if (first)
		http_begin_pieces(r->exchange, flow->answer.status, flow->answer.fields,
				  flow->answer.field_count, event);
	else
		http_more(r->exchange, event);
}

static void tell_if_due(struct request *r)
{
	nsec_t now = net_now(r->worker->loop);

	must_obj(r, REQUEST_MAGIC);
	must(!r->answered);
	if (flow_progress_due(&r->flow.progress) > now) {
		arm(r);
	} else if (r->unsent) {
		r->late = true;
		upstream_pause(&r->flow.call);
	} else {
		tell(r, now);
		arm(r);
	}
}

static void on_due(struct net_timer *timer)
{
	struct request *r = CONTAINER_OF(timer, struct request, told.timer);

	timer->due = NSEC_NEVER;
	if (r->told.soon.prev == NULL) /* else it is told with others, in a moment */
		tell_if_due(r);
}

/* What the provider brought may have ended its call: then the next turn has the answer, or is told that
 * there is none yet. */
static void on_soon(struct net_task *task)
{
	struct request *r = CONTAINER_OF(task, struct request, told.soon);

	if (r->flow.call.done_at != 0)
		net_timer_set(r->worker->loop, &r->told.timer, net_now(r->worker->loop));
	else
		tell_if_due(r);
}

static void end(struct request *r)
{
	const struct gather *body = &r->flow.answer.body;

	http_end(r->exchange, body->v, body->count, body->total);
}

void worker_stream_ready(struct request *r)
{
	r->unsent = false;
	if (r->answered) {
		end(r);
		return;
	}
	if (r->late) {
		r->late = false;
		upstream_resume(&r->flow.call);
	}
	arm(r);
}

void worker_stream_end(struct request *r)
{
	if (!r->unsent)
		end(r);
}

/* ---- from the provider ---- */

static bool on_head(struct upstream_call *call)
{
	struct request *r = of_call(call);
	const struct worker *worker = r->worker;

	if (!flow_stream_head(&r->flow, worker->json, net_now(worker->loop),
			      net_wall_ns(worker->loop)))
		return false;
	arm(r);
	return true;
}

static void on_piece(struct upstream_call *call, struct slice bytes)
{
	struct request *r = of_call(call);
	enum stream_state state = flow_stream_take(&r->flow, bytes, net_now(r->worker->loop));

	if (state != STREAM_OPEN)
		upstream_enough(call, state == STREAM_DONE);
	else
		upstream_holds(call, flow_stream_held(&r->flow));
	arm(r);
}

void worker_stream_tell(struct request *r)
{
	arm(r);
}

void worker_stream_begin(struct request *r)
{
	struct upstream_call *call = &r->flow.call;

	call->head = r->flow.wants_stream ? on_head : NULL;
	call->piece = r->flow.wants_stream ? on_piece : NULL;
	arm(r);
}

/* ---- before either ---- */

enum { EXCHANGE_LINES = 3 }; /* of an exchange, which begins one or not */

static void on_expect(struct upstream_call *call, enum expect step)
{
	const struct request *r = of_call(call);

	if (step == EXPECT_REQUEST) {
		expect_lines(r, 1);
		expect_lines(&r->flow, 2);
		return;
	}
	if (step == EXPECT_STREAM)
		expect_lines(r->exchange, EXCHANGE_LINES);
	if (r->flow.streaming)
		stream_expect(r->flow.stream, step);
}

void worker_stream_expect(struct upstream *up)
{
	_Static_assert(offsetof(struct request, told.timer.place) < EXPECT_LINE, "one line");
	_Static_assert(offsetof(struct flow, call.request) <= 2 * EXPECT_LINE, "two lines");
	upstream_set_expect(up, on_expect);
}

/* ---- both ---- */

void worker_stream_init(struct request *r)
{
	r->told.timer = (struct net_timer){ .due = NSEC_NEVER, .fire = on_due };
	r->told.soon = (struct net_task){ .run = on_soon };
	r->unsent = r->late = false;
}

void worker_stream_fini(struct request *r)
{
	net_timer_stop(r->worker->loop, &r->told.timer);
	net_task_cancel(&r->told.soon);
	if (r->flow.stream != NULL)
		stream_give(&r->worker->streams, r->flow.stream);
	r->flow.stream = NULL;
}
