/* mcp_shared_announce.c - of which sessions this worker is the home is told again. */
#include "gateway/state/mcp_shared_parts.h"

enum {
	BUCKETS = KEY_SHARDS * MCP_SHARD_BUCKETS,
	/* There are some four records in one, of all workers. */
	BUCKET_HOMES = 16,
};
_Static_assert((int)BUCKET_HOMES <= (int)MCP_ANNOUNCE_MAX, "they are asked for together");

/* That worker became the home of before Redis went: others may have opened a second one since. */
static bool is_known(const struct mcp_shared *shared, const struct mcp_session *session)
{
	return peer_address_same_gateway(&session->home_at, &shared->own);
}

/* This worker's, of one bucket; of all, or of those that are known. */
static uint32_t homes_in(const struct mcp_shared *shared, size_t bucket,
			 struct mcp_who whos[BUCKET_HOMES])
{
	struct mcp_shard *shard = &shared->channels->shards[bucket / MCP_SHARD_BUCKETS];
	uint32_t count = 0;

	key_shard_lock(&shard->keys);
	for (const struct key_link *link = shard->keys.buckets[bucket % MCP_SHARD_BUCKETS];
	     link != NULL && count < BUCKET_HOMES; link = link->next) {
		const struct mcp_session *session = CONTAINER_OF(link, struct mcp_session, link);
		const struct mcp_home *home = session->home;
		if (home != NULL && home->inbox == shared->inbox &&
		    (shared->announce.all || is_known(shared, session)))
			whos[count++] = home->who;
	}
	mcp_shard_unlock(shard);
	return count;
}

/* NULL: this worker is not the session's home. */
static struct mcp_home *own_home(const struct mcp_shared *shared, const struct state_key *key)
{
	struct mcp_shard *shard = mcp_shard_lock(shared->channels, key);
	const struct mcp_session *session = mcp_session_find(shard, key);
	struct mcp_home *home = session == NULL ? NULL : session->home;

	if (home != NULL && home->inbox != shared->inbox)
		home = NULL;
	mcp_shard_unlock(shard);
	return home;
}

static void go_on(struct mcp_shared *shared);

static void on_done(struct mcp_ask *ask)
{
	struct mcp_shared *shared = ask->owner;
	const bool gone = ask->answer == MCP_SHARED_OTHERS &&
			  !peer_address_same_gateway(&ask->home, &shared->own);
	struct mcp_home *home = gone ? own_home(shared, &ask->who.key) : NULL;

	shared->announce.free[shared->announce.free_count++] = ask;
	if (home != NULL) {
		home->state = MCP_CHANNEL_REPLACED;
		home->told(home);
	}
	go_on(shared);
}

/* False: Redis is away; when it is back, all begins anew. */
static bool say_again(struct mcp_shared *shared, const struct mcp_who *who)
{
	struct mcp_announce *announce = &shared->announce;
	struct mcp_ask *ask = announce->free[announce->free_count - 1];

	*ask = (struct mcp_ask){
		.who = *who, .done = on_done, .owner = shared, .kind = MCP_ASK_HOME, .take = true
	};
	if (!mcp_shared_send(shared, ask))
		return false;
	announce->free_count--;
	return true;
}

static void go_on(struct mcp_shared *shared)
{
	struct mcp_announce *announce = &shared->announce;
	struct mcp_who whos[BUCKET_HOMES];

	while (announce->bucket < BUCKETS && announce->free_count >= BUCKET_HOMES) {
		const uint32_t count = homes_in(shared, announce->bucket++, whos);
		for (uint32_t i = 0; i < count; i++) {
			if (say_again(shared, &whos[i]))
				continue;
			announce->bucket = BUCKETS;
			return;
		}
	}
}

static void begin(struct mcp_shared *shared, bool all)
{
	shared->announce.all = all;
	shared->announce.bucket = 0;
	go_on(shared);
}

static void on_later(struct net_timer *timer)
{
	begin(CONTAINER_OF(timer, struct mcp_shared, announce.later), true);
}

void mcp_shared_announce(struct mcp_shared *shared)
{
	begin(shared, false);
	net_timer_set(shared->loop, &shared->announce.later,
		      mcp_shared_now(shared) + MCP_ANNOUNCE_LATER);
}

void mcp_shared_announce_init(struct mcp_shared *shared)
{
	struct mcp_announce *announce = &shared->announce;

	announce->later.fire = on_later;
	announce->bucket = BUCKETS;
	while (announce->free_count < MCP_ANNOUNCE_MAX) {
		announce->free[announce->free_count] = &announce->asks[announce->free_count];
		announce->free_count++;
	}
}
