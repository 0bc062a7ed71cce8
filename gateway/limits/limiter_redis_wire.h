/* limiter_redis_wire.h - what limits/limits.lua is told and answers, but for what redis_wire.h packs.
 *
 * Pure. The formats are those that the script names. */
#ifndef GATEWAY_LIMITS_LIMITER_REDIS_WIRE_H
#define GATEWAY_LIMITS_LIMITER_REDIS_WIRE_H

#include "gateway/redis/redis_wire.h"

/* A rate or a burst: five bytes. */
void limiter_pack_units(struct redis_pack *pack, uint64_t units);
/* Where limits.lua keeps rates: the end of an entry that holds no place. */
void limiter_pack_no_place(struct redis_pack *pack);
/* An amount that no other one exceeds. */
void limiter_pack_unbound(struct redis_pack *pack);

enum {
	LIMITER_FIGURES_BYTES = 52,
	LIMITER_EPOCH_BYTES = 8,
	LIMITER_WORKER_BYTES = 8,
	LIMITER_VERDICT_SCOPES = 4
};

/* The verdict of limits.lua, by its numbers: granted, the limit in the way, or one that is too small for the
 * request at any time. */
enum limiter_verdict_code {
	VERDICT_GRANTED,
	VERDICT_REQUESTS,
	VERDICT_TOKENS,
	VERDICT_PLACES,
	VERDICT_DAY,
	VERDICT_MONTH,
	VERDICT_OVER_BURST,
	VERDICT_OVER_DAY,
	VERDICT_OVER_MONTH,
	VERDICT_COUNT
};

/* What limits.lua returns for `scopes` scopes. False when the reply is anything else. */
struct limiter_verdict {
	uint32_t code;
	uint32_t scope; /* which refuses */
	uint32_t over;  /* five bits a scope: limits that would have refused, but count only */
	uint64_t server_s;
	uint64_t wait_ns; /* 0 where money is in the way */
	uint64_t left,
		budget; /* nano-USD, where it is; the whole budget only where it is too small */
	uint8_t epochs[LIMITER_VERDICT_SCOPES][LIMITER_EPOCH_BYTES]; /* of each scope's state */
};
/* `tells`: the claim was one that is told what is left, which limiter_read_left reads then. */
MUST_USE bool limiter_read_verdict(const struct redisReply *reply, uint32_t scopes, bool tells,
				   struct limiter_verdict *out);

/* Redis's clock, and when each scope's rates are free again by it, in ns. */
struct limiter_told {
	uint64_t now_ns;
	struct {
		uint64_t requests, tokens;
	} free_at[LIMITER_VERDICT_SCOPES];
};
void limiter_read_left(const struct redisReply *reply, uint32_t scopes, uint64_t server_s,
		       struct limiter_told *out);

/* A scope's state, as limits.lua keeps it; with `reply` nil, all zero. Times are Redis's wall clock in
 * ns; money is that of the periods which `wall_ns` lies in; of the places those whose lease lasts. False
 * when the reply is no such state. */
struct limiter_rate {
	uint64_t ns;
	uint64_t written;   /* units a minute that it is of; 0: not known */
	uint64_t bursts[2]; /* used lately: the latest, and a larger one or 0; */
	uint32_t ages[2];   /* seconds ago */
};
struct limiter_state {
	struct limiter_rate requests, tokens;
	uint64_t places;
	uint64_t day, day_more, month, month_more;
};
MUST_USE bool limiter_read_state(const struct redisReply *reply, uint64_t wall_ns,
				 struct limiter_state *out);

#endif
