/* dialect_keys.c - the first half of dialect_mend.h: names of properties and their aliases. */
#include "codec/dialect/dialect_mend.h"

#include "codec/json/json_mend.h"

bool key_names_find(const struct key_names *keys, struct slice tool, const struct key_group **out)
{
	*out = NULL;
	if (keys->group_count == 0)
		return true;
	struct slice plain = json_str_plain(tool, keys->tools.into);
	if (slice_absent(plain))
		return false;
	uint32_t at = name_table_find(&keys->tools, plain);
	if (at != NAME_NONE && keys->tools.entries[at].uses != 0)
		*out = &keys->groups[keys->tools.entries[at].uses - 1];
	return true;
}

/* The containers around the reader's place, innermost lowest: is it an object? */
struct around {
	uint64_t objects;
	uint32_t depth;
};
_Static_assert((int)JSON_DEPTH_MAX <= 64, "a bit for each");

/* Consumes a scalar, or enters a container. */
static void step_in(struct json_reader *r, struct around *around)
{
	const enum json_kind kind = json_peek(r);
	const bool object = kind == JSON_OBJECT;

	if (!object && kind != JSON_ARRAY) {
		(void)json_skip(r, NULL);
		return;
	}
	if (object ? json_enter_object(r) : json_enter_array(r)) {
		around->objects = around->objects << 1 | object;
		around->depth++;
	}
}

/* Moves to the next value, out of containers that end: false behind the last. *key: its name, absent in an array. */
static bool next_value(struct json_reader *r, struct around *around, struct slice *key)
{
	while (around->depth != 0) {
		*key = (struct slice){ NULL, 0 };
		if ((around->objects & 1) != 0 ? json_next_key(r, key) : json_next_item(r))
			return true;
		around->objects >>= 1;
		around->depth--;
	}
	return false;
}

/* The key's name there, raw; absent: the key stays. */
static struct slice other_name(struct slice key, const struct name_table *names, struct arena *into,
			       bool *failed)
{
	const struct slice none = { NULL, 0 };

	if (slice_absent(key))
		return none;
	struct slice plain = json_str_plain(key, into);
	if (slice_absent(plain)) {
		*failed = true;
		return none;
	}
	uint32_t at = name_table_find(names, plain);
	return at == NAME_NONE ? none : names->entries[at].value;
}

struct slice keys_renamed(struct slice json, const struct name_table *names, struct arena *into)
{
	const char *from = json.at;
	struct around around = { 0 };
	struct json_reader r;
	struct gather g;
	struct slice key;
	bool failed = false;

	gather_init(&g, into);
	json_open(&r, json, NULL, NULL);
	step_in(&r, &around);
	while (!failed && next_value(&r, &around, &key)) {
		const struct slice name = other_name(key, names, into, &failed);
		if (!slice_absent(name)) {
			gather_raw(&g, slice_of(from, (size_t)(key.at - from)));
			gather_raw(&g, name);
			from = key.at + key.len;
		}
		step_in(&r, &around);
	}
	if (failed)
		return (struct slice){ NULL, 0 };
	if (from == json.at)
		return json;
	gather_raw(&g, slice_of(from, (size_t)(json.at + json.len - from)));
	return gather_done(&g) == ERR_OK ? gather_flat(&g, into) : (struct slice){ NULL, 0 };
}

bool keys_once(struct slice *json, struct json_work *work, struct arena *into, bool *twice)
{
	struct json_mend mend;

	*twice = !json_valid(*json, NULL, work, NULL);
	if (!*twice)
		return true;
	struct slice copy = arena_copy(into, *json);
	if (slice_absent(copy) ||
	    !json_mend((char *)(uintptr_t)copy.at, copy.len, NULL, work, &mend))
		return false;
	*json = json_tight(copy, into);
	return !slice_absent(*json);
}
