/* wrap_initialize.c - what a client declares, and what its server is told (contract/mcp-proxy.md 2, 7.1). */
#include "gateway/wrap/wrap_session_parts.h"

/* The revisions whose samplings a gateway knows; the last one of the initialize handshake first. */
static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					 "2026-07-28" };

/* The same for a declaration in initialize and in _meta. */
struct wrap_declaration wrap_declare(const struct wrap_session *session, struct slice sampling,
				     bool tools)
{
	const enum json_loose_kind kind = json_loose_kind(sampling);
	const bool absent = kind == JSON_LOOSE_NONE || kind == JSON_LOOSE_NULL;
	const struct slice ours = tools ? SLICE("{\"tools\":{}}") : SLICE("{}");

	switch (session->mode) {
	case WRAP_BACKFILL:
		return (struct wrap_declaration){ .change = absent, .put = ours };
	case WRAP_FORCE:
		return (struct wrap_declaration){ .change = true, .put = ours };
	case WRAP_REFUSE:
		return (struct wrap_declaration){ .change = kind != JSON_LOOSE_NONE, .cut = true };
	case WRAP_RELAY:
		break;
	}
	return (struct wrap_declaration){ .change = false };
}

void wrap_put_declaration(struct wrap_text *out, struct slice line,
			  const struct mcp_declaration *client,
			  const struct wrap_declaration *declaration)
{
	struct wrap_edits edits;

	wrap_edits_begin(&edits, line);
	if (declaration->change && declaration->cut)
		mcp_edits_undeclare(&edits.list, client);
	else if (declaration->change)
		(void)mcp_edits_declare(&edits.list, client, declaration->put);
	wrap_edits_end(&edits, out);
}

void wrap_initialize(struct wrap_session *session, struct slice line,
		     const struct mcp_message *message)
{
	const struct mcp_declaration *client = &message->in_params.client;
	const bool tools = mcp_knows_tools(message->in_params.protocol_version);
	struct wrap_declaration declaration = wrap_declare(session, client->sampling, tools);
	struct wrap_text out = { 0 };

	session->client_samples = mcp_declares(client);
	if (json_loose_kind(client->capabilities) != JSON_LOOSE_OBJECT)
		declaration.change = false; /* the server says what is wrong with it */
	session->initializing = true;
	session->tools = tools;
	session->own = !declaration.change || declaration.cut;
	wrap_text_set(&session->hello, line);
	wrap_text_set(&session->hello_id, message->id);
	wrap_put_declaration(&out, line, client, &declaration);
	wrap_to_server(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

/* The last try is the client's own words. */
static void say_hello_again(struct wrap_session *session)
{
	const struct slice line = wrap_text_slice(&session->hello);
	struct wrap_declaration declaration = { .change = session->tools, .put = SLICE("{}") };
	struct mcp_message message;
	struct wrap_text out = { 0 };
	struct slice object;

	session->own = !session->tools;
	session->tools = false;
	session->effects.say(session->effects.arg,
			     session->own ? "the server refuses to hear of sampling; it is started "
					    "without, and will not sample"
					  : "the server refuses the capability sampling.tools; it "
					    "is told of sampling without tools");
	if (!json_loose_whole(line, &object))
		return;
	mcp_message_read(object, &message);
	wrap_put_declaration(&out, line, &message.in_params.client, &declaration);
	wrap_to_server(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

static void learn_revision(struct wrap_session *session, struct slice version)
{
	for (size_t i = 0; i < COUNT_OF(revisions); i++)
		if (json_loose_is(version, revisions[i]))
			session->revision = revisions[i];
}

bool wrap_initialize_again(struct wrap_session *session, const struct mcp_message *response)
{
	if (!session->initializing ||
	    !json_loose_same_id(response->id, wrap_text_slice(&session->hello_id)))
		return false;
	if (!slice_absent(response->error) && !session->own && mcp_message_refuses(response)) {
		say_hello_again(session);
		return true;
	}
	session->initializing = false;
	learn_revision(session, response->in_result.protocol_version);
	wrap_text_free(&session->hello);
	wrap_text_free(&session->hello_id);
	return false;
}
