#include "gateway/state/mcp_channel.h"

#include "codec/base/must.h"
#include "gateway/state/mcp_channel_parts.h"

/* ---- the home -------------------------------------------------------------------------------- */

static void run_told(struct inbox_item *item)
{
	struct mcp_home *home = CONTAINER_OF(item, struct mcp_home, item);
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);

	must(home->session == NULL);
	home->state = home->next;
	mcp_shard_unlock(shard);
	home->channels = NULL;
	home->told(home);
}

static enum mcp_open may_open(const struct mcp_session *session)
{
	if (session->ended)
		return MCP_OPEN_ENDED;
	if (session->refused)
		return MCP_OPEN_REFUSED;
	return session->home != NULL ? MCP_OPEN_TAKEN : MCP_OPENED;
}

static enum mcp_open open_home(struct mcp_channels *channels, struct mcp_session *session,
			       struct mcp_home *home)
{
	const enum mcp_open may = session == NULL ? MCP_OPEN_FULL : may_open(session);

	if (may != MCP_OPENED)
		return may;
	mcp_session_tell_client(
		session, MCP_CHANNEL_CLOSED); /* one that takes what the home before has left */
	mcp_queue_clear(channels, &session->queue, NULL);
	session->home = home;
	session->open = false;
	home->session = session;
	return MCP_OPENED;
}

enum mcp_open mcp_home_open(struct mcp_channels *channels, struct mcp_home *home,
			    struct inbox *inbox, nsec_t now)
{
	must(home->channels == NULL && home->told != NULL);
	home->inbox = inbox;
	home->item = (struct inbox_item){ .run = run_told };
	home->session = NULL;
	home->state = MCP_CHANNEL_OPENING;
	struct mcp_shard *shard = mcp_shard_lock(channels, &home->who.key);
	const enum mcp_open opened =
		open_home(channels, mcp_session_make(channels, shard, &home->who, now), home);
	if (opened == MCP_OPENED) {
		home->channels = channels;
		mcp_session_touch(shard, home->session, now);
	}
	mcp_shard_unlock(shard);
	return opened;
}

enum mcp_open mcp_home_look(struct mcp_channels *channels, const struct mcp_who *who)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	const struct mcp_session *session = mcp_session_find(shard, &who->key);
	const enum mcp_open look = session == NULL ? MCP_OPENED : may_open(session);

	mcp_shard_unlock(shard);
	return look;
}

void mcp_home_refuse(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &who->key);
	struct mcp_session *session = mcp_session_make(channels, shard, who, now);

	if (session != NULL && session->home == NULL)
		session->refused = true;
	mcp_shard_unlock(shard);
}

/* Under the lock, on its own worker. */
static void leave_home(struct mcp_home *home)
{
	home->session->home = NULL;
	home->session->open = false;
	home->session = NULL;
}

/* It is not in any more, and nobody puts it into its inbox from here on. */
static void home_is_out(struct mcp_home *home)
{
	inbox_take_back(home->inbox, &home->item);
	home->channels = NULL;
}

/* Under the lock. The client stays in. */
static void wake_client(struct mcp_session *session, enum mcp_channel_state state)
{
	if (session->client == NULL)
		return;
	session->client->next = state;
	inbox_put(session->client->inbox, &session->client->item);
}

static void refuse_get(struct mcp_home *home)
{
	struct mcp_session *session = home->session;

	session->refused = true;
	mcp_session_tell_client(session, MCP_CHANNEL_REFUSED);
	mcp_queue_clear(home->channels, &session->queue, NULL);
	leave_home(home);
	home->state = MCP_CHANNEL_REFUSED;
}

void mcp_home_answered(struct mcp_home *home, bool open)
{
	if (home->channels == NULL)
		return;
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);
	struct mcp_session *session = home->session;
	if (session != NULL && open) {
		home->state = MCP_CHANNEL_OPEN;
		session->open = true;
		wake_client(session, MCP_CHANNEL_OPEN);
	} else if (session != NULL) {
		refuse_get(home);
	}
	mcp_shard_unlock(shard);
	if (home->state == MCP_CHANNEL_REFUSED)
		home_is_out(home);
}

struct mcp_lost *mcp_home_close(struct mcp_home *home)
{
	struct mcp_lost *lost = NULL;

	if (home->channels == NULL)
		return NULL;
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);
	struct mcp_session *session = home->session;
	if (session != NULL) {
		mcp_queue_close(home->channels, session, &lost);
		wake_client(session, MCP_CHANNEL_CLOSED);
		leave_home(home);
	}
	mcp_shard_unlock(shard);
	home->state = MCP_CHANNEL_CLOSED;
	home_is_out(home);
	return lost;
}

bool mcp_home_push(struct mcp_home *home, const struct mcp_event *event, nsec_t now,
		   struct mcp_lost **lost)
{
	bool pushed = false;

	*lost = NULL;
	if (home->channels == NULL)
		return false;
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);
	struct mcp_session *session = home->session;
	if (session != NULL)
		pushed = mcp_queue_push(home->channels, session, event, now, lost);
	if (pushed && session->client != NULL)
		inbox_put(session->client->inbox, &session->client->item);
	mcp_shard_unlock(shard);
	return pushed;
}

void mcp_home_saw(struct mcp_home *home, struct slice id)
{
	if (home->channels == NULL)
		return;
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);
	if (home->session != NULL)
		mcp_queue_saw(home->channels, &home->session->queue, id);
	mcp_shard_unlock(shard);
}

nsec_t mcp_home_overdue(struct mcp_home *home, nsec_t now, struct mcp_lost **lost)
{
	nsec_t due = NSEC_NEVER;

	*lost = NULL;
	if (home->channels == NULL)
		return due;
	struct mcp_shard *shard = mcp_shard_lock(home->channels, &home->who.key);
	if (home->session != NULL)
		due = mcp_queue_overdue(home->channels, home->session, now, lost);
	mcp_shard_unlock(shard);
	return due;
}

/* ---- the client's GET ------------------------------------------------------------------------ */

static void run_woken(struct inbox_item *item)
{
	struct mcp_client *client = CONTAINER_OF(item, struct mcp_client, item);
	struct mcp_shard *shard = mcp_shard_lock(client->channels, &client->who.key);

	client->state = client->next;
	const bool out = client->session == NULL;
	mcp_shard_unlock(shard);
	if (out) {
		inbox_take_back(client->inbox,
				&client->item); /* it may have been put in again meanwhile */
		client->channels = NULL;
	}
	client->woken(client);
}

/* Whether its GET may be served from the own one. */
static enum mcp_attach judge(struct mcp_session *session, struct slice last_id, nsec_t now)
{
	if (session != NULL && session->ended)
		return MCP_ATTACH_ENDED;
	if (last_id.len != 0 &&
	    (session == NULL || !mcp_queue_resume(&session->queue, last_id, now)))
		return MCP_ATTACH_OTHER;
	if (session != NULL && session->refused)
		return MCP_ATTACH_REFUSED;
	return session == NULL || session->home == NULL ? MCP_ATTACH_NOBODY : MCP_ATTACHED;
}

enum mcp_attach mcp_client_attach(struct mcp_channels *channels, struct mcp_client *client,
				  struct inbox *inbox, struct slice last_id, nsec_t now)
{
	must(client->channels == NULL && client->woken != NULL);
	client->inbox = inbox;
	client->item = (struct inbox_item){ .run = run_woken };
	client->offset = 0;
	client->session = NULL;
	struct mcp_shard *shard = mcp_shard_lock(channels, &client->who.key);
	struct mcp_session *session = mcp_session_find(shard, &client->who.key);
	const enum mcp_attach attached = judge(session, last_id, now);
	if (attached == MCP_ATTACHED) {
		mcp_session_tell_client(session, MCP_CHANNEL_REPLACED);
		session->client = client;
		client->channels = channels;
		client->session = session;
		client->state = client->next =
			session->open ? MCP_CHANNEL_OPEN : MCP_CHANNEL_OPENING;
		mcp_session_touch(shard, session, now);
	}
	mcp_shard_unlock(shard);
	return attached;
}

size_t mcp_client_take(struct mcp_client *client, char *room, size_t size, nsec_t now)
{
	size_t taken = 0;

	if (client->channels == NULL)
		return 0;
	struct mcp_shard *shard = mcp_shard_lock(client->channels, &client->who.key);
	if (client->session != NULL)
		taken = mcp_queue_take(client->channels, client->session, room, size, now);
	mcp_shard_unlock(shard);
	return taken;
}

void mcp_client_detach(struct mcp_client *client, nsec_t now)
{
	if (client->channels == NULL)
		return;
	struct mcp_shard *shard = mcp_shard_lock(client->channels, &client->who.key);
	struct mcp_session *session = client->session;
	if (session != NULL) {
		if (session->home == NULL)
			mcp_queue_clear(client->channels, &session->queue, NULL);
		session->client = NULL;
		client->session = NULL;
		mcp_session_touch(shard, session, now);
	}
	mcp_shard_unlock(shard);
	inbox_take_back(client->inbox, &client->item);
	client->channels = NULL;
}
