#include "codec/mcp/jsonrpc.h"

#include "codec/base/must.h"
#include "codec/json/json_path.h"
#include "codec/mcp/jsonrpc_envelope.h"

#include <stdio.h>

/* ---- reading ---- */

static const struct method_row {
	struct slice name;
	enum rpc_method method;
	bool needs_id; /* without one it is a notification that means nothing here */
} methods[] = {
	{ SLICE_INIT("sampling/createMessage"), RPC_CREATE_MESSAGE, false },
	{ SLICE_INIT("initialize"), RPC_INITIALIZE, true },
	{ SLICE_INIT("notifications/initialized"), RPC_INITIALIZED, false },
	{ SLICE_INIT("ping"), RPC_PING, true },
	{ SLICE_INIT("notifications/cancelled"), RPC_CANCELLED, false },
};

static enum rpc_method method_find(struct slice raw, bool has_id)
{
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (json_str_eq(raw, methods[i].name) && (has_id || !methods[i].needs_id))
			return methods[i].method;
	return has_id ? RPC_UNKNOWN : RPC_OTHER_NOTIFICATION;
}

/* By its name alone: some clients write "id": null into notifications. */
static bool is_request(struct slice method)
{
	return !slice_absent(method) && !slice_starts(method, SLICE("notifications"));
}

static const struct json_name member_names[] = {
	[ENVELOPE_JSONRPC] = JSON_NAME("jsonrpc"), [ENVELOPE_ID] = JSON_NAME("id"),
	[ENVELOPE_METHOD] = JSON_NAME("method"),   [ENVELOPE_PARAMS] = JSON_NAME("params"),
	[ENVELOPE_RESULT] = JSON_NAME("result"),   [ENVELOPE_ERROR] = JSON_NAME("error"),
};

void envelope_init(struct envelope *e)
{
	*e = (struct envelope){ .fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET },
				.fields = JSON_FIELDS(member_names) };
}

uint32_t envelope_next(struct envelope *e, struct json_reader *r)
{
	const char *name = json_guess_name(r);
	struct json_fields *fields = &e->fields;
	struct slice other;

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('j', 's', 'o', 'n'):
			if (json_guess_member(r, fields, ENVELOPE_JSONRPC, name, "jsonrpc"))
				return ENVELOPE_JSONRPC;
			break;
		case JSON_LETTERS('i', 'd', '"', ':'):
			if (json_guess_member(r, fields, ENVELOPE_ID, name, "id"))
				return ENVELOPE_ID;
			break;
		case JSON_LETTERS('m', 'e', 't', 'h'):
			if (json_guess_member(r, fields, ENVELOPE_METHOD, name, "method"))
				return ENVELOPE_METHOD;
			break;
		case JSON_LETTERS('p', 'a', 'r', 'a'):
			if (json_guess_member(r, fields, ENVELOPE_PARAMS, name, "params"))
				return ENVELOPE_PARAMS;
			break;
		}
	return json_next_field(r, &e->fields, &other);
}

static void note(struct envelope *e, uint32_t offset, struct slice path, const char *detail)
{
	if (e->fault.err == ERR_OK)
		e->fault = (struct fault){ ERR_REQUEST, offset, path, detail };
}

/* RequestId of every revision's schema; unlike JSON-RPC, MCP knows no null. */
static const char wrong_id[] = "id must be a string or an integer";

/* As ids mostly are. False: it is another one, nothing happened. */
static inline bool guess_id(struct envelope *e, struct json_reader *r)
{
	const char *from = r->at;
	uint64_t number;

	if (!json_guess_uint(r, &number))
		return false;
	e->id = slice_of(from, (size_t)(r->at - from));
	return true;
}

static bool number_id(struct envelope *e, struct json_reader *r)
{
	const uint32_t offset = json_offset(r);
	struct slice id;

	if (guess_id(e, r)) /* behind white space */
		return true;
	if (!json_number(r, &id))
		return false;
	if (json_is_integer(id))
		e->id = id;
	else
		note(e, offset, SLICE("$.id"), wrong_id);
	return true;
}

static bool member_id(struct envelope *e, struct json_reader *r)
{
	if (guess_id(e, r))
		return true;
	switch (json_here(r)) {
	case JSON_STRING:
		return json_skip(r, &e->id);
	case JSON_NUMBER:
		return number_id(e, r);
	case JSON_NULL: /* whether that is wrong depends on the method */
		e->null_id = json_offset(r);
		return json_null(r);
	case JSON_BAD:
		break;
	default:
		note(e, json_offset(r), SLICE("$.id"), wrong_id);
	}
	return json_skip(r, NULL);
}

static bool member_method(struct envelope *e, struct json_reader *r)
{
	const char *from = r->at + 1;

	if (json_guess_lit(r, "\"sampling/createMessage\"")) {
		e->method = slice_of(from, (size_t)(r->at - 1 - from));
		e->create_message = true;
		return true;
	}
	if (json_here(r) == JSON_STRING) {
		if (!json_take_string(r, &e->method))
			return false;
		e->create_message = json_str_eq(e->method, methods[0].name);
		return true;
	}
	if (r->fault.err == ERR_OK)
		note(e, json_offset(r), SLICE("$.method"), "method must be a string");
	return json_skip(r, NULL);
}

static bool member_version(struct envelope *e, struct json_reader *r)
{
	struct slice version;

	if (json_guess_lit(r, "\"2.0\"")) {
		e->version_ok = true;
		return true;
	}
	if (json_peek(r) == JSON_STRING) {
		uint32_t offset = json_offset(r);
		if (!json_string(r, &version))
			return false;
		e->version_ok = json_str_eq(version, SLICE("2.0"));
		if (!e->version_ok)
			note(e, offset, SLICE("$.jsonrpc"), "jsonrpc must be \"2.0\"");
		return true;
	}
	if (r->fault.err == ERR_OK)
		note(e, json_offset(r), SLICE("$.jsonrpc"), "jsonrpc must be \"2.0\"");
	return json_skip(r, NULL);
}

bool envelope_member(struct envelope *e, struct json_reader *r, uint32_t member)
{
	switch (member) {
	case ENVELOPE_JSONRPC:
		return member_version(e, r);
	case ENVELOPE_ID:
		return member_id(e, r);
	case ENVELOPE_METHOD:
		return member_method(e, r);
	case ENVELOPE_PARAMS:
		return json_skip(r, &e->params);
	case ENVELOPE_RESULT:
	case ENVELOPE_ERROR:
		e->answered = true;
		break;
	default:
		break;
	}
	return json_skip(r, NULL);
}

enum err envelope_judge(const struct envelope *e, struct jsonrpc *rpc, struct fault *fault)
{
	static const struct fault no_version = { ERR_REQUEST, FAULT_NO_OFFSET,
						 SLICE_INIT("$.jsonrpc"),
						 "jsonrpc \"2.0\" is missing" };
	static const struct fault no_method = { ERR_REQUEST, FAULT_NO_OFFSET,
						SLICE_INIT("$.method"), "method is missing" };
	static const struct fault long_id = { ERR_REQUEST, FAULT_NO_OFFSET, SLICE_INIT("$.id"),
					      "id is longer than 1,024 bytes" };
	bool has_id = !slice_absent(e->id);

	rpc->id = e->id;
	rpc->params = e->params;
	if (e->fault.err != ERR_OK)
		*fault = e->fault;
	else if (e->id.len > RPC_ID_MAX)
		*fault = long_id;
	else if (!e->version_ok)
		*fault = no_version;
	else if (slice_absent(e->method) && !e->answered)
		*fault = no_method;
	else if (e->null_id != 0 && is_request(e->method))
		*fault = (struct fault){ ERR_REQUEST, e->null_id, SLICE("$.id"), wrong_id };
	else if (e->create_message)
		return rpc->method = RPC_CREATE_MESSAGE, ERR_OK;
	else if (slice_absent(e->method))
		return rpc->method = RPC_RESPONSE, ERR_OK;
	else
		return rpc->method = method_find(e->method, has_id), ERR_OK;
	return ERR_REQUEST;
}

/* The place goes into the words too: clients show the message and not the data. */
static void describe(struct fault *fault, struct arena *into)
{
	const char *what = fault->detail != NULL ? fault->detail : err_info(fault->err)->text;
	char text[160];
	int len =
		snprintf(text, sizeof(text), "Malformed JSON at byte %u: %s", fault->offset, what);

	if (len <= 0 || (size_t)len >= sizeof(text))
		return;
	struct slice copy = arena_copy(into, slice_of(text, (size_t)len));
	if (!slice_absent(copy))
		fault->detail = copy.at;
}

/* Reads what is not an object to its end: whether it is JSON at all decides the error. */
static void read_other(struct json_reader *r, struct fault *fault)
{
	bool array = json_peek(r) == JSON_ARRAY;

	if (!json_skip(r, NULL) || !json_finish(r))
		return;
	*fault = (struct fault){ array ? ERR_BATCH : ERR_REQUEST, 0, SLICE("$"), NULL };
}

enum err envelope_malformed(const struct envelope *e, const struct json_reader *r,
			    struct slice body, struct arena *into, struct jsonrpc *out,
			    struct fault *fault)
{
	must(r->fault.err != ERR_OK);
	out->id = e->id;
	*fault = r->fault;
	fault->path = json_path(body, fault->offset, into);
	describe(fault, into);
	return fault->err;
}

enum err envelope_read(struct slice body, const struct json_limits *limits, struct json_work *work,
		       struct arena *into, struct jsonrpc *out, struct fault *fault)
{
	struct json_reader r;
	struct envelope e;
	uint32_t member;

	envelope_init(&e);
	*out = (struct jsonrpc){ .method = RPC_UNKNOWN };
	*fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	json_open(&r, body, limits, work);
	if (json_peek(&r) == JSON_OBJECT) {
		(void)json_enter_object(&r);
		while ((member = envelope_next(&e, &r)) != FIELD_END &&
		       envelope_member(&e, &r, member))
			;
		(void)json_finish(&r);
	} else {
		read_other(&r, fault);
	}
	if (r.fault.err != ERR_OK)
		return envelope_malformed(&e, &r, body, into, out, fault);
	out->id = e.id;
	return fault->err != ERR_OK ? fault->err : envelope_judge(&e, out, fault);
}

enum err jsonrpc_read_here(struct slice body, struct json_work *work, struct arena *into,
			   struct jsonrpc *out, struct fault *fault)
{
	return envelope_read(body, NULL, work, into, out, fault);
}

/* ---- the error answer ---- */

/* Header values are bytes of any kind; only what is plain ASCII goes on. */
static bool visible(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < 0x20 || s.at[i] > 0x7e)
			return false;
	return s.len != 0;
}

static void write_text(struct gather *g, struct slice name, struct slice plain)
{
	gather_raw(g, name);
	gather_plain(g, plain);
}

/* Where in the body: only errors about the body have a place. */
static void write_place(struct gather *g, const struct fault *fault, int code)
{
	if (code != -32700 && code != -32600 && code != -32602)
		return;
	if (fault->offset != FAULT_NO_OFFSET) {
		gather_lit(g, ",\"offset\":");
		gather_uint(g, fault->offset);
	}
	if (fault->path.len != 0)
		write_text(g, SLICE(",\"path\":"), fault->path);
}

static void write_data(struct gather *g, const struct error_data *data)
{
	if (data->retry_after_ms >= 0) {
		gather_lit(g, ",\"retryAfterMs\":");
		gather_int(g, data->retry_after_ms);
	}
	if (data->provider_status != 0) {
		gather_lit(g, ",\"status\":");
		gather_int(g, data->provider_status);
	}
	if (data->retryable >= 0)
		gather_raw(g, data->retryable != 0 ? SLICE(",\"retryable\":true")
						   : SLICE(",\"retryable\":false"));
	if (visible(data->provider_request_id))
		write_text(g, SLICE(",\"requestId\":"), data->provider_request_id);
	if (data->limit != NULL)
		write_text(g, SLICE(",\"limit\":"), slice_str(data->limit));
	if (data->scope != NULL)
		write_text(g, SLICE(",\"scope\":"), slice_str(data->scope));
	if (data->rule != NULL)
		write_text(g, SLICE(",\"rule\":"), slice_str(data->rule));
	if (data->extra.len != 0) {
		gather_lit(g, ",");
		gather_raw(g, data->extra);
	}
}

void jsonrpc_write_error(struct gather *g, struct slice id, const struct fault *fault,
			 const struct error_data *data)
{
	must(fault->err != ERR_OK);

	const struct err_info *info = err_info(fault->err);

	gather_lit(g, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(g, id.len == 0 || id.len > RPC_ID_MAX ? SLICE("null") : id);
	gather_lit(g, ",\"error\":{\"code\":");
	gather_int(g, info->code);
	write_text(g, SLICE(",\"message\":"),
		   slice_str(fault->detail != NULL ? fault->detail : info->text));
	write_text(g, SLICE(",\"data\":{\"reason\":"), slice_str(info->reason));
	write_place(g, fault, info->code);
	if (data != NULL)
		write_data(g, data);
	gather_lit(g, "}}}");
}
