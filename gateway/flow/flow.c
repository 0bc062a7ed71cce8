/* flow.c - the table of steps, and how it is gone through. */
#include "gateway/flow/flow.h"

#include "codec/base/must.h"
#include "gateway/flow/flow_steps.h"
#include "gateway/telemetry/trace_context.h"

/* The steps that decide; the others are the runner's own. */
static flow_step_fn *const flow_steps[] = {
	[FLOW_STEP_HOLD] = flow_hold,
	[FLOW_STEP_LOAD] = flow_load,
	[FLOW_STEP_LOADED] = flow_loaded,
	[FLOW_STEP_JOIN] = flow_join,
	[FLOW_STEP_JOINED] = flow_joined,
	[FLOW_STEP_POLICY] = flow_policy,
	[FLOW_STEP_ROUTE] = flow_route,
	[FLOW_STEP_ENCODE] = flow_encode,
	[FLOW_STEP_RESERVE] = flow_reserve,
	[FLOW_STEP_RESERVED] = flow_reserved,
	[FLOW_STEP_SEND] = flow_send,
	[FLOW_STEP_READ] = flow_read,
	[FLOW_STEP_RETRY] = flow_retry,
	[FLOW_STEP_COUNT_RESERVE] = flow_count_reserve,
	[FLOW_STEP_COUNT_RESERVED] = flow_reserved,
	[FLOW_STEP_COUNT_SEND] = flow_count_send,
	[FLOW_STEP_COUNT_READ] = flow_count_read,
};

const char *flow_step_name(enum flow_step step)
{
	static const char *const names[] = {
#define STEP(symbol, name, meaning) name,
#include "gateway/flow/tbl/steps.h"
#undef STEP
	};

	must((unsigned)step < COUNT_OF(names));
	return names[step];
}

typedef signed char hex_lane __attribute__((vector_size(16)));

static hex_lane hex_digits(hex_lane values)
{
	return values + '0' + ((values > 9) & ('a' - '9' - 1));
}

/* 16 bytes as 32 digits, all at once. */
static void take_hex(const uint8_t random[REQUEST_ID_HEX / 2], char out[REQUEST_ID_HEX])
{
	hex_lane bytes;

	_Static_assert(sizeof(bytes) == REQUEST_ID_HEX / 2, "one lane");
	(void)memcpy(&bytes, random, sizeof(bytes));
	const hex_lane high = (bytes >> 4) & 15, low = bytes & 15;
	const hex_lane front = hex_digits(__builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3,
								  19, 4, 20, 5, 21, 6, 22, 7, 23));
	const hex_lane back = hex_digits(__builtin_shufflevector(
		high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
	(void)memcpy(out, &front, sizeof(front));
	(void)memcpy(out + sizeof(front), &back, sizeof(back));
}

void sampling_ids_make(struct sampling_ids *ids, const uint8_t random[SAMPLING_CHANCE_BYTES],
		       struct slice traceparent)
{
	take_hex(random, ids->request_id);
	ids->request_id[REQUEST_ID_HEX] = '\0';
	(void)memcpy(ids->chance, random + REQUEST_ID_HEX / 2, sizeof(ids->chance));
	(void)memcpy(&ids->seed, random, sizeof(ids->seed));
	ids->traceparent[0] = '\0';
	if (!slice_absent(traceparent))
		trace_context_read(traceparent, ids->traceparent);
}

void flow_init(struct flow *flow, const struct sampling_ask *ask,
	       const struct sampling_front *front, void *owner)
{
	/* From 2 KiB on libc's memset begins with what takes longer than all of this. */
	_Static_assert(offsetof(struct flow, out) < 2048, "not much is cleared");
	(void)memset(flow, 0, offsetof(struct flow, out));
	flow->magic = FLOW_MAGIC;
	flow->arena = ask->arena;
	flow->ask = ask;
	flow->front = front;
	flow->owner = owner;
	if (ask->caller != NULL) {
		flow->caller.account = ask->caller->account;
		flow->caller.plan = ask->caller->plan;
	}
	flow->reservation.scope_count = 0;
	flow->reservation.refusal = (struct limit_refusal){ .err = ERR_OK };
}

/* ---- how it ends ---- */

static void conclude_copy(struct sampling_outcome *out, const struct idempotency_answer *copy)
{
	out->end = SAMPLING_COPY;
	out->copy = copy->member;
	out->fault = (struct fault){ .err = (enum err)copy->err, .offset = FAULT_NO_OFFSET };
	out->data = error_data_none;
	if (copy->retry_after_s >= 0)
		out->data.retry_after_ms = copy->retry_after_s * 1000;
}

static void conclude_result(struct flow *flow)
{
	struct sampling_outcome *out = &flow->out;

	flow->end.result->usage = flow->totals.usage;
	flow->end.result->adjustments |= flow->totals.adjustments;
	out->end = SAMPLING_RESULT;
	out->result = flow->end.result;
	out->usd_nano = flow->totals.usd;
	out->attempts = flow->retries.attempts;
	out->schema_wanted = flow->made->encoded.decode.schema_wanted;
	out->model_id = flow->walk.model_id;
	out->provider = flow->walk.provider_name;
}

/* What the front is told. */
static void conclude(struct flow *flow)
{
	struct sampling_outcome *out = &flow->out;

	out->held = flow->caller.holder != 0;
	out->relayed = flow->attempt.relayed;
	out->answer = NULL;
	if (flow->attempt.sent_raw && flow->call.answer.status != 0 &&
	    flow->reading.form == FLOW_WHOLE)
		out->answer = &flow->call.answer;
	if (flow->end.copy != NULL) {
		conclude_copy(out, flow->end.copy);
		return;
	}
	if (flow->end.err != ERR_OK && !flow->end.cancelled) {
		out->end = SAMPLING_REFUSED;
		return;
	}
	out->fault = (struct fault){ .err = flow->end.err, .offset = FAULT_NO_OFFSET };
	if (flow->end.cancelled)
		out->end = SAMPLING_CANCELLED;
	else if (flow->end.result != NULL)
		conclude_result(flow);
	else
		out->end = SAMPLING_NO_SAMPLE;
}

static enum flow_effect settle(struct flow *flow, const struct flow_env *env)
{
	flow->step = FLOW_STEP_SETTLE;
	flow_settle_up(flow, env);
	return FLOW_SETTLE;
}

/* From here the request only ends: first what it reserved, then its answer. */
static enum flow_effect finish(struct flow *flow, const struct flow_env *env)
{
	if (flow->charge.reserved)
		return settle(flow, env);
	if (flow->state != NULL && flow->state->ahead.taken != 0) {
		flow->step = FLOW_STEP_SETTLE;
		return FLOW_GIVE_BACK;
	}
	health_ended(&flow->walk.choice, NULL, env->now); /* of an attempt that was not made */
	flow_restore_asked(flow);
	if (flow_fill_save(flow, env)) {
		flow->step = FLOW_STEP_SAVE;
		return FLOW_SAVE;
	}
	if (flow->end.err == ERR_CANCELLED && !flow->end.cancelled) {
		flow->step = FLOW_STEP_OVER;
		return FLOW_END;
	}
	flow->step = FLOW_STEP_ANSWER;
	conclude(flow);
	return FLOW_ANSWER;
}

/* The answer is there, and waits no longer for what it leaves to be told. */
static enum flow_effect finish_untold(struct flow *flow, const struct flow_env *env)
{
	flow->state->save.away = true;
	flow->state->save.blocks_kept = false;
	flow_saved(flow);
	return finish(flow, env);
}

/* A call that is cut short here has brought no answer, and is settled like one. */
static enum flow_effect give_up(struct flow *flow, const struct flow_env *env)
{
	must(flow->step < FLOW_STEP_ANSWER);
	if (flow->step == FLOW_STEP_SAVE)
		return finish_untold(flow, env);
	if (flow->end.result != NULL) /* a second answer was wished for: the first one will do */
		flow->attempt.failure.why.err = ERR_DRAINING;
	else
		(void)flow_refuse_err(flow, ERR_DRAINING);
	return finish(flow, env);
}

/* The snapshot may go while the request waits. */
static enum flow_effect let_go(struct flow *flow, enum flow_effect effect)
{
	flow->caller.account = NULL;
	flow->caller.plan = NULL;
	return effect;
}

/* Steps, until one of them has to wait or nothing is left but the end. */
static enum flow_effect walk(struct flow *flow, const struct flow_env *env)
{
	for (;;) {
		must(flow->step < COUNT_OF(flow_steps) && flow_steps[flow->step] != NULL);
		switch (flow_steps[flow->step](flow, env)) {
		case FLOW_NEXT:
			flow->step++;
			if (flow->step == FLOW_STEP_SETTLE)
				return finish(flow, env);
			continue;
		case FLOW_GO:
			continue;
		case FLOW_DO_LOAD:
			flow->step++;
			return let_go(flow, FLOW_LOAD);
		case FLOW_DO_JOIN:
			flow->step++;
			return let_go(flow, FLOW_JOIN);
		case FLOW_DO_RESERVE:
			flow->step++;
			return FLOW_RESERVE;
		case FLOW_DO_AWAIT:
			return let_go(flow, FLOW_AWAIT);
		case FLOW_DO_GIVE_BACK:
			return FLOW_GIVE_BACK;
		case FLOW_DO_SEND:
			flow->step++;
			return FLOW_SEND;
		case FLOW_DO_WAIT: /* nothing is decided on a guess */
			return let_go(flow, flow->awaited != 0 ? FLOW_AWAIT : FLOW_WAIT);
		case FLOW_FAILED:
			flow->retries.phase = FLOW_FAILING;
			return settle(flow, env);
		case FLOW_REFUSED:
		case FLOW_ANSWERED:
			return flow->awaited != 0 ? let_go(flow, FLOW_AWAIT) : finish(flow, env);
		}
	}
}

enum flow_effect flow_run(struct flow *flow, const struct flow_env *env, enum flow_event event)
{
	must_obj(flow, FLOW_MAGIC);
	must(flow->step < FLOW_STEP_OVER);
	switch (event) {
	case FLOW_CLIENT_GONE:
		/* its copies get the answer */
		if (flow->step == FLOW_STEP_SAVE && idempotency_leads(&flow->state->copy))
			return finish_untold(flow, env);
		flow->end.err = ERR_CANCELLED;
		return finish(flow, env);
	case FLOW_CANCELLED:
		if (flow->step == FLOW_STEP_SAVE) /* too late: how it ended is known */
			return finish_untold(flow, env);
		flow->end.err = ERR_CANCELLED;
		flow->end.cancelled = true;
		return finish(flow, env);
	case FLOW_GIVEN_UP:
		return give_up(flow, env);
	case FLOW_SAVED:
		flow_saved(flow);
		return finish(flow, env);
	case FLOW_SETTLED:
		if (flow->retries.phase != FLOW_FAILING)
			return finish(flow, env);
		flow->step = FLOW_STEP_RETRY;
		break;
	case FLOW_WAITED:
		flow->step = FLOW_STEP_ROUTE;
		break;
	case FLOW_GIVEN_BACK:
		flow_given_back(flow);
		if (flow->step == FLOW_STEP_SETTLE)
			return finish(flow, env);
		break;
	case FLOW_START:
	case FLOW_LOADED:
	case FLOW_JOINED:
	case FLOW_RESERVED:
	case FLOW_PROVIDER_DONE:
		break;
	}
	return walk(flow, env);
}
