/* worker_state.c - what a worker's requests have to do with others: stores of what outlives them, copies of
 * them on whatever worker, and who calls them off. */
#include "gateway/worker_parts.h"

#include "codec/base/must.h"

static struct request *of_state(struct flow_state *state)
{
	return CONTAINER_OF(state->flow, struct request, flow);
}

/* ---- what is known, and what it leaves ---- */

static void on_recalled(struct state_recall *recall)
{
	struct flow_state *mine = CONTAINER_OF(recall, struct flow_state, recall);
	const bool ahead = mine->ahead.recall;

	of_state(mine)->recalling = mine->ahead.recall = false;
	if (ahead)
		worker_known(of_state(mine));
	else
		worker_run(of_state(mine), FLOW_RECALLED);
}

bool worker_recall(struct request *r)
{
	struct state *state = r->worker->state;
	struct flow_state *mine = r->flow.state;

	mine->recall.done = on_recalled;
	const enum state_outcome outcome = state->recall(state, &mine->recall);
	r->recalling = outcome != STATE_DONE;
	mine->ahead.recall = outcome == STATE_GUESSED;
	return outcome != STATE_PENDING;
}

static void on_remembered(struct state_note *note)
{
	worker_run(of_state(CONTAINER_OF(note, struct flow_state, note)), FLOW_REMEMBERED);
}

bool worker_remember(struct request *r)
{
	struct state *state = r->worker->state;
	struct state_note *note = &r->flow.state->note;

	note->done = r->flow.state->heeded ? on_remembered : NULL;
	return state->remember(state, note) == STATE_DONE;
}

/* ---- copies ---- */

static void wait_no_more(struct request *r)
{
	net_timer_stop(r->worker->loop, &r->wait);
}

static void on_claimed(struct once_claim *claim)
{
	struct flow_state *mine = CONTAINER_OF(claim, struct flow_state, claim);

	mine->ahead.claim = false;
	worker_known(of_state(mine));
}

/* It leads here; other gateways may have a copy of it: it goes ahead of their answer, if they can be asked. */
static void claim(struct request *r)
{
	struct flow_state *mine = r->flow.state;
	const nsec_t now = net_now(r->worker->loop);

	if (r->worker->elsewhere == NULL)
		return;
	mine->claim = (struct once_claim){
		.tenant = mine->tenant,
		.call = &mine->once,
		.lasts = r->flow.deadline > now ? r->flow.deadline - now : 0,
		.done = on_claimed,
	};
	mine->ahead.claim = once_redis_claim(r->worker->elsewhere, &mine->claim);
}

static void on_decided(struct once_call *once)
{
	struct request *r = of_state(CONTAINER_OF(once, struct flow_state, once));

	wait_no_more(r);
	if (once->verdict == ONCE_LEADS)
		claim(r);
	worker_run(r, FLOW_JOINED);
}

/* Its own deadline has passed; the first may have more time. */
static void on_late(struct net_timer *timer)
{
	struct request *r = CONTAINER_OF(timer, struct request, wait);

	wait_no_more(r);
	(void)once_leave(&r->flow.state->once);
	worker_run(r, FLOW_JOINED);
}

static void on_called_off(struct flight *flight)
{
	worker_interrupt(of_state(CONTAINER_OF(flight, struct flow_state, flight)),
			 FLOW_CALLED_OFF);
}

static void enter_flight(struct request *r)
{
	struct flight *flight = &r->flow.state->flight;

	if (state_key_none(&flight->key))
		return;
	flights_leave(flight); /* of an earlier turn, which its session was not known in */
	flight->called_off = on_called_off;
	flights_enter(r->worker->args.flights, flight, &r->worker->inbox);
}

/* Whoever waits for another may be told that it still does. */
static void wait_for_first(struct request *r)
{
	const nsec_t now = net_now(r->worker->loop);

	r->wait.fire = on_late;
	net_timer_set(r->worker->loop, &r->wait, r->flow.deadline);
	flow_progress_admit(&r->flow.progress, now);
	worker_stream_tell(r);
}

bool worker_join(struct request *r)
{
	struct once_call *once = &r->flow.state->once;

	enter_flight(r);
	once->decided = on_decided;
	once_join(r->worker->args.once, once, &r->worker->inbox, net_now(r->worker->loop));
	if (once->verdict == ONCE_LEADS)
		claim(r);
	else if (r->flow.state->ahead.recall)
		(void)once_leave(once); /* it comes back when its session is known */
	else if (once->verdict == ONCE_WAITS)
		wait_for_first(r);
	return once->verdict != ONCE_WAITS || r->flow.state->ahead.recall;
}

void worker_note_join(struct request *r)
{
	static const enum metrics_once results[] = {
		[ONCE_WAITS] = METRICS_ONCE_LATE,        [ONCE_LEADS] = METRICS_ONCE_FIRST,
		[ONCE_ANSWERED] = METRICS_ONCE_ANSWERED, [ONCE_DONE] = METRICS_ONCE_DONE,
		[ONCE_CONFLICT] = METRICS_ONCE_CONFLICT, [ONCE_ELSEWHERE] = METRICS_ONCE_ELSEWHERE,
		[ONCE_FULL] = METRICS_ONCE_FULL,
	};

	metrics_once(r->worker->args.metrics, results[r->flow.state->once.verdict]);
}

/* ---- an end ---- */

/* Who leads is succeeded by the next of those who wait here, else by any gateway's. */
static void leave(struct request *r)
{
	struct flow_state *mine = r->flow.state;

	if (once_leave(&mine->once) && mine->claim.held)
		once_redis_drop(r->worker->elsewhere, &mine->claim);
}

void worker_join_back(struct request *r)
{
	struct flow_ahead *ahead = &r->flow.state->ahead;

	if (ahead->joined)
		leave(r);
	ahead->joined = false;
}

void worker_state_forget(struct request *r)
{
	struct flow_state *mine = r->flow.state;
	struct state *state = r->worker->state;

	if (mine == NULL)
		return;
	if (r->recalling)
		state->forget_recall(state, &mine->recall);
	if (r->flow.step == FLOW_STEP_REMEMBER)
		state->forget_note(state, &mine->note);
	if (mine->ahead.claim)
		once_redis_forget(r->worker->elsewhere, &mine->claim);
	if (r->flow.step == FLOW_STEP_JOIN || mine->ahead.claim || mine->ahead.joined)
		leave(r);
	r->recalling = false;
	mine->ahead.recall = mine->ahead.claim = mine->ahead.joined = false;
}

/* Others get what it was answered with. */
static void end(struct request *r)
{
	struct flow_state *mine = r->flow.state;
	const struct once_answer bare = { .err = r->flow.outcome, .retry_after_s = -1 };
	const struct once_answer *answer = mine->ends ? &mine->end : &bare;

	once_end(&mine->once, answer, net_now(r->worker->loop));
	if (mine->claim.held && answer->err == ERR_OK)
		once_redis_end(r->worker->elsewhere, &mine->claim, answer->member);
	else if (mine->claim.held)
		once_redis_drop(r->worker->elsewhere, &mine->claim);
}

/* Who is not here may be at another gateway. */
static void call_off(struct worker *worker, struct state_key key)
{
	if (flights_call_off(worker->args.flights, key) == 0 && worker->flights_elsewhere != NULL)
		flights_redis_call_off(worker->flights_elsewhere, key);
}

void worker_state_end(struct request *r)
{
	struct flow_state *mine = r->flow.state;

	if (mine == NULL)
		return;
	flights_leave(&mine->flight);
	if (once_leads(&mine->once) && r->flow.outcome != ERR_CANCELLED)
		end(r);
	leave(r);
	if (mine->loop.unbound) /* nor would the provider take them next time */
		r->worker->state->drop_blocks(r->worker->state, mine->recall.tenant,
					      mine->recall.blocks, mine->recall.block_count);
	if (mine->calls_off)
		call_off(r->worker, mine->called_off);
	mine->calls_off = false;
}
