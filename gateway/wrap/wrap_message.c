#include "gateway/wrap/wrap_message.h"

/* ---- edits ----------------------------------------------------------------------------------- */

void wrap_edits_begin(struct wrap_edits *edits, struct slice text)
{
	edits->pool = (struct arena_pool){ .keep_max = 0 };
	arena_init(&edits->arena, &edits->pool, SIZE_MAX);
	mcp_edits_init(&edits->list, text, &edits->arena);
}

void wrap_edits_end(struct wrap_edits *edits, struct wrap_text *out)
{
	struct slice piece;

	if (edits->list.failed)
		wrap_no_memory();
	if (out != NULL)
		for (size_t at = 0; mcp_edits_next(&edits->list, &at, &piece);)
			wrap_text_add(out, piece);
	arena_give(&edits->arena);
	arena_pool_fini(&edits->pool);
}

/* ---- answers --------------------------------------------------------------------------------- */

void wrap_message_answer(struct wrap_text *out, struct slice id, bool good, struct slice json)
{
	wrap_text_put(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	wrap_text_add(out, id);
	wrap_text_put(out, good ? ",\"result\":" : ",\"error\":");
	wrap_text_add_json(out, json);
	wrap_text_put(out, "}\n");
}

void wrap_message_error(struct wrap_text *out, int code, const char *text, const char *reason,
			const char *more)
{
	wrap_text_print(out, "{\"code\":%d,\"message\":", code);
	wrap_text_add_string(out, text);
	wrap_text_put(out, ",\"data\":{\"reason\":");
	wrap_text_add_string(out, reason);
	if (more != NULL) {
		wrap_text_put(out, ",");
		wrap_text_put(out, more);
	}
	wrap_text_put(out, "}}");
}
