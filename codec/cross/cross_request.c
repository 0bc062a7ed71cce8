/* cross_request.c - a request in a provider's own API as sampling/createMessage: its members, and what is left out. */
#include "codec/cross/cross_parts.h"

#include "codec/base/must.h"

/* What is done with a member of the body. The last row is for all others. */
enum act {
	TAKEN,   /* what it says is written, or was checked before */
	DROPPED, /* there is nothing like it: left out, and told */
	REFUSED, /* unless it is null, false, or empty */
};

struct member {
	const char *name;
	enum act act;
};

/* contract/direct.md 2.1 and 3.1, the columns of the other API; strict: any other member is refused. */
static const struct member messages_members[] = {
	{ "model", TAKEN },           { "max_tokens", TAKEN },
	{ "messages", TAKEN },        { "system", TAKEN },
	{ "tools", TAKEN },           { "tool_choice", TAKEN },
	{ "stop_sequences", TAKEN },  { "temperature", TAKEN },
	{ "metadata", TAKEN },        { "stream", TAKEN },
	{ "output_config", TAKEN },   { "output_format", TAKEN },
	{ "top_p", DROPPED },         { "top_k", DROPPED },
	{ "thinking", DROPPED },      { "cache_control", DROPPED },
	{ "service_tier", DROPPED },  { "speed", DROPPED },
	{ "inference_geo", DROPPED }, { "context_management", DROPPED },
	{ "diagnostics", DROPPED },   { "safeguards", DROPPED },
};
static const struct member chat_members[] = {
	{ "model", TAKEN },
	{ "messages", TAKEN },
	{ "max_tokens", TAKEN },
	{ "max_completion_tokens", TAKEN },
	{ "stream", TAKEN },
	{ "stream_options", TAKEN },
	{ "tools", TAKEN },
	{ "tool_choice", TAKEN },
	{ "parallel_tool_calls", TAKEN },
	{ "response_format", TAKEN },
	{ "temperature", TAKEN },
	{ "stop", TAKEN },
	{ "user", TAKEN },
	{ "safety_identifier", TAKEN },
	{ "n", TAKEN },
	{ "logprobs", REFUSED },
	{ "top_logprobs", REFUSED },
	{ "functions", REFUSED },
	{ "function_call", REFUSED },
};

enum param { STOP, TEMPERATURE, TOP_TOOLS, CHOICE, PARALLEL, FORMAT, CONFIG, PARAMS };
static const char *const messages_params[PARAMS] = {
	"stop_sequences", "temperature",  "tools", "tool_choice", "",
	"output_format",  "output_config"
};
static const char *const chat_params[PARAMS] = {
	"stop", "temperature", "tools", "tool_choice", "parallel_tool_calls", "response_format", ""
};

/* ---- the closed list ---- */

static bool says_nothing(struct slice value)
{
	return cross_is(value, JSON_LOOSE_NULL) || slice_eq(value, SLICE("false")) ||
	       slice_eq(value, SLICE("0")) || slice_eq(value, SLICE("[]"));
}

/* A name for a path; one that is not plain is not repeated. */
static const char *name_text(struct cross *c, struct slice quoted)
{
	const struct slice plain = cross_inside(quoted);
	const bool fits = plain.len != 0 && plain.len <= API_NAME_MAX;
	char *text = fits ? arena_take(c->into, plain.len + 1) : NULL;

	if (text == NULL || memchr(plain.at, '\\', plain.len) != NULL)
		return "a member";
	(void)memcpy(text, plain.at, plain.len);
	text[plain.len] = '\0';
	return text;
}

static bool judge_member(struct cross *c, struct slice name, struct slice value)
{
	const bool messages = api_is_anthropic(c->q->api);
	const struct member *rows = messages ? messages_members : chat_members;
	const size_t count = messages ? COUNT_OF(messages_members) : COUNT_OF(chat_members);
	enum act act = messages ? REFUSED : DROPPED;
	bool known = false;

	for (size_t i = 0; i < count && !known; i++) {
		known = json_loose_is(name, rows[i].name);
		act = known ? rows[i].act : act;
	}
	if (act == TAKEN || (known && says_nothing(value)) || cross_is(value, JSON_LOOSE_NULL))
		return true;
	if (act == DROPPED) {
		c->adjustments |= ADJUST_BIT(ADJUST_MEMBERS_DROPPED);
		return true;
	}
	const struct cross_at at = { name_text(c, name), CROSS_NO_ITEM, NULL, 0 };
	return cross_refuse(c, &at,
			    known ? "this cannot go to this model's provider"
				  : "Extra inputs are not permitted");
}

static bool judge_members(struct cross *c)
{
	static const struct cross_at n_at = { "n", CROSS_NO_ITEM, NULL, 0 };
	struct json_loose_walk walk;

	if (c->q->n > 1)
		return cross_refuse(c, &n_at, "this model's provider gives one answer");
	json_loose_open(&walk, c->q->object);
	while (json_loose_next(&walk))
		if (!judge_member(c, walk.name, walk.value))
			return false;
	return true;
}

/* ---- the system prompt ---- */

static void put_system(struct cross *c, struct slice inside)
{
	if (inside.len == 0)
		return;
	if (c->comma)
		gather_lit(&c->g, "\\n\\n");
	c->comma = true;
	gather_raw(&c->g, inside);
}

static bool write_system(struct cross *c)
{
	c->comma = false;
	gather_lit(&c->g, ",\"systemPrompt\":\"");
	const bool fine = api_is_anthropic(c->q->api) ? cross_messages_system(c, put_system)
						      : cross_chat_system(c, put_system);
	gather_lit(&c->g, "\"");
	return fine;
}

/* ---- what shapes the answer ---- */

/* The schema in {"type":"json_schema","schema":…} or in the member of that name; absent: none was asked for. */
static struct slice schema_in(struct cross *c, struct slice format)
{
	const struct slice type = json_loose_member(format, "type"),
			   named = json_loose_member(format, "json_schema");

	if (json_loose_is(type, "json_object")) {
		c->adjustments |= ADJUST_BIT(ADJUST_RESPONSE_FORMAT_DROPPED);
		return slice_of(NULL, 0);
	}
	if (!json_loose_is(type, "json_schema"))
		return slice_of(NULL, 0);
	return json_loose_member(slice_absent(named) ? format : named, "schema");
}

static struct slice schema_of(struct cross *c, const struct slice *p)
{
	struct slice format = json_loose_member(p[CONFIG], "format");

	if (slice_absent(format) || cross_is(format, JSON_LOOSE_NULL))
		format = p[FORMAT];
	if (!slice_absent(json_loose_member(p[CONFIG], "effort")))
		c->adjustments |= ADJUST_BIT(ADJUST_MEMBERS_DROPPED);
	return schema_in(c, format);
}

static void write_stop(struct cross *c, struct slice stop)
{
	if (cross_is(stop, JSON_LOOSE_STRING)) {
		gather_lit(&c->g, ",\"stopSequences\":[");
		gather_raw(&c->g, stop);
		gather_lit(&c->g, "]");
	} else if (!slice_absent(stop)) {
		gather_lit(&c->g, ",\"stopSequences\":");
		gather_raw(&c->g, stop);
	}
}

static void write_user(struct cross *c)
{
	static const enum api_field fields[] = { API_USER_ID, API_SAFETY_IDENTIFIER, API_USER };

	for (size_t i = 0; i < COUNT_OF(fields); i++) {
		const struct slice user = api_string(c->q, fields[i]);
		if (slice_absent(user))
			continue;
		gather_lit(&c->g, ",\"metadata\":{\"user_id\":");
		gather_str(&c->g, user);
		gather_lit(&c->g, "}");
		return;
	}
}

static bool write_params(struct cross *c)
{
	struct slice p[PARAMS];

	cross_members(c->q->object, api_is_anthropic(c->q->api) ? messages_params : chat_params,
		      PARAMS, p);
	if (!write_system(c))
		return false;
	gather_lit(&c->g, ",\"maxTokens\":");
	gather_uint(&c->g, c->q->tokens != 0 ? c->q->tokens : c->tokens);
	write_stop(c, p[STOP]);
	if (!slice_absent(p[TEMPERATURE])) {
		gather_lit(&c->g, ",\"temperature\":");
		gather_raw(&c->g, p[TEMPERATURE]);
	}
	write_user(c);
	return cross_tools(c, p[TOP_TOOLS], p[CHOICE], p[PARALLEL], schema_of(c, p));
}

static bool write_messages(struct cross *c)
{
	c->comma = false;
	return api_is_anthropic(c->q->api) ? cross_messages_history(c) : cross_chat_history(c);
}

enum err cross_request_make(const struct api_request *request, uint32_t tokens,
			    struct json_work *work, struct arena *into, struct cross_request *out,
			    struct fault *fault)
{
	struct cross c = {
		.q = request, .tokens = tokens, .work = work, .into = into, .fault = fault
	};

	struct json_reader
		fresh; /* what an earlier reader has left on the work area is none of ours */

	must(request->api == API_MESSAGES || request->api == API_CHAT);
	must(tokens != 0);
	*fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	json_open(&fresh, request->body, NULL, work);
	gather_init(&c.g, into);
	gather_lit(&c.g, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"sampling/createMessage\","
			 "\"params\":{\"messages\":[");
	if (!judge_members(&c) || !write_messages(&c))
		return fault->err;
	gather_lit(&c.g, "]");
	if (!write_params(&c))
		return fault->err;
	gather_lit(&c.g, "}}");
	const struct slice body =
		gather_done(&c.g) == ERR_OK ? gather_flat(&c.g, into) : slice_of(NULL, 0);
	if (slice_absent(body)) {
		(void)cross_busy(&c);
		return fault->err;
	}
	*out = (struct cross_request){ .body = body,
				       .adjustments = c.adjustments,
				       .schema = c.schema };
	return ERR_OK;
}
