/* mcp_post.c - the gateway's own messages to a server: answers to its requests (mcp-proxy.md 6.1). */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_removed.h"

enum { TRIES_MAX = 6 };
#define TRY_AGAIN (100 * MSEC) /* doubled each time: some six seconds in all */
#define POST_CONNECT (3 * SEC)
#define POST_DEADLINE (15 * SEC)

struct mcp_sent {
	uint32_t magic, tries;
	struct mcp_host *mcp;
	struct mcp_link link;
	struct arena arena;
	struct slice body;
	struct slice settles; /* the claim that is over with it; absent: none */
	struct upstream_call call;
	struct upstream_extra extra;
	struct upstream_address pin;
	struct iovec sent[2];
	struct net_timer again;
};

static void free_sent(struct mcp_sent *sent)
{
	must_obj(sent, MCP_POST_MAGIC);
	upstream_finish(&sent->call);
	if (!slice_absent(sent->settles))
		mcp_shared_settled(sent->mcp->shared, &sent->link.who, sent->settles);
	sent->magic = 0;
	arena_give(&sent->arena);
	slab_give(&sent->mcp->posts, sent);
}

static bool start(struct mcp_sent *sent);

static void on_again(struct net_timer *timer)
{
	struct mcp_sent *sent = CONTAINER_OF(timer, struct mcp_sent, again);

	if (!start(sent))
		free_sent(sent);
}

static bool may_try_again(const struct mcp_sent *sent)
{
	return sent->call.err != ERR_OK && !sent->call.bytes_sent && sent->tries < TRIES_MAX;
}

/* Only what never reached the server is sent again: a second answer is an error to some. */
static void on_done(struct upstream_call *call)
{
	struct mcp_sent *sent = CONTAINER_OF(call, struct mcp_sent, call);

	if (may_try_again(sent)) {
		const nsec_t wait = TRY_AGAIN << sent->tries;
		sent->tries++;
		upstream_finish(call);
		net_timer_set(sent->mcp->front->loop, &sent->again,
			      net_now(sent->mcp->front->loop) + wait);
		return;
	}
	mcp_count_post(sent->mcp, &sent->link, call);
	if (call->err == ERR_OK && call->answer.status == 404 &&
	    sent->link.token.upstream_id.len != 0)
		mcp_session_over(sent->mcp, &sent->link, MCP_END_UPSTREAM_404);
	free_sent(sent);
}

/* What a server says to an answer is of no use, however much it is. */
static bool on_head(struct upstream_call *call)
{
	(void)call;
	return true;
}

static void on_piece(struct upstream_call *call, struct slice bytes)
{
	(void)bytes;
	upstream_enough(call, true);
}

static bool start(struct mcp_sent *sent)
{
	const struct mcp_server *server = mcp_link_way(sent->mcp, &sent->link);
	struct upstream_call *call = &sent->call;
	struct gather head;

	if (server == NULL)
		return false;
	gather_init(&head, &sent->arena);
	if (!mcp_head_write(&head, server, &sent->link, NULL, false, MCP_VERB_POST,
			    slice_of(NULL, 0), sent->body.len))
		return false;
	const struct slice flat = gather_flat(&head, &sent->arena);
	if (slice_absent(flat))
		return false;
	sent->sent[0] = (struct iovec){ (void *)(uintptr_t)flat.at, flat.len };
	sent->sent[1] = (struct iovec){ (void *)(uintptr_t)sent->body.at, sent->body.len };
	call->request = sent->sent;
	call->request_count = 2;
	call->into = &sent->arena;
	call->done = on_done;
	call->head = on_head;
	call->piece = on_piece;
	call->deadline = net_now(sent->mcp->front->loop) + POST_DEADLINE;
	call->timeouts = server->timeouts;
	if (call->timeouts.connect > POST_CONNECT)
		call->timeouts.connect = POST_CONNECT;
	return mcp_call_start(sent->mcp, server, &sent->link, call, &sent->extra, &sent->pin);
}

bool mcp_post_answer(struct mcp_host *mcp, const struct mcp_link *link, const struct gather *body,
		     struct slice settles)
{
	struct mcp_sent *sent = slab_take(&mcp->posts);

	if (sent == NULL)
		return false;
	*sent = (struct mcp_sent){ .magic = MCP_POST_MAGIC, .mcp = mcp, .again.fire = on_again };
	arena_init(&sent->arena, mcp->front->arenas, MCP_ARENA_MAX);
	sent->body = gather_flat(body, &sent->arena);
	const struct slice claim =
		slice_absent(settles) ? settles : arena_copy(&sent->arena, settles);
	if (!slice_absent(sent->body) && slice_absent(claim) == slice_absent(settles) &&
	    mcp_link_copy(&sent->link, link, &sent->arena) && start(sent)) {
		sent->settles = claim;
		return true;
	}
	free_sent(sent);
	return false;
}

bool mcp_post(struct mcp_host *mcp, const struct mcp_link *link, const struct gather *body)
{
	return mcp_post_answer(mcp, link, body, slice_of(NULL, 0));
}

void mcp_post_error(struct mcp_host *mcp, const struct mcp_link *link, struct slice id,
		    const struct fault *fault, const struct error_data *data)
{
	struct arena arena;
	struct gather body;

	arena_init(&arena, mcp->front->arenas, MCP_ARENA_MAX);
	gather_init(&body, &arena);
	jsonrpc_write_error(&body, id, fault, data);
	if (gather_done(&body) != ERR_OK || !mcp_post(mcp, link, &body))
		mcp_count_lost(mcp, link);
	arena_give(&arena);
}

void mcp_post_too_large(struct mcp_host *mcp, const struct mcp_link *link, struct slice id)
{
	const struct fault fault = { .err = ERR_INTERNAL,
				     .offset = FAULT_NO_OFFSET,
				     .detail = "The request is larger than the gateway can hold" };

	mcp_post_error(mcp, link, id, &fault, NULL);
}

bool mcp_post_slab(struct slab *slab)
{
	return slab_init(slab, sizeof(struct mcp_sent), MCP_POSTS_MAX);
}
