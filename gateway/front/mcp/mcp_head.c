/* mcp_head.c - which header fields pass, both ways (mcp-proxy.md 3). All others stay here. */
#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "gateway/front/mcp/mcp.h"

/* ---- methods ---- */

struct slice mcp_verb_name(enum mcp_verb verb)
{
	static const struct slice names[] = { SLICE_INIT(""), SLICE_INIT("POST"), SLICE_INIT("GET"),
					      SLICE_INIT("DELETE"), SLICE_INIT("OPTIONS") };

	return names[verb];
}

enum mcp_verb mcp_verb_of(struct slice method)
{
	for (enum mcp_verb verb = MCP_VERB_POST; verb <= MCP_VERB_OPTIONS; verb++)
		if (slice_eq(method, mcp_verb_name(verb)))
			return verb;
	return MCP_VERB_OTHER;
}

/* ---- to the server ---- */

static void put_line(struct gather *head, struct slice name, struct slice value)
{
	gather_raw(head, name);
	gather_lit(head, ": ");
	gather_raw(head, value);
	gather_lit(head, "\r\n");
}

/* What a client's request may say to any server. */
static bool always_passes(struct slice name)
{
	static const struct slice names[] = {
		SLICE_INIT("accept"),      SLICE_INIT("content-type"),
		SLICE_INIT("user-agent"),  SLICE_INIT("mcp-method"),
		SLICE_INIT("mcp-name"),    SLICE_INIT("mcp-protocol-version"),
		SLICE_INIT("traceparent"), SLICE_INIT("tracestate"),
		SLICE_INIT("baggage"),     SLICE_INIT("last-event-id"),
	};
	static const struct slice param = SLICE_INIT("mcp-param-");

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (slice_eq_nocase(name, names[i]))
			return true;
	return name.len > param.len && slice_eq_nocase(slice_of(name.at, param.len), param);
}

static bool is_configured(const struct mcp_server *server, struct slice name)
{
	for (uint32_t i = 0; i < server->pass_header_count; i++)
		if (slice_eq_nocase(server->pass_headers[i], name))
			return true;
	return false;
}

/* What a client of an older revision says of its message is not true of the one that the server gets, whose own lines are
 * `written`. */
static bool is_of_message(struct slice name, struct slice written)
{
	static const struct slice prefix = SLICE_INIT("mcp-");
	struct slice line, value;

	while (upstream_next_field(&written, &line, &value))
		if (slice_eq_nocase(name, line))
			return true;
	return name.len > prefix.len && slice_eq_nocase(slice_of(name.at, prefix.len), prefix);
}

/* The fields that pass; a modern request has no session, so that its event ids mean nothing. */
static void put_passed(struct gather *head, const struct mcp_server *server,
		       const struct mcp_link *link, const struct http_incoming *in, bool modern)
{
	const bool bridged = !slice_absent(link->modern_head);
	struct http_field field;
	size_t at = 0;

	if (bridged)
		gather_raw(head, link->modern_head);
	while (http_next_header(in, &at, &field)) {
		if (!always_passes(field.name) && !is_configured(server, field.name))
			continue;
		if (bridged && is_of_message(field.name, link->modern_head))
			continue;
		if (modern && slice_eq_nocase(field.name, SLICE("last-event-id")))
			continue;
		if (header_text_is_name(field.name) && header_text_is_value(field.value) &&
		    field.value.len <= MCP_HEAD_LINE_MAX)
			put_line(head, field.name, field.value);
	}
}

/* The header came with 2025-06-18; older servers have not heard of it. */
static bool has_version(struct slice revision)
{
	return revision.len != 0 && slice_order(revision, SLICE("2025-06-18")) >= 0;
}

/* Of the gateway's own requests: servers refuse a POST that does not take both types, and a GET that is not for a
 * stream. */
static void put_own(struct gather *head, const struct mcp_link *link, bool get,
		    struct slice last_id)
{
	if (get)
		gather_lit(head, "accept: text/event-stream\r\n");
	else
		gather_lit(head, "accept: application/json, text/event-stream\r\n"
				 "content-type: application/json\r\n");
	if (has_version(link->token.revision))
		put_line(head, SLICE("mcp-protocol-version"), link->token.revision);
	if (!slice_absent(last_id) && header_text_is_value(last_id))
		put_line(head, SLICE("last-event-id"), last_id);
}

bool mcp_head_write(struct gather *head, const struct mcp_server *server,
		    const struct mcp_link *link, const struct http_incoming *in, bool modern,
		    enum mcp_verb verb, struct slice last_id, size_t body_bytes)
{
	const struct endpoint *endpoint = &server->endpoints[link->endpoint];

	gather_raw(head, mcp_verb_name(verb));
	gather_lit(head, " ");
	gather_raw(head, link->sse ? link->token.upstream_id : endpoint->path);
	if (!link->sse)
		gather_raw(head, server->queries[link->endpoint]);
	gather_lit(head, " HTTP/1.1\r\nhost: ");
	gather_raw(head, endpoint->authority);
	gather_lit(head, "\r\naccept-encoding: identity\r\n");
	gather_raw(head, server->head);
	if (!slice_absent(link->authorization))
		put_line(head, SLICE("authorization"), link->authorization);
	if (mcp_link_has_session(link) && !link->sse)
		put_line(head, SLICE("mcp-session-id"), link->token.upstream_id);
	if (in != NULL)
		put_passed(head, server, link, in, modern);
	else
		put_own(head, link, verb == MCP_VERB_GET, last_id);
	if (verb == MCP_VERB_POST || body_bytes != 0) {
		gather_lit(head, "content-length: ");
		gather_uint(head, body_bytes);
		gather_lit(head, "\r\n");
	}
	gather_lit(head, "\r\n");
	return gather_done(head) == ERR_OK;
}

/* ---- to the client ---- */

static bool is_name(struct slice name, struct slice wanted)
{
	return slice_eq_nocase(name, wanted);
}

void mcp_head_read(struct slice fields, struct mcp_answer_head *out)
{
	struct slice name, value;

	*out = (struct mcp_answer_head){ 0 };
	while (upstream_next_field(&fields, &name, &value)) {
		if (is_name(name, SLICE("content-type"))) {
			out->content_type = value;
			struct slice type = value;
			out->events = slice_eq_nocase(slice_trim(slice_cut(&type, ';')),
						      SLICE("text/event-stream"));
		} else if (is_name(name, SLICE("mcp-session-id"))) {
			out->session_id = value;
		} else if (is_name(name, SLICE("retry-after"))) {
			out->retry_after = value;
		} else if (is_name(name, SLICE("cache-control"))) {
			out->cache_control = value;
		} else if (is_name(name, SLICE("x-accel-buffering"))) {
			out->accel_buffering = value;
		} else if (is_name(name, SLICE("allow"))) {
			out->allow = value;
		}
	}
}

static bool add_copy(struct mcp_request *request, struct slice name, struct slice value)
{
	if (slice_absent(value))
		return true;
	const struct slice copy = arena_copy(&request->arena, value);
	if (slice_absent(copy))
		return false;
	mcp_add_field(request, name, copy);
	return true;
}

bool mcp_head_pass(struct mcp_request *request, const struct mcp_answer_head *head)
{
	struct slice cache = head->cache_control, buffering = head->accel_buffering;

	mcp_begin_fields(request);
	if (head->events && slice_absent(cache))
		cache = SLICE("no-cache, no-transform");
	if (head->events && slice_absent(buffering))
		buffering = SLICE("no");
	return add_copy(request, SLICE("content-type"), head->content_type) &&
	       add_copy(request, SLICE("retry-after"), head->retry_after) &&
	       add_copy(request, SLICE("allow"), head->allow) &&
	       add_copy(request, SLICE("cache-control"), cache) &&
	       add_copy(request, SLICE("x-accel-buffering"), buffering);
}
