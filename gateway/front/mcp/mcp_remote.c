#include "gateway/front/mcp/mcp_remote.h"

#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_remote_parts.h"

#include <stdlib.h>

/* ---- both sides ---- */

struct state_key mcp_remote_key(const struct peer_address *peer, uint64_t name)
{
	uint64_t mix = peer->worker;
	struct state_key key;

	_Static_assert(1 + 2 + ALIVE_NAME_BYTES + sizeof(name) == sizeof(key.at),
		       "worker, bucket (key_shard.h), gateway, name");
	for (size_t i = 0; i < ALIVE_NAME_BYTES; i++)
		mix = mix << 8 | peer->gateway[i];
	/* Names of a peer follow each other: the factor, 2^64 by the golden ratio, spreads them. */
	mix = (mix * 31 + name) * 0x9e3779b97f4a7c15;
	key.at[0] = peer->worker;
	key.at[1] = (uint8_t)(mix >> 56);
	key.at[2] = (uint8_t)(mix >> 48);
	(void)memcpy(key.at + 3, peer->gateway, sizeof(peer->gateway));
	(void)memcpy(key.at + 3 + sizeof(peer->gateway), &name, sizeof(name));
	return key;
}

bool mcp_remote_tell(struct mcp_remotes *remotes, const struct peer_address *to,
		     enum peer_kind kind, const struct mcp_remote_message *message)
{
	char room[MCP_REMOTE_HEAD_MAX];
	const struct slice parts[] = { slice_of(room, mcp_remote_pack(kind, message, room)),
				       message->text };

	return peer_bus_tell(remotes->bus, to, kind, parts, message->text.len == 0 ? 1 : 2);
}

/* ---- the client's side ---- */

static struct mcp_remote *of_list(struct list_link *link)
{
	return CONTAINER_OF(link, struct mcp_remote, all);
}

/* NULL: there is none of that name at that home. */
static struct mcp_remote *find(struct mcp_remotes *remotes, const struct peer_address *home,
			       uint64_t name)
{
	const struct state_key key = mcp_remote_key(home, name);
	struct key_link *link = key_shard_find(&remotes->clients.keys, &key);

	return link == NULL ? NULL : CONTAINER_OF(link, struct mcp_remote, link);
}

/* Where it is lost, the home says something again, and is told then (on_stranger). */
static void tell_detach(struct mcp_remotes *remotes, const struct peer_address *home, uint64_t name)
{
	(void)!mcp_remote_tell(remotes, home, PEER_MCP_DETACH,
			       &(struct mcp_remote_message){ .name = name });
}

static void take_out(struct mcp_remote *remote)
{
	net_timer_stop(remote->remotes->loop, &remote->patience);
	key_shard_remove(&remote->link);
	list_remove(&remote->all);
	remote->remotes = NULL;
}

/* It is not in any more; it may be gone afterwards. */
static void finish(struct mcp_remote *remote, enum mcp_channel_state state)
{
	struct mcp_remotes *remotes = remote->remotes;

	take_out(remote);
	tell_detach(remotes, &remote->home, remote->name);
	remote->state = state;
	remote->changed(remote);
}

static void on_impatient(struct net_timer *timer)
{
	finish(CONTAINER_OF(timer, struct mcp_remote, patience), MCP_CHANNEL_CLOSED);
}

static void wait_on(struct mcp_remote *remote, nsec_t patience)
{
	struct net_loop *loop = remote->remotes->loop;

	net_timer_set(loop, &remote->patience, net_now(loop) + patience);
}

bool mcp_remote_attach(struct mcp_remotes *remotes, struct mcp_remote *remote, struct slice last_id)
{
	const struct mcp_remote_message message = { .name = remotes->last_name + 1,
						    .who = remote->who,
						    .text = last_id };

	must(remote->remotes == NULL && remote->changed != NULL && remote->events != NULL);
	if (!mcp_remote_tell(remotes, &remote->home, PEER_MCP_ATTACH, &message))
		return false;
	remotes->last_name++;
	remote->remotes = remotes;
	remote->name = message.name;
	remote->state = MCP_CHANNEL_OPENING;
	remote->other = false;
	remote->number = 0;
	remote->came = remote->taken = remote->told = 0;
	remote->key = mcp_remote_key(&remote->home, remote->name);
	key_shard_add(&remotes->clients.keys, &remote->link, &remote->key);
	list_add(&remotes->clients.all, &remote->all);
	remote->patience = (struct net_timer){ .fire = on_impatient };
	wait_on(remote, MCP_REMOTE_PATIENCE);
	return true;
}

/* Where it is lost, the home asks for it (on_end). */
static void tell_credit(struct mcp_remote *remote)
{
	const struct mcp_remote_message message = { .name = remote->name, .taken = remote->taken };

	if (mcp_remote_tell(remote->remotes, &remote->home, PEER_MCP_CREDIT, &message))
		remote->told = remote->taken;
}

void mcp_remote_took(struct mcp_remote *remote, size_t bytes)
{
	if (remote->remotes == NULL)
		return;
	const uint64_t waits = remote->came - remote->taken;
	remote->taken += bytes < waits ? bytes : waits;
	if (remote->taken - remote->told >= MCP_REMOTE_WINDOW / 4)
		tell_credit(remote);
}

void mcp_remote_detach(struct mcp_remote *remote)
{
	struct mcp_remotes *remotes = remote->remotes;

	if (remotes == NULL)
		return;
	take_out(remote);
	tell_detach(remotes, &remote->home, remote->name);
}

/* ---- hearing ---- */

/* The home's message, and the GET that it is for. NULL: there is nothing to be done. */
static struct mcp_remote *hear(struct mcp_remotes *remotes, enum peer_kind kind,
			       const struct peer_address *from, struct slice body,
			       struct mcp_remote_message *out)
{
	if (!mcp_remote_unpack(kind, body, out))
		return NULL;
	struct mcp_remote *remote = find(remotes, from, out->name);
	if (remote == NULL)
		tell_detach(remotes, from, out->name); /* it has left, and the home does not know */
	else
		wait_on(remote, MCP_REMOTE_SILENCE);
	return remote;
}

static enum mcp_channel_state state_of(enum mcp_remote_is is)
{
	switch (is) {
	case MCP_REMOTE_OPENING:
		return MCP_CHANNEL_OPENING;
	case MCP_REMOTE_OPEN:
		return MCP_CHANNEL_OPEN;
	case MCP_REMOTE_REFUSED:
		return MCP_CHANNEL_REFUSED;
	case MCP_REMOTE_ENDED:
		return MCP_CHANNEL_ENDED;
	case MCP_REMOTE_REPLACED:
		return MCP_CHANNEL_REPLACED;
	case MCP_REMOTE_GAP:
		return MCP_CHANNEL_GAP;
	case MCP_REMOTE_CLOSED:
	case MCP_REMOTE_OTHER:
	case MCP_REMOTE_IS:
		break;
	}
	return MCP_CHANNEL_CLOSED;
}

/* What the GET is now, or is still. */
static void on_end(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_remote_message message;
	struct mcp_remote *remote = hear(owner, PEER_MCP_END, from, body, &message);

	if (remote == NULL)
		return;
	remote->other = message.is == MCP_REMOTE_OTHER;
	if (message.is <= MCP_REMOTE_CLOSED && message.number != remote->number) {
		finish(remote, MCP_CHANNEL_GAP);
		return;
	}
	if (message.is >= MCP_REMOTE_CLOSED) {
		finish(remote, state_of(message.is));
		return;
	}
	if (message.taken != remote->taken)
		tell_credit(remote);
	if (message.is == MCP_REMOTE_OPEN && remote->state == MCP_CHANNEL_OPENING) {
		remote->state = MCP_CHANNEL_OPEN;
		remote->changed(remote);
	}
}

static void on_events(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_remotes *remotes = owner;
	struct mcp_remote_message message;
	struct mcp_remote *remote = hear(remotes, PEER_MCP_EVENTS, from, body, &message);

	if (remote == NULL)
		return;
	if (message.number != remote->number ||
	    message.text.len > MCP_REMOTE_WINDOW - (remote->came - remote->taken)) {
		finish(remote, MCP_CHANNEL_GAP);
		return;
	}
	if (remote->state == MCP_CHANNEL_OPENING) { /* that it is open was lost */
		remote->state = MCP_CHANNEL_OPEN;
		remote->changed(remote);
		remote = find(remotes, from, message.name);
		if (remote == NULL)
			return;
	}
	remote->number++;
	remote->came += message.text.len;
	remote->events(remote, message.text);
}

/* ---- all of them ---- */

void mcp_remotes_died(struct mcp_remotes *remotes)
{
	struct list looked_at;
	struct list_link *link;

	/* `changed` may take others out, and put new ones in. */
	list_init(&looked_at);
	while ((link = list_first(&remotes->clients.all)) != NULL) {
		list_remove(link);
		list_add(&looked_at, link);
	}
	while ((link = list_first(&looked_at)) != NULL) {
		struct mcp_remote *remote = of_list(link);
		list_remove(link);
		list_add(&remotes->clients.all, link);
		if (!mcp_shared_lives(remotes->shared, &remote->home))
			finish(remote, MCP_CHANNEL_CLOSED);
	}
	mcp_proxies_died(remotes);
}

static void names_init(struct mcp_remote_names *names)
{
	key_shard_init(&names->keys, names->buckets, MCP_REMOTE_BUCKETS);
	list_init(&names->all);
}

struct mcp_remotes *mcp_remotes_new(struct net_loop *loop, struct mcp_host *mcp,
				    struct peer_bus *bus, struct mcp_shared *shared)
{
	struct mcp_remotes *remotes = calloc(1, sizeof(*remotes));

	if (remotes == NULL)
		return NULL;
	remotes->loop = loop;
	remotes->mcp = mcp;
	remotes->bus = bus;
	remotes->shared = shared;
	names_init(&remotes->clients);
	names_init(&remotes->proxies);
	if (!mcp_proxies_init(remotes)) {
		free(remotes);
		return NULL;
	}
	peer_bus_hear(bus, PEER_MCP_END, on_end, remotes);
	peer_bus_hear(bus, PEER_MCP_EVENTS, on_events, remotes);
	return remotes;
}

void mcp_remotes_free(struct mcp_remotes *remotes)
{
	mcp_proxies_fini(remotes);
	key_shard_fini(&remotes->clients.keys);
	key_shard_fini(&remotes->proxies.keys);
	free(remotes);
}
