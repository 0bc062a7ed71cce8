/* mcp_shared.h - what gateways that share a Redis know together of the sessions of /mcp/{server}: who is a session's home,
 * which server requests were claimed, how many sessions there are, which are over, and who has died.
 *
 * Beside it each process has its own records (mcp_session.h), which this fills with what other gateways tell. All questions
 * are asked of Redis at most once per beginning, GET, sampling or end of a session; messages that pass cost nothing. While
 * Redis is away each question is answered by UNKNOWN, and the process's own records decide alone. When it is back, this
 * tells it of what homes there are, and what must not be lost. One per worker. */
#ifndef GATEWAY_STATE_MCP_SHARED_H
#define GATEWAY_STATE_MCP_SHARED_H

#include "gateway/net/inbox.h"
#include "gateway/state/mcp_session.h"
#include "gateway/state/peer_bus.h"

enum {
	MCP_KEPT_MAX = 66 << 10,  /* bytes that are kept of a claimed request (mcp-proxy.md 6.2) */
	MCP_SHARED_ID_MAX = 1024, /* of an event id; a longer one is not remembered */
};

struct mcp_shared;

/* What this worker is told; owner is the front's. Never from inside of a function of this header. */
struct mcp_shared_events {
	/* A gateway that was there is dead: homes of its are free. */
	void (*died)(void *owner);
	/* The home of that session has let go: it is free (its record has the last event id). Of worker 0's message, told on
	 * every worker of the process. */
	void (*freed)(void *owner, const struct state_key *key);
	/* On worker 0: a request that a dead gateway had claimed is this gateway's now, as it was kept; absent: too long to be
	 * kept. mcp_shared_settled must follow when it was answered. `id`: its canonical text. */
	void (*orphan)(void *owner, const struct mcp_who *who, struct slice id, struct slice kept);
	/* On worker 0: a gateway that was taken for dead, which may be this one, had claimed that request, and another one
	 * answers it: this one must not any more. NULL: nothing is done. */
	void (*taken)(void *owner, const struct mcp_who *who, struct slice id);
};

/* `channels` and `alive` are the process's, inbox, bus and `worker` (its number) the worker's. Lives until the process
 * ends, as all of these must. The functions of `events` are all there but for `taken`. In the loop's
 * turn in which the bus was made. NULL: memory. */
struct mcp_shared *mcp_shared_new(struct net_loop *loop, struct redis_client *client,
				  struct peer_bus *bus, struct alive *alive,
				  struct mcp_channels *channels, struct inbox *inbox,
				  uint32_t worker, const struct mcp_shared_events *events,
				  void *owner);

/* ---- questions: done is called once, later, unless mcp_ask_forget comes first. False: Redis is away, nothing follows. ---- */

struct mcp_ask {
	struct mcp_who who;
	void (*done)(struct mcp_ask *ask);
	void *owner; /* for it */
	/* the answer; UNKNOWN until it is there */
	enum mcp_shared_answer {
		MCP_SHARED_UNKNOWN, /* Redis has gone, has refused it, or has not answered for a second */
		MCP_SHARED_MINE, /* the home is this worker now; last_id is where the one before was */
		MCP_SHARED_OTHERS,  /* the home is `home`, which lives */
		MCP_SHARED_NOBODY,  /* asked without `take`: there is no home that lives */
		MCP_SHARED_REFUSED, /* the upstream has no GET for this session */
		MCP_SHARED_ENDED,   /* the session is over */
		MCP_SHARED_CLAIMED, /* the server request is this gateway's to answer */
		MCP_SHARED_BEFORE,  /* another has claimed it, or this one before */
		MCP_SHARED_ROOM,    /* the place is taken */
		MCP_SHARED_TENANT_FULL,
		MCP_SHARED_SERVER_FULL,
	} answer;
	struct peer_address home;
	struct slice last_id; /* of MINE: valid during done; len 0: none */
	uint32_t note;        /* mcp_session_note's, as any gateway noted it; 0: none */
	uint32_t calls; /* of CLAIMED: open calls at all gateways that live (mcp_shared_call) */
	/* private */
	struct mcp_shared *shared;
	struct redis_call call;
	unsigned char kind;
	bool take;
	struct slice id, kept;
	struct state_key place;
	uint32_t tenant_max, server_max;
};

/* Who is the home? `take`: where there is none that lives, this worker becomes it (compare and set). */
MUST_USE bool mcp_ask_home(struct mcp_shared *shared, struct mcp_ask *ask, bool take);

/* Claims a server request for this gateway, before the model is called. `id`: its canonical text; `kept`: what leads to its
 * answer, at most MCP_KEPT_MAX bytes, kept until mcp_shared_settled for the case that this gateway dies; absent: nothing.
 * Both must live until done. All gateways are told that it is claimed (mcp_session_claimed). */
MUST_USE bool mcp_ask_claim(struct mcp_shared *shared, struct mcp_ask *ask, struct slice id,
			    struct slice kept);

/* A place for a session that is about to begin, by the limits of tenant and server over all gateways; ask->who.key is not
 * looked at. With MCP_SHARED_ROOM mcp_shared_begun or mcp_shared_unplaced must follow. */
MUST_USE bool mcp_ask_place(struct mcp_shared *shared, struct mcp_ask *ask, uint32_t tenant_max,
			    uint32_t server_max);

/* Nobody waits any more; harmless when it is not pending. What was asked for may be done all the same: a place is given
 * back then, a home is let go, and a claim is settled. */
void mcp_ask_forget(struct mcp_ask *ask);

/* ---- told, and nobody waits; harmless while Redis is away ---- */

/* The place that `ask` has got: the session with that key has it now, or nobody. */
void mcp_shared_begun(struct mcp_shared *shared, const struct mcp_ask *ask,
		      const struct mcp_who *who);
void mcp_shared_unplaced(struct mcp_shared *shared, const struct mcp_ask *ask);
/* A message of the session came; call it at most once in MCP_SESSION_RENEW. */
void mcp_shared_used(struct mcp_shared *shared, const struct mcp_who *who);
/* The session is over: its record and place go, and every gateway's mcp_session_end is called. */
void mcp_shared_ended(struct mcp_shared *shared, const struct mcp_who *who);
/* mcp_session_note, at all gateways. */
void mcp_shared_note(struct mcp_shared *shared, const struct mcp_who *who, uint32_t note);
/* The home's own: an event of that id has come; the upstream has no GET; it lets go (every gateway hears `freed`). */
void mcp_shared_saw(struct mcp_shared *shared, const struct mcp_who *who, struct slice last_id);
void mcp_shared_refused(struct mcp_shared *shared, const struct mcp_who *who);
void mcp_shared_freed(struct mcp_shared *shared, const struct mcp_who *who);
/* The request has its answer. After mcp_ask_claim was answered with CLAIMED or UNKNOWN; harmless else. */
void mcp_shared_settled(struct mcp_shared *shared, const struct mcp_who *who, struct slice id);
/* Calls of the client, sent together, have begun, or are over: in sessions whose samplings are answered. */
void mcp_shared_call(struct mcp_shared *shared, const struct mcp_who *who, bool begun);

/* ---- known without asking ---- */

/* Whether that gateway lived when this process last looked, a second ago or two. */
bool mcp_shared_lives(const struct mcp_shared *shared, const struct peer_address *peer);
/* The home as this process learned it last; false: it does not know, or that gateway is dead. */
MUST_USE bool mcp_shared_home_known(struct mcp_shared *shared, const struct mcp_who *who,
				    struct peer_address *home);

#endif
