#include "gateway/store_redis_wire.h"

#include "codec/base/clock.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_AT_START = 16384, NUMBER_ROOM = 24 };

#define PAIR_BASE UINT64_C(1000000000)

/* ---- requests ---- */

void redis_buffer_clear(struct redis_buffer *buffer)
{
	buffer->len = 0;
	buffer->failed = false;
}

void redis_buffer_fini(struct redis_buffer *buffer)
{
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

static void put_bytes(struct redis_buffer *buffer, const char *bytes, size_t len)
{
	if (len == 0 || !make_room(buffer, len))
		return;
	(void)memcpy(buffer->at + buffer->len, bytes, len);
	buffer->len += len;
}

/* '*' or '$', a number, the line's end. */
static void put_line(struct redis_buffer *buffer, char type, size_t number)
{
	char text[NUMBER_ROOM];
	int len = snprintf(text, sizeof(text), "%c%zu\r\n", type, number);

	put_bytes(buffer, text, (size_t)len);
}

void redis_put_count(struct redis_buffer *buffer, uint32_t count)
{
	put_line(buffer, '*', count);
}

void redis_put(struct redis_buffer *buffer, struct slice argument)
{
	put_line(buffer, '$', argument.len);
	put_bytes(buffer, argument.at, argument.len);
	put_bytes(buffer, "\r\n", 2);
}

void redis_put_number(struct redis_buffer *buffer, int64_t number)
{
	char text[NUMBER_ROOM];
	int len = snprintf(text, sizeof(text), "%" PRId64, number);

	redis_put(buffer, slice_of(text, (size_t)len));
}

void redis_put_pair(struct redis_buffer *buffer, uint64_t value)
{
	redis_put_number(buffer, (int64_t)(value / PAIR_BASE));
	redis_put_number(buffer, (int64_t)(value % PAIR_BASE));
}

/* ---- answers ---- */

bool redis_read_verdict(const struct redisReply *reply, struct redis_verdict *out)
{
	enum { ELEMENTS = 6, VERDICTS = 7, SCOPES = 4 };

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != ELEMENTS)
		return false;
	for (size_t i = 0; i < ELEMENTS; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER ||
		    reply->element[i]->integer < 0)
			return false;
	const uint64_t code = (uint64_t)reply->element[0]->integer;
	const uint64_t wait_h = (uint64_t)reply->element[2]->integer;
	const uint64_t wait_l = (uint64_t)reply->element[3]->integer;
	const uint64_t scope = (uint64_t)reply->element[4]->integer;
	if (code >= VERDICTS || wait_l >= PAIR_BASE || scope >= SCOPES)
		return false;
	out->code = (uint32_t)code;
	out->scope = (uint32_t)scope;
	out->over = (uint64_t)reply->element[5]->integer;
	out->server_s = (uint64_t)reply->element[1]->integer;
	out->wait_ns =
		wait_h > UINT64_MAX / PAIR_BASE - 1 ? UINT64_MAX : wait_h * PAIR_BASE + wait_l;
	return true;
}
