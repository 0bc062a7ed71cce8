#include "gateway/wrap/wrap_session.h"

#include "gateway/wrap/wrap_session_parts.h"

#include <stdio.h>
#include <stdlib.h>

struct wrap_session *wrap_session_new(enum wrap_mode mode, const char *nonce,
				      const struct wrap_effects *effects)
{
	struct wrap_session *session = wrap_alloc(sizeof(*session));

	session->mode = mode;
	session->effects = *effects;
	session->revision = "2025-11-25";
	(void)snprintf(session->nonce, sizeof(session->nonce), "%s", nonce);
	return session;
}

void wrap_session_free(struct wrap_session *session)
{
	if (session == NULL)
		return;
	while (session->calls != NULL)
		wrap_call_end(session, session->calls);
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		wrap_text_free(&session->samplings[i].id);
	wrap_states_free(session);
	wrap_text_free(&session->hello);
	wrap_text_free(&session->hello_id);
	free(session);
}

/* ---- from the client ------------------------------------------------------------------------- */

static void client_request(struct wrap_session *session, struct slice line,
			   const struct mcp_message *message, nsec_t now)
{
	if (wrap_call_modern(session, line, message, now))
		return;
	(void)wrap_call_begin(session, message->id);
	if (json_loose_is(message->method, "initialize"))
		wrap_initialize(session, line, message);
	else
		wrap_to_server(session, line);
}

static void client_message(struct wrap_session *session, struct slice line, struct slice object,
			   nsec_t now)
{
	struct mcp_message message;

	mcp_message_read(object, &message);
	switch (message.kind) {
	case MCP_REQUEST:
		client_request(session, line, &message, now);
		return;
	case MCP_NOTIFICATION:
		if (wrap_call_cancel(session, line, &message))
			return;
		break;
	case MCP_RESPONSE:
		/* A sampling that is answered here has one answer, and the server waits for that. */
		if (wrap_find_sampling(session, message.id) != NULL)
			return;
		break;
	case MCP_ODD:
		break;
	}
	wrap_to_server(session, line);
}

/* A batch (2025-03-26) goes on as it is. */
static void follow_batch(struct wrap_session *session, struct slice array)
{
	struct mcp_message message;
	struct json_loose_walk walk;

	json_loose_open(&walk, array);
	while (json_loose_next(&walk)) {
		mcp_message_read(walk.value, &message);
		if (message.kind == MCP_REQUEST)
			(void)wrap_call_begin(session, message.id);
	}
}

void wrap_session_from_client(struct wrap_session *session, struct slice line, nsec_t now)
{
	struct slice value = { NULL, 0 };

	if (session->mode == WRAP_RELAY || !json_loose_whole(line, &value)) {
		wrap_to_server(session, line);
	} else if (json_loose_kind(value) == JSON_LOOSE_OBJECT) {
		client_message(session, line, value, now);
	} else {
		follow_batch(session, value);
		wrap_to_server(session, line);
	}
}

/* ---- from the server ------------------------------------------------------------------------- */

/* True: the message was dealt with, and does not go on as it is. */
static bool server_message(struct wrap_session *session, struct slice line, struct slice object,
			   nsec_t now)
{
	struct mcp_message message;

	mcp_message_read(object, &message);
	if (wrap_takes(session, &message)) {
		wrap_take(session, &message);
		return true;
	}
	if (message.kind == MCP_NOTIFICATION) {
		const struct slice cancelled = mcp_message_cancels(&message);
		struct wrap_sampling *sampling =
			slice_absent(cancelled) ? NULL : wrap_find_sampling(session, cancelled);
		if (sampling != NULL)
			wrap_drop_sampling(session, sampling);
		return sampling != NULL || wrap_call_stale_progress(session, &message);
	}
	if (message.kind == MCP_RESPONSE)
		return wrap_initialize_again(session, &message) ||
		       wrap_call_response(session, line, &message, now);
	return false;
}

static void server_batch(struct wrap_session *session, struct slice line, struct slice array,
			 nsec_t now)
{
	struct wrap_text out = { 0 };
	struct wrap_edits edits;
	struct mcp_cut cut;

	wrap_edits_begin(&edits, line);
	mcp_cut_begin(&cut, &edits.list, array);
	while (mcp_cut_next(&cut)) {
		const struct slice item = cut.walk.value;
		if (json_loose_kind(item) == JSON_LOOSE_OBJECT &&
		    server_message(session, item, item, now))
			mcp_cut_drop(&cut);
	}
	wrap_edits_end(&edits, cut.left == 0 ? NULL : &out);
	if (cut.left != 0)
		wrap_to_client(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

void wrap_session_from_server(struct wrap_session *session, struct slice line, nsec_t now)
{
	struct slice value = { NULL, 0 };
	struct json_loose_walk first;

	if (session->mode != WRAP_RELAY && json_loose_whole(line, &value)) {
		if (json_loose_kind(value) == JSON_LOOSE_OBJECT) {
			if (server_message(session, line, value, now))
				return;
		} else if (json_loose_kind(value) == JSON_LOOSE_ARRAY && json_loose_sound(value)) {
			json_loose_open(&first, value);
			if (json_loose_next(&first)) {
				server_batch(session, line, value, now);
				return;
			}
		}
	}
	wrap_to_client(session, line);
}
