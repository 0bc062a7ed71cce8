/* mcp_shared_parts.h - what mcp_shared.c and mcp_shared_*.c do for each other: private to them. */
#ifndef GATEWAY_STATE_MCP_SHARED_PARTS_H
#define GATEWAY_STATE_MCP_SHARED_PARTS_H

#include "gateway/state/mcp_channel_parts.h"
#include "gateway/state/mcp_shared.h"

/* So often worker 0 looks who lives: with ALIVE_LASTS, and the second between two renewals, a home is free within 5 s of
 * its gateway's death. */
#define MCP_LOOK_EVERY (500 * MSEC)
/* A place that nobody has taken or given back by then is free. */
#define MCP_PLACE_LASTS (120 * SEC)

enum {
	MCP_UNTOLD_MAX = 1024,         /* beyond, what was to be told is lost */
	MCP_ORPHANS_MAX = 16,          /* of one look; the next one brings more */
	MCP_ORPHANS_BYTES = 256 << 10, /* likewise */
};

enum mcp_ask_kind { MCP_ASK_HOME, MCP_ASK_CLAIM, MCP_ASK_PLACE };

/* What is told to Redis. */
enum mcp_tell_kind {
	MCP_TELL_SAW, /* of the record, in this order, */
	MCP_TELL_REFUSED,
	MCP_TELL_FREED,
	MCP_TELL_NOTE,
	MCP_TELL_CALL,
	MCP_TELL_UNPLACED, /* of places, */
	MCP_TELL_BEGUN,
	MCP_TELL_USED,
	MCP_TELL_ENDED,
	MCP_TELL_SETTLED, /* and of a claim */
};

struct mcp_tell {
	enum mcp_tell_kind kind;
	struct mcp_who who;
	struct state_key place;
	uint64_t id;        /* SETTLED */
	struct slice value; /* SAW, NOTE, CALL */
};

/* What must not be lost while Redis is away, until it is back. */
struct mcp_untold {
	enum mcp_tell_kind kind; /* FREED, ENDED, SETTLED, or CALL: one is over */
	struct mcp_who who;
	uint64_t id;
};

struct mcp_shared {
	struct net_loop *loop;
	struct redis_link *link;
	struct redis_user user;
	struct peer_bus *bus;
	struct alive *alive;
	struct mcp_channels *channels;
	const struct mcp_shared_events *events;
	void *owner;
	struct peer_address own;
	struct inbox *inbox;
	struct mcp_member member;
	struct redis_script record, claim, place, look;
	uint64_t places; /* ever asked for */
	uint32_t untold_count;
	struct mcp_untold untold[MCP_UNTOLD_MAX];
	/* of worker 0 */
	struct net_timer timer;
	struct redis_call look_call;
	bool look_came; /* the answer to the latest one */
};

static inline nsec_t mcp_shared_now(const struct mcp_shared *shared)
{
	return net_now(shared->loop);
}

/* ---- mcp_shared_redis.c ---- */

/* Sends what it asks, by its kind; the answer fills it in, and mcp_shared_answered is called. False: Redis is away. */
MUST_USE bool mcp_shared_send(struct mcp_shared *shared, struct mcp_ask *ask);
/* False: Redis is away. */
MUST_USE bool mcp_shared_say(struct mcp_shared *shared, const struct mcp_tell *tell);

/* How keys begin that are not of one session. */
void mcp_shared_put_claims(struct redis_buffer *to, const struct mcp_shared *shared);
void mcp_shared_put_moved(struct redis_buffer *to, const struct mcp_shared *shared);
void mcp_shared_put_gateways(struct redis_buffer *to);

/* A claim as it is kept: `head` and the parts behind it. */
enum { MCP_CLAIM_HEAD = 3 * STATE_KEY_BYTES + 1 + 4 };
MUST_USE bool mcp_shared_read_claim(struct slice text, struct mcp_who *who, struct slice *id,
				    struct slice *kept);

/* ---- mcp_shared.c ---- */

/* ask->answer is there. */
void mcp_shared_answered(struct mcp_shared *shared, struct mcp_ask *ask);
/* Asked nothing, told all: of gateways whose messages or answers say so. */
void mcp_shared_seen(struct mcp_shared *shared, const struct peer_address *peer);

/* ---- mcp_shared_look_redis.c ---- */

/* Of worker 0: begins to look, once a MCP_LOOK_EVERY. */
void mcp_shared_look_begin(struct mcp_shared *shared);
/* Redis is there (again): at once. */
void mcp_shared_look_now(struct mcp_shared *shared);

#endif
