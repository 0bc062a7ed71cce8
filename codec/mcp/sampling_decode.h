/* sampling_decode.h - what the parts of sampling_read share; private to codec/sampling_*.c.
 *
 * Each part consumes one value of the reader and returns false when something is wrong. The first
 * violation is kept in decode.fault; on the way out every level adds its step to the path, so that a
 * good request pays nothing for it. Malformed JSON leaves decode.fault empty: the reader knows. */
#ifndef CODEC_MCP_SAMPLING_DECODE_H
#define CODEC_MCP_SAMPLING_DECODE_H

#include "codec/json/json_fields.h"
#include "codec/mcp/sampling.h"

enum { PATH_STEPS_MAX = 12, LIST_FIRST = 4 };

struct path_step {
	const char *member; /* NULL: an element */
	uint32_t index;
};

/* An array in the arena that grows by doubling. */
struct list {
	void *at;
	uint32_t count, cap;
};

/* Member by member: a copy of the whole would wait for its parts. */
static inline void list_init(struct list *list)
{
	list->at = NULL;
	list->count = 0;
	list->cap = 0;
}

struct decode {
	struct json_reader *r; /* the body's, or one over a part that was skipped before */
	struct json_work *work;
	struct arena *into;
	const struct sampling_limits *limits;
	struct sampling_request *out;
	enum revision revision;
	struct slice body;
	struct fault fault;
	struct path_step path[PATH_STEPS_MAX]; /* innermost first */
	uint32_t path_count;
	uint32_t types; /* one bit per enum block_type seen in a message */
	struct list messages, blocks, inner, tools;
};

/* A member's value, kept until the whole object has been seen. kind JSON_BAD: missing or null. */
struct field {
	enum json_kind kind;
	struct slice raw; /* text of a string, else JSON text */
};

/* ---- sampling_decode.c ---- */

/* Notes the first violation, at `at` (a place in the body; elsewhere or NULL: no offset), and stops
 * the reader. `detail` NULL: the row's text. Returns false. */
bool decode_refuse(struct decode *d, enum err err, const char *at, const char *detail);

/* The same at the reader's present place. */
bool decode_refuse_here(struct decode *d, enum err err, const char *detail);

/* The same with a string of the caller's in the words; `format` holds one %.*s. */
bool decode_refuse_naming(struct decode *d, enum err err, struct slice raw, const char *format);

/* Out of memory: ERR_BUSY. */
bool decode_busy(struct decode *d);

/* Adds a step to the path of a violation. Both return false. */
bool decode_in_member(struct decode *d, const char *member);
bool decode_in_item(struct decode *d, uint32_t index);

/* The path as text in the arena: $.params and what was added. */
struct slice decode_path(struct decode *d);

/* Makes room for one more element; false after refusing. */
bool decode_grow(struct decode *d, struct list *list, size_t size);

/* A new, undefined element; NULL after refusing. */
static inline void *decode_push(struct decode *d, struct list *list, size_t size)
{
	if (list->count == list->cap && !decode_grow(d, list, size))
		return NULL;
	return (char *)list->at + list->count++ * size;
}

/* Consumes any value but a string; null becomes missing. */
bool decode_field_other(struct decode *d, struct field *field);

/* Consumes any value; null becomes missing. */
static inline bool decode_field(struct decode *d, struct field *field)
{
	if (d->r->at == d->r->end || *d->r->at != '"')
		return decode_field_other(d, field);
	field->kind = JSON_STRING;
	return json_take_string(d->r, &field->raw);
}

/* Steps over an object of one member whose value is a string, into *raw; the literal `front` is what stands
 * in front of its text: {"name":" for one. False: it is another object, nothing happened, or the reader has
 * failed. */
#define decode_guess_only(d, front, raw) \
	decode_guess_object((d), "" front, sizeof(front) - 1, (raw))
static inline bool decode_guess_object(struct decode *d, const char *front, size_t len,
				       struct slice *raw)
{
	struct json_reader *r = d->r;
	const char *brace = r->at;

	if (!json_may_guess(r) || r->depth >= r->limits.depth_max || !json_guess(r, front, len))
		return false;
	const char *from = r->at, *quote = reader_string_end(r, from);
	if (quote == NULL)
		return false;
	*raw = slice_of(from, (size_t)(quote - from));
	if (r->end - quote >= 2 && quote[1] == '}') {
		r->at = quote + 2;
		return true;
	}
	r->at = brace;
	return false;
}

/* Whether nothing failed so far; for the end of a loop over members. */
static inline bool decode_good(const struct decode *d)
{
	return d->r->fault.err == ERR_OK && d->fault.err == ERR_OK;
}

/* Where the value of `field` begins in the text. */
static inline const char *field_at(const struct field *field)
{
	return field->raw.at - (field->kind == JSON_STRING);
}

/* A part of the text that was skipped, so it is valid, to be read now: *sub becomes d->r until
 * decode_sub_close. */
struct json_reader *decode_sub_open(struct decode *d, struct json_reader *sub, struct slice json);
void decode_sub_close(struct decode *d, struct json_reader *outer);

/* ---- sampling_params.c ---- */
bool decode_params(struct decode *d);

/* ---- sampling_message.c ---- */
bool decode_messages(struct decode *d);

/* ---- sampling_tools.c ---- */
bool decode_tools(struct decode *d);
bool decode_choice(struct decode *d, const struct field *choice, bool mode_wanted);

/* ---- sampling_prefs.c ---- */
bool decode_preferences(struct decode *d);

/* ---- sampling_media.c ---- */
/* Consumes the string at the reader's place; its front up to *clean is base64's alphabet. */
bool decode_base64_string(struct decode *d, struct slice *raw, const char **clean);
/* base64 without data URI prefix and line breaks, maybe of nothing; false when it is none (nothing is noted).
 * `clean`: raw is base64's alphabet up to there; NULL: not known. */
bool decode_base64(struct decode *d, struct slice raw, const char *clean, struct slice *out);
/* A media type in lower case and plain, image/jpg as image/jpeg; false when it is none (nothing is noted). */
bool decode_media_type(struct decode *d, struct slice raw, struct slice *out);
/* Sets *mime to what an image's first bytes say; false when that is no other type than *mime, or when they are of none
 * that is known (jpeg, png, gif, webp). Nothing is decoded. */
bool decode_image_type(struct slice base64, struct slice *mime);

/* ---- sampling_check.c: the rules over the whole history ---- */
/* Where d->types has calls or results; and where there are tools. */
bool decode_check_history(struct decode *d);
bool decode_check_tool_names(struct decode *d);

#endif
