/* mcp_buffer.h - bytes that grow, in an arena. Zero is an empty one. */
#ifndef GATEWAY_FRONT_MCP_MCP_BUFFER_H
#define GATEWAY_FRONT_MCP_MCP_BUFFER_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

struct mcp_buffer {
	char *at;
	size_t len, room;
};

/* Adds a copy of `bytes`. False: the arena is exhausted, and nothing was added. Each time that the buffer grows, its room
 * at least doubles, so that the arena holds at most twice of what the buffer has. */
MUST_USE bool mcp_buffer_add(struct mcp_buffer *buffer, struct arena *arena, struct slice bytes);

/* Removes the first `len` bytes. */
void mcp_buffer_drop(struct mcp_buffer *buffer, size_t len);

static inline struct slice mcp_buffer_slice(const struct mcp_buffer *buffer)
{
	return slice_of(buffer->at, buffer->len);
}

#endif
