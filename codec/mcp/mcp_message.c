#include "codec/mcp/mcp_message.h"

#include "codec/json/json_scan.h"

/* ---- where the members are ------------------------------------------------------------------- */

/* An object that is walked. Its parent has a field that opens it. */
enum object {
	NOTHING,
	MESSAGE,
	PARAMS,
	META,
	META_CLIENT, /* clientCapabilities of _meta */
	META_SAMPLING,
	CLIENT, /* capabilities of initialize */
	CLIENT_SAMPLING,
	RESULT,
	ERROR,
	OBJECTS,
};

enum { LEVELS = 5 }; /* message, params, _meta, clientCapabilities, sampling */

struct field {
	const char *name;
	uint8_t name_len;
	uint8_t opens; /* what its value is read as */
	uint16_t at;   /* in struct mcp_message */
};

#define META_PREFIX "io.modelcontextprotocol/"
#define FIELD(name, opens, member)                                                               \
	{                                                                                        \
		"" name, sizeof(name) - 1, opens, (uint16_t)offsetof(struct mcp_message, member) \
	}

static const struct field of_message[] = {
	FIELD("jsonrpc", NOTHING, jsonrpc), FIELD("id", NOTHING, id),
	FIELD("method", NOTHING, method),   FIELD("params", PARAMS, params),
	FIELD("result", RESULT, result),    FIELD("error", ERROR, error),
};
static const struct field of_params[] = {
	FIELD("_meta", META, in_params.meta_text),
	FIELD("name", NOTHING, in_params.name),
	FIELD("uri", NOTHING, in_params.uri),
	FIELD("protocolVersion", NOTHING, in_params.protocol_version),
	FIELD("capabilities", CLIENT, in_params.client.capabilities),
	FIELD("requestId", NOTHING, in_params.request_id),
	FIELD("progressToken", NOTHING, in_params.progress_token),
	FIELD("progress", NOTHING, in_params.progress),
	FIELD("inputResponses", NOTHING, in_params.input_responses),
	FIELD("requestState", NOTHING, in_params.request_state),
};
static const struct field of_meta[] = {
	FIELD("progressToken", NOTHING, in_params.meta.progress_token),
	FIELD(META_PREFIX "protocolVersion", NOTHING, in_params.meta.protocol_version),
	FIELD(META_PREFIX "logLevel", NOTHING, in_params.meta.log_level),
	FIELD(META_PREFIX "clientCapabilities", META_CLIENT, in_params.meta.client.capabilities),
};
static const struct field of_meta_client[] = {
	FIELD("sampling", META_SAMPLING, in_params.meta.client.sampling),
};
static const struct field of_meta_sampling[] = {
	FIELD("tools", NOTHING, in_params.meta.client.tools),
};
static const struct field of_client[] = {
	FIELD("sampling", CLIENT_SAMPLING, in_params.client.sampling),
};
static const struct field of_client_sampling[] = {
	FIELD("tools", NOTHING, in_params.client.tools),
};
static const struct field of_result[] = {
	FIELD("protocolVersion", NOTHING, in_result.protocol_version),
	FIELD("resultType", NOTHING, in_result.result_type),
	FIELD("inputRequests", NOTHING, in_result.input_requests),
	FIELD("requestState", NOTHING, in_result.request_state),
};
static const struct field of_error[] = {
	FIELD("code", NOTHING, error_code),
};

enum { NAME_MAX = 48, ESCAPE_MAX = 6 }; /* \u0041 */

static const struct object_row {
	const struct field *fields;
	uint16_t count;
	uint16_t at, len; /* where in struct mcp_message all that is read from it stands */
} objects[OBJECTS] = {
#define OBJECT(fields, member)                                                            \
	{                                                                                 \
		fields, COUNT_OF(fields), (uint16_t)offsetof(struct mcp_message, member), \
			sizeof(((struct mcp_message *)0)->member)                         \
	}
	[MESSAGE] = { of_message, COUNT_OF(of_message), 0, sizeof(struct mcp_message) },
	[PARAMS] = OBJECT(of_params, in_params),
	[META] = OBJECT(of_meta, in_params.meta),
	[META_CLIENT] = OBJECT(of_meta_client, in_params.meta.client),
	[META_SAMPLING] = OBJECT(of_meta_sampling, in_params.meta.client.tools),
	[CLIENT] = OBJECT(of_client, in_params.client),
	[CLIENT_SAMPLING] = OBJECT(of_client_sampling, in_params.client.tools),
	[RESULT] = OBJECT(of_result, in_result),
	[ERROR] = OBJECT(of_error, error_code),
};

/* NULL: none that is known. */
static const struct field *find_field(enum object of, struct slice name)
{
	const struct field *from = objects[of].fields, *end = from + objects[of].count;

	for (const struct field *field = from; field < end; field++)
		if (name.len == (size_t)field->name_len + 2 &&
		    memcmp(name.at + 1, field->name, field->name_len) == 0)
			return field;
	if (name.len > NAME_MAX * ESCAPE_MAX + 2 || memchr(name.at, '\\', name.len) == NULL)
		return NULL;
	for (const struct field *field = from; field < end; field++)
		if (json_loose_is(name, field->name))
			return field;
	return NULL;
}

/* ---- one pass -------------------------------------------------------------------------------- */

struct level {
	struct json_loose_walk walk;
	enum object object;
	const struct field *field; /* of which the level above it walks the value */
};

static struct slice *slot_of(struct mcp_message *out, const struct field *field)
{
	return (struct slice *)(void *)((char *)out + field->at);
}

/* Nothing has been read from that object. */
static void clear(struct mcp_message *out, enum object object)
{
	(void)memset((char *)out + objects[object].at, 0, objects[object].len);
}

static void take(struct mcp_message *out, const struct field *field, struct slice value)
{
	struct slice *slot = slot_of(out, field);

	*slot = value;
	const enum json_loose_kind kind = json_loose_kind(value);
	if (slot == &out->result || slot == &out->error)
		out->answered |= kind != JSON_LOOSE_NULL;
	if (slot == &out->error)
		out->failed |= kind != JSON_LOOSE_NULL;
}

/* The level has moved to the member of that field: cuts its value off, or opens the next level for it. True: it was
 * opened. */
static bool read_value(struct mcp_message *out, const struct field *field, struct level *level)
{
	struct level *inner = level + 1;

	if (field != NULL)
		out->twice |= !slice_absent(*slot_of(out, field));
	if (field != NULL && field->opens != NOTHING) {
		clear(out, field->opens);
		if (json_loose_enter(&inner->walk, &level->walk) && inner->walk.close == '}') {
			inner->object = field->opens;
			level->field = field;
			return true;
		}
	}
	if (json_loose_value(&level->walk) && field != NULL)
		take(out, field, level->walk.value);
	return false;
}

/* The level above `outer` is over. What is not JSON is passed over by its brackets alone. */
static void leave(struct mcp_message *out, struct level *outer)
{
	const struct level *inner = outer + 1;

	if (inner->walk.bad)
		clear(out, inner->object);
	if (inner->walk.bad ? json_loose_value(&outer->walk)
			    : json_loose_leave(&outer->walk, &inner->walk))
		take(out, outer->field, outer->walk.value);
}

/* Behind the object that `object` begins with; NULL: it is not JSON up to its end. */
static const char *read_members(struct slice object, struct mcp_message *out)
{
	struct level levels[LEVELS], *level = levels;

	level->object = MESSAGE;
	json_loose_open(&level->walk, object);
	for (;;) {
		if (json_loose_name(&level->walk))
			level +=
				read_value(out, find_field(level->object, level->walk.name), level);
		else if (level == levels)
			return level->walk.bad ? NULL : level->walk.at;
		else
			leave(out, --level);
	}
}

static struct slice id_of(struct slice value)
{
	const enum json_loose_kind kind = json_loose_kind(value);

	return kind == JSON_LOOSE_STRING || kind == JSON_LOOSE_NUMBER ? value : slice_of(NULL, 0);
}

static enum mcp_message_kind kind_of(const struct mcp_message *message, bool has_id)
{
	const bool named = !slice_absent(message->id); /* by a string or number */

	if (message->answered)
		return named ? MCP_RESPONSE : MCP_ODD;
	if (json_loose_kind(message->method) == JSON_LOOSE_STRING)
		return named ? MCP_REQUEST : has_id ? MCP_ODD : MCP_NOTIFICATION;
	return slice_absent(message->method) && named &&
			       (!slice_absent(message->result) || !slice_absent(message->error))
		       ? MCP_RESPONSE
		       : MCP_ODD;
}

/* Behind the object; NULL: there is none. */
static const char *read_object(struct slice object, struct mcp_message *out)
{
	const char *end = NULL;

	*out = (struct mcp_message){ .kind = MCP_ODD };
	if (json_loose_kind(object) == JSON_LOOSE_OBJECT)
		end = read_members(object, out);
	if (end == NULL) {
		*out = (struct mcp_message){ .kind = MCP_ODD };
		return NULL;
	}
	const bool has_id = !slice_absent(out->id);
	out->id = id_of(out->id);
	out->kind = kind_of(out, has_id);
	return end;
}

void mcp_message_read(struct slice object, struct mcp_message *out)
{
	(void)read_object(object, out);
}

bool mcp_message_read_text(struct slice text, struct mcp_message *out, struct slice *object)
{
	const char *rear = text.at + text.len, *from = scan_space(text.at, rear);
	const char *end = read_object(slice_of(from, (size_t)(rear - from)), out);

	if (end == NULL || scan_space(end, rear) != rear) {
		*out = (struct mcp_message){ .kind = MCP_ODD };
		return false;
	}
	*object = slice_of(from, (size_t)(end - from));
	return true;
}

/* ---- what messages mean ---------------------------------------------------------------------- */

bool mcp_message_samples(const struct mcp_message *message)
{
	return message->kind == MCP_REQUEST && mcp_message_may_sample(message);
}

bool mcp_message_may_sample(const struct mcp_message *message)
{
	return !slice_absent(message->id) &&
	       json_loose_is(message->method, "sampling/createMessage");
}

bool mcp_message_asks(const struct mcp_message *message)
{
	return message->kind == MCP_RESPONSE && !message->failed &&
	       json_loose_is(message->in_result.result_type, "input_required");
}

struct slice mcp_message_cancels(const struct mcp_message *message)
{
	if (message->kind != MCP_NOTIFICATION ||
	    !json_loose_is(message->method, "notifications/cancelled"))
		return slice_of(NULL, 0);
	return id_of(message->in_params.request_id);
}

bool mcp_message_modern(const struct mcp_message *message)
{
	return json_loose_kind(message->in_params.meta.protocol_version) == JSON_LOOSE_STRING;
}

struct slice mcp_message_token(const struct mcp_message *message)
{
	return id_of(message->in_params.meta.progress_token);
}

bool mcp_message_may_ask(const struct mcp_message *message)
{
	return message->kind == MCP_REQUEST && (json_loose_is(message->method, "tools/call") ||
						json_loose_is(message->method, "prompts/get") ||
						json_loose_is(message->method, "resources/read"));
}

bool mcp_message_refuses(const struct mcp_message *message)
{
	static const struct slice codes[] = { SLICE_INIT("-32600"), SLICE_INIT("-32602"),
					      SLICE_INIT("-32603") };

	for (size_t i = 0; i < COUNT_OF(codes); i++)
		if (json_loose_same_id(message->error_code, codes[i]))
			return true;
	return false;
}

bool mcp_knows_tools(struct slice protocol_version)
{
	const struct slice first = SLICE("\"2025-11-25");

	return json_loose_kind(protocol_version) == JSON_LOOSE_STRING &&
	       slice_order(protocol_version, first) > 0;
}

bool mcp_declares(const struct mcp_declaration *declaration)
{
	const enum json_loose_kind kind = json_loose_kind(declaration->sampling);

	return kind != JSON_LOOSE_NONE && kind != JSON_LOOSE_NULL;
}

bool mcp_entry_samples(struct slice entry)
{
	return json_loose_is(json_loose_member(entry, "method"), "sampling/createMessage");
}

struct mcp_entries mcp_entries_count(struct slice input_requests)
{
	struct mcp_entries entries = { 0, 0 };
	struct json_loose_walk walk;

	if (json_loose_kind(input_requests) != JSON_LOOSE_OBJECT)
		return entries;
	json_loose_open(&walk, input_requests);
	while (json_loose_next(&walk)) {
		if (mcp_entry_samples(walk.value))
			entries.samplings++;
		else
			entries.others++;
	}
	return entries;
}
