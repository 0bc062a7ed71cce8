/* sampling_names.c - what a caller may call the models that it may have. */
#include "gateway/sampling/sampling_core.h"
#include "routing/name_list.h"

static struct sampling_name name_of(const struct name_entry *entry)
{
	return (struct sampling_name){ entry->name, entry->context_max, entry->output_max };
}

bool sampling_names(const struct sampling *core, const struct caller *caller, struct arena *into,
		    struct sampling_name **out, size_t *count)
{
	const struct plan *plan = caller->plan;
	struct name_entry *entries;
	struct bitset models;

	name_available(&core->config->catalog, &plan->models, &models);
	if (!name_list(&core->config->catalog, plan->aliases, plan->alias_count, &models, into,
		       &entries, count))
		return false;
	*out = arena_take(into, (*count + 1) * sizeof(**out));
	for (size_t i = 0; *out != NULL && i < *count; i++)
		(*out)[i] = name_of(&entries[i]);
	return *out != NULL;
}

bool sampling_name_find(const struct sampling *core, const struct caller *caller, struct slice name,
			struct sampling_name *out)
{
	const struct plan *plan = caller->plan;
	struct name_entry entry;
	struct bitset models;

	name_available(&core->config->catalog, &plan->models, &models);
	if (!name_find(&core->config->catalog, plan->aliases, plan->alias_count, &models, name,
		       &entry))
		return false;
	*out = name_of(&entry);
	return true;
}

bool sampling_name_is_auto(struct slice name)
{
	return name_is_auto(name);
}
