/* dialect_answer_names.c - what an answer's calls are called on the server's side (providers.md 9). */
#include "codec/dialect_answer.h"

#include "codec/dialect_names.h"

enum { FEW = 16 }; /* tools, or calls, that are compared one by one: no table is worth while */

/* ---- names ---- */

/* The way from the provider's names to the server's. */
static bool names_known(struct answer *a, struct name_table *known)
{
	const struct decode_context *context = a->context;

	name_table_init(known, a->work, a->into);
	for (uint32_t i = 0; i < context->tool_count; i++) {
		struct slice plain = json_str_plain(context->tool_names[i], a->into);
		uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(known, plain);
		if (at == NAME_NONE)
			return false;
		known->entries[at].value = context->tool_names[i];
		known->entries[at].taken = true; /* was offered */
	}
	for (uint32_t i = 0; i < context->alias_count; i++) {
		const struct tool_alias *alias = &context->aliases[i];
		struct slice plain = json_str_plain(alias->name, a->into);
		if (slice_absent(plain))
			return false;
		uint32_t own = name_table_find(known, plain),
			 at = name_table_put(known, alias->alias);
		if (at == NAME_NONE)
			return false;
		known->entries[at].value = alias->name;
		known->entries[at].taken = own != NAME_NONE && known->entries[own].taken;
	}
	return true;
}

static struct slice name_back(struct answer *a, const struct name_table *known, struct slice raw)
{
	struct slice plain = json_str_plain(raw, a->into);

	if (slice_absent(plain)) {
		answer_no_memory(a);
		return raw;
	}
	uint32_t at = name_table_find(known, plain);
	if (at == NAME_NONE || !known->entries[at].taken)
		answer_adjust(a, ADJUST_UNKNOWN_TOOL_NAME);
	return at == NAME_NONE ? raw : known->entries[at].value;
}

/* Whether the name stands among the few that were offered, as it is; without aliases it is the server's
 * own, then. */
static bool name_offered(const struct answer *a, struct slice raw)
{
	const struct decode_context *context = a->context;

	if (context->alias_count != 0 || context->tool_count > FEW)
		return false;
	for (uint32_t i = 0; i < context->tool_count; i++)
		if (slice_eq(context->tool_names[i], raw))
			return true;
	return false;
}

/* Gives every call the name that the server knows. */
static void name_back_calls(struct answer *a)
{
	struct name_table known = { .into = NULL };

	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++) {
		struct answer_block *block = &a->blocks[i];
		if (block->kind != ANSWER_CALL || name_offered(a, block->name))
			continue;
		if (known.into == NULL && !names_known(a, &known))
			answer_no_memory(a);
		else
			block->name = name_back(a, &known, block->name);
	}
}

/* ---- ids ---- */

/* "call_" + answer id + "_" + position among the calls. */
static struct slice invented_id(struct answer *a, uint32_t position)
{
	struct gather g;

	gather_init(&g, a->into);
	gather_lit(&g, "call_");
	gather_raw(&g, answer_id(a));
	gather_lit(&g, "_");
	gather_uint(&g, position);
	return gather_flat(&g, a->into);
}

/* Whether the calls are few and have ids, no two of them alike, which then stay as they are. */
static bool ids_differ(const struct answer *a)
{
	struct slice ids[FEW];
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->count; i++) {
		struct slice id = a->blocks[i].id;
		if (a->blocks[i].kind != ANSWER_CALL)
			continue;
		if (count == FEW || id.len == 0 || memchr(id.at, '\\', id.len) != NULL)
			return false;
		for (uint32_t j = 0; j < count; j++)
			if (slice_eq(ids[j], id))
				return false;
		ids[count++] = id;
	}
	return true;
}

static void identify_calls(struct answer *a)
{
	struct call_ids ids;
	uint32_t position = 0;

	if (ids_differ(a))
		return;
	call_ids_init(&ids, CALL_ID_ANY, a->work, a->into);
	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++) {
		struct answer_block *block = &a->blocks[i];
		if (block->kind != ANSWER_CALL)
			continue;
		const char *own = block->id.at;
		if (block->id.len == 0)
			block->id = invented_id(a, position);
		position++;
		if (!slice_absent(block->id))
			block->id = call_id_use(&ids, block->id);
		if (slice_absent(block->id))
			answer_no_memory(a);
		a->renamed |= block->id.at != own;
	}
}

void answer_name_calls(struct answer *a)
{
	name_back_calls(a);
	if (a->err == ERR_OK)
		identify_calls(a);
}
