/* wrap_round.c - a call of 2026-07-28 whose server asks for input (contract/mcp-proxy.md 7.2). */
#include "gateway/wrap/wrap_session_parts.h"

#include "codec/base/must.h"

static bool is_sampling(struct slice entry)
{
	return wrap_json_is(wrap_json_member(entry, "method"), "sampling/createMessage");
}

static bool drops_sampling(void *arg, const struct wrap_json_walk *member)
{
	(void)arg;
	return is_sampling(member->value);
}

static uint32_t count_entries(struct slice requests, bool sampling)
{
	struct wrap_json_walk walk;
	uint32_t count = 0;

	wrap_json_open(&walk, requests);
	while (wrap_json_next(&walk))
		count += is_sampling(walk.value) == sampling;
	return count;
}

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
	struct wrap_json_walk walk;

	wrap_json_open(&walk, requests);
	while (wrap_json_next(&walk)) {
		if (!is_sampling(walk.value))
			continue;
		const uint32_t i = call->entry_count++;
		wrap_text_set(&call->entries[i].name, walk.name);
		wrap_begin_entry(session, call, i, wrap_json_member(walk.value, "params"));
	}
	call->pending = call->entry_count;
}

bool wrap_round_begin(struct wrap_session *session, struct wrap_call *call, struct slice line,
		      const struct wrap_message *message, nsec_t now)
{
	const struct slice requests = wrap_json_member(message->result, "inputRequests");
	const uint32_t count = count_entries(requests, true);

	if (!wrap_json_is(wrap_json_member(message->result, "resultType"), "input_required") ||
	    wrap_json_kind(requests) != WRAP_JSON_OBJECT || count == 0)
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

static bool drops_round(void *arg, const struct wrap_json_walk *member)
{
	(void)arg;
	return wrap_json_is(member->name, "inputResponses") ||
	       wrap_json_is(member->name, "requestState");
}

void wrap_round_retry(struct wrap_text *out, struct slice line, struct slice id,
		      struct slice answers, struct slice state)
{
	struct slice object = { NULL, 0 };
	struct wrap_message message;
	struct wrap_text params = { 0 };

	must(wrap_json_whole(line, &object));
	wrap_message_read(object, &message);
	const size_t left = wrap_edit_without(&params, message.params, drops_round, NULL);
	params.len--; /* the brace */
	wrap_text_put(&params, left == 0 ? "\"inputResponses\":{" : ",\"inputResponses\":{");
	wrap_text_add(&params, answers);
	wrap_text_put(&params, "}");
	if (state.len != 0) {
		wrap_text_put(&params, ",\"requestState\":");
		wrap_text_add(&params, state);
	}
	wrap_text_put(&params, "}");
	const struct wrap_edit edits[] = {
		{ .at = message.params, .put = wrap_text_slice(&params) },
		{ .at = message.id, .put = slice_absent(id) ? message.id : id },
	};
	wrap_edit(out, line, edits, COUNT_OF(edits));
	wrap_text_free(&params);
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
		       const struct wrap_message *asked, struct slice answers, nsec_t now)
{
	const struct slice requests = wrap_json_member(asked->result, "inputRequests");
	const struct slice state = wrap_json_member(asked->result, "requestState");
	struct slice object = { NULL, 0 };
	struct wrap_message message;
	struct wrap_text out = { 0 }, rest = { 0 }, name = { 0 }, subject = { 0 };

	must(wrap_json_whole(wrap_text_slice(&call->line), &object));
	wrap_message_read(object, &message);
	wrap_state_subject(&subject, &message);
	(void)wrap_edit_without(&rest, requests, drops_sampling, NULL);
	wrap_text_print(&name, slice_absent(state) ? "\"requestState\":\"%s\"," : "\"%s\"",
			wrap_state_keep(session, wrap_text_slice(&subject), state, answers, now));
	const struct wrap_edit edits[] = {
		{ .at = asked->id, .put = wrap_text_slice(&call->id) },
		{ .at = requests, .put = wrap_text_slice(&rest) },
		{ .at = slice_absent(state) ? slice_of(asked->result.at + 1, 0) : state,
		  .put = wrap_text_slice(&name) },
	};
	wrap_edit(&out, wrap_text_slice(&call->asked), edits, COUNT_OF(edits));
	if (out.at[out.len - 1] != '\n') /* it was one of a batch */
		wrap_text_put(&out, "\n");
	wrap_to_client(session, wrap_text_slice(&out));
	wrap_text_free(&out);
	wrap_text_free(&rest);
	wrap_text_free(&name);
	wrap_text_free(&subject);
	wrap_call_end(session, call);
}

static void finish(struct wrap_session *session, struct wrap_call *call, nsec_t now)
{
	struct slice object = { NULL, 0 };
	struct wrap_message asked;
	struct wrap_text answers = { 0 };

	must(wrap_json_whole(wrap_text_slice(&call->asked), &object));
	wrap_message_read(object, &asked);
	join_answers(&answers, call);
	if (count_entries(wrap_json_member(asked.result, "inputRequests"), false) == 0)
		call_again(session, call, wrap_text_slice(&answers),
			   wrap_json_member(asked.result, "requestState"));
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
