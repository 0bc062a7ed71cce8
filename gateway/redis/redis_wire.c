#include "gateway/redis/redis_wire.h"

#include "codec/base/clock.h"
#include "codec/base/must.h"

#include <endian.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_AT_START = 16384, NUMBER_ROOM = 20, LINE_ROOM = NUMBER_ROOM + 3 };
enum { NUMBER_BYTES = 4 };

#define PAIR_BASE UINT64_C(1000000000) /* of an amount */

/* ---- requests ---- */

void redis_buffer_clear(struct redis_buffer *buffer)
{
	buffer->len = 0;
	buffer->failed = false;
}

void redis_buffer_fini(struct redis_buffer *buffer)
{
	if (buffer->at != NULL)
		explicit_bzero(buffer->at, buffer->room); /* it may have had a password */
	free(buffer->at);
	*buffer = (struct redis_buffer){ .most = buffer->most };
}

static bool make_room(struct redis_buffer *buffer, size_t more)
{
	size_t room = buffer->room == 0 ? BUFFER_AT_START : buffer->room;

	if (buffer->failed || more > buffer->most - buffer->len) {
		buffer->failed = true;
		return false;
	}
	while (room < buffer->len + more)
		room *= 2;
	if (room != buffer->room) {
		char *grown = realloc(buffer->at, room);
		buffer->failed = grown == NULL;
		if (buffer->failed)
			return false;
		buffer->at = grown;
		buffer->room = room;
	}
	return true;
}

/* The digits of `number` at the end of `text`; returns where they begin. */
static size_t digits_of(char text[NUMBER_ROOM], uint64_t number)
{
	size_t at = NUMBER_ROOM;

	do {
		text[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	return at;
}

/* '*' or '$', a number, the line's end: at `to`, which has room for it. Returns how long it is. */
static size_t write_line(char *to, char type, uint64_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number), digits = NUMBER_ROOM - at;

	to[0] = type;
	(void)memcpy(to + 1, text + at, digits);
	(void)memcpy(to + 1 + digits, "\r\n", 2);
	return 1 + digits + 2;
}

void redis_put_count(struct redis_buffer *buffer, uint32_t count)
{
	if (make_room(buffer, LINE_ROOM))
		buffer->len += write_line(buffer->at + buffer->len, '*', count);
}

void redis_put(struct redis_buffer *buffer, struct slice argument)
{
	if (argument.len > buffer->most || !make_room(buffer, 2 * LINE_ROOM + argument.len)) {
		buffer->failed = true;
		return;
	}
	char *to = buffer->at + buffer->len;
	to += write_line(to, '$', argument.len);
	if (argument.len != 0)
		(void)memcpy(to, argument.at, argument.len);
	(void)memcpy(to + argument.len, "\r\n", 2);
	buffer->len = (size_t)(to - buffer->at) + argument.len + 2;
}

char *redis_put_room(struct redis_buffer *buffer, size_t len)
{
	if (len > buffer->most || !make_room(buffer, 2 * LINE_ROOM + len)) {
		buffer->failed = true;
		return NULL;
	}
	char *to = buffer->at + buffer->len;
	to += write_line(to, '$', len);
	(void)memcpy(to + len, "\r\n", 2);
	buffer->len = (size_t)(to - buffer->at) + len + 2;
	return to;
}

void redis_put_number(struct redis_buffer *buffer, uint32_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number);

	redis_put(buffer, slice_of(text + at, NUMBER_ROOM - at));
}

size_t redis_number_text(char *out, uint32_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number);

	(void)memcpy(out, text + at, NUMBER_ROOM - at);
	return NUMBER_ROOM - at;
}

void redis_put_pack(struct redis_buffer *buffer, const struct redis_pack *pack)
{
	redis_put(buffer, slice_of((const char *)pack->at, pack->len));
}

/* ---- packed numbers ---- */

void redis_pack_bytes(struct redis_pack *pack, const void *bytes, size_t len)
{
	must(len <= sizeof(pack->at) - pack->len);
	(void)memcpy(pack->at + pack->len, bytes, len);
	pack->len += len;
}

void redis_pack_low(struct redis_pack *pack, uint64_t value, size_t bytes)
{
	value = htole64(value);
	redis_pack_bytes(pack, &value, bytes);
}

void redis_pack_byte(struct redis_pack *pack, uint8_t value)
{
	redis_pack_low(pack, value, 1);
}

void redis_pack_number(struct redis_pack *pack, uint32_t value)
{
	redis_pack_low(pack, value, NUMBER_BYTES);
}

void redis_pack_amount(struct redis_pack *pack, uint64_t value)
{
	const uint64_t high = value / PAIR_BASE;

	redis_pack_low(pack, high < UINT32_MAX ? high : UINT32_MAX, NUMBER_BYTES);
	redis_pack_low(pack, value % PAIR_BASE, NUMBER_BYTES);
}

/* ---- answers ---- */

static bool is_string(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

static bool read_digits(const struct redisReply *reply, uint64_t *out)
{
	char *end;

	if (!is_string(reply) || reply->len == 0 || reply->len > 18) /* below 10^18 */
		return false;
	*out = strtoull(reply->str, &end, 10);
	return end == reply->str + reply->len && reply->str[0] != '-';
}

bool redis_read_time(const struct redisReply *reply, uint64_t *wall_ns)
{
	uint64_t s, us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !read_digits(reply->element[0], &s) || !read_digits(reply->element[1], &us) ||
	    s >= UINT64_MAX / SEC || us >= SEC / USEC)
		return false;
	*wall_ns = s * SEC + us * USEC;
	return true;
}
