/* mcp_out.h - the client's side of an answer that comes in pieces. HTTP has one piece at a time; meanwhile the next one is
 * collected. */
#ifndef GATEWAY_FRONT_MCP_MCP_OUT_H
#define GATEWAY_FRONT_MCP_MCP_OUT_H

#include "gateway/front/mcp/mcp_buffer.h"
#include "gateway/http/http.h"

enum {
	MCP_OUT_MAX =
		64 << 10 /* bytes that wait for the client before its server is not read any more */
};
#define MCP_KEEPALIVE (20 * SEC) /* between two bytes of an open stream; then a comment is sent */

struct mcp_out {
	struct http_exchange *exchange; /* NULL: the client is gone, and nothing is kept for it */
	struct net_loop *loop;          /* NULL: it never was begun */
	int status;
	const struct http_field *fields;
	size_t field_count;
	/* Added since; given to HTTP, unchanged until it is ready. */
	struct mcp_piece {
		struct mcp_buffer bytes;
		struct arena room; /* for them */
	} filling, flying;
	bool begun, busy, ended, broken;
	bool rests;         /* the stream may be silent for hours (http_rest) */
	bool between;       /* two events: a comment may stand here */
	bool over;          /* http_end or http_cut was called */
	struct iovec whole; /* of an answer that was there before any of it had left */
	struct net_task soon;
	struct net_timer silence;
	/* All that waited for the client has left: more may be read. */
	void (*drained)(struct mcp_out *out);
};

/* What waits is held in memory of `arenas`. Fields must live as long as the answer. Nothing leaves yet. `rests`: the stream may be silent for hours. */
void mcp_out_init(struct mcp_out *out, struct net_loop *loop, struct arena_pool *arenas,
		  struct http_exchange *exchange, bool rests, void (*drained)(struct mcp_out *out));
void mcp_out_head(struct mcp_out *out, int status, const struct http_field *fields,
		  size_t field_count);

/* Bytes for the client, copied; they leave at the end of this turn. False: no memory. */
MUST_USE bool mcp_out_add(struct mcp_out *out, struct slice bytes);

/* Status and fields leave, with what was added, at the end of this turn. */
void mcp_out_flush(struct mcp_out *out);

/* Bytes that have not left. */
size_t mcp_out_waits(const struct mcp_out *out);

/* All was added; `broken`: the stream did not come to its end, and the client must see that. `sent` follows. */
void mcp_out_end(struct mcp_out *out, bool broken);

/* As http_handler.ready. */
void mcp_out_ready(struct mcp_out *out);

/* The client is gone, or the exchange is over: no call of HTTP any more. Harmless when repeated, or when it never was. */
void mcp_out_drop(struct mcp_out *out);

#endif
