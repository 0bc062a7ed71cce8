#include "gateway/state/mcp_shared.h"

#include "codec/base/must.h"
#include "gateway/state/mcp_shared_parts.h"

#include <endian.h>
#include <stdlib.h>

REDIS_SCRIPT_DECLARE(mcp_record);
REDIS_SCRIPT_DECLARE(mcp_claim);
REDIS_SCRIPT_DECLARE(mcp_place);
REDIS_SCRIPT_DECLARE(mcp_look);

static const struct peer_address nowhere;

/* ---- what other workers have heard ---- */

static void on_news(struct mcp_member *member)
{
	struct mcp_shared *shared = CONTAINER_OF(member, struct mcp_shared, member);
	struct mcp_news news;

	mcp_member_take(member, &news);
	if (news.doubted)
		mcp_shared_announce(shared);
	if (news.died)
		shared->events->died(shared->owner);
	for (uint32_t i = 0; i < news.freed_count; i++)
		shared->events->freed(shared->owner, &news.freed[i]);
}

/* ---- questions ---- */

/* Another worker of this process is the session's home. */
static bool home_beside(struct mcp_shared *shared, const struct mcp_who *who,
			struct peer_address *home)
{
	const struct inbox *inbox = mcp_session_home_inbox(shared->channels, &who->key);

	*home = shared->own;
	return inbox != NULL && inbox != shared->inbox &&
	       mcp_hub_worker(&shared->channels->hub, inbox, &home->worker);
}

bool mcp_ask_home(struct mcp_shared *shared, struct mcp_ask *ask, bool take)
{
	struct peer_address beside;

	ask->kind = MCP_ASK_HOME;
	ask->take = take && !home_beside(shared, &ask->who, &beside);
	return mcp_shared_send(shared, ask);
}

bool mcp_ask_claim(struct mcp_shared *shared, struct mcp_ask *ask, struct slice id,
		   struct slice kept)
{
	const uint64_t digest = mcp_session_id(id);

	ask->kind = MCP_ASK_CLAIM;
	ask->id = id;
	ask->kept = kept;
	if (!mcp_shared_send(shared, ask))
		return false;
	/* Whoever it turns out to be who has claimed it. */
	mcp_shared_say_all(shared, SAID_CLAIMED, &ask->who,
			   slice_of((const char *)&digest, sizeof(digest)));
	return true;
}

bool mcp_ask_place(struct mcp_shared *shared, struct mcp_ask *ask, uint32_t tenant_max,
		   uint32_t server_max)
{
	const uint64_t number = shared->places++;

	/* No digest, which a session's key is, and no other worker's. */
	ask->place = (struct state_key){ { 0 } };
	(void)memcpy(ask->place.at, &shared->own, sizeof(shared->own));
	(void)memcpy(ask->place.at + sizeof(shared->own), &number, sizeof(number));
	ask->kind = MCP_ASK_PLACE;
	ask->tenant_max = tenant_max;
	ask->server_max = server_max;
	return mcp_shared_send(shared, ask);
}

static void learn_home(struct mcp_shared *shared, struct mcp_ask *ask)
{
	const nsec_t now = mcp_shared_now(shared);
	const bool known = ask->answer == MCP_SHARED_MINE || ask->answer == MCP_SHARED_OTHERS;

	if (ask->answer == MCP_SHARED_NOBODY && home_beside(shared, &ask->who, &ask->home))
		ask->answer = MCP_SHARED_OTHERS; /* whom Redis has not heard of yet */
	if (ask->answer == MCP_SHARED_OTHERS)
		mcp_shared_seen(shared, &ask->home);
	if (ask->answer == MCP_SHARED_ENDED)
		(void)mcp_session_end(shared->channels, &ask->who, now);
	else if (ask->answer != MCP_SHARED_UNKNOWN)
		mcp_session_hear_home(shared->channels, &ask->who, known ? &ask->home : &nowhere,
				      now);
}

static void on_answered(struct mcp_shared *shared, struct mcp_ask *ask)
{
	const nsec_t now = mcp_shared_now(shared);

	if (ask->kind == MCP_ASK_HOME)
		learn_home(shared, ask);
	if (ask->answer == MCP_SHARED_BEFORE)
		mcp_session_hear_claim(shared->channels, &ask->who, mcp_session_id(ask->id), now);
	if (ask->note != 0)
		mcp_session_hear_note(shared->channels, &ask->who, ask->note, now);
	ask->done(ask);
}

void mcp_ask_forget(struct mcp_ask *ask)
{
	if (!redis_call_pending(&ask->call))
		return;
	redis_call_forget(ask->shared->link, &ask->call);
	if (ask->kind == MCP_ASK_HOME && ask->take)
		mcp_shared_freed(ask->shared, &ask->who);
	else if (ask->kind == MCP_ASK_PLACE)
		mcp_shared_unplaced(ask->shared, ask);
	else if (ask->kind == MCP_ASK_CLAIM)
		mcp_shared_settled(ask->shared, &ask->who, ask->id);
}

/* ---- told, and nobody waits ---- */

static bool say(struct mcp_shared *shared, enum mcp_tell_kind kind, const struct mcp_who *who,
		struct slice value)
{
	return mcp_shared_say(shared,
			      &(struct mcp_tell){ .kind = kind, .who = *who, .value = value });
}

static void say_surely(struct mcp_shared *shared, enum mcp_tell_kind kind,
		       const struct mcp_who *who)
{
	mcp_shared_say_surely(shared, &(struct mcp_surely){ .kind = kind, .who = *who });
}

void mcp_shared_begun(struct mcp_shared *shared, const struct mcp_ask *ask,
		      const struct mcp_who *who)
{
	(void)!mcp_shared_say(
		shared,
		&(struct mcp_tell){ .kind = MCP_TELL_BEGUN, .who = *who, .place = ask->place });
}

void mcp_shared_unplaced(struct mcp_shared *shared, const struct mcp_ask *ask)
{
	(void)!mcp_shared_say(shared, &(struct mcp_tell){ .kind = MCP_TELL_UNPLACED,
							  .who = ask->who,
							  .place = ask->place });
	redis_link_flush(shared->link); /* before the client hears that it may try again */
}

void mcp_shared_used(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)!say(shared, MCP_TELL_USED, who, SLICE(""));
}

void mcp_shared_ended(struct mcp_shared *shared, const struct mcp_who *who)
{
	say_surely(shared, MCP_TELL_ENDED, who);
}

void mcp_shared_note(struct mcp_shared *shared, const struct mcp_who *who, uint32_t note)
{
	const uint32_t bytes = htole32(note);
	char text[REDIS_NUMBER_ROOM];
	const size_t len = redis_number_text(text, note);

	mcp_session_hear_note(shared->channels, who, note, mcp_shared_now(shared));
	(void)!say(shared, MCP_TELL_NOTE, who, slice_of(text, len));
	mcp_shared_say_all(shared, SAID_NOTE, who, slice_of((const char *)&bytes, sizeof(bytes)));
}

void mcp_shared_saw(struct mcp_shared *shared, const struct mcp_who *who, struct slice last_id)
{
	if (last_id.len <= MCP_SHARED_ID_MAX)
		(void)!say(shared, MCP_TELL_SAW, who, last_id);
}

void mcp_shared_refused(struct mcp_shared *shared, const struct mcp_who *who)
{
	mcp_session_hear_home(shared->channels, who, &nowhere, mcp_shared_now(shared));
	(void)!say(shared, MCP_TELL_REFUSED, who, SLICE(""));
}

void mcp_shared_freed(struct mcp_shared *shared, const struct mcp_who *who)
{
	mcp_session_hear_home(shared->channels, who, &nowhere, mcp_shared_now(shared));
	say_surely(shared, MCP_TELL_FREED, who);
}

void mcp_shared_settled(struct mcp_shared *shared, const struct mcp_who *who, struct slice id)
{
	mcp_shared_say_surely(shared, &(struct mcp_surely){ .kind = MCP_TELL_SETTLED,
							    .who = *who,
							    .id = mcp_session_id(id) });
}

void mcp_shared_call(struct mcp_shared *shared, const struct mcp_who *who, bool begun)
{
	mcp_shared_say_surely(
		shared, &(struct mcp_surely){ .kind = MCP_TELL_CALL, .who = *who, .begun = begun });
}

/* ---- known without asking ---- */

bool mcp_shared_lives(const struct mcp_shared *shared, const struct peer_address *peer)
{
	return peer_address_same_gateway(peer, &shared->own) ||
	       mcp_hub_lives(&shared->channels->hub, peer->gateway);
}

bool mcp_shared_home_known(struct mcp_shared *shared, const struct mcp_who *who,
			   struct peer_address *home)
{
	*home = mcp_session_home(shared->channels, &who->key);
	return !peer_address_none(home) && mcp_shared_lives(shared, home);
}

/* ---- making one ---- */

static void on_ready(struct redis_user *user)
{
	struct mcp_shared *shared = CONTAINER_OF(user, struct mcp_shared, user);

	if (shared->own.worker == 0) {
		mcp_shared_look_now(shared);
		mcp_shared_say_all(shared, SAID_HELLO, NULL, SLICE(""));
	}
	mcp_shared_sure_ready(shared);
	mcp_shared_announce(shared);
}

static void on_lost(struct redis_user *user)
{
	mcp_shared_sure_lost(CONTAINER_OF(user, struct mcp_shared, user));
}

struct mcp_shared *mcp_shared_new(struct net_loop *loop, struct redis_client *client,
				  struct peer_bus *bus, struct alive *alive,
				  struct mcp_channels *channels, struct inbox *inbox,
				  uint32_t worker, const struct mcp_shared_events *events,
				  void *owner)
{
	static const struct redis_user_events user_events = { .ready = on_ready, .lost = on_lost };
	struct mcp_shared *shared = calloc(1, sizeof(*shared));

	if (shared == NULL)
		return NULL;
	must(peer_bus_own(bus).worker == worker);
	shared->loop = loop;
	shared->link = redis_client_link(client);
	shared->user.events = &user_events;
	shared->bus = bus;
	shared->alive = alive;
	shared->channels = channels;
	shared->events = events;
	shared->owner = owner;
	shared->own = peer_bus_own(bus);
	shared->answered = on_answered;
	shared->inbox = inbox;
	shared->record = (struct redis_script)REDIS_SCRIPT_INIT(mcp_record);
	shared->claim = (struct redis_script)REDIS_SCRIPT_INIT(mcp_claim);
	shared->place = (struct redis_script)REDIS_SCRIPT_INIT(mcp_place);
	shared->look = (struct redis_script)REDIS_SCRIPT_INIT(mcp_look);
	/* A user of before this was there may have no right to some of it. */
	shared->record.aside = shared->claim.aside = shared->place.aside = shared->look.aside =
		true;
	shared->member = (struct mcp_member){ .worker = worker, .inbox = inbox, .told = on_news };
	mcp_shared_announce_init(shared);
	mcp_hub_join(&channels->hub, &shared->member);
	redis_link_join(shared->link, &shared->user);
	if (worker == 0) {
		peer_bus_hear(bus, PEER_MCP_SHARED, mcp_shared_heard, shared);
		mcp_shared_look_begin(shared);
	}
	if (redis_link_ready(shared->link)) /* a reload has brought the first server */
		on_ready(&shared->user);
	return shared;
}
