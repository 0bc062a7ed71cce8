/* settings_loader.c - what all parts of a load need: memory that lives as long as the load, or as the configuration. */
#include "gateway/settings/settings_loader.h"

void loader_out_of_memory(struct loader *l)
{
	if (!l->failed)
		problem_in(&l->problems, l->source->path, 1, "(file)",
			   "does not fit into memory; give the process more");
	l->failed = true;
}

void *loader_zero(struct loader *l, struct arena *into, size_t count, size_t size)
{
	size_t bytes;
	void *out = NULL;

	/* an empty list has an address, too */
	if (!__builtin_mul_overflow(count == 0 ? 1 : count, size, &bytes))
		out = arena_zero(into, bytes);
	if (out == NULL)
		loader_out_of_memory(l);
	return out;
}

struct slice loader_keep(struct loader *l, struct slice s)
{
	if (slice_absent(s))
		return s;
	struct slice copy = arena_copy(&l->config->arena, s);
	if (slice_absent(copy))
		loader_out_of_memory(l);
	return copy;
}

struct slice loader_keep_lower(struct loader *l, struct slice s)
{
	if (slice_absent(s))
		return s;
	char *text = loader_zero(l, &l->config->arena, s.len + 1, 1);

	for (size_t i = 0; text != NULL && i < s.len; i++)
		text[i] = (char)(s.at[i] >= 'A' && s.at[i] <= 'Z' ? s.at[i] + 32 : s.at[i]);
	return text == NULL ? (struct slice){ NULL, 0 } : slice_of(text, s.len);
}

const struct slice *loader_keep_list(struct loader *l, const struct form_values *list)
{
	struct slice *out = loader_zero(l, &l->config->arena, list->count, sizeof(*out));

	for (uint32_t i = 0; out != NULL && i < list->count; i++)
		out[i] = loader_keep(l, list->at[i]);
	return out;
}
