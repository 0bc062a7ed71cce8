/* mcp_channel.h - the way from a session's own upstream GET to the client's GET, whatever workers they are on.
 *
 * The worker that holds a session's upstream GET is its *home*; there is one at most. The client's GET is on any
 * worker; the newest one gets the events. Both are woken through their workers' inboxes (inbox.h), and whoever has left
 * is not told any more. They lie in the session's record (mcp_session.h). Any thread may call.
 *
 * Memory: queued events come from malloc, one by one; so do the ids of events, with the first that has one. */
#ifndef GATEWAY_STATE_MCP_CHANNEL_H
#define GATEWAY_STATE_MCP_CHANNEL_H

#include "gateway/net/inbox.h"
#include "gateway/state/mcp_session.h"

#define MCP_EVENT_WAITS (30 * SEC) /* a request for a client's GET; then the gateway answers it */
#define MCP_EVENT_KEPT \
	(60 * SEC) /* a taken event, for a client that resumes; only where events have ids */

enum {
	/* In a session's queue: without a client's GET, and with one that is behind. */
	MCP_EVENTS_MAX = 64,
	MCP_EVENTS_BYTES = 64 << 10,
	MCP_EVENTS_LIVE_MAX = 1024,
	MCP_EVENTS_LIVE_BYTES = 1 << 20,
	MCP_EVENT_MAX = 16 << 20, /* bytes of one event */
	MCP_EVENTS_BYTES_ALL =
		64 << 20,  /* of all queues; each tenant has its share (fair_share.h) */
	MCP_IDS_SEEN = 64, /* ids of the own GET's events that are known */
};

/* ---- the home ---- */

enum mcp_channel_state {
	MCP_CHANNEL_OPENING, /* the upstream has not answered the own GET yet */
	MCP_CHANNEL_OPEN,
	/* Of a client: the home has gone. The client takes what is left, ends its GET and detaches. */
	MCP_CHANNEL_CLOSED,
	/* Whoever is told one of these is not in any more: */
	MCP_CHANNEL_REFUSED, /* the upstream answered 405: so does the gateway, for the rest of the session */
	MCP_CHANNEL_ENDED, /* the session is over */
	MCP_CHANNEL_IDLE,  /* of a home: nobody has used the session for MCP_SESSION_IDLE */
	MCP_CHANNEL_REPLACED, /* of a client: a newer GET gets the events; of a home: another gateway is the home */
	MCP_CHANNEL_GAP, /* of a client: it does not take its events, and a request had to go */
};

/* Lives in what holds the own GET; all zero before it is used. */
struct mcp_home {
	struct mcp_who who; /* set by the caller, as is: */
	/* On the home's own worker: the session has ended or is idle (home->state), and the home is not in any more. Or
	 * another gateway is the home (mcp_shared.h), and mcp_home_close follows. It ends the upstream GET. */
	void (*told)(struct mcp_home *home);
	enum mcp_channel_state state; /* changes on the home's own worker only */
	/* private */
	struct mcp_channels *channels; /* NULL: it is not in */
	struct mcp_session
		*session; /* under the lock, as is the next; NULL: it is to be told `next` */
	enum mcp_channel_state next;
	struct inbox *inbox;
	struct inbox_item item;
};

enum mcp_open {
	MCP_OPENED,       /* the caller is the home; mcp_home_close must follow */
	MCP_OPEN_TAKEN,   /* there is another */
	MCP_OPEN_REFUSED, /* the upstream has no GET for this session */
	MCP_OPEN_ENDED,   /* the session is over */
	MCP_OPEN_FULL,    /* no room for its record */
};

/* Makes the caller the session's home, if there is none. `inbox` is that of the calling worker. */
MUST_USE enum mcp_open mcp_home_open(struct mcp_channels *channels, struct mcp_home *home,
				     struct inbox *inbox, nsec_t now);
/* What mcp_home_open would say as far as this process knows, but for MCP_OPEN_FULL. */
enum mcp_open mcp_home_look(struct mcp_channels *channels, const struct mcp_who *who);
/* Another gateway has learnt that the upstream has no GET for this session. */
void mcp_home_refuse(struct mcp_channels *channels, const struct mcp_who *who, nsec_t now);
/* The upstream has answered the GET, and a client that waits is told. `open`: with a stream. Else it has no GET for
 * this session (405, MCP_CHANNEL_REFUSED), which is remembered for the session's life; the home is not in any more. A
 * home that was open once must not say so: clients give a session up whose GET was answered before. Harmless when it is
 * not in. */
void mcp_home_answered(struct mcp_home *home, bool open);
/* The own GET has ended for good; a client is told (MCP_CHANNEL_CLOSED), and may take what is left but for requests.
 * Returns the requests that no client has taken, as in mcp_home_push; NULL: none. By the same worker; harmless when it
 * is not in. */
MUST_USE struct mcp_lost *mcp_home_close(struct mcp_home *home);

/* An event for the client's GET. */
struct mcp_event {
	struct slice bytes; /* as it came, with its empty line */
	struct slice id;    /* its SSE id; absent: none */
	bool request;       /* the server waits for an answer to it, or to one of its parts */
};

/* An event with a request that no client will get: the home answers it (a ping with {}, others with -32603). */
struct mcp_lost {
	struct mcp_lost *next;
	struct slice bytes; /* the whole event */
};
/* Frees a list of them; NULL is fine. */
void mcp_lost_free(struct mcp_lost *lost);

/* Queues the event, and wakes the client. Where the queue is full, events make room: taken ones first, then the oldest
 * that is no request; for a request, the oldest request too, but a client that is there is told MCP_CHANNEL_GAP before.
 * An event longer than MCP_EVENTS_BYTES is queued only for a client that is there. *lost is set to the requests that
 * went, NULL for none. False: the event itself is not queued (no room or memory, or the home has to be told something);
 * where it is a request the home answers it. */
MUST_USE bool mcp_home_push(struct mcp_home *home, const struct mcp_event *event, nsec_t now,
			    struct mcp_lost **lost);
/* Remembers the id of an event that is swallowed, so that a client that resumes behind it is known. */
void mcp_home_saw(struct mcp_home *home, struct slice id);
/* Takes the requests out that no client has taken for MCP_EVENT_WAITS, into *lost, and frees what is not kept any
 * longer. Returns when to call again; NSEC_NEVER: after the next push. */
MUST_USE nsec_t mcp_home_overdue(struct mcp_home *home, nsec_t now, struct mcp_lost **lost);

/* ---- the client's GET ---- */

/* Lives in the client's exchange; all zero before it is used. */
struct mcp_client {
	struct mcp_who who; /* set by the caller, as is: */
	/* On the client's own worker: client->state has changed, or there are events to take. */
	void (*woken)(struct mcp_client *client);
	enum mcp_channel_state state; /* changes on the client's own worker only */
	/* private */
	struct mcp_channels *channels; /* NULL: it is not in */
	struct mcp_session *session;   /* under the lock, as are the next two; NULL: it is out */
	enum mcp_channel_state next;   /* what `state` becomes */
	size_t offset;                 /* bytes of the first event that it has taken */
	struct inbox *inbox;
	struct inbox_item item;
};

enum mcp_attach {
	MCP_ATTACHED,       /* client->state is OPENING or OPEN; mcp_client_detach must follow */
	MCP_ATTACH_NOBODY,  /* there is no home in this process */
	MCP_ATTACH_REFUSED, /* the upstream has no GET for this session: 405 */
	MCP_ATTACH_ENDED,   /* the session is over: 404 */
	MCP_ATTACH_OTHER, /* `last_id` is not one of the own GET's: that stream is resumed upstream */
};

/* Makes this GET the one that gets the events; the one before is told (MCP_CHANNEL_REPLACED). `last_id`: the client's
 * Last-Event-ID, absent for none. Where it is one of the newest MCP_IDS_SEEN of the own GET, the events behind it come
 * first, also those that another GET has taken within MCP_EVENT_KEPT. There is no call of woken for what is queued
 * already: mcp_client_take follows. `inbox` is that of the calling worker. */
MUST_USE enum mcp_attach mcp_client_attach(struct mcp_channels *channels, struct mcp_client *client,
					   struct inbox *inbox, struct slice last_id, nsec_t now);
/* Copies the next bytes of its events, each byte once; returns how many. 0: there are none now, or it is not in any
 * more. A client detaches between two events or in the middle of one: the next client gets that one whole. */
MUST_USE size_t mcp_client_take(struct mcp_client *client, char *room, size_t size, nsec_t now);
/* By the same worker; harmless when it is not in. */
void mcp_client_detach(struct mcp_client *client, nsec_t now);

#endif
