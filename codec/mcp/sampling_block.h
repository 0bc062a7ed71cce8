/* sampling_block.h - a content block under way; private to codec/sampling_*.c.
 *
 * Members may come in any order, so a block's are kept until its end, where `type` says which of them
 * count: sampling_block.c reads them, sampling_block_build.c judges them and makes the block. Only the
 * content of a tool result is decoded where it stands, as it may be most of the body. */
#ifndef CODEC_MCP_SAMPLING_BLOCK_H
#define CODEC_MCP_SAMPLING_BLOCK_H

#include "codec/mcp/sampling_decode.h"

/* Beside each other what follows each other. */
enum block_member {
	MEMBER_TYPE,
	MEMBER_TEXT,
	MEMBER_ID,
	MEMBER_NAME,
	MEMBER_INPUT,
	MEMBER_TOOL_USE_ID, /* three spellings, the first that is there counts */
	MEMBER_CONTENT,
	MEMBER_IS_ERROR,
	MEMBER_DATA,
	MEMBER_MIME,
	MEMBER_STRUCTURED,
	MEMBER_TOOL_USE_ID_SNAKE,
	MEMBER_TOOL_CALL_ID,
	MEMBER_URI,
	MEMBER_RESOURCE,
	MEMBER_BLOB, /* only in a resource's own object */
	MEMBER_COUNT
};

enum { BLOCK_TYPES = BLOCK_RESOURCE + 1 };

/* A block's members, as far as they were read. Filled by block_read_members, but for `inside`. */
struct block_members {
	const char *at; /* the block's brace */
	bool inside;    /* a tool result's content */
	size_t type;    /* BLOCK_TYPES until a known one was seen */
	uint32_t seen;  /* one bit per member of `fields` that is there and not null */
	struct field fields[MEMBER_COUNT];   /* not cleared */
	const char *data_clean, *blob_clean; /* that member is base64's alphabet up to there */

	/* a tool result's content, once decoded */
	bool content_done;
	uint32_t first;
	struct slice implied; /* a content that is an object is structured content as well */
};

/* Whether the member is there and not null. */
static inline bool block_has(const struct block_members *m, enum block_member member)
{
	return (m->seen >> member & 1) != 0;
}

/* ---- sampling_block.c ---- */

/* Reads a block of a message or, `inside`, of a tool result; the recursion through block_read_content ends
 * there. Like all here it returns false when something is wrong, which decode.fault or the reader has. */
bool decode_block(struct decode *d, bool inside);

/* Reads the members of the object at the reader's place; m->inside is the caller's. */
bool block_read_members(struct decode *d, struct block_members *m);

/* Reads the value of a tool result's `content` into d->inner; m->first says where it begins there. */
bool block_read_content(struct decode *d, struct block_members *m);

/* ---- sampling_block_build.c ---- */

/* Adds the block that m describes to those of the message or, if it is inside one, the tool result. */
bool block_add(struct decode *d, struct block_members *m);

/* ---- inline: what is done for every text ---- */

/* A block that is to be filled, at the end of a message's or of a tool result's; NULL after refusing: there are
 * too many. */
static inline struct block *block_new(struct decode *d, bool inside)
{
	if (d->blocks.count + d->inner.count >= d->limits->blocks_max) {
		(void)decode_refuse_here(d, ERR_CONTENT,
					 "the messages have too many content blocks");
		return NULL;
	}
	return decode_push(d, inside ? &d->inner : &d->blocks, sizeof(struct block));
}

/* Adds a text block; `text` is raw. */
static inline bool block_add_text(struct decode *d, bool inside, struct slice text)
{
	struct block *block = block_new(d, inside);

	if (block == NULL)
		return false;
	block->type = BLOCK_TEXT;
	block->is_error = false;
	block->text.text = text;
	if (!inside)
		d->types |= (uint32_t)1 << BLOCK_TEXT;
	return true;
}

#endif
