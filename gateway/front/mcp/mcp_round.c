#include "gateway/front/mcp/mcp_round.h"

#include "gateway/front/mcp/mcp_bridge.h"
#include "gateway/front/mcp/mcp_removed.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"

#include <stdio.h>

static const char too_long[] = "the MCP server's rounds of input take too long";

/* ---- the legs ---- */

/* The request is sent, with what *leg says of the round before. Absent: no memory. */
static struct slice write_leg(struct mcp_request *request, struct mcp_leg *leg)
{
	struct mcp_round *round = request->round;

	leg->text = request->text;
	leg->message = &request->posted.first;
	leg->rule = &round->rule;
	leg->id = round->id;
	arena_give(&round->sent);
	const struct slice body = mcp_leg_write(leg, &round->sent);
	arena_give(&round->heard);
	round->asked = slice_of(NULL, 0);
	round->streams = false;
	return body;
}

/* The name is none that the client could have chosen: it does not know the request's. */
static void name_leg(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	const int len = snprintf(round->id_text, sizeof(round->id_text), "\"sluice-%s-%u\"",
				 request->ids.request_id, round->number + 1);

	must(len > 0 && len < MCP_LEG_ID_MAX);
	round->id = slice_of(round->id_text, (size_t)len);
}

/* The configuration may have changed since the last leg. */
void mcp_round_again(struct mcp_request *request, struct mcp_leg *leg)
{
	name_leg(request);
	const struct slice body = write_leg(request, leg);
	if (slice_absent(body)) {
		mcp_round_fail_leg(request, ERR_BUSY, NULL);
		return;
	}
	request->server = mcp_link_way(request->mcp, &request->link);
	if (request->server == NULL) {
		mcp_round_fail_leg(request, ERR_SERVER_UNKNOWN, NULL);
	} else if (!mcp_forward(request, body)) {
		const enum err err = request->refused;
		request->refused = ERR_OK;
		mcp_round_fail_leg(request, err, request->detail);
	} else {
		request->server = NULL;
		if (mcp_round_begun(request))
			request->phase = MCP_STREAMS;
	}
}

static void call_again(struct mcp_request *request, struct slice answers)
{
	struct mcp_leg leg = {
		.answers_round = true,
		.answers = answers,
		.state = request->round->message.in_result.request_state,
	};

	if (slice_absent(answers))
		mcp_round_fail_leg(request, ERR_BUSY, NULL);
	else
		mcp_round_again(request, &leg);
}

/* ---- a round ---- */

/* The client's part of it, under a state of the gateway's own. */
static void ask_client(struct mcp_request *request, struct slice answers)
{
	struct mcp_round *round = request->round;
	struct mcp_shown shown = {
		.id = slice_absent(round->id) ? round->id : request->posted.first.id,
		.unsampled = true,
	};
	const enum err err = mcp_round_seal(request, answers, &shown.state);

	if (err == ERR_BODY_TOO_LARGE) {
		mcp_round_fail(request, ERR_SERVER_ANSWER,
			       "the MCP server's requestState, with the answers to its samplings, "
			       "is too large to be kept by the client");
		return;
	}
	mcp_round_answer(request, err != ERR_OK ? slice_of(NULL, 0)
						: mcp_round_show(round->asked, &round->message,
								 &shown, &request->arena));
}

static void finish_round(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	const struct mcp_entries entries =
		mcp_entries_count(round->message.in_result.input_requests);
	struct mcp_answered answers[MCP_ENTRIES_MAX];

	for (uint32_t i = 0; i < round->entry_count; i++)
		answers[i] =
			(struct mcp_answered){ round->entries[i].name, round->entries[i].answer };
	const struct slice joined = mcp_answers_join(answers, round->entry_count, &round->heard);
	if (entries.others == 0)
		call_again(request, joined);
	else if (slice_absent(joined))
		mcp_round_answer(request, joined);
	else
		ask_client(request, joined);
}

static void drop_entries(struct mcp_round *round)
{
	for (uint32_t i = 0; i < round->entry_count; i++) {
		struct mcp_sampling *sampling = round->entries[i].sampling;
		round->entries[i].sampling = NULL;
		if (sampling != NULL)
			mcp_sampling_drop(sampling);
	}
}

static void on_go_on(struct mcp_request *request)
{
	struct mcp_round *round = request->round;

	if (round->begins)
		return;
	if (round->failed) { /* the first failure stops the others */
		drop_entries(round);
		mcp_round_answer_error(request, round->error);
	} else if (round->pending == 0) {
		finish_round(request);
	}
}

static void on_answered(struct mcp_entry *entry, const struct gather *result)
{
	struct mcp_round *round = entry->request->round;

	must(round->pending > 0);
	round->pending--;
	entry->sampling = NULL;
	entry->answer = gather_flat(result, &round->heard);
	round->failed |= slice_absent(entry->answer);
}

static void on_failed(struct mcp_entry *entry, const struct fault *fault,
		      const struct error_data *data)
{
	struct mcp_round *round = entry->request->round;

	must(round->pending > 0);
	round->pending--;
	entry->sampling = NULL;
	if (!round->failed)
		round->error = mcp_round_error(entry->request, fault,
					       data == NULL ? &error_data_none : data);
	round->failed = true;
}

static const struct mcp_entry_events entry_events = { .answered = on_answered,
						      .failed = on_failed,
						      .go_on = on_go_on };

/* Of several entries of one name the last one counts, as in JSON.parse. */
static bool comes_again(const struct json_loose_walk *walk)
{
	struct json_loose_walk rest = *walk;

	while (json_loose_next(&rest))
		if (json_loose_same_id(rest.name, walk->name))
			return true;
	return false;
}

/* A client that repeats its part of a round, or whose part is repeated on the way, causes the same samplings again: they
 * have the same names where the call, the state and what is asked are the same. */
static struct mcp_digest name_of(const struct mcp_request *request, struct slice name,
				 struct slice params)
{
	const struct mcp_round *round = request->round;
	const struct mcp_token *token = &request->link.token;
	static const struct mcp_digest none;
	uint8_t whole[SHA256_BYTES];
	struct mcp_digest digest;
	struct sha256_sum sum;

	if (slice_absent(round->restored))
		return none;
	sha256_begin(&sum);
	sha256_add(&sum, slice_of((const char *)token->tenant.at, MCP_DIGEST_BYTES));
	sha256_add(&sum, slice_of((const char *)token->principal.at, MCP_DIGEST_BYTES));
	sha256_add(&sum, token->server);
	sha256_add(&sum, round->restored);
	sha256_add(&sum, slice_of((const char *)&round->number, sizeof(round->number)));
	sha256_add(&sum, name);
	sha256_add(&sum, params);
	sha256_end(&sum, whole);
	(void)memcpy(digest.at, whole, sizeof(digest.at));
	return digest;
}

static void ask_entries(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	struct json_loose_walk walk;

	round->begins = true;
	round->entry_count = round->pending = 0;
	json_loose_open(&walk, round->message.in_result.input_requests);
	while (!round->failed && json_loose_next(&walk)) {
		if (!mcp_entry_samples(walk.value) || comes_again(&walk))
			continue;
		const struct slice params = json_loose_member(walk.value, "params");
		struct mcp_entry *entry = &round->entries[round->entry_count++];
		*entry = (struct mcp_entry){ .events = &entry_events,
					     .request = request,
					     .until = round->until,
					     .name = walk.name,
					     .once = name_of(request, walk.name, params) };
		round->pending++;
		mcp_sampling_ask(request->mcp, &request->link, &request->caller, params, entry);
	}
	round->begins = false;
	on_go_on(request);
}

/* ERR_OK: the round may begin. */
static enum err judge(const struct mcp_round *round, uint32_t samplings, nsec_t now)
{
	return !round->rule.answers                       ? ERR_SAMPLING_REFUSED
	       : round->number >= MCP_ROUNDS_MAX          ? ERR_ROUNDS
	       : samplings > MCP_ENTRIES_MAX              ? ERR_ROUND_SAMPLINGS
	       : round->number != 0 && now > round->until ? ERR_DEADLINE
							  : ERR_OK;
}

static void begin_round(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	const nsec_t now = net_now(request->host->loop);

	upstream_finish(&request->call);
	mcp_message_read(round->asked, &round->message);
	const struct mcp_entries entries =
		mcp_entries_count(round->message.in_result.input_requests);
	if (request->link.token.bridged) {
		if (!mcp_bridge_round(request, &entries))
			return;
	} else if (entries.samplings == 0) {
		ask_client(request, slice_of(NULL, 0));
		return;
	}
	const enum err err = judge(round, entries.samplings, now);
	if (err != ERR_OK) {
		mcp_round_fail(request, err, err == ERR_DEADLINE ? too_long : NULL);
		return;
	}
	if (round->number++ == 0) {
		round->until = request->until = now + MCP_ROUNDS_TIME;
		mcp_round_wait(request);
	}
	ask_entries(request);
}

/* ---- the end of a leg ---- */

static const char *detail_of(const struct upstream_call *call)
{
	return call->err == ERR_DEADLINE ? too_long : call->detail;
}

static void stream_done(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	const struct upstream_call *call = &request->call;
	const bool good = call->err == ERR_OK && mcp_filter_end(&request->filter);

	if (good && !slice_absent(round->asked)) {
		begin_round(request);
	} else if (round->number == 0 || round->answered) {
		if (!good)
			request->detail = call->detail;
		mcp_out_end(&request->out, !good);
	} else if (call->err != ERR_OK) {
		mcp_round_fail(request, mcp_call_error(call), detail_of(call));
	} else {
		mcp_round_fail(request, good ? ERR_SERVER_ANSWER : ERR_BUSY,
			       good ? "the MCP server's stream has ended without a response"
				    : NULL);
	}
}

/* An answer in one piece: the client gets it as it is, but for the id of a further leg. */
static void pass_whole(struct mcp_request *request, const struct mcp_message *message)
{
	const struct slice body = request->call.answer.body;
	const bool answers = message->kind == MCP_RESPONSE &&
			     json_loose_same_id(message->id, mcp_round_leg_id(request));
	struct mcp_shown shown = { .id = slice_of(NULL, 0) };

	if (mcp_round_begun(request) && !answers) {
		mcp_round_fail(request, ERR_SERVER_ANSWER,
			       "the MCP server's answer to a round is no response to it");
		return;
	}
	if (!slice_absent(request->round->id) && answers)
		shown.id = request->posted.first.id;
	if (request->link.token.bridged && mcp_bridge_lacks(request, message)) {
		mcp_bridge_list(request);
		return;
	}
	if (request->link.token.bridged && !mcp_bridge_show(request, message)) {
		mcp_round_fail_leg(request, ERR_SERVER_ANSWER,
				   "the MCP server's answer to a call is no response");
		return;
	}
	mcp_round_answer(request, body.len == 0
					  ? SLICE("")
					  : mcp_round_show(body, message, &shown, &request->arena));
}

static void whole_done(struct mcp_request *request)
{
	struct mcp_round *round = request->round;
	const struct upstream_call *call = &request->call;
	struct mcp_message message = { .kind = MCP_ODD };
	struct mcp_answer_head head;
	const char *detail = detail_of(call);
	struct slice value;
	enum err err = mcp_call_error(call);

	if (err == ERR_OK)
		err = mcp_status_error(request, &detail);
	if (err == ERR_OK && !mcp_round_begun(request)) {
		mcp_head_read(request->extra.fields, &head);
		request->status = call->answer.status;
		if (!mcp_head_pass(request, &head))
			err = ERR_BUSY;
	}
	if (err != ERR_OK) {
		mcp_round_fail_leg(request, err, detail);
		return;
	}
	if (json_loose_whole(call->answer.body, &value) &&
	    json_loose_kind(value) == JSON_LOOSE_OBJECT)
		mcp_message_read(value, &message);
	if (json_loose_same_id(message.id, mcp_round_leg_id(request)) &&
	    mcp_round_takes(request, value, &message)) {
		begin_round(request);
	} else if (round->failed) {
		mcp_round_fail_leg(request, ERR_BUSY, NULL);
	} else {
		mcp_count_whole(request, call->answer.body);
		pass_whole(request, &message);
	}
}

static void on_done(struct mcp_request *request)
{
	if (request->round->streams)
		stream_done(request);
	else
		whole_done(request);
}

static bool on_head(struct mcp_request *request, const struct mcp_answer_head *head)
{
	struct mcp_round *round = request->round;

	if (!mcp_round_begun(request)) {
		if (!mcp_head_pass(request, head))
			return false;
		net_timer_stop(request->host->loop, &round->patience);
		mcp_stream_begin(request, request->call.answer.status);
	}
	if (request->filter.events == NULL)
		mcp_filter_init(&request->filter, &mcp_round_events, &request->arena, false);
	request->filter.rounds = true;
	request->filter.whole = !slice_absent(round->id); /* an id is put back */
	mcp_filter_again(&request->filter);
	round->streams = true;
	return true;
}

/* ---- begin and end ---- */

static void on_drop(struct mcp_request *request)
{
	struct mcp_round *round = request->round;

	request->legs = NULL;
	net_timer_stop(request->host->loop, &round->patience);
	drop_entries(round);
	arena_give(&round->sent);
	arena_give(&round->heard);
}

static const struct mcp_legs legs = { .head = on_head, .done = on_done, .drop = on_drop };

static bool begin(struct mcp_request *request, const struct mcp_round_rule *rule)
{
	struct mcp_round *round = arena_zero(&request->arena, sizeof(*round));
	struct mcp_token *token = &request->link.token;

	if (round == NULL)
		return false;
	round->request = request;
	round->rule = *rule;
	request->tool = mcp_tool_of(&request->posted.first);
	arena_init(&round->sent, request->host->arenas, MCP_ROUND_ARENA);
	arena_init(&round->heard, request->host->arenas, MCP_ROUND_ARENA);
	token->revision = slice_str(revision_name(REVISION_2026_07_28));
	token->mode = rule->answers ? MCP_MODE_BACKFILL : MCP_MODE_REFUSE;
	request->round = round;
	request->legs = &legs;
	return true;
}

bool mcp_round_serve(struct mcp_request *request)
{
	const struct plan *plan = mcp_grant(request);
	const struct mcp_round_rule rule =
		request->link.token.bridged
			? mcp_bridge_rule(request)
			: mcp_round_rule(request->server->sampling, &request->posted.first,
					 plan != NULL, plan != NULL && plan->capabilities.tools);
	struct mcp_leg leg = { .answers_round = false };

	if (!rule.follows) {
		request->link.token.mode =
			MCP_MODE_RELAY; /* there are no requests of servers to take out */
		return mcp_forward(request, request->text);
	}
	if (!begin(request, &rule))
		return mcp_refuse_err(request, ERR_BUSY);
	if (!mcp_round_restore(request, &leg))
		return false;
	const struct slice body = write_leg(request, &leg);
	if (slice_absent(body))
		return mcp_refuse_err(request, ERR_BUSY);
	return mcp_forward(request, body);
}
