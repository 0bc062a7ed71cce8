/* dialect_openai_keep.c - what of a Chat Completions answer goes back with its calls (replay.h). */
#include "codec/dialect/openai/dialect_openai.h"

/* A member of the object that is being written; the first one has no comma. */
static void put_key(struct gather *g, struct slice key)
{
	gather_raw(g, gather_offset(g) == 1 ? SLICE("\"") : SLICE(",\""));
	gather_raw(g, key);
	gather_lit(g, "\":");
}

static void put_part(struct gather *g, struct slice key, struct slice json)
{
	if (slice_absent(json))
		return;
	put_key(g, key);
	gather_raw(g, json);
}

/* What belongs to the calls, in their order. */
static void put_extras(struct gather *g, const struct answer *a)
{
	bool first = true;

	put_key(g, SLICE("extra_content"));
	for (uint32_t i = 0; i < a->count; i++) {
		const struct answer_block *block = &a->blocks[i];
		if (block->kind != ANSWER_CALL)
			continue;
		gather_raw(g, first ? SLICE("[") : SLICE(","));
		first = false;
		gather_raw(g, slice_absent(block->text) ? SLICE("null") : block->text);
	}
	gather_lit(g, "]");
}

static bool any_extra(const struct answer *a)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (a->blocks[i].kind == ANSWER_CALL && !slice_absent(a->blocks[i].text))
			return true;
	return false;
}

void openai_keep(struct answer *a, const struct openai_kept *kept)
{
	struct gather g;

	gather_init(&g, a->into);
	gather_lit(&g, "{");
	put_part(&g, SLICE("reasoning_content"), kept->reasoning_content);
	put_part(&g, SLICE("reasoning"), kept->reasoning);
	put_part(&g, SLICE("reasoning_details"), kept->reasoning_details);
	if (any_extra(a))
		put_extras(&g, a);
	if (gather_offset(&g) == 1)
		return;
	gather_lit(&g, "}");
	if (gather_done(&g) == ERR_OK)
		a->replay = gather_flat(&g, a->into);
	if (slice_absent(a->replay))
		answer_no_memory(a);
}
