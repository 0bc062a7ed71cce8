/* dialect_answer_names.c - what an answer's calls are called on the server's side (providers.md 9). */
#include "codec/dialect/dialect_answer.h"

#include "codec/dialect/dialect_mend.h"

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
	if (slice_absent(raw)) /* answer_odd */
		return raw;
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

/* ---- names of properties ---- */

/* The way back for the calls of each tool. */
struct keys_back {
	struct name_table tools;   /* the server's name -> `uses`: number of its group, from 1 */
	struct name_table *groups; /* alias -> name, raw */
	uint32_t count;
};

/* The next group, of that tool. */
static bool keys_begin(struct answer *a, struct keys_back *back, struct slice tool)
{
	struct slice plain = json_str_plain(tool, a->into);
	uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(&back->tools, plain);

	if (at == NAME_NONE)
		return false;
	name_table_init(&back->groups[back->count++], a->work, a->into);
	back->tools.entries[at].uses = back->count;
	return true;
}

static bool keys_known(struct answer *a, struct keys_back *back)
{
	const struct key_alias *keys = a->context->keys->at;
	const uint32_t count = a->context->keys->count;

	back->groups = arena_take(a->into, count * sizeof(*back->groups));
	name_table_init(&back->tools, a->work, a->into);
	if (back->groups == NULL)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if ((i == 0 || keys[i].tool.at != keys[i - 1].tool.at) &&
		    !keys_begin(a, back, keys[i].tool))
			return false;
		struct name_table *group = &back->groups[back->count - 1];
		uint32_t at = name_table_put(group, keys[i].alias);
		if (at == NAME_NONE)
			return false;
		group->entries[at].value = keys[i].key;
	}
	return true;
}

/* The arguments of a call with the names that the server knows. A model may use a name and its alias. */
static struct slice key_back(struct answer *a, const struct keys_back *back,
			     const struct answer_block *call)
{
	struct slice plain = json_str_plain(call->name, a->into), args = call->args;
	uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_find(&back->tools, plain);
	bool twice = false;

	if (at != NAME_NONE)
		args = keys_renamed(args, &back->groups[back->tools.entries[at].uses - 1], a->into);
	if (slice_absent(plain) || slice_absent(args) ||
	    (args.at != call->args.at && !keys_once(&args, a->work, a->into, &twice)))
		answer_no_memory(a);
	if (twice)
		answer_adjust(a, ADJUST_DUPLICATE_KEY);
	return args;
}

/* Gives the properties in every call's arguments the names that the server knows. */
static void key_back_calls(struct answer *a)
{
	struct keys_back back = { .groups = NULL };

	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++) {
		struct answer_block *block = &a->blocks[i];
		if (block->kind != ANSWER_CALL)
			continue;
		if (back.groups == NULL && !keys_known(a, &back))
			answer_no_memory(a);
		else
			block->args = key_back(a, &back, block);
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
	if (a->context->keys != NULL && a->err == ERR_OK)
		key_back_calls(a);
	if (a->err == ERR_OK)
		identify_calls(a);
}
