/* mcp_shared_parts.h - what mcp_shared.c and mcp_shared_*.c do for each other: private to them. */
#ifndef GATEWAY_STATE_MCP_SHARED_PARTS_H
#define GATEWAY_STATE_MCP_SHARED_PARTS_H

#include "gateway/state/mcp_channel_parts.h"
#include "gateway/state/mcp_shared.h"

/* So often worker 0 looks who lives: with ALIVE_LASTS, and the second between two renewals, a home is free within 5 s of
 * its gateway's death. */
#define MCP_LOOK_EVERY (500 * MSEC)
/* Where there were claims of a dead gateway there may be more. */
#define MCP_LOOK_SOON (50 * MSEC)
/* A connection on which nothing is answered for that long is over by then: what was told before has arrived. */
#define MCP_TOLD_SURELY (10 * SEC)
/* Answers that take longer are no reason to give up who asks, as long as any come. */
#define MCP_ASK_PATIENCE SEC
/* When Redis is back, all gateways have found it by then (redis_backoff.h). */
#define MCP_ANNOUNCE_LATER (2 * SEC)
/* A place that nobody has taken or given back by then is free. */
#define MCP_PLACE_LASTS (120 * SEC)

enum {
	MCP_UNTOLD_MAX = 1024,         /* beyond, what was to be told is lost */
	MCP_TOLD_MAX = 256,            /* likewise, with a connection */
	MCP_ANNOUNCE_MAX = 64,         /* homes at once */
	MCP_ORPHANS_MAX = 32,          /* of one look; the next one brings more */
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

/* What must not be lost: FREED, ENDED, SETTLED, or CALL. */
struct mcp_surely {
	enum mcp_tell_kind kind;
	struct mcp_who who;
	uint64_t id;
	bool begun; /* of CALL */
};

struct mcp_sure {
	/* What is to be told when Redis is back. */
	uint32_t count;
	struct mcp_surely at[MCP_UNTOLD_MAX];
	/* What was told last: it may be lost with the connection. */
	uint32_t told; /* ever; the next one is in place told % MCP_TOLD_MAX */
	struct {
		nsec_t at;
		struct mcp_surely what;
	} latest[MCP_TOLD_MAX];
};

/* Homes of this worker that are told to Redis again. */
struct mcp_announce {
	size_t bucket; /* of the records, the next one */
	bool all;      /* not only those that Redis has known before */
	struct net_timer later;
	uint32_t free_count;
	struct mcp_ask *free[MCP_ANNOUNCE_MAX], asks[MCP_ANNOUNCE_MAX];
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
	void (*answered)(struct mcp_shared *shared, struct mcp_ask *ask); /* by Redis */
	struct redis_script record, claim, place, look;
	uint64_t places; /* ever asked for */
	struct mcp_sure sure;
	struct mcp_announce announce;
	/* of worker 0 */
	struct net_timer timer;
	struct redis_call look_call;
	bool look_came;  /* the answer to the latest one */
	uint32_t doubts; /* that all workers know of */
};

static inline nsec_t mcp_shared_now(const struct mcp_shared *shared)
{
	return net_now(shared->loop);
}

/* ---- mcp_shared_redis.c ---- */

/* Sends what it asks, by its kind; the answer fills it in, and `answered` is called. False: Redis is away. */
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

/* ---- mcp_shared_said.c ---- */

/* What a message begins with; but for HELLO a session follows (struct mcp_who), then what is said of it. Only append. */
enum mcp_said {
	SAID_HELLO,   /* a gateway lives that may be new */
	SAID_CLAIMED, /* digest of a request's id, as in Redis */
	SAID_NOTE,    /* 4 bytes, the lowest first */
	SAID_ENDED,
	SAID_FREED,
	SAID_TAKEN, /* the request's id: it was claimed by a gateway that was taken for dead, and is another's now */
};

/* Tells worker 0 of all other gateways. `who` NULL: of no session. */
void mcp_shared_say_all(struct mcp_shared *shared, enum mcp_said what, const struct mcp_who *who,
			struct slice value);
/* Likewise what was told to Redis, where they have to know. */
void mcp_shared_spread(struct mcp_shared *shared, const struct mcp_surely *what);
/* On worker 0, from the bus; the owner is the struct mcp_shared. */
void mcp_shared_heard(void *owner, const struct peer_address *from, struct slice body);
/* That gateway lives, as far as its messages or Redis say. */
void mcp_shared_seen(struct mcp_shared *shared, const struct peer_address *peer);

/* ---- mcp_shared_sure.c ---- */

/* Tells it now, or when Redis is back; and again where the connection may have lost it. */
void mcp_shared_say_surely(struct mcp_shared *shared, const struct mcp_surely *what);
/* The connection is over; Redis is there again. */
void mcp_shared_sure_lost(struct mcp_shared *shared);
void mcp_shared_sure_ready(struct mcp_shared *shared);

/* ---- mcp_shared_announce.c ---- */

void mcp_shared_announce_init(struct mcp_shared *shared);
/* Redis may have lost which sessions this worker is the home of, or others may have taken it for dead: it is said again of
 * each; a while later of those that it was not told of before. Where another gateway is the home by now, the one here is told (MCP_CHANNEL_REPLACED). */
void mcp_shared_announce(struct mcp_shared *shared);

/* ---- mcp_shared_look_redis.c ---- */

/* Of worker 0: begins to look, once a MCP_LOOK_EVERY. */
void mcp_shared_look_begin(struct mcp_shared *shared);
/* Redis is there (again): at once. */
void mcp_shared_look_now(struct mcp_shared *shared);

#endif
