/* flow_attempt.c - one attempt: what it sends and reads, and what it costs in the end. */
#include "codec/set.h"
#include "gateway/flow/flow_schema.h"
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "routing/rate_reset.h"

/* ---- the call ---- */

/* False: no memory for a second one. */
static bool note_tried(struct flow *flow)
{
	must(flow->retries.attempts < FLOW_ATTEMPTS_MAX);
	if (flow->retries.attempts == 0)
		flow->retries.tried = &flow->made->tried;
	if (flow->retries.attempts == 1) {
		struct flow_tried *list =
			arena_take(flow->arena, FLOW_ATTEMPTS_MAX * sizeof(*list));
		if (list == NULL)
			return false;
		list[0] = flow->made->tried;
		flow->retries.tried = list;
	}
	flow->retries.tried[flow->retries.attempts++] = (struct flow_tried){
		.round = flow->retries.round,
		.key = flow->walk.choice.key,
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.endpoint = flow->walk.endpoint_url,
	};
	return true;
}

/* For the budgets of retries. While the store was asked, the provider's number may have become that of
 * another one: a request among many. */
static void note_request(const struct flow *flow, const struct flow_env *env)
{
	if (flow->retries.attempts == 0 && memcmp(flow->walk.config_digest, env->config->digest,
						  sizeof(flow->walk.config_digest)) == 0)
		health_note_request(env->health, flow->ask->caller->limit_key, flow->walk.provider,
				    env->now);
}

/* False: as many answers are on their way as streams as there may be. */
static bool take_stream(struct flow *flow, const struct flow_env *env)
{
	flow->reading.form = FLOW_WHOLE;
	flow->reading.first_output_at = 0;
	if (flow->attempt.wants_stream && flow->reading.stream == NULL) {
		must(env->streams != NULL);
		flow->reading.stream = stream_take(env->streams);
	}
	return !flow->attempt.wants_stream || flow->reading.stream != NULL;
}

enum flow_move flow_send(struct flow *flow, const struct flow_env *env)
{
	if (!take_stream(flow, env))
		return flow->retries.attempts != 0 ? flow_give_up(flow)
						   : flow_refuse_err(flow, ERR_BUSY);
	note_request(flow, env);
	if (!note_tried(flow))
		return flow_give_up_busy(flow);
	flow->attempt.called = true;
	flow->attempt.sent_raw = flow->attempt.raw;
	flow->retries.phase = FLOW_TRIES;
	if (flow->ask->request->tool_count != 0)
		flow->attempt.target = health_target_of(&flow->walk.choice);
	health_began(&flow->walk.choice, env->now);
	flow->call.request = flow->attempt.send;
	flow->call.request_count = flow->attempt.send_count;
	flow->call.deadline = flow->ask->deadline;
	flow->call.into = flow->arena;
	return FLOW_DO_SEND;
}

/* ---- its answer ---- */

/* The attempt brought no answer at all. */
static enum flow_move call_failed(struct flow *flow)
{
	const struct upstream_call *call = &flow->call;
	struct provider_failure why = { .err = call->err,
					.retry = RETRY_AGAIN,
					.blame = BLAME_ENDPOINT,
					.retryable = call->err != ERR_DEADLINE,
					.retry_after_ms = -1 };

	if (call->err == ERR_DEADLINE)
		why.retry = RETRY_NEVER;
	else if (call->err == ERR_BUSY) /* a full queue; or no memory for what was answered */
		why.retry = call->bytes_sent ? RETRY_NEVER : RETRY_ELSEWHERE;
	else if (call->err == ERR_PROVIDER_ANSWER)
		why.retry = RETRY_ONCE;
	if (call->err == ERR_PROVIDER_ANSWER &&
	    call->coded) { /* paid for, and so would be the next */
		why.retry = RETRY_NEVER;
		why.retryable = false;
		why.detail = call->detail;
	}
	flow->attempt.failure = (struct flow_failure){ .why = why,
						       .detail = call->detail,
						       .sent = call->bytes_sent };
	return FLOW_FAILED;
}

/* A call of a tool was asked for and could not be forced: an answer without one is given a second
 * chance (providers.md 8.1), unless the model has said that it will not, or could not end. */
static bool lacks_call(const struct flow *flow, const struct sampling_result *result)
{
	if (!flow->made->encoded.decode.tool_required || flow->made->encoded.decode.schema_wanted ||
	    flow->retries.repeat == FLOW_REPEATED || flow->attempt.raw || flow->attempt.relayed ||
	    result->stop == STOP_REFUSAL || result->stop == STOP_MAX_TOKENS)
		return false;
	for (uint32_t i = 0; i < result->block_count; i++)
		if (result->blocks[i].is_tool_use)
			return false;
	return true;
}

/* What the answer's slices point to is given back before a second one is asked for. */
static bool keep_answer(struct flow *flow)
{
	struct provider_answer *answer = &flow->call.answer;

	if (!flow->made->encoded.decode.tool_required || flow->made->encoded.decode.schema_wanted ||
	    flow->retries.repeat == FLOW_REPEATED)
		return true;
	answer->body = arena_copy(flow->arena, answer->body);
	return !slice_absent(answer->body);
}

static enum err read_answer(struct flow *flow, const struct flow_env *env,
			    struct sampling_result *result, struct provider_failure *why)
{
	struct provider_answer *answer = &flow->call.answer;

	if (flow->reading.form == FLOW_STREAMING)
		return flow_stream_end(flow, result, why);
	answer->wall_s = env->wall_ns / SEC;
	(void)memcpy(answer->chance, flow->ask->ids->chance, sizeof(answer->chance));
	if (!keep_answer(flow))
		return ERR_BUSY;
	if (flow_stream_sniff(answer))
		return flow_stream_whole(flow, env, result, why);
	return dialect_decode(flow->walk.dialect, &flow->made->encoded.decode, answer, env->json,
			      flow->arena, result, why);
}

/* Of a rate limit that says nothing better, the headers tell when it is over. */
static void heed_rates(struct provider_failure *why, const struct provider_headers *headers,
		       uint64_t wall_ns)
{
	if (why->err != ERR_PROVIDER_RATE || why->retry_after_ms > 0)
		return;
	const nsec_t wait = rate_reset_wait(headers->rates, wall_ns);
	if (wait != 0)
		why->retry_after_ms = (int64_t)((wait + MSEC - 1) / MSEC);
}

/* A stream that was not heard to its end: what it has counted is of its beginning, while the provider
 * bills all that it has written, whether it then broke off or ended in an error. */
static bool was_cut(const struct flow *flow, const struct provider_failure *why)
{
	if (why->err == ERR_PROVIDER_ANSWER && why->blame == BLAME_ENDPOINT)
		return true;
	return flow->reading.first_output_at != 0 && !flow->reading.stream->complete;
}

/* Whether the call's own end is all there is to say: what came of a stream is worth a look, unless time or
 * memory has run out. */
static bool brought_nothing(const struct flow *flow)
{
	const enum err err = flow->call.err;

	return err != ERR_OK &&
	       (flow->reading.form != FLOW_STREAMING || err == ERR_DEADLINE || err == ERR_BUSY);
}

enum flow_move flow_read(struct flow *flow, const struct flow_env *env)
{
	struct provider_failure why = { .err = ERR_OK, .retry_after_ms = -1 };
	struct sampling_result result, *kept = NULL;

	if (brought_nothing(flow))
		return call_failed(flow);
	enum err err = read_answer(flow, env, &result, &why);
	if (err == ERR_OK && (kept = arena_take(flow->arena, sizeof(*kept))) == NULL)
		err = ERR_BUSY;
	if (err != ERR_OK) {
		why.err = err;
		heed_rates(&why, &flow->call.answer.headers, env->wall_ns);
		flow->attempt.usage = why.usage;
		flow->attempt.usage.known = why.usage_known && !was_cut(flow, &why);
		if (flow->call.timed_out) /* within its answer */
			return call_failed(flow);
		flow->attempt.failure = (struct flow_failure){ .why = why, .sent = true };
		return FLOW_FAILED;
	}
	flow->attempt.usage = result.usage;
	if (flow->made->encoded.decode.schema_wanted && !flow->attempt.raw &&
	    flow_schema_judge(flow, &result) != ERR_OK)
		return FLOW_FAILED;
	*kept = result;
	flow->end.result = kept;
	if (!lacks_call(flow, &result))
		return FLOW_NEXT;
	flow->retries.repeat = FLOW_REPEATING;
	return FLOW_FAILED;
}

/* ---- what it costs ---- */

static void add_usage(struct usage *sum, const struct usage *usage)
{
	sum->known = sum->known || usage->known;
	sum->input += usage->input;
	sum->output += usage->output;
	sum->cache_read += usage->cache_read;
	sum->cache_write += usage->cache_write;
	sum->cache_write_1h += usage->cache_write_1h;
	sum->reasoning += usage->reasoning;
}

static void report_health(struct flow *flow, const struct flow_env *env)
{
	const struct upstream_call *call = &flow->call;
	const struct provider_failure *why = &flow->attempt.failure.why;
	struct health_outcome outcome = {
		.err = why->err != ERR_OK ? why->err : flow->end.err,
		.blame = why->err != ERR_OK ? why->blame : BLAME_REQUEST,
		.status = call->answer.status,
		.retry_after_ms = why->err != ERR_OK ? why->retry_after_ms : -1,
		.patience = call->timeouts.first_byte,
		.answered = call->first_byte_at != 0,
		.late = call->timed_out,
		.held_up = call->held_up,
		.unseen_max = flow->attempt.wants_stream ? 0 : flow->made->encoded.max_tokens,
		.output_tokens = flow->attempt.usage.output,
		.headers = &call->answer.headers,
		.wall_ns = env->wall_ns,
	};

	if (call->sent_at != 0 && flow->reading.first_output_at > call->sent_at)
		outcome.first = flow->reading.first_output_at - call->sent_at;
	if (call->sent_at != 0)
		outcome.took = (call->done_at != 0 ? call->done_at : env->now) - call->sent_at;
	health_ended(&flow->walk.choice, &outcome, env->now);
}

/* What was learned of the model has proved right. */
static void keep_lessons(const struct flow *flow, const struct flow_env *env)
{
	uint8_t digest[SHA256_BYTES];

	if (flow->retries.lessons_lasting == 0 ||
	    !slice_eq(flow->retries.lessons_of, flow->walk.model_id))
		return;
	const int32_t model = catalog_find(&env->config->catalog, flow->walk.model_id);
	if (model < 0)
		return;
	struct lesson_from from = { .tenant = health_tenant(flow->ask->caller->limit_key),
				    .only_tenant = env->config->tenants.count == 1 };
	sha256(flow->ask->body, digest);
	(void)memcpy(&from.body, digest, sizeof(from.body));
	health_learn(env->health, (uint32_t)model, flow->retries.lessons_lasting, &from, env->now);
}

void flow_settle_up(struct flow *flow, const struct flow_env *env)
{
	must(flow->charge.reserved);
	flow->charge.reserved = false;
	flow_judge_usage(flow, env);
	report_health(flow, env);
	flow_price(flow, env);
	flow->totals.usd += flow->charge.usd;
	flow->totals.tokens += flow->charge.tokens;
	if (flow->charge.without_usage)
		flow->totals.estimated_tokens += flow->charge.tokens;
	if (flow->attempt.usage.known)
		add_usage(&flow->totals.usage, &flow->attempt.usage);
	if (!flow->attempt.called)
		return;
	struct flow_tried *tried = &flow->retries.tried[flow->retries.attempts - 1];
	const enum err failed = flow->attempt.failure.why.err;
	tried->err = failed != ERR_OK ? failed : flow->end.err;
	if (tried->err == ERR_OK)
		keep_lessons(flow, env);
	tried->blame = flow->attempt.failure.why.blame;
	tried->answered = flow->call.answer.status != 0;
}

struct metrics_attempt flow_attempt_report(const struct flow *flow)
{
	const struct upstream_call *call = &flow->call;
	/* A stream's first token is not its first byte. */
	const nsec_t first = flow->reading.first_output_at != 0 ? flow->reading.first_output_at
								: call->first_byte_at;
	const bool came = first > call->sent_at && call->sent_at != 0;

	must(flow->attempt.called && flow->retries.attempts != 0);
	return (struct metrics_attempt){
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.outcome = flow->retries.tried[flow->retries.attempts - 1].err,
		.ttft = came ? first - call->sent_at : 0,
		.settled_without_usage = flow->charge.without_usage,
		.usd_overrun_nano = flow->charge.overrun,
	};
}
