/* mcp_remote_rig.h - two gateways over a bus that is the test's: the session's home is one's, the client's GET the other's.
 * Stands in for net.h's clock and timers, peer_bus.h and mcp_shared.h. Included once, by a test's only source. */
#ifndef TESTS_UNIT_GATEWAY_MCP_REMOTE_RIG_H
#define TESTS_UNIT_GATEWAY_MCP_REMOTE_RIG_H

#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_remote_parts.h"
#include "gateway/net/net_timer.h"
#include "tests/unit/gateway/state/mcp_channel_rig.h"

/* ---- clock and timers, of all loops ---- */

static struct {
	nsec_t now;
	struct net_timer_heap timers;
} moment;

nsec_t net_now(const struct net_loop *loop)
{
	(void)loop;
	return moment.now;
}

void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	(void)loop;
	net_timer_heap_set(&moment.timers, timer, due);
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	(void)loop;
	net_timer_heap_stop(&moment.timers, timer);
}

/* ---- the bus ---- */

struct peer_bus {
	struct peer_address own;
	bool away; /* Redis is */
	struct {
		void (*heard)(void *owner, const struct peer_address *from, struct slice body);
		void *owner;
	} kinds[PEER_KINDS];
};

struct on_its_way {
	struct on_its_way *next;
	struct peer_address from, to;
	enum peer_kind kind;
	size_t len;
	char body[];
};

static struct peer_bus buses[2]; /* of the home's gateway, and of the client's */
static struct {
	struct on_its_way *first, **last;
	uint32_t lose;             /* bits of the kinds that are lost from now on */
	uint32_t told[PEER_KINDS]; /* how many were told, lost or not */
} wire;

struct peer_address peer_bus_own(const struct peer_bus *bus)
{
	return bus->own;
}

void peer_bus_hear(struct peer_bus *bus, enum peer_kind kind,
		   void (*heard)(void *owner, const struct peer_address *from, struct slice body),
		   void *owner)
{
	assert_null(bus->kinds[kind].heard);
	bus->kinds[kind].heard = heard;
	bus->kinds[kind].owner = owner;
}

bool peer_bus_tell(struct peer_bus *bus, const struct peer_address *to, enum peer_kind kind,
		   const struct slice *parts, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	if (bus->away || len > PEER_MESSAGE_MAX)
		return false;
	wire.told[kind]++;
	if ((wire.lose >> kind & 1) != 0)
		return true;
	struct on_its_way *message = malloc(sizeof(*message) + len);
	must(message != NULL);
	*message = (struct on_its_way){ .from = bus->own, .to = *to, .kind = kind };
	for (size_t i = 0; i < count; i++) {
		(void)memcpy(message->body + message->len, parts[i].at, parts[i].len);
		message->len += parts[i].len;
	}
	*wire.last = message;
	wire.last = &message->next;
	return true;
}

/* What a bus hears, in memory of exactly its length. */
static inline void hear(struct peer_bus *bus, const struct peer_address *from, enum peer_kind kind,
			struct slice body)
{
	char *exact = malloc(body.len + (body.len == 0));

	must(exact != NULL);
	(void)memcpy(exact, body.at, body.len);
	bus->kinds[kind].heard(bus->kinds[kind].owner, from, slice_of(exact, body.len));
	free(exact);
}

/* The oldest message arrives. False: there is none. */
static inline bool deliver_one(void)
{
	struct on_its_way *message = wire.first;

	if (message == NULL)
		return false;
	wire.first = message->next;
	if (wire.first == NULL)
		wire.last = &wire.first;
	for (size_t i = 0; i < COUNT_OF(buses); i++)
		if (peer_address_eq(&buses[i].own, &message->to))
			hear(&buses[i], &message->from, message->kind,
			     slice_of(message->body, message->len));
	free(message);
	return true;
}

/* ---- who lives ---- */

static bool is_dead[2];

bool mcp_shared_lives(const struct mcp_shared *shared, const struct peer_address *peer)
{
	(void)shared;
	for (size_t i = 0; i < COUNT_OF(buses); i++)
		if (memcmp(buses[i].own.gateway, peer->gateway, sizeof(peer->gateway)) == 0)
			return !is_dead[i];
	return false;
}

/* ---- both gateways ---- */

/* A client's GET. */
struct some_remote {
	struct mcp_remote remote;
	int changed;
	size_t len;
	char got[ROOM];
	struct mcp_remote *detach; /* when it has changed; NULL: nothing */
	bool again;                /* it attaches once more then */
};

static struct mcp_host hosts[2];
static struct mcp_channels *elsewhere; /* the client's gateway's */
static struct some_worker client_worker;
static struct mcp_remotes *at_home, *at_client;
static struct some_remote remotes[2];

/* All that is on its way arrives. */
static inline void settle(void)
{
	do {
		turn();
		(void)loop_turn(&client_worker.loop, false);
	} while (deliver_one());
	turn();
	assert_null(wire.first);
}

/* Time passes, and everything that it causes. */
static inline void pass(nsec_t time)
{
	const nsec_t until = moment.now + time;

	settle();
	for (nsec_t due; (due = net_timer_heap_due(&moment.timers)) <= until; settle()) {
		moment.now = due > moment.now ? due : moment.now;
		struct net_timer *timer = net_timer_heap_pop(&moment.timers, moment.now);
		timer->fire(timer);
	}
	moment.now = until;
}

static inline void note_changed(struct mcp_remote *changed)
{
	struct some_remote *some = CONTAINER_OF(changed, struct some_remote, remote);

	some->changed++;
	if (some->detach != NULL)
		mcp_remote_detach(some->detach);
	if (some->again)
		assert_true(mcp_remote_attach(at_client, changed, SLICE("")));
}

static inline void note_events(struct mcp_remote *remote, struct slice bytes)
{
	struct some_remote *some = CONTAINER_OF(remote, struct some_remote, remote);

	assert_int_equal(remote->state, MCP_CHANNEL_OPEN);
	must(some->len + bytes.len < sizeof(some->got));
	(void)memcpy(some->got + some->len, bytes.at, bytes.len);
	some->len += bytes.len;
	some->got[some->len] = '\0';
}

/* It asks the session `name`'s home, from behind that id (NULL: none). */
static inline void ask(int n, const char *name, const char *last_id)
{
	remotes[n] = (struct some_remote){ .remote = { .who = session(name),
						       .home = buses[0].own,
						       .changed = note_changed,
						       .events = note_events } };
	assert_true(mcp_remote_attach(at_client, &remotes[n].remote, slice_str(last_id)));
}

/* It is attached, and has heard so. */
static inline void join(int n)
{
	ask(n, "1", NULL);
	settle();
	assert_int_equal(remotes[n].remote.state, MCP_CHANNEL_OPEN);
}

/* What has come since, which the client takes. */
static inline const char *read_events(int n)
{
	static char text[ROOM];

	settle();
	(void)memcpy(text, remotes[n].got, remotes[n].len + 1);
	mcp_remote_took(&remotes[n].remote, remotes[n].len);
	remotes[n].len = 0;
	remotes[n].got[0] = '\0';
	settle();
	return text;
}

static inline bool is_in(int n)
{
	return remotes[n].remote.remotes != NULL;
}

/* It is not in any more, has heard so once, and the home has let go. */
static inline void assert_is_out(int n, enum mcp_channel_state state, int changed)
{
	settle();
	assert_false(is_in(n));
	assert_int_equal(remotes[n].remote.state, state);
	assert_int_equal(remotes[n].changed, changed);
	assert_int_equal(at_home->proxy_slab.out, 0);
}

static inline void bus_init(struct peer_bus *bus, const char *gateway, uint8_t worker)
{
	*bus = (struct peer_bus){ .own = { .worker = worker } };
	(void)memcpy(bus->own.gateway, gateway, sizeof(bus->own.gateway));
}

static inline int set_up_both(void **state)
{
	if (set_up(state) != 0)
		return 1;
	moment.now = NOW;
	is_dead[0] = is_dead[1] = false;
	(void)memset(&wire, 0, sizeof(wire));
	wire.last = &wire.first;
	bus_init(&buses[0], "home.", 1);
	bus_init(&buses[1], "other", 1);
	some_worker_init(&client_worker);
	elsewhere = mcp_channels_new();
	hosts[0] = (struct mcp_host){ .inbox = &workers[1].inbox, .channels = channels };
	hosts[1] = (struct mcp_host){ .inbox = &client_worker.inbox, .channels = elsewhere };
	if (elsewhere == NULL || !net_timer_heap_init(&moment.timers, 1))
		return 1;
	at_home = mcp_remotes_new(&workers[1].loop, &hosts[0], &buses[0], NULL);
	at_client = mcp_remotes_new(&client_worker.loop, &hosts[1], &buses[1], NULL);
	(void)memset(remotes, 0, sizeof(remotes));
	return at_home == NULL || at_client == NULL;
}

/* Whoever is left leaves, and then nothing is there any more. */
static inline int tear_down_both(void **state)
{
	wire.lose = 0;
	buses[0].away = buses[1].away = false;
	for (size_t i = 0; i < COUNT_OF(remotes); i++)
		mcp_remote_detach(&remotes[i].remote);
	settle();
	assert_true(list_is_empty(&at_client->clients.all));
	mcp_remotes_free(at_client);
	mcp_remotes_free(at_home);
	assert_int_equal(net_timer_heap_due(&moment.timers), NSEC_NEVER);
	net_timer_heap_fini(&moment.timers);
	mcp_channels_free(elsewhere);
	return tear_down(state);
}

#endif
