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

/* ---- what gateways tell each other ---- */

/* What a message begins with; but for HELLO a session follows (struct mcp_who), then what is said of it. Only append. */
enum said {
	SAID_HELLO,   /* a gateway lives that may be new */
	SAID_CLAIMED, /* digest of a request's id, as in Redis */
	SAID_NOTE,    /* 4 bytes, the lowest first */
	SAID_ENDED,
	SAID_FREED,
};

_Static_assert(sizeof(struct mcp_who) == 3 * STATE_KEY_BYTES, "it is sent as it is");

static void say_all(struct mcp_shared *shared, enum said what, const struct mcp_who *who,
		    struct slice value)
{
	const char head = (char)what;
	const struct slice parts[] = { { &head, 1 },
				       { (const char *)who, who == NULL ? 0 : sizeof(*who) },
				       value };

	peer_bus_tell_all(shared->bus, PEER_MCP_SHARED, parts, COUNT_OF(parts));
}

static void hear_of_session(struct mcp_shared *shared, enum said what, const struct mcp_who *who,
			    struct slice value)
{
	const nsec_t now = mcp_shared_now(shared);
	uint64_t id;
	uint32_t note;

	if (what == SAID_CLAIMED && value.len == sizeof(id)) {
		(void)memcpy(&id, value.at, sizeof(id));
		mcp_session_hear_claim(shared->channels, who, id, now);
	} else if (what == SAID_NOTE && value.len == sizeof(note)) {
		(void)memcpy(&note, value.at, sizeof(note));
		mcp_session_hear_note(shared->channels, who, le32toh(note), now);
	} else if (what == SAID_ENDED) {
		(void)mcp_session_end(shared->channels, who, now);
	} else if (what == SAID_FREED) {
		mcp_session_hear_home(shared->channels, who, &nowhere, now);
		mcp_hub_free_home(&shared->channels->hub, &who->key);
	}
}

void mcp_shared_seen(struct mcp_shared *shared, const struct peer_address *peer)
{
	mcp_hub_see(&shared->channels->hub,
		    slice_of((const char *)peer->gateway, sizeof(peer->gateway)), false);
}

/* On worker 0. */
static void on_heard(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_shared *shared = owner;
	struct mcp_who who;

	mcp_shared_seen(shared, from);
	if (body.len < 1 + sizeof(who))
		return;
	(void)memcpy(&who, body.at + 1, sizeof(who));
	hear_of_session(shared, (enum said)body.at[0], &who,
			slice_of(body.at + 1 + sizeof(who), body.len - 1 - sizeof(who)));
}

static void on_news(struct mcp_member *member)
{
	struct mcp_shared *shared = CONTAINER_OF(member, struct mcp_shared, member);
	struct state_key freed[MCP_FREED_MAX];
	bool died;
	const uint32_t count = mcp_member_take(member, &died, freed);

	if (died)
		shared->events->died(shared->owner);
	for (uint32_t i = 0; i < count; i++)
		shared->events->freed(shared->owner, &freed[i]);
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
	say_all(shared, SAID_CLAIMED, &ask->who, slice_of((const char *)&digest, sizeof(digest)));
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

void mcp_shared_answered(struct mcp_shared *shared, struct mcp_ask *ask)
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

/* Whether Redis is there or not: what is told later must not be lost. */
static void say_surely(struct mcp_shared *shared, const struct mcp_untold *untold)
{
	const struct mcp_tell tell = { .kind = untold->kind,
				       .who = untold->who,
				       .id = untold->id,
				       .value = SLICE("-1") /* of a call that is over */ };

	if (!mcp_shared_say(shared, &tell)) {
		if (shared->untold_count < MCP_UNTOLD_MAX)
			shared->untold[shared->untold_count++] = *untold;
		return;
	}
	if (untold->kind == MCP_TELL_ENDED)
		say_all(shared, SAID_ENDED, &untold->who, SLICE(""));
	else if (untold->kind == MCP_TELL_FREED)
		say_all(shared, SAID_FREED, &untold->who, SLICE(""));
}

static void say_untold(struct mcp_shared *shared)
{
	while (shared->untold_count != 0 && redis_link_ready(shared->link)) {
		const struct mcp_untold untold = shared->untold[--shared->untold_count];
		/* It may have become the home again meanwhile. */
		if (untold.kind == MCP_TELL_FREED &&
		    mcp_session_home_inbox(shared->channels, &untold.who.key) != NULL)
			continue;
		say_surely(shared, &untold);
	}
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
}

void mcp_shared_used(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)!say(shared, MCP_TELL_USED, who, SLICE(""));
}

void mcp_shared_ended(struct mcp_shared *shared, const struct mcp_who *who)
{
	say_surely(shared, &(struct mcp_untold){ MCP_TELL_ENDED, *who, 0 });
}

void mcp_shared_note(struct mcp_shared *shared, const struct mcp_who *who, uint32_t note)
{
	const uint32_t bytes = htole32(note);
	char text[REDIS_NUMBER_ROOM];
	const size_t len = redis_number_text(text, note);

	mcp_session_hear_note(shared->channels, who, note, mcp_shared_now(shared));
	(void)!say(shared, MCP_TELL_NOTE, who, slice_of(text, len));
	say_all(shared, SAID_NOTE, who, slice_of((const char *)&bytes, sizeof(bytes)));
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
	say_surely(shared, &(struct mcp_untold){ MCP_TELL_FREED, *who, 0 });
}

void mcp_shared_settled(struct mcp_shared *shared, const struct mcp_who *who, struct slice id)
{
	say_surely(shared, &(struct mcp_untold){ MCP_TELL_SETTLED, *who, mcp_session_id(id) });
}

void mcp_shared_call(struct mcp_shared *shared, const struct mcp_who *who, bool begun)
{
	if (begun)
		(void)!say(shared, MCP_TELL_CALL, who, SLICE("1"));
	else
		say_surely(shared, &(struct mcp_untold){ MCP_TELL_CALL, *who, 0 });
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
		say_all(shared, SAID_HELLO, NULL, SLICE(""));
	}
	say_untold(shared);
}

struct mcp_shared *mcp_shared_new(struct net_loop *loop, struct redis_client *client,
				  struct peer_bus *bus, struct alive *alive,
				  struct mcp_channels *channels, struct inbox *inbox,
				  uint32_t worker, const struct mcp_shared_events *events,
				  void *owner)
{
	static const struct redis_user_events user_events = { .ready = on_ready };
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
	shared->inbox = inbox;
	shared->record = (struct redis_script)REDIS_SCRIPT_INIT(mcp_record);
	shared->claim = (struct redis_script)REDIS_SCRIPT_INIT(mcp_claim);
	shared->place = (struct redis_script)REDIS_SCRIPT_INIT(mcp_place);
	shared->look = (struct redis_script)REDIS_SCRIPT_INIT(mcp_look);
	/* A user of before this was there may have no right to some of it. */
	shared->record.aside = shared->claim.aside = shared->place.aside = shared->look.aside =
		true;
	shared->member = (struct mcp_member){ .worker = worker, .inbox = inbox, .told = on_news };
	mcp_hub_join(&channels->hub, &shared->member);
	redis_link_join(shared->link, &shared->user);
	if (worker == 0) {
		peer_bus_hear(bus, PEER_MCP_SHARED, on_heard, shared);
		mcp_shared_look_begin(shared);
	}
	return shared;
}
