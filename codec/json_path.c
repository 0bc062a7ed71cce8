#include "codec/json_path.h"

#include "codec/base/must.h"
#include "codec/json_scan.h"

#include <stdio.h>

/* Where the walk is in one open container: in front of its first member, or in one of them. */
struct place {
	bool inside;
	struct slice key; /* raw; absent in an array */
	uint32_t index;
};

/* Steps to the next value, out of all containers that end before it; false when there is none. */
static bool next_value(struct json_reader *r, struct place *places)
{
	while (r->depth > 0) {
		struct place *place = &places[r->depth - 1];
		bool object = (r->objects & 1) != 0;
		uint32_t index = place->inside ? place->index + 1 : 0;
		*place = (struct place){ .index = index };
		place->inside = object ? json_next_key(r, &place->key) : json_next_item(r);
		if (place->inside)
			return true;
		if (r->fault.err != ERR_OK)
			return false;
	}
	return false;
}

/* Reads until the text ends or is wrong; `places` are those of the r->depth containers open then. */
static void walk(struct json_reader *r, struct place *places)
{
	bool fine;

	do {
		enum json_kind kind = json_peek(r);
		if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
			fine = kind == JSON_OBJECT ? json_enter_object(r) : json_enter_array(r);
			if (fine)
				places[r->depth - 1] = (struct place){ .inside = false };
		} else {
			fine = kind != JSON_BAD && json_skip(r, NULL);
		}
	} while (fine && next_value(r, places));
}

static bool is_word(struct slice key)
{
	for (size_t i = 0; i < key.len; i++) {
		char c = key.at[i], lower = (char)(c | 0x20);
		if (!(lower >= 'a' && lower <= 'z') && c != '_' && !(i > 0 && scan_is_digit(c)))
			return false;
	}
	return key.len != 0;
}

/* One step of the path at `text`; its length, whether or not there is room for it. */
static size_t put_place(char *text, size_t room, const struct place *place)
{
	int key_len = (int)(place->key.len < JSON_PATH_MAX ? place->key.len : JSON_PATH_MAX), len;

	if (slice_absent(place->key))
		len = snprintf(text, room, "[%u]", place->index);
	else if (is_word(place->key))
		len = snprintf(text, room, ".%.*s", key_len, place->key.at);
	else
		len = snprintf(text, room, "[\"%.*s\"]", key_len, place->key.at);
	must(len > 0);
	return (size_t)len;
}

struct slice json_path(struct slice text, uint32_t offset, struct arena *into)
{
	struct place places[JSON_DEPTH_MAX];
	char path[JSON_PATH_MAX + 1] = "$";
	struct json_reader r;
	size_t len = 1;

	must(offset <= text.len);
	json_open(&r, slice_of(text.at, offset), NULL, NULL);
	walk(&r, places);
	for (uint32_t i = 0; i < r.depth && places[i].inside; i++) {
		size_t room = sizeof(path) - len, step = put_place(path + len, room, &places[i]);
		if (step >= room)
			break;
		len += step;
	}
	return arena_copy(into, slice_of(path, len));
}
