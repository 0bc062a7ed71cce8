#include "gateway/command/explain_log.h"

#include <math.h>

/* ---- members, by tables ---- */

enum member_kind {
	MEMBER_TEXT,   /* struct slice, plain */
	MEMBER_RAW,    /* struct slice: a string's inside, or the text of anything else */
	MEMBER_COUNT,  /* uint32_t */
	MEMBER_SIZE,   /* uint64_t */
	MEMBER_INDEX,  /* int32_t */
	MEMBER_DOUBLE, /* double */
	MEMBER_TRUTH,  /* bool */
	MEMBER_ROUTE,
	MEMBER_CANDIDATES,
	MEMBER_DRAWN,
};

struct member {
	const char *key;
	enum member_kind kind;
	size_t at;
};

struct reading {
	struct json_reader json;
	struct arena *into;
};

static bool read_object(struct reading *r, const struct member *members, size_t count, char *out);

static bool read_number(struct reading *r, uint64_t most, uint64_t *out)
{
	struct slice text;
	int64_t value = -1;

	if (!json_number(&r->json, &text))
		return false;
	if (!json_to_int64(text, &value) || value < 0 || (uint64_t)value > most)
		return json_fail(&r->json, ERR_JSON, "a number is out of range");
	*out = (uint64_t)value;
	return true;
}

/* Up to `room` objects of `size` bytes; further ones are passed over. */
static bool read_list(struct reading *r, const struct member *members, size_t member_count,
		      char *items, size_t size, uint32_t room, uint32_t *count)
{
	if (!json_enter_array(&r->json))
		return false;
	for (*count = 0; json_next_item(&r->json);)
		if (*count == room
			    ? !json_skip(&r->json, NULL)
			    : !read_object(r, members, member_count, items + size * (*count)++))
			return false;
	return r->json.fault.err == ERR_OK;
}

static const struct member candidate_members[] = {
	{ "model", MEMBER_COUNT, offsetof(struct log_candidate, model) },
	{ "score", MEMBER_DOUBLE, offsetof(struct log_candidate, score) },
};
static const struct member drawn_members[] = {
	{ "endpoint", MEMBER_COUNT, offsetof(struct log_drawn, endpoint) },
	{ "cost", MEMBER_DOUBLE, offsetof(struct log_drawn, cost) },
};
static const struct member route_members[] = {
	{ "config", MEMBER_TEXT, offsetof(struct logged, config) },
	{ "seed", MEMBER_TEXT, offsetof(struct logged, seed) },
	{ "held", MEMBER_TEXT, offsetof(struct logged, held) },
	{ "hint", MEMBER_RAW, offsetof(struct logged, route.hint) },
	{ "alias", MEMBER_INDEX, offsetof(struct logged, route.alias) },
	{ "input", MEMBER_SIZE, offsetof(struct logged, route.input_tokens) },
	{ "output", MEMBER_COUNT, offsetof(struct logged, route.max_tokens) },
	{ "image", MEMBER_TRUTH, offsetof(struct logged, route.image) },
	{ "audio", MEMBER_TRUTH, offsetof(struct logged, route.audio) },
	{ "cost", MEMBER_DOUBLE, offsetof(struct logged, route.cost) },
	{ "speed", MEMBER_DOUBLE, offsetof(struct logged, route.speed) },
	{ "intelligence", MEMBER_DOUBLE, offsetof(struct logged, route.intelligence) },
	{ "candidates", MEMBER_CANDIDATES, offsetof(struct logged, route) },
	{ "endpoints", MEMBER_DRAWN, offsetof(struct logged, route) },
};
static const struct member line_members[] = {
	{ "tenant", MEMBER_TEXT, offsetof(struct logged, tenant) },
	{ "server", MEMBER_TEXT, offsetof(struct logged, server) },
	{ "front", MEMBER_TEXT, offsetof(struct logged, front) },
	{ "model", MEMBER_TEXT, offsetof(struct logged, model) },
	{ "provider", MEMBER_TEXT, offsetof(struct logged, provider) },
	{ "endpoint", MEMBER_TEXT, offsetof(struct logged, endpoint) },
	{ "error", MEMBER_TEXT, offsetof(struct logged, error) },
	{ "event", MEMBER_TEXT, offsetof(struct logged, event) },
	{ "attempts", MEMBER_COUNT, offsetof(struct logged, attempts) },
	{ "attempt_classes", MEMBER_RAW, offsetof(struct logged, classes) },
	{ "route", MEMBER_ROUTE, 0 },
};

static bool read_text(struct reading *r, struct slice *out)
{
	struct slice raw;

	if (!json_string(&r->json, &raw))
		return false;
	*out = json_str_plain(raw, r->into);
	return !slice_absent(*out) || json_fail(&r->json, ERR_JSON, "it is too long");
}

/* A score that is null (it was none) stays 0. */
static bool read_double(struct reading *r, double *out)
{
	struct slice text;

	if (json_peek(&r->json) == JSON_NULL)
		return json_null(&r->json);
	if (!json_number(&r->json, &text))
		return false;
	*out = json_to_double(text);
	return true;
}

static bool read_lists(struct reading *r, enum member_kind kind, struct log_route *route)
{
	if (kind == MEMBER_CANDIDATES)
		return read_list(r, candidate_members, COUNT_OF(candidate_members),
				 (char *)route->candidates, sizeof(route->candidates[0]),
				 LOG_CANDIDATES, &route->candidate_count);
	return read_list(r, drawn_members, COUNT_OF(drawn_members), (char *)route->drawn,
			 sizeof(route->drawn[0]), LOG_DRAWN, &route->drawn_count);
}

static bool read_member(struct reading *r, enum member_kind kind, void *field)
{
	uint64_t number = 0;
	bool good = true;

	switch (kind) {
	case MEMBER_TEXT:
		return read_text(r, field);
	case MEMBER_RAW:
		return json_peek(&r->json) == JSON_STRING ? json_string(&r->json, field)
							  : json_skip(&r->json, field);
	case MEMBER_COUNT:
		good = read_number(r, UINT32_MAX, &number);
		*(uint32_t *)field = (uint32_t)number;
		return good;
	case MEMBER_SIZE:
		return read_number(r, UINT64_MAX, field);
	case MEMBER_INDEX:
		good = read_number(r, INT32_MAX, &number);
		*(int32_t *)field = (int32_t)number;
		return good;
	case MEMBER_DOUBLE:
		return read_double(r, field);
	case MEMBER_TRUTH:
		return json_bool(&r->json, field);
	case MEMBER_ROUTE:
		return read_object(r, route_members, COUNT_OF(route_members), field);
	case MEMBER_CANDIDATES:
	case MEMBER_DRAWN:
		return read_lists(r, kind, field);
	}
	return false;
}

/* Recursion follows the tables: three deep. Members that no table names are passed over. */
static bool read_object(struct reading *r, const struct member *members, size_t count, char *out)
{
	struct slice key;

	if (!json_enter_object(&r->json))
		return false;
	while (json_next_key(&r->json, &key)) {
		size_t i = 0;
		while (i < count && !json_str_eq(key, slice_str(members[i].key)))
			i++;
		if (i == count ? !json_skip(&r->json, NULL)
			       : !read_member(r, members[i].kind, out + members[i].at))
			return false;
	}
	return r->json.fault.err == ERR_OK;
}

bool logged_read(struct slice line, struct json_work *work, struct arena *into, struct logged *out,
		 const char **problem)
{
	struct reading r = { .into = into };

	*out = (struct logged){
		.route = { .alias = -1, .cost = NAN, .speed = NAN, .intelligence = NAN }
	};
	json_open(&r.json, line, NULL, work);
	if (!read_object(&r, line_members, COUNT_OF(line_members), (char *)out) ||
	    !json_finish(&r.json)) {
		*problem = "it is no line of this version's log; give one whole line, in quotes";
		return false;
	}
	*problem =
		slice_absent(out->event)
			? "the request of that line was not routed: it was refused before, or was "
			  "none for a model"
			: "that line is of a session that begins or ends; give the line of a "
			  "request";
	return !slice_absent(out->config) && !slice_absent(out->tenant);
}
