/* flow_limit.c - what a request that a limit refuses is told: which limit, how long to wait, and of money how
 * much it may cost, how much is left and until when. */
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "gateway/base/utc_text.h"
#include "tenants/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)FAIR_KEY_BYTES == (int)CALLER_LIMIT_KEY, "owners are tenants");

/* Others' bodies are named only where they are the reason. */
void flow_body_refusal(bool own, struct fault *fault, struct error_data *data)
{
	*fault = (struct fault){
		.err = ERR_BUSY,
		.offset = FAULT_NO_OFFSET,
		.detail = own ? "The tenant's requests in flight hold its share of the bytes that "
				"bodies may take together (limits.held_bytes)"
			      : "The bodies of requests in flight take all the bytes that they may "
				"take together (limits.held_bytes)",
	};
	*data = error_data_none;
	data->limit = own ? "held_bytes" : NULL;
	data->scope = own ? limit_holder_name(LIMIT_OF_TENANT) : NULL;
	data->retry_after_ms = FLOW_ROOM_RETRY_MS;
}

static enum flow_move refuse_body(struct flow *flow)
{
	struct fault fault;
	struct error_data data;

	flow_body_refusal(flow->caller.over_share, &fault, &data);
	return flow_refuse(flow, &fault, &data);
}

/* False: no memory. */
static bool make_room(struct flow *flow)
{
	if (flow->ask->request == NULL)
		return true;
	flow->made = arena_take(flow->arena, sizeof(*flow->made));
	return flow->made != NULL;
}

enum flow_move flow_hold(struct flow *flow, const struct flow_env *env)
{
	struct flow_bodies *bodies = env->bodies;
	const size_t bytes = flow->ask->body.len;
	enum fair_verdict verdict = FAIR_TAKEN;

	if (bodies != NULL && bytes != 0)
		verdict =
			fair_share_take(&bodies->share, &bodies->bound,
					flow->ask->caller->limit_key, bytes, &flow->caller.holder);
	if (verdict == FAIR_TAKEN)
		return make_room(flow) ? FLOW_NEXT : flow_refuse_err(flow, ERR_BUSY);
	flow->caller.over_share = verdict == FAIR_OWN;
	return refuse_body(flow);
}

enum { NANO = 1000000000, SHOWN = 100000, WORDS_ROOM = 320, DATA_ROOM = 192 };

/* To a hundredth of a cent. What would look like nothing is shown whole. */
void flow_put_usd(char text[FLOW_USD_ROOM], uint64_t nano, bool up)
{
	const uint64_t rest = nano % SHOWN;

	if (!up && nano != 0 && nano < SHOWN) {
		(void)snprintf(text, FLOW_USD_ROOM, "$0.%09" PRIu64, nano);
		return;
	}
	nano -= rest;
	if (up && rest != 0)
		nano = nano < UINT64_MAX - SHOWN ? nano + SHOWN : UINT64_MAX;
	(void)snprintf(text, FLOW_USD_ROOM, "$%" PRIu64 ".%04" PRIu64, nano / NANO,
		       nano % NANO / SHOWN);
}

static bool is_of_day(const struct limit_refusal *refusal)
{
	return strcmp(refusal->limit, limit_info(LIMIT_usd_per_day)->name) == 0;
}

/* The limit as metrics call it, too: per_server.usd_per_day. */
static void put_limit(char text[FLOW_USD_ROOM], const struct limit_refusal *refusal)
{
	const bool own = refusal->holder == LIMIT_OF_TENANT;

	(void)snprintf(text, FLOW_USD_ROOM, "%s%s%s", own ? "" : limit_holder_name(refusal->holder),
		       own ? "" : ".", refusal->limit);
}

/* Until when: a day ends at an hour, a month on a date. */
static void put_until(char text[FLOW_USD_ROOM], const struct limit_refusal *refusal,
		      const char resets[UTC_TEXT])
{
	enum { DATE = 10 };

	if (is_of_day(refusal))
		(void)snprintf(text, FLOW_USD_ROOM, "00:00 UTC");
	else
		(void)snprintf(text, FLOW_USD_ROOM, "%.*s 00:00 UTC", DATE, resets);
}

/* Words and members of data for a budget that is in the way. False: no memory, the row's text will do. */
static bool describe_money(struct flow *flow, struct fault *fault, struct error_data *data)
{
	const struct limit_refusal *refusal = &flow->reservation.refusal;
	const uint64_t needed = flow->reservation.ask.usd, wall_s = flow->reservation.wall_s;
	char *words = arena_take(flow->arena, WORDS_ROOM);
	char *members = arena_take(flow->arena, DATA_ROOM);
	char limit[FLOW_USD_ROOM], until[FLOW_USD_ROOM], cost[FLOW_USD_ROOM], left[FLOW_USD_ROOM];
	char resets[UTC_TEXT], budget[FLOW_USD_ROOM];

	if (words == NULL || members == NULL)
		return false;
	utc_text(is_of_day(refusal) ? quota_day_end(wall_s) : quota_month_end(wall_s), resets);
	put_limit(limit, refusal);
	put_until(until, refusal, resets);
	flow_put_usd(cost, needed, true);
	flow_put_usd(left, refusal->left, false);
	flow_put_usd(budget, refusal->budget, false);
	if (refusal->err == ERR_OVER_BUDGET)
		(void)snprintf(
			words, WORDS_ROOM,
			"The request may cost up to %s, more than the whole of %s, %s, and can "
			"never pass; a smaller bound of output tokens costs less",
			cost, limit, budget);
	else if (refusal->left != 0)
		(void)snprintf(words, WORDS_ROOM,
			       "The request may cost up to %s; %s of %s is left until %s", cost,
			       left, limit, until);
	else
		(void)snprintf(words, WORDS_ROOM,
			       "The budget is spent: the request may cost up to %s, and nothing of "
			       "%s is left until %s",
			       cost, limit, until);
	const int len = snprintf(members, DATA_ROOM,
				 "\"needed\":%" PRIu64 ".%09" PRIu64 ",\"left\":%" PRIu64
				 ".%09" PRIu64 ",\"resets\":\"%.*sZ\"",
				 needed / NANO, needed % NANO, refusal->left / NANO,
				 refusal->left % NANO, UTC_TEXT, resets);
	must(len > 0 && len < DATA_ROOM);
	fault->detail = words;
	data->extra = slice_of(members, (size_t)len);
	return true;
}

bool flow_refused_lately(const struct flow *flow, const struct flow_env *env)
{
	return env->refusals != NULL &&
	       refusals_has(env->refusals, flow->ask->caller->limit_key, env->now);
}

enum flow_move flow_refuse_limit(struct flow *flow)
{
	const struct limit_refusal *refusal = &flow->reservation.refusal;
	struct error_data data = error_data_none;
	struct fault fault = { .err = refusal->err, .offset = FAULT_NO_OFFSET };

	data.limit = limit_shown_name(refusal->holder, refusal->limit);
	if (refusal->limit != NULL)
		data.scope = limit_holder_name(refusal->holder);
	if (refusal->err == ERR_RATE_LIMITED || refusal->err == ERR_CONCURRENCY)
		data.retry_after_ms = (int64_t)((refusal->wait_ns + MSEC - 1) / MSEC);
	if (refusal->limit != NULL &&
	    (refusal->err == ERR_BUDGET || refusal->err == ERR_OVER_BUDGET))
		(void)describe_money(flow, &fault, &data);
	return flow_refuse(flow, &fault, &data);
}
