#include "gateway/state/mcp_session.h"

#include "codec/base/must.h"
#include "gateway/state/mcp_channel_parts.h"

#include <stdlib.h>
#include <sys/mman.h>

#define EXPIRE_EVERY SEC /* for want of room, all shards are gone through so often at most */

struct state_key mcp_server_key(struct slice name)
{
	return state_key_of(STATE_MCP_SERVER, SLICE(""), SLICE(""), SLICE(""), name);
}

/* ---- the process's --------------------------------------------------------------------------- */

enum { BUCKETS_BYTES = KEY_SHARDS * MCP_SHARD_BUCKETS * sizeof(struct key_link *) };

static void shard_init(struct mcp_shard *shard, struct key_link **buckets)
{
	key_shard_init(&shard->keys, buckets, MCP_SHARD_BUCKETS);
	list_init(&shard->use);
}

struct mcp_channels *mcp_channels_new(void)
{
	struct mcp_channels *channels = calloc(1, sizeof(*channels));

	if (channels == NULL)
		return NULL;
	channels->buckets = mmap(NULL, BUCKETS_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (channels->buckets == MAP_FAILED) {
		free(channels);
		return NULL;
	}
	if (!mcp_counts_init(&channels->counts)) {
		must(munmap(channels->buckets, BUCKETS_BYTES) == 0);
		free(channels);
		return NULL;
	}
	for (size_t i = 0; i < KEY_SHARDS; i++)
		shard_init(&channels->shards[i], channels->buckets[i]);
	mcp_hub_init(&channels->hub);
	return channels;
}

static struct mcp_session *oldest_of(const struct mcp_shard *shard)
{
	struct list_link *link = list_first(&shard->use);

	return link == NULL ? NULL : CONTAINER_OF(link, struct mcp_session, use);
}

/* ---- records; all under their shard's lock ---------------------------------------------------- */

struct mcp_session *mcp_session_find(struct mcp_shard *shard, const struct state_key *key)
{
	struct key_link *link = key_shard_find(&shard->keys, key);

	return link == NULL ? NULL : CONTAINER_OF(link, struct mcp_session, link);
}

void mcp_session_touch(struct mcp_shard *shard, struct mcp_session *session, nsec_t now)
{
	session->used = now;
	list_remove(&session->use);
	list_add(&shard->use, &session->use);
}

/* What a session that is over, or begins anew, has had. */
static void clear(struct mcp_channels *channels, struct mcp_session *session)
{
	mcp_queue_clear(channels, &session->queue, NULL);
	free(session->queue.seen);
	free(session->claims);
	free(session->about);
	session->queue.seen = NULL;
	session->claims = NULL;
	session->about = NULL;
	session->open = session->refused = false;
	session->home_at = (struct peer_address){ { 0 }, 0 };
}

static void give_place(struct mcp_channels *channels, struct mcp_session *session)
{
	if (session->counted.tenant != 0)
		mcp_counts_sub(&channels->counts, session->counted);
	session->counted = (struct mcp_counted){ 0, 0 };
}

static void forget(struct mcp_channels *channels, struct mcp_shard *shard,
		   struct mcp_session *session)
{
	must(session->home == NULL && session->client == NULL);
	clear(channels, session);
	give_place(channels, session);
	list_remove(&session->use);
	key_shard_remove(&session->link);
	slab_give(&shard->records, session);
}

/* Sessions whose clients' GETs are open are in use. */
static void expire(struct mcp_channels *channels, struct mcp_shard *shard, nsec_t now)
{
	struct mcp_session *session;

	while ((session = oldest_of(shard)) != NULL && now >= session->used + MCP_SESSION_IDLE) {
		if (session->client != NULL) {
			mcp_session_touch(shard, session, now);
			continue;
		}
		mcp_session_tell_home(session, MCP_CHANNEL_IDLE);
		mcp_session_idled(channels, session);
		forget(channels, shard, session);
	}
}

/* The one that has no GET and was not used for longest; NULL: all have. */
static struct mcp_session *victim_of(struct mcp_shard *shard)
{
	struct list_link *link = list_first(&shard->use);

	for (; link != NULL; link = list_next(&shard->use, link)) {
		struct mcp_session *session = CONTAINER_OF(link, struct mcp_session, use);
		if (session->home == NULL && session->client == NULL)
			return session;
	}
	return NULL;
}

static struct mcp_session *take_record(struct mcp_channels *channels, struct mcp_shard *shard)
{
	if (shard->records.objects == NULL &&
	    !slab_init(&shard->records, sizeof(struct mcp_session), MCP_SHARD_SESSIONS))
		return NULL;
	struct mcp_session *session = slab_take(&shard->records);
	struct mcp_session *victim = session == NULL ? victim_of(shard) : NULL;
	if (victim == NULL)
		return session;
	forget(channels, shard, victim);
	return slab_take(&shard->records);
}

/* A record that is not counted yet; NULL: no room. */
static struct mcp_session *add(struct mcp_channels *channels, struct mcp_shard *shard,
			       const struct mcp_who *who, nsec_t now)
{
	expire(channels, shard, now);
	struct mcp_session *session = take_record(channels, shard);
	if (session == NULL)
		return NULL;
	*session = (struct mcp_session){ .key = who->key, .tenant = who->tenant, .used = now };
	mcp_queue_init(&session->queue);
	list_add(&shard->use, &session->use);
	key_shard_add(&shard->keys, &session->link, &session->key);
	return session;
}

static struct mcp_session *find_or_add(struct mcp_channels *channels, struct mcp_shard *shard,
				       const struct mcp_who *who, nsec_t now)
{
	struct mcp_session *session = mcp_session_find(shard, &who->key);

	return session != NULL ? session : add(channels, shard, who, now);
}

struct mcp_session *mcp_session_make(struct mcp_channels *channels, struct mcp_shard *shard,
				     const struct mcp_who *who, nsec_t now)
{
	struct mcp_session *session = find_or_add(channels, shard, who, now);

	if (session != NULL && session->counted.tenant == 0 && !session->ended)
		session->counted = mcp_counts_add(&channels->counts, &who->tenant, &who->server);
	return session;
}

void mcp_channels_free(struct mcp_channels *channels)
{
	if (channels == NULL)
		return;
	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct mcp_shard *shard = &channels->shards[i];
		for (struct mcp_session *session; (session = oldest_of(shard)) != NULL;)
			forget(channels, shard, session);
		if (shard->records.objects != NULL)
			slab_fini(&shard->records);
		key_shard_fini(&shard->keys);
	}
	mcp_hub_fini(&channels->hub);
	mcp_about_free(mcp_sessions_idled(channels));
	mcp_counts_fini(&channels->counts);
	must(munmap(channels->buckets, BUCKETS_BYTES) == 0);
	free(channels);
}

/* ---- places ---------------------------------------------------------------------------------- */

void mcp_sessions_expire(struct mcp_channels *channels, nsec_t now)
{
	atomic_store_explicit(&channels->expired, now, memory_order_relaxed);
	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct mcp_shard *shard = &channels->shards[i];
		key_shard_lock(&shard->keys);
		expire(channels, shard, now);
		key_shard_unlock(&shard->keys);
	}
}

/* Where that was not just done. */
static bool expire_some(struct mcp_channels *channels, nsec_t now)
{
	const nsec_t before = atomic_load_explicit(&channels->expired, memory_order_relaxed);

	if (now < before + EXPIRE_EVERY)
		return false;
	mcp_sessions_expire(channels, now);
	return true;
}

enum mcp_room mcp_place_take(struct mcp_channels *channels, struct mcp_place *target,
			     const struct state_key *tenant, uint32_t tenant_max,
			     const struct state_key *server, uint32_t server_max, nsec_t now)
{
	struct mcp_counted counted;

	*target = (struct mcp_place){ .channels = NULL };
	enum mcp_room room = mcp_counts_take(&channels->counts, tenant, tenant_max, server,
					     server_max, &counted);
	if (room != MCP_ROOM && expire_some(channels, now))
		room = mcp_counts_take(&channels->counts, tenant, tenant_max, server, server_max,
				       &counted);
	if (room == MCP_ROOM)
		*target = (struct mcp_place){ channels, counted.tenant, counted.server };
	return room;
}

void mcp_place_drop(struct mcp_place *target)
{
	if (target->channels != NULL)
		mcp_counts_drop(&target->channels->counts,
				(struct mcp_counted){ target->tenant, target->server });
	target->channels = NULL;
}

void mcp_session_begin(struct mcp_place *target, const struct mcp_who *who, nsec_t now)
{
	struct mcp_channels *channels = target->channels;

	must(channels != NULL);
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_find(shard, &who->key);
	if (session == NULL)
		session = add(channels, shard, who, now);
	else if (session->ended) /* the upstream has used the id of one that is over once more */
		session->ended = false;
	if (session != NULL && session->counted.tenant == 0) {
		session->counted = (struct mcp_counted){ target->tenant, target->server };
		mcp_counts_keep(&channels->counts);
		target->channels = NULL;
	}
	if (session != NULL)
		mcp_session_touch(shard, session, now);
	mcp_shard_unlock(shard);
	mcp_place_drop(target);
}

bool mcp_session_used(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_find(shard, &who->key);
	bool made = session == NULL, renewed = false;

	/* Other gateways may have told of it before. */
	if (made || session->counted.tenant == 0) {
		session = mcp_session_make(channels, shard, who, now);
		made = session != NULL && (made || session->counted.tenant != 0);
	}
	if (session != NULL && !session->ended && now >= session->used + MCP_SESSION_RENEW)
		renewed = true;
	if (renewed)
		mcp_session_touch(shard, session, now);
	mcp_shard_unlock(shard);
	return renewed || made;
}

bool mcp_session_end(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_make(channels, shard, who, now);
	const bool before = session != NULL && session->ended;

	if (session != NULL && !before) {
		mcp_session_tell_client(session, MCP_CHANNEL_ENDED);
		mcp_session_tell_home(session, MCP_CHANNEL_ENDED);
		clear(channels, session);
		give_place(channels, session);
		session->ended = true;
		mcp_session_touch(shard, session, now);
	}
	mcp_shard_unlock(shard);
	return !before;
}

bool mcp_session_ended(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	const struct mcp_session *session = mcp_session_find(shard, &who->key);
	const bool ended =
		session != NULL && session->ended && now < session->used + MCP_SESSION_IDLE;

	mcp_shard_unlock(shard);
	return ended;
}

uint32_t mcp_sessions_of(struct mcp_channels *channels, const struct state_key *server, nsec_t now)
{
	(void)expire_some(channels, now);
	return mcp_counts_of_server(&channels->counts, server);
}

/* ---- server requests ------------------------------------------------------------------------- */

static bool is_claimed(const struct mcp_claims *claims, uint64_t id)
{
	for (uint32_t i = 0; claims != NULL && i < claims->count && i < MCP_IDS_CLAIMED; i++)
		if (claims->at[i] == id)
			return true;
	return false;
}

/* Of a session that is not over. */
static enum mcp_claim claim(struct mcp_channels *channels, struct mcp_session *session, uint64_t id)
{
	if (is_claimed(session->claims, id))
		return MCP_CLAIMED_BEFORE;
	if (session->claims == NULL)
		session->claims = mcp_memory(channels, sizeof(*session->claims));
	if (session->claims == NULL)
		return MCP_UNCLAIMED;
	session->claims->at[session->claims->count++ % MCP_IDS_CLAIMED] = id;
	return MCP_CLAIMED;
}

enum mcp_claim mcp_session_claim(struct mcp_channels *channels, const struct mcp_who *who,
				 struct slice id, nsec_t now)
{
	const uint64_t digest = mcp_id_digest(id);
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_make(channels, shard, who, now);
	enum mcp_claim claimed = MCP_UNCLAIMED;

	if (session != NULL && session->ended) {
		claimed = MCP_CLAIMED_BEFORE;
	} else if (session != NULL) {
		claimed = claim(channels, session, digest);
		mcp_session_touch(shard, session, now);
	}
	mcp_shard_unlock(shard);
	return claimed;
}

bool mcp_session_claimed(struct mcp_channels *channels, const struct mcp_who *who, struct slice id)
{
	const uint64_t digest = mcp_id_digest(id);
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	const struct mcp_session *session = mcp_session_find(shard, &who->key);
	const bool claimed = session != NULL && is_claimed(session->claims, digest);

	mcp_shard_unlock(shard);
	return claimed;
}

void mcp_session_note(struct mcp_channels *channels, const struct mcp_who *who, uint32_t note,
		      nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_make(channels, shard, who, now);

	if (session != NULL)
		session->note = note;
	mcp_shard_unlock(shard);
}

uint32_t mcp_session_noted(struct mcp_channels *channels, const struct mcp_who *who)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	const struct mcp_session *session = mcp_session_find(shard, &who->key);
	const uint32_t note = session == NULL ? 0 : session->note;

	mcp_shard_unlock(shard);
	return note;
}

/* ---- what other gateways tell ----------------------------------------------------------------- */

uint64_t mcp_session_id(struct slice id)
{
	return mcp_id_digest(id);
}

void mcp_session_hear_claim(struct mcp_channels *channels, const struct mcp_who *who, uint64_t id,
			    nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = find_or_add(channels, shard, who, now);

	/* Without memory for it, it is as at a gateway that was not told. */
	if (session != NULL && !session->ended)
		(void)claim(channels, session, id);
	mcp_shard_unlock(shard);
}

void mcp_session_hear_note(struct mcp_channels *channels, const struct mcp_who *who, uint32_t note,
			   nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = find_or_add(channels, shard, who, now);

	if (session != NULL)
		session->note = note;
	mcp_shard_unlock(shard);
}

void mcp_session_hear_home(struct mcp_channels *channels, const struct mcp_who *who,
			   const struct peer_address *home, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = peer_address_none(home)
					      ? mcp_session_find(shard, &who->key)
					      : find_or_add(channels, shard, who, now);

	if (session != NULL && !session->ended)
		session->home_at = *home;
	mcp_shard_unlock(shard);
}

struct peer_address mcp_session_home(struct mcp_channels *channels, const struct state_key *key)
{
	struct peer_address home = { { 0 }, 0 };
	struct mcp_shard *shard = mcp_shard_lock(channels, key);
	const struct mcp_session *session = mcp_session_find(shard, key);

	if (session != NULL)
		home = session->home_at;
	mcp_shard_unlock(shard);
	return home;
}

struct inbox *mcp_session_home_inbox(struct mcp_channels *channels, const struct state_key *key)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, key);
	const struct mcp_session *session = mcp_session_find(shard, key);
	struct inbox *inbox =
		session != NULL && session->home != NULL ? session->home->inbox : NULL;

	mcp_shard_unlock(shard);
	return inbox;
}
