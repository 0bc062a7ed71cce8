#include "routing/catalog.h"

#include "codec/base/arena.h"
#include "codec/base/must.h"

enum { LINE_BYTES = 64 };

int32_t catalog_find(const struct catalog *catalog, struct slice id)
{
	for (uint32_t i = 0; i < catalog->count; i++)
		if (slice_eq(catalog->models[i].id, id))
			return (int32_t)i;
	return -1;
}

static uint8_t fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : (uint8_t)c;
}

/* Names differ in few characters, so a multiplication spreads them (Knuth). */
static uint32_t gram(uint32_t characters)
{
	_Static_assert(CATALOG_GRAMS == 1 << 8, "eight bits of it");
	return characters * UINT32_C(2654435761) >> 24;
}

static uint32_t pair(char before, char here)
{
	return gram((fold(before) + 1u) << 8 | fold(here));
}

static void index_name(struct slice name, uint32_t model, uint32_t words, uint64_t *holders)
{
	holders += model / 64;
	const uint64_t bit = UINT64_C(1) << model % 64;

	for (size_t i = 0; i < name.len; i++) {
		holders[gram(fold(name.at[i])) * words] |= bit;
		if (i > 0)
			holders[pair(name.at[i - 1], name.at[i]) * words] |= bit;
	}
}

static void index_names(const struct model *model, uint32_t i, uint32_t words, uint64_t *holders)
{
	index_name(model->id, i, words, holders);
	index_name(model->name, i, words, holders);
	for (uint32_t a = 0; a < model->alias_count; a++)
		index_name(model->aliases[a], i, words, holders);
}

/* To those that hold gram `number`. False: none is left. */
static bool narrow(const struct catalog_index *index, uint32_t number, struct bitset *left)
{
	const uint64_t *holders = index->holders + (size_t)number * index->words;
	uint64_t any = 0;

	for (uint32_t w = 0; w < index->words; w++) {
		left->words[w] &= holders[w];
		any |= left->words[w];
	}
	return any != 0;
}

void catalog_may_name(const struct catalog *catalog, struct slice text, struct bitset *out)
{
	const struct catalog_index *index = catalog->index;

	*out = (struct bitset){ 0 };
	for (uint32_t w = 0; w < index->words; w++)
		out->words[w] = UINT64_MAX;
	if (catalog->count % 64 != 0)
		out->words[index->words - 1] >>= 64 - catalog->count % 64;
	if (text.len == 1)
		(void)narrow(index, gram(fold(text.at[0])), out);
	for (size_t i = 1; i < text.len; i++) /* who holds a pair holds both of it */
		if (!narrow(index, pair(text.at[i - 1], text.at[i]), out))
			return;
}

static void index_sets(const struct model *model, uint32_t i, struct catalog_index *index)
{
	if (!model->enabled)
		return;
	bitset_add(&index->enabled, i);
	if (model->profile.image)
		bitset_add(&index->image, i);
	if (model->profile.audio)
		bitset_add(&index->audio, i);
	if (model->context < index->context_least)
		index->context_least = model->context;
	if (model->profile.max_tools != 0 && model->profile.max_tools < index->tools_least)
		index->tools_least = model->profile.max_tools;
}

void model_figures(const struct catalog *catalog, uint32_t block, struct model_figures *out)
{
	*out = (struct model_figures){ 0 };
	for (uint32_t i = 0; i < CATALOG_BLOCK && block * CATALOG_BLOCK + i < catalog->count; i++) {
		const struct model *model = &catalog->models[block * CATALOG_BLOCK + i];
		out->price_input[i] = (double)model->price_input;
		out->price_output[i] = (double)model->price_output;
		out->speed[i] = model->speed;
		out->intelligence[i] = model->intelligence;
		out->max_output[i] = model->profile.max_output;
	}
}

/* Of all models, each figure of a block in a line of its own; NULL: memory. */
static const struct model_figures *index_figures(const struct catalog *catalog, struct arena *into)
{
	const uint32_t blocks = (catalog->count + CATALOG_BLOCK - 1) / CATALOG_BLOCK;
	char *memory = arena_take(into, blocks * sizeof(struct model_figures) + LINE_BYTES);

	if (memory == NULL)
		return NULL;
	struct model_figures *out =
		(void *)(memory + (LINE_BYTES - (uintptr_t)memory % LINE_BYTES));
	for (uint32_t block = 0; block < blocks; block++)
		model_figures(catalog, block, &out[block]);
	return out;
}

bool catalog_index(struct catalog *catalog, struct arena *into)
{
	must(catalog->count <= CATALOG_MODELS_MAX);
	struct catalog_index *index = arena_zero(into, sizeof(*index));
	const uint32_t words = (catalog->count + 63) / 64;
	uint64_t *holders = arena_zero(into, (size_t)CATALOG_GRAMS * words * sizeof(*holders));
	const struct model_figures *figures = index_figures(catalog, into);

	if (index == NULL || holders == NULL || figures == NULL)
		return false;
	index->context_least = UINT64_MAX;
	index->tools_least = UINT32_MAX;
	for (uint32_t i = 0; i < catalog->count; i++) {
		index_names(&catalog->models[i], i, words, holders);
		index_sets(&catalog->models[i], i, index);
	}
	index->words = words;
	index->holders = holders;
	index->figures = figures;
	catalog->index = index;
	return true;
}
