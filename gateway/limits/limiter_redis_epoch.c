/* limiter_redis_epoch.c - whether Redis still has what was reported to it.
 *
 * One key stands for the whole store. When it is gone, or is another one, everything was lost (flushed,
 * restarted empty, another server), and every tenant whose money this worker had reported is reported again, a
 * few at a time, traffic or not. It is looked at when the connection is ready, with every renewal of
 * leases, and when the state of a tenant turns out to be new. */
#include "gateway/limits/limiter_redis_parts.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define EPOCH_TTL_MS "3456000000" /* 40 days, as limits.lua */

/* At once, of 2 ms: 2,000 a second, of which Redis takes a multiple. */
enum { AGAIN_AT_ONCE = 4 };

static bool same_name(const struct redis_pack *a, const struct redis_pack *b)
{
	return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static void on_epoch(struct redis_call *call, enum redis_outcome outcome,
		     const struct redisReply *reply)
{
	struct limiter_redis *redis = CONTAINER_OF(call, struct limiter_redis, epoch_call);
	struct redis_pack found = redis->asked_epoch; /* with nil, ours is the first */

	if (outcome != REDIS_ANSWERED)
		return;
	if (reply->type == REDIS_REPLY_STRING) {
		found.len = 0;
		redis_pack_bytes(&found, reply->str,
				 (size_t)reply->len < sizeof(found.at) ? (size_t)reply->len
								       : sizeof(found.at));
	}
	const bool lost = redis->epoch.len != 0 && !same_name(&redis->epoch, &found);
	redis->epoch = found;
	if (!lost)
		return;
	redis->unreported = redis->known.count;
	limiter_redis_flush_soon(redis);
}

static const struct redis_call_type call_type = { .done = on_epoch };

/* Of several that ask at the same time, the first one's name stays: the others learn it. */
void limiter_redis_ask_epoch(struct limiter_redis *redis)
{
	if (redis_call_pending(&redis->epoch_call))
		return;
	struct redis_buffer *to = redis_link_begin(redis->link);
	if (to == NULL)
		return;
	struct redis_pack name = { 0 };
	redis_pack_bytes(&name, redis->me, sizeof(redis->me));
	redis_pack_number(&name, ++redis->names); /* never twice the same */
	redis_put_count(to, 7);
	redis_put(to, SLICE("SET"));
	redis_put(to, SLICE("sluice:2:birth"));
	redis_put_pack(to, &name);
	redis_put(to, SLICE("NX"));
	redis_put(to, SLICE("GET"));
	redis_put(to, SLICE("PX"));
	redis_put(to, SLICE(EPOCH_TTL_MS));
	redis->epoch_call.type = &call_type;
	if (redis_link_send(redis->link, &(struct redis_command){ .call = &redis->epoch_call }))
		redis->asked_epoch = name;
}

static bool has_reported(const struct redis_tenant *tenant)
{
	for (uint32_t i = 0; i < PERIODS; i++)
		if (tenant->money[i].reported != 0 || tenant->money[i].topped_up != 0)
			return true;
	return false;
}

bool limiter_redis_report_again(struct limiter_redis *redis)
{
	uint32_t left = AGAIN_AT_ONCE;

	while (redis->unreported != 0 && left != 0) {
		struct redis_tenant *tenant =
			&redis->tenants[redis->known.at[redis->unreported - 1]];
		if (has_reported(tenant)) {
			if (!limiter_redis_report(redis, &tenant, 1))
				return false;
			left--;
		}
		redis->unreported--;
	}
	return redis->unreported == 0;
}
