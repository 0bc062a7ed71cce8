#include "routing/catalog.h"

#include "codec/base/arena.h"
#include "codec/base/must.h"

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

static void gram_add(struct name_grams *grams, uint32_t gram)
{
	/* Names differ in few characters, so a multiplication spreads them (Knuth). */
	const uint32_t bit = gram * UINT32_C(2654435761) >> 24;

	grams->bits[bit / 64] |= (uint64_t)1 << bit % 64;
}

void name_grams_add(struct name_grams *grams, struct slice text)
{
	uint32_t before = 0;

	for (size_t i = 0; i < text.len; i++) {
		const uint32_t here = fold(text.at[i]);
		gram_add(grams, here);
		if (i > 0)
			gram_add(grams, (before + 1) << 8 | here);
		before = here;
	}
}

static void index_names(const struct model *model, struct name_grams *grams)
{
	name_grams_add(grams, model->id);
	name_grams_add(grams, model->name);
	for (uint32_t i = 0; i < model->alias_count; i++)
		name_grams_add(grams, model->aliases[i]);
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
}

struct model_figures model_figures(const struct model *model)
{
	return (struct model_figures){
		.price_input = (double)model->price_input,
		.price_output = (double)model->price_output,
		.speed = model->speed,
		.intelligence = model->intelligence,
		.max_output = model->profile.max_output,
	};
}

bool catalog_index(struct catalog *catalog, struct arena *into)
{
	must(catalog->count <= CATALOG_MODELS_MAX);
	struct catalog_index *index = arena_zero(into, sizeof(*index));
	struct name_grams *grams = arena_zero(into, catalog->count * sizeof(*grams));
	struct model_figures *figures = arena_zero(into, catalog->count * sizeof(*figures));

	if (index == NULL || grams == NULL || figures == NULL)
		return false;
	index->context_least = UINT64_MAX;
	for (uint32_t i = 0; i < catalog->count; i++) {
		index_names(&catalog->models[i], &grams[i]);
		index_sets(&catalog->models[i], i, index);
		figures[i] = model_figures(&catalog->models[i]);
	}
	index->grams = grams;
	index->figures = figures;
	catalog->index = index;
	return true;
}
