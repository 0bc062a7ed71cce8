#include "codec/api/api_edit.h"

#include "codec/base/must.h"
#include "codec/json/json_scan.h"

struct editing {
	struct mcp_edits *edits;
	const struct api_request *request;
	const struct api_changes *changes;
	struct api_changed *out;
};

static const struct slice nothing = { NULL, 0 };

/* As names of models are: a string as they stand. */
static bool needs_no_escape(struct slice plain)
{
	const char *at = plain.at, *end = plain.at + plain.len;

	while (end - at >= 8 && scan_special8(scan_load8(at)) == 0)
		at += 8;
	while (at < end && *at >= ' ' && *at != '"' && *at != '\\')
		at++;
	return at == end;
}

static struct slice in_quotes(struct slice plain, struct arena *into)
{
	char *text = arena_take(into, plain.len + 2);

	if (text == NULL)
		return nothing;
	text[0] = '"';
	*pen_slice(text + 1, plain) = '"';
	return slice_of(text, plain.len + 2);
}

struct slice api_quoted(struct slice plain, struct arena *into)
{
	struct gather g;

	if (needs_no_escape(plain))
		return in_quotes(plain, into);
	gather_init(&g, into);
	gather_plain(&g, plain);
	return gather_done(&g) == ERR_OK ? gather_flat(&g, into) : nothing;
}

static void put(struct editing *e, struct slice at, struct slice text)
{
	mcp_edits_put(e->edits, at, text);
}

static void adjust(struct editing *e, enum adjustment adjustment)
{
	e->out->adjustments |= ADJUST_BIT(adjustment);
}

/* A member of the outermost object: in place of the one that is there, or new. */
static void put_member(struct editing *e, enum api_field field, const char *name,
		       struct slice value)
{
	mcp_edits_member(e->edits, e->request->object, name, e->request->at[field].text, value);
}

/* ---- the bound ---- */

static void lower(struct editing *e, enum api_field field, struct slice digits)
{
	const struct api_value *value = &e->request->at[field];

	if (value->count <= e->changes->tokens_max)
		return;
	put(e, value->text, digits);
	adjust(e, ADJUST_MAX_TOKENS_CLAMPED);
}

static enum err bound(struct editing *e)
{
	const uint64_t sent = e->request->tokens, most = e->changes->tokens_max;
	const bool completion = e->changes->completion_tokens;

	e->out->tokens = sent;
	if (most == 0 || (sent != 0 && sent <= most))
		return ERR_OK;
	if (sent == 0 && e->request->api != API_CHAT)
		return ERR_OK;
	char *text = arena_take(e->edits->into, PEN_UINT_MAX);
	if (text == NULL)
		return ERR_BUSY;
	const struct slice digits = slice_of(text, (size_t)(pen_uint(text, most) - text));
	e->out->tokens = most;
	if (sent == 0) {
		put_member(e, completion ? API_MAX_COMPLETION_TOKENS : API_MAX_TOKENS,
			   completion ? "max_completion_tokens" : "max_tokens", digits);
		return ERR_OK;
	}
	lower(e, API_MAX_TOKENS, digits);
	lower(e, API_MAX_COMPLETION_TOKENS, digits);
	return ERR_OK;
}

/* ---- Chat's own ---- */

static void ask_usage(struct editing *e)
{
	const struct api_value *options = &e->request->at[API_STREAM_OPTIONS];

	if (!e->changes->usage || !e->request->stream || e->request->usage_asked)
		return;
	if (options->kind == JSON_OBJECT)
		mcp_edits_member(e->edits, options->text, "include_usage",
				 e->request->at[API_INCLUDE_USAGE].text, SLICE("true"));
	else
		put_member(e, API_STREAM_OPTIONS, "stream_options",
			   SLICE("{\"include_usage\":true}"));
}

static void disable_store(struct editing *e)
{
	const enum json_kind kind = e->request->at[API_STORE].kind;

	if (!e->changes->store_never || kind == JSON_FALSE)
		return;
	put_member(e, API_STORE, "store", SLICE("false"));
	e->out->store_disabled = kind == JSON_TRUE;
}

/* ---- calls ---- */

static void forbid_calls(struct editing *e)
{
	const bool chat = e->request->api == API_CHAT;

	if (!e->changes->calls_never)
		return;
	if (api_has(e->request, API_TOOLS))
		put_member(e, API_TOOL_CHOICE, "tool_choice",
			   chat ? SLICE("\"none\"") : SLICE("{\"type\":\"none\"}"));
	if (api_has(e->request, API_FUNCTIONS))
		put_member(e, API_FUNCTION_CALL, "function_call", SLICE("\"none\""));
	adjust(e, ADJUST_TOOL_ROUNDS_FINAL);
}

/* ---- the system prompt ---- */

/* The policy's text in pieces at one place: `before`, the text, `behind`. */
static void put_system(struct editing *e, struct slice at, struct slice before, struct slice behind)
{
	put(e, at, before);
	put(e, slice_of(at.at + at.len, 0), e->changes->system);
	put(e, slice_of(at.at + at.len, 0), behind);
}

static struct slice front_of(struct slice container)
{
	return slice_of(container.at + 1, 0);
}

static bool is_empty(struct slice array)
{
	return *scan_space(array.at + 1, array.at + array.len) == ']';
}

/* In front of the text of a string, or of the parts of an array. */
static void put_prefix(struct editing *e, const struct api_value *value)
{
	const struct slice front = front_of(value->text);

	if (value->kind == JSON_STRING)
		put_system(e, front, SLICE(""), value->text.len == 2 ? SLICE("") : SLICE("\\n\\n"));
	else
		put_system(e, front, SLICE("{\"type\":\"text\",\"text\":\""),
			   is_empty(value->text) ? SLICE("\"}") : SLICE("\"},"));
}

static bool has_text(const struct api_value *value)
{
	return value->kind == JSON_STRING || value->kind == JSON_ARRAY;
}

static void system_of_messages(struct editing *e)
{
	const struct api_value *system = &e->request->system;

	if (e->changes->system_rule == API_SYSTEM_PREFIXED && has_text(system))
		put_prefix(e, system);
	else if (system->kind != JSON_BAD)
		put_system(e, system->text, SLICE("\""), SLICE("\""));
	else
		put_system(e, front_of(e->request->object), SLICE("\"system\":\""), SLICE("\","));
}

/* The leading messages go; those behind them stay. */
static void cut_leading(struct editing *e)
{
	struct mcp_cut cut;

	mcp_cut_begin(&cut, e->edits, e->request->at[API_MESSAGE_LIST].text);
	for (uint32_t i = 0; i < e->request->system_messages && mcp_cut_next(&cut); i++)
		mcp_cut_drop(&cut);
}

static void system_of_chat(struct editing *e)
{
	const struct api_request *q = e->request;
	const bool fixed = e->changes->system_rule == API_SYSTEM_FIXED;
	const bool last = fixed && q->messages == q->system_messages;

	if (!fixed && has_text(&q->system)) {
		put_prefix(e, &q->system);
		return;
	}
	put_system(e, front_of(q->at[API_MESSAGE_LIST].text),
		   SLICE("{\"role\":\"system\",\"content\":\""),
		   last ? SLICE("\"}") : SLICE("\"},"));
	if (fixed && q->system_messages != 0)
		cut_leading(e);
}

static void settle_system(struct editing *e)
{
	if (e->changes->system_rule == API_SYSTEM_AS_SENT)
		return;
	if (e->request->api == API_CHAT)
		system_of_chat(e);
	else
		system_of_messages(e);
	adjust(e, e->changes->system_rule == API_SYSTEM_FIXED ? ADJUST_SYSTEM_FIXED
							      : ADJUST_SYSTEM_PREFIXED);
}

/* ---- whose request it is ---- */

static void cut_member(struct editing *e, struct slice object, const char *name)
{
	struct mcp_cut cut;

	mcp_cut_begin(&cut, e->edits, object);
	while (mcp_cut_next(&cut))
		if (json_loose_is(cut.walk.name, name))
			mcp_cut_drop(&cut);
	adjust(e, ADJUST_USER_ID_DROPPED);
}

static void drop_user(struct editing *e)
{
	const struct api_request *q = e->request;
	struct mcp_cut cut;

	if (!e->changes->user_dropped)
		return;
	if (api_has(q, API_USER_ID))
		cut_member(e, q->at[API_METADATA].text, "user_id");
	if (!api_has(q, API_USER) && !api_has(q, API_SAFETY_IDENTIFIER))
		return;
	mcp_cut_begin(&cut, e->edits, q->object);
	while (mcp_cut_next(&cut))
		if (json_loose_is(cut.walk.name, "user") ||
		    json_loose_is(cut.walk.name, "safety_identifier"))
			mcp_cut_drop(&cut);
	adjust(e, ADJUST_USER_ID_DROPPED);
}

/* ---- members of a profile ---- */

/* Those of `count` members that the caller lacks, each with a comma behind it. */
static void add_members(struct editing *e, const struct slice *names, const struct slice *parts,
			size_t count)
{
	const uint64_t there = api_request_names(e->request, names, count);

	for (size_t i = 0; i < count; i++) {
		if ((there >> i & 1) != 0)
			continue;
		put(e, front_of(e->request->object), parts[i]);
		put(e, front_of(e->request->object), SLICE(","));
	}
}

/* The members of `text`, an object: as many at a time as can be looked for in one pass over the caller's. */
static enum err add_body_of(struct editing *e, struct slice text)
{
	struct slice names[API_NAMES_MAX], parts[API_NAMES_MAX];
	struct json_loose_walk walk;
	size_t count = 0;

	json_loose_open(&walk, text);
	while (json_loose_next(&walk)) {
		names[count] = json_str_plain(slice_of(walk.name.at + 1, walk.name.len - 2),
					      e->edits->into);
		if (slice_absent(names[count]))
			return ERR_BUSY;
		parts[count++] = walk.part;
		if (count == API_NAMES_MAX) {
			add_members(e, names, parts, count);
			count = 0;
		}
	}
	must(!walk.bad); /* the settings have read it */
	add_members(e, names, parts, count);
	return ERR_OK;
}

static enum err add_body(struct editing *e)
{
	const struct slice body = e->changes->body;

	if (body.len == 0)
		return ERR_OK;
	char *text = arena_take(e->edits->into, body.len + 2);
	if (text == NULL)
		return ERR_BUSY;
	text[0] = '{';
	(void)memcpy(text + 1, body.at, body.len);
	text[body.len + 1] = '}';
	return add_body_of(e, slice_of(text, body.len + 2));
}

enum err api_edit_make(struct mcp_edits *edits, const struct api_request *request,
		       const struct api_changes *changes, struct api_changed *out)
{
	struct api_changed changed = { .adjustments = 0 };
	struct editing e = { edits, request, changes, &changed };

	must(edits->text.at == request->body.at && edits->text.len == request->body.len);
	const struct slice model = api_quoted(changes->model, edits->into);
	if (slice_absent(model))
		return ERR_BUSY;
	put(&e, request->at[API_MODEL].text, model);
	if (request->api == API_CHAT) {
		ask_usage(&e);
		disable_store(&e);
	}
	forbid_calls(&e);
	settle_system(&e);
	drop_user(&e);
	if (bound(&e) != ERR_OK || add_body(&e) != ERR_OK || edits->failed)
		return ERR_BUSY;
	*out = changed;
	return ERR_OK;
}
