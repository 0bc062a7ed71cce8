/* mcp_session.h - the sessions of /mcp/{server} that this process knows: how many a tenant and a server have, which are
 * over, and which server requests were answered.
 *
 * A message is passed without any of this: everything that it needs is in its session's token. A session's record is
 * made by whatever function below needs it first, and goes when it was not used for MCP_SESSION_IDLE, so that a lost
 * record is never an error. Shared by all workers (key_shard.h); any thread may call.
 *
 * Memory: a record is of a slab; ids that were claimed come from malloc, with the first of them, and what is noted for
 * the log. */
#ifndef GATEWAY_STATE_MCP_SESSION_H
#define GATEWAY_STATE_MCP_SESSION_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "gateway/state/peer_address.h"
#include "gateway/state/state.h"

#define MCP_SESSION_IDLE (3600 * SEC) /* then a session's place is free, and its own GET ends */
#define MCP_SESSION_RENEW (60 * SEC)  /* its idle time begins anew so often at most */

enum {
	/* Records; beyond, the one goes that has no GET and was not used for longest. */
	MCP_SESSIONS_MAX = 65536,
	MCP_IDS_CLAIMED = 256, /* ids of a session's server requests */
};

struct mcp_channels;

/* NULL: memory. Lives until the process ends, but for tests. */
struct mcp_channels *mcp_channels_new(void);
void mcp_channels_free(
	struct mcp_channels *channels); /* there is no home, client or place any more */

/* Which session, and whose: tenant and server are counted by these keys. */
struct mcp_who {
	struct state_key key;    /* mcp_token_key */
	struct state_key tenant; /* its limit_key */
	struct state_key server; /* mcp_server_key */
};
struct state_key mcp_server_key(struct slice name);

/* ---- sessions, and how many ---- */

enum mcp_room {
	MCP_ROOM,
	MCP_TENANT_FULL,
	MCP_SERVER_FULL,
	MCP_PROCESS_FULL, /* as many sessions begin at once as can be counted */
};

/* A place for a session that is about to begin. Lives in its request. */
struct mcp_place {
	struct mcp_channels *channels; /* NULL: none is held */
	uint32_t tenant, server;
};

/* Takes a place if the tenant has fewer than `tenant_max` sessions and the server fewer than `server_max`. With
 * MCP_ROOM mcp_session_begin or mcp_place_drop must follow. */
MUST_USE enum mcp_room mcp_place_take(struct mcp_channels *channels, struct mcp_place *target,
				      const struct state_key *tenant, uint32_t tenant_max,
				      const struct state_key *server, uint32_t server_max,
				      nsec_t now);
/* The session did not begin, or has no id. Harmless when none is held. */
void mcp_place_drop(struct mcp_place *target);
/* It did: the place is its record's now. Where the process has no room for a record, the session goes on uncounted. */
void mcp_session_begin(struct mcp_place *target, const struct mcp_who *who, nsec_t now);
/* A message of the session came. Begins its idle time anew, at most once a minute; makes a record where it is lost. True:
 * it did one of both. */
bool mcp_session_used(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now);
/* The session is over (DELETE, upstream 404): its place is free, home and client are told (MCP_CHANNEL_ENDED), and its
 * key is remembered as ended for MCP_SESSION_IDLE. True: it was not over before. */
bool mcp_session_end(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now);
/* Whether it is remembered as ended. */
bool mcp_session_ended(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now);
/* Sessions of a server now, for its metric. */
uint32_t mcp_sessions_of(struct mcp_channels *channels, const struct state_key *server, nsec_t now);
/* Sessions that are idle give their places back, and their homes are told (MCP_CHANNEL_IDLE). The functions above do
 * so when they need room; each worker that holds homes calls this once a minute, and mcp_sessions_idled after it. */
void mcp_sessions_expire(struct mcp_channels *channels, nsec_t now);

/* What the log says of a session. */
struct mcp_about {
	struct mcp_about *next;
	struct state_key key;
	uint64_t begun_s;                              /* seconds since 1970 */
	uint8_t mode;                                  /* its front's */
	struct slice tenant, server, client, revision; /* absent: nothing is said of it */
};
/* Notes a copy (but `next`) with the record of a session that has just begun. Harmless where there is none; without memory
 * nothing is noted. */
void mcp_session_describe(struct mcp_channels *channels, const struct mcp_about *about);
/* Takes what was noted of the sessions that have been found idle since the last call; NULL: none. mcp_about_free must
 * follow. */
MUST_USE struct mcp_about *mcp_sessions_idled(struct mcp_channels *channels);
/* Frees a list of them; NULL is fine. */
void mcp_about_free(struct mcp_about *list);

/* Four bytes of its front's, for all workers; 0: nothing was noted. Makes a record where there is none. */
void mcp_session_note(struct mcp_channels *channels, const struct mcp_who *who, uint32_t note,
		      nsec_t now);
uint32_t mcp_session_noted(struct mcp_channels *channels, const struct mcp_who *who);

/* ---- server requests that were answered ---- */

enum mcp_claim {
	MCP_CLAIMED,        /* it is the caller's to answer */
	MCP_CLAIMED_BEFORE, /* of the newest MCP_IDS_CLAIMED: it was answered, or is being answered */
	MCP_UNCLAIMED,      /* no memory to remember it; the caller may answer it */
};

/* Claims the server request of that id (its canonical text) in the session, once: of several workers that see the same
 * request one gets MCP_CLAIMED. Never given back: a claimed request is answered, if only with an error. */
MUST_USE enum mcp_claim mcp_session_claim(struct mcp_channels *channels, const struct mcp_who *who,
					  struct slice id, nsec_t now);
/* Whether it was claimed. */
bool mcp_session_claimed(struct mcp_channels *channels, const struct mcp_who *who, struct slice id);

/* ---- what other gateways tell (mcp_shared.h) ----
 *
 * A record that is made by these is not counted before a message of its session comes to this process. */

/* Another gateway has claimed the request whose id has this digest (mcp_session_id): it is claimed here, too. */
void mcp_session_hear_claim(struct mcp_channels *channels, const struct mcp_who *who, uint64_t id,
			    nsec_t now);
uint64_t mcp_session_id(struct slice id);
/* As mcp_session_note. */
void mcp_session_hear_note(struct mcp_channels *channels, const struct mcp_who *who, uint32_t note,
			   nsec_t now);
/* Where the session's home is, at whatever gateway; none: it is free, for which no record is made. */
void mcp_session_hear_home(struct mcp_channels *channels, const struct mcp_who *who,
			   const struct peer_address *home, nsec_t now);
/* As it was heard last; none: it is free, or not known. */
struct peer_address mcp_session_home(struct mcp_channels *channels, const struct state_key *key);

#endif
