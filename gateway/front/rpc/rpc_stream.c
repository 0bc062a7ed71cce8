/* rpc_stream.c - what a caller is told while its request is under way, as an event stream.
 *
 * What the provider brings changes what is to be told. It is told at the end of the turn in which it is due, or by a
 * timer; where many answers stream, notifications after the first are batched per connection, and the batches are rarer
 * the more streams there are. While a notification has not left, the next one waits; if that becomes due meanwhile, the
 * caller does not keep up, and nothing more is read for it. */
#include "gateway/front/rpc/rpc.h"

#include "codec/base/must.h"

/* The timer is set again only when it would fire too late, and not at all for what is due already: a move
 * within many timers costs more than all else that is done for an event. */
void rpc_stream_arm(struct rpc_call *call)
{
	struct net_loop *loop = call->host->loop;
	const bool rose = rpc_progress_rose(&call->progress);
	nsec_t due = rpc_progress_due(&call->progress);

	if (due >= call->notify.timer.due || call->notify.soon.prev != NULL)
		return;
	if (rose)
		due = net_together_at(loop, call->connection, due);
	if (due <= net_now(loop))
		net_soon(loop, &call->notify.soon);
	else if (!(rose && net_together(loop, &call->notify.soon, due)) &&
		 due < call->notify.timer.due)
		net_timer_set(loop, &call->notify.timer, due);
}

static void notify(struct rpc_call *call, nsec_t now)
{
	const bool first = !rpc_progress_begun(&call->progress);
	const struct slice event = rpc_progress_notify(&call->progress, now);
	const struct rpc_answer *answer = &call->answer;

	call->pace = RPC_UNSENT;
	if (!first) {
		http_more(call->exchange, event);
		return;
	}
	rpc_write_stream_head(call);
	http_begin_pieces(call->exchange, answer->status, answer->fields, answer->field_count,
			  event);
}

static void notify_if_due(struct rpc_call *call)
{
	nsec_t now = net_now(call->host->loop);

	must_obj(call, RPC_MAGIC);
	must(call->phase != RPC_ANSWERED);
	if (rpc_progress_due(&call->progress) > now) {
		rpc_stream_arm(call);
	} else if (call->pace != RPC_IN_TIME) {
		call->pace = RPC_LATE;
		sampling_pause(call->call);
	} else {
		notify(call, now);
		rpc_stream_arm(call);
	}
}

static void on_due(struct net_timer *timer)
{
	struct rpc_call *call = CONTAINER_OF(timer, struct rpc_call, notify.timer);

	timer->due = NSEC_NEVER;
	if (call->notify.soon.prev == NULL) /* else it is told with others, in a moment */
		notify_if_due(call);
}

/* Where the attempt is over the next turn has the answer, or notifies that there is none yet. */
static void on_soon(struct net_task *task)
{
	struct rpc_call *call = CONTAINER_OF(task, struct rpc_call, notify.soon);

	if (sampling_attempt_is_over(call->call))
		net_timer_set(call->host->loop, &call->notify.timer, net_now(call->host->loop));
	else
		notify_if_due(call);
}

static void end(struct rpc_call *call)
{
	const struct gather *body = &call->answer.body;

	http_end(call->exchange, body->v, body->count, body->total);
}

void rpc_stream_ready(struct rpc_call *call)
{
	const enum rpc_pace before = call->pace;

	call->pace = RPC_IN_TIME;
	if (call->phase == RPC_ANSWERED) {
		end(call);
		return;
	}
	if (before == RPC_LATE)
		sampling_resume(call->call);
	rpc_stream_arm(call);
}

void rpc_stream_end(struct rpc_call *call)
{
	if (call->pace == RPC_IN_TIME)
		end(call);
}

void rpc_stream_init(struct rpc_call *call)
{
	call->notify.timer = (struct net_timer){ .due = NSEC_NEVER, .fire = on_due };
	call->notify.soon = (struct net_task){ .run = on_soon };
	call->pace = RPC_IN_TIME;
}

void rpc_stream_fini(struct rpc_call *call)
{
	net_timer_stop(call->host->loop, &call->notify.timer);
	net_task_cancel(&call->notify.soon);
}
