#include "gateway/front/mcp/mcp_bridge_text.h"

#include "codec/base/must.h"
#include "codec/mcp/mcp_edit.h"
#include "gateway/base/header_text.h"
#include "tenants/base64url.h"

#define META "io.modelcontextprotocol/"

/* ---- what a client has said of itself -------------------------------------------------------- */

static struct slice flat(struct gather *text, struct arena *into)
{
	return gather_done(text) == ERR_OK ? gather_flat(text, into) : slice_of(NULL, 0);
}

static void put_member(struct gather *text, bool *first, const char *name, struct slice value)
{
	if (slice_absent(value))
		return;
	gather_raw(text, *first ? SLICE("\"") : SLICE(",\""));
	gather_raw(text, slice_str(name));
	gather_lit(text, "\":");
	gather_raw(text, value);
	*first = false;
}

/* The member if it is an object. */
static struct slice object_in(struct slice object, const char *name)
{
	const struct slice value = json_loose_member(object, name);

	return json_loose_kind(value) == JSON_LOOSE_OBJECT ? value : slice_of(NULL, 0);
}

static struct slice string_in(struct slice object, const char *name)
{
	const struct slice value = json_loose_member(object, name);

	return json_loose_kind(value) == JSON_LOOSE_STRING ? value : slice_of(NULL, 0);
}

enum { INFO_WHOLE, INFO_SHORT, INFO_NONE };

static void put_info(struct gather *text, bool *first, struct slice info, int how)
{
	bool inner = true;

	if (slice_absent(info) || how == INFO_NONE)
		return;
	if (how == INFO_WHOLE) {
		put_member(text, first, "clientInfo", info);
		return;
	}
	put_member(text, first, "clientInfo", SLICE("{"));
	put_member(text, &inner, "name", string_in(info, "name"));
	put_member(text, &inner, "version", string_in(info, "version"));
	gather_lit(text, "}");
}

static struct slice declare(const struct mcp_message *initialize, int how, struct arena *into)
{
	bool first = true;
	struct gather text;

	gather_init(&text, into);
	gather_lit(&text, "{");
	put_info(&text, &first, object_in(initialize->params, "clientInfo"), how);
	put_member(&text, &first, "clientCapabilities", SLICE("{}"));
	gather_lit(&text, "}");
	return flat(&text, into);
}

struct slice mcp_bridge_declared(const struct mcp_message *initialize, struct arena *into)
{
	struct slice text = slice_of(NULL, 0);

	for (int how = INFO_WHOLE; how <= INFO_NONE; how++) {
		text = declare(initialize, how, into);
		if (slice_absent(text) || text.len <= MCP_DECLARED_MAX)
			return text;
	}
	must(false); /* the last one is short */
	return text;
}

static const char *const log_levels[MCP_LOG_LEVELS] = {
	"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
};

uint32_t mcp_bridge_log_level(struct slice level)
{
	for (uint32_t i = 0; i < MCP_LOG_LEVELS; i++)
		if (json_loose_is(level, log_levels[i]))
			return i + 1;
	return 0;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* What _meta gets, with commas between. */
static struct slice meta_members(struct slice declared, uint32_t log_level, struct arena *into)
{
	struct gather text;
	bool first = true;

	gather_init(&text, into);
	put_member(&text, &first, META "protocolVersion", SLICE("\"2026-07-28\""));
	put_member(&text, &first, META "clientInfo", json_loose_member(declared, "clientInfo"));
	put_member(&text, &first, META "clientCapabilities",
		   json_loose_member(declared, "clientCapabilities"));
	if (log_level != 0) {
		gather_lit(&text, ",\"" META "logLevel\":\"");
		gather_raw(&text, slice_str(log_levels[log_level - 1]));
		gather_lit(&text, "\"");
	}
	return flat(&text, into);
}

static bool is_of_meta(struct slice name)
{
	static const char *const names[] = { META "protocolVersion", META "clientInfo",
					     META "clientCapabilities", META "logLevel" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (json_loose_is(name, names[i]))
			return true;
	return false;
}

/* Members go in at the object's end. `cut`: those of _meta's names are taken out. */
static void append(struct mcp_edits *edits, struct slice object, bool cut_meta,
		   const struct slice *pieces, size_t count)
{
	const struct slice rear = slice_of(object.at + object.len - 1, 0);
	struct mcp_cut cut;

	mcp_cut_begin(&cut, edits, object);
	while (mcp_cut_next(&cut))
		if (cut_meta && is_of_meta(cut.walk.name))
			mcp_cut_drop(&cut);
	if (cut.left != 0)
		mcp_edits_put(edits, rear, SLICE(","));
	for (size_t i = 0; i < count; i++)
		mcp_edits_put(edits, rear, pieces[i]);
}

static bool is_null(struct slice value)
{
	return slice_absent(value) || json_loose_kind(value) == JSON_LOOSE_NULL;
}

static void put_meta(struct mcp_edits *edits, struct slice object,
		     const struct mcp_message *message, struct slice members)
{
	const struct slice there = message->in_params.meta_text;
	const struct slice meta[] = { SLICE("\"_meta\":{"), members, SLICE("}") };
	const struct slice params[] = { SLICE("\"params\":{\"_meta\":{"), members, SLICE("}}") };
	const struct slice null_params[] = { SLICE("{\"_meta\":{"), members, SLICE("}}") };

	if (slice_absent(message->params)) {
		append(edits, object, false, params, COUNT_OF(params));
	} else if (is_null(message->params)) {
		for (size_t i = 0; i < COUNT_OF(null_params); i++)
			mcp_edits_put(
				edits,
				i == 0 ? message->params
				       : slice_of(message->params.at + message->params.len, 0),
				null_params[i]);
	} else if (slice_absent(there)) {
		append(edits, message->params, false, meta, COUNT_OF(meta));
	} else if (json_loose_kind(there) == JSON_LOOSE_OBJECT) {
		append(edits, there, true, &members, 1);
	} else {
		mcp_edits_put(edits, there, SLICE("{"));
		mcp_edits_put(edits, slice_of(there.at + there.len, 0), members);
		mcp_edits_put(edits, slice_of(there.at + there.len, 0), SLICE("}"));
	}
}

enum err mcp_bridge_body(struct slice object, const struct mcp_message *message,
			 struct slice declared, uint32_t log_level, struct arena *into,
			 struct slice *out)
{
	const struct slice members = meta_members(declared, log_level, into);
	struct mcp_edits edits;

	must(log_level <= MCP_LOG_LEVELS);
	if (!is_null(message->params) && json_loose_kind(message->params) != JSON_LOOSE_OBJECT)
		return ERR_PARAMS;
	if (slice_absent(members))
		return ERR_BUSY;
	mcp_edits_init(&edits, object, into);
	put_meta(&edits, object, message, members);
	*out = mcp_edits_flat(&edits, into);
	return slice_absent(*out) ? ERR_BUSY : ERR_OK;
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Visible ASCII, blanks inside, and nothing that looks like the other spelling. */
static bool is_plain_value(struct slice value)
{
	const struct slice sentinel = SLICE("=?base64?");

	for (size_t i = 0; i < value.len; i++)
		if ((uint8_t)value.at[i] < ' ' || (uint8_t)value.at[i] > '~')
			return false;
	return value.len != 0 && value.at[0] != ' ' && value.at[value.len - 1] != ' ' &&
	       !slice_starts(value, sentinel);
}

/* RFC 4648, 4: with padding. */
static void put_base64(struct gather *head, struct slice bytes)
{
	while (bytes.len != 0) {
		char four[4] = { '=', '=', '=', '=' };
		const size_t take = bytes.len < 3 ? bytes.len : 3;
		base64url_encode(bytes.at, take, four);
		for (size_t i = 0; i < sizeof(four); i++)
			four[i] = four[i] == '-' ? '+' : four[i] == '_' ? '/' : four[i];
		gather_raw(head, slice_of(four, sizeof(four)));
		bytes = slice_of(bytes.at + take, bytes.len - take);
	}
}

void mcp_bridge_line(struct gather *head, struct slice name, struct slice value)
{
	gather_raw(head, name);
	gather_lit(head, ": ");
	if (is_plain_value(value)) {
		gather_raw(head, value);
	} else {
		gather_lit(head, "=?base64?");
		put_base64(head, value);
		gather_lit(head, "?=");
	}
	gather_lit(head, "\r\n");
}

struct slice mcp_bridge_meaning(struct slice value, struct arena *into)
{
	struct json_reader reader;
	struct slice raw;

	json_open(&reader, value, NULL, NULL);
	if (json_peek(&reader) != JSON_STRING || !json_string(&reader, &raw))
		return slice_of(NULL, 0);
	return json_str_plain(raw, into);
}

/* What the header Mcp-Name mirrors; absent: there is none. */
static struct slice name_of(const struct mcp_message *message)
{
	if (json_loose_is(message->method, "tools/call") ||
	    json_loose_is(message->method, "prompts/get"))
		return message->in_params.name;
	if (json_loose_is(message->method, "resources/read"))
		return message->in_params.uri;
	if (json_loose_is(message->method, "tasks/get") ||
	    json_loose_is(message->method, "tasks/update") ||
	    json_loose_is(message->method, "tasks/cancel"))
		return json_loose_member(message->params, "taskId");
	return slice_of(NULL, 0);
}

static const struct slice version_line = SLICE_INIT("mcp-protocol-version: 2026-07-28\r\n");

enum err mcp_bridge_head(const struct mcp_message *message, struct arena *into, struct slice *out)
{
	const struct slice method = mcp_bridge_meaning(message->method, into),
			   written = name_of(message);
	struct slice name = slice_of(NULL, 0);
	struct gather head;

	if (json_loose_kind(written) == JSON_LOOSE_STRING) {
		name = mcp_bridge_meaning(written, into);
		if (slice_absent(name))
			return ERR_PARAMS;
	}
	if (slice_absent(method) || !is_plain_value(method))
		return ERR_PARAMS;
	gather_init(&head, into);
	gather_raw(&head, version_line);
	mcp_bridge_line(&head, SLICE("mcp-method"), method);
	if (!slice_absent(name))
		mcp_bridge_line(&head, SLICE("mcp-name"), name);
	*out = flat(&head, into);
	return slice_absent(*out) ? ERR_BUSY : ERR_OK;
}

struct slice mcp_bridge_own(const char *method, const char *name, struct slice value,
			    struct slice declared, struct arena *into, struct slice *head)
{
	const struct slice members = meta_members(declared, 0, into);
	struct gather text;
	bool first = true;

	gather_init(&text, into);
	gather_lit(&text, "accept: application/json, text/event-stream\r\n"
			  "content-type: application/json\r\n");
	gather_raw(&text, version_line);
	mcp_bridge_line(&text, SLICE("mcp-method"), slice_str(method));
	*head = flat(&text, into);
	if (slice_absent(*head) || slice_absent(members))
		return slice_of(NULL, 0);
	gather_init(&text, into);
	gather_lit(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"sluice\",\"method\":\"");
	gather_raw(&text, slice_str(method));
	gather_lit(&text, "\",\"params\":{");
	put_member(&text, &first, name, value);
	gather_raw(&text, first ? SLICE("\"_meta\":{") : SLICE(",\"_meta\":{"));
	gather_raw(&text, members);
	gather_lit(&text, "}}}");
	return flat(&text, into);
}

/* ---- towards the client ---------------------------------------------------------------------- */

enum revision mcp_bridge_revision(const struct mcp_message *initialize)
{
	const struct slice asked = initialize->in_params.protocol_version;

	for (enum revision revision = 0; revision < REVISION_2026_07_28; revision++)
		if (revision != REVISION_SEP_1577_DRAFT &&
		    json_loose_is(asked, revision_name(revision)))
			return revision;
	return REVISION_2025_11_25;
}

bool mcp_bridge_speaks(const struct mcp_message *discovered)
{
	struct json_loose_walk walk;

	if (discovered->kind != MCP_RESPONSE)
		return false;
	json_loose_open(&walk, json_loose_member(discovered->result, "supportedVersions"));
	while (json_loose_next(&walk))
		if (slice_absent(walk.name) && json_loose_is(walk.value, "2026-07-28"))
			return true;
	return false;
}

bool mcp_bridge_is_modern_error(const struct mcp_message *response)
{
	static const struct slice codes[] = { SLICE_INIT("-32020"), SLICE_INIT("-32021"),
					      SLICE_INIT("-32022"), SLICE_INIT("-32601") };

	for (size_t i = 0; i < COUNT_OF(codes); i++)
		if (json_loose_same_id(response->error_code, codes[i]))
			return true;
	return false;
}

/* Without `subscribe`: resources/subscribe is gone. */
static struct slice known_capabilities(struct slice capabilities, struct arena *into)
{
	const struct slice resources = object_in(capabilities, "resources");
	struct mcp_edits edits;
	struct mcp_cut cut;

	if (json_loose_kind(capabilities) != JSON_LOOSE_OBJECT)
		return SLICE("{}");
	if (slice_absent(json_loose_member(resources, "subscribe")))
		return capabilities;
	mcp_edits_init(&edits, capabilities, into);
	mcp_cut_begin(&cut, &edits, resources);
	while (mcp_cut_next(&cut))
		if (json_loose_is(cut.walk.name, "subscribe"))
			mcp_cut_drop(&cut);
	return mcp_edits_flat(&edits, into);
}

static void put_server_info(struct gather *text, struct slice result, struct slice server)
{
	struct slice info = object_in(json_loose_member(result, "_meta"), META "serverInfo");

	if (slice_absent(info))
		info = object_in(result, "serverInfo");
	gather_lit(text, ",\"serverInfo\":");
	if (!slice_absent(info)) {
		gather_raw(text, info);
		return;
	}
	gather_lit(text, "{\"name\":\"");
	gather_raw(text, server); /* letters, digits and _.- */
	gather_lit(text, "\",\"version\":\"\"}");
}

struct slice mcp_bridge_hello(const struct mcp_message *initialize,
			      const struct mcp_message *discovered, struct slice server,
			      struct arena *into)
{
	const struct slice result = discovered->result;
	const struct slice instructions = string_in(result, "instructions");
	const struct slice capabilities =
		known_capabilities(json_loose_member(result, "capabilities"), into);
	struct gather text;

	if (slice_absent(capabilities))
		return capabilities;
	gather_init(&text, into);
	gather_lit(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(&text, initialize->id);
	gather_lit(&text, ",\"result\":{\"protocolVersion\":\"");
	gather_raw(&text, slice_str(revision_name(mcp_bridge_revision(initialize))));
	gather_lit(&text, "\",\"capabilities\":");
	gather_raw(&text, capabilities);
	put_server_info(&text, result, server);
	if (!slice_absent(instructions)) {
		gather_lit(&text, ",\"instructions\":");
		gather_raw(&text, instructions);
	}
	gather_lit(&text, "}}");
	return flat(&text, into);
}
