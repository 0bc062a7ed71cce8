/* json_skip.c - opaque values at speed: most of what a body with tools consists of.
 *
 * An accelerator over the pull calls of json_read.c and their state: it takes whole members while they
 * look as they should, and stops in front of the one that does not. That one is taken by the pull
 * calls, which alone know what is wrong. */
#include "codec/json_reader.h"

enum {
	/* Bytes ahead that let a member be looked at without asking again: what is between its
	 * strings when there is no white space, a word, a short number, the first bytes of a key. */
	ROOM = 24,
	DIGITS_MAX = 16,
};

#define SKIP_INLINE inline __attribute__((always_inline))
#define SKIP_COLD __attribute__((cold, noinline))

/* Hardly ever: so that what is held is in registers otherwise. */
#define SKIP_RARELY(condition) __builtin_expect((condition), 0)

/* ---- strings ---- */

/* The byte that ends the plain text at `at`, mostly a closing quote; `at` itself when it is far. */
static SKIP_INLINE const char *plain_end(struct json_reader *r, const char *at)
{
	uintptr_t offset = (uintptr_t)at - r->window;
	const char *next = at;

	if (offset < ISA_BLOCK) {
		uint64_t specials = r->specials >> offset;
		if (specials != 0)
			return at + __builtin_ctzll(specials);
		next += ISA_BLOCK - offset;
	}
	if (r->end - next < ISA_BLOCK)
		return at;
	uint64_t specials = isa_special(isa_load(next));
	r->window = (uintptr_t)next;
	r->specials = specials;
	return specials != 0 ? next + __builtin_ctzll(specials) : at;
}

/* The closing quote of the string whose text begins at `at`, where plain_end came to `found`; NULL after
 * failing. */
static SCAN_RARE const char *string_slowly(struct json_reader *r, const char *at, const char *found)
{
	uintptr_t offset = (uintptr_t)found - r->window;
	bool seen = offset < ISA_BLOCK && (r->specials >> offset & 1) != 0;

	return seen ? reader_string_rest(r, found) : reader_string_far(r, at);
}

/* ---- what is no string ---- */

/* Behind the colon of the key whose quote is at `at`, and where plain_end came to `found`: it may have
 * escapes, or white space behind it; with ROOM - 2 bytes more. NULL: not as it should
 * be, or the reader has failed. */
static SCAN_RARE const char *key_slowly(struct json_reader *r, struct json_level *set,
					const char *at, const char *found, const char *last)
{
	const char *from = at + 1;
	const char *quote = *found == '"' ? found : string_slowly(r, from, found);

	if (quote == NULL || quote > last)
		return NULL;
	const char *colon = quote + 1;
	if ((unsigned char)*colon <= ' ')
		colon = reader_space(colon, r->end);
	if (colon > last + 1 || *colon != ':')
		return NULL;
	size_t len = (size_t)(quote - from);
	if (colon > quote + 1 && r->work != NULL && !reader_escaped(r, from) &&
	    json_keys_add_new(r->work, set, from, len))
		return colon + 1; /* a new key after all */
	if (r->work != NULL && json_keys_add(r->work, set, r->limits.keys_max, slice_of(from, len),
					     reader_escaped(r, from), r->end) != KEYS_ADDED)
		return NULL;
	return colon + 1;
}

/* Behind the white space at `at`, where there is some: most texts have none between tokens. */
static SKIP_COLD const char *space(const char *at, const char *end)
{
	return reader_space(at, end);
}

/* Behind the short integer at `at`, the usual number; NULL: it is another one. */
static SKIP_INLINE const char *integer(const char *at)
{
	const char *from = at;

	if (at[1] == ',') /* one digit */
		return at + 1;
	do
		at++;
	while (at - from < DIGITS_MAX && scan_is_digit(*at));
	bool whole = *at == ',' || (*at != '.' && (*at | 0x20) != 'e' && !scan_is_digit(*at));
	return whole && (*from != '0' || at - from == 1) ? at : NULL;
}

/* Behind the number at `at`. NULL: it is none, or the reader has failed. */
static SCAN_RARE const char *number(struct json_reader *r, const char *at)
{
	struct slice raw;

	r->at = at;
	return (*at == '-' || scan_is_digit(*at)) && reader_number(r, &raw) ? r->at : NULL;
}

/* Behind the number or word at `at`, with ROOM - 2 bytes ahead. NULL: not as it should be, or the reader
 * has failed. */
static SKIP_INLINE const char *scalar(struct json_reader *r, const char *at)
{
	const char *digits = at + (*at == '-');

	if (scan_is_digit(*digits)) {
		const char *behind = integer(digits);
		return behind != NULL ? behind : number(r, at);
	}
	if (memcmp(at, "true", 4) == 0 || memcmp(at, "null", 4) == 0)
		return at + 4;
	if (*at == 'f' && memcmp(at + 1, "alse", 4) == 0)
		return at + 5;
	return number(r, at);
}

/* ---- members ---- */

/* One state machine over all levels; clearer whole. `unique`: keys are looked at for being there twice,
 * so r->work is there. What it holds of the reader's state goes back at the end. */
static SKIP_INLINE enum reader_skipped skip_members(struct json_reader *r, uint32_t depth,
						    bool unique)
{
	struct json_level *next = r->levels + r->depth; /* behind the innermost container's */
	const struct json_level *outer = r->levels + depth;
	struct json_key *top = unique ? r->work->keys + r->work->key_top : NULL;
	uint64_t filter = unique ? next[-1].filter : 0; /* of the innermost container */
	const char *at = r->at, *last = r->end - ROOM, *behind;
	enum reader_skipped where = SKIPPED_TO_MEMBER;

	if (!r->fresh)
		goto behind_value;

behind_bracket:
	if (at > last)
		goto stop_fresh;
	if (*at == '"')
		goto member_or_item;
	if (*at == '}' || *at == ']') {
		if ((*at == '}') != (r->objects & 1))
			goto stop_fresh;
		goto closing_bracket;
	}
	if (SKIP_RARELY(scan_is_space(*at))) {
		at = space(at, r->end);
		goto behind_bracket;
	}
	if ((r->objects & 1) != 0)
		goto stop_fresh;
	goto value;

member_or_item: /* at a quote */
	if ((r->objects & 1) == 0)
		goto value;
	behind = plain_end(r, at + 1);
	if (SKIP_RARELY(behind > last || memcmp(behind, "\":", 2) != 0))
		goto odd_key;
	if (unique) {
		size_t len = (size_t)(behind - at - 1);
		unsigned bit = json_keys_bit(at + 1, len);
		if (SKIP_RARELY((filter >> bit & 1) != 0))
			goto known_bit;
		filter |= (uint64_t)1 << bit;
		*top++ = (struct json_key){ at + 1, (uint32_t)len, 0 };
	}
	at = behind + 2;

value:
	if (__builtin_expect_with_probability(*at == '"', 1, 0.7)) {
		behind = plain_end(r, at + 1);
		if (SKIP_RARELY(*behind != '"')) {
			behind = string_slowly(r, at + 1, behind);
			if (behind == NULL)
				goto stop_value;
		}
		at = behind + 1;
	} else if (*at == '{' || *at == '[') {
		if (next == r->levels + r->limits.depth_max)
			goto stop_value;
		r->objects = r->objects << 1 | (*at == '{');
		if (unique) {
			next[-1].filter = filter;
			filter = r->filter;
			next->keys = (uint32_t)(top - r->work->keys);
			next->slots = r->work->slot_top;
		}
		next++;
		at++;
		goto behind_bracket;
	} else if (SKIP_RARELY(scan_is_space(*at))) {
		behind = space(at, r->end);
		if (behind > last)
			goto stop_value;
		at = behind;
		goto value;
	} else {
		behind = scalar(r, at);
		if (behind == NULL)
			goto stop_value;
		at = behind;
	}

behind_value:
	if (at > last)
		goto stop;
	if (memcmp(at, ",\"", 2) == 0) {
		at++;
		goto member_or_item;
	}
	if (*at == ',') {
		behind = at + 1;
		if (SKIP_RARELY((unsigned char)*behind <= ' ')) {
			behind = space(behind, r->end);
			if (behind > last)
				goto stop;
		}
		if ((r->objects & 1) == 0) {
			at = behind;
			goto value;
		}
		if (*behind != '"')
			goto stop;
		at = behind;
		goto member_or_item;
	}
	if (*at == '}' || *at == ']')
		goto closing_bracket;
	if (!scan_is_space(*at))
		goto stop;
	at = space(at, r->end);
	goto behind_value;

closing_bracket:
	if ((*at == '}') != (r->objects & 1))
		goto stop;
	at++;
	next--;
	r->objects >>= 1;
	if (unique) {
		top = r->work->keys + next->keys;
		r->work->slot_top = next->slots;
	}
	if (next == outer)
		goto stop;
	if (unique)
		filter = next[-1].filter;
	goto behind_value;

known_bit: /* perhaps it is no new key; there is no escape in it */
	next[-1].filter = filter;
	r->work->key_top = (uint32_t)(top - r->work->keys);
	if (json_keys_add(r->work, &next[-1], r->limits.keys_max,
			  slice_of(at + 1, (size_t)(behind - at - 1)), false, r->end) != KEYS_ADDED)
		goto stop_fresh; /* neither a comma nor a bracket may come now */
	filter = next[-1].filter;
	top++;
	at = behind + 2;
	goto value;

odd_key: /* with an escape, or white space behind it, or near the end of the text */
	if (unique) {
		next[-1].filter = filter;
		r->work->key_top = (uint32_t)(top - r->work->keys);
	}
	behind = key_slowly(r, &next[-1], at, behind, last);
	if (behind == NULL)
		goto stop_fresh;
	if (unique) {
		filter = next[-1].filter;
		top++;
	}
	at = behind;
	goto value;

stop_value:
	where = SKIPPED_TO_VALUE;
stop:
	r->fresh = false;
	goto end;
stop_fresh:
	r->fresh = true;
end:
	if (r->fault.err == ERR_OK)
		r->at = at;
	r->depth = (uint32_t)(next - r->levels);
	if (unique) {
		if (next != outer)
			next[-1].filter = filter;
		r->work->key_top = (uint32_t)(top - r->work->keys);
	}
	return where;
}

enum reader_skipped reader_skip_members(struct json_reader *r, uint32_t depth)
{
	if (r->end - r->at < ROOM)
		return SKIPPED_TO_MEMBER;
	return r->work != NULL ? skip_members(r, depth, true) : skip_members(r, depth, false);
}

bool json_skip(struct json_reader *r, struct slice *raw)
{
	const char *from = r->at;
	uint32_t depth = r->depth;

	if (r->end - from < ROOM || (*from != '{' && *from != '[') || depth >= r->limits.depth_max)
		return reader_skip_slowly(r, raw);
	must(r->work == NULL || r->work->reader == r);
	reader_enter(r, *from == '{', from);
	enum reader_skipped where = reader_skip_members(r, depth);
	if (r->depth != depth && !reader_skip_rest(r, depth, where))
		return false;
	if (raw != NULL)
		*raw = slice_of(from, (size_t)(r->at - from));
	return true;
}
