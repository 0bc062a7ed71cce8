/* sampling_params.c - the members of params (contract/mcp.md 2.1), each into its place. */
#include "codec/mcp/sampling_decode.h"

#include "codec/base/must.h"
#include "codec/json/json_names.h"

/* Scalars and small things are kept until the end; the large ones are decoded where they stand. */
enum param {
	PARAM_MESSAGES,
	PARAM_MODEL_PREFERENCES,
	PARAM_SYSTEM_PROMPT,
	PARAM_INCLUDE_CONTEXT,
	PARAM_TEMPERATURE,
	PARAM_MAX_TOKENS,
	PARAM_STOP_SEQUENCES,
	PARAM_METADATA,
	PARAM_TOOLS,
	PARAM_TOOL_CHOICE,
	PARAM_META,
	PARAM_TOOL_CHOICE_DRAFT,
	PARAM_COUNT
};
/* In the order of the schema. */
static const struct json_name param_names[] = {
	[PARAM_MESSAGES] = JSON_NAME("messages"),
	[PARAM_MODEL_PREFERENCES] = JSON_NAME("modelPreferences"),
	[PARAM_SYSTEM_PROMPT] = JSON_NAME("systemPrompt"),
	[PARAM_INCLUDE_CONTEXT] = JSON_NAME("includeContext"),
	[PARAM_TEMPERATURE] = JSON_NAME("temperature"),
	[PARAM_MAX_TOKENS] = JSON_NAME("maxTokens"),
	[PARAM_STOP_SEQUENCES] = JSON_NAME("stopSequences"),
	[PARAM_METADATA] = JSON_NAME("metadata"),
	[PARAM_TOOLS] = JSON_NAME("tools"),
	[PARAM_TOOL_CHOICE] = JSON_NAME("toolChoice"),
	[PARAM_META] = JSON_NAME("_meta"),
	[PARAM_TOOL_CHOICE_DRAFT] = JSON_NAME("tool_choice"),
};

/* json_next_field of params. */
static inline uint32_t next_param(struct json_reader *r, struct json_fields *fields,
				  struct slice *other)
{
	const char *name = json_guess_name(r);

#define PARAM(param, text)                                           \
	if (json_guess_member(r, fields, PARAM_##param, name, text)) \
	return PARAM_##param
	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('m', 'e', 's', 's'):
			PARAM(MESSAGES, "messages");
			break;
		case JSON_LETTERS('m', 'o', 'd', 'e'):
			PARAM(MODEL_PREFERENCES, "modelPreferences");
			break;
		case JSON_LETTERS('s', 'y', 's', 't'):
			PARAM(SYSTEM_PROMPT, "systemPrompt");
			break;
		case JSON_LETTERS('i', 'n', 'c', 'l'):
			PARAM(INCLUDE_CONTEXT, "includeContext");
			break;
		case JSON_LETTERS('t', 'e', 'm', 'p'):
			PARAM(TEMPERATURE, "temperature");
			break;
		case JSON_LETTERS('m', 'a', 'x', 'T'):
			PARAM(MAX_TOKENS, "maxTokens");
			break;
		case JSON_LETTERS('s', 't', 'o', 'p'):
			PARAM(STOP_SEQUENCES, "stopSequences");
			break;
		case JSON_LETTERS('m', 'e', 't', 'a'):
			PARAM(METADATA, "metadata");
			break;
		case JSON_LETTERS('t', 'o', 'o', 'l'):
			PARAM(TOOLS, "tools");
			PARAM(TOOL_CHOICE, "toolChoice");
			break;
		case JSON_LETTERS('_', 'm', 'e', 't'):
			PARAM(META, "_meta");
			break;
		}
#undef PARAM
	return json_unguessed_field(r, fields, other);
}

struct choices {
	struct field now, draft; /* toolChoice, and tool_choice of the SEP-1577 draft */
};

static bool wrong(struct decode *d, const char *member, enum err err, const char *detail)
{
	(void)decode_refuse_here(d, err, detail);
	return decode_in_member(d, member);
}

static bool read_max_tokens(struct decode *d)
{
	struct slice raw;
	uint64_t value;

	if (d->r->at < d->r->end && *d->r->at != '0' && json_guess_uint(d->r, &value)) {
		d->out->max_tokens = (int64_t)value;
		return true;
	}
	if (json_here(d->r) != JSON_NUMBER)
		return wrong(d, "maxTokens", ERR_MAX_TOKENS, NULL);
	const char *at = d->r->at;
	if (!json_number(d->r, &raw))
		return false;
	if (json_to_int64(raw, &d->out->max_tokens) && d->out->max_tokens >= 1)
		return true;
	if (json_is_integer(raw) && *at != '-' && json_to_double(raw) > 1) { /* to be clamped */
		d->out->max_tokens = INT64_MAX;
		return true;
	}
	(void)decode_refuse(d, ERR_MAX_TOKENS, at, NULL);
	return decode_in_member(d, "maxTokens");
}

/* A prompt of "" is none. */
static inline bool no_empty_system(struct decode *d)
{
	if (d->out->system.len == 0)
		d->out->system = (struct slice){ NULL, 0 };
	return true;
}

static bool read_system(struct decode *d)
{
	if (json_here(d->r) != JSON_STRING)
		return wrong(d, "systemPrompt", ERR_FIELD, "systemPrompt must be a string");
	return json_take_string(d->r, &d->out->system) && no_empty_system(d);
}

static bool read_temperature(struct decode *d)
{
	if (json_here(d->r) != JSON_NUMBER)
		return wrong(d, "temperature", ERR_FIELD, "temperature must be a number");
	return json_number(d->r, &d->out->temperature);
}

static bool read_include_context(struct decode *d)
{
	static const struct slice values[] = {
		[CONTEXT_NONE] = SLICE_INIT("none"),
		[CONTEXT_THIS_SERVER] = SLICE_INIT("thisServer"),
		[CONTEXT_ALL_SERVERS] = SLICE_INIT("allServers"),
	};
	static const char detail[] = "includeContext must be none, thisServer or allServers";
	struct slice raw;

	if (json_guess_lit(d->r, "\"none\""))
		return true;
	if (json_here(d->r) != JSON_STRING)
		return wrong(d, "includeContext", ERR_FIELD, detail);
	const char *at = d->r->at;
	if (!json_take_string(d->r, &raw))
		return false;
	size_t value = names_find(values, COUNT_OF(values), raw);
	if (value == COUNT_OF(values)) {
		(void)decode_refuse(d, ERR_FIELD, at, detail);
		return decode_in_member(d, "includeContext");
	}
	d->out->include_context = (enum include_context)value;
	if (value != CONTEXT_NONE)
		d->out->adjustments |= ADJUST_BIT(ADJUST_CONTEXT_IGNORED);
	return true;
}

static bool stop_refused(struct decode *d, const char *detail)
{
	(void)decode_refuse_here(d, ERR_FIELD, detail);
	return decode_in_member(d, "stopSequences");
}

static bool read_stop_sequences(struct decode *d)
{
	static const char detail[] = "stopSequences must be an array of strings";
	struct list stops = { 0 };
	size_t bytes = 0;

	if (json_here(d->r) != JSON_ARRAY)
		return wrong(d, "stopSequences", ERR_FIELD, detail);
	(void)json_begin(d->r);
	while (json_next(d->r)) {
		if (stops.count == d->limits->stop_max)
			return stop_refused(d, "stopSequences has too many entries");
		if (json_here(d->r) != JSON_STRING) {
			(void)decode_refuse_here(d, ERR_FIELD, detail);
			(void)decode_in_item(d, stops.count);
			return decode_in_member(d, "stopSequences");
		}
		struct slice *stop = decode_push(d, &stops, sizeof(*stop));
		if (stop == NULL || !json_take_string(d->r, stop))
			return false;
		bytes += stop->len;
		if (bytes > d->limits->stop_bytes_max)
			return stop_refused(d, "stopSequences are too long together");
	}
	d->out->stop = stops.at;
	d->out->stop_count = stops.count;
	return decode_good(d);
}

/* Only user_id goes on: metadata is provider input in the caller's hand (contract/mcp.md 11). */
static bool read_metadata(struct decode *d)
{
	static const struct slice user_id = SLICE_INIT("user_id");
	struct slice key;
	struct field value;

	if (decode_guess_only(d, "{\"user_id\":\"", &key)) {
		d->out->user_id = key;
		return true;
	}
	if (json_here(d->r) != JSON_OBJECT)
		return wrong(d, "metadata", ERR_FIELD, "metadata must be an object");
	(void)json_begin(d->r);
	while (json_next_key(d->r, &key) && decode_field(d, &value)) {
		if (value.kind == JSON_STRING && names_find(&user_id, 1, key) == 0)
			d->out->user_id = value.raw;
		else if (value.kind != JSON_BAD)
			d->out->adjustments |= ADJUST_BIT(ADJUST_METADATA_DROPPED);
	}
	return decode_good(d);
}

static bool meta_member(struct decode *d, size_t name, const struct field *value)
{
	enum { META_PROGRESS, META_EXCHANGE };

	if (name == META_PROGRESS && value->kind != JSON_BAD) {
		if (value->kind != JSON_STRING &&
		    (value->kind != JSON_NUMBER || !json_is_integer(value->raw))) {
			(void)decode_refuse(d, ERR_FIELD, field_at(value),
					    "progressToken must be a string or an integer");
			(void)decode_in_member(d, "progressToken");
			return decode_in_member(d, "_meta");
		}
		bool quoted = value->kind == JSON_STRING;
		d->out->progress_token = slice_of(field_at(value), value->raw.len + 2 * quoted);
	} else if (name == META_EXCHANGE) {
		d->out->exchange_wanted = value->kind == JSON_TRUE;
	}
	return true;
}

/* Reads a _meta that has nothing but a progressToken which is a string. False: it is another one, nothing
 * happened, or the reader has failed. */
static inline bool guess_progress(struct decode *d)
{
	struct slice token;

	if (!decode_guess_only(d, "{\"progressToken\":\"", &token))
		return false;
	d->out->progress_token = slice_of(token.at - 1, token.len + 2);
	return true;
}

static bool read_meta(struct decode *d)
{
	static const struct slice names[] = { SLICE_INIT("progressToken"),
					      SLICE_INIT("sluice/exchange") };
	struct slice key;
	struct field value;

	if (guess_progress(d))
		return true;
	if (json_here(d->r) != JSON_OBJECT)
		return wrong(d, "_meta", ERR_FIELD, "_meta must be an object");
	(void)json_begin(d->r);
	while (json_next_key(d->r, &key) && decode_field(d, &value))
		if (!meta_member(d, names_find(names, COUNT_OF(names), key), &value))
			return false;
	return decode_good(d);
}

static bool read_param(struct decode *d, uint32_t param, struct choices *choices)
{
	switch (param) {
	case PARAM_MESSAGES:
		return decode_messages(d) || decode_in_member(d, "messages");
	case PARAM_MAX_TOKENS:
		return read_max_tokens(d);
	case PARAM_SYSTEM_PROMPT:
		return read_system(d);
	case PARAM_TEMPERATURE:
		return read_temperature(d);
	case PARAM_TOOLS:
		return decode_tools(d) || decode_in_member(d, "tools");
	case PARAM_TOOL_CHOICE:
		return decode_field(d, &choices->now);
	case PARAM_TOOL_CHOICE_DRAFT:
		return decode_field(d, &choices->draft);
	case PARAM_MODEL_PREFERENCES:
		return decode_preferences(d) || decode_in_member(d, "modelPreferences");
	case PARAM_INCLUDE_CONTEXT:
		return read_include_context(d);
	case PARAM_STOP_SEQUENCES:
		return read_stop_sequences(d);
	case PARAM_METADATA:
		return read_metadata(d);
	case PARAM_META:
		return read_meta(d);
	default: /* task (V21) and whatever a later revision adds */
		return json_skip(d->r, NULL);
	}
}

/* toolChoice decides the mode, if it is there; the parallel switch may stand in either. */
static bool apply_choices(struct decode *d, const struct choices *choices)
{
	bool now = choices->now.kind != JSON_BAD;

	if (now && !decode_choice(d, &choices->now, true))
		return decode_in_member(d, "toolChoice");
	if (choices->draft.kind != JSON_BAD && !decode_choice(d, &choices->draft, !now))
		return decode_in_member(d, "tool_choice");
	if (d->out->revision == REVISION_SEP_1577_DRAFT && d->tools.count != 0)
		d->out->no_parallel = true; /* its answer holds a single block */
	if (d->out->tool_mode != TOOL_MODE_REQUIRED || d->tools.count != 0)
		return true;
	(void)decode_refuse(d, ERR_TOOL_CHOICE_TOOLS,
			    field_at(now ? &choices->now : &choices->draft), NULL);
	return decode_in_member(d, now ? "toolChoice" : "tool_choice");
}

/* A number that is written as it mostly is, behind `literal`. False: nothing happened. */
#define guess_number(r, fields, param, literal, guess)                              \
	do {                                                                        \
		const char *before = (r)->at;                                       \
		if (json_expect_lit((r), (fields), (param), literal) && !(guess)) { \
			(r)->at = before;                                           \
			(fields)->seen &= ~((uint32_t)1 << (param));                \
		}                                                                   \
	} while (0)

/* A value that begins with the last byte of `literal`. */
static inline bool from_last(struct json_reader *r)
{
	r->at--;
	return true;
}

/* Enters params and reads the members that are there in the order of the schema and written as they
 * mostly are, as far as that goes. fields->seen is 0 if even the first is not: then nothing was read.
 * False after failing. */
static bool read_usual(struct decode *d, struct json_fields *fields, struct choices *choices)
{
	struct json_reader *const r = d->r;
	const char *brace = r->at;
	uint64_t number;
	double fraction;

	if (!json_may_guess(r) || !json_guess_lit(r, "{\"messages\":["))
		return true;
	r->at--;
	fields->seen = 1u << PARAM_MESSAGES;
	if (!json_resume_object(r, brace) || !read_param(d, PARAM_MESSAGES, choices))
		return false;
#define EXPECT(param, literal) json_expect_lit(r, fields, PARAM_##param, literal)
	if (EXPECT(MODEL_PREFERENCES, ",\"modelPreferences\":{") && from_last(r) &&
	    !read_param(d, PARAM_MODEL_PREFERENCES, choices))
		return false;
	if (EXPECT(SYSTEM_PROMPT, ",\"systemPrompt\":\"") && from_last(r)) {
		if (!json_take_string(r, &d->out->system))
			return false;
		(void)no_empty_system(d);
	}
	(void)EXPECT(INCLUDE_CONTEXT, ",\"includeContext\":\"none\"");
	guess_number(r, fields, PARAM_TEMPERATURE,
		     ",\"temperature\":", json_guess_fraction(r, &d->out->temperature, &fraction));
	guess_number(r, fields, PARAM_MAX_TOKENS, ",\"maxTokens\":",
		     *r->at != '0' && json_guess_uint(r, &number) &&
			     (d->out->max_tokens = (int64_t)number, true));
	if (EXPECT(STOP_SEQUENCES, ",\"stopSequences\":[") && from_last(r) &&
	    !read_stop_sequences(d))
		return false;
	if (EXPECT(METADATA, ",\"metadata\":{") && from_last(r) && !read_metadata(d))
		return false;
	if (EXPECT(TOOLS, ",\"tools\":[") && from_last(r) && !read_param(d, PARAM_TOOLS, choices))
		return false;
	if (EXPECT(TOOL_CHOICE, ",\"toolChoice\":{") && from_last(r) &&
	    !decode_field(d, &choices->now))
		return false;
	if (EXPECT(META, ",\"_meta\":{") && from_last(r) && !guess_progress(d) && !read_meta(d))
		return false;
#undef EXPECT
	return true;
}

/* Reads the members that are left; *missing: one bit for each that is null. */
static bool read_params_rest(struct decode *d, struct json_fields *fields, struct choices *choices,
			     uint32_t *missing)
{
	struct slice key;
	uint32_t param;

	while ((param = next_param(d->r, fields, &key)) != FIELD_END) {
		if (d->r->at == d->r->end || *d->r->at != 'n') {
			if (!read_param(d, param, choices))
				return false;
		} else { /* null counts as missing; of messages and maxTokens too */
			if (!json_null(d->r))
				return false;
			if (param < PARAM_COUNT)
				*missing |= (uint32_t)1 << param;
		}
	}
	return true;
}

bool decode_params(struct decode *d)
{
	struct json_fields fields = JSON_FIELDS(param_names);
	struct choices choices = { 0 };
	uint32_t missing = 0;
	const char *at = d->r->at;

	if (!read_usual(d, &fields, &choices))
		return false;
	if (fields.seen == 0) {
		if (json_here(d->r) != JSON_OBJECT)
			return decode_refuse_here(d, ERR_PARAMS, NULL);
		at = d->r->at;
		(void)json_begin(d->r);
	}
	if (!json_guess_end(d->r) && !read_params_rest(d, &fields, &choices, &missing))
		return false;
	if (!decode_good(d))
		return false;
	missing |= ~fields.seen;
	if ((missing >> PARAM_MESSAGES & 1) != 0)
		return decode_refuse(d, ERR_MESSAGES, at, "messages is missing");
	if ((missing >> PARAM_MAX_TOKENS & 1) != 0)
		return decode_refuse(d, ERR_MAX_TOKENS, at,
				     "maxTokens is missing; it must be an integer of at least 1");
	return apply_choices(d, &choices);
}
