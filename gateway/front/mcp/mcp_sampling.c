/* mcp_sampling.c - a server's samplings: each is a call of the core without an exchange, and is answered by a POST
 * (mcp-proxy.md 6). */
#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "codec/set.h"
#include "gateway/front/mcp/mcp_sampling_parts.h"

#include "gateway/telemetry/metrics.h"

/* Whether another gateway has the answer by now is asked so often. */
#define AGAIN_FIRST (100 * MSEC) /* then twice as long each time */
#define AGAIN_MOST (2 * SEC)

/* ---- the end ---- */

static void leave_stream(struct mcp_sampling *sampling)
{
	if (sampling->place == NULL)
		return;
	*sampling->place = sampling->next;
	if (sampling->next != NULL)
		sampling->next->place = sampling->place;
	sampling->stream->heard = net_now(sampling->mcp->front->loop);
	sampling->place = NULL;
	sampling->stream = NULL;
}

static void count(const struct mcp_sampling *sampling, enum err outcome)
{
	metrics_mcp_sampling(sampling->mcp->metrics, sampling->link.series, outcome);
}

static void free_sampling(struct mcp_sampling *sampling)
{
	must_obj(sampling, MCP_SAMPLING_MAGIC);
	net_timer_stop(sampling->mcp->front->loop, &sampling->progress);
	net_timer_stop(sampling->mcp->front->loop, &sampling->again);
	leave_stream(sampling);
	cancel_leave(&sampling->by_id);
	cancel_leave(&sampling->by_session);
	mcp_ask_forget(&sampling->claim);
	if (sampling->claimed)
		mcp_shared_settled(sampling->mcp->shared, &sampling->link.who, sampling->id_text);
	sampling->magic = 0;
	arena_give(&sampling->arena);
	slab_give(&sampling->mcp->samplings, sampling);
}

/* The server gave it up, or the session is over: nobody waits for an answer. */
static void abandon(struct mcp_sampling *sampling, enum err outcome)
{
	count(sampling, outcome);
	if (sampling->call != NULL)
		sampling_abandon(sampling->call);
	free_sampling(sampling);
}

static void on_given_up(struct cancel_entry *entry)
{
	abandon(CONTAINER_OF(entry, struct mcp_sampling, by_id), ERR_CANCELLED);
}

static void on_session_over(struct cancel_entry *entry)
{
	abandon(CONTAINER_OF(entry, struct mcp_sampling, by_session), ERR_CANCELLED);
}

/* ---- the answer ---- */

/* Another gateway has been asked for the same, and its answer will be this one's, too: of a round that has come to both.
 * False: it is no such outcome, or there is no time. */
static bool ask_again_later(struct mcp_sampling *sampling, const struct sampling_outcome *outcome)
{
	struct net_loop *loop = sampling->mcp->front->loop;
	const nsec_t now = net_now(loop), deadline = sampling->ask.deadline;

	if (outcome->end != SAMPLING_REFUSED || outcome->fault.err != ERR_DUPLICATE_IN_FLIGHT ||
	    now >= deadline)
		return false;
	sampling->status = err_info(outcome->fault.err)->status;
	sampling_end(sampling->call, ERR_OK);
	sampling->call = NULL;
	sampling->pause = sampling->pause == 0 ? AGAIN_FIRST : 2 * sampling->pause;
	if (sampling->pause > AGAIN_MOST)
		sampling->pause = AGAIN_MOST;
	net_timer_set(loop, &sampling->again,
		      sampling->pause < deadline - now ? now + sampling->pause : deadline);
	return true;
}

static void on_done(void *owner, const struct sampling_outcome *outcome)
{
	struct mcp_sampling *sampling = owner;

	must_obj(sampling, MCP_SAMPLING_MAGIC);
	struct mcp_entry *entry = sampling->entry;
	if (ask_again_later(sampling, outcome))
		return;
	mcp_sampling_answer(sampling, outcome);
	count(sampling, outcome->end == SAMPLING_REFUSED ? outcome->fault.err : ERR_OK);
	sampling_end(sampling->call, ERR_OK);
	free_sampling(sampling);
	if (entry != NULL)
		entry->events->go_on(entry->request);
}

/* What is asked: its params and the revision, which shapes the answer. */
static void on_digest(void *owner, struct sha256_sum *sum)
{
	const struct mcp_sampling *sampling = owner;

	sha256_add(sum, SLICE("mcp:"));
	sha256_add(sum, sampling->link.token.server);
	sha256_add(sum, slice_str(revision_name(mcp_link_revision(&sampling->link))));
	sha256_add(sum, sampling->rpc.params);
}

static void on_report(const void *owner, struct log_request *line)
{
	const struct mcp_sampling *sampling = owner;

	line->revision = revision_name(mcp_link_revision(&sampling->link));
	line->rpc = "sampling/createMessage";
	if (line->detail == NULL)
		line->detail = sampling->detail;
	line->client = sampling->client;
	line->tool = sampling->tool;
	line->status = line->err == ERR_CANCELLED ? 499 : sampling->status;
}

static const struct sampling_front sampling_front = {
	.name = "mcp",
	.digest = on_digest,
	.keep = mcp_sampling_keep,
	.done = on_done,
	.report = on_report,
};

/* ---- the request ---- */

/* Refused before the core was asked: its log line, and the server's answer. */
static void refuse(struct mcp_sampling *sampling, const struct fault *fault)
{
	count(sampling, fault->err);
	sampling->status = err_info(fault->err)->status;
	sampling->detail = fault->detail;
	sampling_refused(sampling->mcp->front->core, &sampling->ask, &sampling_front, sampling,
			 fault->err);
	if (sampling->entry != NULL)
		sampling->entry->events->failed(sampling->entry, fault, NULL);
	else
		mcp_post_error(sampling->mcp, &sampling->link, sampling->id, fault, NULL);
	free_sampling(sampling);
}

static void refuse_err(struct mcp_sampling *sampling, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	refuse(sampling, &fault);
}

/* Of the tenant that the session belongs to, for the server that asks. False: no memory. */
static bool copy_caller(struct mcp_sampling *sampling, const struct caller *caller)
{
	sampling->caller = *caller;
	sampling->caller.server = sampling->link.token.server;
	sampling->caller.tenant = arena_copy(&sampling->arena, caller->tenant);
	if (!slice_absent(caller->server))
		sampling->client = arena_copy(&sampling->arena, caller->server);
	return !slice_absent(sampling->caller.tenant) &&
	       slice_absent(sampling->client) == slice_absent(caller->server);
}

static bool find_account(struct mcp_sampling *sampling)
{
	return caller_account(&sampling->caller, sampling->mcp->front->config,
			      &sampling->caller.account, &sampling->caller.plan);
}

static nsec_t deadline_of(const struct mcp_sampling *sampling, nsec_t now)
{
	const struct tenant_limits *limits = &sampling->caller.plan->limits;
	nsec_t deadline = now + limits->deadline_progress;

	if (slice_absent(sampling->request.progress_token))
		deadline = now + (limits->deadline < MCP_SAMPLING_DEADLINE ? limits->deadline
									   : MCP_SAMPLING_DEADLINE);
	if (sampling->entry != NULL && sampling->entry->until < deadline)
		deadline = sampling->entry->until;
	return deadline;
}

/* A call that is open, perhaps on another worker: its texts stay as they are while it is in. */
static void note_tool(const struct cancel_entry *entry, void *arg)
{
	const struct mcp_request *request = CONTAINER_OF(entry, struct mcp_request, by_session);
	struct mcp_sampling *sampling = arg;

	if (!slice_absent(request->tool))
		sampling->tool = arena_copy(&sampling->arena, request->tool);
}

/* A sampling on the session's own stream is taken to be for the only call that is open. */
static void find_tool(struct mcp_sampling *sampling)
{
	if (cancel_each(sampling->mcp->cancels, mcp_call_key(&sampling->link.who.key, SLICE("")),
			note_tool, sampling) != 1)
		sampling->tool = slice_of(NULL, 0);
}

static void join_stream(struct mcp_sampling *sampling, struct mcp_request *stream)
{
	sampling->stream = stream;
	sampling->next = stream->samplings;
	sampling->place = &stream->samplings;
	if (sampling->next != NULL)
		sampling->next->place = &sampling->next;
	stream->samplings = sampling;
}

/* From here on it can be given up. */
static void enter(struct mcp_sampling *sampling, struct mcp_request *stream)
{
	struct mcp_host *mcp = sampling->mcp;

	if (stream == NULL)
		find_tool(sampling);
	else if (!slice_absent(stream->tool))
		sampling->tool = arena_copy(&sampling->arena, stream->tool);
	if (stream != NULL && sampling->entry == NULL)
		join_stream(sampling, stream);
	if (!mcp_link_has_session(&sampling->link))
		return;
	sampling->busy =
		cancel_count(mcp->cancels, sampling->link.who.key) >= MCP_SESSION_SAMPLINGS_MAX;
	sampling->by_id.key = mcp_asked_key(&sampling->link.who.key, sampling->id_text);
	sampling->by_id.cancelled = on_given_up;
	cancel_enter(mcp->cancels, &sampling->by_id, mcp->inbox);
	sampling->by_session.key = sampling->link.who.key;
	sampling->by_session.cancelled = on_session_over;
	cancel_enter(mcp->cancels, &sampling->by_session, mcp->inbox);
}

/* Names the request to all gateways: the same one is paid for once. */
static void name_once(struct mcp_sampling *sampling)
{
	static const struct mcp_digest none;
	const struct mcp_entry *entry = sampling->entry;
	const struct state_key key = mcp_asked_key(&sampling->link.who.key, sampling->id_text);

	_Static_assert((int)MCP_DIGEST_BYTES == (int)STATE_KEY_BYTES, "both fit `once`");
	if (entry != NULL ? mcp_digest_eq(&entry->once, &none)
			  : !mcp_link_has_session(&sampling->link))
		return;
	(void)hex_put_bytes(sampling->once, entry != NULL ? entry->once.at : key.at,
			    STATE_KEY_BYTES);
	sampling->ask.idempotency_key = slice_of(sampling->once, sizeof(sampling->once));
}

/* Asks the core. False: it has no room. */
static bool ask(struct mcp_sampling *sampling)
{
	sampling->call = sampling_begin(sampling->mcp->front->core, &sampling->ask, &sampling_front,
					sampling);
	return sampling->call != NULL;
}

static void on_again(struct net_timer *timer)
{
	struct mcp_sampling *sampling = CONTAINER_OF(timer, struct mcp_sampling, again);
	struct mcp_entry *entry = sampling->entry;
	const bool known = find_account(sampling); /* a reload may have come */

	sampling_new_ids(sampling->mcp->front->core, slice_of(NULL, 0), &sampling->ids);
	if (known && ask(sampling))
		return;
	if (!known)
		sampling->ask.caller = NULL;
	refuse_err(sampling, known ? ERR_BUSY : ERR_UNAUTHORIZED);
	if (entry != NULL)
		entry->events->go_on(entry->request);
}

static void ask_core(struct mcp_sampling *sampling)
{
	struct mcp_host *mcp = sampling->mcp;
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	const enum err err = sampling_read(
		sampling->ask.body, mcp_link_revision(&sampling->link), &sampling_limits_default,
		mcp->front->json, &sampling->arena, &sampling->rpc, &sampling->request, &fault);

	if (err != ERR_OK) {
		fault.err = err;
		refuse(sampling, &fault);
		return;
	}
	sampling->ask.request = &sampling->request;
	sampling->ask.deadline = deadline_of(sampling, sampling->ask.started);
	name_once(sampling);
	sampling->again.fire = on_again;
	if (!ask(sampling))
		refuse_err(sampling, ERR_BUSY);
	else if (sampling->entry != NULL)
		sampling->entry->sampling = sampling;
	else
		mcp_sampling_progress(sampling);
}

/* False: there is no memory, not even for the error. */
static bool init(struct mcp_sampling *sampling, struct mcp_host *mcp, const struct mcp_link *link,
		 const struct caller *caller, struct slice text, const struct mcp_message *message)
{
	const size_t id_at = (size_t)(message->id.at - text.at);

	*sampling = (struct mcp_sampling){ .magic = MCP_SAMPLING_MAGIC, .mcp = mcp };
	arena_init(&sampling->arena, mcp->front->arenas, MCP_ARENA_MAX);
	sampling_new_ids(mcp->front->core, slice_of(NULL, 0), &sampling->ids);
	text = arena_copy(&sampling->arena, text);
	if (slice_absent(text) || !mcp_link_copy(&sampling->link, link, &sampling->arena) ||
	    !copy_caller(sampling, caller))
		return false;
	sampling->id = slice_of(text.at + id_at, message->id.len);
	sampling->id_text = json_loose_id_text(sampling->id, &sampling->arena);
	sampling->ask = (struct sampling_ask){
		.caller = &sampling->caller,
		.ids = &sampling->ids,
		.arena = &sampling->arena,
		.body = text,
		.at = SLICE("$.params"),
		.started = net_now(mcp->front->loop),
		.deadline = NSEC_NEVER,
		.started_wall_ns = net_wall_ns(mcp->front->loop),
	};
	return !slice_absent(sampling->id_text);
}

/* Whether it came without an open request of the client, where that is not allowed. */
static bool is_unsolicited(const struct mcp_sampling *sampling)
{
	const struct mcp_server *server = mcp_link_server(sampling->mcp, &sampling->link);

	return server != NULL && !server->unsolicited && sampling->claim.calls == 0 &&
	       cancel_count(sampling->mcp->cancels,
			    mcp_call_key(&sampling->link.who.key, SLICE(""))) == 0;
}

void mcp_sampling_admit(struct mcp_sampling *sampling)
{
	const struct mcp_link *link = &sampling->link;

	if (!find_account(sampling)) {
		sampling->ask.caller = NULL;
		refuse_err(sampling, ERR_UNAUTHORIZED);
	} else if (!plan_may_use_mcp(sampling->caller.account->plan, link->token.server)) {
		refuse_err(sampling, ERR_SERVER_FORBIDDEN);
	} else if (!mcp_link_answers(link)) {
		refuse_err(sampling, ERR_SAMPLING_REFUSED);
	} else if (sampling->unsolicited && is_unsolicited(sampling)) {
		refuse_err(sampling, ERR_UNSOLICITED);
	} else if (sampling->busy) {
		refuse_err(sampling, ERR_SAMPLINGS_BUSY);
	} else {
		ask_core(sampling);
	}
}

void mcp_sampling_leave(struct mcp_sampling *sampling)
{
	free_sampling(sampling);
}

/* A request that comes again, because its stream was resumed, is answered once (mcp-proxy.md 5.3.3). */
static bool is_repeated(struct mcp_host *mcp, const struct mcp_link *link, struct slice id_text)
{
	return mcp_link_has_session(link) &&
	       mcp_session_claim(mcp->channels, &link->who, id_text, net_now(mcp->front->loop)) ==
		       MCP_CLAIMED_BEFORE;
}

static void no_memory(struct mcp_host *mcp, const struct mcp_link *link, struct slice id)
{
	const struct fault busy = { .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };

	metrics_mcp_sampling(mcp->metrics, link->series, ERR_BUSY);
	mcp_post_error(mcp, link, id, &busy, NULL);
}

void mcp_sampling_begin(struct mcp_host *mcp, const struct mcp_link *link,
			const struct caller *caller, struct slice text,
			const struct mcp_message *message, struct mcp_request *stream)
{
	struct mcp_sampling *sampling = slab_take(&mcp->samplings);

	if (sampling == NULL) {
		no_memory(mcp, link, message->id);
		return;
	}
	if (!init(sampling, mcp, link, caller, text, message)) {
		no_memory(mcp, link, message->id);
		free_sampling(sampling);
	} else if (is_repeated(mcp, &sampling->link, sampling->id_text)) {
		free_sampling(sampling);
	} else {
		sampling->unsolicited = stream == NULL;
		enter(sampling, stream);
		mcp_sampling_claim(sampling);
	}
}

/* Its server has waited since then. */
static void came_at(struct mcp_sampling *sampling, uint64_t came_s)
{
	const uint64_t now_s = sampling->ask.started_wall_ns / SEC;
	const nsec_t age = now_s > came_s ? (nsec_t)(now_s - came_s) * SEC : 0;

	sampling->ask.started -= age < sampling->ask.started ? age : sampling->ask.started;
}

void mcp_sampling_inherit(struct mcp_host *mcp, const struct mcp_link *link,
			  const struct caller *caller, struct slice text,
			  const struct mcp_message *message, uint64_t came_s)
{
	struct mcp_sampling *sampling = slab_take(&mcp->samplings);

	if (sampling == NULL || !init(sampling, mcp, link, caller, text, message)) {
		no_memory(mcp, link, message->id);
		if (sampling != NULL)
			free_sampling(sampling);
		return;
	}
	came_at(sampling, came_s);
	enter(sampling, NULL);
	sampling->claimed = true;
	mcp_sampling_admit(sampling);
}

/* ---- an entry of a round ---- */

/* The request that a server of 2026-07-28 does not write: so all samplings are read by one reader. */
static struct slice request_of(struct slice params, struct arena *into)
{
	struct gather text;

	gather_init(&text, into);
	gather_raw(&text,
		   SLICE("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"sampling/createMessage\""));
	if (!slice_absent(params)) {
		gather_lit(&text, ",\"params\":");
		gather_raw(&text, params);
	}
	gather_lit(&text, "}");
	return gather_done(&text) == ERR_OK ? gather_flat(&text, into) : slice_of(NULL, 0);
}

static bool init_entry(struct mcp_sampling *sampling, struct mcp_host *mcp,
		       const struct mcp_link *link, const struct caller *caller, struct slice text)
{
	struct mcp_message message;

	mcp_message_read(text, &message);
	return init(sampling, mcp, link, caller, text, &message);
}

void mcp_sampling_ask(struct mcp_host *mcp, const struct mcp_link *link,
		      const struct caller *caller, struct slice params, struct mcp_entry *entry)
{
	const struct fault busy = { .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };
	struct arena scratch;

	arena_init(&scratch, mcp->front->arenas, MCP_ARENA_MAX);
	const struct slice text = request_of(params, &scratch);
	struct mcp_sampling *sampling = slice_absent(text) ? NULL : slab_take(&mcp->samplings);
	if (sampling == NULL) {
		entry->events->failed(entry, &busy, NULL);
	} else if (!init_entry(sampling, mcp, link, caller, text)) {
		entry->events->failed(entry, &busy, NULL);
		free_sampling(sampling);
	} else {
		sampling->entry = entry;
		enter(sampling, entry->request);
		mcp_sampling_admit(sampling);
	}
	arena_give(&scratch);
}

void mcp_sampling_drop(struct mcp_sampling *sampling)
{
	abandon(sampling, ERR_CANCELLED);
}

/* ---- given up ---- */

bool mcp_sampling_cancelled(struct mcp_host *mcp, const struct mcp_link *link, struct slice id)
{
	struct arena arena;
	bool ours = false;

	if (!mcp_link_has_session(link))
		return false;
	arena_init(&arena, mcp->front->arenas, MCP_ARENA_MAX);
	const struct slice text = json_loose_id_text(id, &arena);
	if (!slice_absent(text) && mcp_session_claimed(mcp->channels, &link->who, text)) {
		const struct state_key key = mcp_asked_key(&link->who.key, text);
		ours = true;
		(void)cancel_all(mcp->cancels, key);
		if (mcp->cancels_elsewhere != NULL)
			cancel_redis_tell(mcp->cancels_elsewhere, key);
	}
	arena_give(&arena);
	return ours;
}

void mcp_samplings_detach(struct mcp_request *stream)
{
	while (stream->samplings != NULL)
		leave_stream(stream->samplings);
}

void mcp_samplings_stop(struct mcp_request *stream)
{
	const struct fault fault = { .err = ERR_SAMPLING_CANCELLED, .offset = FAULT_NO_OFFSET };

	for (struct mcp_sampling *sampling = stream->samplings, *next; sampling != NULL;
	     sampling = next) {
		next = sampling->next;
		if (sampling->claim.calls > 1) /* it may be for a call at another gateway */
			continue;
		mcp_post_error(sampling->mcp, &sampling->link, sampling->id, &fault, NULL);
		abandon(sampling, ERR_SAMPLING_CANCELLED);
	}
}

bool mcp_sampling_slab(struct slab *slab)
{
	return slab_init(slab, sizeof(struct mcp_sampling), MCP_SAMPLINGS_MAX);
}
