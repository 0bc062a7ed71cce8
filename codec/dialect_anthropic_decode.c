/* dialect_anthropic_decode.c - Messages answers to results. */
#include "codec/dialect_anthropic.h"

/* ---- decode ---- */

enum answer_stop anthropic_stop(struct slice reason)
{
	static const struct {
		struct slice reason;
		enum answer_stop stop;
	} stops[] = {
		{ SLICE_INIT("end_turn"), ANSWER_END },
		{ SLICE_INIT("tool_use"), ANSWER_END },
		{ SLICE_INIT("stop_sequence"), ANSWER_SEQUENCE },
		{ SLICE_INIT("max_tokens"), ANSWER_LENGTH },
		{ SLICE_INIT("model_context_window_exceeded"), ANSWER_LENGTH },
		{ SLICE_INIT("refusal"), ANSWER_REFUSED },
	};

	if (slice_absent(reason)) /* hosts of the same format may leave it null */
		return ANSWER_END;
	for (size_t i = 0; i < COUNT_OF(stops); i++)
		if (json_str_eq(reason, stops[i].reason))
			return stops[i].stop;
	return ANSWER_OTHER;
}

void anthropic_read_usage(struct answer *a, struct json_reader *r, struct usage *counters)
{
	struct usage usage;
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key)) {
		if (slice_eq(key, SLICE("input_tokens")))
			counters->known |= answer_take_count(r, &counters->input);
		else if (slice_eq(key, SLICE("output_tokens")))
			counters->known |= answer_take_count(r, &counters->output);
		else if (slice_eq(key, SLICE("cache_read_input_tokens")))
			(void)answer_take_count(r, &counters->cache_read);
		else if (slice_eq(key, SLICE("cache_creation_input_tokens")))
			(void)answer_take_count(r, &counters->cache_write);
		else if (slice_eq(key, SLICE("output_tokens_details")))
			answer_take_member(a, r, SLICE("thinking_tokens"), &counters->reasoning);
		else
			(void)json_skip(r, NULL);
	}
	/* each is below 2^63, so two of them cannot overflow; three could */
	usage = *counters;
	if (__builtin_add_overflow(usage.input + usage.cache_read, usage.cache_write, &usage.input))
		usage.input = UINT64_MAX;
	answer_set_usage(a, usage);
}

bool anthropic_is_private(struct slice type)
{
	static const struct slice prefixes[] = { SLICE_INIT("thinking"),
						 SLICE_INIT("redacted_thinking"),
						 SLICE_INIT("server_tool_use") };

	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (json_str_eq(type, prefixes[i]))
			return true;
	/* web_search_tool_result and its kin: results of the provider's own tools */
	static const struct slice suffix = SLICE_INIT("_tool_result");
	return type.len > suffix.len &&
	       memcmp(type.at + type.len - suffix.len, suffix.at, suffix.len) == 0;
}

static void add_block(struct answer *a, struct slice type, struct answer_block block)
{
	if (json_str_eq(type, SLICE("text"))) {
		block.kind = ANSWER_TEXT;
		if (slice_absent(block.text))
			answer_fail(a,
				    "A text block of the provider's answer has no text: malformed");
		answer_add(a, block);
	} else if (json_str_eq(type, SLICE("tool_use"))) {
		block.kind = ANSWER_CALL;
		if (block.name.len == 0)
			answer_fail(a, "The provider's tool call has no name: malformed");
		answer_add(a, block);
	} else if (!anthropic_is_private(type)) {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

static void read_block(struct answer *a, struct json_reader *r)
{
	struct answer_block block = { 0 };
	struct slice key, type = { NULL, 0 };

	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key)) {
		if (slice_eq(key, SLICE("type")))
			answer_take_string(r, &type);
		else if (slice_eq(key, SLICE("text")))
			answer_take_string(r, &block.text);
		else if (slice_eq(key, SLICE("id")))
			answer_take_string(r, &block.id);
		else if (slice_eq(key, SLICE("name")))
			answer_take_string(r, &block.name);
		else if (slice_eq(key, SLICE("input")))
			(void)json_skip(r, &block.args);
		else
			(void)json_skip(r, NULL);
	}
	add_block(a, type, block);
}

void anthropic_read_explanation(struct answer *a, struct json_reader *r)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("explanation")))
			answer_take_string(r, &a->explanation);
		else
			(void)json_skip(r, NULL);
}

/* What the top level says beside the blocks. */
struct top {
	struct slice type, reason;
	struct usage counters;
	bool content, error;
};

static void read_member(struct answer *a, struct json_reader *r, struct slice key, struct top *top)
{
	if (slice_eq(key, SLICE("content")) && json_peek(r) == JSON_ARRAY) {
		top->content = true;
		if (json_enter_array(r))
			while (json_next_item(r))
				read_block(a, r);
	} else if (slice_eq(key, SLICE("id"))) {
		answer_take_string(r, &a->id);
	} else if (slice_eq(key, SLICE("model"))) {
		answer_take_string(r, &a->model);
	} else if (slice_eq(key, SLICE("type"))) {
		answer_take_string(r, &top->type);
	} else if (slice_eq(key, SLICE("stop_reason"))) {
		answer_take_string(r, &top->reason);
	} else if (slice_eq(key, SLICE("stop_details"))) {
		anthropic_read_explanation(a, r);
	} else if (slice_eq(key, SLICE("usage"))) {
		anthropic_read_usage(a, r, &top->counters);
	} else {
		top->error |= slice_eq(key, SLICE("error")) && json_peek(r) != JSON_NULL;
		(void)json_skip(r, NULL);
	}
}

static void read_answer(struct answer *a, struct top *top)
{
	struct json_reader r;
	struct slice key;

	json_open(&r, a->from->body, NULL, a->work);
	if (json_enter_object(&r)) {
		while (answer_next_key(a, &r, &key))
			read_member(a, &r, key, top);
		(void)json_finish(&r);
	}
	answer_check(a, &r);
	a->stop = anthropic_stop(top->reason);
	a->last_call_cut = true;
}

enum err anthropic_decode(const struct decode_context *context,
			  const struct provider_answer *answer, struct json_work *work,
			  struct arena *into, struct sampling_result *result,
			  struct provider_failure *failure)
{
	struct answer a;
	struct top top = { 0 };

	answer_begin(&a, context, answer, work, into);
	if (answer->status / 100 != 2)
		return answer_from_failure(&a, result, failure);
	read_answer(&a, &top);
	if (a.err == ERR_OK && (top.error || json_str_eq(top.type, SLICE("error"))))
		return answer_from_failure(&a, result, failure);
	if (!top.content)
		answer_fail(&a, "The provider's answer has no content: malformed");
	return answer_finish(&a, result, failure);
}
