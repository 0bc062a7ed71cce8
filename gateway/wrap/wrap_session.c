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
			   const struct wrap_message *message, nsec_t now)
{
	if (wrap_call_modern(session, line, message, now))
		return;
	(void)wrap_call_begin(session, message->id);
	if (wrap_json_is(message->method, "initialize"))
		wrap_initialize(session, line, message);
	else
		wrap_to_server(session, line);
}

static void client_message(struct wrap_session *session, struct slice line, struct slice object,
			   nsec_t now)
{
	struct wrap_message message;

	wrap_message_read(object, &message);
	switch (message.kind) {
	case WRAP_REQUEST:
		client_request(session, line, &message, now);
		return;
	case WRAP_NOTIFICATION:
		if (wrap_call_cancel(session, line, &message))
			return;
		break;
	case WRAP_RESPONSE:
		/* A sampling that is answered here has one answer, and the server waits for that. */
		if (wrap_find_sampling(session, message.id) != NULL)
			return;
		break;
	case WRAP_ODD:
		break;
	}
	wrap_to_server(session, line);
}

/* A batch (2025-03-26) goes on as it is. */
static void follow_batch(struct wrap_session *session, struct slice array)
{
	struct wrap_message message;
	struct wrap_json_walk walk;

	wrap_json_open(&walk, array);
	while (wrap_json_next(&walk)) {
		wrap_message_read(walk.value, &message);
		if (message.kind == WRAP_REQUEST)
			(void)wrap_call_begin(session, message.id);
	}
}

void wrap_session_from_client(struct wrap_session *session, struct slice line, nsec_t now)
{
	struct slice value = { NULL, 0 };

	if (session->mode == WRAP_RELAY || !wrap_json_whole(line, &value)) {
		wrap_to_server(session, line);
	} else if (wrap_json_kind(value) == WRAP_JSON_OBJECT) {
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
	struct wrap_message message;

	wrap_message_read(object, &message);
	if (message.kind == WRAP_REQUEST && wrap_takes(session, &message)) {
		wrap_take(session, &message);
		return true;
	}
	if (message.kind == WRAP_NOTIFICATION) {
		const struct slice cancelled = wrap_message_cancels(&message);
		struct wrap_sampling *sampling =
			slice_absent(cancelled) ? NULL : wrap_find_sampling(session, cancelled);
		if (sampling != NULL)
			wrap_drop_sampling(session, sampling);
		return sampling != NULL || wrap_call_stale_progress(session, &message);
	}
	if (message.kind == WRAP_RESPONSE)
		return wrap_initialize_again(session, &message) ||
		       wrap_call_response(session, line, &message, now);
	return false;
}

struct batch {
	struct wrap_session *session;
	nsec_t now;
};

static bool batch_drops(void *arg, const struct wrap_json_walk *member)
{
	const struct batch *batch = arg;

	return wrap_json_kind(member->value) == WRAP_JSON_OBJECT &&
	       server_message(batch->session, member->value, member->value, batch->now);
}

static bool is_sound(struct slice array)
{
	struct wrap_json_walk walk;

	wrap_json_open(&walk, array);
	while (wrap_json_next(&walk))
		continue;
	return !walk.bad;
}

static void server_batch(struct wrap_session *session, struct slice line, struct slice array,
			 nsec_t now)
{
	struct batch batch = { .session = session, .now = now };
	struct wrap_text rest = { 0 }, out = { 0 };
	struct wrap_edit edit = { .at = array };

	if (wrap_edit_without(&rest, array, batch_drops, &batch) != 0) {
		edit.put = wrap_text_slice(&rest);
		wrap_edit(&out, line, &edit, 1);
		wrap_to_client(session, wrap_text_slice(&out));
	}
	wrap_text_free(&rest);
	wrap_text_free(&out);
}

void wrap_session_from_server(struct wrap_session *session, struct slice line, nsec_t now)
{
	struct slice value = { NULL, 0 };
	struct wrap_json_walk first;

	if (session->mode != WRAP_RELAY && wrap_json_whole(line, &value)) {
		if (wrap_json_kind(value) == WRAP_JSON_OBJECT) {
			if (server_message(session, line, value, now))
				return;
		} else if (wrap_json_kind(value) == WRAP_JSON_ARRAY && is_sound(value)) {
			wrap_json_open(&first, value);
			if (wrap_json_next(&first)) {
				server_batch(session, line, value, now);
				return;
			}
		}
	}
	wrap_to_client(session, line);
}
