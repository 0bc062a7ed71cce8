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

bool catalog_index(struct catalog *catalog, struct arena *into)
{
	must(catalog->count <= CATALOG_MODELS_MAX);
	struct name_grams *grams = arena_zero(into, catalog->count * sizeof(*grams));

	if (grams == NULL)
		return false;
	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct model *model = &catalog->models[i];
		name_grams_add(&grams[i], model->id);
		name_grams_add(&grams[i], model->name);
		for (uint32_t j = 0; j < model->alias_count; j++)
			name_grams_add(&grams[i], model->aliases[j]);
	}
	catalog->grams = grams;
	return true;
}
