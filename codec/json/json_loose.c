#include "codec/json/json_loose.h"

#include "codec/base/must.h"
#include "codec/json/json_number.h"
#include "codec/json/json_read.h"
#include "codec/json/json_scan.h"

/* ---- where values end ------------------------------------------------------------------------ */

/* `at` is behind the opening quote. Behind the closing one, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
	for (;;) {
		at = scan_string_end(at, end);
		if (at == end)
			return NULL;
		if (*at++ == '"')
			return at;
		if (at++ == end)
			return NULL; /* a backslash is the last byte */
	}
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
	while (at < end && !scan_ends_token(*at))
		at++;
	return at == from ? NULL : at;
}

enum json_loose_kind json_loose_kind(struct slice value)
{
	if (slice_absent(value) || value.len == 0)
		return JSON_LOOSE_NONE;
	switch (value.at[0]) {
	case '"':
		return JSON_LOOSE_STRING;
	case '{':
		return JSON_LOOSE_OBJECT;
	case '[':
		return JSON_LOOSE_ARRAY;
	case 'n':
		return slice_eq(value, SLICE("null")) ? JSON_LOOSE_NULL : JSON_LOOSE_OTHER;
	default:
		return value.at[0] == '-' || scan_is_digit(value.at[0]) ? JSON_LOOSE_NUMBER
									: JSON_LOOSE_OTHER;
	}
}

bool json_loose_whole(struct slice text, struct slice *value)
{
	if (text.len == 0)
		return false;
	const char *end = text.at + text.len, *from = scan_space(text.at, end);
	const char *to = skip_value(from, end);

	if (to == NULL || scan_space(to, end) != end)
		return false;
	*value = slice_of(from, (size_t)(to - from));
	return true;
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* From the bracket at `at`. */
static void open_at(struct json_loose_walk *walk, const char *at, const char *end)
{
	*walk = (struct json_loose_walk){ .close = *at == '{' ? '}' : ']', .end = end };
	walk->at = at + 1;
	const char *first = scan_space(walk->at, end);
	walk->over = first < end && *first == walk->close;
	if (walk->over)
		walk->at = first + 1;
}

void json_loose_open(struct json_loose_walk *walk, struct slice value)
{
	const enum json_loose_kind kind = json_loose_kind(value);

	if (kind == JSON_LOOSE_OBJECT || kind == JSON_LOOSE_ARRAY)
		open_at(walk, value.at, value.at + value.len);
	else
		*walk = (struct json_loose_walk){ .over = true };
}

bool json_loose_enter(struct json_loose_walk *walk, const struct json_loose_walk *outer)
{
	if (outer->at == outer->end || (*outer->at != '{' && *outer->at != '['))
		return false;
	open_at(walk, outer->at, outer->end);
	return true;
}

static bool fail(struct json_loose_walk *walk)
{
	walk->over = walk->bad = true;
	return false;
}

bool json_loose_name(struct json_loose_walk *walk)
{
	if (walk->over)
		return false;
	walk->from = walk->at;
	const char *at = scan_space(walk->at, walk->end);
	if (walk->close == '}') {
		const char *name = at;
		at = at < walk->end && *at == '"' ? skip_string(at + 1, walk->end) : NULL;
		if (at == NULL)
			return fail(walk);
		walk->name = slice_of(name, (size_t)(at - name));
		at = scan_space(at, walk->end);
		if (at == walk->end || *at++ != ':')
			return fail(walk);
		at = scan_space(at, walk->end);
	}
	walk->at = at;
	return true;
}

/* The value ends at `to`. */
static bool step(struct json_loose_walk *walk, const char *to)
{
	const char *at = to == NULL ? walk->end : scan_space(to, walk->end);

	if (at == walk->end || (*at != ',' && *at != walk->close))
		return fail(walk);
	walk->value = slice_of(walk->at, (size_t)(to - walk->at));
	walk->part = slice_of(walk->from, (size_t)(at - walk->from));
	walk->over = *at == walk->close;
	walk->at = at + 1;
	return true;
}

bool json_loose_value(struct json_loose_walk *walk)
{
	return step(walk, skip_value(walk->at, walk->end));
}

bool json_loose_leave(struct json_loose_walk *walk, const struct json_loose_walk *inner)
{
	must(inner->over && !inner->bad);
	return step(walk, inner->at);
}

bool json_loose_next(struct json_loose_walk *walk)
{
	return json_loose_name(walk) && json_loose_value(walk);
}

bool json_loose_sound(struct slice container)
{
	struct json_loose_walk walk;

	json_loose_open(&walk, container);
	while (json_loose_next(&walk))
		continue;
	return !walk.bad;
}

struct slice json_loose_member(struct slice object, const char *name)
{
	struct slice found = slice_of(NULL, 0);
	struct json_loose_walk walk;

	if (json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return found;
	json_loose_open(&walk, object);
	while (json_loose_next(&walk))
		if (json_loose_is(walk.name, name))
			found = walk.value;
	return walk.bad ? slice_of(NULL, 0) : found;
}

bool json_loose_twice(struct slice object, const char *const *names, size_t count)
{
	uint64_t seen = 0;
	struct json_loose_walk walk;

	must(count <= 64);
	if (json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return false;
	json_loose_open(&walk, object);
	while (json_loose_next(&walk)) {
		for (size_t i = 0; i < count; i++) {
			if (!json_loose_is(walk.name, names[i]))
				continue;
			if ((seen >> i & 1) != 0)
				return true;
			seen |= UINT64_C(1) << i;
		}
	}
	return false;
}

/* ---- what values mean ------------------------------------------------------------------------ */

/* Only what json_read.h finds valid, without white space around, may be given to its functions about meaning. */
static bool is_valid(struct slice value)
{
	struct json_reader r;
	struct slice whole;

	json_open(&r, value, NULL, NULL);
	return json_skip(&r, &whole) && whole.len == value.len;
}

static struct slice inside(struct slice string)
{
	return slice_of(string.at + 1, string.len - 2);
}

static bool has_escape(struct slice string)
{
	return memchr(string.at, '\\', string.len) != NULL;
}

bool json_loose_is(struct slice value, const char *plain)
{
	enum { ESCAPE_MAX = 6 }; /* \u0041 */
	const struct slice wanted = slice_str(plain);

	if (json_loose_kind(value) != JSON_LOOSE_STRING || value.len < wanted.len + 2 ||
	    value.len > wanted.len * ESCAPE_MAX + 2)
		return false;
	if (value.len == wanted.len + 2)
		return memcmp(value.at + 1, wanted.at, wanted.len) == 0;
	return has_escape(value) && is_valid(value) && json_str_eq(inside(value), wanted);
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

static bool is_id(enum json_loose_kind kind)
{
	return kind == JSON_LOOSE_STRING || kind == JSON_LOOSE_NUMBER;
}

bool json_loose_same_id(struct slice a, struct slice b)
{
	const enum json_loose_kind kind = json_loose_kind(a);

	if (kind != json_loose_kind(b) || !is_id(kind))
		return false;
	if (slice_eq(a, b))
		return true;
	/* A character takes six bytes at most, so that texts of very different lengths are never one: a long one is not read
	 * for each short one that it is compared with. */
	if (kind == JSON_LOOSE_STRING && (a.len / 6 > b.len || b.len / 6 > a.len))
		return false;
	if (!is_valid(a) || !is_valid(b))
		return false;
	return kind == JSON_LOOSE_STRING ? json_str_same(inside(a), inside(b)) : same_number(a, b);
}

/* `id` behind a byte with which no id begins: it is only itself. */
static struct slice odd_text(struct slice id, struct arena *into)
{
	char *text = arena_take(into, id.len + 1);

	if (text == NULL)
		return slice_of(NULL, 0);
	text[0] = '!';
	(void)memcpy(text + 1, id.at, id.len);
	return slice_of(text, id.len + 1);
}

/* What it means, behind a quote, so that it is no number. */
static struct slice string_text(struct slice id, struct arena *into)
{
	char *text = arena_take(into, id.len);

	if (text == NULL)
		return slice_of(NULL, 0);
	text[0] = '"';
	const struct slice plain = json_str_fit(inside(id), text + 1, id.len - 1);
	must(!slice_absent(plain));
	if (plain.at != text + 1)
		(void)memcpy(text + 1, plain.at, plain.len);
	return slice_of(text, 1 + plain.len);
}

/* Sign, digits, and the exponent that json_number.h has. */
static struct slice number_text(struct slice id, struct arena *into)
{
	const struct json_number n = json_number_of(id);
	char exponent[24], *end = exponent + sizeof(exponent), *from = end;
	char *text = arena_take(into, n.count + sizeof(exponent) + 2), *to = text;

	if (text == NULL || n.count == 0)
		return text == NULL ? slice_of(NULL, 0) : SLICE("0");
	uint64_t rest = n.exponent < 0 ? 0 - (uint64_t)n.exponent : (uint64_t)n.exponent;
	do
		*--from = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (n.exponent < 0)
		*--from = '-';
	*--from = 'e';
	if (n.negative)
		*to++ = '-';
	for (const char *at = n.first; at < n.last; at++)
		if (*at != '.')
			*to++ = *at;
	(void)memcpy(to, from, (size_t)(end - from));
	return slice_of(text, (size_t)(to - text) + (size_t)(end - from));
}

struct slice json_loose_id_text(struct slice id, struct arena *into)
{
	const enum json_loose_kind kind = json_loose_kind(id);

	if (!is_id(kind))
		return slice_of(NULL, 0);
	if (!is_valid(id))
		return odd_text(id, into);
	return kind == JSON_LOOSE_STRING ? string_text(id, into) : number_text(id, into);
}

bool json_loose_number(struct slice value, double *out)
{
	if (json_loose_kind(value) != JSON_LOOSE_NUMBER || !is_valid(value))
		return false;
	*out = json_to_double(value);
	return true;
}

bool json_loose_utf8(struct slice text)
{
	const char *at = text.at, *end = text.at + text.len;

	while (at < end) {
		while (end - at >= 8 && (scan_load8(at) & SCAN_ONES * 0x80) == 0)
			at += 8;
		if (at == end)
			break;
		const size_t len = scan_utf8_len(at, end);
		if (len == 0)
			return false;
		at += len;
	}
	return true;
}
