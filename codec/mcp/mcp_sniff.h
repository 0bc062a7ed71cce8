/* mcp_sniff.h - decides from the front of a message that it passes, so that a large one need not be held.
 *
 * The message comes in pieces of any size; each byte is looked at once. What decides is a member of the outermost
 * object: `result` or `error`, as soon as its value begins and is not null. Such a message is no request, whatever follows
 * (mcp_message_read says the same of it). A `method` decides nothing before the end, because of several the last one
 * counts. With `rounds` (a call of 2026-07-28 into which sampling was injected) a result is decided by its resultType:
 * anything but input_required passes.
 *
 * MCP_SNIFF_PASS is final, and never contradicts mcp_message_samples on the whole message; mcp_message_asks only where a
 * resultType is there twice: the first one decides here, the last one there. */
#ifndef CODEC_MCP_MCP_SNIFF_H
#define CODEC_MCP_MCP_SNIFF_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum mcp_sniffed {
	MCP_SNIFF_UNDECIDED, /* more bytes may decide */
	MCP_SNIFF_PASS,      /* it passes as it is */
	MCP_SNIFF_HOLD, /* only the whole message decides: an array, a request for input, no JSON */
};

enum {
	MCP_SNIFF_WORD = 96
}; /* more than a name, or input_required, takes with every letter escaped */

struct mcp_sniff {
	/* private */
	enum mcp_sniffed got;
	enum mcp_sniffed word_says; /* once the member with it has its end */
	uint8_t state;
	uint8_t level;  /* 1: the outermost object; 2: its result */
	uint8_t member; /* the one under way */
	bool rounds, escaped;
	uint8_t word_len; /* of `word`; MCP_SNIFF_WORD: it is longer, and none that is known */
	size_t depth;     /* of brackets open in the value that is passed over */
	char word[MCP_SNIFF_WORD];
};

void mcp_sniff_init(struct mcp_sniff *sniff, bool rounds);

/* The next bytes; what is decided stays decided. */
enum mcp_sniffed mcp_sniff_feed(struct mcp_sniff *sniff, struct slice bytes);

#endif
