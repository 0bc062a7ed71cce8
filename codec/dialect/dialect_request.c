#include "codec/dialect/dialect_request.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect_replay.h"
#include "codec/dialect/dialect_schema.h"
#include "codec/dialect/dialect_text.h"
#include "codec/json/json_scan.h"

#include <stdio.h>

static const struct slice nothing = { NULL, 0 };

static const char no_memory[] = "the request needs more memory than one request may take";

static void *take(struct encoder *e, size_t size)
{
	void *bytes = arena_take(e->into, size);

	e->failed = e->failed || bytes == NULL;
	return bytes;
}

/* ---- the plan ---- */

static void plan_max_tokens(struct encoder *e)
{
	uint32_t max = e->in->max_tokens;

	if (max > e->profile->max_output)
		max = e->profile->max_output;
	if (max < e->request->max_tokens)
		encoder_adjust(e, ADJUST_MAX_TOKENS_CLAMPED);
	e->out.max_tokens = max;
}

/* Of a part of a number, in which nothing else has the high half of a digit. */
static inline bool all_digits(const char *at, size_t len)
{
	const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0), digit = UINT64_C(0x3030303030303030);

	if (len < sizeof(digit)) {
		while (len != 0 && scan_is_digit(at[len - 1]))
			len--;
		return len == 0;
	}
	for (size_t i = 0; i < len - sizeof(digit); i += sizeof(digit))
		if ((scan_load8(at + i) & high) != digit)
			return false;
	return (scan_load8(at + len - sizeof(digit)) & high) == digit;
}

/* Whether a number is within min..max, where that shows at its first digit. False says nothing. */
static inline bool surely_within(struct slice number, double min, double max)
{
	if (number.len < 3 || !scan_is_digit(number.at[0]) || number.at[1] != '.')
		return false;
	const int first = number.at[0] - '0';
	return first >= min && first + 1 <= max && all_digits(number.at + 2, number.len - 2);
}

static void plan_temperature(struct encoder *e)
{
	struct slice text = e->request->temperature;
	double wanted, clamped;

	if (slice_absent(text))
		return;
	if (e->profile->temperature_never || e->profile->reasoning) {
		encoder_adjust(e, ADJUST_TEMPERATURE_DROPPED);
		return;
	}
	encoder_may_learn(e, LEARN_NO_TEMPERATURE);
	if (surely_within(text, e->profile->temperature_min, e->profile->temperature_max)) {
		e->plan.temperature = text;
		return;
	}
	wanted = clamped = json_to_double(text);
	if (wanted < e->profile->temperature_min)
		clamped = e->profile->temperature_min;
	else if (wanted > e->profile->temperature_max)
		clamped = e->profile->temperature_max;
	else {
		e->plan.temperature = text;
		return;
	}
	encoder_adjust(e, ADJUST_TEMPERATURE_CLAMPED);
	char *digits = take(e, 32);
	if (digits != NULL)
		e->plan.temperature =
			slice_of(digits, (size_t)snprintf(digits, 32, "%.15g", clamped));
}

/* What the provider cannot take is searched in the answer: those above its number, and white space
 * where it refuses that. */
static void plan_stop(struct encoder *e)
{
	const struct sampling_request *request = e->request;
	struct decode_context *decode = &e->out.decode;
	const uint32_t most = e->rules->stop_unknown ? 0 : e->profile->max_stop;
	struct slice *both;

	if (request->stop_count == 0 ||
	    (both = take(e, 2 * (size_t)request->stop_count * sizeof(*both))) == NULL)
		return;
	e->plan.stop = both;
	decode->emulate_stop = both + request->stop_count;
	for (uint32_t i = 0; i < request->stop_count; i++) {
		struct slice stop = request->stop[i];
		if (stop.len == 0)
			encoder_adjust(e, ADJUST_STOP_EMPTY_DROPPED);
		else if (e->plan.stop_count < most && !encoder_drops(e, stop))
			e->plan.stop[e->plan.stop_count++] = stop;
		else
			decode->emulate_stop[decode->emulate_stop_count++] = stop;
	}
	if (decode->emulate_stop_count != 0)
		encoder_adjust(e, ADJUST_STOP_EMULATED);
	if (e->plan.stop_count != 0)
		encoder_may_learn(e, LEARN_NO_STOP);
}

static void plan_user_id(struct encoder *e)
{
	const struct slice id = e->request->user_id;

	if (slice_absent(id))
		return;
	if (e->profile->user_id_field == USER_ID_FIELD_NONE || id.len > e->rules->user_id_max)
		encoder_adjust(e, ADJUST_METADATA_DROPPED);
	else {
		e->plan.user_id = id;
		encoder_may_learn(e, LEARN_NO_USER_ID);
	}
}

/* Whether the schema has a property whose name has to be another one: only calls have theirs given back. */
static bool refuses_key(struct encoder *e, const struct tool *tool)
{
	bool refuses = false;

	if ((tool->odd & e->rules->odd & SCHEMA_ODD_KEYS) != 0 &&
	    !schema_refuses_key(tool->schema, e->work, e->into, &refuses))
		e->failed = true;
	return refuses;
}

/* Structured output in place of the tool, where model and schema allow it. */
static void plan_native(struct encoder *e)
{
	bool moved = false;

	if (!e->profile->structured_output || refuses_key(e, &e->request->tools[0]))
		return;
	if (!e->rules->native(e->request->tools[0].schema, e->work, e->into, &e->plan.native,
			      &moved))
		e->failed = true;
	if (slice_absent(e->plan.native))
		return;
	if (e->profile->structured_never) {
		e->plan.native = nothing;
		encoder_adjust(e, ADJUST_RESPONSE_FORMAT_DROPPED);
		return;
	}
	encoder_may_learn(e, LEARN_NO_STRUCTURED);
	e->plan.tools = false;
	e->out.decode.native_schema = true;
	if (moved)
		encoder_adjust(e, ADJUST_SCHEMA_CONSTRAINTS_MOVED);
}

static void plan_tools(struct encoder *e)
{
	const struct sampling_request *request = e->request;
	struct request_plan *plan = &e->plan;

	if (request->tool_count == 0)
		return;
	plan->tools = true;
	plan->mode = request->tool_mode;
	plan->no_parallel = request->no_parallel || request->revision == REVISION_SEP_1577_DRAFT;
	if (e->in->final_round && plan->mode != TOOL_MODE_NONE) {
		plan->mode = TOOL_MODE_NONE;
		encoder_adjust(e, ADJUST_TOOL_ROUNDS_FINAL);
	}
	if (plan->mode != TOOL_MODE_REQUIRED)
		return;
	plan->forced_schema = request->tool_count == 1 &&
			      json_str_eq(request->tools[0].name, SLICE(SCHEMA_TOOL_NAME));
	e->out.decode.schema_wanted = plan->forced_schema;
	if (plan->forced_schema)
		plan_native(e);
	if (plan->tools && !e->profile->forced_tool) {
		plan->mode = TOOL_MODE_AUTO;
		plan->forced_schema = false;
		e->out.decode.tool_required = true;
		encoder_adjust(e, ADJUST_CHOICE_DOWNGRADED);
	}
}

/* ---- the way back ---- */

static void decode_begin(struct encoder *e)
{
	const struct sampling_request *request = e->request;
	struct decode_context *decode = &e->out.decode;
	struct slice model = arena_copy(e->into, e->in->model);

	e->failed = e->failed || slice_absent(model);
	decode->revision = request->revision;
	decode->requested_model = model;
	decode->tools_present = request->tools_present;
	decode->think_tags = e->profile->think_tags;
	decode->replay_reasoning = e->profile->replay_reasoning;
	decode->calls_forbidden = !e->plan.tools || e->plan.mode == TOOL_MODE_NONE;
	if (request->tool_count == 0)
		return;
	decode->tool_names = take(e, request->tool_count * sizeof(*decode->tool_names));
	if (decode->tool_names == NULL)
		return;
	decode->tool_count = request->tool_count;
	for (uint32_t i = 0; i < request->tool_count; i++)
		decode->tool_names[i] = request->tools[i].name;
}

static enum err refuse_tools(struct encoder *e, const char *detail)
{
	*e->fault = (struct fault){ .err = ERR_TOOL,
				    .offset = FAULT_NO_OFFSET,
				    .path = SLICE("$.params.tools"),
				    .detail = detail };
	return ERR_TOOL;
}

/* An alias may hit a name that another tool has already; providers refuse two of a name. */
static enum err check_alias_clash(struct encoder *e)
{
	struct name_table sent;

	if (e->tools.alias_count == 0 || !e->plan.tools)
		return ERR_OK;
	name_table_init(&sent, e->work, e->into);
	for (uint32_t i = 0; i < e->request->tool_count; i++) {
		struct slice name = tool_name_sent(&e->tools, e->request->tools[i].name);
		uint32_t at = slice_absent(name) ? NAME_NONE : name_table_put(&sent, name);
		if (at == NAME_NONE) {
			e->failed = true;
			return ERR_OK; /* encoder_end tells */
		}
		if (sent.entries[at].uses++ == 0)
			continue;
		return refuse_tools(e, "two tool names become the same for the provider, which "
				       "takes [a-zA-Z0-9_-]{1,64}");
	}
	return ERR_OK;
}

/* ---- begin and end ---- */

void encoder_begin(struct encoder *e, const struct request_rules *rules, const struct encode_in *in,
		   struct json_work *work, struct arena *into, struct fault *fault)
{
	must(in->request != NULL && in->profile != NULL);
	must(in->max_tokens > 0 && in->profile->max_output > 0);

	*e = (struct encoder){ .in = in,
			       .request = in->request,
			       .profile = in->profile,
			       .rules = rules,
			       .work = work,
			       .into = into,
			       .fault = fault,
			       .fold_budget = SCHEMA_FOLD_BYTES_MAX };
	e->out.adjustments = in->request->adjustments;
	gather_init(&e->out.body, into);
	tool_names_init(&e->tools, work, into);
	call_ids_init(&e->ids, rules->id_rule, work, into);
	plan_max_tokens(e);
	plan_temperature(e);
	plan_stop(e);
	plan_user_id(e);
	plan_tools(e);
	decode_begin(e);
	if (in->replay_unfit)
		encoder_adjust(e, rules->not_replayed);
	if (in->replay != NULL)
		encoder_replay_begin(e);
}

enum err encoder_end(struct encoder *e, struct encode_out *out)
{
	enum err err = check_alias_clash(e);

	if (err != ERR_OK)
		return err;
	if (e->fold_refused)
		return refuse_tools(e, "the inputSchemas with anyOf, oneOf or allOf at their root "
				       "have more than 512 KiB together");
	if (e->failed || gather_done(&e->out.body) != ERR_OK) {
		*e->fault = (struct fault){ .err = ERR_BUSY,
					    .offset = FAULT_NO_OFFSET,
					    .detail = no_memory };
		return ERR_BUSY;
	}
	e->out.decode.aliases = e->tools.aliases;
	e->out.decode.alias_count = e->tools.alias_count;
	*out = e->out;
	return ERR_OK;
}

/* Absent without memory, and where messages have other indices than the caller's. */
static struct slice path_of(struct encoder *e, uint32_t message, const struct block *block)
{
	enum { PATH_MAX_LEN = 64 };
	const struct message *m = &e->request->messages[message];
	const adjust_set moving =
		ADJUST_BIT(ADJUST_RESULTS_MERGED) | ADJUST_BIT(ADJUST_EMPTY_TURN_REMOVED);
	char *path = take(e, PATH_MAX_LEN);
	int len;

	if (path == NULL || e->counted_anew || (e->request->adjustments & moving) != 0)
		return nothing;
	len = snprintf(path, PATH_MAX_LEN, "$.params.messages[%u]%s", message,
		       block == NULL ? "" : ".content");
	if (block != NULL && m->count > 1)
		len += snprintf(path + len, PATH_MAX_LEN - (size_t)len, "[%u]",
				(uint32_t)(block - e->request->blocks) - m->first);
	return slice_of(path, (size_t)len);
}

enum err encoder_refuse(struct encoder *e, enum err err, uint32_t message,
			const struct block *block, const char *detail)
{
	*e->fault = (struct fault){ .err = err,
				    .offset = FAULT_NO_OFFSET,
				    .path = path_of(e, message, block),
				    .detail = detail };
	return err;
}

static bool is_image_type(struct slice mime)
{
	return slice_eq(mime, SLICE("image/png")) || slice_eq(mime, SLICE("image/jpeg")) ||
	       slice_eq(mime, SLICE("image/gif")) || slice_eq(mime, SLICE("image/webp"));
}

bool encoder_takes_image(const struct encoder *e, const struct block *block)
{
	return block->type == BLOCK_IMAGE && e->profile->image && is_image_type(block->media.mime);
}

enum err encoder_refuse_media(struct encoder *e, const struct block *block, uint32_t message,
			      struct slice audio)
{
	static const struct slice images =
		SLICE_INIT("image/jpeg, image/png, image/gif and image/webp");
	enum { DETAIL_MAX = 200, TYPE_MAX = 64 };
	const bool image = block->type == BLOCK_IMAGE;
	const char *kind = image ? "image" : "audio";
	struct slice takes = !image ? audio : e->profile->image ? images : nothing;
	struct slice mime = block->media.mime; /* clean: sampling_read sees to that */
	int mime_len = mime.len > TYPE_MAX ? TYPE_MAX : (int)mime.len;
	char *detail = take(e, DETAIL_MAX);

	if (detail == NULL)
		return encoder_refuse(e, ERR_CONTENT_UNSUPPORTED, message, block, NULL);
	if (slice_absent(takes))
		(void)snprintf(detail, DETAIL_MAX, "the model takes no %s, and this is %.*s", kind,
			       mime_len, mime.at);
	else
		(void)snprintf(detail, DETAIL_MAX,
			       "the model does not take %s of type %.*s, only %.*s", kind, mime_len,
			       mime.at, (int)takes.len, takes.at);
	return encoder_refuse(e, ERR_CONTENT_UNSUPPORTED, message, block, detail);
}

/* ---- pieces of a body ---- */

static void put_uri_and_type(struct gather *g, struct slice uri, struct slice mime)
{
	gather_raw(g, uri);
	if (slice_absent(mime))
		return;
	gather_lit(g, " ");
	gather_raw(g, mime);
}

void encoder_put_placeholder(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	encoder_adjust(e, ADJUST_MEDIA_REPLACED);
	if (block->type == BLOCK_RESOURCE) {
		gather_lit(g, "[resource omitted: ");
		put_uri_and_type(g, block->resource.uri, block->resource.mime);
	} else {
		must(block->type == BLOCK_IMAGE || block->type == BLOCK_AUDIO);
		gather_raw(g, block->type == BLOCK_IMAGE ? SLICE("[image omitted: ")
							 : SLICE("[audio omitted: "));
		gather_raw(g, block->media.mime);
	}
	gather_lit(g, "]");
}

struct slice encoder_result_text(const struct block *block)
{
	if (block->type == BLOCK_TEXT)
		return block->text.text;
	return block->type == BLOCK_RESOURCE ? block->resource.text : nothing;
}

void encoder_put_result_text(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;
	struct slice text = encoder_result_text(block);

	if (!slice_absent(text)) {
		gather_raw(g, text);
	} else if (block->type == BLOCK_RESOURCE_LINK) {
		gather_lit(g, "[resource link: ");
		gather_raw(g, block->link.name);
		gather_lit(g, " <");
		gather_raw(g, block->link.uri);
		gather_lit(g, ">");
		put_uri_and_type(g, (struct slice){ 0 }, block->link.mime);
		gather_lit(g, "]");
	} else {
		encoder_put_placeholder(e, block);
	}
}

const struct block *encoder_inner(const struct encoder *e, const struct block *result)
{
	return result->result.count == 0 ? NULL : e->request->inner + result->result.first;
}

bool encoder_result_empty(const struct encoder *e, const struct block *result)
{
	const struct block *inner = encoder_inner(e, result);

	for (uint32_t i = 0; i < result->result.count; i++) {
		struct slice text = encoder_result_text(&inner[i]);
		if (slice_absent(text) || !encoder_drops(e, text))
			return false;
	}
	return true;
}

/* Changes them where there is something in the schema that the dialect refuses. */
static void mend(struct encoder *e, const struct tool *tool, struct slice *schema, uint8_t *root)
{
	if (e->keys == NULL) {
		e->keys = take(e, sizeof(*e->keys));
		if (e->keys == NULL)
			return;
		key_names_init(e->keys, e->work, e->into);
	}
	const uint32_t known = e->keys->list.count;
	if (!schema_mend(tool->schema, e->rules->odd, tool->name, e->keys, e->work, e->into,
			 schema)) {
		e->failed = true;
		*schema = tool->schema;
	}
	if (schema->at == tool->schema.at)
		return;
	*root = schema_root_of(*schema);
	if (e->keys->list.count != 0)
		e->out.decode.keys = &e->keys->list;
	encoder_adjust(e, e->keys->list.count != known ? ADJUST_PROPERTY_RENAMED
						       : ADJUST_SCHEMA_COMPLETED);
}

struct slice encoder_input_renamed(struct encoder *e, const struct block *call)
{
	const struct key_group *group;
	struct slice input = call->use.input;
	bool twice;

	if (!key_names_find(e->keys, call->use.name, &group))
		e->failed = true;
	else if (group != NULL)
		input = keys_renamed(input, &group->aliases, e->into);
	e->failed =
		e->failed || slice_absent(input) ||
		(input.at != call->use.input.at && !keys_once(&input, e->work, e->into, &twice));
	return e->failed ? call->use.input : input;
}

void encoder_put_schema(struct encoder *e, const struct tool *tool, bool want_properties)
{
	struct slice schema = tool->schema;
	uint8_t root = tool->root;
	bool folded = false;

	if ((tool->odd & e->rules->odd) != 0)
		mend(e, tool, &schema, &root);
	enum err err = schema_put_folded(&e->out.body, schema, root, want_properties, e->work,
					 e->into, &e->fold_budget, &folded);

	e->failed = e->failed || err == ERR_BUSY;
	e->fold_refused = e->fold_refused || err == ERR_TOOL;
	if (folded)
		encoder_adjust(e, ADJUST_SCHEMA_ROOT_FOLDED);
}

static void put_string(struct encoder *e, struct slice raw)
{
	if (slice_absent(raw))
		e->failed = true;
	else
		gather_str(&e->out.body, raw);
}

void encoder_put_name(struct encoder *e, struct slice raw)
{
	put_string(e, tool_name_sent(&e->tools, raw));
}

void encoder_put_call_id(struct encoder *e, struct slice raw)
{
	put_string(e, call_id_use(&e->ids, raw));
}

void encoder_put_result_id(struct encoder *e, struct slice raw)
{
	if (!e->failed) /* else the call may not have got one */
		put_string(e, call_id_last(&e->ids, raw));
}
