/* wrap_initialize.c - what a client declares, and what its server is told (contract/mcp-proxy.md 2, 7.1). */
#include "gateway/wrap/wrap_session_parts.h"

/* The revisions whose samplings a gateway knows; the last one of the initialize handshake first. */
static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					 "2026-07-28" };

/* The same for a declaration in initialize and in _meta. */
struct wrap_declaration wrap_declare(const struct wrap_session *session, struct slice sampling,
				     bool tools)
{
	const enum wrap_json_kind kind = wrap_json_kind(sampling);
	const bool absent = kind == WRAP_JSON_NONE || kind == WRAP_JSON_NULL;
	const struct slice ours = tools ? SLICE("{\"tools\":{}}") : SLICE("{}");

	switch (session->mode) {
	case WRAP_BACKFILL:
		return (struct wrap_declaration){ .change = absent, .put = ours };
	case WRAP_FORCE:
		return (struct wrap_declaration){ .change = true, .put = ours };
	case WRAP_REFUSE:
		return (struct wrap_declaration){ .change = kind != WRAP_JSON_NONE, .cut = true };
	case WRAP_RELAY:
		break;
	}
	return (struct wrap_declaration){ .change = false };
}

void wrap_put_declaration(struct wrap_text *out, struct slice line, struct slice capabilities,
			  const struct wrap_declaration *declaration)
{
	static char name[] = "sampling";
	struct wrap_text rest = { 0 };

	if (!declaration->change) {
		wrap_text_add(out, line);
	} else if (!declaration->cut) {
		wrap_edit_member(out, line, capabilities, name, declaration->put);
	} else {
		(void)wrap_edit_without(&rest, capabilities, wrap_drops_name, name);
		const struct wrap_edit edit = { .at = capabilities, .put = wrap_text_slice(&rest) };
		wrap_edit(out, line, &edit, 1);
		wrap_text_free(&rest);
	}
}

/* A revision without sampling.tools has the empty object only. */
static bool knows_tools(struct slice version)
{
	const struct slice first = SLICE("\"2025-11-25");

	return wrap_json_kind(version) == WRAP_JSON_STRING && slice_order(version, first) > 0;
}

void wrap_initialize(struct wrap_session *session, struct slice line,
		     const struct wrap_message *message)
{
	const struct slice capabilities = wrap_json_member(message->params, "capabilities");
	const struct slice version = wrap_json_member(message->params, "protocolVersion");
	const struct slice sampling = wrap_json_member(capabilities, "sampling");
	const enum wrap_json_kind kind = wrap_json_kind(sampling);
	const bool tools = knows_tools(version);
	struct wrap_declaration declaration = wrap_declare(session, sampling, tools);
	struct wrap_text out = { 0 };

	session->client_samples = kind != WRAP_JSON_NONE && kind != WRAP_JSON_NULL;
	if (wrap_json_kind(capabilities) != WRAP_JSON_OBJECT)
		declaration.change = false; /* the server says what is wrong with it */
	session->initializing = true;
	session->tools = tools;
	session->own = !declaration.change || declaration.cut;
	wrap_text_set(&session->hello, line);
	wrap_text_set(&session->hello_id, message->id);
	wrap_put_declaration(&out, line, capabilities, &declaration);
	wrap_to_server(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

static bool is_refusal(const struct wrap_message *response)
{
	const struct slice code = wrap_json_member(response->error, "code");

	return wrap_json_same_id(code, SLICE("-32600")) ||
	       wrap_json_same_id(code, SLICE("-32602")) || wrap_json_same_id(code, SLICE("-32603"));
}

/* The last try is the client's own words. */
static void say_hello_again(struct wrap_session *session)
{
	const struct slice line = wrap_text_slice(&session->hello);
	struct wrap_declaration declaration = { .change = session->tools, .put = SLICE("{}") };
	struct wrap_message message;
	struct wrap_text out = { 0 };
	struct slice object;

	session->own = !session->tools;
	session->tools = false;
	session->effects.say(session->effects.arg,
			     session->own ? "the server refuses to hear of sampling; it is started "
					    "without, and will not sample"
					  : "the server refuses the capability sampling.tools; it "
					    "is told of sampling without tools");
	if (!wrap_json_whole(line, &object))
		return;
	wrap_message_read(object, &message);
	wrap_put_declaration(&out, line, wrap_json_member(message.params, "capabilities"),
			     &declaration);
	wrap_to_server(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

static void learn_revision(struct wrap_session *session, struct slice version)
{
	for (size_t i = 0; i < COUNT_OF(revisions); i++)
		if (wrap_json_is(version, revisions[i]))
			session->revision = revisions[i];
}

bool wrap_initialize_again(struct wrap_session *session, const struct wrap_message *response)
{
	if (!session->initializing ||
	    !wrap_json_same_id(response->id, wrap_text_slice(&session->hello_id)))
		return false;
	if (!slice_absent(response->error) && !session->own && is_refusal(response)) {
		say_hello_again(session);
		return true;
	}
	session->initializing = false;
	learn_revision(session, wrap_json_member(response->result, "protocolVersion"));
	wrap_text_free(&session->hello);
	wrap_text_free(&session->hello_id);
	return false;
}
