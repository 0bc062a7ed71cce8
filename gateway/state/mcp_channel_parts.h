/* mcp_channel_parts.h - a session's record, and what mcp_session.c, mcp_channel.c, mcp_queue.c and mcp_shared*.c do for
 * each other: private to them and their tests. */
#ifndef GATEWAY_STATE_MCP_CHANNEL_PARTS_H
#define GATEWAY_STATE_MCP_CHANNEL_PARTS_H

#include "codec/base/list.h"
#include "codec/base/slab.h"
#include "gateway/state/key_shard.h"
#include "gateway/state/mcp_channel.h"
#include "gateway/state/mcp_counts.h"
#include "gateway/state/mcp_hub.h"
#include "gateway/state/mcp_strict.h"

#include <stdatomic.h>

/* The newest digests of ids. */
struct mcp_claims {
	uint32_t count; /* ever added; the next one is in place count % MCP_IDS_CLAIMED */
	uint64_t at[MCP_IDS_CLAIMED];
};

/* Which events are behind the one of an id. */
struct mcp_seen {
	uint32_t count; /* likewise */
	struct {
		uint64_t id;
		uint64_t number; /* of the event, or of the one before where it was swallowed */
	} at[MCP_IDS_SEEN];
};

/* Events on their way to the client's GET: those that were taken and are kept, then those that were not. */
struct mcp_queue {
	struct list events;
	uint32_t count;
	size_t bytes;
	uint64_t number;       /* of the event that was added last */
	struct mcp_seen *seen; /* NULL: no event had an id yet */
};

/* A record; all of it under its shard's lock. */
struct mcp_session {
	struct key_link link;
	struct list_link use; /* among its shard's, from the one that was not used for longest */
	struct state_key key, tenant;
	struct mcp_counted counted; /* 0 once it has ended, or as long as others told of it only */
	nsec_t used;
	uint32_t note; /* of mcp_session_note */
	bool ended, refused;
	bool open;                   /* the upstream has answered the home's GET */
	struct peer_address home_at; /* as Redis and other gateways said last */
	struct mcp_home *home;
	struct mcp_client *client;
	struct mcp_claims *claims; /* NULL: none was claimed yet */
	struct mcp_about *about;   /* of mcp_session_describe; NULL: nothing */
	struct mcp_queue queue;
};

_Static_assert(sizeof(struct mcp_session) <= 256, "an idle session stays small");

/* A server that refuses what is declared to it; `first` MCP_STRICT_NOT: none. */
struct mcp_strict {
	struct state_key server, tenant; /* tenant: that found it first */
	nsec_t until;
	enum mcp_strictness first, all; /* all: what goes for other tenants */
};

enum {
	MCP_SHARD_BUCKETS = 256,
	MCP_SHARD_SESSIONS = MCP_SESSIONS_MAX / KEY_SHARDS,
	MCP_SHARD_STRICTS = 16
};

struct mcp_shard {
	struct key_shard keys;
	struct mcp_strict stricts[MCP_SHARD_STRICTS];
	struct slab records; /* made with the first one */
	struct list use;
};

struct mcp_channels {
	struct mcp_shard shards[KEY_SHARDS];
	struct mcp_counts counts;
	struct mcp_hub hub;
	_Atomic nsec_t expired;            /* when all shards were last gone through */
	_Atomic(struct mcp_about *) idled; /* for mcp_sessions_idled */
	size_t fail_next; /* tests: the n-th mcp_memory from now on is refused; 0: none */
	/* KEY_SHARDS of them, in a mapping of their own: what nobody uses takes no memory. */
	struct key_link *(*buckets)[MCP_SHARD_BUCKETS];
};

/* Locks and returns the shard of that key. */
struct mcp_shard *mcp_shard_lock(struct mcp_channels *channels, const struct state_key *key);
void mcp_shard_unlock(struct mcp_shard *shard);

/* `bytes` of malloc's, zeroed; NULL: refused. */
void *mcp_memory(struct mcp_channels *channels, size_t bytes);

/* The first eight bytes of its digest. */
uint64_t mcp_id_digest(struct slice id);

/* ---- under the lock ---- */

/* NULL: there is none. */
struct mcp_session *mcp_session_find(struct mcp_shard *shard, const struct state_key *key);
/* The same, or a new one, and it is counted; NULL: there is no room for one. */
struct mcp_session *mcp_session_make(struct mcp_channels *channels, struct mcp_shard *shard,
				     const struct mcp_who *who, nsec_t now);
/* The inbox of the worker that is its home in this process; NULL: none is. */
struct inbox *mcp_session_home_inbox(struct mcp_channels *channels, const struct state_key *key);
/* It ends because nobody uses it: what is noted of it goes to mcp_sessions_idled. */
void mcp_session_idled(struct mcp_channels *channels, struct mcp_session *session);
/* Its idle time begins anew. */
void mcp_session_touch(struct mcp_shard *shard, struct mcp_session *session, nsec_t now);

/* The client or the home is out, and will be told so; harmless where there is none. */
void mcp_session_tell_client(struct mcp_session *session, enum mcp_channel_state why);
void mcp_session_tell_home(struct mcp_session *session, enum mcp_channel_state why);

void mcp_queue_init(struct mcp_queue *queue);
/* As mcp_home_push, and the client is not woken. */
bool mcp_queue_push(struct mcp_channels *channels, struct mcp_session *session,
		    const struct mcp_event *event, nsec_t now, struct mcp_lost **lost);
void mcp_queue_saw(struct mcp_channels *channels, struct mcp_queue *queue, struct slice id);
nsec_t mcp_queue_overdue(struct mcp_channels *channels, struct mcp_session *session, nsec_t now,
			 struct mcp_lost **lost);
/* For the session's client. */
size_t mcp_queue_take(struct mcp_channels *channels, struct mcp_session *session, char *room,
		      size_t size, nsec_t now);
/* Whether an event is there that the client has not taken. */
bool mcp_queue_waits(const struct mcp_queue *queue);
/* Events behind that of `id` are to be taken again, as far as they are kept. False: the id is not known. */
bool mcp_queue_resume(struct mcp_queue *queue, struct slice id, nsec_t now);
/* The home goes: frees what a client that is there has taken already or may not have any more, without a client all. */
void mcp_queue_close(struct mcp_channels *channels, struct mcp_session *session,
		     struct mcp_lost **lost);
/* Frees all events; requests that were not taken are *lost, where that is not NULL. */
void mcp_queue_clear(struct mcp_channels *channels, struct mcp_queue *queue,
		     struct mcp_lost **lost);

#endif
