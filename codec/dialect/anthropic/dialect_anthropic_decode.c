/* dialect_anthropic_decode.c - Messages answers to results. */
#include "codec/dialect/anthropic/dialect_anthropic.h"
#include "codec/dialect/dialect_text.h"

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
	};

	if (reason.len == 0) /* hosts of the same format may leave it null, or empty */
		return ANSWER_END;
	for (size_t i = 0; i < COUNT_OF(stops); i++)
		if (json_str_eq(reason, stops[i].reason))
			return stops[i].stop;
	return answer_stop_of(reason);
}

/* What was written into the caches, by how long it stays there. *written: all of it, where nothing else says that. */
static void read_cache_details(struct json_reader *r, struct usage *counters, uint64_t *written)
{
	enum { SHORT, LONG };
	static const struct json_name names[] = {
		[SHORT] = JSON_NAME("ephemeral_5m_input_tokens"),
		[LONG] = JSON_NAME("ephemeral_1h_input_tokens"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint64_t five_minutes = 0;
	uint32_t member;

	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == SHORT)
			(void)answer_take_count(r, &five_minutes);
		else if (member == LONG)
			(void)answer_take_count(r, &counters->cache_write_1h);
		else
			answer_skip(r);
	*written = five_minutes + counters->cache_write_1h;
}

static void read_counters(struct json_reader *r, struct usage *counters)
{
	enum { INPUT, CACHE_WRITE, CACHE_READ, CACHE_DETAILS, OUTPUT, OUTPUT_DETAILS, TIER };
	static const struct json_name names[] = {
		[INPUT] = JSON_NAME("input_tokens"),
		[CACHE_WRITE] = JSON_NAME("cache_creation_input_tokens"),
		[CACHE_READ] = JSON_NAME("cache_read_input_tokens"),
		[CACHE_DETAILS] = JSON_NAME("cache_creation"),
		[OUTPUT] = JSON_NAME("output_tokens"),
		[OUTPUT_DETAILS] = JSON_NAME("output_tokens_details"),
		[TIER] = JSON_NAME("service_tier"),
	};
	static const struct json_name thinking = JSON_NAME("thinking_tokens");
	struct json_fields fields = JSON_FIELDS(names);
	uint64_t written = 0;
	bool said = false;
	uint32_t member;

	while (answer_next(r, &fields, &member))
		switch (member) {
		case INPUT:
			counters->known |= answer_take_count(r, &counters->input);
			break;
		case OUTPUT:
			counters->known |= answer_take_count(r, &counters->output);
			break;
		case CACHE_READ:
			(void)answer_take_count(r, &counters->cache_read);
			break;
		case CACHE_WRITE:
			said = answer_take_count(r, &counters->cache_write);
			break;
		case CACHE_DETAILS:
			read_cache_details(r, counters, &written);
			break;
		case OUTPUT_DETAILS:
			answer_take_count_of(r, &thinking, &counters->reasoning);
			break;
		default:
			answer_skip(r);
		}
	if (!said && written > counters->cache_write)
		counters->cache_write = written;
}

/* Reads what the caches hold by their age, if that comes next. False: it is another kind of that. */
static bool guess_cache_details(struct json_reader *r, uint64_t *hour)
{
	uint64_t other;

	if (!json_guess_lit(r, ",\"cache_creation\":{\"ephemeral_5m_input_tokens\":"))
		return true;
	return json_guess_uint(r, &other) && json_guess_lit(r, ",\"ephemeral_1h_input_tokens\":") &&
	       json_guess_uint(r, hour) && json_guess_lit(r, "}");
}

/* Reads counters that are written as they mostly are, no member but these, in this order. False: they are
 * not, nothing happened. */
static bool guess_counters(struct json_reader *r, struct usage *counters)
{
	const char *brace = r->at;
	struct usage read = *counters;

	if (r->depth + 2 <= r->limits.depth_max && json_guess_lit(r, "{\"input_tokens\":") &&
	    json_guess_uint(r, &read.input) &&
	    json_guess_lit(r, ",\"cache_creation_input_tokens\":") &&
	    json_guess_uint(r, &read.cache_write) &&
	    json_guess_lit(r, ",\"cache_read_input_tokens\":") &&
	    json_guess_uint(r, &read.cache_read) && guess_cache_details(r, &read.cache_write_1h) &&
	    json_guess_lit(r, ",\"output_tokens\":") && json_guess_uint(r, &read.output)) {
		(void)json_guess_lit(r, ",\"service_tier\":\"standard\"");
		if (answer_is_at(r, '}')) {
			r->at++;
			read.known = true;
			*counters = read;
			return true;
		}
	}
	r->at = brace;
	return false;
}

void anthropic_read_usage(struct answer *a, struct json_reader *r, struct usage *counters)
{
	struct usage usage;

	if (!guess_counters(r, counters)) {
		if (!answer_enter(r))
			return;
		read_counters(r, counters);
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
	a->last_call_cut = a->ends_private = false; /* unless nothing comes behind it */
	if (json_str_eq(type, SLICE("text"))) {
		block.kind = ANSWER_TEXT;
		if (slice_absent(block.text))
			answer_odd(a,
				   "A text block of the provider's answer has no text: malformed");
		answer_add(a, block);
	} else if (json_str_eq(type, SLICE("tool_use"))) {
		block.kind = ANSWER_CALL;
		a->last_call_cut = true;
		if (block.name.len == 0)
			answer_odd(a, "The provider's tool call has no name: malformed");
		answer_add(a, block);
	} else if (anthropic_is_private(type)) {
		a->private = a->ends_private = true;
	} else {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

enum part { PART_TYPE, PART_TEXT, PART_ID, PART_NAME, PART_INPUT };

static const struct json_name part_names[] = {
	[PART_TYPE] = JSON_NAME("type"),   [PART_TEXT] = JSON_NAME("text"),
	[PART_ID] = JSON_NAME("id"),       [PART_NAME] = JSON_NAME("name"),
	[PART_INPUT] = JSON_NAME("input"),
};

/* The members of a block that are left. */
static void read_block_members(struct json_reader *r, struct json_fields *fields,
			       struct slice *type, struct answer_block *block)
{
	uint32_t member;

	while (answer_next(r, fields, &member))
		switch (member) {
		case PART_TYPE:
			answer_take_string(r, type);
			break;
		case PART_TEXT:
			answer_take_string(r, &block->text);
			break;
		case PART_ID:
			answer_take_string(r, &block->id);
			break;
		case PART_NAME:
			answer_take_string(r, &block->name);
			break;
		case PART_INPUT:
			(void)json_skip(r, &block->args);
			break;
		default:
			answer_skip(r);
		}
}

/* Most answers are one text, and it begins like this. */
static bool read_guessed_text(struct json_reader *r, struct json_fields *fields,
			      struct answer_block *block)
{
	const char *brace = r->at;

	if (!json_guess_lit(r, "{\"type\":\"text\",\"text\":"))
		return false;
	if (!answer_is_at(r, '"')) {
		r->at = brace;
		return false;
	}
	fields->seen = 1 << PART_TYPE | 1 << PART_TEXT;
	if (json_resume_object(r, brace))
		(void)json_take_string(r, &block->text);
	return true;
}

/* A call begins like this. */
static bool read_guessed_call(struct json_reader *r, struct json_fields *fields,
			      struct answer_block *block)
{
	const char *brace = r->at;

	if (!json_guess_string_lit(r, "{\"type\":\"tool_use\",\"id\":\"", &block->id) ||
	    !json_guess_string_lit(r, ",\"name\":\"", &block->name) ||
	    !json_guess_lit(r, ",\"input\":")) {
		if (r->fault.err == ERR_OK)
			r->at = brace;
		*block = (struct answer_block){ 0 };
		return false;
	}
	fields->seen = 1 << PART_TYPE | 1 << PART_ID | 1 << PART_NAME | 1 << PART_INPUT;
	if (json_resume_object(r, brace))
		(void)json_skip(r, &block->args);
	return true;
}

static void read_block(struct answer *a, struct json_reader *r)
{
	struct json_fields fields = JSON_FIELDS(part_names);
	struct answer_block block = { 0 };
	struct slice type = { NULL, 0 };

	if (read_guessed_text(r, &fields, &block))
		type = SLICE("text");
	else if (read_guessed_call(r, &fields, &block))
		type = SLICE("tool_use");
	else if (!json_enter_object(r))
		return;
	if (!json_guess_end(r))
		read_block_members(r, &fields, &type, &block);
	add_block(a, type, block);
}

void anthropic_read_explanation(struct answer *a, struct json_reader *r)
{
	static const struct json_name name = JSON_NAME("explanation");

	answer_take_string_of(r, &name, &a->explanation);
}

/* What the top level says beside the blocks. */
struct top {
	struct slice type, reason;
	struct usage counters;
	bool content, error;
};

/* The next of the texts from *at on that is blank; NULL: no more. */
static const struct answer_block *next_blank(const struct answer *a, uint32_t *at)
{
	while (*at < a->count) {
		const struct answer_block *block = &a->blocks[(*at)++];
		if (block->kind == ANSWER_TEXT && text_blank(block->text))
			return block;
	}
	return NULL;
}

/* What goes back, without the blocks whose text is blank: the provider would refuse them. */
static void leave_out_blank(struct answer *a)
{
	uint32_t at = 0;
	const struct answer_block *blank = next_blank(a, &at);
	struct json_reader r;
	struct slice item;
	struct gather g;

	if (blank == NULL)
		return;
	gather_init(&g, a->into);
	gather_lit(&g, "[");
	json_open(&r, a->replay, NULL, NULL); /* validated with the answer */
	if (!json_enter_array(&r))
		return;
	for (bool first = true; json_next_item(&r) && json_skip(&r, &item);) {
		if (blank != NULL && blank->text.at > item.at &&
		    blank->text.at < item.at + item.len) {
			blank = next_blank(a, &at);
			continue;
		}
		gather_raw(&g, first ? SLICE("") : SLICE(","));
		gather_raw(&g, item);
		first = false;
	}
	gather_lit(&g, "]");
	a->replay =
		gather_done(&g) == ERR_OK ? gather_flat(&g, a->into) : (struct slice){ NULL, 0 };
}

static void read_content(struct answer *a, struct json_reader *r, struct top *top)
{
	if (!answer_enter_list(r))
		return;
	const uint32_t first = json_offset(r);
	top->content = true;
	while (json_next_item(r))
		read_block(a, r);
	if (!a->private || a->err != ERR_OK || r->fault.err != ERR_OK)
		return;
	answer_keep_text(a, first - 1, json_offset(r)); /* with both brackets */
	leave_out_blank(a);
}

enum top_member {
	TOP_MODEL,
	TOP_ID,
	TOP_TYPE,
	TOP_ROLE,
	TOP_CONTENT,
	TOP_REASON,
	TOP_SEQUENCE,
	TOP_DETAILS,
	TOP_USAGE,
	TOP_ERROR,
};

static const struct json_name top_names[] = {
	[TOP_MODEL] = JSON_NAME("model"),
	[TOP_ID] = JSON_NAME("id"),
	[TOP_TYPE] = JSON_NAME("type"),
	[TOP_ROLE] = JSON_NAME("role"),
	[TOP_CONTENT] = JSON_NAME("content"),
	[TOP_REASON] = JSON_NAME("stop_reason"),
	[TOP_SEQUENCE] = JSON_NAME("stop_sequence"),
	[TOP_DETAILS] = JSON_NAME("stop_details"),
	[TOP_USAGE] = JSON_NAME("usage"),
	[TOP_ERROR] = JSON_NAME("error"),
};

static void read_member(struct answer *a, struct json_reader *r, struct json_fields *fields,
			uint32_t member, struct top *top)
{
	switch (member) {
	case TOP_CONTENT:
		read_content(a, r, top);
		break;
	case TOP_ID:
		answer_take_string(r, &a->id);
		(void)answer_guess(r, fields, SLICE(",\"type\":\"message\",\"role\":\"assistant\""),
				   1 << TOP_TYPE | 1 << TOP_ROLE,
				   fields->seen >> TOP_MODEL & 1 ? TOP_CONTENT : TOP_MODEL);
		break;
	case TOP_MODEL:
		answer_take_string(r, &a->model);
		if ((fields->seen >> TOP_TYPE & 1) != 0) /* it may be first, or behind these */
			fields->next = TOP_CONTENT;
		break;
	case TOP_TYPE:
		answer_take_string(r, &top->type);
		break;
	case TOP_REASON:
		answer_take_string(r, &top->reason);
		(void)answer_guess(r, fields, SLICE(",\"stop_sequence\":null"), 1 << TOP_SEQUENCE,
				   TOP_USAGE);
		break;
	case TOP_DETAILS:
		anthropic_read_explanation(a, r);
		break;
	case TOP_USAGE:
		anthropic_read_usage(a, r, &top->counters);
		break;
	case TOP_ERROR:
		top->error = json_peek(r) != JSON_NULL;
		answer_skip(r);
		break;
	default:
		answer_skip(r);
	}
}

static void read_answer(struct answer *a, struct top *top)
{
	struct json_fields fields = JSON_FIELDS(top_names);
	struct json_reader r;
	uint32_t member;

	json_open(&r, a->from->body, &answer_json, a->work);
	if (json_enter_object(&r)) {
		while (answer_next(&r, &fields, &member))
			read_member(a, &r, &fields, member, top);
		(void)json_finish(&r);
	}
	answer_check(a, &r);
	a->stop = anthropic_stop(top->reason);
}

/* Whether it says that it is an answer, and whoever asked gets that as it is. */
static bool is_told_of_none(const struct decode_context *context, const struct top *top)
{
	return context->passed && json_str_eq(top->type, SLICE("message"));
}

enum err anthropic_decode(const struct decode_context *context,
			  const struct provider_answer *answer, struct json_work *work,
			  struct arena *into, struct sampling_result *result,
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
	if (a.err == ERR_OK && (top.error || json_str_eq(top.type, SLICE("error"))))
		return answer_from_failure(&a, result, failure);
	if (!top.content && !answer_may_be_void(a.stop) && !is_told_of_none(context, &top))
		answer_fail(&a, "The provider's answer has no content: malformed");
	return answer_finish(&a, result, failure);
}
