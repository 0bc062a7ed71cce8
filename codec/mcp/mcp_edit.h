/* mcp_edit.h - edits of a message as byte ranges, so that everything else stays as its author wrote it.
 *
 *   struct mcp_edits edits;
 *   mcp_edits_init(&edits, text, arena);
 *   mcp_edits_put(&edits, message.id, fresh);
 *   mcp_edits_write(&edits, &gather);
 *
 * Positions are slices of `text`: what mcp_message_read and json_loose.h have cut off from it. Edits are added in any
 * order (in the order of the text it costs the least), and must not overlap; of several at one place the first added
 * stands first. All slices are borrowed until the edited text was taken. The first MCP_EDITS_FEW take no memory; further
 * ones (samplings out of a large batch) take it from the arena. Failure is sticky. */
#ifndef CODEC_MCP_MCP_EDIT_H
#define CODEC_MCP_MCP_EDIT_H

#include "codec/json/json_loose.h"
#include "codec/json/json_write.h"
#include "codec/mcp/mcp_message.h"

/* In place of `at`, a part of the text that may be empty, comes `put`, which may be empty. */
struct mcp_edit {
	struct slice at, put;
};

enum { MCP_EDITS_FEW = 16 };

struct mcp_edits {
	struct slice text;
	struct mcp_edit *list; /* in the text's order */
	uint32_t count, cap;
	struct arena *into;
	bool failed; /* memory was exhausted: the list is not whole */
	struct mcp_edit few[MCP_EDITS_FEW];
};

/* Begins with none. The struct must stay where it is. */
void mcp_edits_init(struct mcp_edits *edits, struct slice text, struct arena *into);

void mcp_edits_put(struct mcp_edits *edits, struct slice at, struct slice put);

/* `value` (JSON text) becomes the member `name` (plain ASCII, static) of `object`, an object: it replaces `there`, that
 * member's value as json_loose_member or mcp_message_read has cut it off; absent, it is put in front. */
void mcp_edits_member(struct mcp_edits *edits, struct slice object, const char *name,
		      struct slice there, struct slice value);

/* ---- the edited text ---- */

/* Its length; not after a failure. */
size_t mcp_edits_len(const struct mcp_edits *edits);

/* Its pieces, one after the other: false behind the last one. *at is 0 at first. Not after a failure. */
MUST_USE bool mcp_edits_next(const struct mcp_edits *edits, size_t *at, struct slice *piece);

/* All of it into a gather list, which keeps long pieces by reference: ERR_OK, or ERR_BUSY when memory ran out here or
 * before. The list is not closed. */
MUST_USE enum err mcp_edits_write(const struct mcp_edits *edits, struct gather *out);

/* All of it in one piece in `into`; absent: memory ran out, here or before. */
MUST_USE struct slice mcp_edits_flat(const struct mcp_edits *edits, struct arena *into);

/* ---- taking members out ----
 *
 *   mcp_cut_begin(&cut, &edits, array);
 *   while (mcp_cut_next(&cut))
 *           if (... cut.walk.value ...)
 *                   mcp_cut_drop(&cut);
 *   if (cut.left == 0) nothing remains
 */

struct mcp_cut {
	struct json_loose_walk walk; /* the member that mcp_cut_next has moved to */
	uint32_t left;               /* members that stay, so far */
	/* private */
	struct mcp_edits *edits;
	bool moved;
};

/* `container` is an object or array of the text. Where it is not JSON (json_loose_sound), the walk ends at the fault,
 * and what stands behind it stays. */
void mcp_cut_begin(struct mcp_cut *cut, struct mcp_edits *edits, struct slice container);
MUST_USE bool mcp_cut_next(struct mcp_cut *cut);
/* The member goes out with one comma. Once for each; it may not be edited otherwise. */
void mcp_cut_drop(struct mcp_cut *cut);

/* ---- what a proxy does to MCP's messages ---- */

/* `value` becomes capabilities.sampling. False: capabilities is no object, nothing was done. */
bool mcp_edits_declare(struct mcp_edits *edits, const struct mcp_declaration *declaration,
		       struct slice value);

/* capabilities.sampling is cut out, however often it is there. */
void mcp_edits_undeclare(struct mcp_edits *edits, const struct mcp_declaration *declaration);

/* The next round of a call: `params`, an object, gets inputResponses, of which the pieces of `answers` are the members
 * with their commas, and requestState (absent: none) in place of those that it has. */
void mcp_edits_round(struct mcp_edits *edits, struct slice params, const struct slice *answers,
		     size_t count, struct slice state);

/* Entries that sample leave inputRequests, an object; how many stay. */
uint32_t mcp_edits_unsample(struct mcp_edits *edits, struct slice input_requests);

#endif
