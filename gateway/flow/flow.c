/* flow.c - the table of steps, how it is gone through, and the report. */
#include "gateway/flow/flow.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "gateway/flow/flow_steps.h"
#include "gateway/telemetry/trace_context.h"

/* The steps that decide; the others are the runner's own. */
static flow_step_fn *const flow_steps[] = {
	[FLOW_STEP_HTTP] = flow_http,       [FLOW_STEP_AUTH] = flow_auth,
	[FLOW_STEP_HEADERS] = flow_headers, [FLOW_STEP_DECODE] = flow_decode,
	[FLOW_STEP_RECALL] = flow_recall,   [FLOW_STEP_METHOD] = flow_method,
	[FLOW_STEP_JOIN] = flow_join,       [FLOW_STEP_POLICY] = flow_policy,
	[FLOW_STEP_ROUTE] = flow_route,     [FLOW_STEP_ENCODE] = flow_encode,
	[FLOW_STEP_RESERVE] = flow_reserve, [FLOW_STEP_SEND] = flow_send,
	[FLOW_STEP_READ] = flow_read,       [FLOW_STEP_RETRY] = flow_retry,
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

/* `count` digits, a multiple of eight. */
static void take_hex(const uint8_t *random, size_t count, char *out)
{
	for (size_t i = 0; i < count; i += 8) {
		uint32_t four;
		(void)memcpy(&four, random + i / 2, sizeof(four));
		hex_put(out + i, four);
	}
}

void flow_init(struct flow *flow, const struct http_incoming *in, struct arena *arena,
	       const uint8_t random[FLOW_CHANCE_BYTES], nsec_t now, uint64_t wall_ns)
{
	/* From 2 KiB on libc's memset begins with what takes longer than all of this. */
	_Static_assert(offsetof(struct flow, request_id) < 2048, "not much is cleared");
	(void)memset(flow, 0, offsetof(struct flow, request_id));
	flow->magic = FLOW_MAGIC;
	flow->arena = arena;
	flow->in = in;
	flow->started = now;
	flow->deadline = NSEC_NEVER;
	flow->started_wall_ns = wall_ns;
	flow->answer.status = 0;
	flow->reservation.scope_count = 0;
	flow->reservation.refusal = (struct limit_refusal){ .err = ERR_OK };
	take_hex(random, REQUEST_ID_HEX, flow->request_id);
	flow->request_id[REQUEST_ID_HEX] = '\0';
	(void)memcpy(flow->chance, random + REQUEST_ID_HEX / 2, sizeof(flow->chance));
	(void)memcpy(&flow->seed, random, sizeof(flow->seed));
	trace_context_read(in->headers[HTTP_TRACEPARENT], flow->traceparent);
}

void flow_refuse_busy(struct flow *flow)
{
	(void)flow_refuse_err(flow, ERR_BUSY);
	flow->step = FLOW_STEP_ANSWER;
}

void flow_begin_as(struct flow *flow, const struct caller *caller, enum revision revision)
{
	must(flow->step == FLOW_STEP_HTTP);
	flow->caller = caller;
	flow->account = caller->account;
	flow->plan = caller->plan;
	flow->revision = revision;
	flow->takes_json = true;
	flow->step = FLOW_STEP_DECODE;
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
	if (flow->reserved)
		return settle(flow, env);
	if (flow->state != NULL && flow->state->ahead.taken != 0) {
		flow->step = FLOW_STEP_SETTLE;
		return FLOW_GIVE_BACK;
	}
	health_ended(&flow->walk.choice, NULL, env->now); /* of an attempt that was not made */
	flow_tell_asked(flow);
	if (flow_make_note(flow, env)) {
		flow->step = FLOW_STEP_REMEMBER;
		return FLOW_REMEMBER;
	}
	if (flow->outcome == ERR_CANCELLED && !flow->called_off) {
		flow->step = FLOW_STEP_OVER;
		return FLOW_END;
	}
	flow->step = FLOW_STEP_ANSWER;
	if (flow->called_off) {
		flow_answer_called_off(flow);
		return FLOW_ANSWER;
	}
	if (flow->outcome == ERR_OK && flow->result != NULL)
		flow_answer_result(flow);
	if (flow->state != NULL && once_leads(&flow->state->once))
		flow->state->ends = flow_answer_member(flow, &flow->state->end);
	if (flow->progress.begun || (flow->progress.wanted && flow->outcome == ERR_OK))
		flow_answer_event(flow);
	return FLOW_ANSWER;
}

/* The answer is there, and waits no longer for what it leaves to be told. */
static enum flow_effect finish_untold(struct flow *flow, const struct flow_env *env)
{
	flow->state->note.away = true;
	flow->state->note.blocks_kept = false;
	flow_remembered(flow);
	return finish(flow, env);
}

/* A call that is cut short here has brought no answer, and is settled like one. */
static enum flow_effect give_up(struct flow *flow, const struct flow_env *env)
{
	must(flow->step < FLOW_STEP_ANSWER);
	if (flow->step == FLOW_STEP_REMEMBER)
		return finish_untold(flow, env);
	if (flow->result != NULL) /* a second answer was wished for: the first one will do */
		flow->failure.why.err = ERR_DRAINING;
	else
		(void)flow_refuse_err(flow, ERR_DRAINING);
	return finish(flow, env);
}

/* The snapshot may go while the request waits. */
static enum flow_effect let_go(struct flow *flow, enum flow_effect effect)
{
	flow->account = NULL;
	flow->plan = NULL;
	return effect;
}

bool flow_refuses_early(struct flow *flow, const struct flow_env *env)
{
	must_obj(flow, FLOW_MAGIC);
	must(flow->step == FLOW_STEP_HTTP && flow->in->body.len == 0);
	for (; flow->step != FLOW_STEP_HEADERS; flow->step++)
		if (flow_steps[flow->step](flow, env) != FLOW_NEXT)
			return finish(flow, env) == FLOW_ANSWER;
	return false;
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
		case FLOW_DO_RECALL:
			return let_go(flow, FLOW_RECALL);
		case FLOW_DO_JOIN:
			return let_go(flow, FLOW_JOIN);
		case FLOW_DO_RESERVE:
			return FLOW_RESERVE;
		case FLOW_DO_AWAIT:
			return let_go(flow, FLOW_AWAIT);
		case FLOW_DO_GIVE_BACK:
			return FLOW_GIVE_BACK;
		case FLOW_DO_SEND:
			return FLOW_SEND;
		case FLOW_DO_WAIT: /* nothing is decided on a guess */
			return let_go(flow, flow->awaited != 0 ? FLOW_AWAIT : FLOW_WAIT);
		case FLOW_FAILED:
			flow->failing = true;
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
		if (flow->step == FLOW_STEP_REMEMBER && once_leads(&flow->state->once))
			return finish_untold(flow, env);
		flow->outcome = ERR_CANCELLED;
		return finish(flow, env);
	case FLOW_CALLED_OFF:
		if (flow->step == FLOW_STEP_REMEMBER) /* too late: how it ended is known */
			return finish_untold(flow, env);
		flow->outcome = ERR_CANCELLED;
		flow->called_off = true;
		return finish(flow, env);
	case FLOW_GIVEN_UP:
		return give_up(flow, env);
	case FLOW_REMEMBERED:
		flow_remembered(flow);
		return finish(flow, env);
	case FLOW_SETTLED:
		if (!flow->failing)
			return finish(flow, env);
		flow->failing = false;
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
	case FLOW_RECALLED:
	case FLOW_JOINED:
	case FLOW_RESERVED:
	case FLOW_PROVIDER_DONE:
		break;
	}
	return walk(flow, env);
}

static const char *method_name(const struct flow *flow)
{
	static const char *const names[] = {
		[RPC_CREATE_MESSAGE] = "sampling/createMessage",
		[RPC_INITIALIZE] = "initialize",
		[RPC_INITIALIZED] = "notifications/initialized",
		[RPC_PING] = "ping",
		[RPC_CANCELLED] = "notifications/cancelled",
		[RPC_OTHER_NOTIFICATION] = "notification",
		[RPC_RESPONSE] = "response",
		[RPC_UNKNOWN] = "unknown",
	};

	return flow->step > FLOW_STEP_DECODE && flow->rpc_known ? names[flow->rpc.method] : NULL;
}

static void report_route(const struct flow *flow, struct log_route *out)
{
	const struct route *route = &flow->made->route;
	const struct model_preferences *prefer = &flow->made->request.prefer;

	*out = (struct log_route){
		.config_digest = flow->walk.config_digest,
		.seed = flow->walk.draws == 0 ? 0 : flow->seed,
		.hint = flow->walk.hint,
		.alias = route->alias,
		.input_tokens = route->input_tokens,
		.max_tokens = route->max_tokens,
		.image = route->image,
		.audio = route->audio,
		.held = flow->walk.choice.held ? LOG_HELD_ENDPOINT
			: route->held          ? LOG_HELD_MODEL
					       : LOG_HELD_NOTHING,
		.cost = prefer->cost,
		.speed = prefer->speed,
		.intelligence = prefer->intelligence,
		.candidate_count = route->scored_count,
		.drawn_count = flow->walk.choice.drawn_count,
	};

	_Static_assert((int)ROUTE_SCORED_MAX <= (int)LOG_CANDIDATES, "every score fits the line");
	for (uint32_t i = 0; i < route->scored_count; i++)
		out->candidates[i] =
			(struct log_candidate){ route->scored[i].model, route->scored[i].score };
	_Static_assert((int)POOL_DRAWN_MAX <= (int)LOG_DRAWN, "every draw fits the line");
	for (uint32_t i = 0; i < flow->walk.choice.drawn_count; i++)
		out->drawn[i] = (struct log_drawn){ flow->walk.choice.drawn[i].member,
						    (double)flow->walk.choice.drawn[i].cost };
}

static void report_call(const struct flow *flow, struct log_request *line,
			struct metrics_request *metrics)
{
	const struct upstream_call *call = &flow->call;

	line->attempts = flow->attempts;
	for (uint32_t i = 0; i < flow->attempts; i++)
		line->attempt_classes[i] = flow->tried[i].err;
	metrics->attempted = true;
	line->queue = metrics->queue = call->queued_ns;
	if (call->first_byte_at > call->sent_at && call->sent_at != 0)
		line->provider_ttfb = call->first_byte_at - call->sent_at;
	if (call->done_at > call->sent_at && call->sent_at != 0)
		line->provider_total = call->done_at - call->sent_at;
}

void flow_report(const struct flow *flow, nsec_t now, struct log_request *line,
		 struct metrics_request *metrics)
{
	bool cancelled = flow->outcome == ERR_CANCELLED;
	bool decoded = flow->step > FLOW_STEP_HEADERS;
	const struct slice nobody = { NULL, 0 };
	const struct slice tenant = flow->caller == NULL ? nobody : flow->caller->tenant;

	*line = (struct log_request){
		.wall_ns = flow->started_wall_ns,
		.tenant = tenant,
		.server = flow->caller == NULL ? nobody : flow->caller->server,
		.revision = decoded && flow->caller != NULL ? revision_name(flow->revision) : NULL,
		.rpc = method_name(flow),
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.endpoint = flow->walk.endpoint_url,
		.usage = flow->usage,
		.usd_nano = flow->usd,
		.estimated_tokens = flow->estimated_tokens,
		.err = flow->outcome,
		.status = cancelled ? 499 : flow->answer.status,
		.detail = flow->detail,
		.total = now - flow->started,
	};
	(void)memcpy(line->request_id, flow->request_id, sizeof(line->request_id));
	if (flow->traceparent[0] != '\0')
		line->traceparent = slice_of(flow->traceparent, TRACEPARENT_LEN);
	if (flow->walk.config_digest[0] != '\0')
		report_route(flow, &line->route);
	if (flow->state != NULL)
		line->session = flow_session_report(flow->state);
	if (flow->outcome == ERR_OK && flow->result != NULL)
		line->stop = stop_reason_name(flow->result->stop);
	*metrics = (struct metrics_request){
		.tenant_series = UINT32_MAX,
		.tenant = tenant,
		.outcome = flow->outcome,
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.tokens_in = flow->usage.input,
		.tokens_out = flow->usage.output,
		.usd_nano = flow->usd,
		.duration = line->total,
		.unknown_calls = flow->state != NULL ? flow->state->loop.unknown : 0,
	};
	if (flow->attempts != 0)
		report_call(flow, line, metrics);
}
