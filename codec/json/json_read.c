#include "codec/json/json_read.h"

#include "codec/json/json_reader.h"

const struct json_limits json_limits_default = { JSON_DEPTH_MAX, JSON_KEYS_MAX };

static const char unexpected_end[] = "the text ends too early";

/* ---- failure: the rest of the text is cut off, so that every later call fails by itself ---- */

SCAN_RARE bool reader_fail(struct json_reader *r, const char *at, enum err err, const char *detail)
{
	if (r->fault.err == ERR_OK) {
		r->fault = (struct fault){ .err = err,
					   .offset = (uint32_t)(at - r->begin),
					   .detail = detail };
		r->at = r->end = at;
		r->guess_last = r->begin;
		r->due = NULL;
	}
	return false;
}

SCAN_RARE bool reader_fail_json(struct json_reader *r, const char *at, const char *detail)
{
	return reader_fail(r, at, ERR_JSON, at == r->end ? unexpected_end : detail);
}

bool json_fail(struct json_reader *r, enum err err, const char *detail)
{
	return reader_fail(r, r->at, err, detail);
}

uint32_t json_offset(const struct json_reader *r)
{
	return (uint32_t)(r->at - r->begin);
}

/* The indentation of the line at `at`, up to 8. */
static SCAN_RARE uint8_t first_indent(const char *at)
{
	enum { INDENT_MAX = 8 };
	uint8_t count = 0;

	while (count < INDENT_MAX && at[count] == ' ')
		count++;
	return count;
}

void json_open(struct json_reader *r, struct slice text, const struct json_limits *limits,
	       struct json_work *work)
{
	must(text.len < UINT32_MAX);
	r->begin = r->at = text.at;
	r->end = text.at == NULL ? NULL : text.at + text.len;
	r->limits = limits == NULL ? json_limits_default : *limits;
	must(r->limits.depth_max <= JSON_DEPTH_MAX && r->limits.keys_max <= JSON_KEYS_MAX);
	r->work = work;
	r->depth = 0;
	r->fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	r->fresh = false;
	r->due = NULL;
	r->objects = 0;
	r->window = (uintptr_t)text.at - ISA_BLOCK;
	r->specials = 0;
	r->escape_last = NULL;
	r->filter = json_keys_filter(r->limits.keys_max);
	r->guess_last = r->filter == 0 && text.len > READER_GUESS ? r->end - READER_GUESS : text.at;
	r->indent = text.len > ISA_BLOCK && text.at[1] == '\n' ? first_indent(text.at + 2) : 0;
	if (work != NULL) {
		work->reader = r;
		json_keys_clear(work);
	}
}

/* ---- values ---- */

enum json_kind json_peek(struct json_reader *r)
{
	static const uint8_t kinds[256] = {
		['n'] = JSON_NULL,   ['f'] = JSON_FALSE,  ['t'] = JSON_TRUE,   ['-'] = JSON_NUMBER,
		['0'] = JSON_NUMBER, ['1'] = JSON_NUMBER, ['2'] = JSON_NUMBER, ['3'] = JSON_NUMBER,
		['4'] = JSON_NUMBER, ['5'] = JSON_NUMBER, ['6'] = JSON_NUMBER, ['7'] = JSON_NUMBER,
		['8'] = JSON_NUMBER, ['9'] = JSON_NUMBER, ['"'] = JSON_STRING, ['['] = JSON_ARRAY,
		['{'] = JSON_OBJECT,
	};
	const char *at = scan_space(r->at, r->end);

	if (at == r->end) {
		reader_fail_json(r, at, "");
		return JSON_BAD;
	}
	uint8_t kind = kinds[(unsigned char)*at];
	if (kind == JSON_BAD) {
		reader_fail_json(r, at,
				 at == r->begin && *at == '\xef' ? "byte order mark before the JSON"
								 : "expected a value");
		return JSON_BAD;
	}
	r->at = at;
	return (enum json_kind)kind;
}

static inline bool expect(struct json_reader *r, enum json_kind kind, const char *detail)
{
	enum json_kind next = json_peek(r);

	if (next == kind)
		return true;
	return next == JSON_BAD ? false : reader_fail_json(r, r->at, detail);
}

static inline bool enter(struct json_reader *r, bool object)
{
	if (r->depth >= r->limits.depth_max)
		return reader_fail(r, r->at, ERR_TOO_DEEP, NULL);
	must(r->work == NULL || r->work->reader == r);
	reader_enter(r, object, r->at);
	return true;
}

bool json_enter_object(struct json_reader *r)
{
	return expect(r, JSON_OBJECT, "expected an object") && enter(r, true);
}

bool json_enter_array(struct json_reader *r)
{
	return expect(r, JSON_ARRAY, "expected an array") && enter(r, false);
}

/* Steps to the next member of the container that `close` ends: past the comma and white space, or out
 * of the container. */
static inline bool next_member(struct json_reader *r, char close, const char *detail)
{
	const char *at = scan_space(r->at, r->end);

	if (at == r->end)
		return reader_fail_json(r, at, "");
	must(r->depth > 0 && (r->objects & 1) == (close == '}'));
	must(r->at != r->due); /* the value of the member before was consumed */
	if (*at == close) {
		reader_leave(r, at);
		return false;
	}
	if (!r->fresh) {
		if (*at != ',')
			return reader_fail_json(r, at, detail);
		at = scan_space(at + 1, r->end);
	}
	r->fresh = false;
	r->at = at;
	return true;
}

static SCAN_RARE bool key_refused(struct json_reader *r, const char *at,
				  enum json_keys_answer answer)
{
	if (answer == KEYS_DUPLICATE)
		return reader_fail(r, at, ERR_DUPLICATE_KEY, NULL);
	return reader_fail(r, at, ERR_TOO_MANY_KEYS, NULL);
}

bool reader_next_key(struct json_reader *r, struct slice *key)
{
	if (!next_member(r, '}', "expected a comma or a closing brace"))
		return false;
	const char *quote = r->at;
	if (quote == r->end || *quote != '"')
		return reader_fail_json(r, quote, "expected a key");
	const char *at = reader_string_end(r, quote + 1);
	if (at == NULL)
		return false;
	*key = slice_of(quote + 1, (size_t)(at - quote - 1));
	at = scan_space(at + 1, r->end);
	if (at == r->end || *at != ':')
		return reader_fail_json(r, at, "expected a colon");
	r->at = r->due = scan_space(at + 1, r->end);
	return true;
}

bool reader_same_key(struct json_reader *r, struct slice key)
{
	return key_refused(r, key.at - 1, KEYS_DUPLICATE);
}

static inline bool new_key(struct json_reader *r, struct slice key)
{
	if (r->work == NULL)
		return true;
	must(r->work->reader == r);
	enum json_keys_answer answer =
		json_keys_add(r->work, &r->levels[r->depth - 1], r->limits.keys_max, key,
			      reader_escaped(r, key.at), r->end);
	return answer == KEYS_ADDED || key_refused(r, key.at - 1, answer);
}

bool reader_new_key(struct json_reader *r, struct slice key)
{
	return new_key(r, key);
}

static inline bool next_key(struct json_reader *r, struct slice *key)
{
	return reader_next_key(r, key) && new_key(r, *key);
}

bool json_next_key(struct json_reader *r, struct slice *key)
{
	return next_key(r, key);
}

static inline bool next_item(struct json_reader *r)
{
	if (!next_member(r, ']', "expected a comma or a closing bracket"))
		return false;
	r->due = r->at;
	return true;
}

/* next_item where elements have lines of their own. */
static SCAN_RARE bool next_line_item(struct json_reader *r)
{
	const char *at = r->at, *line;

	if (at == r->end || at == r->due)
		return next_item(r);
	must(r->depth > 0 && (r->objects & 1) == 0);
	if (r->fresh || *at == ',') {
		line = reader_line(r, at + !r->fresh, r->depth);
		if (line != NULL && *line != ']') {
			r->fresh = false;
			r->at = r->due = line;
			return true;
		}
	} else {
		line = reader_line(r, at, r->depth - 1);
		if (line != NULL && *line == ']') {
			reader_leave(r, line);
			return false;
		}
	}
	return next_item(r);
}

bool json_next_item(struct json_reader *r)
{
	return r->indent != 0 ? next_line_item(r) : next_item(r);
}

/* Consumes the string whose quote is at r->at. */
static inline bool take_string(struct json_reader *r, struct slice *raw)
{
	const char *from = r->at + 1, *at = reader_string_end(r, from);

	if (at == NULL)
		return false;
	*raw = slice_of(from, (size_t)(at - from));
	r->at = at + 1;
	return true;
}

bool json_string(struct json_reader *r, struct slice *raw)
{
	return expect(r, JSON_STRING, "expected a string") && take_string(r, raw);
}

static inline const char *digits(const char *at, const char *end)
{
	while (at < end && scan_is_digit(*at))
		at++;
	return at;
}

bool reader_number(struct json_reader *r, struct slice *raw)
{
	const char *at = r->at + (*r->at == '-'), *end = r->end, *from = at;

	at = digits(at, end);
	if (at == from || (*from == '0' && at - from > 1))
		return reader_fail_json(r, at == from ? at : from, "malformed number");
	if (at < end && *at == '.') {
		from = at + 1;
		at = digits(from, end);
		if (at == from)
			return reader_fail_json(r, at, "malformed number");
	}
	if (at < end && (*at | 0x20) == 'e') {
		from = at + 1;
		if (from < end && (*from == '+' || *from == '-'))
			from++;
		at = digits(from, end);
		if (at == from)
			return reader_fail_json(r, at, "malformed number");
	}
	*raw = slice_of(r->at, (size_t)(at - r->at));
	r->at = at;
	return true;
}

bool json_number(struct json_reader *r, struct slice *raw)
{
	return expect(r, JSON_NUMBER, "expected a number") && reader_number(r, raw);
}

/* Consumes the word at r->at, whose first letter is known to be right. */
static inline bool take_word(struct json_reader *r, const char *word, size_t len)
{
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return reader_fail_json(r, r->at, "expected a value");
	r->at += len;
	return true;
}

static inline bool take_bool(struct json_reader *r, enum json_kind kind)
{
	return kind == JSON_TRUE ? take_word(r, "true", 4) : take_word(r, "false", 5);
}

bool json_bool(struct json_reader *r, bool *value)
{
	enum json_kind kind = json_peek(r);

	if (kind == JSON_BAD)
		return false;
	if (kind != JSON_TRUE && kind != JSON_FALSE)
		return reader_fail_json(r, r->at, "expected true or false");
	if (!take_bool(r, kind))
		return false;
	*value = kind == JSON_TRUE;
	return true;
}

bool json_null(struct json_reader *r)
{
	return expect(r, JSON_NULL, "expected null") && take_word(r, "null", 4);
}

/* Consumes a scalar, or enters a container. */
static inline bool take_any(struct json_reader *r)
{
	struct slice raw;

	enum json_kind kind = json_peek(r);

	switch (kind) {
	case JSON_STRING:
		return take_string(r, &raw);
	case JSON_NUMBER:
		return reader_number(r, &raw);
	case JSON_OBJECT:
	case JSON_ARRAY:
		return enter(r, kind == JSON_OBJECT);
	case JSON_TRUE:
	case JSON_FALSE:
		return take_bool(r, kind);
	case JSON_NULL:
		return take_word(r, "null", 4);
	case JSON_BAD:
		break;
	}
	return false;
}

bool reader_skip_rest(struct json_reader *r, uint32_t depth, enum reader_skipped where)
{
	struct slice key;

	while (r->depth > depth) {
		where = reader_skip_members(r, depth, where);
		if (where == SKIPPED_TO_MEMBER)
			/* out of every container that ends here, on to the next value of one that
			 * does not */
			while (r->depth > depth &&
			       !(r->objects & 1 ? next_key(r, &key) : next_item(r)))
				if (r->fault.err != ERR_OK)
					return false;
		if (r->depth > depth && !take_any(r))
			return false;
		where = SKIPPED_TO_MEMBER;
	}
	return true;
}

bool reader_skip_slowly(struct json_reader *r, struct slice *raw)
{
	uint32_t depth = r->depth;

	if (json_peek(r) == JSON_BAD)
		return false;
	const char *from = r->at;
	if (!take_any(r) || !reader_skip_rest(r, depth, SKIPPED_TO_MEMBER))
		return false;
	if (raw != NULL)
		*raw = slice_of(from, (size_t)(r->at - from));
	return true;
}

bool json_finish(struct json_reader *r)
{
	if (r->fault.err != ERR_OK)
		return false;
	const char *at = scan_space(r->at, r->end);
	if (at != r->end)
		return reader_fail(r, at, ERR_JSON, "text after the end of the JSON value");
	if (r->depth != 0)
		return reader_fail(r, at, ERR_JSON, unexpected_end);
	r->at = at;
	return true;
}

bool json_valid(struct slice text, const struct json_limits *limits, struct json_work *work,
		struct fault *fault)
{
	struct json_reader r;
	const struct json_reader *outer = work->reader;
	struct json_key *const key_top = work->key_top;
	uint16_t *const slot_top = work->slot_top;

	json_open(&r, text, limits, work);
	work->key_top = key_top; /* above what an outer reader keeps there */
	work->slot_top = slot_top;
	bool valid = json_skip(&r, NULL) && json_finish(&r);
	if (!valid && fault != NULL)
		*fault = r.fault;
	work->key_top = key_top;
	work->slot_top = slot_top;
	work->reader = outer;
	return valid;
}
