/* api_edit.h - the provider's request, made of the caller's by changes of byte ranges (codec/mcp/mcp_edit.h).
 *
 * Nothing changes but what struct api_changes says: every other byte, white space and the order of members included,
 * is the caller's. Cold beside the bytes: only where a member is cut out, or one of a profile is looked for, the body is
 * walked over again. */
#ifndef CODEC_API_API_EDIT_H
#define CODEC_API_API_EDIT_H

#include "codec/api/api_request.h"
#include "codec/mcp/mcp_edit.h"
#include "codec/mcp/sampling.h"

enum api_system_rule {
	API_SYSTEM_AS_SENT,
	API_SYSTEM_PREFIXED, /* the policy's text, an empty line, the caller's */
	API_SYSTEM_FIXED, /* the policy's text alone. Whoever has system_later is refused by the caller of this */
};

struct api_changes {
	struct slice model; /* plain: what the provider calls it */
	/* The most tokens that the answer may have, at least 1: bounds above it are lowered to it, and in Chat, where there is
	 * none, it is written. 0: bounds stay (count_tokens). */
	uint32_t tokens_max;
	bool completion_tokens; /* written as max_completion_tokens, not as max_tokens */
	bool usage;             /* Chat: a stream asks for its usage */
	bool store_never;       /* Chat: store is false */
	bool calls_never; /* tools stay, but the answer is to have no calls: tool_choice, function_call */
	bool user_dropped; /* metadata.user_id, user and safety_identifier are cut out */
	enum api_system_rule system_rule;
	struct slice system; /* the inside of a JSON string */
	struct slice
		body; /* members that are added where the caller has none of that name: JSON text of an object
			      * without its braces, or empty */
};

struct api_changed {
	adjust_set adjustments;
	bool store_disabled; /* it was true */
	uint64_t tokens;     /* the bound that was sent, for each of n answers; 0: none */
};

/* Adds the edits of `changes` to *edits, which was begun with request->body. ERR_OK: *out; ERR_BUSY: memory is exhausted.
 * What the edits point to is the changes' or lies in edits->into. */
MUST_USE enum err api_edit_make(struct mcp_edits *edits, const struct api_request *request,
				const struct api_changes *changes, struct api_changed *out);

/* Plain bytes as JSON text of a string, quotes included, in `into`; absent: no memory. */
MUST_USE struct slice api_quoted(struct slice plain, struct arena *into);

#endif
