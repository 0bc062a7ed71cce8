/* store_redis_parts.h - what the files of the Redis store share: private to store_redis*.c. */
#ifndef GATEWAY_STORE_REDIS_PARTS_H
#define GATEWAY_STORE_REDIS_PARTS_H

#include "gateway/metrics.h"
#include "gateway/store.h"
#include "gateway/store_redis_link.h"

enum {
	REDIS_MAGIC = 0x52454453,
	ID_HEX = 16,
	PERIODS = 4, /* two days, two months */
};

/* Money of one period: what Redis holds of ours, and what it has yet to be told. */
struct redis_money {
	uint32_t period;
	uint64_t told, more, less;
};

/* A tenant, or a part of one that has limits of its own, as this worker knows it: by its slot's number
 * in the limit table. */
struct redis_tenant {
	uint8_t tag[16], key[16]; /* the tenant's, which is the hash tag, and its own */
	bool known, dirty;
	bool active;         /* on the list of those whose places are renewed */
	bool renew;          /* its leases begin anew with the next request */
	uint32_t held;       /* places of requests in flight */
	uint32_t given_back; /* places that Redis has not been told of */
	uint64_t requests_less, tokens_more, tokens_less; /* ns */
	struct redis_money money[PERIODS]; /* days by parity, then months by parity */
};

/* Numbers of tenants, each at most once; room for all of them. */
struct tenant_list {
	uint32_t *at;
	uint32_t count;
};

struct store_redis {
	struct store store;
	uint32_t magic;
	struct net_loop *loop;
	struct limit_table *table;
	struct metrics_worker *metrics;
	struct redis_link *link;
	struct redis_tenant *tenants; /* pages that are never used cost no memory */
	struct tenant_list dirty, active;
	struct net_timer flush, renew;
	char me[ID_HEX + 1]; /* chance: process and worker */
	uint64_t generation; /* of the connection */
	bool loaded;         /* Redis has the script */
	uint16_t port;
};

static inline uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- store_redis_tell.c: what Redis holds of this worker, and what it has yet to be told ---- */

/* Of a scope whose slot is known. */
struct redis_tenant *store_redis_tenant(struct store_redis *redis,
					const struct reservation *reservation, uint32_t scope);

/* There is something to tell: it leaves with the tenant's next claim, or within milliseconds. */
void store_redis_touch(struct store_redis *redis, struct redis_tenant *tenant);
bool store_redis_has_news(const struct redis_tenant *tenant);

/* What was used in the periods of `wall_s` beyond, or short of, what Redis has counted. */
void store_redis_owe(struct redis_tenant *tenant, uint64_t wall_s, uint64_t more, uint64_t less);
/* Redis has counted that for this worker. */
void store_redis_note_told(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd);

void store_redis_hold_place(struct store_redis *redis, struct redis_tenant *tenant);

/* A request that told something was refused, or `lost`: nobody knows whether it was done. */
void store_redis_part_back(struct store_redis *redis, const struct redis_part *part, bool lost);

/* Sends what there is to tell; the second with a claim on all of the reservation's scopes, whose
 * ticket it fills in. False: not now. */
MUST_USE bool store_redis_tell(struct store_redis *redis, struct redis_tenant *tenant);
MUST_USE bool store_redis_claim(struct store_redis *redis, struct reservation *reservation);

#endif
