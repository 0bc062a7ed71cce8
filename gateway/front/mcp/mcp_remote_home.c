/* mcp_remote_home.c - the home's side of mcp_remote.h: for each GET that another gateway holds there is a proxy, a client of
 * the session's channel, which sends on what it takes. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_remote_parts.h"

enum { PROXY_MAGIC = 0x4d435058 };
#define SAYS_FIRST (2 * SEC) /* behind a piece; then the time doubles, up to MCP_REMOTE_SAYS */

struct proxy {
	uint32_t magic;
	enum mcp_remote_is is; /* as the client's gateway was told */
	struct mcp_remotes *remotes;
	struct mcp_client client;
	struct peer_address peer;
	uint64_t name;
	struct state_key key; /* of these two, as is the link */
	struct key_link link;
	struct list_link all;
	uint64_t sent, taken;   /* bytes in all; the client has told of `taken` */
	uint32_t number;        /* of the next piece */
	struct net_timer again; /* says what it is once more */
	nsec_t pause;           /* before that */
};

static struct proxy *find(struct mcp_remotes *remotes, const struct peer_address *peer,
			  uint64_t name)
{
	const struct state_key key = mcp_remote_key(peer, name);
	struct key_link *link = key_shard_find(&remotes->proxies.keys, &key);

	return link == NULL ? NULL : CONTAINER_OF(link, struct proxy, link);
}

static nsec_t now_of(const struct proxy *proxy)
{
	return net_now(proxy->remotes->loop);
}

static void free_proxy(struct proxy *proxy)
{
	must_obj(proxy, PROXY_MAGIC);
	net_timer_stop(proxy->remotes->loop, &proxy->again);
	mcp_client_detach(&proxy->client, now_of(proxy));
	key_shard_remove(&proxy->link);
	list_remove(&proxy->all);
	proxy->magic = 0;
	slab_give(&proxy->remotes->proxy_slab, proxy);
}

/* ---- telling ---- */

static bool is_over(const struct proxy *proxy)
{
	return proxy->is >= MCP_REMOTE_CLOSED;
}

/* There is no proxy of that name. Where it is lost, the client's side is impatient. */
static void answer(struct mcp_remotes *remotes, const struct peer_address *peer, uint64_t name,
		   enum mcp_remote_is is)
{
	(void)!mcp_remote_tell(remotes, peer, PEER_MCP_END,
			       &(struct mcp_remote_message){ .name = name, .is = is });
}

static void say_later(struct proxy *proxy, nsec_t pause)
{
	proxy->pause = pause;
	net_timer_set(proxy->remotes->loop, &proxy->again, now_of(proxy) + pause);
}

/* Where it is lost, it is said again. */
static void say(struct proxy *proxy)
{
	const struct mcp_remote_message message = {
		.name = proxy->name, .number = proxy->number, .taken = proxy->taken, .is = proxy->is
	};

	(void)!mcp_remote_tell(proxy->remotes, &proxy->peer, PEER_MCP_END, &message);
}

static void become(struct proxy *proxy, enum mcp_remote_is is)
{
	proxy->is = is;
	say(proxy);
	say_later(proxy, SAYS_FIRST);
}

/* It stays until the client's side has heard of it, which says PEER_MCP_DETACH. */
static void end(struct proxy *proxy, enum mcp_remote_is is)
{
	mcp_client_detach(&proxy->client, now_of(proxy));
	become(proxy, is);
}

static void on_again(struct net_timer *timer)
{
	struct proxy *proxy = CONTAINER_OF(timer, struct proxy, again);

	if (is_over(proxy) && proxy->pause >= MCP_REMOTE_SAYS) {
		free_proxy(proxy); /* nobody hears it */
		return;
	}
	say(proxy);
	say_later(proxy, proxy->pause < MCP_REMOTE_SAYS ? 2 * proxy->pause : MCP_REMOTE_SAYS);
}

/* ---- events ---- */

static bool send_piece(struct proxy *proxy, struct slice bytes)
{
	const struct mcp_remote_message message = { .name = proxy->name,
						    .number = proxy->number++,
						    .text = bytes };

	proxy->sent += bytes.len;
	return mcp_remote_tell(proxy->remotes, &proxy->peer, PEER_MCP_EVENTS, &message);
}

/* What is there for the client, as far as it keeps up. */
static void send_on(struct proxy *proxy)
{
	struct mcp_remotes *remotes = proxy->remotes;
	const uint64_t before = proxy->sent;
	size_t room;

	while ((room = MCP_REMOTE_WINDOW - (size_t)(proxy->sent - proxy->taken)) != 0) {
		const size_t len = mcp_client_take(
			&proxy->client, remotes->piece,
			room < sizeof(remotes->piece) ? room : sizeof(remotes->piece),
			now_of(proxy));
		if (len == 0 && proxy->client.state == MCP_CHANNEL_CLOSED) {
			end(proxy, MCP_REMOTE_CLOSED);
			return;
		}
		if (len == 0)
			break;
		if (!send_piece(proxy, slice_of(remotes->piece, len))) {
			end(proxy, MCP_REMOTE_GAP); /* what comes next is for the next GET */
			return;
		}
	}
	if (proxy->sent != before)
		say_later(proxy, SAYS_FIRST);
}

static void on_woken(struct mcp_client *client)
{
	struct proxy *proxy = CONTAINER_OF(client, struct proxy, client);

	switch (client->state) {
	case MCP_CHANNEL_OPEN:
		if (proxy->is != MCP_REMOTE_OPEN)
			become(proxy, MCP_REMOTE_OPEN);
		send_on(proxy);
		return;
	case MCP_CHANNEL_OPENING:
	case MCP_CHANNEL_CLOSED:
		send_on(proxy);
		return;
	case MCP_CHANNEL_REFUSED:
		end(proxy, MCP_REMOTE_REFUSED);
		return;
	case MCP_CHANNEL_REPLACED:
		end(proxy, MCP_REMOTE_REPLACED);
		return;
	case MCP_CHANNEL_GAP:
		end(proxy, MCP_REMOTE_GAP);
		return;
	case MCP_CHANNEL_ENDED:
	case MCP_CHANNEL_IDLE:
		end(proxy, MCP_REMOTE_ENDED);
		return;
	}
}

/* ---- hearing ---- */

static enum mcp_remote_is try_attach(struct proxy *proxy, struct slice last_id)
{
	const struct mcp_host *mcp = proxy->remotes->mcp;

	switch (mcp_client_attach(mcp->channels, &proxy->client, mcp->inbox, last_id,
				  now_of(proxy))) {
	case MCP_ATTACHED:
		return proxy->client.state == MCP_CHANNEL_OPEN ? MCP_REMOTE_OPEN
							       : MCP_REMOTE_OPENING;
	case MCP_ATTACH_REFUSED:
		return MCP_REMOTE_REFUSED;
	case MCP_ATTACH_ENDED:
		return MCP_REMOTE_ENDED;
	case MCP_ATTACH_OTHER:
		return MCP_REMOTE_OTHER;
	case MCP_ATTACH_NOBODY:
		break;
	}
	return MCP_REMOTE_CLOSED;
}

static void on_attach(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_remotes *remotes = owner;
	struct mcp_remote_message message;

	if (!mcp_remote_unpack(PEER_MCP_ATTACH, body, &message) ||
	    find(remotes, from, message.name) != NULL)
		return;
	struct proxy *proxy = slab_take(&remotes->proxy_slab);
	if (proxy == NULL) {
		answer(remotes, from, message.name, MCP_REMOTE_CLOSED);
		return;
	}
	*proxy = (struct proxy){ .magic = PROXY_MAGIC,
				 .remotes = remotes,
				 .client = { .who = message.who, .woken = on_woken },
				 .peer = *from,
				 .name = message.name,
				 .key = mcp_remote_key(from, message.name),
				 .again.fire = on_again };
	const enum mcp_remote_is is = try_attach(proxy, message.text);
	if (is >= MCP_REMOTE_CLOSED) {
		slab_give(&remotes->proxy_slab, proxy);
		answer(remotes, from, message.name, is);
		return;
	}
	key_shard_add(&remotes->proxies.keys, &proxy->link, &proxy->key);
	list_add(&remotes->proxies.all, &proxy->all);
	become(proxy, is);
	send_on(proxy);
}

static void on_credit(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_remotes *remotes = owner;
	struct mcp_remote_message message;

	if (!mcp_remote_unpack(PEER_MCP_CREDIT, body, &message))
		return;
	struct proxy *proxy = find(remotes, from, message.name);
	if (proxy == NULL) {
		answer(remotes, from, message.name, MCP_REMOTE_CLOSED);
		return;
	}
	if (is_over(proxy) || message.taken < proxy->taken || message.taken > proxy->sent)
		return;
	proxy->taken = message.taken;
	send_on(proxy);
}

static void on_detach(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_remotes *remotes = owner;
	struct mcp_remote_message message;

	if (!mcp_remote_unpack(PEER_MCP_DETACH, body, &message))
		return;
	struct proxy *proxy = find(remotes, from, message.name);
	if (proxy != NULL)
		free_proxy(proxy);
}

/* ---- all of them ---- */

static struct proxy *of_list(struct list_link *link)
{
	return link == NULL ? NULL : CONTAINER_OF(link, struct proxy, all);
}

bool mcp_proxies_init(struct mcp_remotes *remotes)
{
	if (!slab_init(&remotes->proxy_slab, sizeof(struct proxy), MCP_REMOTES_MAX))
		return false;
	peer_bus_hear(remotes->bus, PEER_MCP_ATTACH, on_attach, remotes);
	peer_bus_hear(remotes->bus, PEER_MCP_CREDIT, on_credit, remotes);
	peer_bus_hear(remotes->bus, PEER_MCP_DETACH, on_detach, remotes);
	return true;
}

void mcp_proxies_fini(struct mcp_remotes *remotes)
{
	struct proxy *proxy;

	while ((proxy = of_list(list_first(&remotes->proxies.all))) != NULL)
		free_proxy(proxy);
	slab_fini(&remotes->proxy_slab);
}

void mcp_proxies_died(struct mcp_remotes *remotes)
{
	struct list *all = &remotes->proxies.all;

	for (struct proxy *proxy = of_list(list_first(all)), *next; proxy != NULL; proxy = next) {
		next = of_list(list_next(all, &proxy->all));
		if (mcp_shared_lives(remotes->shared, &proxy->peer))
			continue;
		/* It may live all the same. */
		answer(remotes, &proxy->peer, proxy->name, MCP_REMOTE_CLOSED);
		free_proxy(proxy);
	}
}
