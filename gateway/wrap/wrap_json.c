#include "gateway/wrap/wrap_json.h"

#include "codec/json/json_number.h"
#include "codec/json/json_read.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/* `at` is behind the opening quote. Behind the closing one, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
	const char *quote;

	while ((quote = memchr(at, '"', (size_t)(end - at))) != NULL) {
		const char *escape = quote;
		while (escape > at && escape[-1] == '\\')
			escape--;
		if ((quote - escape) % 2 == 0)
			return quote + 1;
		at = quote + 1; /* it is not the first of a run of escapes */
	}
	return NULL;
}

/* `at` is at the opening bracket. Behind the closing one, or NULL. */
static const char *skip_container(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end) {
		const char c = *at++;
		if (c == '"') {
			at = skip_string(at, end);
			if (at == NULL)
				return NULL;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == '}' || c == ']') && --depth == 0) {
			return at;
		}
	}
	return NULL;
}

static bool ends_token(char c)
{
	return is_blank(c) || c == ',' || c == ':' || c == '}' || c == ']' || c == '{' ||
	       c == '[' || c == '"';
}

/* Behind the value that begins at `at`; NULL: there is none. */
static const char *skip_value(const char *at, const char *end)
{
	if (at == end)
		return NULL;
	if (*at == '"')
		return skip_string(at + 1, end);
	if (*at == '{' || *at == '[')
		return skip_container(at, end);
	const char *from = at;
	while (at < end && !ends_token(*at))
		at++;
	return at == from ? NULL : at;
}

enum wrap_json_kind wrap_json_kind(struct slice value)
{
	if (slice_absent(value) || value.len == 0)
		return WRAP_JSON_NONE;
	switch (value.at[0]) {
	case '"':
		return WRAP_JSON_STRING;
	case '{':
		return WRAP_JSON_OBJECT;
	case '[':
		return WRAP_JSON_ARRAY;
	case 'n':
		return slice_eq(value, SLICE("null")) ? WRAP_JSON_NULL : WRAP_JSON_OTHER;
	default:
		return value.at[0] == '-' || (value.at[0] >= '0' && value.at[0] <= '9')
			       ? WRAP_JSON_NUMBER
			       : WRAP_JSON_OTHER;
	}
}

bool wrap_json_whole(struct slice text, struct slice *value)
{
	const char *end = text.at + text.len, *from = skip_blanks(text.at, end);
	const char *to = skip_value(from, end);

	if (to == NULL || skip_blanks(to, end) != end)
		return false;
	*value = slice_of(from, (size_t)(to - from));
	return true;
}

/* ---- walks ----------------------------------------------------------------------------------- */

void wrap_json_open(struct wrap_json_walk *walk, struct slice value)
{
	const enum wrap_json_kind kind = wrap_json_kind(value);
	const bool object = kind == WRAP_JSON_OBJECT;

	*walk = (struct wrap_json_walk){ .over = !object && kind != WRAP_JSON_ARRAY };
	if (walk->over)
		return;
	walk->close = object ? '}' : ']';
	walk->at = value.at + 1;
	walk->end = value.at + value.len;
	const char *first = skip_blanks(walk->at, walk->end);
	walk->over = first < walk->end && *first == walk->close;
}

static bool fail(struct wrap_json_walk *walk)
{
	walk->over = walk->bad = true;
	return false;
}

/* Cuts a value off, and moves *at behind it. */
static bool cut(const char **at, const char *end, struct slice *value)
{
	const char *from = skip_blanks(*at, end), *to = skip_value(from, end);

	if (to == NULL)
		return false;
	*value = slice_of(from, (size_t)(to - from));
	*at = to;
	return true;
}

bool wrap_json_next(struct wrap_json_walk *walk)
{
	const char *from = walk->at, *at = from;

	if (walk->over)
		return false;
	if (walk->close == '}') {
		if (!cut(&at, walk->end, &walk->name) || walk->name.at[0] != '"')
			return fail(walk);
		at = skip_blanks(at, walk->end);
		if (at == walk->end || *at++ != ':')
			return fail(walk);
	}
	if (!cut(&at, walk->end, &walk->value))
		return fail(walk);
	at = skip_blanks(at, walk->end);
	if (at == walk->end || (*at != ',' && *at != walk->close))
		return fail(walk);
	walk->part = slice_of(from, (size_t)(at - from));
	walk->over = *at == walk->close;
	walk->at = at + 1;
	return true;
}

struct slice wrap_json_member(struct slice object, const char *name)
{
	struct slice found = slice_of(NULL, 0);
	struct wrap_json_walk walk;

	if (wrap_json_kind(object) != WRAP_JSON_OBJECT)
		return found;
	wrap_json_open(&walk, object);
	while (wrap_json_next(&walk))
		if (wrap_json_is(walk.name, name))
			found = walk.value;
	return walk.bad ? slice_of(NULL, 0) : found;
}

/* ---- what values mean ------------------------------------------------------------------------ */

/* Only what codec/json finds valid may be given to its functions about meaning. */
static bool is_valid(struct slice value)
{
	struct json_reader r;

	json_open(&r, value, NULL, NULL);
	return json_skip(&r, NULL) && json_finish(&r);
}

static struct slice inside(struct slice string)
{
	return slice_of(string.at + 1, string.len - 2);
}

bool wrap_json_is(struct slice value, const char *plain)
{
	enum { ESCAPE_MAX = 6 }; /* \u0041 */
	const struct slice wanted = slice_str(plain);

	if (wrap_json_kind(value) != WRAP_JSON_STRING || value.len < wanted.len + 2 ||
	    value.len > wanted.len * ESCAPE_MAX + 2)
		return false;
	if (value.len == wanted.len + 2)
		return memcmp(value.at + 1, wanted.at, wanted.len) == 0;
	return memchr(value.at, '\\', value.len) != NULL && is_valid(value) &&
	       json_str_eq(inside(value), wanted);
}

static bool same_number(struct slice a, struct slice b)
{
	const struct json_number x = json_number_of(a), y = json_number_of(b);
	const char *at = x.first, *other = y.first;

	if (x.count != y.count)
		return false;
	if (x.count == 0)
		return true; /* 0, -0, 0.0 */
	if (x.negative != y.negative || x.exponent != y.exponent)
		return false;
	while (at < x.last && other < y.last) {
		at += *at == '.';
		other += *other == '.';
		if (*at++ != *other++)
			return false;
	}
	return true;
}

bool wrap_json_same_id(struct slice a, struct slice b)
{
	const enum wrap_json_kind kind = wrap_json_kind(a);

	if (kind != wrap_json_kind(b) || (kind != WRAP_JSON_STRING && kind != WRAP_JSON_NUMBER))
		return false;
	if (slice_eq(a, b))
		return true;
	if (!is_valid(a) || !is_valid(b))
		return false;
	return kind == WRAP_JSON_STRING ? json_str_same(inside(a), inside(b)) : same_number(a, b);
}

bool wrap_json_number(struct slice value, double *out)
{
	if (wrap_json_kind(value) != WRAP_JSON_NUMBER || !is_valid(value))
		return false;
	*out = json_to_double(value);
	return true;
}
