/* h2_guard_parts.h - what the files of h2_guard share: private to h2_guard*.c. */
#ifndef GATEWAY_HTTP_H2_GUARD_PARTS_H
#define GATEWAY_HTTP_H2_GUARD_PARTS_H

#include "gateway/http/h2_guard.h"

/* RFC 9113 6 and 4.1. */
enum frame_type {
	FRAME_DATA,
	FRAME_HEADERS,
	FRAME_PRIORITY,
	FRAME_RST_STREAM,
	FRAME_SETTINGS,
	FRAME_PUSH_PROMISE,
	FRAME_PING,
	FRAME_GOAWAY,
	FRAME_WINDOW_UPDATE,
	FRAME_CONTINUATION,
	FRAME_TYPES
};
enum { FLAG_END_STREAM = 1, FLAG_END_HEADERS = 4, FLAG_PADDED = 8, FLAG_PRIORITY = 0x20 };
enum { HEADER_LEN = 9, LENGTH_LEN = 3, FLAGS_AT = 4 };
enum { PRIORITY_LEN = 5 }; /* in front of a header block */

/* One that costs us more than its sender. */
enum { COST_EMPTY = 5 };

struct frame {
	char *at; /* in the input */
	uint32_t len, stream;
	uint8_t type, flags;
};

/* The input on its way to h2o. */
struct pass {
	char *input;
	size_t len;
	size_t from; /* is looked at next */
	size_t to;   /* what h2o is to see goes here */
};

/* ---- h2_guard.c ---- */

/* Of the next `len` bytes, what is there. */
void guard_pass_keep(struct pass *pass, size_t len);

/* False: they are used up. */
MUST_USE bool guard_tokens_pay(struct h2_guard *guard, int32_t cost, nsec_t now);

/* ---- h2_guard_split.c: header blocks in several frames ---- */

/* `frame` is HEADERS without END_HEADERS, and judged: its block is open from now on. */
MUST_USE enum guard_verdict guard_split_begin(struct h2_guard *guard, const struct frame *frame,
					      nsec_t now);

/* The next frame while a block is open: its payload joins the block. */
MUST_USE enum guard_verdict guard_split_go_on(struct h2_guard *guard, struct pass *pass,
					      const struct frame *frame, nsec_t now);

#endif
