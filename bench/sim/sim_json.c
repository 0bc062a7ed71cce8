#include "bench/sim/sim_json.h"

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

/* `at` is behind the opening quote; returns the closing one, NULL when there is none. */
static const char *string_end(const char *at, const char *end)
{
	for (const char *start = at; at < end; at++) {
		at = memchr(at, '"', (size_t)(end - at));
		if (at == NULL)
			return NULL;
		const char *back = at;

		while (back > start && back[-1] == '\\')
			back--;
		if ((at - back) % 2 == 0)
			return at;
	}
	return NULL;
}

/* Crosses an object or array; brackets are counted, not matched by kind. */
static const char *skip_nested(const char *at, const char *end)
{
	size_t depth = 0;

	for (; at < end; at++) {
		if (*at == '"') {
			at = string_end(at + 1, end);
			if (at == NULL)
				return NULL;
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if (*at == '}' || *at == ']') {
			if (--depth == 0)
				return at + 1;
		}
	}
	return NULL;
}

/* A byte of a number, true, false or null. */
static bool scalar_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' ||
	       c == '.' || c == 'E';
}

/* `at` is on the first byte of a value; returns the byte behind it, NULL when there is no value. */
static const char *skip_value(const char *at, const char *end)
{
	const char *start = at;

	if (at == end)
		return NULL;
	if (*at == '{' || *at == '[')
		return skip_nested(at, end);
	if (*at == '"') {
		at = string_end(at + 1, end);
		return at == NULL ? NULL : at + 1;
	}
	while (at < end && scalar_byte(*at))
		at++;
	return at == start ? NULL : at;
}

bool sim_json_whole(struct slice text)
{
	const char *end = text.at + text.len;
	const char *at = skip_value(skip_space(text.at, end), end);

	return at != NULL && skip_space(at, end) == end;
}

struct sim_json sim_json_open(struct slice value)
{
	if (slice_absent(value))
		return (struct sim_json){ 0 };
	struct sim_json walk = { .at = value.at, .end = value.at + value.len, .first = true };

	walk.at = skip_space(walk.at, walk.end);
	if (walk.at < walk.end && (*walk.at == '{' || *walk.at == '['))
		walk.at++;
	else
		walk.at = walk.end;
	return walk;
}

bool sim_json_ended(const struct sim_json *walk)
{
	return walk->closed && walk->at == walk->end;
}

static bool fail(struct sim_json *walk)
{
	walk->bad = true;
	walk->at = walk->end;
	return false;
}

/* Steps over the comma; false at the closing bracket, or when there is neither. */
static bool next(struct sim_json *walk)
{
	walk->at = skip_space(walk->at, walk->end);
	if (walk->at == walk->end || walk->closed)
		return false;
	if (*walk->at == '}' || *walk->at == ']') {
		walk->at = skip_space(walk->at + 1, walk->end);
		walk->closed = true;
		return false;
	}
	if (!walk->first) {
		if (*walk->at != ',')
			return fail(walk);
		walk->at = skip_space(walk->at + 1, walk->end);
	}
	walk->first = false;
	return true;
}

bool sim_json_element(struct sim_json *walk, struct slice *value)
{
	if (!next(walk))
		return false;
	const char *behind = skip_value(walk->at, walk->end);

	if (behind == NULL)
		return fail(walk);
	*value = slice_of(walk->at, (size_t)(behind - walk->at));
	walk->at = behind;
	return true;
}

bool sim_json_member(struct sim_json *walk, struct slice *key, struct slice *value)
{
	struct slice name;

	if (!sim_json_element(walk, &name))
		return false;
	*key = sim_json_string(name);
	walk->at = skip_space(walk->at, walk->end);
	if (slice_absent(*key) || walk->at == walk->end || *walk->at != ':')
		return fail(walk);
	walk->at = skip_space(walk->at + 1, walk->end);
	walk->first = true; /* the value needs no comma before it */
	return sim_json_element(walk, value) || fail(walk);
}

struct slice sim_json_field(struct slice object, struct slice name)
{
	struct sim_json walk = sim_json_open(object);
	struct slice key, value;

	while (sim_json_member(&walk, &key, &value))
		if (slice_eq(key, name))
			return value;
	return (struct slice){ NULL, 0 };
}

struct slice sim_json_string(struct slice value)
{
	if (value.len < 2 || value.at[0] != '"')
		return (struct slice){ NULL, 0 };
	return slice_of(value.at + 1, value.len - 2);
}
