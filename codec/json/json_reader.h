/* json_reader.h - the inner half of json_read.h, for what is worth having in line; private to codec/.
 *
 * Strings are not searched one by one: 64 bytes are classified at once and the mask of what ends plain
 * text is kept, so that where the next string ends depends on a shift and a count of zeros, not on a
 * load (the latency of the latter is what bounds a reader that does without). */
#ifndef CODEC_JSON_JSON_READER_H
#define CODEC_JSON_JSON_READER_H

#include "codec/base/must.h"
#include "codec/isa/isa.h"
#include "codec/json/json_keys.h"
#include "codec/json/json_scan.h"
#include "codec/json/schema_odd.h"

/* A name, its quotes and colon, a comma in front, and a byte behind: what a guess looks at. */
enum { READER_GUESS = 28 };

/* ---- json_string.c ---- */

/* The closing quote of the string that has `found` in it: a byte that is not plain text, or the end
 * of the text. NULL after failing. */
const char *reader_string_rest(struct json_reader *r, const char *found);

/* The same for a string whose text goes on plainly at least to the end of the window. */
const char *reader_string_far(struct json_reader *r, const char *at);

/* What the string means whose text begins at `at`, to *out and on, as far as blocks show that all is well and
 * `room_end` is not reached. To where: the closing quote, or a place between two characters. */
const char *reader_unescape(struct json_reader *r, const char *at, char **out,
			    const char *room_end);

/* scan_space where there is some. */
const char *reader_space(const char *at, const char *end);

/* ---- json_read.c ---- */

/* Fails at `at`. Returns false. */
bool reader_fail(struct json_reader *r, const char *at, enum err err, const char *detail);

/* Not JSON: `detail`, unless the text simply ends at `at`. Returns false. */
bool reader_fail_json(struct json_reader *r, const char *at, const char *detail);

/* Moves to the next member of the innermost container, which is an object: true with its key, false at
 * the closing brace (which is consumed) or on error. Whether the key is there twice is not looked at. */
bool reader_next_key(struct json_reader *r, struct slice *key);

/* Whether that key, which reader_next_key has given last, is the first of its name among those that were asked about in
 * this object; false after failing. */
bool reader_new_key(struct json_reader *r, struct slice key);
/* Fails: somebody else knows that it is not. Returns false. */
bool reader_same_key(struct json_reader *r, struct slice key);

/* Consumes the number at r->at. What may follow it is for the next call to judge. */
bool reader_number(struct json_reader *r, struct slice *raw);

enum reader_skipped {
	SKIPPED_TO_MEMBER, /* in front of a member or of a closing bracket, or behind the latter */
	SKIPPED_TO_VALUE,  /* behind a key or, in an array, a comma: a value is next */
};

/* json_skip of any value, by the pull calls where json_skip.c does not get along. */
bool reader_skip_slowly(struct json_reader *r, struct slice *raw);

/* The rest of it: the value whose outermost container was entered at `depth`, from where
 * reader_skip_members stopped. */
bool reader_skip_rest(struct json_reader *r, uint32_t depth, enum reader_skipped where);

/* ---- json_skip.c ---- */

/* Consumes members of the innermost container, and what is in them, from `where` on and as long as they are
 * well-formed and well inside the text, until the depth is `depth` again. The reader may have failed. */
enum reader_skipped reader_skip_members(struct json_reader *r, uint32_t depth,
					enum reader_skipped where);

/* json_skip of a JSON Schema, or of `properties`, an object of them by their names. Adds to r->odd what the schema may
 * have (enum schema_odd). */
bool json_skip_schema(struct json_reader *r, bool properties);

/* ---- inline ---- */

/* The closing quote of the string whose text begins at `at`; NULL after failing. */
static inline const char *reader_string_end(struct json_reader *r, const char *at)
{
	uintptr_t offset = (uintptr_t)at - r->window;

	if (offset < ISA_BLOCK) {
		uint64_t specials = r->specials >> offset;
		if (specials != 0) {
			const char *found = at + __builtin_ctzll(specials);
			return *found == '"' ? found : reader_string_rest(r, found);
		}
	}
	return reader_string_far(r, at);
}

/* Whether the string whose text begins at `at`, the one read last, has an escape. */
static inline bool reader_escaped(const struct json_reader *r, const char *at)
{
	return (uintptr_t)r->escape_last >= (uintptr_t)at;
}

/* Behind the line's end at `at` and the indentation of something `depth` containers deep, if it is that
 * of the first line; else NULL. How long it is is foretold and then compared: whatever comes next does not
 * wait for the text to be loaded and its white space to be counted, which adds up in texts by lines. */
static inline const char *reader_line(const struct json_reader *r, const char *at, uint32_t depth)
{
	size_t len = 1 + (size_t)r->indent * depth;

	if (r->indent == 0 || r->end - at <= ISA_LINE || !isa_line(at, len) ||
	    (unsigned char)at[len] <= ' ')
		return NULL;
	__asm__("" : "+r"(len)); /* not what was counted, which is the same */
	return at + len;
}

/* Opens the container at `at`, which is within the limits. */
static inline void reader_enter(struct json_reader *r, bool object, const char *at)
{
	const uint32_t depth = r->depth;

	if (r->work != NULL)
		json_keys_begin(r->work, &r->levels[depth], r->filter);
	r->depth = depth + 1;
	r->objects = r->objects << 1 | object;
	r->at = at + 1;
	r->fresh = true;
}

/* Closes the innermost container at `at`. */
static inline void reader_leave(struct json_reader *r, const char *at)
{
	const uint32_t depth = r->depth - 1;

	r->depth = depth;
	r->objects >>= 1;
	if (r->work != NULL)
		json_keys_end(r->work, &r->levels[depth]);
	r->at = at + 1;
	r->fresh = false;
}

#endif
