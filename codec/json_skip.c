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

/* What json_keys_add_new leaves to others. False: the key is there twice, or one too many. */
static SCAN_RARE bool add_key(struct json_reader *r, struct json_level *set, const char *at,
			      size_t len)
{
	return json_keys_add(r->work, set, r->limits.keys_max, slice_of(at, len),
			     reader_escaped(r, at), r->end) == KEYS_ADDED;
}

/* key where white space is behind the name, which ends at `quote`. */
static SCAN_RARE const char *spaced_key(struct json_reader *r, struct json_level *set,
					const char *from, const char *quote, const char *last,
					bool unique)
{
	const char *colon = reader_space(quote + 1, r->end);

	if (colon > last + 1 || *colon != ':')
		return NULL;
	size_t len = (size_t)(quote - from);
	if (unique && (reader_escaped(r, from) || !json_keys_add_new(r->work, set, from, len)) &&
	    !add_key(r, set, from, len))
		return NULL;
	return colon + 1;
}

/* Behind the colon of the key whose quote is at `at`, as long as ROOM - 2 bytes more are there. NULL: not
 * as it should be. */
static inline __attribute__((always_inline)) const char *key(struct json_reader *r,
							     struct json_level *set, const char *at,
							     const char *last, bool unique)
{
	if (*at != '"')
		return NULL;
	const char *from = at + 1, *quote = reader_string_end(r, from);
	if ((uintptr_t)quote - 1 >= (uintptr_t)last) /* or it is NULL */
		return NULL;
	if (quote[1] != ':')
		return spaced_key(r, set, from, quote, last, unique);
	if (!unique)
		return quote + 2;
	size_t len = (size_t)(quote - from);
	if (reader_escaped(r, from) || !json_keys_add_new(r->work, set, from, len))
		return add_key(r, set, from, len) ? quote + 2 : NULL;
	return quote + 2;
}

/* Behind the short integer at `at`, the usual number; NULL: it is another one. */
static inline const char *integer(const char *at)
{
	const char *from = at;

	do
		at++;
	while (at - from < DIGITS_MAX && scan_is_digit(*at));
	bool whole = *at != '.' && (*at | 0x20) != 'e' && !scan_is_digit(*at);
	return whole && (*from != '0' || at - from == 1) ? at : NULL;
}

/* Consumes a number or a word at `at`, with ROOM - 2 bytes ahead. NULL: not as it should be, or the
 * reader has failed. */
static inline const char *scalar(struct json_reader *r, const char *at)
{
	struct slice raw;

	if (scan_is_digit(*at)) {
		const char *behind = integer(at);
		if (behind != NULL)
			return behind;
	}
	if (memcmp(at, "true", 4) == 0 || memcmp(at, "null", 4) == 0)
		return at + 4;
	if (memcmp(at, "false", 5) == 0)
		return at + 5;
	r->at = at;
	return (*at == '-' || scan_is_digit(*at)) && reader_number(r, &raw) ? r->at : NULL;
}

/* Where the loop below stops, for the pull calls to go on unless the reader has failed. */
static inline enum reader_skipped stop_at(struct json_reader *r, const char *at, bool fresh,
					  enum reader_skipped where)
{
	if (r->fault.err == ERR_OK)
		r->at = at;
	r->fresh = fresh;
	return where;
}

/* One state machine over all levels; clearer whole. `unique`: keys are looked at for being there twice. */
static inline __attribute__((always_inline)) enum reader_skipped skip_members(struct json_reader *r,
									      uint32_t depth,
									      bool unique)
{
	struct json_level *set = &r->levels[r->depth - 1];
	const char *at = r->at, *last, *from, *quote;
	bool fresh = r->fresh;

	if (r->end - at < ROOM)
		return SKIPPED_TO_MEMBER;
	last = r->end - ROOM;
	if (!fresh)
		goto behind_value;

behind_bracket:
	fresh = true;
	from = at;
	if ((unsigned char)*at <= ' ')
		at = reader_space(at, r->end);
	if (at > last)
		return stop_at(r, from, fresh, SKIPPED_TO_MEMBER);
	if (*at == '}' || *at == ']')
		goto closing_bracket;
	goto member;

behind_value:
	fresh = false;
	if (at > last)
		return stop_at(r, at, false, SKIPPED_TO_MEMBER);
	if (*at != ',') {
		if (*at == '}' || *at == ']')
			goto closing_bracket;
		if (!scan_is_space(*at))
			return stop_at(r, at, false, SKIPPED_TO_MEMBER);
		at = reader_space(at, r->end);
		goto behind_value;
	}
	from = at++; /* a key that is not as it should be is looked at from here */
	if ((unsigned char)*at <= ' ') {
		at = reader_space(at, r->end);
		if (at > last)
			return stop_at(r, from, fresh, SKIPPED_TO_MEMBER);
	}

member:
	if ((r->objects & 1) == 0)
		goto value;
	at = key(r, set, at, last, unique);
	if (at == NULL)
		return stop_at(r, from, fresh, SKIPPED_TO_MEMBER);
	if ((unsigned char)*at <= ' ') {
		at = reader_space(at, r->end);
		if (at > last)
			return stop_at(r, at, false, SKIPPED_TO_VALUE);
	}

value:
	if (*at == '"') {
		quote = reader_string_end(r, at + 1);
		if (quote == NULL)
			return stop_at(r, at, false, SKIPPED_TO_VALUE);
		at = quote + 1;
		goto behind_value;
	}
	if (*at == '{' || *at == '[') {
		if (r->depth >= r->limits.depth_max)
			return stop_at(r, at, false, SKIPPED_TO_VALUE);
		reader_enter(r, *at == '{', at);
		at++;
		set++;
		goto behind_bracket;
	}
	from = at;
	at = scalar(r, at);
	if (at == NULL)
		return stop_at(r, from, false, SKIPPED_TO_VALUE);
	goto behind_value;

closing_bracket:
	if ((*at == '}') != (r->objects & 1))
		return stop_at(r, at, fresh, SKIPPED_TO_MEMBER);
	reader_leave(r, at++);
	if (r->depth == depth)
		return SKIPPED_TO_MEMBER;
	set--;
	goto behind_value;
}

enum reader_skipped reader_skip_members(struct json_reader *r, uint32_t depth)
{
	return r->work != NULL ? skip_members(r, depth, true) : skip_members(r, depth, false);
}
