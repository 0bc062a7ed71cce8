/* mcp_shared_look_redis.c - which gateways live, and what those have left who died. */
#include "gateway/state/mcp_shared_parts.h"

#include "codec/base/must.h"

#include <hiredis/hiredis.h>

static void put_look(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_shared *shared = CONTAINER_OF(call, struct mcp_shared, look_call);
	const bool steady = alive_is_steady(shared->alive, mcp_shared_now(shared));

	redis_put_script(run, 3, 6);
	mcp_shared_put_gateways(run->to);
	mcp_shared_put_claims(run->to, shared);
	mcp_shared_put_moved(run->to, shared);
	redis_put(run->to, alive_name(shared->alive));
	redis_put(run->to, steady ? SLICE("steady") : SLICE(""));
	redis_put(run->to, shared->look_came ? SLICE("came") : SLICE(""));
	redis_put_number(run->to, MCP_ORPHANS_MAX);
	redis_put_number(run->to, MCP_ORPHANS_BYTES);
	redis_put_number(run->to, (uint32_t)(MCP_SESSION_IDLE / MSEC));
}

static struct slice text_of(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING ? slice_of(reply->str, (size_t)reply->len)
						 : (struct slice){ NULL, 0 };
}

/* Clients may not answer it, and it is claimed already for whoever sees it again. */
static void take_orphan(struct mcp_shared *shared, struct slice text)
{
	struct mcp_who who;
	struct slice id, kept;

	if (!mcp_shared_read_claim(text, &who, &id, &kept))
		return;
	mcp_session_hear_claim(shared->channels, &who, mcp_session_id(id), mcp_shared_now(shared));
	mcp_shared_say_all(shared, SAID_TAKEN, &who, id);
	shared->events->orphan(shared->owner, &who, id, kept);
}

static void on_done(struct redis_call *call, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct mcp_shared *shared = CONTAINER_OF(call, struct mcp_shared, look_call);

	shared->look_came = outcome == REDIS_ANSWERED && reply->type == REDIS_REPLY_ARRAY &&
			    reply->elements != 0;
	if (!shared->look_came)
		return;
	const struct slice peers = text_of(reply->element[0]);
	if (peers.len != 0)
		mcp_hub_see(&shared->channels->hub, slice_of(peers.at + 1, peers.len - 1),
			    peers.at[0] == 'J');
	for (size_t i = 1; i < reply->elements; i++)
		take_orphan(shared, text_of(reply->element[i]));
	if (reply->elements > 1)
		net_timer_set(shared->loop, &shared->timer, mcp_shared_now(shared) + MCP_LOOK_SOON);
}

/* It may be late: what it has moved must come. */
static const struct redis_call_type call_type = { .put = put_look, .done = on_done };

void mcp_shared_look_now(struct mcp_shared *shared)
{
	if (redis_call_pending(&shared->look_call))
		return;
	shared->look_call.type = &call_type;
	(void)!redis_script_run(shared->link, &shared->look, &shared->look_call);
}

static void on_timer(struct net_timer *timer)
{
	struct mcp_shared *shared = CONTAINER_OF(timer, struct mcp_shared, timer);

	const uint32_t doubts = alive_doubts(shared->alive);

	if (doubts != shared->doubts)
		mcp_hub_doubt(&shared->channels->hub);
	shared->doubts = doubts;
	mcp_shared_look_now(shared);
	net_timer_set(shared->loop, timer, mcp_shared_now(shared) + MCP_LOOK_EVERY);
}

void mcp_shared_look_begin(struct mcp_shared *shared)
{
	shared->timer.fire = on_timer;
	shared->doubts = alive_doubts(shared->alive);
	net_timer_set(shared->loop, &shared->timer, mcp_shared_now(shared) + MCP_LOOK_EVERY);
}
