/* json_skip.c - opaque values at speed: most of what a body with tools consists of.
 *
 * An accelerator over the pull calls of json_read.c and their state: it takes whole members while they
 * look as they should, and stops in front of the one that does not. That one is taken by the pull
 * calls, which alone know what is wrong. */
#include "codec/json/json_reader.h"

enum {
	/* Bytes ahead that let a member be looked at without asking again: what is between its
	 * strings when there is no white space, a word, a short number, the first bytes of a key. */
	ROOM = 24,
	DIGITS_MAX = 16,
};

#define SKIP_INLINE inline __attribute__((always_inline))

/* Hardly ever: so that what is held is in registers otherwise. */
#define SKIP_RARELY(condition) __builtin_expect((condition), 0)

/* ---- vectors ----
 *
 * Out of line, because whoever has some aligns its stack for them, which takes two registers. */

/* isa_special of the block at `at`. */
static SCAN_RARE uint64_t specials_at(const char *at)
{
	return isa_special(isa_load(at));
}

/* What is not white space in the block at `at`. */
static SCAN_RARE uint64_t others_at(const char *at)
{
	return ~isa_space(isa_load(at));
}

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
	uint64_t specials = specials_at(next);
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

/* Behind the colon of the key whose quote is at `at`: it may have escapes, or white space behind it; with
 * ROOM - 2 bytes more. NULL: not as it should be, or the reader has failed. */
static SCAN_RARE const char *key_slowly(struct json_reader *r, struct json_level *set,
					const char *at, const char *last)
{
	const char *from = at + 1, *found = plain_end(r, from);
	const char *quote = *found == '"' ? found : string_slowly(r, from, found);

	if (quote == NULL || quote > last)
		return NULL;
	const char *colon = quote + 1;
	if ((unsigned char)*colon <= ' ')
		colon = reader_space(colon, r->end);
	if (colon > last + 1 || *colon != ':')
		return NULL;
	size_t len = (size_t)(quote - from);
	if (r->work != NULL && json_keys_add(r->work, set, r->limits.keys_max, slice_of(from, len),
					     reader_escaped(r, from), r->end) != KEYS_ADDED)
		return NULL;
	return colon + 1;
}

/* A block of the text, and which of its bytes are something else than white space. */
struct white {
	const char *at;
	uint64_t others;
};

/* Moves behind the white space at *at, where there may be some, with ROOM - 2 bytes ahead. Whether there are as many
 * then. */
static SKIP_INLINE bool past_space(struct white *w, const char **at, const char *last)
{
	const char *from = *at;
	uintptr_t offset = (uintptr_t)from - (uintptr_t)w->at;

	if ((unsigned char)*from > ' ')
		return true;
	if (offset >= ISA_BLOCK && last - from >= ISA_BLOCK) {
		w->at = from;
		w->others = others_at(from);
		offset = 0;
	}
	if (offset < ISA_BLOCK) {
		uint64_t others = w->others >> offset;
		if (others != 0) {
			*at = from + __builtin_ctzll(others);
			return true;
		}
	}
	*at = reader_space(from, last + ROOM);
	return *at <= last;
}

/* Behind the short integer at `at`, the usual number; NULL: it is another one. */
static SKIP_INLINE const char *integer(const char *at)
{
	const char *from = at;

	if ((unsigned char)at[1] <= ',') /* one digit, and no part of a number behind it */
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

/* ---- what is noted of schemas ---- */

/* Of r->odd: the outermost value is an object of schemas by their names. */
enum { ODD_PROPERTIES = 0x80 };
_Static_assert((SCHEMA_ODD_ALL & ODD_PROPERTIES) == 0, "a bit of its own");

/* Whether the object that ends, in level `next`, has schemas by their names: its key begins as "properties" does. Its
 * parent is an object if `inner`. */
static SKIP_INLINE bool holds_properties(const struct json_reader *r, const struct json_level *next,
					 const struct json_level *outer, bool inner)
{
	if (next == outer)
		return (r->odd & ODD_PROPERTIES) != 0;
	return inner && memcmp(next->keys[-1].at, "properti", 8) == 0;
}

/* ---- members ---- */

/* How a schema mostly begins, behind its bracket. */
static const char type_front[] = "\"type\":\"";

/* What ends the innermost container: in ASCII the two are a bit apart. */
static SKIP_INLINE char bracket_due(uint64_t objects)
{
	return (char)(']' | (objects & 1) << 5);
}
_Static_assert((']' | 1 << 5) == '}', "ASCII");

/* One state machine over all levels, from `from` on; what it holds of the reader's state goes back at the
 * end. Whole, because it is as fast as what it holds is in registers: cut into parts in line, with that
 * state in a structure, it takes 4 % more instructions, and goes to memory for them (bench/README.md).
 *
 * `unique`: keys are looked at for being there twice, so r->work is there. `spaced`: there may be white
 * space between tokens; without it the machine stops there. `schema`: it is one, and r->odd is kept; with
 * `unique`. */
static SKIP_INLINE enum reader_skipped skip_members(struct json_reader *r, uint32_t depth,
						    enum reader_skipped from, bool unique,
						    bool spaced, bool schema)
{
	struct json_level *next = r->levels + r->depth; /* behind the innermost container's */
	const struct json_level *outer = r->levels + depth, *full = r->levels + r->limits.depth_max;
	struct json_key *top = unique ? r->work->key_top : NULL;
	uint64_t filter = unique ? next[-1].filter : 0; /* of the innermost container */
	uint64_t objects = r->objects; /* in memory each bracket would wait for the one before */
	const char *at = r->at, *last = r->end - ROOM, *behind, *colon;
	enum reader_skipped to = SKIPPED_TO_MEMBER;
	struct white white = { r->end, 0 };

	if (from == SKIPPED_TO_VALUE)
		goto value;
	if (!r->fresh)
		goto behind_value;

behind_bracket:
	if (at > last)
		goto stop_fresh;
	if (spaced && !past_space(&white, &at, last))
		goto stop_fresh;
	if ((objects & 1) == 0) {
		if (*at == '[' || *at == '{') /* first: it has the most steps */
			goto opening_bracket;
		if (*at == ']')
			goto closing_bracket;
		if ((unsigned char)*at <= ' ')
			goto stop_fresh;
		goto value;
	}
	if (*at == '"')
		goto member;
	if (*at == '}')
		goto closing_bracket;
	goto stop_fresh;

member: /* at a quote */
	behind = plain_end(r, at + 1);
	if (SKIP_RARELY(behind > last || memcmp(behind, "\":", spaced ? 1 : 2) != 0))
		goto odd_key;
	colon = behind + 1;
	if (spaced) {
		if (SKIP_RARELY(!past_space(&white, &colon, last) || *colon != ':'))
			goto odd_key;
	}
	if (unique) {
		if (SKIP_RARELY(filter == KEYS_FILTER_FULL)) /* there is a table, mostly */
			goto known_key;
		size_t len = (size_t)(behind - at - 1);
		unsigned bit = json_keys_bit(at + 1, len);
		if (SKIP_RARELY((filter >> bit & 1) != 0))
			goto known_key;
		filter |= (uint64_t)1 << bit;
		*top++ = (struct json_key){ at + 1, (uint32_t)len, 0 };
	}
	at = colon + 1;

value:
	if (spaced && !past_space(&white, &at, last))
		goto stop_value;
	if (__builtin_expect_with_probability(*at != '"', 1, 0.3)) {
		if (*at == '{' || *at == '[')
			goto opening_bracket;
		behind = scalar(r, at);
		if (behind == NULL)
			goto stop_value;
		if (schema) {
			if (SKIP_RARELY(*at == 'n') && (objects & 1) != 0 &&
			    schema_null_odd(top - 1))
				r->odd |= SCHEMA_ODD_NULLS;
		}
		at = behind;
		goto behind_value;
	}

string: /* at a quote */
	behind = plain_end(r, at + 1);
	if (SKIP_RARELY(*behind != '"')) {
		behind = string_slowly(r, at + 1, behind);
		if (behind == NULL)
			goto stop_value;
	}
	if (schema) {
		if (SKIP_RARELY(behind - at == 6) && schema_array_odd(at, next[-1].keys, top))
			r->odd |= SCHEMA_ODD_ARRAYS;
	}
	at = behind + 1;

behind_value:
	if (at > last)
		goto stop;
	if (spaced && !past_space(&white, &at, last))
		goto stop;

next_or_end:
	if (memcmp(at, ",\"", 2) == 0) {
		at++;
		if ((objects & 1) != 0)
			goto member;
		goto string;
	}
	if (*at == ',') {
		behind = at + 1;
		if (spaced && !past_space(&white, &behind, last))
			goto stop;
		if ((objects & 1) == 0) {
			at = behind;
			goto value;
		}
		if (*behind != '"')
			goto stop;
		at = behind;
		goto member;
	}
	if (*at != bracket_due(objects))
		goto stop;

closing_bracket:
	at++;
	next--;
	if (schema) {
		if ((objects & 1) != 0 && holds_properties(r, next, outer, (objects & 2) != 0) &&
		    schema_keys_odd(next->keys, top))
			r->odd |= SCHEMA_ODD_KEYS;
	}
	objects >>= 1;
	if (unique) {
		top = next->keys;
		if (SKIP_RARELY(next->stop != NULL))
			r->work->slot_top = next->slots;
	}
	if (next == outer)
		goto stop;
	if (unique)
		filter = next[-1].filter;
	if (at > last)
		goto stop;
	if (spaced && !past_space(&white, &at, last))
		goto stop;
	if (*at == bracket_due(objects)) /* mostly they come together */
		goto closing_bracket;
	goto next_or_end;

opening_bracket:
	if (next == full)
		goto stop_value;
	objects = objects << 1 | (*at == '{');
	if (unique) {
		next[-1].filter = filter;
		filter = r->filter;
		next->keys = top;
		next->stop = NULL;
	}
	next++;
	at++;
	if (schema && !spaced) {
		/* as most of them begin; nothing is in the set yet, unless its keys have to be counted */
		if ((objects & 1) != 0 && filter == 0 && at <= last &&
		    memcmp(at, type_front, 8) == 0) {
			filter = (uint64_t)1 << json_keys_bit(type_front + 1, 4);
			*top++ = (struct json_key){ at + 1, 4, 0 };
			at += 7;
			goto string;
		}
	}
	goto behind_bracket;

known_key: /* perhaps: its bit is there, or all are; it has no escape */
	next[-1].filter = filter;
	r->work->key_top = top;
	r->at = colon + 1; /* a variable that lives across a call would be in memory all the time */
	if ((top < next[-1].stop
		     ? json_keys_add_large(r->work, &next[-1], at + 1, (size_t)(behind - at - 1))
		     : json_keys_add(r->work, &next[-1], r->limits.keys_max,
				     slice_of(at + 1, (size_t)(behind - at - 1)), false, r->end)) !=
	    KEYS_ADDED)
		goto stop_fresh; /* neither a comma nor a bracket may come now */
	filter = next[-1].filter;
	top++;
	at = r->at;
	goto value;

odd_key: /* with an escape, or near the end of the text, or without its colon */
	if (unique) {
		next[-1].filter = filter;
		r->work->key_top = top;
	}
	behind = key_slowly(r, &next[-1], at, last);
	if (behind == NULL)
		goto stop_fresh;
	if (unique) {
		filter = next[-1].filter;
		top++;
	}
	at = behind;
	goto value;

stop_value:
	to = SKIPPED_TO_VALUE;
stop:
	r->fresh = false;
	goto end;
stop_fresh:
	r->fresh = true;
end:
	if (r->fault.err == ERR_OK)
		r->at = at;
	r->objects = objects;
	r->depth = (uint32_t)(next - r->levels);
	if (unique) {
		if (next != outer)
			next[-1].filter = filter;
		r->work->key_top = top;
	}
	return to;
}

enum reader_skipped reader_skip_members(struct json_reader *r, uint32_t depth,
					enum reader_skipped where)
{
	if (r->end - r->at < ROOM)
		return where;
	return r->work != NULL ? skip_members(r, depth, where, true, true, false)
			       : skip_members(r, depth, where, false, true, false);
}

/* The same as far as there is no white space, as in most texts; ROOM bytes are ahead. */
static SCAN_RARE enum reader_skipped skip_compact(struct json_reader *r, uint32_t depth)
{
	return r->work != NULL ? skip_members(r, depth, SKIPPED_TO_MEMBER, true, false, false)
			       : skip_members(r, depth, SKIPPED_TO_MEMBER, false, false, false);
}

bool json_skip(struct json_reader *r, struct slice *raw)
{
	const char *from = r->at;
	uint32_t depth = r->depth;

	if (r->end - from <= ROOM || (*from != '{' && *from != '[') || depth >= r->limits.depth_max)
		return reader_skip_slowly(r, raw);
	must(r->work == NULL || r->work->reader == r);
	reader_enter(r, *from == '{', from);
	enum reader_skipped where = skip_compact(r, depth);
	if (r->depth != depth && !reader_skip_rest(r, depth, where))
		return false;
	if (raw != NULL)
		*raw = slice_of(from, (size_t)(r->at - from));
	return true;
}

/* The same of a schema, whose keys are looked at. */
static SCAN_RARE enum reader_skipped skip_schema(struct json_reader *r, uint32_t depth)
{
	return skip_members(r, depth, SKIPPED_TO_MEMBER, true, false, true);
}

static SCAN_RARE enum reader_skipped skip_spaced_schema(struct json_reader *r, uint32_t depth,
							enum reader_skipped where)
{
	return r->end - r->at < ROOM ? where : skip_members(r, depth, where, true, true, true);
}

/* Moves to the next member inside the container at `depth`, and leaves each container that ends before it. False when
 * the container at `depth` has ended, or after failing. */
static bool next_in_schema(struct json_reader *r, uint32_t depth)
{
	const struct json_level *outer = r->levels + depth;
	struct slice key;

	while (r->depth > depth) {
		const struct json_level *innermost = r->levels + r->depth - 1;
		const struct json_key *at = innermost->keys, *top = r->work->key_top;
		const bool object = (r->objects & 1) != 0, inner = (r->objects & 2) != 0;

		if (object ? json_next_key(r, &key) : json_next_item(r))
			return true;
		if (r->fault.err != ERR_OK)
			return false;
		/* holds_properties reads eight bytes of a key */
		if (object && (innermost == outer || (inner && at[-1].len >= 8)) &&
		    holds_properties(r, innermost, outer, inner) && schema_keys_odd_slowly(at, top))
			r->odd |= SCHEMA_ODD_KEYS;
	}
	return false;
}

/* Consumes a scalar, or enters a container. */
static bool take_in_schema(struct json_reader *r)
{
	const enum json_kind kind = json_peek(r);
	struct slice text;

	if (kind == JSON_OBJECT || kind == JSON_ARRAY)
		return kind == JSON_OBJECT ? json_enter_object(r) : json_enter_array(r);
	if (!json_skip(r, &text))
		return false;
	if (kind == JSON_NULL && (r->objects & 1) != 0 && schema_null_odd(r->work->key_top - 1))
		r->odd |= SCHEMA_ODD_NULLS;
	if (slice_eq(text, SLICE("\"array\"")))
		r->odd |= SCHEMA_ODD_ARRAYS; /* "items" may be there: nobody looks */
	return true;
}

/* The rest of a schema, where the text ends soon: the last bytes of a request are often those of its last tool. */
static SCAN_RARE bool end_schema(struct json_reader *r, uint32_t depth, enum reader_skipped where)
{
	while (where == SKIPPED_TO_VALUE || next_in_schema(r, depth)) {
		where = SKIPPED_TO_MEMBER;
		if (!take_in_schema(r))
			return false;
	}
	return r->fault.err == ERR_OK;
}

bool json_skip_schema(struct json_reader *r, bool properties)
{
	const uint32_t depth = r->depth;
	const enum json_kind kind = json_peek(r);
	const char *from = r->at;

	if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
		r->odd |= kind == JSON_NULL ? SCHEMA_ODD_NULLS : 0;
		return json_skip(r, NULL);
	}
	if (r->work == NULL || depth >= r->limits.depth_max) {
		r->odd = SCHEMA_ODD_ALL; /* nobody looks */
		return json_skip(r, NULL);
	}
	must(r->work->reader == r);
	r->odd = (uint8_t)(r->odd | (properties ? ODD_PROPERTIES : 0));
	reader_enter(r, *from == '{', from);
	enum reader_skipped where = SKIPPED_TO_MEMBER;
	if (r->end - from > ROOM)
		where = skip_schema(r, depth);
	if (r->depth != depth)
		where = skip_spaced_schema(r, depth, where);
	const bool ended = r->depth == depth || end_schema(r, depth, where);
	r->odd &= SCHEMA_ODD_ALL;
	return ended;
}
