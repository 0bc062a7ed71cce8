/* mcp_own.c - the GET stream that the gateway holds in a session whose samplings it answers (mcp-proxy.md 5.1).
 *
 * There is one in a session, whatever its clients do: servers that get a second one refuse it, or take the first one's
 * place away. What is not sampling goes to the session's channel, from which the client's GET is served. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_removed.h"
#include "gateway/telemetry/metrics.h"

#define BACKOFF_FIRST SEC
#define BACKOFF_MOST (30 * SEC)
#define BACKOFF_LEAST (100 * MSEC) /* whatever the server says */
#define RETIRE_EVERY SEC
#define RETIRE_SHARED (60 * SEC) /* where there are other gateways */

struct mcp_own {
	uint32_t magic;
	bool opened;       /* the server has answered one with a stream */
	bool events;       /* this answer is one */
	bool resumes;      /* another gateway had it open */
	bool held;         /* all gateways know that the stream is this one's */
	uint32_t failures; /* in a row */
	struct mcp_host *mcp;
	struct mcp_home home;
	struct mcp_link link;
	struct caller caller;
	struct arena arena, requests; /* requests: of the call under way */
	struct upstream_call call;
	struct upstream_extra extra;
	struct upstream_address pin;
	struct iovec sent;
	struct mcp_filter filter;
	struct mcp_held share; /* what it holds of its tenant's */
	struct net_timer again, overdue;
	struct mcp_request *waiter;    /* that waits for it to open; NULL: none */
	struct mcp_ask ask;            /* whether another gateway has the session's stream */
	struct net_timer retire;       /* its server was removed: when to look again */
	struct mcp_own *next, **place; /* in all_owns */
};

/* ---- the end ---- */

/* Whatever waits for the stream goes on. */
static void wake_waiter(struct mcp_own *own)
{
	struct mcp_request *request = own->waiter;

	own->waiter = NULL;
	if (request == NULL)
		return;
	request->own = NULL;
	request->own_opened(request);
}

static void answer_lost(struct mcp_own *own, struct mcp_lost *lost)
{
	for (const struct mcp_lost *at = lost; at != NULL; at = at->next)
		mcp_answer_unheard(own->mcp, &own->link, at->bytes);
	mcp_lost_free(lost);
}

static void free_own(struct mcp_own *own)
{
	struct net_loop *loop = own->mcp->front->loop;

	must_obj(own, MCP_OWN_MAGIC);
	wake_waiter(own);
	if (own->opened)
		metrics_mcp_stream(own->mcp->metrics, own->link.series, METRICS_MCP_OWN, false);
	net_timer_stop(loop, &own->again);
	net_timer_stop(loop, &own->overdue);
	net_timer_stop(loop, &own->retire);
	mcp_ask_forget(&own->ask);
	upstream_cancel(&own->call);
	upstream_finish(&own->call);
	answer_lost(own, mcp_home_close(&own->home));
	if (own->held && own->home.state != MCP_CHANNEL_ENDED)
		mcp_shared_freed(own->mcp->shared, &own->link.who);
	*own->place = own->next;
	if (own->next != NULL)
		own->next->place = own->place;
	mcp_hold_nothing(&own->mcp->shares, &own->share);
	mcp_filter_free(&own->filter);
	own->magic = 0;
	arena_give(&own->requests);
	arena_give(&own->arena);
	slab_give(&own->mcp->owns, own);
}

/* The session has ended, nobody uses it, or another gateway has its stream by now. */
static void on_told(struct mcp_home *home)
{
	struct mcp_own *own = CONTAINER_OF(home, struct mcp_own, home);

	if (home->state == MCP_CHANNEL_REPLACED)
		own->held = false;
	free_own(own);
}

/* ---- events ---- */

static struct mcp_own *of_filter(struct mcp_filter *filter)
{
	return CONTAINER_OF(filter, struct mcp_own, filter);
}

static void set_overdue(struct mcp_own *own)
{
	struct net_loop *loop = own->mcp->front->loop;
	struct mcp_lost *lost = NULL;
	const nsec_t next = mcp_home_overdue(&own->home, net_now(loop), &lost);

	answer_lost(own, lost);
	if (next != NSEC_NEVER)
		net_timer_set(loop, &own->overdue, next);
}

static void on_overdue(struct net_timer *timer)
{
	set_overdue(CONTAINER_OF(timer, struct mcp_own, overdue));
}

/* Whoever takes the stream over goes on behind this event. */
static void note_id(struct mcp_own *own)
{
	if (own->held)
		mcp_shared_saw(own->mcp->shared, &own->link.who,
			       mcp_buffer_slice(&own->filter.last_id));
}

static bool on_pass(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_own *own = of_filter(filter);
	mcp_count_passed(own->mcp, &own->link, passed);
	const struct mcp_event event = { .bytes = passed->raw,
					 .id = passed->id,
					 .request = passed->asks };
	struct mcp_lost *lost = NULL;
	const bool queued =
		mcp_home_push(&own->home, &event, net_now(own->mcp->front->loop), &lost);

	if (!slice_absent(passed->id))
		note_id(own);
	answer_lost(own, lost);
	if (!queued && passed->asks)
		mcp_answer_unheard(own->mcp, &own->link, passed->raw);
	if (queued && (passed->asks || own->overdue.place == 0))
		set_overdue(own);
	return true;
}

static void on_take(struct mcp_filter *filter, struct slice text, const struct mcp_message *message)
{
	struct mcp_own *own = of_filter(filter);

	if (filter->last_id.len != 0) {
		mcp_home_saw(&own->home, mcp_buffer_slice(&filter->last_id));
		note_id(own);
	}
	mcp_sampling_begin(own->mcp, &own->link, &own->caller, text, message, NULL);
}

static bool on_cancel(struct mcp_filter *filter, struct slice id)
{
	struct mcp_own *own = of_filter(filter);

	return mcp_sampling_cancelled(own->mcp, &own->link, id);
}

static void on_too_large(struct mcp_filter *filter, struct slice id)
{
	struct mcp_own *own = of_filter(filter);

	mcp_post_too_large(own->mcp, &own->link, id);
}

static const struct mcp_filter_events own_events = {
	.pass = on_pass, .take = on_take, .cancel = on_cancel, .too_large = on_too_large
};

/* ---- the call ---- */

static bool on_head(struct upstream_call *call)
{
	struct mcp_own *own = CONTAINER_OF(call, struct mcp_own, call);
	struct mcp_answer_head head;

	mcp_head_read(own->extra.fields, &head);
	own->events = head.events && call->answer.status == 200;
	if (!own->events)
		return false;
	own->failures = 0;
	mcp_filter_again(&own->filter);
	if (!own->opened) {
		mcp_home_answered(&own->home, true);
		metrics_mcp_stream(own->mcp->metrics, own->link.series, METRICS_MCP_OWN, true);
	}
	own->opened = true;
	wake_waiter(own);
	return true;
}

static void on_piece(struct upstream_call *call, struct slice bytes)
{
	struct mcp_own *own = CONTAINER_OF(call, struct mcp_own, call);

	const bool fed = mcp_filter_feed(&own->filter, bytes);

	if (fed && !mcp_hold_bytes(&own->mcp->shares, &own->share, &own->link.token.tenant,
				   own->filter.rest.len))
		mcp_filter_fail(&own->filter);
	if (own->filter.failed)
		upstream_enough(call, false);
	else
		upstream_holds(call, own->filter.rest.len);
}

static void try_later(struct mcp_own *own)
{
	nsec_t wait = BACKOFF_FIRST << (own->failures < 5 ? own->failures : 5);

	if (wait > BACKOFF_MOST)
		wait = BACKOFF_MOST;
	if (own->filter.retries && own->failures == 0 && own->filter.retry_ms < BACKOFF_MOST / MSEC)
		wait = own->filter.retry_ms * MSEC;
	if (wait < BACKOFF_LEAST)
		wait = BACKOFF_LEAST;
	own->failures++;
	upstream_finish(&own->call);
	wake_waiter(own);
	net_timer_set(own->mcp->front->loop, &own->again, net_now(own->mcp->front->loop) + wait);
}

/* A server that has no such stream, or not a second time, keeps its session (mcp-proxy.md 5.1 (c)). */
static bool is_final(const struct mcp_own *own)
{
	const int status = own->call.answer.status;

	return own->call.err == ERR_OK && !own->events && status >= 400 && status < 500 &&
	       status != 408 && status != 429 && !(status == 409 && own->failures < 5);
}

static void on_done(struct upstream_call *call)
{
	struct mcp_own *own = CONTAINER_OF(call, struct mcp_own, call);

	if (call->err == ERR_BUSY && own->filter.rest.len != 0)
		mcp_filter_fail(&own->filter);
	if (own->filter.failed) {
		free_own(own); /* an event that nobody can hold: there is no going on behind it */
		return;
	}
	if (!is_final(own)) {
		try_later(own);
		return;
	}
	if (call->answer.status == 404 && (own->opened || own->resumes)) {
		mcp_session_over(own->mcp, &own->link, MCP_END_UPSTREAM_404);
	} else if (own->resumes && own->filter.last_id.len != 0) {
		own->filter.last_id.len =
			0; /* of an event that the server does not know any more */
		try_later(own);
		return;
	} else if (own->opened || own->resumes) {
		/* There is no second one: the client's GET stays open, for one that was 200 and then is not ends
		 * its session in some SDKs. */
		upstream_finish(&own->call);
		wake_waiter(own);
		return;
	} else {
		/* Also a 404: some servers have no route for GET. */
		mcp_home_answered(&own->home, false);
		if (own->held)
			mcp_shared_refused(own->mcp->shared, &own->link.who);
		own->held = false;
	}
	free_own(own);
}

/* The head of the next GET, in as little memory as it needs: it stays as long as the stream. */
static bool write_head(struct mcp_own *own, const struct mcp_server *server)
{
	const struct slice last_id = mcp_buffer_slice(&own->filter.last_id);
	struct slice text = slice_of(NULL, 0);
	struct arena scratch;
	struct gather head;

	arena_init(&scratch, own->mcp->front->arenas, MCP_ARENA_MAX);
	gather_init(&head, &scratch);
	if (mcp_head_write(&head, server, &own->link, NULL, false, MCP_VERB_GET,
			   last_id.len != 0 ? last_id : slice_of(NULL, 0), 0))
		text = gather_flat(&head, &scratch);
	arena_give(&own->requests);
	if (!slice_absent(text))
		text = arena_copy(&own->requests, text);
	arena_give(&scratch);
	own->sent = (struct iovec){ (void *)(uintptr_t)text.at, text.len };
	return !slice_absent(text);
}

static bool start(struct mcp_own *own)
{
	const struct mcp_server *server = mcp_link_way(own->mcp, &own->link);
	struct upstream_call *call = &own->call;

	if (server == NULL || !write_head(own, server))
		return false;
	own->events = false;
	call->request = &own->sent;
	call->request_count = 1;
	call->into = &own->requests;
	call->done = on_done;
	call->head = on_head;
	call->piece = on_piece;
	call->deadline = NSEC_NEVER;
	call->timeouts = server->timeouts;
	call->timeouts.idle = NSEC_NEVER;
	own->extra.stream = true;
	return mcp_call_start(own->mcp, server, &own->link, call, &own->extra, &own->pin);
}

static void on_again(struct net_timer *timer)
{
	struct mcp_own *own = CONTAINER_OF(timer, struct mcp_own, again);

	if (!start(own))
		free_own(own);
}

/* ---- opening ---- */

static void on_retire(struct net_timer *timer);

static bool init(struct mcp_own *own, struct mcp_host *mcp, const struct mcp_link *link,
		 const struct caller *caller)
{
	*own = (struct mcp_own){ .magic = MCP_OWN_MAGIC,
				 .mcp = mcp,
				 .caller = *caller,
				 .again.fire = on_again,
				 .overdue.fire = on_overdue,
				 .retire.fire = on_retire };
	arena_init(&own->arena, &mcp->resting, MCP_ARENA_MAX);
	arena_init(&own->requests, &mcp->resting, MCP_ARENA_MAX);
	own->next = mcp->all_owns;
	own->place = &mcp->all_owns;
	if (own->next != NULL)
		own->next->place = &own->next;
	mcp->all_owns = own;
	mcp_filter_init(&own->filter, &own_events, &own->arena, true);
	own->filter.whole = mcp_link_hides(link);
	own->caller.tenant = arena_copy(&own->arena, caller->tenant);
	if (!slice_absent(caller->server))
		own->caller.server = arena_copy(&own->arena, caller->server);
	return !slice_absent(own->caller.tenant) && mcp_link_copy(&own->link, link, &own->arena);
}

/* This worker holds the session's stream from now on. */
static bool take_home(struct mcp_own *own)
{
	struct mcp_host *mcp = own->mcp;

	if (mcp_home_open(mcp->channels, &own->home, mcp->inbox, net_now(mcp->front->loop)) !=
	    MCP_OPENED)
		return false;
	own->held = own->ask.shared != NULL; /* also if the answer was late: Redis may have it */
	if (own->resumes)                    /* a client may have seen that event */
		mcp_home_saw(&own->home, mcp_buffer_slice(&own->filter.last_id));
	return start(own);
}

/* Behind the last event that another gateway has seen on it, if one had the stream before. */
static bool goes_on_behind(struct mcp_own *own, struct slice last_id)
{
	if (last_id.len == 0)
		return true;
	own->resumes = true;
	return mcp_buffer_add(&own->filter.last_id, &own->arena, last_id);
}

/* Redis was late, but another gateway is known to have it. */
static void go_by_what_is_known(struct mcp_own *own)
{
	struct mcp_ask *ask = &own->ask;

	if (ask->answer == MCP_SHARED_UNKNOWN &&
	    mcp_shared_home_known(own->mcp->shared, &own->link.who, &ask->home) &&
	    mcp_home_look(own->mcp->channels, &own->link.who) == MCP_OPENED)
		ask->answer = MCP_SHARED_OTHERS;
}

/* Redis may have this worker for the session's home, and nobody here is. */
static void give_back(struct mcp_own *own)
{
	const enum mcp_shared_answer answer = own->ask.answer;

	if ((answer == MCP_SHARED_MINE || answer == MCP_SHARED_UNKNOWN) &&
	    mcp_home_look(own->mcp->channels, &own->link.who) != MCP_OPEN_TAKEN)
		mcp_shared_freed(own->mcp->shared, &own->link.who);
}

static void on_asked(struct mcp_ask *ask)
{
	struct mcp_own *own = CONTAINER_OF(ask, struct mcp_own, ask);
	struct mcp_request *request = own->waiter;
	go_by_what_is_known(own);
	const bool free = ask->answer == MCP_SHARED_MINE ||
			  (ask->answer == MCP_SHARED_UNKNOWN && request != NULL);
	if (ask->answer == MCP_SHARED_REFUSED)
		mcp_home_refuse(own->mcp->channels, &own->link.who, net_now(own->mcp->front->loop));
	const bool holds = free && goes_on_behind(own, ask->last_id) && take_home(own);

	if (request != NULL && request->home_found != NULL) {
		own->waiter = NULL;
		request->own = NULL;
		request->home_found(request, ask);
	}
	if (holds)
		return;
	give_back(own);
	free_own(own);
}

enum mcp_own_begun mcp_own_open(struct mcp_host *mcp, const struct mcp_link *link,
				const struct caller *caller, struct mcp_request *request)
{
	struct mcp_own *own = NULL;
	enum mcp_own_begun begun = MCP_OWN_OPENS;

	if (!mcp->leaving && mcp_home_look(mcp->channels, &link->who) == MCP_OPENED)
		own = slab_take(&mcp->owns);
	if (own == NULL)
		return MCP_OWN_NOT;
	const bool good = init(own, mcp, link, caller);
	own->home.who = own->ask.who = link->who;
	own->home.told = on_told;
	own->ask.done = on_asked;
	/* While Redis is away, a stream that nobody waits for may be open at another gateway. */
	const bool may_open = request != NULL || mcp->shared == NULL;
	if (good && mcp->shared != NULL && mcp_ask_home(mcp->shared, &own->ask, true)) {
		begun = MCP_OWN_ASKS;
	} else if (!good || !may_open || !take_home(own)) {
		free_own(own);
		return MCP_OWN_NOT;
	}
	own->waiter = request;
	if (request != NULL)
		request->own = own;
	return begun;
}

void mcp_own_forget(struct mcp_request *request)
{
	if (request->own != NULL)
		request->own->waiter = NULL;
	request->own = NULL;
}

bool mcp_own_slab(struct slab *slab)
{
	return slab_init(slab, sizeof(struct mcp_own), MCP_OWN_MAX);
}

static bool is_configured(struct mcp_own *own)
{
	const struct mcp_server *server = mcp_link_server(own->mcp, &own->link);

	return server != NULL && mcp_link_place(&own->link, server);
}

/* Whether calls of the session are open, or samplings. Those at other gateways are not known, and these may have its server
 * still: then it ends when it is idle. */
static bool is_in_use(const struct mcp_own *own)
{
	const struct mcp_host *mcp = own->mcp;

	return mcp->shared != NULL || cancel_count(mcp->cancels, own->link.who.key) != 0 ||
	       cancel_count(mcp->cancels, mcp_call_key(&own->link.who.key, SLICE(""))) != 0;
}

/* The session's server was removed: what is under way ends first. */
static void retire(struct mcp_own *own)
{
	struct mcp_host *mcp = own->mcp;
	struct net_loop *loop = mcp->front->loop;
	const nsec_t wait = mcp->shared == NULL ? RETIRE_EVERY : RETIRE_SHARED;

	if (is_configured(own))
		return;
	if (is_in_use(own)) {
		(void)mcp_link_way(mcp, &own->link); /* which keeps it */
		net_timer_set(loop, &own->retire, net_now(loop) + wait);
		return;
	}
	mcp_session_over(mcp, &own->link, MCP_END_REMOVED);
	free_own(own);
}

static void on_retire(struct net_timer *timer)
{
	retire(CONTAINER_OF(timer, struct mcp_own, retire));
}

void mcp_owns_use_config(struct mcp_host *mcp)
{
	for (struct mcp_own *own = mcp->all_owns, *next; own != NULL; own = next) {
		next = own->next;
		if (mcp_is_revoked(mcp, &own->link, &own->caller))
			free_own(own);
		else
			retire(own);
	}
}

void mcp_owns_end(struct mcp_host *mcp)
{
	while (mcp->all_owns != NULL)
		free_own(mcp->all_owns);
}
