#include "routing/name_list.h"

#include "codec/base/must.h"

/* Names that were seen, by an open table of their places; every one is in it once. */
struct seen {
	struct name {
		struct name_entry entry;
		bool is_id, listed;
	} * names;
	uint32_t *table; /* place + 1; 0: free */
	size_t count, mask;
};

static size_t hash(struct slice name)
{
	uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */

	for (size_t i = 0; i < name.len; i++)
		sum = (sum ^ (uint8_t)name.at[i]) * UINT64_C(1099511628211);
	return (size_t)(sum ^ sum >> 32);
}

static size_t names_most(const struct catalog *catalog, uint32_t alias_count)
{
	size_t most = alias_count;

	for (uint32_t i = 0; i < catalog->count; i++)
		most += 2 + catalog->models[i].alias_count;
	return most;
}

static bool seen_init(struct seen *seen, size_t most, struct arena *into)
{
	size_t places = 2;

	while (places < 2 * most)
		places *= 2;
	seen->names = arena_take(into, (most + 1) * sizeof(*seen->names));
	seen->table = arena_zero(into, places * sizeof(*seen->table));
	seen->count = 0;
	seen->mask = places - 1;
	return seen->names != NULL && seen->table != NULL;
}

/* Where the name is in the table, or would be. */
static uint32_t *place_of(const struct seen *seen, struct slice name)
{
	size_t at = hash(name) & seen->mask;

	while (seen->table[at] != 0 && !slice_eq(seen->names[seen->table[at] - 1].entry.name, name))
		at = (at + 1) & seen->mask;
	return &seen->table[at];
}

static struct name *seen_name(struct seen *seen, struct slice name)
{
	uint32_t *place = place_of(seen, name);

	if (*place == 0) {
		seen->names[seen->count] =
			(struct name){ .entry = { name, UINT64_MAX, UINT64_MAX } };
		*place = (uint32_t)++seen->count;
	}
	return &seen->names[*place - 1];
}

/* ---- what a name stands for ---- */

static void lower(struct name_entry *entry, const struct model *model)
{
	if (model->context < entry->context_max)
		entry->context_max = model->context;
	if (model->profile.max_output < entry->output_max)
		entry->output_max = model->profile.max_output;
}

/* Of those of `meant` that may be had. False: there are none. */
static bool lower_all(struct name_entry *entry, const struct catalog *catalog,
		      const struct bitset *meant, const struct bitset *models)
{
	struct bitset both = *meant;

	bitset_and(&both, models);
	for (uint32_t i = 0; i < catalog->count; i++)
		if (bitset_has(&both, i))
			lower(entry, &catalog->models[i]);
	return bitset_any(&both);
}

/* An id is that model's alone, whoever else is called so. */
static void add_name(struct seen *seen, const struct model *model, struct slice text,
		     bool available, bool listed)
{
	struct name *name = seen_name(seen, text);

	if (name->is_id || !available)
		return;
	name->listed = name->listed || listed;
	lower(&name->entry, model);
}

static void add_names(struct seen *seen, const struct model *model, bool available)
{
	add_name(seen, model, model->name, available, false);
	for (uint32_t i = 0; i < model->alias_count; i++)
		if (!name_is_glob(model->aliases[i]))
			add_name(seen, model, model->aliases[i], available, true);
}

static void add_table(struct seen *seen, const struct catalog *catalog,
		      const struct hint_alias *aliases, uint32_t alias_count,
		      const struct bitset *models)
{
	for (uint32_t i = 0; i < alias_count; i++) {
		const struct slice hint = aliases[i].hint;
		if (slice_absent(hint) || name_is_glob(hint) || *place_of(seen, hint) != 0 ||
		    name_equivalent(aliases, alias_count, hint) != i)
			continue;
		struct name *name = seen_name(seen, hint);
		name->listed = lower_all(&name->entry, catalog, &aliases[i].models, models);
	}
}

void name_available(const struct catalog *catalog, const struct bitset *permitted,
		    struct bitset *out)
{
	*out = (struct bitset){ 0 };
	for (uint32_t i = 0; i < catalog->count; i++)
		if (catalog->models[i].enabled && bitset_has(permitted, i))
			bitset_add(out, i);
}

/* ---- lists ---- */

static bool may_be_asked(struct slice name)
{
	return name.len != 0 && name.len <= NAME_BYTES_MAX && !name_is_auto(name);
}

static bool keep_listed(const struct seen *seen, struct arena *into, struct name_entry **out,
			size_t *count)
{
	struct name_entry *list = arena_take(into, (seen->count + 1) * sizeof(*list));
	size_t n = 0;

	if (list == NULL)
		return false;
	for (size_t i = 0; i < seen->count; i++)
		if (seen->names[i].listed && may_be_asked(seen->names[i].entry.name))
			list[n++] = seen->names[i].entry;
	*out = list;
	*count = n;
	return true;
}

bool name_list(const struct catalog *catalog, const struct hint_alias *aliases,
	       uint32_t alias_count, const struct bitset *models, struct arena *into,
	       struct name_entry **out, size_t *count)
{
	const size_t most = names_most(catalog, alias_count);
	struct seen seen;

	if (!seen_init(&seen, most, into))
		return false;
	for (uint32_t i = 0; i < catalog->count; i++) {
		struct name *name = seen_name(&seen, catalog->models[i].id);
		name->is_id = true;
		name->listed = bitset_has(models, i);
		lower(&name->entry, &catalog->models[i]);
	}
	for (uint32_t i = 0; i < catalog->count; i++)
		add_names(&seen, &catalog->models[i], bitset_has(models, i));
	add_table(&seen, catalog, aliases, alias_count, models);
	must(seen.count <= most);
	return keep_listed(&seen, into, out, count);
}

bool name_find(const struct catalog *catalog, const struct hint_alias *aliases,
	       uint32_t alias_count, const struct bitset *models, struct slice name,
	       struct name_entry *out)
{
	struct bitset meant;

	*out = (struct name_entry){ name, UINT64_MAX, UINT64_MAX };
	name_match(catalog, aliases, alias_count, name, &meant);
	return lower_all(out, catalog, &meant, models);
}
