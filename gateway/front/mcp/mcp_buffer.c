#include "gateway/front/mcp/mcp_buffer.h"

#include "codec/base/must.h"

enum { ROOM_MIN = 1024 };

bool mcp_buffer_add(struct mcp_buffer *buffer, struct arena *arena, struct slice bytes)
{
	if (bytes.len == 0)
		return true;
	if (bytes.len > buffer->room - buffer->len) {
		size_t room = buffer->room < ROOM_MIN ? ROOM_MIN : 2 * buffer->room;
		while (room - buffer->len < bytes.len)
			room *= 2;
		char *at = arena_take(arena, room);
		if (at == NULL)
			return false;
		if (buffer->len != 0)
			(void)memcpy(at, buffer->at, buffer->len);
		buffer->at = at;
		buffer->room = room;
	}
	(void)memcpy(buffer->at + buffer->len, bytes.at, bytes.len);
	buffer->len += bytes.len;
	return true;
}

void mcp_buffer_drop(struct mcp_buffer *buffer, size_t len)
{
	must(len <= buffer->len);
	buffer->len -= len;
	if (buffer->len != 0 && len != 0)
		(void)memmove(buffer->at, buffer->at + len, buffer->len);
}
