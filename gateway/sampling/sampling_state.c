/* sampling_state.c - what a worker's requests have to do with others: stores of what outlives them, copies of
 * them on whatever worker, and who calls them off. */
#include "gateway/worker/worker_parts.h"

#include "codec/base/must.h"

static struct request *of_state(struct flow_state *state)
{
	return CONTAINER_OF(state->flow, struct request, flow);
}

/* ---- what is known, and what it leaves ---- */

static void on_recalled(struct state_recall *recall)
{
	worker_answered(of_state(CONTAINER_OF(recall, struct flow_state, recall)), FLOW_ASK_RECALL);
}

bool worker_recall(struct request *r)
{
	struct state *state = r->worker->state;
	struct flow_state *mine = r->flow.state;

	mine->recall.done = on_recalled;
	const enum state_outcome outcome = state->recall(state, &mine->recall);
	if (outcome != STATE_DONE)
		r->flow.awaited |= FLOW_ASK_RECALL;
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

	if (!worker_may_begin(r))
		return true;
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
	worker_answered(of_state(CONTAINER_OF(claim, struct flow_state, claim)), FLOW_ASK_CLAIM);
}

/* It leads here; other gateways may have a copy of it: it goes ahead of their answer, if they can be asked. */
static void claim(struct request *r)
{
	struct flow_state *mine = r->flow.state;
	const nsec_t now = net_now(r->worker->loop);

	if (r->worker->elsewhere == NULL)
		return;
	mine->claim.lasts = r->flow.deadline > now ? r->flow.deadline - now : 0;
	mine->claim.done = on_claimed;
	if (once_redis_claim(r->worker->elsewhere, &mine->claim))
		r->flow.awaited |= FLOW_ASK_CLAIM;
}

/* Who leads is succeeded by the next of those who wait here, else by any gateway's. Whoever has waited may have
 * become the successor and not know it yet: the claim is its to give back then. */
static void leave(struct request *r)
{
	struct flow_state *mine = r->flow.state;

	if (once_leave(&mine->once) && r->worker->elsewhere != NULL &&
	    (mine->claim.held || mine->once.waited))
		once_redis_drop(r->worker->elsewhere, &mine->claim);
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
	leave(r);
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
	struct flow_state *mine = r->flow.state;
	struct once_call *once = &mine->once;

	enter_flight(r);
	mine->claim = (struct once_claim){ .tenant = mine->tenant, .call = once };
	once->decided = on_decided;
	once_join(r->worker->args.once, once, &r->worker->inbox, net_now(r->worker->loop));
	if (once->verdict == ONCE_LEADS)
		claim(r);
	else if (r->flow.awaited != 0)
		leave(r); /* it comes back when its session is known */
	else if (once->verdict == ONCE_WAITS)
		wait_for_first(r);
	return once->verdict != ONCE_WAITS || r->flow.awaited != 0;
}

/* ---- what is not wanted any more ---- */

void worker_give_back(struct request *r)
{
	struct store *store = r->worker->store;
	const unsigned taken = r->flow.state->ahead.taken;
	const nsec_t now = net_now(r->worker->loop);

	if ((taken & FLOW_ASK_LIMITS) != 0 && r->flow.reservation.granted) {
		if (r->placed) /* it was admitted, and counts */
			(void)store->settle(store, &r->flow.reservation, 0, 0, now);
		else
			store->undo(store, &r->flow.reservation, now);
		refusals_settled(r->worker->refusals, r->flow.caller->limit_key, now);
	}
	if ((taken & FLOW_ASK_CLAIM) != 0)
		leave(r);
}

static void forget_state(struct request *r, unsigned awaited)
{
	struct flow_state *mine = r->flow.state;
	struct state *state = r->worker->state;

	if ((awaited & FLOW_ASK_RECALL) != 0)
		state->forget_recall(state, &mine->recall);
	if ((awaited & FLOW_ASK_CLAIM) != 0)
		once_redis_forget(r->worker->elsewhere, &mine->claim);
	if (r->flow.step == FLOW_STEP_REMEMBER)
		state->forget_note(state, &mine->note);
	if (r->flow.step != FLOW_STEP_JOIN && ((awaited | mine->ahead.taken) & FLOW_ASK_CLAIM) == 0)
		return;
	leave(r); /* nor does anybody wait for it */
	mine->joined = false;
	mine->ahead.taken &= ~(unsigned)FLOW_ASK_CLAIM;
}

void worker_forget(struct request *r)
{
	struct store *store = r->worker->store;
	const unsigned awaited = r->flow.awaited;

	r->flow.awaited = 0;
	if ((awaited & FLOW_ASK_LIMITS) != 0)
		store->forget(store, &r->flow.reservation);
	if (r->flow.state != NULL)
		forget_state(r, awaited);
}

/* ---- an end ---- */

/* Others get what it was answered with. */
static void end(struct request *r)
{
	struct flow_state *mine = r->flow.state;
	const struct once_answer bare = { .err = r->flow.outcome, .retry_after_s = -1 };
	const struct once_answer *answer = mine->ends ? &mine->end : &bare;

	once_end(&mine->once, answer, net_now(r->worker->loop));
	if (answer->err != ERR_OK) {
		if (mine->claim.held)
			once_redis_drop(r->worker->elsewhere, &mine->claim);
	} else if (r->worker->elsewhere != NULL && mine->once.verdict == ONCE_LEADS) {
		/* claimed or not: while Redis was away it could not be */
		once_redis_end(r->worker->elsewhere, &mine->claim, answer->member);
	}
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
	if (once_leads(&mine->once)) {
		/* That its time is over is no answer to a copy that has more of it. */
		mine->once.late = r->flow.outcome == ERR_DEADLINE;
		if (!mine->once.late && r->flow.outcome != ERR_CANCELLED)
			end(r);
	}
	leave(r);
	if (mine->loop.unbound) /* nor would the provider take them next time */
		r->worker->state->drop_blocks(r->worker->state, mine->recall.tenant,
					      mine->recall.blocks, mine->recall.block_count);
	if (mine->calls_off)
		call_off(r->worker, mine->called_off);
	mine->calls_off = false;
}
