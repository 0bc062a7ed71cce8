/* json_skip.c - opaque values at speed: most of what a body with tools consists of.
 *
 * An accelerator over the pull calls of json_read.c and their state: it takes whole members while they
 * look as they should, and stops in front of the one that does not. That one is taken by the pull
 * calls, which alone know what is wrong. */
#include "codec/json_reader.h"

enum {
	/* Bytes ahead that let a member be looked at without asking again: what is between its
	 * strings when there is no white space, and the first word of a key. */
	ROOM = 16,
};

/* Past white space; mostly there is none. */
static inline const char *space(const char *at, const char *end)
{
	if ((unsigned char)*at > ' ')
		return at;
	return scan_space(at, end);
}

/* Past a key, its colon, and white space: to the value. NULL: not as it should be. */
static inline const char *key(struct json_reader *r, const char *at)
{
	if (*at != '"')
		return NULL;
	const char *quote = reader_string_end(r, at + 1);
	if (quote == NULL || r->end - quote < ROOM || quote[1] != ':')
		return NULL;
	if (r->work == NULL)
		return space(quote + 2, r->end);
	struct slice raw = slice_of(at + 1, (size_t)(quote - at - 1));
	struct json_level *set = &r->levels[r->depth - 1];
	bool escaped = reader_escaped(r, raw.at);
	if ((escaped || !json_keys_add_new(r->work, set, r->limits.keys_max, raw)) &&
	    json_keys_add(r->work, set, r->limits.keys_max, raw, escaped, r->end) != KEYS_ADDED)
		return NULL;
	return space(quote + 2, r->end);
}

/* Consumes a number or a word at `at`. */
static inline bool scalar(struct json_reader *r, const char *at)
{
	struct slice raw;
	bool value;

	r->at = at;
	if (*at == 't' || *at == 'f')
		return json_bool(r, &value);
	if (*at == 'n')
		return json_null(r);
	return (*at == '-' || scan_is_digit(*at)) && reader_number(r, &raw);
}

/* Consumes the value at `at`, which is no string; of a container only the bracket. False: not as it should be, or the
 * reader has failed. */
static inline bool value(struct json_reader *r, const char *at)
{
	if (*at != '{' && *at != '[')
		return scalar(r, at);
	if (r->depth >= r->limits.depth_max)
		return false;
	reader_enter(r, *at == '{', at);
	return true;
}

/* Behind the comma at `at`, and white space; NULL: there is none. */
static inline const char *comma(const char *at, const char *end)
{
	return *at == ',' ? space(at + 1, end) : NULL;
}

enum reader_skipped reader_skip_members(struct json_reader *r, uint32_t depth)
{
	const char *at = r->at;

	while (r->end - at >= ROOM) {
		at = space(at, r->end);
		if (at == r->end)
			break;
		if (*at == '}' || *at == ']') {
			if ((*at == '}') != (r->objects & 1))
				break;
			reader_leave(r, at++);
			if (r->depth == depth)
				break;
			continue;
		}
		r->at = at; /* what is not as it should be is looked at from here */
		if (!r->fresh && (at = comma(at, r->end)) == NULL)
			return SKIPPED_TO_MEMBER;
		if (r->end - at < ROOM || ((r->objects & 1) != 0 && (at = key(r, at)) == NULL))
			return SKIPPED_TO_MEMBER;
		r->fresh = false;
		if (r->end - at >= ROOM && *at == '"' &&
		    (at = reader_string_end(r, at + 1)) != NULL) {
			at++;
			continue;
		}
		if (at == NULL) /* the string failed */
			return SKIPPED_TO_VALUE;
		r->at = at;
		if (r->end - at < ROOM || !value(r, at))
			return SKIPPED_TO_VALUE;
		at = r->at;
	}
	r->at = at;
	return SKIPPED_TO_MEMBER;
}
