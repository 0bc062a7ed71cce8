/* state.h - what outlives a request: sessions, tool loops, private blocks.
 *
 * One interface, two stores: state_memory.c (this process) and state_redis.c. A request asks once, before
 * POLICY (load), and tells once, when its answer is made (save); either may be answered at once or
 * later, as with store.h. A request without session, tool calls or tool results needs nothing of it, and
 * does not ask.
 *
 * Everything is found by a key, the digest of what the record belongs to. Whoever is not the same tenant,
 * server and session computes another key and finds nothing: that is how another's ids are told from one's
 * own. Everything expires, and what is kept is bounded: a record that is not found is not an error. DESIGN 5
 * "State", "Tool loop", "Reasoning in a loop". */
#ifndef GATEWAY_STATE_STATE_H
#define GATEWAY_STATE_STATE_H

#include "codec/base/arena.h"
#include "codec/base/clock.h"
#include "codec/base/list.h"
#include "codec/base/slice.h"
#include "gateway/redis/redis_call.h"

/* A session and a loop with its calls live so long after they were used last; blocks: store.blocks.ttl. */
#define STATE_SESSION_TTL (3600 * SEC)
#define STATE_LOOP_TTL (3600 * SEC)

enum {
	STATE_CALLS_MAX =
		256, /* of one turn, as asked about or told of: those behind are passed over */
	STATE_BLOCKS_MAX = 256,      /* turns of one request whose blocks are asked for, likewise */
	STATE_EARLY_MAX = 256 << 10, /* bytes of blocks that are read before limits are asked */
	STATE_FOUND_MAX =
		16 << 20, /* bytes of blocks in one answer: what would exceed them is absent */
};

/* What a key is of; the number is part of the digest, and so of what Redis holds. Private blocks are found
 * by the key of their turn's first call. */
enum state_kind {
	STATE_SESSION = 1,
	STATE_CALL = 2,
	STATE_LOOP = 3,
	STATE_IDEMPOTENCY = 4,
	STATE_MCP_SESSION = 5, /* of an MCP server, by the upstream's id */
	STATE_MCP_ASKED = 6,   /* a request that the server made in it */
	STATE_MCP_CALL = 7,    /* one that the client made in it */
	STATE_MCP_SERVER = 8,  /* the server itself */
};

enum { STATE_KEY_BYTES = 16 };
struct state_key {
	uint8_t at[STATE_KEY_BYTES]; /* all zero: none */
};

/* Of `name` (a session's id, a call's id, an idempotency key; for a loop that begins whatever is its own,
 * as its first call's id) under tenant, server and session; an empty session is none. */
struct state_key state_key_of(enum state_kind kind, struct slice tenant, struct slice server,
			      struct slice session, struct slice name);

static inline bool state_key_eq(const struct state_key *a, const struct state_key *b)
{
	return memcmp(a->at, b->at, sizeof(a->at)) == 0;
}

static inline bool state_key_none(const struct state_key *key)
{
	static const struct state_key none;

	return state_key_eq(key, &none);
}

/* Where a loop's last calls came from, in the words of whoever keeps that (health.h); all zero: not known. */
enum { STATE_TARGET_BYTES = 24 };
struct state_target {
	uint8_t at[STATE_TARGET_BYTES];
};

static inline bool state_target_none(const struct state_target *target)
{
	static const struct state_target none;

	return memcmp(target->at, none.at, sizeof(none.at)) == 0;
}

enum state_outcome {
	STATE_DONE,    /* the answer is filled in */
	STATE_PENDING, /* .done will be called once, unless state->forget comes first */
	STATE_GUESSED, /* likewise; until then the answer is what is most likely */
};

/* What a session has used. */
struct state_used {
	uint64_t requests, tokens, usd;
};

enum state_session {
	STATE_SESSION_UNKNOWN, /* expired, another's, lost: 404 */
	STATE_SESSION_KNOWN,
	STATE_SESSION_UNSURE, /* the store could not be asked, and this process does not know it */
};

/* A loop: one row of tool calls and results. Every call id that was issued in it leads to it. */
struct state_loop {
	struct state_key id; /* none: no call that was asked about is known */
	uint32_t known;  /* of the calls asked about, how many were issued here, in whatever loop */
	uint32_t rounds; /* the most that any of these calls came after */
	uint64_t tokens; /* spent in the loop, by all its forks and retries */
	uint64_t usd;    /* nano-USD, likewise */
	struct state_target target; /* where calls were issued last */
};

/* Lives in the request; the store keeps a pointer to it while it is pending. Arrays are the request's, and
 * stay until then, too. */
struct state_load {
	/* asked */
	struct state_key tenant;  /* what limits know it by: where it lies in Redis */
	struct state_key session; /* none: not asked. Its idle time begins anew when it is found */
	const struct state_key *calls; /* of the last turn of calls that has results */
	uint32_t call_count;
	const struct state_key
		*blocks; /* by first call of each assistant turn with calls; their time
					 * begins anew, too */
	uint32_t block_count;
	struct arena *arena; /* what is found lies here */
	bool may_guess;      /* the caller goes ahead on a guess, and looks at the answer later */
	bool early;          /* more blocks than STATE_EARLY_MAX are none, and .cut */
	nsec_t now;
	void (*done)(struct state_load *load);
	/* answered */
	bool away; /* the shared store could not be asked in time: what follows is what this process knows */
	enum state_session session_is; /* UNKNOWN when it was not asked */
	uint32_t revision;             /* of the session: enum revision */
	struct state_used used;        /* by the session, so far */
	struct state_loop loop;        /* of several the one with most tokens */
	bool cut;                      /* there are blocks, and they are too many for `early` */
	struct slice
		*found; /* block_count texts, in the arena; absent: not there. NULL: none was asked
			      * for, or there was no memory */
	/* the store's own */
	struct redis_call call;
	struct list_link waits; /* for the first connection */
};

static inline size_t state_found_max(const struct state_load *load)
{
	return load->early ? STATE_EARLY_MAX : STATE_FOUND_MAX;
}

/* What becomes of a request's session. */
enum state_change {
	STATE_COUNTS, /* it is counted, and what is not there stays so */
	STATE_BEGINS,
	STATE_ENDS,
};

/* What a request leaves behind. */
struct state_save {
	/* told */
	struct state_key tenant;
	struct state_key session; /* none: the request has none */
	enum state_change change;
	uint32_t revision; /* of a session that begins */
	uint64_t requests, tokens,
		usd;           /* added to the session's; tokens and usd to the loop's, too */
	struct state_key loop; /* none: no loop */
	uint32_t rounds;       /* that the calls below come after */
	const struct state_key *calls; /* issued with this answer */
	uint32_t call_count;
	struct state_target target; /* the loop's from now on, if there are calls */
	struct slice
		blocks; /* kept under calls[0]; absent: none. Over store.blocks.each: not kept */
	nsec_t now;
	void (*done)(
		struct state_save *save); /* NULL: nobody waits, and it may go once it was told */
	/* answered */
	bool away;        /* not told to the shared store (in time): only this process knows it */
	bool blocks_kept; /* false: say reasoning_not_saved */
	bool ended;       /* STATE_ENDS: there was one */
	/* the store's own, as above */
	struct redis_call call;
	struct list_link waits;
};

/* Whether a request finds in `answer` what it went ahead on: of its loop and its blocks. */
bool state_load_same(const struct state_load *guess, const struct state_load *answer);

struct state {
	enum state_outcome (*load)(struct state *state, struct state_load *load);
	/* Without .done always STATE_DONE. */
	enum state_outcome (*save)(struct state *state, struct state_save *save);
	/* The request is going away while PENDING; what was told stays told. */
	void (*forget_load)(struct state *state, struct state_load *load);
	void (*forget_save)(struct state *state, struct state_save *save);
	/* Blocks that a provider did not take: they are not offered again. Nobody waits. */
	void (*drop_blocks)(struct state *state, struct state_key tenant,
			    const struct state_key *blocks, uint32_t count);
};

#endif
