/* wrap_call.c - the client's requests that have no response yet. */
#include "gateway/wrap/wrap_session_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* Lines are kept for another round: so many bytes together. */
enum { LINES_MAX = 64 << 20 };

/* The oldest that has had no round so far, and whose answer passes without being followed: perhaps its server never
 * answers. `kept`: of those whose line is kept, else of the others. NULL: there is none. */
static struct wrap_call *oldest(const struct wrap_session *session, bool kept)
{
	struct wrap_call *found = NULL;

	for (struct wrap_call *call = session->calls; call != NULL; call = call->next)
		if (call->asked.len == 0 && call->leg.len == 0 && kept == (call->line.len != 0))
			found = call;
	return found;
}

struct wrap_call *wrap_call_begin(struct wrap_session *session, struct slice id)
{
	if (session->call_count == WRAP_CALLS_MAX) {
		struct wrap_call *forgotten = oldest(session, false);
		session->uncounted = true;
		if (forgotten == NULL)
			forgotten = oldest(session, true);
		if (forgotten == NULL)
			return NULL;
		wrap_call_end(session, forgotten);
	}
	struct wrap_call *call = wrap_alloc(sizeof(*call));
	wrap_text_set(&call->id, id);
	call->next = session->calls;
	session->calls = call;
	session->call_count++;
	return call;
}

void wrap_call_end(struct wrap_session *session, struct wrap_call *call)
{
	struct wrap_call **link = &session->calls;

	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	session->call_count--;
	wrap_text_free(&call->id);
	wrap_text_free(&call->line);
	wrap_text_free(&call->leg);
	wrap_text_free(&call->token);
	wrap_text_free(&call->asked);
	for (size_t i = 0; i < COUNT_OF(call->entries); i++) {
		wrap_text_free(&call->entries[i].name);
		wrap_text_free(&call->entries[i].answer);
	}
	free(call);
}

struct wrap_call *wrap_call_of_server(struct wrap_session *session, struct slice id)
{
	for (struct wrap_call *call = session->calls; call != NULL; call = call->next)
		if (json_loose_same_id(wrap_text_slice(call->leg.len == 0 ? &call->id : &call->leg),
				       id))
			return call;
	return NULL;
}

struct wrap_call *wrap_call_of_client(struct wrap_session *session, struct slice id)
{
	for (struct wrap_call *call = session->calls; call != NULL; call = call->next)
		if (json_loose_same_id(wrap_text_slice(&call->id), id))
			return call;
	return NULL;
}

/* ---- 2026-07-28 ------------------------------------------------------------------------------ */

static size_t kept_bytes(const struct wrap_session *session)
{
	size_t sum = 0;

	for (const struct wrap_call *call = session->calls; call != NULL; call = call->next)
		sum += call->line.len;
	return sum;
}

/* With the client's part of a mixed round goes what was kept of it here. False: the state is not good, and the client
 * was told. */
static bool restore(struct wrap_session *session, struct wrap_text *line,
		    const struct mcp_message *message, nsec_t now)
{
	const struct slice value = message->in_params.request_state;
	struct wrap_text subject = { 0 }, answers = { 0 }, out = { 0 }, error = { 0 };
	struct json_loose_walk walk;

	if (!wrap_state_is_ours(value))
		return true;
	wrap_state_subject(&subject, message);
	const struct wrap_state *state =
		wrap_state_find(session, value, wrap_text_slice(&subject), now);
	if (state == NULL) {
		wrap_message_error(&error, -32602,
				   "params.requestState is not known: it is of another request, "
				   "or too old",
				   "request_state", NULL);
		wrap_answer_client(session, message->id, false, wrap_text_slice(&error));
	} else {
		wrap_text_add(&answers, wrap_text_slice(&state->answers));
		json_loose_open(&walk, message->in_params.input_responses);
		while (json_loose_next(&walk)) {
			wrap_text_put(&answers, ",");
			wrap_text_add(&answers, walk.part);
		}
		wrap_round_retry(&out, wrap_text_slice(line), slice_of(NULL, 0),
				 wrap_text_slice(&answers),
				 state->upstream.len == 0 ? slice_of(NULL, 0)
							  : wrap_text_slice(&state->upstream));
		wrap_text_set(line, wrap_text_slice(&out));
	}
	wrap_text_free(&subject);
	wrap_text_free(&answers);
	wrap_text_free(&out);
	wrap_text_free(&error);
	return state != NULL;
}

/* Forgets the oldest lines until there is room for one more of `len`; false: the others are in their rounds. */
static bool make_room(struct wrap_session *session, size_t len)
{
	while (kept_bytes(session) + len > LINES_MAX) {
		struct wrap_call *forgotten = oldest(session, true);
		if (forgotten == NULL)
			return false;
		session->uncounted = true;
		wrap_call_end(session, forgotten);
	}
	return true;
}

static void begin_modern(struct wrap_session *session, const struct wrap_text *line,
			 const struct mcp_message *message)
{
	struct wrap_call *call =
		make_room(session, line->len) ? wrap_call_begin(session, message->id) : NULL;
	struct wrap_text error = { 0 };

	if (call != NULL) {
		wrap_text_set(&call->line, wrap_text_slice(line));
		wrap_text_set(&call->token, message->in_params.meta.progress_token);
		wrap_to_server(session, wrap_text_slice(line));
		return;
	}
	wrap_message_error(&error, -32603, "too many requests at once", "busy", NULL);
	wrap_answer_client(session, message->id, false, wrap_text_slice(&error));
	wrap_text_free(&error);
}

bool wrap_call_modern(struct wrap_session *session, struct slice line,
		      const struct mcp_message *message, nsec_t now)
{
	const struct mcp_meta *meta = &message->in_params.meta;
	const struct wrap_declaration declaration =
		wrap_declare(session, meta->client.sampling, true);

	if (!json_loose_is(meta->protocol_version, "2026-07-28") ||
	    json_loose_kind(meta->client.capabilities) != JSON_LOOSE_OBJECT ||
	    !mcp_message_may_ask(message))
		return false;
	if (session->mode == WRAP_BACKFILL && !declaration.change)
		return false; /* the client samples itself */
	struct wrap_text out = { 0 };
	wrap_put_declaration(&out, line, &meta->client, &declaration);
	if (restore(session, &out, message, now))
		begin_modern(session, &out, message);
	wrap_text_free(&out);
	return true;
}

/* ---- the end of a call ----------------------------------------------------------------------- */

/* The line with another id; with a line feed, which an item of a batch does not have. */
static void send_renamed(struct wrap_session *session, struct slice line, struct slice at,
			 struct slice id,
			 void send(struct wrap_session *session, struct slice bytes))
{
	struct wrap_edits edits;
	struct wrap_text out = { 0 };

	wrap_edits_begin(&edits, line);
	mcp_edits_put(&edits.list, at, id);
	wrap_edits_end(&edits, &out);
	if (out.at[out.len - 1] != '\n')
		wrap_text_put(&out, "\n");
	send(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

bool wrap_call_cancel(struct wrap_session *session, struct slice line,
		      const struct mcp_message *message)
{
	const struct slice id = mcp_message_cancels(message);
	struct wrap_call *call = slice_absent(id) ? NULL : wrap_call_of_client(session, id);

	if (call == NULL)
		return false;
	const bool alone = session->call_count == 1 && !session->uncounted;
	if (call->asked.len != 0) /* the server waits for nothing */
		wrap_drop_entries(session, call);
	else if (call->leg.len != 0)
		send_renamed(session, line, id, wrap_text_slice(&call->leg), wrap_to_server);
	else
		wrap_to_server(session, line);
	if (alone)
		wrap_cancel_samplings(session);
	wrap_call_end(session, call);
	return true;
}

/* Whether an id is of a further round of a call that the client has given up. */
static bool is_leg(const struct wrap_session *session, struct slice id)
{
	struct wrap_text prefix = { 0 };

	wrap_text_print(&prefix, "\"sluice-wrap-%s-", session->nonce);
	const bool ours = slice_starts(id, wrap_text_slice(&prefix));
	wrap_text_free(&prefix);
	return ours;
}

bool wrap_call_response(struct wrap_session *session, struct slice line,
			const struct mcp_message *message, nsec_t now)
{
	struct wrap_call *call = wrap_call_of_server(session, message->id);

	if (call == NULL)
		return is_leg(session, message->id);
	if (call->asked.len != 0)
		return true; /* a second answer, while the first one's round is under way */
	if (call->line.len != 0 && wrap_round_begin(session, call, line, message, now))
		return true;
	const bool renamed = call->leg.len != 0;
	if (renamed)
		send_renamed(session, line, message->id, wrap_text_slice(&call->id),
			     wrap_to_client);
	wrap_call_end(session, call);
	return renamed;
}

bool wrap_call_stale_progress(struct wrap_session *session, const struct mcp_message *message)
{
	const struct mcp_params *params = &message->in_params;
	double progress;

	if (!json_loose_is(message->method, "notifications/progress") ||
	    !json_loose_number(params->progress, &progress))
		return false;
	for (struct wrap_call *call = session->calls; call != NULL; call = call->next) {
		if (call->token.len == 0 ||
		    !json_loose_same_id(wrap_text_slice(&call->token), params->progress_token))
			continue;
		if (call->rounds != 0 && call->progressed && progress <= call->progress)
			return true; /* the next round counts from its beginning */
		call->progress = progress;
		call->progressed = true;
		return false;
	}
	return false;
}
