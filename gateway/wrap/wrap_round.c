/* wrap_round.c - a call of 2026-07-28 whose server asks for input (contract/mcp-proxy.md 7.2). */
#include "gateway/wrap/wrap_session_parts.h"

#include "codec/base/must.h"

static void fail(struct wrap_session *session, struct wrap_call *call, struct slice error)
{
	wrap_drop_entries(session, call);
	wrap_answer_client(session, wrap_text_slice(&call->id), false, error);
	wrap_call_end(session, call);
}

static const struct refusal {
	int code;
	const char *text, *reason;
} refused = { -1, "User rejected sampling request", "sampling_refused" },
  rounds = { -32603, "the server asks for input again and again", "rounds" },
  entries = { -32603, "the server asks for too many samplings in one round", "samplings" },
  busy = { -1, "busy: too many sampling requests at once", "busy" },
  ended = { -32603, "the server asks for a sampling after the end of its input", "ended" },
  late = { -32001, "the server's rounds of input take too long", "deadline" };

/* NULL: the round may begin. */
static const struct refusal *judge(const struct wrap_session *session, const struct wrap_call *call,
				   uint32_t count, nsec_t now)
{
	return session->ended                                              ? &ended
	       : session->mode == WRAP_REFUSE                              ? &refused
	       : call->rounds >= WRAP_ROUNDS_MAX                           ? &rounds
	       : count > WRAP_SAMPLINGS_MAX                                ? &entries
	       : count > wrap_samplings_free(session)                      ? &busy
	       : call->rounds != 0 && now - call->began > WRAP_ROUNDS_TIME ? &late
									   : NULL;
}

static void end_round(struct wrap_call *call)
{
	for (uint32_t i = 0; i < call->entry_count; i++) {
		wrap_text_free(&call->entries[i].name);
		wrap_text_free(&call->entries[i].answer);
	}
	wrap_text_free(&call->asked);
	call->entry_count = 0;
}

static void ask_entries(struct wrap_session *session, struct wrap_call *call, struct slice requests)
{
	struct json_loose_walk walk;

	json_loose_open(&walk, requests);
	while (json_loose_next(&walk)) {
		if (!mcp_entry_samples(walk.value))
			continue;
		const uint32_t i = call->entry_count++;
		wrap_text_set(&call->entries[i].name, walk.name);
		wrap_begin_entry(session, call, i, json_loose_member(walk.value, "params"));
	}
	call->pending = call->entry_count;
}

bool wrap_round_begin(struct wrap_session *session, struct wrap_call *call, struct slice line,
		      const struct mcp_message *message, nsec_t now)
{
	const struct slice requests = message->in_result.input_requests;
	const uint32_t count = mcp_entries_count(requests).samplings;

	if (!mcp_message_asks(message) || count == 0)
		return false;
	const struct refusal *refusal = judge(session, call, count, now);
	if (refusal != NULL) {
		struct wrap_text error = { 0 };
		wrap_message_error(&error, refusal->code, refusal->text, refusal->reason, NULL);
		fail(session, call, wrap_text_slice(&error));
		wrap_text_free(&error);
		return true;
	}
	if (call->rounds++ == 0)
		call->began = now;
	wrap_text_set(&call->asked, line);
	ask_entries(session, call, requests);
	return true;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

void wrap_round_retry(struct wrap_text *out, struct slice line, struct slice id,
		      struct slice answers, struct slice state)
{
	struct slice object = { NULL, 0 };
	struct mcp_message message;
	struct wrap_edits edits;

	must(json_loose_whole(line, &object));
	mcp_message_read(object, &message);
	wrap_edits_begin(&edits, line);
	mcp_edits_round(&edits.list, message.params, &answers, 1, state);
	if (!slice_absent(id))
		mcp_edits_put(&edits.list, message.id, id);
	wrap_edits_end(&edits, out);
}

static void join_answers(struct wrap_text *out, const struct wrap_call *call)
{
	for (uint32_t i = 0; i < call->entry_count; i++) {
		wrap_text_put(out, i == 0 ? "" : ",");
		wrap_text_add(out, wrap_text_slice(&call->entries[i].name));
		wrap_text_put(out, ":");
		wrap_text_add_json(out, wrap_text_slice(&call->entries[i].answer));
	}
}

static void call_again(struct wrap_session *session, struct wrap_call *call, struct slice answers,
		       struct slice state)
{
	struct wrap_text out = { 0 };

	call->leg.len = 0;
	wrap_text_print(&call->leg, "\"sluice-wrap-%s-%llu\"", session->nonce,
			(unsigned long long)++session->last_leg);
	wrap_round_retry(&out, wrap_text_slice(&call->line), wrap_text_slice(&call->leg), answers,
			 state);
	end_round(call);
	wrap_to_server(session, wrap_text_slice(&out));
	wrap_text_free(&out);
}

/* The client sees what is its part of the round, under its own id, and a state of ours instead of the server's. */
static void ask_client(struct wrap_session *session, struct wrap_call *call,
		       const struct mcp_message *asked, struct slice answers, nsec_t now)
{
	const struct slice state = asked->in_result.request_state;
	struct slice object = { NULL, 0 };
	struct mcp_message message;
	struct wrap_text out = { 0 }, name = { 0 }, subject = { 0 };
	struct wrap_edits edits;

	must(json_loose_whole(wrap_text_slice(&call->line), &object));
	mcp_message_read(object, &message);
	wrap_state_subject(&subject, &message);
	wrap_text_print(&name, "\"%s\"",
			wrap_state_keep(session, wrap_text_slice(&subject), state, answers, now));
	wrap_edits_begin(&edits, wrap_text_slice(&call->asked));
	mcp_edits_put(&edits.list, asked->id, wrap_text_slice(&call->id));
	(void)mcp_edits_unsample(&edits.list, asked->in_result.input_requests);
	mcp_edits_member(&edits.list, asked->result, "requestState", state, wrap_text_slice(&name));
	wrap_edits_end(&edits, &out);
	if (out.at[out.len - 1] != '\n') /* it was one of a batch */
		wrap_text_put(&out, "\n");
	wrap_to_client(session, wrap_text_slice(&out));
	wrap_text_free(&out);
	wrap_text_free(&name);
	wrap_text_free(&subject);
	wrap_call_end(session, call);
}

static void finish(struct wrap_session *session, struct wrap_call *call, nsec_t now)
{
	struct slice object = { NULL, 0 };
	struct mcp_message asked;
	struct wrap_text answers = { 0 };

	must(json_loose_whole(wrap_text_slice(&call->asked), &object));
	mcp_message_read(object, &asked);
	join_answers(&answers, call);
	if (mcp_entries_count(asked.in_result.input_requests).others == 0)
		call_again(session, call, wrap_text_slice(&answers), asked.in_result.request_state);
	else
		ask_client(session, call, &asked, wrap_text_slice(&answers), now);
	wrap_text_free(&answers);
}

void wrap_round_answer(struct wrap_session *session, struct wrap_call *call, uint32_t entry,
		       bool good, struct slice json, nsec_t now)
{
	must(call->pending > 0 && entry < call->entry_count);
	if (!good) {
		fail(session, call, json);
		return;
	}
	wrap_text_set(&call->entries[entry].answer, json);
	if (--call->pending == 0)
		finish(session, call, now);
}
