/* redis_wire.h - requests to Redis as bytes, and the few numbers that its answers hold.
 *
 * Pure, but for memory. Requests of a tick gather in one buffer. What is packed has the formats that
 * limits/limits.lua names. */
#ifndef GATEWAY_REDIS_REDIS_WIRE_H
#define GATEWAY_REDIS_REDIS_WIRE_H

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
void redis_put_number(struct redis_buffer *buffer, uint32_t number);
/* As the beginning of a longer argument: writes its digits, at most REDIS_NUMBER_ROOM, and returns how many. */
enum { REDIS_NUMBER_ROOM = 10 };
size_t redis_number_text(char *out, uint32_t number);

/* One argument of numbers as limits.lua unpacks them: little-endian, of 1, 4 or 8 bytes. */
enum { REDIS_PACK_ROOM = 256 };
struct redis_pack {
	size_t len;
	uint8_t at[REDIS_PACK_ROOM]; /* enough for everything that is packed: more is our bug */
};
void redis_pack_byte(struct redis_pack *pack, uint8_t value);
void redis_pack_number(struct redis_pack *pack, uint32_t value);
void redis_pack_bytes(struct redis_pack *pack, const void *bytes, size_t len);
/* Time in ns or money in nano-USD: value / 10^9 and the rest, 4 bytes each, because Lua's numbers are
 * exact up to 2^53 only. Saturates at 2^32 seconds, or USD. */
void redis_pack_amount(struct redis_pack *pack, uint64_t value);
/* A rate or a burst: five bytes. */
void redis_pack_units(struct redis_pack *pack, uint64_t units);
/* Where limits.lua keeps rates: the end of an entry that holds no place. */
void redis_pack_no_place(struct redis_pack *pack);
/* An amount that no other one exceeds. */
void redis_pack_unbound(struct redis_pack *pack);
void redis_put_pack(struct redis_buffer *buffer, const struct redis_pack *pack);

enum {
	REDIS_FIGURES_BYTES = 52,
	REDIS_BIRTH_BYTES = 8,
	REDIS_WORKER_BYTES = 8,
	REDIS_VERDICT_SCOPES = 4
};

/* The verdict of limits.lua, by its numbers: granted, the limit in the way, or one that is too small for the
 * request at any time. */
enum redis_verdict_code {
	REDIS_GRANTED,
	REDIS_REQUESTS,
	REDIS_TOKENS,
	REDIS_PLACES,
	REDIS_DAY,
	REDIS_MONTH,
	REDIS_OVER_BURST,
	REDIS_OVER_DAY,
	REDIS_OVER_MONTH,
	REDIS_VERDICTS
};

/* What limits.lua returns for `scopes` scopes. False when the reply is anything else. */
struct redis_verdict {
	uint32_t code;
	uint32_t scope; /* which refuses */
	uint32_t over;  /* five bits a scope: limits that would have refused, but count only */
	uint64_t server_s;
	uint64_t wait_ns; /* 0 where money is in the way */
	uint64_t left,
		budget; /* nano-USD, where it is; the whole budget only where it is too small */
	uint8_t births[REDIS_VERDICT_SCOPES][REDIS_BIRTH_BYTES]; /* of each scope's state */
};
MUST_USE bool redis_read_verdict(const struct redisReply *reply, uint32_t scopes,
				 struct redis_verdict *out);

/* The reply to TIME. False when it is anything else. */
MUST_USE bool redis_read_time(const struct redisReply *reply, uint64_t *wall_ns);

/* A scope's state, as limits.lua keeps it; with `reply` nil, all zero. Times are Redis's wall clock in
 * ns; money is that of the periods which `wall_ns` lies in; of the places those whose lease lasts. False
 * when the reply is no such state. */
struct redis_rate {
	uint64_t ns;
	uint64_t written;   /* units a minute that it is of; 0: not known */
	uint64_t bursts[2]; /* used lately: the latest, and a larger one or 0; */
	uint32_t ages[2];   /* seconds ago */
};
struct redis_state {
	struct redis_rate requests, tokens;
	uint64_t places;
	uint64_t day, day_more, month, month_more;
};
MUST_USE bool redis_read_state(const struct redisReply *reply, uint64_t wall_ns,
			       struct redis_state *out);

#endif
