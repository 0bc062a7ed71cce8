/* wrap_message.h - edits of a message on a line (codec/mcp/mcp_edit.h), and the wrapper's own answers. */
#ifndef GATEWAY_WRAP_WRAP_MESSAGE_H
#define GATEWAY_WRAP_WRAP_MESSAGE_H

#include "codec/mcp/mcp_edit.h"
#include "gateway/wrap/wrap_text.h"

/* ---- edits ---- */

/* The edits of one text, and the memory for more than a few of them. */
struct wrap_edits {
	struct mcp_edits list; /* the caller adds to it */
	struct arena arena;
	struct arena_pool pool;
};

/* The struct must stay where it is until wrap_edits_end. */
void wrap_edits_begin(struct wrap_edits *edits, struct slice text);

/* Adds the edited text, or nothing where `out` is NULL, and frees the edits. */
void wrap_edits_end(struct wrap_edits *edits, struct wrap_text *out);

/* ---- answers ---- */

/* Adds a response and its line feed. `good`: `json` is the result, else the error. */
void wrap_message_answer(struct wrap_text *out, struct slice id, bool good, struct slice json);

/* Adds an error object. `more` NULL, or further members of `data` as JSON text. */
void wrap_message_error(struct wrap_text *out, int code, const char *text, const char *reason,
			const char *more);

#endif
