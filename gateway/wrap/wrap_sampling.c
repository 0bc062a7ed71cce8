/* wrap_sampling.c - the samplings under way. */
#include "gateway/wrap/wrap_session_parts.h"

#include "codec/base/must.h"

bool wrap_takes(const struct wrap_session *session, const struct mcp_message *message)
{
	if (!mcp_message_may_sample(message) || session->mode == WRAP_RELAY)
		return false;
	return session->mode != WRAP_BACKFILL || !session->client_samples;
}

static struct wrap_sampling *free_sampling(struct wrap_session *session)
{
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		if (session->samplings[i].key == 0)
			return &session->samplings[i];
	return NULL;
}

uint32_t wrap_samplings_free(const struct wrap_session *session)
{
	uint32_t count = 0;

	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		count += session->samplings[i].key == 0;
	return count;
}

static void release(struct wrap_sampling *sampling)
{
	wrap_text_free(&sampling->id);
	*sampling = (struct wrap_sampling){ 0 };
}

static void begin(struct wrap_session *session, struct wrap_sampling *sampling,
		  const char *revision, struct slice params)
{
	const struct slice meta = json_loose_member(params, "_meta");
	const enum json_loose_kind token =
		json_loose_kind(json_loose_member(meta, "progressToken"));
	const struct wrap_ask ask = {
		.key = ++session->last_key,
		.params = params,
		.revision = revision,
		.progress = sampling->call == NULL &&
			    (token == JSON_LOOSE_STRING || token == JSON_LOOSE_NUMBER),
	};

	sampling->key = ask.key;
	session->effects.ask(session->effects.arg, &ask);
}

static void refuse(struct wrap_session *session, struct slice id, const char *text,
		   const char *reason)
{
	struct wrap_text error = { 0 };

	wrap_message_error(&error, -1, text, reason, NULL);
	wrap_answer_server(session, id, false, wrap_text_slice(&error));
	wrap_text_free(&error);
}

void wrap_take(struct wrap_session *session, const struct mcp_message *message)
{
	struct wrap_sampling *sampling = free_sampling(session);

	if (session->ended)
		return;
	if (session->mode == WRAP_REFUSE) {
		refuse(session, message->id, "User rejected sampling request", "sampling_refused");
	} else if (sampling == NULL) {
		refuse(session, message->id, "busy: too many sampling requests at once", "busy");
	} else {
		wrap_text_set(&sampling->id, message->id);
		begin(session, sampling, session->revision, message->params);
	}
}

void wrap_begin_entry(struct wrap_session *session, struct wrap_call *call, uint32_t entry,
		      struct slice params)
{
	struct wrap_sampling *sampling = free_sampling(session);

	must(sampling != NULL);
	sampling->call = call;
	sampling->entry = entry;
	begin(session, sampling, "2026-07-28", params);
}

struct wrap_sampling *wrap_find_sampling(struct wrap_session *session, struct slice id)
{
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++) {
		struct wrap_sampling *sampling = &session->samplings[i];
		if (sampling->key != 0 && sampling->call == NULL &&
		    json_loose_same_id(wrap_text_slice(&sampling->id), id))
			return sampling;
	}
	return NULL;
}

void wrap_drop_sampling(struct wrap_session *session, struct wrap_sampling *sampling)
{
	session->effects.cancel(session->effects.arg, sampling->key);
	release(sampling);
}

void wrap_drop_entries(struct wrap_session *session, const struct wrap_call *call)
{
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		if (session->samplings[i].key != 0 && session->samplings[i].call == call)
			wrap_drop_sampling(session, &session->samplings[i]);
}

void wrap_cancel_samplings(struct wrap_session *session)
{
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++) {
		struct wrap_sampling *sampling = &session->samplings[i];
		if (sampling->key == 0 || sampling->call != NULL)
			continue;
		refuse(session, wrap_text_slice(&sampling->id), "cancelled by the client",
		       "cancelled");
		wrap_drop_sampling(session, sampling);
	}
}

static struct wrap_sampling *find_key(struct wrap_session *session, uint64_t key)
{
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		if (key != 0 && session->samplings[i].key == key)
			return &session->samplings[i];
	return NULL;
}

void wrap_session_answer(struct wrap_session *session, uint64_t key, bool good, struct slice json,
			 nsec_t now)
{
	struct wrap_sampling *sampling = find_key(session, key);

	if (sampling == NULL)
		return;
	struct wrap_call *call = sampling->call;
	const uint32_t entry = sampling->entry;
	if (call == NULL)
		wrap_answer_server(session, wrap_text_slice(&sampling->id), good, json);
	release(sampling);
	if (call != NULL)
		wrap_round_answer(session, call, entry, good, json, now);
}

void wrap_session_progress(struct wrap_session *session, uint64_t key, struct slice json)
{
	const struct wrap_sampling *sampling = find_key(session, key);
	struct wrap_text line = { 0 };

	if (sampling == NULL || sampling->call != NULL)
		return;
	wrap_text_add_json(&line, json);
	wrap_text_put(&line, "\n");
	wrap_to_server(session, wrap_text_slice(&line));
	wrap_text_free(&line);
}

void wrap_session_end(struct wrap_session *session)
{
	session->ended = true;
	for (size_t i = 0; i < COUNT_OF(session->samplings); i++)
		if (session->samplings[i].key != 0)
			wrap_drop_sampling(session, &session->samplings[i]);
}
