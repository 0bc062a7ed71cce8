/* dialect_openai_decode.c - Chat Completions answers to results. */
#include "codec/dialect/openai/dialect_openai.h"

#include "codec/dialect/dialect_failure.h"
#include "codec/json/json_loose.h"

/* ---- decode: message ---- */

static void read_function(struct answer *a, struct json_reader *r, struct answer_block *call)
{
	enum { NAME, ARGUMENTS };
	static const struct json_name names[] = {
		[NAME] = JSON_NAME("name"), [ARGUMENTS] = JSON_NAME("arguments")
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == NAME)
			answer_take_string(r, &call->name);
		else if (member == ARGUMENTS)
			answer_take_args(a, r, call);
		else
			answer_skip(r);
}

static void add_call(struct answer *a, const struct answer_block *call)
{
	if (call->name.len == 0)
		answer_odd(a, "The provider's tool call has no function name: malformed");
	answer_add(a, *call);
}

/* Reads a call that is written as it mostly is. False: it is not, nothing happened, or the reader has
 * failed. */
static bool read_guessed_call(struct answer *a, struct json_reader *r, struct answer_block *call)
{
	const char *brace = r->at;

	if (r->depth + 2 > r->limits.depth_max ||
	    !json_guess_string_lit(r, "{\"id\":\"", &call->id) ||
	    !json_guess_string_lit(r, ",\"type\":\"function\",\"function\":{\"name\":\"",
				   &call->name) ||
	    !json_guess_lit(r, ",\"arguments\":"))
		goto other;
	if (!answer_is_at(r, '"'))
		goto other;
	answer_take_args(a, r, call);
	if (r->fault.err == ERR_OK && json_guess_lit(r, "}}"))
		return true;
other:
	if (r->fault.err == ERR_OK)
		r->at = brace;
	*call = (struct answer_block){ .kind = ANSWER_CALL };
	return false;
}

/* A host's own: Gemini's signatures are in there. */
static void read_extra(struct answer *a, struct json_reader *r, struct answer_block *call)
{
	const bool object = json_peek(r) == JSON_OBJECT;

	if (json_skip(r, object ? &call->text : NULL))
		a->private |= object;
}

static void read_call(struct answer *a, struct json_reader *r)
{
	enum { ID, TYPE, FUNCTION, INDEX, EXTRA };
	static const struct json_name names[] = {
		[ID] = JSON_NAME("id"),
		[TYPE] = JSON_NAME("type"),
		[FUNCTION] = JSON_NAME("function"),
		[INDEX] = JSON_NAME("index"),
		[EXTRA] = JSON_NAME("extra_content"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	struct answer_block call = { .kind = ANSWER_CALL };
	struct slice type = { NULL, 0 };
	uint32_t member;

	if (read_guessed_call(a, r, &call)) {
		add_call(a, &call);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == ID)
			answer_take_string(r, &call.id);
		else if (member == TYPE)
			answer_take_string(r, &type);
		else if (member == FUNCTION)
			read_function(a, r, &call);
		else if (member == EXTRA)
			read_extra(a, r, &call);
		else
			answer_skip(r);
	if (json_str_eq(type, SLICE("custom"))) /* its input is no object; none is ever offered */
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	else
		add_call(a, &call);
}

static void read_calls(struct answer *a, struct json_reader *r)
{
	if (json_guess_lit(r, "null"))
		return;
	if (json_enter_array(r))
		while (json_next_item(r))
			read_call(a, r);
}

/* The form that tools had before there were several. */
static void read_lone_call(struct answer *a, struct json_reader *r)
{
	struct answer_block call = { .kind = ANSWER_CALL };

	if (json_peek(r) != JSON_OBJECT) {
		answer_skip(r);
		return;
	}
	read_function(a, r, &call);
	add_call(a, &call);
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

/* Calls come behind everything else, wherever their member stood; the order is kept otherwise. */
static void put_calls_last(struct answer *a)
{
	uint32_t out = 0, calls = 0;

	for (uint32_t i = 0; i < a->count; i++) {
		bool call = a->blocks[i].kind == ANSWER_CALL;
		out += !call && calls != 0;
		calls += call;
	}
	if (out == 0 || a->err != ERR_OK)
		return;
	struct answer_block *sorted = arena_take(a->into, a->count * sizeof(*sorted));
	if (sorted == NULL) {
		answer_no_memory(a);
		return;
	}
	uint32_t first = 0, last = a->count - calls;
	for (uint32_t i = 0; i < a->count; i++)
		sorted[a->blocks[i].kind == ANSWER_CALL ? last++ : first++] = a->blocks[i];
	a->blocks = sorted;
	a->cap = a->count;
}

/* ---- decode: what goes back ---- */

/* Reasoning as a string; most hosts say it to be read, and refuse it in a request. */
static void read_reasoning(struct answer *a, struct json_reader *r, struct slice *json)
{
	const bool wanted = a->context->replay_reasoning && json_peek(r) == JSON_STRING;

	if (json_skip(r, wanted ? json : NULL))
		a->private |= wanted;
}

/* OpenRouter's form of it, which goes back to whatever model there is behind it. */
static void read_details(struct answer *a, struct json_reader *r, struct slice *json)
{
	const bool wanted = json_peek(r) == JSON_ARRAY;

	if (json_skip(r, wanted ? json : NULL))
		a->private |= wanted;
}

/* ---- decode: message ---- */

/* Whatever is not named here is skipped: annotations, and reasoning that nobody wants back. */
static void read_message(struct answer *a, struct json_reader *r, struct openai_kept *kept)
{
	enum {
		ROLE,
		CONTENT,
		CALLS,
		REFUSAL,
		ANNOTATIONS,
		AUDIO,
		CALL,
		THOUGHT,
		REASONING,
		DETAILS
	};
	static const struct json_name names[] = {
		[ROLE] = JSON_NAME("role"),
		[CONTENT] = JSON_NAME("content"),
		[CALLS] = JSON_NAME("tool_calls"),
		[REFUSAL] = JSON_NAME("refusal"),
		[ANNOTATIONS] = JSON_NAME("annotations"),
		[AUDIO] = JSON_NAME("audio"),
		[CALL] = JSON_NAME("function_call"),
		[THOUGHT] = JSON_NAME("reasoning_content"),
		[REASONING] = JSON_NAME("reasoning"),
		[DETAILS] = JSON_NAME("reasoning_details"),
	};
	static const struct json_name audio_data = JSON_NAME("data");
	struct json_fields fields = JSON_FIELDS(names);
	struct slice audio = { NULL, 0 };
	const char *brace = r->at;
	uint32_t member;

	if (json_guess_lit(r, "{\"role\":\"assistant\"")) {
		fields.seen = 1 << ROLE;
		fields.next = CONTENT;
		if (!json_resume_object(r, brace))
			return;
	} else if (!json_enter_object(r)) {
		return;
	}
	while (answer_next(r, &fields, &member))
		switch (member) {
		case THOUGHT:
			read_reasoning(a, r, &kept->reasoning_content);
			break;
		case REASONING:
			read_reasoning(a, r, &kept->reasoning);
			break;
		case DETAILS:
			read_details(a, r, &kept->reasoning_details);
			break;
		case CONTENT:
			openai_read_content(a, r);
			(void)answer_guess(r, &fields, SLICE(",\"refusal\":null"), 1 << REFUSAL,
					   ANNOTATIONS);
			(void)answer_guess(r, &fields, SLICE(",\"annotations\":[]"),
					   1 << ANNOTATIONS, CALLS);
			break;
		case CALLS:
			read_calls(a, r);
			break;
		case CALL:
			read_lone_call(a, r);
			break;
		case REFUSAL:
			answer_take_string(r, &a->explanation);
			break;
		case AUDIO:
			answer_take_string_of(r, &audio_data, &audio);
			break;
		default:
			answer_skip(r);
		}
	add_audio(a, audio);
}

/* ---- decode: choice ---- */

/* What the choice says beside its message. */
struct choice {
	struct slice reason, match; /* match: vLLM's stop_reason when it is a string */
	struct slice error;         /* an object; absent: there is none */
	bool message;
};

static void read_choice(struct answer *a, struct json_reader *r, struct choice *choice,
			struct openai_kept *kept)
{
	enum { INDEX, MESSAGE, LOGPROBS, REASON, MATCH, ERROR, USAGE };
	static const struct json_name names[] = {
		[INDEX] = JSON_NAME("index"),       [MESSAGE] = JSON_NAME("message"),
		[LOGPROBS] = JSON_NAME("logprobs"), [REASON] = JSON_NAME("finish_reason"),
		[MATCH] = JSON_NAME("stop_reason"), [ERROR] = JSON_NAME("error"),
		[USAGE] = JSON_NAME("usage"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	const char *brace = r->at;
	uint32_t member;

	if (json_guess_lit(r, "{\"index\":0,")) {
		fields.seen = 1 << INDEX;
		fields.next = MESSAGE;
		r->at--; /* in front of the comma */
		if (!json_resume_object(r, brace))
			return;
	} else if (!json_enter_object(r)) {
		return;
	}
	while (answer_next(r, &fields, &member))
		switch (member) {
		case MESSAGE:
			if (answer_is_at(r, 'n') && json_guess_lit(r, "null"))
				break; /* as good as none */
			choice->message = true;
			read_message(a, r, kept);
			(void)answer_guess(r, &fields, SLICE(",\"logprobs\":null"), 1 << LOGPROBS,
					   REASON);
			break;
		case REASON:
			answer_take_string(r, &choice->reason);
			break;
		case MATCH:
			answer_take_string(r, &choice->match);
			break;
		case USAGE:
			openai_read_choice_usage(a, r);
			break;
		case ERROR:
			(void)json_skip(r, json_peek(r) == JSON_OBJECT ? &choice->error : NULL);
			break;
		default:
			answer_skip(r);
		}
}

enum answer_stop openai_stop(struct slice reason, struct slice match)
{
	static const struct {
		struct slice reason;
		enum answer_stop stop;
	} stops[] = {
		{ SLICE_INIT("tool_calls"), ANSWER_END },
		{ SLICE_INIT("length"), ANSWER_LENGTH },
	};

	if (reason.len == 0 || json_str_eq(reason, SLICE("stop"))) /* some say "" for null */
		return match.len != 0 ? ANSWER_SEQUENCE : ANSWER_END;
	for (size_t i = 0; i < COUNT_OF(stops); i++)
		if (json_str_eq(reason, stops[i].reason))
			return stops[i].stop;
	return answer_stop_of(reason);
}

/* ---- decode: the whole ---- */

struct top {
	struct choice choice;
	bool choices, error;
	bool several, said; /* several choices; one of them has text */
};

/* The reason that says most counts. */
static void add_choice(struct choice *sum, const struct choice *one)
{
	sum->message |= one->message;
	if (slice_absent(sum->error))
		sum->error = one->error;
	if (answer_stop_says_more(openai_stop(sum->reason, sum->match),
				  openai_stop(one->reason, one->match))) {
		sum->reason = one->reason;
		sum->match = one->match;
	}
}

/* Drops the text that a further choice begins with, at `from`, if the answer begins with the same: it was meant in
 * place of that one. */
static void drop_same_text(struct answer *a, uint32_t from)
{
	const struct answer_block *first = a->blocks, *other = a->blocks + from;

	if (from == 0 || from == a->count || first->kind != ANSWER_TEXT ||
	    other->kind != ANSWER_TEXT || !slice_eq(first->text, other->text))
		return;
	a->count--;
	(void)memmove(a->blocks + from, a->blocks + from + 1,
		      (a->count - from) * sizeof(*a->blocks));
}

static bool has_kind(const struct answer *a, uint32_t from, uint32_t to, int kind)
{
	for (uint32_t i = from; i < to; i++)
		if ((int)a->blocks[i].kind == kind &&
		    (kind != ANSWER_TEXT || a->blocks[i].text.len != 0))
			return true;
	return false;
}

/* A choice behind the first one. One was asked for, but Copilot spreads one answer over several: its text is in the
 * first, its calls are in others. A further one that has text and no calls is another answer in place of the first. */
static SCAN_RARE void read_other_choice(struct answer *a, struct json_reader *r, struct top *top,
					struct openai_kept *kept)
{
	struct choice choice = { .message = false };
	const struct slice explanation = a->explanation;
	const struct openai_kept kept_before = *kept;
	const uint32_t before = a->count;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!top->several)
		top->said = has_kind(a, 0, before, ANSWER_TEXT);
	top->several = true;
	read_choice(a, r, &choice, kept);
	if (has_kind(a, before, a->count, ANSWER_CALL)) {
		drop_same_text(a, before);
	} else if (top->said) {
		a->count = before;
		a->explanation = explanation;
		*kept = kept_before;
		choice.reason = choice.match = slice_of(NULL, 0);
	}
	add_choice(&top->choice, &choice);
	top->said |= has_kind(a, before, a->count, ANSWER_TEXT);
}

static void read_choices(struct answer *a, struct json_reader *r, struct top *top)
{
	struct openai_kept kept = { .reasoning = { NULL, 0 } };

	if (!answer_enter_list(r))
		return;
	while (json_next_item(r)) {
		if (top->choices)
			read_other_choice(a, r, top, &kept);
		else
			read_choice(a, r, &top->choice, &kept);
		top->choices = true;
	}
	put_calls_last(a);
	if (a->private && a->err == ERR_OK && a->count != 0 &&
	    a->blocks[a->count - 1].kind == ANSWER_CALL)
		openai_keep(a, &kept);
}

enum top_member {
	TOP_ID,
	TOP_OBJECT,
	TOP_CREATED,
	TOP_MODEL,
	TOP_CHOICES,
	TOP_USAGE,
	TOP_TIER,
	TOP_FINGERPRINT,
	TOP_ERROR,
	TOP_GROQ,
};

static const struct json_name top_names[] = {
	[TOP_ID] = JSON_NAME("id"),
	[TOP_OBJECT] = JSON_NAME("object"),
	[TOP_CREATED] = JSON_NAME("created"),
	[TOP_MODEL] = JSON_NAME("model"),
	[TOP_CHOICES] = JSON_NAME("choices"),
	[TOP_USAGE] = JSON_NAME("usage"),
	[TOP_TIER] = JSON_NAME("service_tier"),
	[TOP_FINGERPRINT] = JSON_NAME("system_fingerprint"),
	[TOP_ERROR] = JSON_NAME("error"),
	[TOP_GROQ] = JSON_NAME("x_groq"),
};

static void read_member(struct answer *a, struct json_reader *r, struct json_fields *fields,
			uint32_t member, struct top *top)
{
	switch (member) {
	case TOP_CHOICES:
		read_choices(a, r, top);
		break;
	case TOP_ID:
		answer_take_string(r, &a->id);
		(void)answer_guess(r, fields, SLICE(",\"object\":\"chat.completion\""),
				   1 << TOP_OBJECT, TOP_CREATED);
		break;
	case TOP_MODEL:
		answer_take_string(r, &a->model);
		break;
	case TOP_USAGE:
		openai_read_usage(a, r);
		break;
	case TOP_GROQ:
		openai_read_x_groq(a, r);
		break;
	case TOP_ERROR:
		top->error = json_peek(r) != JSON_NULL;
		answer_skip(r);
		break;
	default:
		answer_skip(r);
	}
}

/* Enters an answer that begins as it mostly does. False: it does not, nothing happened, or the reader has
 * failed. */
static bool guess_front(struct answer *a, struct json_reader *r, struct json_fields *fields)
{
	const char *brace = r->at;
	struct slice id, model;
	uint64_t created;

	if (json_guess_string_lit(r, "{\"id\":\"", &id) &&
	    json_guess_lit(r, ",\"object\":\"chat.completion\",\"created\":") &&
	    json_guess_uint(r, &created) && json_guess_string_lit(r, ",\"model\":\"", &model)) {
		a->id = id;
		a->model = model;
		fields->seen = 1 << TOP_ID | 1 << TOP_OBJECT | 1 << TOP_CREATED | 1 << TOP_MODEL;
		fields->next = TOP_CHOICES;
		return json_resume_object(r, brace);
	}
	if (r->fault.err == ERR_OK)
		r->at = brace;
	return false;
}

static void read_answer(struct answer *a, struct top *top)
{
	struct json_fields fields = JSON_FIELDS(top_names);
	struct json_reader r;
	uint32_t member;

	json_open(&r, a->from->body, &answer_json, a->work);
	if (guess_front(a, &r, &fields) || json_enter_object(&r)) {
		while (answer_next(&r, &fields, &member))
			read_member(a, &r, &fields, member, top);
		(void)json_finish(&r);
	}
	answer_check(a, &r);
	a->stop = a->explanation.len != 0 ? ANSWER_REFUSED
					  : openai_stop(top->choice.reason, top->choice.match);
}

/* Whether the answer has a list of choices, be it an empty one, and whoever asked gets that as it is. */
static bool is_told_of_none(const struct answer *a)
{
	struct slice object = { NULL, 0 };

	return a->context->passed && json_loose_whole(a->from->body, &object) &&
	       json_loose_kind(json_loose_member(object, "choices")) == JSON_LOOSE_ARRAY;
}

enum err openai_decode(const struct decode_context *context, const struct provider_answer *answer,
		       struct json_work *work, struct arena *into, struct sampling_result *result,
		       struct provider_failure *failure)
{
	struct provider_answer mended;
	struct answer a;
	struct top top = { 0 };

	answer_begin(&a, context, answer, work, into);
	if (answer->status / 100 != 2)
		return answer_from_failure(&a, result, failure);
	read_answer(&a, &top);
	if (a.err != ERR_OK && answer_mend(&a, &mended)) {
		top = (struct top){ 0 };
		read_answer(&a, &top);
	}
	struct provider_answer told = *a.from;
	if (!top.error && !slice_absent(top.choice.error)) {
		told.body = top.choice.error; /* which has the members of an error body */
		a.from = &told;
	}
	if (a.err == ERR_OK && (top.error || !slice_absent(top.choice.error)))
		return answer_from_failure(&a, result, failure);
	if (a.err == ERR_OK && !top.choices && failure_is_told(a.from, work, into))
		return answer_from_failure(&a, result, failure);
	if (!top.choices && !is_told_of_none(&a))
		answer_fail(&a, "The provider's answer has no choices: malformed");
	if (!top.choice.message && !answer_may_be_void(a.stop))
		answer_odd(&a, "The provider's answer has no message: malformed");
	return answer_finish(&a, result, failure);
}
