/* mcp_shared_said.c - what gateways tell each other, and what becomes of it. */
#include "gateway/state/mcp_shared_parts.h"

#include <endian.h>

static const struct peer_address nowhere;

_Static_assert(sizeof(struct mcp_who) == 3 * STATE_KEY_BYTES, "it is sent as it is");

void mcp_shared_say_all(struct mcp_shared *shared, enum mcp_said what, const struct mcp_who *who,
			struct slice value)
{
	const char head = (char)what;
	const struct slice parts[] = { { &head, 1 },
				       { (const char *)who, who == NULL ? 0 : sizeof(*who) },
				       value };

	peer_bus_tell_all(shared->bus, PEER_MCP_SHARED, parts, COUNT_OF(parts));
}

void mcp_shared_spread(struct mcp_shared *shared, const struct mcp_surely *what)
{
	if (what->kind == MCP_TELL_ENDED)
		mcp_shared_say_all(shared, SAID_ENDED, &what->who, SLICE(""));
	else if (what->kind == MCP_TELL_FREED)
		mcp_shared_say_all(shared, SAID_FREED, &what->who, SLICE(""));
}

static void hear_of_session(struct mcp_shared *shared, enum mcp_said what,
			    const struct mcp_who *who, struct slice value)
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
	} else if (what == SAID_TAKEN && shared->events->taken != NULL) {
		shared->events->taken(shared->owner, who, value);
	}
}

void mcp_shared_seen(struct mcp_shared *shared, const struct peer_address *peer)
{
	mcp_hub_see(&shared->channels->hub,
		    slice_of((const char *)peer->gateway, sizeof(peer->gateway)), false);
}

/* On worker 0. */
void mcp_shared_heard(void *owner, const struct peer_address *from, struct slice body)
{
	struct mcp_shared *shared = owner;
	struct mcp_who who;

	mcp_shared_seen(shared, from);
	if (body.len < 1 + sizeof(who))
		return;
	(void)memcpy(&who, body.at + 1, sizeof(who));
	hear_of_session(shared, (enum mcp_said)body.at[0], &who,
			slice_of(body.at + 1 + sizeof(who), body.len - 1 - sizeof(who)));
}
