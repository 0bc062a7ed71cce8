/* dialect_responses_decode.c - Responses answers to results. */
#include "codec/dialect/responses/dialect_responses.h"

/* ---- decode: what is said of the whole ---- */

const struct json_name responses_names[RESPONSES_MEMBERS] = {
	[RESPONSES_ID] = JSON_NAME("id"),
	[RESPONSES_STATUS] = JSON_NAME("status"),
	[RESPONSES_ERROR] = JSON_NAME("error"),
	[RESPONSES_INCOMPLETE] = JSON_NAME("incomplete_details"),
	[RESPONSES_MODEL] = JSON_NAME("model"),
	[RESPONSES_OUTPUT] = JSON_NAME("output"),
	[RESPONSES_USAGE] = JSON_NAME("usage"),
};

/* Input includes what came from the cache, output includes reasoning: as in the normal form. xAI's reasoning is in the
 * total alone. */
static void read_usage(struct answer *a, struct json_reader *r)
{
	enum { INPUT, INPUT_DETAILS, OUTPUT, OUTPUT_DETAILS, TOTAL };
	static const struct json_name names[] = {
		[INPUT] = JSON_NAME("input_tokens"),
		[INPUT_DETAILS] = JSON_NAME("input_tokens_details"),
		[OUTPUT] = JSON_NAME("output_tokens"),
		[OUTPUT_DETAILS] = JSON_NAME("output_tokens_details"),
		[TOTAL] = JSON_NAME("total_tokens"),
	};
	static const struct json_name cached = JSON_NAME("cached_tokens");
	static const struct json_name reasoning = JSON_NAME("reasoning_tokens");
	struct json_fields fields = JSON_FIELDS(names);
	struct usage usage = { 0 };
	bool input = false, output = false;
	uint64_t total = 0;
	uint32_t member;

	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		switch (member) {
		case INPUT:
			input = answer_take_count(r, &usage.input);
			break;
		case OUTPUT:
			output = answer_take_count(r, &usage.output);
			break;
		case INPUT_DETAILS:
			answer_take_count_of(r, &cached, &usage.cache_read);
			break;
		case OUTPUT_DETAILS:
			answer_take_count_of(r, &reasoning, &usage.reasoning);
			break;
		case TOTAL:
			(void)answer_take_count(r, &total);
			break;
		default:
			answer_skip(r);
		}
	usage.known = input || output;
	if (input && output)
		answer_add_rest(&usage, total);
	if (usage.known)
		answer_set_usage(a, usage);
}

void responses_read_member(struct answer *a, struct json_reader *r, uint32_t member,
			   struct responses_end *end)
{
	static const struct json_name reason = JSON_NAME("reason");

	switch (member) {
	case RESPONSES_ID:
		answer_take_string(r, &a->id);
		break;
	case RESPONSES_STATUS:
		answer_take_string(r, &end->status);
		break;
	case RESPONSES_ERROR:
		end->error = json_peek(r) != JSON_NULL;
		answer_skip(r);
		break;
	case RESPONSES_INCOMPLETE:
		answer_take_string_of(r, &reason, &end->reason);
		break;
	case RESPONSES_MODEL:
		answer_take_string(r, &a->model);
		break;
	case RESPONSES_USAGE:
		read_usage(a, r);
		break;
	default:
		answer_skip(r);
	}
}

enum answer_stop responses_stop(struct answer *a, const struct responses_end *end)
{
	if (slice_absent(end->status) || json_str_eq(end->status, SLICE("completed")))
		return ANSWER_END;
	if (!json_str_eq(end->status, SLICE("incomplete"))) {
		answer_fail(a, "The provider's answer is neither complete nor failed");
		return ANSWER_OTHER;
	}
	const enum answer_stop stop = answer_stop_of(end->reason);
	return stop == ANSWER_END || stop == ANSWER_SEQUENCE ? ANSWER_OTHER : stop;
}

/* ---- decode: output ---- */

bool responses_is_private(struct slice type)
{
	static const struct slice known[] = { SLICE_INIT("reasoning"), SLICE_INIT("compaction"),
					      SLICE_INIT("mcp_list_tools") };
	/* web_search_call and its kin; a custom_tool_call is ours, and was never offered */
	static const struct slice ours = SLICE_INIT("custom_tool_call");
	static const struct slice suffix = SLICE_INIT("_call");

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (json_str_eq(type, known[i]))
			return true;
	return type.len > suffix.len && !json_str_eq(type, ours) &&
	       memcmp(type.at + type.len - suffix.len, suffix.at, suffix.len) == 0;
}

/* A part of a message: text, or what the model says in place of one. */
void responses_read_part(struct answer *a, struct json_reader *r)
{
	enum { TYPE, ANNOTATIONS, LOGPROBS, TEXT, REFUSAL };
	static const struct json_name names[] = {
		[TYPE] = JSON_NAME("type"),         [ANNOTATIONS] = JSON_NAME("annotations"),
		[LOGPROBS] = JSON_NAME("logprobs"), [TEXT] = JSON_NAME("text"),
		[REFUSAL] = JSON_NAME("refusal"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	struct slice type = { NULL, 0 }, text = { NULL, 0 }, refusal = { NULL, 0 };
	uint32_t member;

	if (!json_enter_object(r))
		return;
	while (answer_next(r, &fields, &member))
		switch (member) {
		case TYPE:
			answer_take_string(r, &type);
			break;
		case TEXT:
			answer_take_string(r, &text);
			break;
		case REFUSAL:
			answer_take_string(r, &refusal);
			break;
		default:
			answer_skip(r);
		}
	if (json_str_eq(type, SLICE("output_text")) || json_str_eq(type, SLICE("text"))) {
		if (slice_absent(text))
			answer_fail(a,
				    "A text part of the provider's answer has no text: malformed");
		answer_add(a, (struct answer_block){ .kind = ANSWER_TEXT, .text = text });
	} else if (json_str_eq(type, SLICE("refusal"))) {
		a->explanation = refusal;
	} else {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

static void read_content(struct answer *a, struct json_reader *r)
{
	struct slice text;

	if (json_peek(r) == JSON_STRING) { /* as some hosts of the format write it */
		if (json_string(r, &text))
			answer_add(a, (struct answer_block){ .kind = ANSWER_TEXT, .text = text });
		return;
	}
	if (!answer_enter_list(r))
		return;
	while (json_next_item(r))
		responses_read_part(a, r);
}

/* An output item beside its content. */
struct item {
	struct slice type, status;
	struct slice encrypted; /* of reasoning: what it is worth nothing without (section 4) */
	struct answer_block call;
};

static void read_item_members(struct answer *a, struct json_reader *r, struct item *item)
{
	enum { ID, TYPE, STATUS, CONTENT, ARGUMENTS, CALL_ID, NAME, ENCRYPTED };
	static const struct json_name names[] = {
		[ID] = JSON_NAME("id"),
		[TYPE] = JSON_NAME("type"),
		[STATUS] = JSON_NAME("status"),
		[CONTENT] = JSON_NAME("content"),
		[ARGUMENTS] = JSON_NAME("arguments"),
		[CALL_ID] = JSON_NAME("call_id"),
		[NAME] = JSON_NAME("name"),
		[ENCRYPTED] = JSON_NAME("encrypted_content"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	struct slice content = { NULL, 0 };
	struct json_reader inner;
	uint32_t member;

	while (answer_next(r, &fields, &member))
		switch (member) {
		case TYPE:
			answer_take_string(r, &item->type);
			break;
		case STATUS:
			answer_take_string(r, &item->status);
			break;
		case CONTENT:
			if (json_str_eq(item->type, SLICE("message")))
				read_content(a, r);
			else
				(void)json_skip(r, &content); /* the type may follow */
			break;
		case ARGUMENTS:
			answer_take_args(a, r, &item->call);
			break;
		case CALL_ID:
			answer_take_string(r, &item->call.id);
			break;
		case NAME:
			answer_take_string(r, &item->call.name);
			break;
		case ENCRYPTED:
			answer_take_string(r, &item->encrypted);
			break;
		default:
			answer_skip(r);
		}
	if (r->fault.err != ERR_OK || slice_absent(content) ||
	    !json_str_eq(item->type, SLICE("message")))
		return;
	json_open(&inner, content, NULL, NULL); /* validated by json_skip */
	read_content(a, &inner);
}

static void read_item(struct answer *a, struct json_reader *r)
{
	struct item item = { .call = { .kind = ANSWER_CALL } };

	if (!json_enter_object(r))
		return;
	read_item_members(a, r, &item);
	a->last_call_cut = false;
	if (json_str_eq(item.type, SLICE("function_call"))) {
		if (item.call.name.len == 0)
			answer_fail(a, "The provider's tool call has no name: malformed");
		a->last_call_cut = json_str_eq(item.status, SLICE("incomplete"));
		answer_add(a, item.call);
	} else if (json_str_eq(item.type, SLICE("reasoning"))) {
		a->private |= item.encrypted.len != 0;
		a->unkeepable |= item.encrypted.len == 0; /* nobody could say what it is */
	} else if (!responses_is_private(item.type) && !json_str_eq(item.type, SLICE("message"))) {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

/* ---- decode: the whole ---- */

static bool read_output(struct answer *a, struct json_reader *r)
{
	if (!answer_enter_list(r))
		return false;
	const uint32_t first = json_offset(r);
	while (json_next_item(r))
		read_item(a, r);
	if (a->private) /* with both brackets */
		answer_keep_text(a, first - 1, json_offset(r));
	return true;
}

/* Whether there is an output. */
static bool read_answer(struct answer *a, struct responses_end *end)
{
	struct json_fields fields = JSON_FIELDS(responses_names);
	struct json_reader r;
	uint32_t member;
	bool output = false;

	json_open(&r, a->from->body, &answer_json, a->work);
	if (json_enter_object(&r)) {
		while (answer_next(&r, &fields, &member))
			if (member == RESPONSES_OUTPUT)
				output = read_output(a, &r);
			else
				responses_read_member(a, &r, member, end);
		(void)json_finish(&r);
	}
	answer_check(a, &r);
	return output;
}

enum err responses_decode(const struct decode_context *context,
			  const struct provider_answer *answer, struct json_work *work,
			  struct arena *into, struct sampling_result *result,
			  struct provider_failure *failure)
{
	struct responses_end end = { 0 };
	struct provider_answer mended;
	struct answer a;

	answer_begin(&a, context, answer, work, into);
	if (answer->status / 100 != 2)
		return answer_from_failure(&a, result, failure);
	bool output = read_answer(&a, &end);
	if (a.err != ERR_OK && answer_mend(&a, &mended)) {
		end = (struct responses_end){ 0 };
		output = read_answer(&a, &end);
	}
	if (a.err == ERR_OK && (end.error || json_str_eq(end.status, SLICE("failed"))))
		return answer_from_failure(&a, result, failure);
	if (!output)
		answer_fail(&a, "The provider's answer has no output: malformed");
	a.stop = responses_stop(&a, &end);
	if (a.explanation.len != 0)
		a.stop = ANSWER_REFUSED;
	return answer_finish(&a, result, failure);
}
