/* flow_count.c - requests whose tokens are counted, and nothing more (sampling_raw.counts).
 *
 * They go the way of all others: the same caller, policy, models, endpoints, keys and further attempts. What differs are
 * the four rows of the walk that reserve, send and read, and no other request pays for these: ENCODE leads to them where
 * the front has asked for a count. A count takes a place and one of its own rate; it is free; and what becomes of it is
 * never told to those who keep health: a provider limits counts by themselves. Where no number can be had, because the host
 * counts nothing, or cannot be reached, the request still ends well, without an answer, and the front estimates. */
#include "codec/api/api_count.h"
#include "codec/set.h"
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

/* Of each attempt: callers wait for a number before they ask what they are about to. */
static const nsec_t patience = 10 * SEC;

/* ---- limits ---- */

/* The tenant's and its server's place, and the rate of counts. */
enum { COUNT_SCOPES = 3 };
_Static_assert((int)COUNT_SCOPES <= (int)RESERVATION_SCOPES_MAX, "they fit");

/* Nothing but a place is asked for: what costs nothing is refused by none of the others. */
static struct limit_scope place_of(enum limit_holder holder, const struct tenant_limits *limits)
{
	struct limit_scope scope = { .holder = holder, .limits = *limits };

	scope.limits.requests = (struct quota_limit){ 0, 0 };
	return scope;
}

static struct limit_scope rate_of(const struct tenant *tenant, const struct plan *plan)
{
	struct limit_scope scope = { .holder = LIMIT_OF_COUNTS, .limits = limit_none() };
	uint8_t part[16];

	scope.limits.count_only = plan->limits.count_only;
	scope.limits.away_rates_closed = plan->limits.away_rates_closed;
	scope.limits.requests = plan->counts;
	tenant_part(TENANT_PART_COUNTS, SLICE(""), part);
	tenant_part_key(tenant, part, scope.key);
	return scope;
}

static uint32_t choose_scopes(const struct flow *flow, struct limit_scope scopes[COUNT_SCOPES])
{
	const struct tenant *tenant = flow->caller.account;
	const struct plan *plan = flow->caller.plan;
	uint32_t count = 0;
	uint8_t part[16];

	scopes[count] = place_of(LIMIT_OF_TENANT, &plan->limits);
	(void)memcpy(scopes[count++].key, tenant->limit_key, sizeof(tenant->limit_key));
	if (plan->server_limited && !slice_absent(flow->ask->caller->server)) {
		scopes[count] = place_of(LIMIT_OF_SERVER, &plan->server_limits);
		tenant_part(TENANT_PART_SERVER, flow->ask->caller->server, part);
		tenant_part_key(tenant, part, scopes[count++].key);
	}
	scopes[count++] = rate_of(tenant, plan);
	return count;
}

/* The first reservation holds the place to the end. False: no memory. */
static bool keep_first(struct flow *flow)
{
	if (flow->retries.attempts == 0)
		return true;
	must(flow->charge.first == NULL); /* there are two attempts at most */
	flow->charge.first = arena_take(flow->arena, sizeof(*flow->charge.first));
	if (flow->charge.first != NULL)
		*flow->charge.first = flow->reservation;
	return flow->charge.first != NULL;
}

enum flow_move flow_count_reserve(struct flow *flow, const struct flow_env *env)
{
	struct limit_scope *scopes = arena_take(flow->arena, COUNT_SCOPES * sizeof(*scopes));
	const uint32_t first = flow->retries.attempts == 0 ? 1 : 0;

	must(flow->state == NULL); /* nothing that has to be remembered, or goes ahead */
	if (scopes == NULL || !keep_first(flow))
		return first != 0 ? flow_refuse_err(flow, ERR_BUSY) : flow_give_up_busy(flow);
	flow->reservation = (struct reservation){
		.scopes = scopes,
		.scope_count = choose_scopes(flow, scopes),
		.ask = { .requests = first, .concurrent = first },
		.now = env->now,
		.wall_s = env->wall_ns / SEC,
		.deadline = flow->ask->deadline,
		.left = &flow->ask->raw->left,
	};
	flow->caller.account = NULL; /* the snapshot may go from here on */
	flow->caller.plan = NULL;
	flow->attempt.called = false;
	flow->attempt.failure = (struct flow_failure){ .why = { .err = ERR_OK } };
	flow->attempt.usage = (struct usage){ .known = true }; /* nothing is billed */
	return FLOW_DO_RESERVE;
}

/* ---- the end ---- */

/* False: no memory. */
static bool take_result(struct flow *flow)
{
	flow->end.result = arena_zero(flow->arena, sizeof(*flow->end.result));
	return flow->end.result != NULL;
}

/* It ends well, without a number. */
static enum flow_move leave_open(struct flow *flow, const char *detail)
{
	if (!take_result(flow))
		return flow_refuse_err(flow, ERR_BUSY);
	flow->attempt.sent_raw = false; /* what the provider said is no answer */
	flow->end.detail = detail;
	return FLOW_ANSWERED;
}

enum flow_move flow_count_nowhere(struct flow *flow)
{
	(void)memset(flow->made, 0, sizeof(*flow->made)); /* nothing is made for anybody */
	flow_count_encoded(flow);
	return FLOW_NEXT;
}

enum flow_move flow_count_give_up(struct flow *flow)
{
	const enum err err = flow->retries.reported->why.err;

	if (err == ERR_PROVIDER_REJECTED || err == ERR_CONTEXT_WINDOW)
		return flow_refuse_failure(flow, flow->retries.reported);
	return leave_open(flow, "the provider did not count the tokens: estimated");
}

/* ---- the call ---- */

enum flow_move flow_count_send(struct flow *flow, const struct flow_env *env)
{
	struct provider_timeouts *timeouts = &flow->call.timeouts;

	if (flow->walk.choice.at == NULL)
		return leave_open(flow, "no provider can be asked to count the tokens: estimated");
	if (!flow->made->profile.count_tokens ||
	    !health_counts_tokens(&flow->walk.choice, env->now))
		return leave_open(flow, "the provider counts no tokens: estimated");
	if (timeouts->first_byte > patience)
		timeouts->first_byte = patience;
	if (timeouts->total > patience)
		timeouts->total = patience;
	return flow_send(flow, env);
}

/* In the words of the format: as of any of its answers. */
static struct provider_failure refusal_of(struct flow *flow, const struct flow_env *env)
{
	struct provider_failure why = { .err = ERR_OK, .retry_after_ms = -1 };
	struct sampling_result unused;
	enum err err = dialect_decode(flow->walk.dialect, &flow->made->encoded.decode,
				      &flow->call.answer, env->json, flow->arena, &unused, &why);

	why.err = err == ERR_OK ? ERR_PROVIDER_REJECTED : err;
	if (why.retry > RETRY_ELSEWHERE)
		why.retry = RETRY_ELSEWHERE; /* whoever failed need not be waited for */
	return why;
}

/* What the attempt has failed with; err ERR_OK: there is a number. */
static struct provider_failure look(struct flow *flow, const struct flow_env *env)
{
	struct provider_answer *answer = &flow->call.answer;
	struct provider_failure why = { .err = flow->call.err,
					.retry = RETRY_ELSEWHERE,
					.blame = BLAME_ENDPOINT,
					.retry_after_ms = -1,
					.status = answer->status };

	if (why.err != ERR_OK)
		return why;
	answer->wall_s = env->wall_ns / SEC;
	switch (api_count_judge(answer->status, answer->body,
				flow->made->encoded.decode.requested_model)) {
	case API_COUNTED:
		return why;
	case API_COUNT_MISSING:
		health_note_uncounted(&flow->walk.choice, env->now);
		why.retry = RETRY_NEVER;
		break;
	case API_COUNT_FAILED:
		if (answer->status / 100 != 2)
			return refusal_of(flow, env);
		break;
	}
	why.err = ERR_PROVIDER_ANSWER;
	return why;
}

enum flow_move flow_count_read(struct flow *flow, const struct flow_env *env)
{
	const struct provider_failure why = look(flow, env);

	health_ended(&flow->walk.choice, NULL, env->now);
	if (why.err == ERR_OK && take_result(flow))
		return FLOW_ANSWERED;
	if (why.err == ERR_OK)
		return flow_refuse_err(flow, ERR_BUSY);
	flow->attempt.failure = (struct flow_failure){ .why = why,
						       .detail = flow->call.detail,
						       .sent = flow->call.bytes_sent };
	return FLOW_FAILED;
}
