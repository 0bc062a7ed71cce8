#include "bench/sim/sim_responses.h"

#include "bench/sim/sim_json.h"
#include "bench/sim/sim_wire.h"

#define CREATED ((uint64_t)1763750000)

static const struct slice nothing = { NULL, 0 };

/* ---- what is asked ---- */

static bool is(struct slice object, struct slice member, struct slice value)
{
	return slice_eq(sim_json_string(sim_json_field(object, member)), value);
}

static bool has(struct slice object, struct slice member)
{
	return sim_json_present(sim_json_field(object, member));
}

/* Members of the other format, which this one refuses. */
static const char *check_members(struct slice body)
{
	static const struct {
		struct slice name;
		const char *problem;
	} unknown[] = {
		{ SLICE_INIT("messages"), "Unsupported parameter: 'messages'" },
		{ SLICE_INIT("stop"), "Unsupported parameter: 'stop'" },
		{ SLICE_INIT("max_tokens"), "Unsupported parameter: 'max_tokens'" },
		{ SLICE_INIT("max_completion_tokens"),
		  "Unsupported parameter: 'max_completion_tokens'" },
		{ SLICE_INIT("response_format"), "Unsupported parameter: 'response_format'" },
		{ SLICE_INIT("reasoning_effort"), "Unsupported parameter: 'reasoning_effort'" },
		{ SLICE_INIT("stream_options"), "Unsupported parameter: 'stream_options'" },
	};

	for (size_t i = 0; i < COUNT_OF(unknown); i++)
		if (has(body, unknown[i].name))
			return unknown[i].problem;
	return NULL;
}

/* Tools are flat, and `strict` and `parameters` have to be there. */
static const char *check_tools(struct slice tools)
{
	struct sim_json walk = sim_json_open(tools);
	struct slice tool;

	while (sim_json_element(&walk, &tool)) {
		if (!is(tool, SLICE("type"), SLICE("function")))
			return "tools[0].type: function is required";
		if (slice_absent(sim_json_string(sim_json_field(tool, SLICE("name")))))
			return "Missing required parameter: 'tools[0].name'";
		if (!has(tool, SLICE("parameters")) ||
		    slice_absent(sim_json_field(tool, SLICE("strict"))))
			return "tools[0]: parameters and strict are required";
	}
	return NULL;
}

/* The parts of a message or of a result. */
static const char *check_parts(struct slice content, bool assistant)
{
	struct sim_json walk = sim_json_open(content);
	struct slice part;

	if (!slice_absent(sim_json_string(content)))
		return NULL;
	while (sim_json_element(&walk, &part)) {
		if (assistant && !is(part, SLICE("type"), SLICE("output_text")))
			return "Invalid value: supported values are: 'output_text' and 'refusal'";
		if (!assistant && !is(part, SLICE("type"), SLICE("input_text")) &&
		    !is(part, SLICE("type"), SLICE("input_image")))
			return "Invalid value: supported values are: 'input_text', 'input_image' "
			       "and 'input_file'";
	}
	return walk.bad ? "input: content is neither text nor parts" : NULL;
}

/* Whether the input has a call of that id in front of `result`. */
static bool was_called(struct slice input, struct slice result)
{
	struct slice id = sim_json_string(sim_json_field(result, SLICE("call_id"))), item;
	struct sim_json walk = sim_json_open(input);

	while (sim_json_element(&walk, &item) && item.at < result.at)
		if (is(item, SLICE("type"), SLICE("function_call")) &&
		    slice_eq(sim_json_string(sim_json_field(item, SLICE("call_id"))), id))
			return true;
	return false;
}

static const char *check_item(struct slice input, struct slice item)
{
	if (is(item, SLICE("type"), SLICE("function_call_output")))
		return was_called(input, item)
			       ? check_parts(sim_json_field(item, SLICE("output")), false)
			       : "No tool call found for function call output";
	if (is(item, SLICE("type"), SLICE("function_call")))
		return slice_absent(sim_json_string(sim_json_field(item, SLICE("arguments"))))
			       ? "input: arguments must be a string"
			       : NULL;
	if (!has(item, SLICE("role")))
		return "input: an item is neither a message nor a call";
	return check_parts(sim_json_field(item, SLICE("content")),
			   is(item, SLICE("role"), SLICE("assistant")));
}

const char *sim_responses_read(struct slice body, struct slice input, struct sim_ask *ask)
{
	struct sim_json walk = sim_json_open(input);
	const char *problem = check_members(body);
	struct slice item;
	bool any = !slice_absent(sim_json_string(input)); /* a lone text is input, too */

	ask->results = nothing;
	if (problem == NULL)
		problem = check_tools(sim_json_field(body, SLICE("tools")));
	while (problem == NULL && sim_json_element(&walk, &item)) {
		problem = check_item(input, item);
		any = true;
		if (!is(item, SLICE("type"), SLICE("function_call_output")))
			ask->results = nothing;
		else if (slice_absent(ask->results))
			ask->results = item;
		else
			ask->results = slice_of(ask->results.at,
						(size_t)(item.at + item.len - ask->results.at));
	}
	if (problem == NULL && !any)
		problem = "input: at least one item is required";
	return problem;
}

/* ---- the answer ---- */

static void message(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(out,
		       "{\"id\":\"msg_sim_#\",\"type\":\"message\",\"status\":\"completed\","
		       "\"role\":\"assistant\",\"content\":[{",
		       a->number);
	if (a->spec->refusal) {
		sim_buf_text(out, "\"type\":\"refusal\",\"refusal\":\"No.\"}]}");
		return;
	}
	sim_buf_text(out,
		     "\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"");
	sim_answer_text(a, out);
	sim_buf_text(out, "\"}]}");
}

static void call(const struct sim_answer *a, uint64_t i, const char *status, struct slice input,
		 struct sim_buf *out)
{
	sim_buf_format(out,
		       "{\"id\":\"fc_sim_#_#\",\"type\":\"function_call\",\"status\":\"$\","
		       "\"arguments\":\"$\",\"call_id\":\"call_sim_#_#\",\"name\":\"$\"}",
		       a->number, i, slice_str(status), input, a->number, i,
		       sim_ask_tool_name(a->ask, (size_t)i));
}

static void output(const struct sim_answer *a, struct sim_buf *out)
{
	if (!sim_answer_calls(a)) {
		message(a, out);
		return;
	}
	for (uint64_t i = 0; i < a->spec->calls; i++) {
		sim_buf_text(out, i == 0 ? "" : ",");
		call(a, i, "completed", sim_answer_input(a, i), out);
	}
}

static void usage(const struct sim_answer *a, struct sim_buf *out)
{
	uint64_t in = sim_answer_tokens_in(a), made = sim_answer_tokens_out(a);

	sim_buf_format(out,
		       "{\"input_tokens\":#,\"input_tokens_details\":{\"cached_tokens\":0},"
		       "\"output_tokens\":#,\"output_tokens_details\":{\"reasoning_tokens\":0},"
		       "\"total_tokens\":#}",
		       in, made, in + made);
}

/* The whole response; `over`: it has come to its end. It repeats the request's tools, as the real one. */
static void response(const struct sim_answer *a, bool over, struct sim_buf *out)
{
	bool cut = over && sim_answer_at_limit(a);

	sim_buf_format(out,
		       "{\"id\":\"resp_sim_#\",\"object\":\"response\",\"created_at\":#,"
		       "\"status\":\"$\",\"error\":null,\"incomplete_details\":$,\"model\":\"$\","
		       "\"output\":[",
		       a->number, CREATED,
		       !over ? SLICE("in_progress")
		       : cut ? SLICE("incomplete")
			     : SLICE("completed"),
		       cut ? SLICE("{\"reason\":\"max_output_tokens\"}") : SLICE("null"),
		       a->ask->model);
	if (over)
		output(a, out);
	sim_buf_format(out, "],\"store\":false,\"tools\":$,\"usage\":",
		       slice_absent(a->ask->tools) ? SLICE("[]") : a->ask->tools);
	if (over && !a->spec->nousage)
		usage(a, out);
	else
		sim_buf_text(out, "null");
	sim_buf_text(out, "}");
}

void sim_responses_whole(const struct sim_answer *a, struct sim_buf *out)
{
	response(a, true, out);
}

/* ---- the answer as a stream ---- */

enum { START_EVENTS = 2, CALL_EVENTS = 5 };

/* The front of an event, up to the members of its own. */
static void event(const char *type, uint64_t sequence, struct sim_buf *out)
{
	sim_buf_format(out,
		       "event: response.$\ndata: {\"type\":\"response.$\",\"sequence_number\":#",
		       slice_str(type), slice_str(type), sequence);
}

static void end_event(struct sim_buf *out)
{
	sim_buf_text(out, "}\n\n");
}

static void response_event(const struct sim_answer *a, const char *type, uint64_t sequence,
			   bool over, struct sim_buf *out)
{
	event(type, sequence, out);
	sim_buf_text(out, ",\"response\":");
	response(a, over, out);
	end_event(out);
}

/* Where a text's events belong. */
static void text_place(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(out, ",\"item_id\":\"msg_sim_#\",\"output_index\":0,\"content_index\":0",
		       a->number);
}

void sim_responses_start(const struct sim_answer *a, struct sim_buf *out)
{
	response_event(a, "created", 0, false, out);
	response_event(a, "in_progress", 1, false, out);
	if (sim_answer_calls(a))
		return;
	event("output_item.added", 2, out);
	sim_buf_format(out,
		       ",\"output_index\":0,\"item\":{\"id\":\"msg_sim_#\",\"type\":\"message\","
		       "\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}",
		       a->number);
	end_event(out);
}

void sim_responses_text(const struct sim_answer *a, uint64_t piece, struct slice text,
			struct sim_buf *out)
{
	event("output_text.delta", START_EVENTS + 1 + piece, out);
	text_place(a, out);
	sim_buf_format(out, ",\"delta\":\"$\",\"logprobs\":[],\"obfuscation\":\"aZ3\"", text);
	end_event(out);
}

/* The item, its arguments in two pieces, and both once more. */
void sim_responses_call(const struct sim_answer *a, uint64_t i, struct slice input,
			struct sim_buf *out)
{
	const struct slice pieces[] = { slice_of(input.at, 1),
					slice_of(input.at + 1, input.len - 1) };
	uint64_t sequence = START_EVENTS + CALL_EVENTS * i;

	event("output_item.added", sequence++, out);
	sim_buf_format(out, ",\"output_index\":#,\"item\":", i);
	call(a, i, "in_progress", SLICE(""), out);
	end_event(out);
	for (size_t j = 0; j < COUNT_OF(pieces); j++) {
		event("function_call_arguments.delta", sequence++, out);
		sim_buf_format(out,
			       ",\"item_id\":\"fc_sim_#_#\",\"output_index\":#,\"delta\":\"$\"",
			       a->number, i, i, pieces[j]);
		end_event(out);
	}
	event("function_call_arguments.done", sequence++, out);
	sim_buf_format(out, ",\"item_id\":\"fc_sim_#_#\",\"output_index\":#,\"arguments\":\"$\"",
		       a->number, i, i, input);
	end_event(out);
	event("output_item.done", sequence, out);
	sim_buf_format(out, ",\"output_index\":#,\"item\":", i);
	call(a, i, "completed", input, out);
	end_event(out);
}

/* What is said twice: the text, and the item. */
static void end_text(const struct sim_answer *a, uint64_t sequence, struct sim_buf *out)
{
	const bool refusal = a->spec->refusal != 0;

	event(refusal ? "refusal.done" : "output_text.done", sequence, out);
	text_place(a, out);
	sim_buf_text(out, refusal ? ",\"refusal\":\"No." : ",\"text\":\"");
	sim_answer_text(a, out);
	sim_buf_text(out, "\"");
	end_event(out);
	event("output_item.done", sequence + 1, out);
	sim_buf_text(out, ",\"output_index\":0,\"item\":");
	message(a, out);
	end_event(out);
}

void sim_responses_end(const struct sim_answer *a, struct sim_buf *out)
{
	uint64_t sequence = START_EVENTS + CALL_EVENTS * a->spec->calls;

	if (!sim_answer_calls(a)) {
		sequence = START_EVENTS + 1 + sim_answer_steps(a) - 2; /* a step is one delta */
		end_text(a, sequence, out);
		sequence += 2;
	}
	response_event(a, sim_answer_at_limit(a) ? "incomplete" : "completed", sequence, true, out);
}
