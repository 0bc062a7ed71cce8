/* sampling_state.c - what calls have to do with others: stores of what outlives them, copies of them on whatever worker, and
 * who cancels them. */
#include "gateway/sampling/sampling_core.h"

#include "codec/base/must.h"

static struct sampling_call *of_state(struct flow_state *state)
{
	return CONTAINER_OF(state->flow, struct sampling_call, flow);
}

/* ---- what is known, and what it leaves ---- */

static void on_loaded(struct state_load *load)
{
	call_answered(of_state(CONTAINER_OF(load, struct flow_state, load)), FLOW_PENDING_LOAD);
}

bool call_load(struct sampling_call *call)
{
	struct state *state = call->core->state;
	struct flow_state *mine = call->flow.state;

	mine->load.done = on_loaded;
	const enum state_outcome outcome = state->load(state, &mine->load);
	if (outcome != STATE_DONE)
		call->flow.awaited |= FLOW_PENDING_LOAD;
	return outcome != STATE_PENDING;
}

static void on_saved(struct state_save *save)
{
	call_run(of_state(CONTAINER_OF(save, struct flow_state, save)), FLOW_SAVED);
}

bool call_save(struct sampling_call *call)
{
	struct state *state = call->core->state;
	struct state_save *save = &call->flow.state->save;

	if (!call_may_begin_session(call))
		return true;
	save->done = call->flow.state->saving == FLOW_SAVES_FIRST ? on_saved : NULL;
	return state->save(state, save) == STATE_DONE;
}

/* ---- copies ---- */

static void wait_no_more(struct sampling_call *call)
{
	net_timer_stop(call->core->loop, &call->wait);
}

static void on_claimed(struct idempotency_claim *claim)
{
	call_answered(of_state(CONTAINER_OF(claim, struct flow_state, claim)), FLOW_PENDING_CLAIM);
}

/* It leads here; other gateways may have a copy of it: it goes ahead of their answer, if they can be asked. */
static void claim(struct sampling_call *call)
{
	struct flow_state *mine = call->flow.state;
	const nsec_t now = net_now(call->core->loop);

	if (call->core->elsewhere == NULL)
		return;
	mine->claim.lasts = call->flow.ask->deadline > now ? call->flow.ask->deadline - now : 0;
	mine->claim.done = on_claimed;
	if (idempotency_redis_claim(call->core->elsewhere, &mine->claim))
		call->flow.awaited |= FLOW_PENDING_CLAIM;
}

/* Who leads is succeeded by the next of those who wait here, else by any gateway's. Whoever has waited may have
 * become the successor and not know it yet: the claim is its to give back then. */
static void leave(struct sampling_call *call)
{
	struct flow_state *mine = call->flow.state;

	if (idempotency_leave(&mine->copy) && call->core->elsewhere != NULL &&
	    (mine->claim.held || mine->copy.waited))
		idempotency_redis_drop(call->core->elsewhere, &mine->claim);
}

static void on_decided(struct idempotency_call *copy)
{
	struct sampling_call *call = of_state(CONTAINER_OF(copy, struct flow_state, copy));

	wait_no_more(call);
	if (copy->verdict == IDEMPOTENCY_LEADS)
		claim(call);
	call_run(call, FLOW_JOINED);
}

/* Its own deadline has passed; the first may have more time. */
static void on_late(struct net_timer *timer)
{
	struct sampling_call *call = CONTAINER_OF(timer, struct sampling_call, wait);

	wait_no_more(call);
	leave(call);
	call_run(call, FLOW_JOINED);
}

static void on_called_off(struct cancel_entry *entry)
{
	call_interrupt(of_state(CONTAINER_OF(entry, struct flow_state, cancel)), FLOW_CANCELLED);
}

static void enter_entry(struct sampling_call *call)
{
	struct cancel_entry *entry = &call->flow.state->cancel;

	if (state_key_none(&entry->key))
		return;
	cancel_leave(entry); /* of an earlier turn, which its session was not known in */
	entry->cancelled = on_called_off;
	cancel_enter(call->core->cancels, entry, &call->core->inbox);
}

/* Whoever waits for another may be told that it still does. */
static void wait_for_first(struct sampling_call *call)
{
	call->wait.fire = on_late;
	net_timer_set(call->core->loop, &call->wait, call->flow.ask->deadline);
	call_admit(call);
}

bool call_join(struct sampling_call *call)
{
	struct flow_state *mine = call->flow.state;
	struct idempotency_call *copy = &mine->copy;

	enter_entry(call);
	mine->claim = (struct idempotency_claim){ .tenant = mine->tenant, .call = copy };
	copy->decided = on_decided;
	idempotency_join(call->core->idempotency, copy, &call->core->inbox,
			 net_now(call->core->loop));
	if (copy->verdict == IDEMPOTENCY_LEADS)
		claim(call);
	else if (call->flow.awaited != 0)
		leave(call); /* it comes back when its session is known */
	else if (copy->verdict == IDEMPOTENCY_WAITS)
		wait_for_first(call);
	return copy->verdict != IDEMPOTENCY_WAITS || call->flow.awaited != 0;
}

/* ---- what is not wanted any more ---- */

void call_give_back(struct sampling_call *call)
{
	struct limiter *limiter = call->core->limiter;
	const unsigned taken = call->flow.state->ahead.taken;
	const nsec_t now = net_now(call->core->loop);

	if ((taken & FLOW_PENDING_LIMITS) != 0 && call->flow.reservation.granted) {
		if (call->placed) /* it was admitted, and counts */
			(void)limiter->settle(limiter, &call->flow.reservation, 0, 0, now);
		else
			limiter->undo(limiter, &call->flow.reservation, now);
		refusals_settled(call->core->refusals, call->flow.ask->caller->limit_key, now);
	}
	if ((taken & FLOW_PENDING_CLAIM) != 0)
		leave(call);
}

static void forget_state(struct sampling_call *call, unsigned awaited)
{
	struct flow_state *mine = call->flow.state;
	struct state *state = call->core->state;

	if ((awaited & FLOW_PENDING_LOAD) != 0)
		state->forget_load(state, &mine->load);
	if ((awaited & FLOW_PENDING_CLAIM) != 0)
		idempotency_redis_forget(call->core->elsewhere, &mine->claim);
	if (call->flow.step == FLOW_STEP_SAVE)
		state->forget_save(state, &mine->save);
	if (call->flow.step != FLOW_STEP_JOINED &&
	    ((awaited | mine->ahead.taken) & FLOW_PENDING_CLAIM) == 0)
		return;
	leave(call); /* nor does anybody wait for it */
	mine->joined = false;
	mine->ahead.taken &= ~(unsigned)FLOW_PENDING_CLAIM;
}

void call_forget(struct sampling_call *call)
{
	struct limiter *limiter = call->core->limiter;
	const unsigned awaited = call->flow.awaited;

	call->flow.awaited = 0;
	if ((awaited & FLOW_PENDING_LIMITS) != 0)
		limiter->forget(limiter, &call->flow.reservation);
	if (call->flow.state != NULL)
		forget_state(call, awaited);
}

/* ---- an end ---- */

/* Others get what the front keeps of its answer. */
static void end_copies(struct sampling_call *call)
{
	struct flow *flow = &call->flow;
	struct flow_state *mine = flow->state;
	struct idempotency_answer answer = { .err = flow->end.err, .retry_after_s = -1 };

	if (flow->front->keep != NULL)
		answer.member = flow->front->keep(flow->owner, &flow->out);
	const int64_t retry_after_ms =
		flow->out.end == SAMPLING_REFUSED ? flow->out.data.retry_after_ms : -1;
	if (retry_after_ms >= 0)
		answer.retry_after_s = (retry_after_ms + 999) / 1000;
	if (answer.err == ERR_OK && slice_absent(answer.member))
		answer.err = ERR_BUSY;
	idempotency_end(&mine->copy, &answer, net_now(call->core->loop));
	if (answer.err != ERR_OK) {
		if (mine->claim.held)
			idempotency_redis_drop(call->core->elsewhere, &mine->claim);
	} else if (call->core->elsewhere != NULL && mine->copy.verdict == IDEMPOTENCY_LEADS) {
		/* claimed or not: while Redis was away it could not be */
		idempotency_redis_end(call->core->elsewhere, &mine->claim, answer.member);
	}
}

void call_notify_others(struct sampling_call *call)
{
	struct flow_state *mine = call->flow.state;

	cancel_leave(&mine->cancel);
	if (idempotency_leads(&mine->copy)) {
		/* That its time is over is no answer to a copy that has more of it. */
		mine->copy.late = call->flow.end.err == ERR_DEADLINE;
		if (!mine->copy.late && call->flow.end.err != ERR_CANCELLED)
			end_copies(call);
	}
	leave(call);
	if (mine->loop.unbound) /* nor would the provider take them next time */
		call->core->state->drop_blocks(call->core->state, mine->load.tenant,
					       mine->load.blocks, mine->load.block_count);
}

void sampling_cancel(struct sampling *core, const struct caller *caller, struct slice session,
		     struct slice cancel_id)
{
	const struct state_key key = flow_cancel_key(caller, session, cancel_id);

	/* Who is not here may be at another gateway. */
	if (cancel_all(core->cancels, key) == 0 && core->cancels_elsewhere != NULL)
		cancel_redis_tell(core->cancels_elsewhere, key);
}
