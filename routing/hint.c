#include "routing/hint.h"

#include "codec/base/must.h"

enum match { MATCH_NONE, MATCH_PART, MATCH_EXACT };

static enum match name_match(struct slice name, struct slice hint, enum match before)
{
	if (slice_eq_nocase(name, hint))
		return MATCH_EXACT;
	return before == MATCH_NONE && slice_has_nocase(name, hint) ? MATCH_PART : before;
}

static enum match model_match(const struct model *model, struct slice hint)
{
	enum match best = name_match(model->id, hint, MATCH_NONE);

	if (best != MATCH_EXACT)
		best = name_match(model->name, hint, best);
	for (uint32_t i = 0; i < model->alias_count && best != MATCH_EXACT; i++)
		best = name_match(model->aliases[i], hint, best);
	return best;
}

static void try_model(const struct catalog *catalog, uint32_t i, struct slice hint,
		      struct hint_models *out)
{
	const enum match match = model_match(&catalog->models[i], hint);

	if (match != MATCH_NONE)
		bitset_add(match == MATCH_EXACT ? &out->exact : &out->part, i);
}

void hint_match(const struct catalog *catalog, struct slice hint, struct hint_models *out)
{
	struct bitset may;

	must(hint.len != 0);
	*out = (struct hint_models){ 0 };
	if (catalog->index == NULL) {
		for (uint32_t i = 0; i < catalog->count; i++)
			try_model(catalog, i, hint, out);
		return;
	}
	catalog_may_name(catalog, hint, &may);
	for (uint32_t w = 0; w < catalog->index->words; w++)
		for (uint64_t left = may.words[w]; left != 0; left &= left - 1)
			try_model(catalog, w * 64 + (uint32_t)__builtin_ctzll(left), hint, out);
}

/* Where in the memory a hint belongs: eight bytes at a time, as hints are short. */
static uint32_t place_of(struct slice hint)
{
	uint64_t sum = hint.len, word;

	for (size_t i = 0; i < hint.len; i += sizeof(word)) {
		const size_t left = hint.len - i;
		word = 0;
		(void)memcpy(&word, hint.at + i, left < sizeof(word) ? left : sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 32;
	}
	return (uint32_t)(sum % HINT_MEMORY);
}

const struct hint_models *hint_recall(struct hint_memory *memory, const struct catalog *catalog,
				      struct slice hint, struct hint_models *scratch)
{
	if (memory == NULL || hint.len > HINT_MEMORY_BYTES) {
		hint_match(catalog, hint, scratch);
		return scratch;
	}
	struct hint_known *known = &memory->known[place_of(hint)];
	if (known->len != hint.len || memcmp(known->text, hint.at, hint.len) != 0) {
		hint_match(catalog, hint, &known->models);
		known->len = hint.len;
		(void)memcpy(known->text, hint.at, hint.len);
	}
	return &known->models;
}
