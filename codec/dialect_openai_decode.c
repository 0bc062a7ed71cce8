/* dialect_openai_decode.c - Chat Completions answers to results. */
#include "codec/dialect_openai.h"

/* ---- decode: message ---- */

static void add_text(struct answer *a, struct slice raw)
{
	answer_add(a, (struct answer_block){ .kind = ANSWER_TEXT, .text = raw });
}

static void read_chunk(struct answer *a, struct json_reader *r)
{
	struct slice key, type = { NULL, 0 }, text = { NULL, 0 };

	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("type")))
			answer_take_string(r, &type);
		else if (slice_eq(key, SLICE("text")))
			answer_take_string(r, &text);
		else
			(void)json_skip(r, NULL);
	if (json_str_eq(type, SLICE("text")) || json_str_eq(type, SLICE("output_text"))) {
		if (slice_absent(text))
			answer_fail(a,
				    "A text part of the provider's answer has no text: malformed");
		add_text(a, text);
	} else if (!json_str_eq(type, SLICE("thinking"))) {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

/* A string, null, or a list of chunks (Mistral). */
void openai_read_content(struct answer *a, struct json_reader *r)
{
	struct slice raw;

	switch (json_peek(r)) {
	case JSON_STRING:
		if (json_string(r, &raw))
			add_text(a, raw);
		break;
	case JSON_ARRAY:
		if (json_enter_array(r))
			while (json_next_item(r))
				read_chunk(a, r);
		break;
	case JSON_NULL:
		(void)json_null(r);
		break;
	default:
		answer_fail(a, "The content of the provider's answer is neither text nor parts: "
			       "malformed");
		(void)json_skip(r, NULL);
	}
}

static void read_function(struct answer *a, struct json_reader *r, struct answer_block *call)
{
	struct slice key;

	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("name")))
			answer_take_string(r, &call->name);
		else if (slice_eq(key, SLICE("arguments")))
			(void)json_skip(r, &call->args);
		else
			(void)json_skip(r, NULL);
}

static void add_call(struct answer *a, const struct answer_block *call)
{
	if (call->name.len == 0)
		answer_fail(a, "The provider's tool call has no function name: malformed");
	answer_add(a, *call);
}

static void read_call(struct answer *a, struct json_reader *r)
{
	struct answer_block call = { .kind = ANSWER_CALL };
	struct slice key, type = { NULL, 0 };

	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("id")))
			answer_take_string(r, &call.id);
		else if (slice_eq(key, SLICE("type")))
			answer_take_string(r, &type);
		else if (slice_eq(key, SLICE("function")) && json_peek(r) == JSON_OBJECT)
			read_function(a, r, &call);
		else
			(void)json_skip(r, NULL);
	if (json_str_eq(type, SLICE("custom"))) /* its input is no object; none is ever offered */
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	else
		add_call(a, &call);
}

/* What a message holds; calls are added behind the text, wherever they stood. */
struct parts {
	struct slice refusal, audio;
	struct answer calls; /* only its blocks are used */
};

static void read_audio(struct answer *a, struct json_reader *r, struct parts *parts)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("data")))
			answer_take_string(r, &parts->audio);
		else
			(void)json_skip(r, NULL);
}

static void read_calls(struct answer *calls, struct json_reader *r)
{
	if (json_peek(r) == JSON_NULL) {
		(void)json_null(r);
		return;
	}
	if (json_enter_array(r))
		while (json_next_item(r))
			read_call(calls, r);
}

static void read_message_member(struct answer *a, struct json_reader *r, struct slice key,
				struct parts *parts)
{
	if (slice_eq(key, SLICE("content"))) {
		openai_read_content(a, r);
	} else if (slice_eq(key, SLICE("tool_calls"))) {
		read_calls(&parts->calls, r);
	} else if (slice_eq(key, SLICE("function_call")) && json_peek(r) == JSON_OBJECT) {
		struct answer_block call = { .kind = ANSWER_CALL };
		read_function(a, r, &call);
		add_call(&parts->calls, &call);
	} else if (slice_eq(key, SLICE("refusal"))) {
		answer_take_string(r, &parts->refusal);
	} else if (slice_eq(key, SLICE("audio"))) {
		read_audio(a, r, parts);
	} else {
		(void)json_skip(r,
				NULL); /* role, annotations, and reasoning in all its spellings */
	}
}

static void add_audio(struct answer *a, struct slice audio)
{
	if (slice_absent(audio))
		return;
	if (slice_absent(a->context->audio_format)) /* nobody asked for any */
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	else
		answer_add(a, (struct answer_block){ .kind = ANSWER_AUDIO, .text = audio });
}

static void read_message(struct answer *a, struct json_reader *r)
{
	struct parts parts = { 0 };
	struct slice key;

	answer_begin(&parts.calls, a->context, a->from, a->work, a->into);
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		read_message_member(a, r, key, &parts);
	add_audio(a, parts.audio);
	for (uint32_t i = 0; i < parts.calls.count; i++)
		answer_add(a, parts.calls.blocks[i]);
	a->adjustments |= parts.calls.adjustments;
	if (a->err == ERR_OK) {
		a->err = parts.calls.err;
		a->detail = parts.calls.detail;
	}
	a->explanation = parts.refusal;
}

/* ---- decode: choice and usage ---- */

/* What the choice says beside its message. */
struct choice {
	struct slice reason, match; /* match: vLLM's stop_reason when it is a string */
	bool message, failed;
};

static void read_choice(struct answer *a, struct json_reader *r, struct choice *choice)
{
	struct slice key;

	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key)) {
		if (slice_eq(key, SLICE("message"))) {
			choice->message = true;
			read_message(a, r);
		} else if (slice_eq(key, SLICE("finish_reason"))) {
			answer_take_string(r, &choice->reason);
		} else if (slice_eq(key, SLICE("stop_reason"))) {
			answer_take_string(r, &choice->match);
		} else {
			choice->failed |=
				slice_eq(key, SLICE("error")) && json_peek(r) == JSON_OBJECT;
			(void)json_skip(r, NULL);
		}
	}
}

enum answer_stop openai_stop(struct slice reason, struct slice match)
{
	static const struct {
		struct slice reason;
		enum answer_stop stop;
	} stops[] = {
		{ SLICE_INIT("tool_calls"), ANSWER_END },
		{ SLICE_INIT("function_call"), ANSWER_END },
		{ SLICE_INIT("length"), ANSWER_LENGTH },
		{ SLICE_INIT("model_length"), ANSWER_LENGTH },
		{ SLICE_INIT("content_filter"), ANSWER_REFUSED },
	};

	if (slice_absent(reason) || json_str_eq(reason, SLICE("stop")))
		return match.len != 0 ? ANSWER_SEQUENCE : ANSWER_END;
	for (size_t i = 0; i < COUNT_OF(stops); i++)
		if (json_str_eq(reason, stops[i].reason))
			return stops[i].stop;
	return ANSWER_OTHER;
}

static void read_prompt_details(struct answer *a, struct json_reader *r, struct usage *usage)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("cached_tokens")))
			(void)answer_take_count(r, &usage->cache_read);
		else if (slice_eq(key, SLICE("cache_write_tokens")))
			(void)answer_take_count(r, &usage->cache_write);
		else
			(void)json_skip(r, NULL);
}

/* Input and output are whole here. DeepSeek counts cache hits in a member of its own. */
void openai_read_usage(struct answer *a, struct json_reader *r)
{
	struct usage usage = { 0 };
	uint64_t hits = 0;
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key)) {
		if (slice_eq(key, SLICE("prompt_tokens")))
			usage.known |= answer_take_count(r, &usage.input);
		else if (slice_eq(key, SLICE("completion_tokens")))
			usage.known |= answer_take_count(r, &usage.output);
		else if (slice_eq(key, SLICE("prompt_cache_hit_tokens")))
			(void)answer_take_count(r, &hits);
		else if (slice_eq(key, SLICE("prompt_tokens_details")))
			read_prompt_details(a, r, &usage);
		else if (slice_eq(key, SLICE("completion_tokens_details")))
			answer_take_member(a, r, SLICE("reasoning_tokens"), &usage.reasoning);
		else
			(void)json_skip(r, NULL);
	}
	if (usage.cache_read == 0)
		usage.cache_read = hits;
	if (usage.known)
		answer_set_usage(a, usage);
}

/* Groq repeats its usage in there, and is the only place on some answers. */
void openai_read_x_groq(struct answer *a, struct json_reader *r)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT || a->usage.known) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(a, r, &key))
		if (slice_eq(key, SLICE("usage")))
			openai_read_usage(a, r);
		else
			(void)json_skip(r, NULL);
}

/* ---- decode: the whole ---- */

struct top {
	struct choice choice;
	bool choices, error;
};

static void read_choices(struct answer *a, struct json_reader *r, struct top *top)
{
	if (!json_enter_array(r))
		return;
	while (json_next_item(r)) {
		if (top->choices) {
			(void)json_skip(r, NULL); /* one was asked for */
			continue;
		}
		top->choices = true;
		read_choice(a, r, &top->choice);
	}
}

static void read_member(struct answer *a, struct json_reader *r, struct slice key, struct top *top)
{
	if (slice_eq(key, SLICE("choices")) && json_peek(r) == JSON_ARRAY) {
		read_choices(a, r, top);
	} else if (slice_eq(key, SLICE("id"))) {
		answer_take_string(r, &a->id);
	} else if (slice_eq(key, SLICE("model"))) {
		answer_take_string(r, &a->model);
	} else if (slice_eq(key, SLICE("usage"))) {
		openai_read_usage(a, r);
	} else if (slice_eq(key, SLICE("x_groq"))) {
		openai_read_x_groq(a, r);
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
	a->stop = a->explanation.len != 0 ? ANSWER_REFUSED
					  : openai_stop(top->choice.reason, top->choice.match);
}

enum err openai_decode(const struct decode_context *context, const struct provider_answer *answer,
		       struct json_work *work, struct arena *into, struct sampling_result *result,
		       struct provider_failure *failure)
{
	struct answer a;
	struct top top = { 0 };

	answer_begin(&a, context, answer, work, into);
	if (answer->status / 100 != 2)
		return answer_from_failure(&a, result, failure);
	read_answer(&a, &top);
	bool failed = top.choice.failed || json_str_eq(top.choice.reason, SLICE("error"));
	if (a.err == ERR_OK && (top.error || failed))
		return answer_from_failure(&a, result, failure);
	if (!top.choices)
		answer_fail(&a, "The provider's answer has no choices: malformed");
	if (!top.choice.message)
		answer_fail(&a, "The provider's answer has no message: malformed");
	return answer_finish(&a, result, failure);
}
