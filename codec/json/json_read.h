/* json_read.h - pull tokenizer over one JSON text (RFC 8259), validating everything it passes.
 *
 * Everything is checked, inside skipped values too: grammar, UTF-8, escapes, lone surrogates,
 * numbers, depth, duplicate keys (compared decoded), trailing bytes. No recursion over input, no
 * allocation; the input is not modified. Errors are sticky: after the first one every call returns
 * false and `fault` says what and where. Tokens are slices of the input: strings without their
 * quotes and still escaped, numbers as text, skipped values as their whole text.
 *
 * One thread; the reader lives on the caller's stack, the work area is the caller's and reusable.
 */
#ifndef CODEC_JSON_JSON_READ_H
#define CODEC_JSON_JSON_READ_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/base/slice.h"

enum json_kind {
	JSON_BAD, /* the reader has failed */
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json_limits {
	uint32_t depth_max; /* open arrays and objects; at most JSON_DEPTH_MAX */
	uint32_t keys_max;  /* per object */
};

enum { JSON_DEPTH_MAX = 64, JSON_KEYS_MAX = 4096 };

/* What the product uses unless it says otherwise: depth 64, 4,096 keys an object. */
extern const struct json_limits json_limits_default;

/* Scratch for duplicate-key sets: one per worker, bounded, no allocation after init. `set`, static, is the build of
 * the codec that the entry points of codec/set.h use with it; the work area carries it, no more. NULL: no memory. */
struct json_work;
struct json_key;
struct codec_set;
MUST_USE struct json_work *json_work_new(const struct codec_set *set);
/* NULL is fine. */
void json_work_free(struct json_work *work);

/* private: what an open object pushed on the work area (json_keys.h), and which keys it cannot have
 * yet: the bits of their hashes are not in `filter`. */
struct json_level {
	struct json_key *keys;
	uint64_t filter;
	const struct json_key
		*stop;   /* a key that would be there makes its table grow; NULL: it has no table */
	uint16_t *slots; /* of the table, as what follows */
	size_t mask;     /* a slot's number */
};

struct json_reader {
	const char *begin, *at, *end;
	struct json_limits limits;
	struct json_work *work;
	uint32_t depth;
	struct fault fault; /* ERR_OK until the first error */
	/* private: */
	bool fresh;        /* a container was entered just now: no comma before its first member */
	uint8_t indent;    /* of each level, as the first line has it; 0: not by lines */
	uint8_t odd;       /* json_skip_schema's */
	const char *due;   /* where the value begins that has to be consumed next */
	uint64_t objects;  /* one bit per open container, innermost lowest: is it an object? */
	uintptr_t window;  /* where the 64 bytes begin that `specials` is about */
	uint64_t specials; /* of these, what ends plain string text (isa/isa.h) */
	uint64_t filter;   /* of a new level */
	const char *guess_last;  /* up to here names may be guessed (json_fields.h) */
	const char *escape_last; /* the last escape passed in a string; NULL: none so far */
	struct json_level levels[JSON_DEPTH_MAX]; /* not cleared by json_open */
};

/* `text` and `work` must outlive the reader; text below 4 GiB. `limits` NULL: the default. One reader
 * at a time uses a work area, json_open ends the one before (json_valid may be called in between).
 * `work` NULL: `text` was validated before, so duplicate keys are not looked for again. */
void json_open(struct json_reader *r, struct slice text, const struct json_limits *limits,
	       struct json_work *work);

/* The kind of the next value; consumes white space only. JSON_BAD after an error or at the end. */
enum json_kind json_peek(struct json_reader *r);

/* Enter the next value, which must be of that kind (else ERR_JSON with fault.detail). */
bool json_enter_object(struct json_reader *r);
bool json_enter_array(struct json_reader *r);

/* Moves to the next member: true with its key (its value is next), false at the closing brace
 * (which is consumed) or on error. The value of the member before must have been consumed. */
bool json_next_key(struct json_reader *r, struct slice *key);

/* Moves to the next element; false at the closing bracket or on error. */
bool json_next_item(struct json_reader *r);

/* Consume one value of that kind. */
bool json_string(struct json_reader *r, struct slice *raw);
bool json_number(struct json_reader *r, struct slice *raw);
bool json_bool(struct json_reader *r, bool *value);
bool json_null(struct json_reader *r);

/* Consumes any value; its exact text without surrounding white space. `raw` may be NULL. */
bool json_skip(struct json_reader *r, struct slice *raw);

/* True when nothing but white space is left and nothing failed; else ERR_JSON. */
bool json_finish(struct json_reader *r);

/* Marks the reader as failed at its present position with a rule of the caller's. Returns false. */
bool json_fail(struct json_reader *r, enum err err, const char *detail);

/* Byte offset of the present position. */
uint32_t json_offset(const struct json_reader *r);

/* ---- values on demand; `raw` was produced by a reader, so it is known to be valid ---- */

/* Whether the raw string means exactly `plain` (escape-aware). */
bool json_str_eq(struct slice raw, struct slice plain);

/* Whether two raw strings mean the same. */
bool json_str_same(struct slice a, struct slice b);

/* The meaning of a raw string: `raw` itself when it holds no escape, else a copy in `into` (absent
 * when memory is exhausted). */
MUST_USE struct slice json_str_plain(struct slice raw, struct arena *into);

/* The same without an arena: decoded into `buffer`, absent when that takes more than `room` bytes. */
struct slice json_str_fit(struct slice raw, char *buffer, size_t room);

/* Number text to int64: false if it is not an integer or does not fit; "100.0" and "1e2" are 100.
 */
bool json_to_int64(struct slice raw, int64_t *out);

/* Whether number text is an integer of whatever size: "100.0" and "1e99" are, "1e-1" is not. */
bool json_is_integer(struct slice raw);

/* Number text to double; overflow gives infinity. */
double json_to_double(struct slice raw);

/* Validates a whole text; true when valid. `fault` may be NULL. What the last reader has left on the work area
 * stays there and counts: it may be under way. Where it has failed, json_open is the call that begins anew. */
bool json_valid(struct slice text, const struct json_limits *limits, struct json_work *work,
		struct fault *fault);

#endif
