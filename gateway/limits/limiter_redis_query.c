/* limiter_redis_query.c - what the control thread asks: the shared figures of a tenant, and top-ups.
 *
 * A question is two or three requests in a row: the top-up, Redis's clock, all states in one MGET. The
 * last answer ends it; how the others went is kept in the question meanwhile. */
#include "gateway/limits/limiter_redis.h"

#include "codec/base/must.h"
#include "gateway/limits/limiter_redis_parts.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

/* A question on its way: the requests of it that have not been answered, and what they said so far. */
struct asking {
	struct limiter_redis *redis;
	struct limiter_query *question;
	struct redis_call clock, states;
	uint32_t awaited;
	enum limiter_said said;
	uint64_t wall_ns; /* Redis's; 0: not known yet */
};

/* The worse of two outcomes: NOTHING, then AWAY. */
static void note(struct asking *asking, enum limiter_said said)
{
	if (said < asking->said)
		asking->said = said;
}

static void one_is_over(struct asking *asking)
{
	must(asking->awaited > 0);
	if (--asking->awaited != 0)
		return;
	limiter_query_answer(asking->question, asking->said);
	free(asking);
}

static enum limiter_said said_by(enum redis_outcome outcome)
{
	static const enum limiter_said said[] = {
		[REDIS_ANSWERED] = LIMITER_SAID_DONE,
		[REDIS_REFUSED] = LIMITER_SAID_AWAY,
		[REDIS_LOST] = LIMITER_SAID_NOTHING,
	};

	return said[outcome];
}

/* ---- answers ---- */

/* Redis's wall clock to this machine's monotonic one. */
static nsec_t here(const struct asking *asking, uint64_t tat)
{
	const nsec_t now = net_now(asking->redis->loop);

	return tat > asking->wall_ns ? plus(now, tat - asking->wall_ns) : now;
}

static struct quota_state rate_here(const struct asking *asking, const struct limiter_rate *rate)
{
	struct quota_state state = { .tat = here(asking, rate->ns), .written = rate->written };

	for (uint32_t i = 0; i < QUOTA_USES; i++)
		state.uses[i] = quota_use_before(rate->bursts[i], rate->ages[i],
						 net_now(asking->redis->loop));
	return state;
}

static bool fill(struct asking *asking, uint32_t i, const struct redisReply *reply)
{
	struct limiter_state state;

	if (!limiter_read_state(reply, asking->wall_ns, &state))
		return false;
	*limiter_query_fill(asking->question, i) = (struct limit_state){
		.requests = rate_here(asking, &state.requests),
		.tokens = rate_here(asking, &state.tokens),
		.concurrent = state.places < UINT32_MAX ? (uint32_t)state.places : UINT32_MAX,
		.usd_day = state.day,
		.usd_month = state.month,
		.usd_day_more = state.day_more,
		.usd_month_more = state.month_more,
	};
	return true;
}

static bool fill_all(struct asking *asking, const struct redisReply *reply)
{
	const uint32_t count = limiter_query_count(asking->question);

	if (asking->wall_ns == 0 || reply->elements != count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!fill(asking, i, reply->element[i]))
			return false;
	return true;
}

static void was_read(struct asking *asking, bool readable)
{
	if (!readable) /* a top-up before this may be done */
		note(asking, limiter_query_top_up(asking->question) != 0 ? LIMITER_SAID_NOTHING
									 : LIMITER_SAID_AWAY);
	one_is_over(asking);
}

static bool is_list(enum redis_outcome outcome, const struct redisReply *reply)
{
	return outcome == REDIS_ANSWERED && reply->type == REDIS_REPLY_ARRAY;
}

static void on_clock(struct redis_call *call, enum redis_outcome outcome,
		     const struct redisReply *reply)
{
	struct asking *asking = CONTAINER_OF(call, struct asking, clock);

	was_read(asking, is_list(outcome, reply) && redis_read_time(reply, &asking->wall_ns));
}

static void on_states(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct asking *asking = CONTAINER_OF(call, struct asking, states);

	was_read(asking, is_list(outcome, reply) && fill_all(asking, reply));
}

static const struct redis_call_type clock_type = { .done = on_clock };
static const struct redis_call_type states_type = { .done = on_states };

void limiter_redis_note_top_up(const struct limiter_call *call, enum redis_outcome outcome,
			       uint64_t server_s)
{
	if (outcome == REDIS_ANSWERED)
		limiter_redis_topped_up(&call->redis->tenants[call->parts[0].tenant], server_s,
					call->usd);
	note(call->asking, said_by(outcome));
	one_is_over(call->asking);
}

/* ---- questions ---- */

static bool send_read(struct asking *asking, struct redis_call *call)
{
	if (!redis_link_send(asking->redis->link, &(struct redis_command){ .call = call }))
		return false;
	asking->awaited++;
	return true;
}

static bool ask_clock(struct asking *asking)
{
	struct redis_buffer *to = redis_link_begin(asking->redis->link);

	if (to == NULL)
		return false;
	redis_put_count(to, 1);
	redis_put(to, SLICE("TIME"));
	return send_read(asking, &asking->clock);
}

static bool ask_states(struct asking *asking)
{
	const struct limiter_query *question = asking->question;
	const uint32_t count = limiter_query_count(question);
	struct redis_buffer *to = redis_link_begin(asking->redis->link);

	if (to == NULL)
		return false;
	redis_put_count(to, count + 1);
	redis_put(to, SLICE("MGET"));
	for (uint32_t i = 0; i < count; i++)
		limiter_redis_put_key(to, limiter_query_tag(question),
				      limiter_query_key(question, i));
	return send_read(asking, &asking->states);
}

static bool send_top_up(struct asking *asking)
{
	const struct limiter_query *question = asking->question;
	struct redis_tenant *tenant =
		limiter_redis_tenant_of(asking->redis, limiter_query_tag(question));

	if (tenant == NULL ||
	    !limiter_redis_top_up(asking->redis, tenant, limiter_query_top_up(question), asking))
		return false;
	asking->awaited++;
	return true;
}

/* Nothing is answered before this returns, so that `awaited` is complete by then. */
static bool send_all(struct asking *asking)
{
	if (limiter_query_top_up(asking->question) != 0 && !send_top_up(asking))
		return false;
	return ask_clock(asking) && ask_states(asking);
}

void limiter_redis_ask(struct limiter_redis *redis, struct limiter_query *question)
{
	struct asking *asking = calloc(1, sizeof(*asking));

	if (asking == NULL) {
		limiter_query_answer(question, LIMITER_SAID_AWAY);
		return;
	}
	*asking = (struct asking){ .redis = redis,
				   .question = question,
				   .clock = { .type = &clock_type },
				   .states = { .type = &states_type },
				   .said = LIMITER_SAID_DONE };
	if (send_all(asking))
		return;
	/* What has left already, for want of memory for the rest, is not to be done twice. */
	note(asking, asking->awaited == 0 ? LIMITER_SAID_AWAY : LIMITER_SAID_NOTHING);
	asking->awaited++;
	one_is_over(asking);
}
