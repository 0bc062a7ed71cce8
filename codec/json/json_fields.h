/* json_fields.h - objects whose members are known by name; private to codec/.
 *
 * A text mostly goes on as one would guess: with the member that is next in the table, or one further
 * on, written without escapes (SDKs write members in the order of the schema). So the names are compared in place, beginning with the likeliest; the general way, by
 * json_next_key's rules, is taken for everything else and alone decides what is right. Known members
 * that come twice are found by a bit mask, the others by the sets of json_keys.h. */
#ifndef CODEC_JSON_JSON_FIELDS_H
#define CODEC_JSON_JSON_FIELDS_H

#include "codec/json/json_reader.h"

enum {
	FIELD_NAME_MAX = 30,
	FIELDS_MAX = 32,
	FIELD_END = FIELDS_MAX, /* the closing brace was consumed, or the reader has failed */
	FIELD_OTHER,            /* a member that is not in the table */
	FIELD_ROOM = FIELD_NAME_MAX + 6, /* a comma, a name, its colon, and a byte of the value */
};

/* The name in quotes, as it stands in a text. */
struct json_name {
	char quoted[FIELD_NAME_MAX + 2];
	uint8_t len;   /* of the name, without quotes */
	uint64_t mask; /* of the bytes of `quoted` among the first 8 */
};

#define JSON_NAME(name)                                                                           \
	{                                                                                         \
		"\"" name "\"", sizeof(name) - 1,                                                 \
			sizeof(name) + 1 >= 8 ? UINT64_MAX                                        \
					      : ((uint64_t)1 << 8 * ((sizeof(name) + 1) % 8)) - 1 \
	}

/* Where a walk over one object is. Zero, but for the table, before json_enter_fields. */
struct json_fields {
	const struct json_name *names;
	uint32_t count; /* FIELDS_MAX at most */
	uint32_t next;  /* the likeliest */
	uint32_t seen;  /* one bit per name */
};

#define JSON_FIELDS(table)                                 \
	{                                                  \
		.names = (table), .count = COUNT_OF(table) \
	}

/* Moves to the next member of the object that was entered: the index of its name, FIELD_OTHER with its
 * key in *other, or FIELD_END. The value is next. */
uint32_t json_next_field(struct json_reader *r, struct json_fields *fields, struct slice *other);

/* Whether the text at `at`, of which `first` are the first 8 bytes, begins with the quoted name;
 * FIELD_NAME_MAX + 2 bytes are readable. */
static inline bool json_name_at(const struct json_name *name, const char *at, uint64_t first)
{
	size_t len = name->len + (size_t)2;

	if (((first ^ scan_load8(name->quoted)) & name->mask) != 0)
		return false;
	if (len <= 8)
		return true;
	if (scan_load8(at + len - 8) != scan_load8(name->quoted + len - 8))
		return false;
	if (len > 16 && scan_load8(at + 8) != scan_load8(name->quoted + 8))
		return false;
	return len <= 24 || scan_load8(at + 16) == scan_load8(name->quoted + 16);
}

/* ---- the calls of json_read.h, for a reader in front of a value or behind one ---- */

/* json_peek. */
static inline enum json_kind json_here(struct json_reader *r)
{
	char c = r->at < r->end ? *r->at : '\0';

	return c == '"'           ? JSON_STRING
	       : c == '{'         ? JSON_OBJECT
	       : c == '['         ? JSON_ARRAY
	       : scan_is_digit(c) ? JSON_NUMBER
				  : json_peek(r);
}

/* Enters the container whose bracket is here: json_here has just said so. False after failing. */
static inline bool json_begin(struct json_reader *r)
{
	if (r->depth >= r->limits.depth_max)
		return reader_fail(r, r->at, ERR_TOO_DEEP, NULL);
	must(r->work == NULL || r->work->reader == r);
	reader_enter(r, *r->at == '{', r->at);
	return true;
}

/* json_next_item. */
static inline bool json_next(struct json_reader *r)
{
	if (r->end - r->at < 2)
		return json_next_item(r);
	if (r->fresh) {
		if (*r->at == '{' || *r->at == '"') {
			r->fresh = false;
			r->due = r->at;
			return true;
		}
	} else if (r->at[0] == ']') {
		must(r->depth > 0 && (r->objects & 1) == 0);
		reader_leave(r, r->at);
		return false;
	} else if (r->at[0] == ',' && (unsigned char)r->at[1] > ' ') {
		r->due = ++r->at;
		return true;
	}
	return json_next_item(r);
}

/* ---- texts that are guessed ---- */

/* Whether what an object's members are may be guessed before they are counted: always, unless somebody
 * wants fewer of them than usual. */
static inline bool json_may_guess(const struct json_reader *r)
{
	return r->filter == 0;
}

/* Steps behind `literal`, JSON text of the caller's, if the text at the reader's place goes on so.
 * What was stepped over has to be accounted for by the caller: see json_resume_object. */
static inline bool json_guess(struct json_reader *r, const char *literal, size_t len)
{
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, literal, len) != 0)
		return false;
	r->at += len;
	return true;
}
#define json_guess_lit(r, literal) json_guess((r), "" literal, sizeof(literal) - 1)

/* The object at `brace` was guessed up to the reader's place, which is in front of a value or behind
 * one: enters it as if it had been read. Its members so far are the caller's to mark in
 * fields->seen. False after failing: too deep. */
static inline bool json_resume_object(struct json_reader *r, const char *brace)
{
	const char *at = r->at;

	if (r->depth >= r->limits.depth_max)
		return reader_fail(r, brace, ERR_TOO_DEEP, NULL);
	must(r->work == NULL || r->work->reader == r);
	reader_enter(r, true, at - 1);
	r->fresh = false;
	return true;
}

/* Consumes the closing brace of the innermost object if it stands right here. */
static inline bool json_guess_end(struct json_reader *r)
{
	if (r->at >= r->end || *r->at != '}')
		return false;
	reader_leave(r, r->at);
	return true;
}

/* The whole number at the reader's place, up to 18 digits with something behind them: true with its
 * value, and it is consumed. False: it is another value, nothing happened. */
static inline bool json_guess_uint(struct json_reader *r, uint64_t *out)
{
	enum { DIGITS_MAX = 18 };
	const char *at = r->at, *from = at;
	const char *most = r->end - at > DIGITS_MAX ? at + DIGITS_MAX : r->end;
	uint64_t value = 0;

	for (; at < most && scan_is_digit(*at); at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == from || at == r->end || (*from == '0' && at - from > 1) || scan_is_digit(*at) ||
	    *at == '.' || (*at | 0x20) == 'e')
		return false;
	r->at = at;
	*out = value;
	return true;
}

/* "0." and up to 15 digits at the reader's place, with something behind them: the same. */
static inline bool json_guess_fraction(struct json_reader *r, struct slice *raw, double *out)
{
	enum { PLACES_MAX = 15 };
	static const double powers[PLACES_MAX + 1] = {
		1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15
	};
	const char *at = r->at + 2, *from = at;
	int64_t value = 0;

	if (r->end - r->at < PLACES_MAX + 3 || r->at[0] != '0' || r->at[1] != '.')
		return false;
	for (; scan_is_digit(*at) && at - from < PLACES_MAX; at++)
		value = value * 10 + (*at - '0');
	if (at == from || scan_is_digit(*at) || (*at | 0x20) == 'e')
		return false;
	*raw = slice_of(r->at, (size_t)(at - r->at));
	*out = (double)value / powers[at - from]; /* both exact, so rounded once */
	r->at = at;
	return true;
}

/* json_next_field where no name could be guessed: mostly at the end. */
static inline uint32_t json_unguessed_field(struct json_reader *r, struct json_fields *fields,
					    struct slice *other)
{
	return json_guess_end(r) ? (uint32_t)FIELD_END : json_next_field(r, fields, other);
}

/* json_skip, where the value is likely to be short. */
static inline bool json_pass(struct json_reader *r)
{
	const char *at = r->at, *quote;

	if (r->end - at < 8)
		return json_skip(r, NULL);
	if (*at == '"') {
		quote = reader_string_end(r, at + 1);
		r->at = quote == NULL ? r->at : quote + 1;
		return quote != NULL;
	}
	if (memcmp(at, "true", 4) == 0)
		r->at += 4;
	else if (memcmp(at, "false", 5) == 0)
		r->at += 5;
	else
		return json_skip(r, NULL);
	return true;
}

/* ---- members that are guessed, in any order: by the first four letters of the name ----
 *
 *	const char *name = json_guess_name(r);
 *
 *	if (name != NULL)
 *		switch (json_letters(name)) {
 *		case JSON_LETTERS('m', 'o', 'd', 'e'):
 *			if (json_guess_member(r, fields, MODE, name, "mode"))
 *				return MODE;
 *			break;
 *		}
 *	return json_unguessed_field(r, fields, other);
 */
/* json_guess_name behind the comma or the bracket, where there is white space at `at`. */
const char *json_guess_spaced_name(const struct json_reader *r, const char *at);

/* The quote of the next member's name, if there is nothing but a comma and white space behind it in
 * between, and enough of the text with it; NULL: that cannot be said. */
static inline const char *json_guess_name(const struct json_reader *r)
{
	const char *at = r->at;

	if (at >= r->guess_last)
		return NULL;
	if ((*at == ',') == r->fresh)
		return NULL;
	at += !r->fresh;
	return (unsigned char)*at > ' ' ? at : json_guess_spaced_name(r, at);
}

#define JSON_LETTERS(a, b, c, d) \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* The first four letters of the name whose quote is at `at`, quote and colon counted for short ones. */
static inline uint32_t json_letters(const char *at)
{
	return (uint32_t)(scan_load8(at) >> 8);
}

/* Moves to the value of member `i`, if the text at `at` is "name" and a colon, a value follows, and the
 * member was not there before. */
static inline __attribute__((always_inline)) bool json_guess_quoted(struct json_reader *r,
								    struct json_fields *fields,
								    uint32_t i, const char *at,
								    const char *quoted, size_t len)
{
	uint32_t bit = (uint32_t)1 << i;

	if (memcmp(at, quoted, len) != 0 || (fields->seen & bit) != 0)
		return false;
	at += len;
	if ((unsigned char)*at <= ' ' && (*at != ' ' || (unsigned char)*++at <= ' '))
		return false;
	fields->seen |= bit;
	r->fresh = false;
	r->at = at;
	return true;
}
#define json_guess_member(r, fields, i, at, name) \
	json_guess_quoted((r), (fields), (i), (at), "\"" name "\":", sizeof("\"" name "\":") - 1)

/* Steps behind `literal`, if the text goes on so: the comma, name and colon of the next member and the
 * beginning of its value, of READER_GUESS bytes at most. The member is marked as seen; it was not there
 * before, as whoever asks in this way asks once, and before any other way. */
static inline __attribute__((always_inline)) bool json_expect(struct json_reader *r,
							      struct json_fields *fields,
							      uint32_t i, const char *literal,
							      size_t len)
{
	const char *at = r->at;

	if (at >= r->guess_last || memcmp(at, literal, len) != 0)
		return false;
	fields->seen |= (uint32_t)1 << i;
	r->at = at + len;
	return true;
}
#define json_expect_lit(r, fields, i, literal) \
	json_expect((r), (fields), (i), "" literal, sizeof(literal) - 1)

/* Steps behind `literal`, which ends in a quote, and behind the string that this one opens. False: it is
 * something else, or the reader has failed; where it stands is not said. */
static inline bool json_guess_string(struct json_reader *r, const char *literal, size_t len,
				     struct slice *raw)
{
	if (!json_guess(r, literal, len))
		return false;
	const char *from = r->at, *quote = reader_string_end(r, from);
	if (quote == NULL)
		return false;
	*raw = slice_of(from, (size_t)(quote - from));
	r->at = quote + 1;
	return true;
}
#define json_guess_string_lit(r, literal, raw) \
	json_guess_string((r), "" literal, sizeof(literal) - 1, (raw))

/* The string at the reader's place, whose quote is known to be there: its text. */
static inline bool json_take_string(struct json_reader *r, struct slice *raw)
{
	const char *from = r->at + 1, *at = reader_string_end(r, from);

	if (at == NULL)
		return false;
	*raw = slice_of(from, (size_t)(at - from));
	r->at = at + 1;
	return true;
}

#endif
