/* json_fields.h - objects whose members are known by name; private to codec/.
 *
 * A text mostly goes on as one would guess: with the member that is next in the table, or one further
 * on, written without escapes (SDKs write members in the order of the schema). So the names are compared in place, beginning with the likeliest; the general way, by
 * json_next_key's rules, is taken for everything else and alone decides what is right. Known members
 * that come twice are found by a bit mask, the others by the sets of json_keys.h. */
#ifndef CODEC_JSON_FIELDS_H
#define CODEC_JSON_FIELDS_H

#include "codec/json_reader.h"

enum {
	FIELD_NAME_MAX = 30,
	FIELDS_MAX = 32,
	FIELD_END = FIELDS_MAX, /* the closing brace was consumed, or the reader has failed */
	FIELD_OTHER,            /* a member that is not in the table */
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
