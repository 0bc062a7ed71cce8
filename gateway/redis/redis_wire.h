/* redis_wire.h - commands to Redis as bytes, and numbers packed as Lua's struct.unpack reads them.
 *
 * Pure, but for memory. Commands of a tick gather in one buffer. */
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
/* Likewise, of `len` bytes that the caller writes to where this returns before anything else is put; NULL: there is no
 * room. */
char *redis_put_room(struct redis_buffer *buffer, size_t len);
void redis_put_number(struct redis_buffer *buffer, uint32_t number);
/* As the beginning of a longer argument: writes its digits, at most REDIS_NUMBER_ROOM, and returns how many. */
enum { REDIS_NUMBER_ROOM = 10 };
size_t redis_number_text(char *out, uint32_t number);

/* One argument of numbers as scripts unpack them: little-endian, of 1, 4 or 8 bytes. */
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
/* The low `bytes` of a value, as redis_pack_byte and _number. */
void redis_pack_low(struct redis_pack *pack, uint64_t value, size_t bytes);
void redis_put_pack(struct redis_buffer *buffer, const struct redis_pack *pack);

/* The reply to TIME. False when it is anything else. */
MUST_USE bool redis_read_time(const struct redisReply *reply, uint64_t *wall_ns);

#endif
