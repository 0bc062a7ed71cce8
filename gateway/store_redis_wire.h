/* store_redis_wire.h - requests to Redis as bytes, and the few numbers that its answers hold.
 *
 * Pure, but for memory. Requests of a tick gather in one buffer. */
#ifndef GATEWAY_STORE_REDIS_WIRE_H
#define GATEWAY_STORE_REDIS_WIRE_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;

/* Grows when it must; where memory or `most` is refused, `failed` stays set until redis_buffer_clear
 * and nothing is added. */
struct redis_buffer {
	char *at;
	size_t len, room, most;
	bool failed;
};
void redis_buffer_clear(struct redis_buffer *buffer);
void redis_buffer_fini(struct redis_buffer *buffer);

/* A request is its number of arguments, then each of them. */
void redis_put_count(struct redis_buffer *buffer, uint32_t count);
void redis_put(struct redis_buffer *buffer, struct slice argument);
void redis_put_number(struct redis_buffer *buffer, int64_t number);
/* Two arguments, value / 10^9 and the rest: Lua's numbers are exact up to 2^53 only. */
void redis_put_pair(struct redis_buffer *buffer, uint64_t value);

/* What limits.lua returns. False when the reply is anything else. */
struct redis_verdict {
	uint32_t code;
	uint32_t scope; /* which refuses */
	uint64_t server_s;
	uint64_t wait_ns; /* saturates */
	uint64_t over;    /* five bits a scope: limits that would have refused, but count only */
};
MUST_USE bool redis_read_verdict(const struct redisReply *reply, struct redis_verdict *out);

#endif
