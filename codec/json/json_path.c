#include "codec/json/json_path.h"

#include "codec/base/must.h"
#include "codec/isa/isa.h"
#include "codec/json/json_mask.h"
#include "codec/json/json_scan.h"

#include <stdio.h>

/* An open container: where its last member begins, behind its bracket or a comma. */
struct place {
	const char *member;
	uint32_t index; /* of that member */
	bool object;
	bool done; /* that member was a container, which has ended */
};

/* What one block of the text hands to the next. */
struct walk {
	struct place places[JSON_DEPTH_MAX]; /* those of the containers that are open */
	uint32_t depth;
	uint64_t escape; /* 1: the block ended in a backslash that escapes */
	uint64_t inside; /* all bits: it ended in a string */
};

/* The innermost container has these commas, in the block at `at`. */
static void pass_commas(struct walk *w, const char *at, uint64_t commas)
{
	if (commas == 0 || w->depth == 0)
		return;
	struct place *place = &w->places[w->depth - 1];
	place->member = at + ISA_BLOCK - __builtin_clzll(commas);
	place->index += (uint32_t)__builtin_popcountll(commas);
	place->done = false;
}

/* Behind a bracket outside of strings, which is a good one: the text is in order as far as it goes. */
static void pass_bracket(struct walk *w, const char *bracket)
{
	bool object = *bracket == '{';

	if (object || *bracket == '[') {
		if (w->depth < JSON_DEPTH_MAX)
			w->places[w->depth++] =
				(struct place){ .member = bracket + 1, .object = object };
	} else if (w->depth > 0 && --w->depth > 0) {
		w->places[w->depth - 1].done = true;
	}
}

/* The block at `at`. `bytes`: it, or a copy where the text ends in it; loaded here, because a block that is handed
 * over goes through memory by halves. */
static void walk_block(struct walk *w, const char *at, const char *bytes)
{
	const struct isa_block b = isa_load(bytes);
	uint64_t escaped = mask_escaped(isa_equal(b, '\\'), &w->escape);
	uint64_t inside = mask_parity(isa_equal(b, '"') & ~escaped) ^ w->inside;

	w->inside = 0 - (inside >> (ISA_BLOCK - 1));
	if (inside == UINT64_MAX)
		return;
	uint64_t commas = isa_equal(b, ',') & ~inside;
	uint64_t brackets =
		isa_equal(b, '{') | isa_equal(b, '}') | isa_equal(b, '[') | isa_equal(b, ']');
	for (brackets &= ~inside; brackets != 0; brackets &= brackets - 1) {
		uint64_t before = (brackets & (0 - brackets)) - 1;
		pass_commas(w, at, commas & before);
		commas &= ~before;
		pass_bracket(w, at + __builtin_ctzll(brackets));
	}
	pass_commas(w, at, commas);
}

static void walk(struct walk *w, struct slice text)
{
	const char *at = text.at;
	size_t left = text.len;
	char last[ISA_BLOCK] = { 0 };

	w->depth = 0;
	w->escape = w->inside = 0;
	for (; left >= ISA_BLOCK; at += ISA_BLOCK, left -= ISA_BLOCK)
		walk_block(w, at, at);
	if (left == 0)
		return;
	(void)memcpy(last, at, left);
	walk_block(w, at, last);
}

/* Whether the text, which ends at `end`, ends in a member of this container rather than between two of
 * them; *key: its name, raw and absent in an array. `inner`: a container is open in it. */
static bool in_member(const struct place *place, bool inner, const char *end, struct slice *key)
{
	struct json_reader r;

	*key = (struct slice){ NULL, 0 };
	json_open(&r, slice_of(place->member, (size_t)(end - place->member)), NULL, NULL);
	if (place->object) {
		if (!json_string(&r, key))
			return false;
		r.at = scan_space(r.at, r.end);
		if (r.at == r.end || *r.at++ != ':')
			return false;
	}
	if (inner)
		return true;
	if (place->done)
		return false;
	if (scan_space(r.at, r.end) == r.end) /* nothing but what leads to the member */
		return place->object || place->index > 0;
	return !json_skip(&r, NULL);
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
static size_t put_step(char *text, size_t room, struct slice key, uint32_t index)
{
	int key_len = (int)(key.len < JSON_PATH_MAX ? key.len : JSON_PATH_MAX), len;

	if (slice_absent(key))
		len = snprintf(text, room, "[%u]", index);
	else if (is_word(key))
		len = snprintf(text, room, ".%.*s", key_len, key.at);
	else
		len = snprintf(text, room, "[\"%.*s\"]", key_len, key.at);
	must(len > 0);
	return (size_t)len;
}

struct slice json_path(struct slice text, uint32_t offset, struct arena *into)
{
	char path[JSON_PATH_MAX + 1] = "$";
	struct walk w;
	struct slice key;
	size_t len = 1;

	must(offset <= text.len);
	text.len = offset;
	walk(&w, text);
	for (uint32_t i = 0; i < w.depth; i++) {
		const struct place *place = &w.places[i];
		if (!in_member(place, i + 1 < w.depth, text.at + text.len, &key))
			break;
		size_t room = sizeof(path) - len;
		size_t step = put_step(path + len, room, key, place->index);
		if (step >= room)
			break;
		len += step;
	}
	return arena_copy(into, slice_of(path, len));
}
