#include "bench/sim/sim_ask.h"

#include "bench/sim/sim_json.h"
#include "bench/sim/sim_responses.h"

static bool ends_with(struct slice s, struct slice end)
{
	return s.len >= end.len && slice_eq(slice_of(s.at + s.len - end.len, end.len), end);
}

bool sim_ask_counts(struct slice path)
{
	return ends_with(path, SLICE("/v1/messages/count_tokens"));
}

bool sim_ask_dialect(struct slice path, enum sim_dialect *out)
{
	if (ends_with(path, SLICE("/chat/completions")))
		*out = SIM_OPENAI;
	else if (ends_with(path, SLICE("/responses")))
		*out = SIM_RESPONSES;
	else if (ends_with(path, SLICE("/v1/messages")) || sim_ask_counts(path))
		*out = SIM_ANTHROPIC;
	else
		return false;
	return true;
}

/* The members of the body that are looked at, raw. */
struct members {
	struct slice model, messages, tools, tool_choice, stream, stream_options, max_tokens;
	struct slice max_completion_tokens, max_output_tokens, input;
};

static const struct {
	struct slice name;
	size_t offset;
} member_table[] = {
#define MEMBER(name)                                              \
	{                                                         \
		SLICE_INIT(#name), offsetof(struct members, name) \
	}
	MEMBER(model),
	MEMBER(messages),
	MEMBER(tools),
	MEMBER(tool_choice),
	MEMBER(stream),
	MEMBER(stream_options),
	MEMBER(max_tokens),
	MEMBER(max_completion_tokens),
	MEMBER(max_output_tokens),
	MEMBER(input),
#undef MEMBER
};

/* False when the body is not one whole object. */
static bool read_members(struct slice body, struct members *out)
{
	struct sim_json walk = sim_json_open(body);
	struct slice key, value;

	*out = (struct members){ 0 };
	if (body.at[0] != '{')
		return false;
	while (sim_json_member(&walk, &key, &value))
		for (size_t i = 0; i < COUNT_OF(member_table); i++)
			if (slice_eq(key, member_table[i].name))
				memcpy((char *)out + member_table[i].offset, &value, sizeof(value));
	return sim_json_ended(&walk);
}

static bool has_type(struct slice object, struct slice type)
{
	return slice_eq(sim_json_string(sim_json_field(object, SLICE("type"))), type);
}

/* From the first to the last byte of both. */
static struct slice span(struct slice from, struct slice to)
{
	return slice_of(from.at, (size_t)(to.at + to.len - from.at));
}

/* The last message, when it is a user's with a tool_result in it: its content. */
static struct slice anthropic_results(struct slice last)
{
	struct slice content = sim_json_field(last, SLICE("content")), block;
	struct sim_json walk = sim_json_open(content);

	while (sim_json_element(&walk, &block))
		if (has_type(block, SLICE("tool_result")))
			return slice_of(content.at + 1, content.len - 2);
	return (struct slice){ NULL, 0 };
}

/* Finds the tool results that end the history; false when there is no message. */
static bool read_messages(struct slice messages, struct sim_ask *ask)
{
	struct sim_json walk = sim_json_open(messages);
	struct slice message, last = { NULL, 0 };

	ask->results = (struct slice){ NULL, 0 };
	while (sim_json_element(&walk, &message)) {
		last = message;
		if (ask->dialect != SIM_OPENAI)
			continue;
		struct slice role = sim_json_string(sim_json_field(message, SLICE("role")));

		if (!slice_eq(role, SLICE("tool")))
			ask->results = (struct slice){ NULL, 0 };
		else if (slice_absent(ask->results))
			ask->results = message;
		else
			ask->results = span(ask->results, message);
	}
	if (ask->dialect == SIM_ANTHROPIC && !slice_absent(last))
		ask->results = anthropic_results(last);
	return !walk.bad && !slice_absent(last);
}

/* {"type": auto|any|tool|none, "name"}, or "auto"|"required"|"none"|{"type", "function": {"name"}}. */
static void read_tool_choice(struct slice choice, struct sim_ask *ask)
{
	struct slice mode = sim_json_string(choice);
	struct slice function = sim_json_field(choice, SLICE("function"));

	if (slice_absent(mode))
		mode = sim_json_string(sim_json_field(choice, SLICE("type")));
	if (slice_eq(mode, SLICE("none")))
		ask->tools = (struct slice){ NULL, 0 };
	ask->forced = sim_json_string(
		sim_json_field(slice_absent(function) ? choice : function, SLICE("name")));
	ask->must_call = !slice_absent(ask->forced) || slice_eq(mode, SLICE("any")) ||
			 slice_eq(mode, SLICE("required"));
}

/* What was said so far; finds the results that end it. */
static const char *read_history(struct slice body, const struct members *members,
				struct sim_ask *ask)
{
	if (ask->dialect == SIM_RESPONSES)
		return sim_responses_read(body, members->input, ask);
	return read_messages(members->messages, ask) ? NULL
						     : "messages: at least one message is required";
}

/* The token limit, by whichever name. */
static struct slice limit_member(const struct members *members)
{
	if (!slice_absent(members->max_output_tokens))
		return members->max_output_tokens;
	return slice_absent(members->max_completion_tokens) ? members->max_tokens
							    : members->max_completion_tokens;
}

const char *sim_ask_read(enum sim_dialect dialect, bool counts, struct slice body,
			 struct sim_ask *out)
{
	struct members members;
	struct sim_ask ask = {
		.dialect = dialect, .counts = counts, .body_len = body.len, .max_tokens = UINT64_MAX
	};
	struct slice max_tokens;
	const char *problem;

	if (body.len == 0 || !read_members(body, &members))
		return "the body is not a JSON object";
	ask.model = sim_json_string(members.model);
	if (ask.model.len == 0)
		return "model: a non-empty string is required";
	problem = read_history(body, &members, &ask);
	if (problem != NULL)
		return problem;
	max_tokens = limit_member(&members);
	if (sim_json_present(max_tokens) &&
	    (!slice_to_u64(max_tokens, &ask.max_tokens) || ask.max_tokens == 0))
		return "max_tokens: a positive integer is required";
	if (counts && ask.max_tokens != UINT64_MAX)
		return "max_tokens: Extra inputs are not permitted";
	if (dialect == SIM_ANTHROPIC && !counts && ask.max_tokens == UINT64_MAX)
		return "max_tokens: Field required";
	if (sim_json_present(members.tools)) {
		struct sim_json walk = sim_json_open(members.tools);
		struct slice first;

		if (!sim_json_element(&walk, &first))
			return "tools: an array with at least one tool is required";
		ask.tools = members.tools;
	}
	if (sim_json_present(members.tool_choice)) {
		if (slice_absent(ask.tools))
			return "tool_choice: only allowed when tools are given";
		read_tool_choice(members.tool_choice, &ask);
	}
	ask.stream = !counts && slice_eq(members.stream, SLICE("true"));
	ask.stream_usage = slice_eq(sim_json_field(members.stream_options, SLICE("include_usage")),
				    SLICE("true"));
	*out = ask;
	return NULL;
}

bool sim_ask_wants_calls(const struct sim_ask *ask, bool loop)
{
	return !slice_absent(ask->tools) && (slice_absent(ask->results) || ask->must_call || loop);
}

/* The object that has name and schema: the tool itself, or its "function". */
static struct slice tool_body(const struct sim_ask *ask, struct slice tool)
{
	return ask->dialect == SIM_OPENAI ? sim_json_field(tool, SLICE("function")) : tool;
}

struct slice sim_ask_tool_name(const struct sim_ask *ask, size_t i)
{
	struct slice tool, name = { NULL, 0 };

	if (!slice_absent(ask->forced))
		return ask->forced;
	for (;;) {
		struct sim_json walk = sim_json_open(ask->tools);
		size_t count = 0;

		for (; sim_json_element(&walk, &tool); count++)
			if (count == i) {
				name = sim_json_string(
					sim_json_field(tool_body(ask, tool), SLICE("name")));
				return slice_absent(name) ? SLICE("unnamed") : name;
			}
		i %= count; /* never 0: sim_ask_read saw a first one */
	}
}

static struct slice tool_schema(const struct sim_ask *ask, struct slice name)
{
	struct sim_json walk = sim_json_open(ask->tools);
	struct slice tool;

	while (sim_json_element(&walk, &tool)) {
		struct slice body = tool_body(ask, tool);

		if (slice_eq(sim_json_string(sim_json_field(body, SLICE("name"))), name))
			return sim_json_field(body, ask->dialect == SIM_ANTHROPIC
							    ? SLICE("input_schema")
							    : SLICE("parameters"));
	}
	return (struct slice){ NULL, 0 };
}

/* A value that the property's schema is likely to take; nested objects and arrays stay empty. */
static struct slice sample(struct slice schema)
{
	static const struct {
		struct slice type, value;
	} samples[] = {
		{ SLICE_INIT("integer"), SLICE_INIT("1") },
		{ SLICE_INIT("number"), SLICE_INIT("1.5") },
		{ SLICE_INIT("boolean"), SLICE_INIT("true") },
		{ SLICE_INIT("array"), SLICE_INIT("[]") },
		{ SLICE_INIT("object"), SLICE_INIT("{}") },
		{ SLICE_INIT("null"), SLICE_INIT("null") },
	};
	struct slice fixed = sim_json_field(schema, SLICE("const"));
	struct sim_json walk = sim_json_open(sim_json_field(schema, SLICE("enum")));

	if (!slice_absent(fixed) || sim_json_element(&walk, &fixed))
		return fixed;
	for (size_t i = 0; i < COUNT_OF(samples); i++)
		if (has_type(schema, samples[i].type))
			return samples[i].value;
	return SLICE("\"simulated\"");
}

void sim_ask_tool_input(const struct sim_ask *ask, struct slice name, struct sim_buf *out)
{
	struct slice properties = sim_json_field(tool_schema(ask, name), SLICE("properties"));
	struct sim_json walk = sim_json_open(properties);
	struct slice key, schema;
	const char *before = "\"";

	sim_buf_text(out, "{");
	while (sim_json_member(&walk, &key, &schema)) {
		sim_buf_text(out, before);
		sim_buf_add(out, key);
		sim_buf_text(out, "\":");
		sim_buf_add(out, sample(schema));
		before = ",\"";
	}
	sim_buf_text(out, "}");
}

/* Content is a string, or an array of blocks of which those with a text count. */
static void quote(struct slice content, struct sim_buf *out, bool *first)
{
	struct slice text = sim_json_string(content), block;
	struct sim_json walk = sim_json_open(content);

	for (;;) {
		if (text.len > 0) {
			sim_buf_text(out, *first ? "" : ", ");
			sim_buf_add(out, text);
			*first = false;
		}
		if (!sim_json_element(&walk, &block))
			return;
		text = sim_json_string(sim_json_field(block, SLICE("text")));
	}
}

void sim_ask_quote_results(const struct sim_ask *ask, struct sim_buf *out)
{
	struct sim_json walk = { .at = ask->results.at,
				 .end = ask->results.at + ask->results.len,
				 .first = true };
	struct slice result;
	bool first = true;

	while (sim_json_element(&walk, &result))
		if (ask->dialect != SIM_ANTHROPIC || has_type(result, SLICE("tool_result")))
			quote(sim_json_field(result, ask->dialect == SIM_RESPONSES
							     ? SLICE("output")
							     : SLICE("content")),
			      out, &first);
}
