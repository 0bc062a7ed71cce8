/* mcp.h - the front of /mcp/{server}: a proxy between MCP clients and MCP servers that answers the servers' samplings.
 *
 * One exchange of a client is one struct mcp_request with one call upstream. What is not sampling passes byte for byte:
 * messages are never written anew, only byte ranges of them are replaced or left out. A sampling that a server asks for is
 * a struct mcp_sampling of its own: it has no exchange, is driven through gateway/sampling/sampling.h, and its answer goes
 * upstream as a POST (struct mcp_post). A session whose samplings are answered here has a GET stream of the gateway's own
 * (struct mcp_own); the client's GET is served from it. What leads to a session's server is in its sealed token
 * (mcp_token.h), so that any worker serves any message. Private to gateway/front/mcp and the worker that makes the host. */
#ifndef GATEWAY_FRONT_MCP_MCP_H
#define GATEWAY_FRONT_MCP_MCP_H

#include "gateway/front/front.h"
#include "gateway/front/mcp/mcp_bridge_era.h"
#include "gateway/front/mcp/mcp_filter.h"
#include "gateway/front/mcp/mcp_link.h"
#include "gateway/front/mcp/mcp_out.h"
#include "gateway/front/mcp/mcp_share.h"
#include "gateway/limits/limit_table.h"
#include "gateway/state/cancel_redis.h"
#include "gateway/state/mcp_shared.h"
#include "gateway/upstream/upstream.h"

enum {
	MCP_REQUEST_MAGIC = 0x4d435052,
	MCP_SAMPLING_MAGIC = 0x4d435053,
	MCP_POST_MAGIC = 0x4d435054,
	MCP_OWN_MAGIC = 0x4d435055,
	MCP_SAMPLINGS_MAX = 8192,       /* under way, of a worker */
	MCP_POSTS_MAX = 16384,          /* answers on their way upstream, likewise */
	MCP_OWN_MAX = MCP_SESSIONS_MAX, /* own streams, likewise */
	MCP_SESSION_SAMPLINGS_MAX = 16, /* of a session; the next one is answered "busy" */
	MCP_ARENA_MAX = 96 << 20,
	MCP_REST_CHUNK = 512,         /* of arenas that are there as long as a stream */
	MCP_REST_KEPT = 512,          /* of those chunks, by a worker */
	MCP_HEAD_LINE_MAX = 16 << 10, /* of a client's header that passes */
};
#define MCP_OWN_PATIENCE \
	SEC /* of a client whose session is about to have a stream of the gateway's own */
/* Without a progress token: the server has its answer within 55 s, its way included, and SDKs give up after 60 s. */
#define MCP_SAMPLING_DEADLINE (55 * SEC - 500 * MSEC)

struct mcp_request;
struct mcp_bridge;
struct mcp_round;
struct mcp_removed;
struct mcp_followed;
struct mcp_opened;
struct mcp_entry;
struct mcp_sampling;
struct mcp_remote;
struct mcp_remotes;

/* What a worker has for this front beside what all fronts get. */
struct mcp_host {
	struct front_host *front;
	struct limit_table *limits;
	uint8_t messages_part[16]; /* of tenants' names in it: for messages */
	struct metrics_worker *metrics;
	struct log_ring *log;
	struct cancel_table *cancels;
	struct cancel_redis *cancels_elsewhere; /* NULL: there are no other gateways */
	struct inbox *inbox;
	struct mcp_channels *channels;
	struct mcp_shared *shared; /* NULL: there are no other gateways, as with the next */
	struct mcp_remotes *remotes;
	struct seal *seal;
	struct mcp_opened *opened; /* what it has opened */
	struct slab samplings, posts, owns;
	struct mcp_eras eras; /* of servers without sessions */
	struct arena_pool
		resting; /* of GETs and their streams: many of them, of which each has little */
	uint32_t series
		[CONFIG_MCP_SERVERS_MAX]; /* of metrics, by the server's place in the configuration in use */
	bool leaving;                     /* no session begins any more */
	struct net_timer minute;
	struct mcp_shares shares;     /* what tenants hold of it */
	struct mcp_removed *removed;  /* endpoints that a reload has taken away (mcp_removed.h) */
	struct mcp_own *all_owns;     /* a drain ends them */
	struct mcp_request *all_gets; /* likewise */
	struct mcp_request *all_requests; /* those under way */
};

/* Sets up what the caller has not set. False: no memory. */
MUST_USE bool mcp_host_init(struct mcp_host *mcp);
/* Samplings whose answers have not left: a drain waits for them. */
size_t mcp_host_in_flight(const struct mcp_host *mcp);
/* The gateway leaves: streams that may be silent end, on both sides. */
void mcp_host_leave(struct mcp_host *mcp);
/* A new configuration is in use: streams that may be silent end where their callers have lost the server, or it is gone. */
void mcp_host_use_config(struct mcp_host *mcp);
/* The drain is over: streams are cut, and whatever waits for a server is refused (ERR_DRAINING). After sampling_give_up,
 * which answers the samplings. */
void mcp_host_give_up(struct mcp_host *mcp);

/* ---- one exchange of a client ---- */

enum mcp_verb { MCP_VERB_OTHER, MCP_VERB_POST, MCP_VERB_GET, MCP_VERB_DELETE, MCP_VERB_OPTIONS };
enum mcp_verb mcp_verb_of(struct slice method);
struct slice mcp_verb_name(enum mcp_verb verb);

enum mcp_phase {
	MCP_READING, /* it is looked at */
	MCP_CALLED,  /* the server has it */
	MCP_HOLDS,   /* initialize: the server's event stream is held until the result is there */
	MCP_STREAMS, /* the server answers in pieces, or the client's GET is open */
	MCP_WAITS, /* the server's answer is there, and leaves once the session's own stream is open */
	MCP_ANSWERED, /* the answer was given to HTTP as a whole */
	MCP_ORPHAN,   /* the client is gone; the server's stream is read on for samplings */
};

/* What the client has sent. */
struct mcp_posted {
	struct slice value; /* all of it, without white space around; absent: no body */
	bool batch;
	uint32_t messages;        /* that it has */
	struct mcp_message first; /* the only one, but for a batch */
};

/* How often initialize was tried, and with what (mcp-proxy.md 2.2). */
enum mcp_hello {
	MCP_HELLO_NONE,  /* it is another message */
	MCP_HELLO_TOOLS, /* {"tools":{}} was put in */
	MCP_HELLO_PLAIN, /* {} was put in */
	MCP_HELLO_OWN,   /* what the client declares itself */
};

/* What of an answer's head is looked at. */
struct mcp_answer_head {
	struct slice content_type, session_id, retry_after, cache_control, accel_buffering, allow;
	bool events; /* an event stream */
};

struct mcp_request {
	struct front_request front; /* must be the first */
	uint32_t magic;
	enum mcp_phase phase;
	struct mcp_host *mcp;
	struct front_host *host;
	struct http_exchange *exchange;  /* NULL: the client is gone, or the answer has left */
	const struct http_incoming *in;  /* as long as the exchange */
	const struct mcp_server *server; /* only while phase is READING */
	struct arena arena;
	struct sampling_ids ids;
	struct credentials shown;
	struct caller caller;
	struct sampling_ask ask; /* for the log line of a refusal */
	/* the answer, where it is the gateway's own or comes whole */
	enum err refused;
	const char *detail;
	int status;
	struct http_field fields[16];
	size_t field_count;
	struct gather answer;
	/* asked */
	enum mcp_verb verb;
	struct slice name;      /* the server's */
	bool sse_message;       /* a POST to the path that a client of HTTP+SSE was told */
	bool sse_stream;        /* a GET that is such a session */
	bool may_sse, sse_only; /* the server may speak, or speaks, HTTP+SSE */
	const char *sse_fault;  /* why its stream does not pass; NULL: it does */
	bool bad_token, client_auth;
	bool modern;        /* 2026-07-28: no session, and the client's leaving cancels */
	struct slice token; /* of a session, as the client sent it; absent: none */
	struct mcp_link link;
	struct mcp_posted posted;
	struct slice text; /* what goes to the server of it */
	/* initialize */
	enum mcp_hello hello;
	struct mcp_place place;
	bool again;                          /* the server has refused what was put in */
	bool refused_more;                   /* likewise, before this try */
	struct slice session_id;             /* of the server's, until its result is there */
	struct mcp_buffer held;              /* of the server's event stream */
	const struct mcp_hello_watch *watch; /* of initialize over Streamable HTTP */
	struct mcp_bridge
		*bridge; /* in the arena; NULL: the session cannot be bridged (mcp_bridge.h) */
	/* 2026-07-28 */
	const struct mcp_legs
		*legs; /* of a call with rounds; NULL: there is one answer, which passes */
	struct mcp_round *round; /* in the arena, where `legs` is there */
	nsec_t until;            /* no leg takes longer; 0: there is no such bound */
	/* upstream */
	struct upstream_call call;
	struct upstream_extra extra;
	struct upstream_address pin;
	struct iovec sent[2];
	/* the answer in pieces */
	struct mcp_filter filter;
	struct mcp_out out;
	bool resumable;   /* an event of it had an id */
	bool goes_on;     /* the client asks for what follows an event */
	bool resuming;    /* a GET for the rest of it has no answer yet */
	bool counted;     /* its stream is, as open */
	bool timed;       /* the first head of an answer has come */
	bool responded;   /* it has brought the response to the client's request */
	uint32_t resumes; /* in a row that have brought nothing */
	struct slice
		tool; /* the tool, prompt or resource that is called; absent: none, or not known */
	struct mcp_sampling *samplings; /* that came on it and are under way */
	struct cancel_entry by_session; /* it is open, and counts as such */
	struct cancel_entry by_id;      /* a bridged call, which can be given up (mcp_bridge.c) */
	struct mcp_followed
		*calls; /* of the client's, each of which can be given up (mcp_follow.c) */
	uint32_t call_count, calls_open; /* calls_open: not given up */
	struct mcp_held share;           /* what it holds of its tenant's */
	nsec_t heard;                    /* ORPHAN: the server's last message came */
	struct net_timer alone;          /* likewise: when to look at that */
	struct mcp_own *own;             /* WAITS: the stream that is to open; NULL: not any more */
	void (*own_opened)(struct mcp_request *request); /* it is open, or will not be */
	/* Whose it is; the answer is valid during the call. */
	void (*home_found)(struct mcp_request *request, const struct mcp_ask *ask);
	struct net_timer patience; /* for it */
	struct mcp_client client;  /* a GET that is served from the own stream */
	struct mcp_remote *remote; /* the same, of a stream at another gateway; NULL: none */
	size_t untaken;            /* bytes of its events that have not left */
	struct mcp_ask *
		asked; /* all gateways: for a session's place, or whether they have heard; NULL: nothing */
	bool (*placed)(struct mcp_request *request); /* the place is there */
	bool shared_call;                            /* all gateways count it as an open call */
	struct mcp_request *next, **link_place;      /* in all_gets */
	struct mcp_request *older, **newer;          /* in all_requests; newer NULL: it is not in */
};

/* A call with rounds: what is done about its legs, each of which is a call upstream. */
struct mcp_legs {
	/* The answer is an event stream. False: no memory, it is collected whole. */
	bool (*head)(struct mcp_request *request, const struct mcp_answer_head *head);
	/* As upstream_call.done. The request may be gone afterwards. */
	void (*done)(struct mcp_request *request);
	/* The request goes. */
	void (*drop)(struct mcp_request *request);
};

/* Who is asked whether the session of an initialize is bridged (mcp_bridge.h). */
struct mcp_hello_watch {
	/* It is about to be sent. *instead: no, another request has taken its place. False: refused. */
	bool (*begins)(struct mcp_request *request, bool *instead);
	/* The answer is there (`response` NULL: it is no message): is it one that is kept until that is known? */
	bool (*wants)(const struct mcp_request *request, const struct mcp_message *response,
		      struct slice session_id);
	/* It is: `body` is all of it. The answer's fields are in place. False: no memory. */
	bool (*keep)(struct mcp_request *request, struct slice body,
		     const struct mcp_message *response);
	bool (*has)(const struct mcp_request *request);
	/* The call whose answer is kept is over. The request may be gone afterwards. */
	void (*go)(struct mcp_request *request);
};

extern const struct front mcp_front;

/* Its answer is a stream that may be silent for hours: when the gateway leaves, that ends (mcp_get_leave). */
void mcp_rest(struct mcp_request *request);
/* Gives all back that the request has. Not from inside of its upstream call's callbacks but `done`. */
void mcp_request_free(struct mcp_request *request);

/* ---- mcp_request.c: what a client asks, and who it is; false: refused, the answer is in place ---- */

MUST_USE bool mcp_read_head(struct mcp_request *request, bool found);
MUST_USE bool mcp_read_body(struct mcp_request *request);

/* ---- mcp_error.c: answers of the gateway's own ---- */

void mcp_add_field(struct mcp_request *request, struct slice name, struct slice value);
/* No fields but the request's id. */
void mcp_begin_fields(struct mcp_request *request);
/* The answer is a JSON-RPC error under the client's id. Returns false. */
bool mcp_refuse(struct mcp_request *request, const struct fault *fault,
		const struct error_data *data);
bool mcp_refuse_err(struct mcp_request *request, enum err err);
/* The answer is a status without a body; not a refusal. Returns false. */
bool mcp_settle(struct mcp_request *request, int status);
/* Its log line and counters. */
void mcp_log_refusal(struct mcp_request *request);
/* ---- mcp_oauth.c ---- */

/* Whether clients are told who issues tokens (public_url and identity.jwt). */
bool mcp_oauth_on(const struct config *config);
/* The URL by which tokens name a server (aud): public_url, which is there, and the server's path. Absent: no memory. */
struct slice mcp_resource(const struct config *config, struct slice name, struct arena *into);
/* The value of WWW-Authenticate; static or in the request's arena. */
struct slice mcp_challenge(struct mcp_request *request);

/* ---- mcp_head.c: which header fields pass ---- */

/* The head of a request upstream. `in` NULL: the gateway's own: for an event stream if it is a GET, from behind the event
 * of `last_id` (absent: none). False: no memory. */
MUST_USE bool mcp_head_write(struct gather *head, const struct mcp_server *server,
			     const struct mcp_link *link, const struct http_incoming *in,
			     bool modern, enum mcp_verb verb, struct slice last_id,
			     size_t body_bytes);
void mcp_head_read(struct slice fields, struct mcp_answer_head *out);
/* What passes to the client becomes the answer's fields, in the request's arena, but for the session's id
 * (mcp_session_pass). False: no memory. */
MUST_USE bool mcp_head_pass(struct mcp_request *request, const struct mcp_answer_head *head);

/* ---- mcp_session_log.c: the log lines of sessions ---- */

enum mcp_end {
	MCP_END_DELETED,      /* by the client's DELETE */
	MCP_END_UPSTREAM_404, /* the server does not know it any more */
	MCP_END_CLOSED,       /* the stream of HTTP+SSE is closed */
	MCP_END_REMOVED,      /* the configuration has its server no more */
	MCP_END_IDLE,
};
/* The session of request->link begins. */
void mcp_session_log_begin(const struct mcp_request *request);
/* It has ended. */
void mcp_session_log_end(const struct mcp_host *mcp, const struct mcp_link *link, enum mcp_end why);
/* Those that were found idle, by any worker. */
void mcp_session_log_idle(const struct mcp_host *mcp);

/* ---- mcp_serve.c ---- */

/* Looks at what is asked, and begins it. False: answered already, the answer is in place. */
MUST_USE bool mcp_serve(struct mcp_request *request);
/* Adds the session's id as the client knows it to the answer's fields. False: no memory. */
MUST_USE bool mcp_session_pass(struct mcp_request *request, struct slice upstream_id);
/* All that belongs to the session ends, on all workers. */
void mcp_session_over(struct mcp_host *mcp, const struct mcp_link *link, enum mcp_end why);
/* A message of the client's, which gives one of its requests up if it is notifications/cancelled: so does what that has caused
 * here. */
void mcp_cancel_call(struct mcp_request *request, const struct mcp_message *message);
/* NULL: the configuration has it no more. */
const struct mcp_server *mcp_link_server(const struct mcp_host *mcp, const struct mcp_link *link);

/* ---- mcp_call.c, mcp_answer.c, mcp_forward.c ---- */

/* Starts a call to the link's endpoint. False: there is no way to it. `pin` lives as long as the call. */
MUST_USE bool mcp_call_start(struct mcp_host *mcp, const struct mcp_server *server,
			     const struct mcp_link *link, struct upstream_call *call,
			     struct upstream_extra *extra, struct upstream_address *pin);
/* The address that a new session is bound to: the one that answered, where the host has several. */
struct mcp_pin mcp_call_pin(struct mcp_host *mcp, const struct mcp_link *link,
			    const struct upstream_address *peer);
/* What a call that has ended is to the client; a session whose address the host has no more is unknown. */
enum err mcp_call_error(const struct upstream_call *call);
/* An answer that is not for the client, *detail says why. ERR_OK: it passes. */
enum err mcp_status_error(const struct mcp_request *request, const char **detail);
/* Sends the client's request on with that body. False: refused. */
MUST_USE bool mcp_forward(struct mcp_request *request, struct slice body);
/* The server's answer, or an error in its place, leaves as a whole; the request may be gone afterwards. */
void mcp_answer_whole(struct mcp_request *request, struct slice body);
void mcp_fail(struct mcp_request *request, enum err err, const char *detail);
/* Events pass to the client from now on; the fields are there. */
void mcp_stream_begin(struct mcp_request *request, int status);
/* The drain is over: as mcp_host_give_up. */
void mcp_forward_give_up(struct mcp_request *request);
extern const struct mcp_filter_events mcp_stream_events;

/* ---- mcp_follow.c ---- */

/* Whether its session may have another such exchange open. False: refused. */
MUST_USE bool mcp_may_open(struct mcp_request *request);
/* Its server has it: its calls are open, and can be given up. Until mcp_unfollow, which is harmless otherwise. */
void mcp_follow(struct mcp_request *request);
void mcp_unfollow(struct mcp_request *request);
/* What a call is of, for the log lines of what it causes: a name or a URI, in the client's message. Absent: not known. */
struct slice mcp_tool_of(const struct mcp_message *call);

/* ---- mcp_orphan.c ---- */

/* The client has left. The request goes, or is an orphan. */
void mcp_gone(struct mcp_request *request);

/* ---- mcp_revoked.c ---- */

/* Notes which key the client has shown, for mcp_is_revoked; while request->in is there. */
void mcp_note_key(struct mcp_request *request);
/* Whether the configuration in use would not let the caller open that stream any more. */
bool mcp_is_revoked(const struct mcp_host *mcp, const struct mcp_link *link,
		    const struct caller *caller);
/* It may be silent for hours: its tenant has room for such a stream. False: refused. */
MUST_USE bool mcp_may_rest(struct mcp_request *request);

/* ---- mcp_initialize.c ---- */

MUST_USE bool mcp_initialize(struct mcp_request *request);
/* What the plan grants for this server; NULL: it permits no model. While phase is READING. */
const struct plan *mcp_grant(const struct mcp_request *request);
/* Its answer is there as a whole. True: it was dealt with. */
bool mcp_hello_whole(struct mcp_request *request, const struct mcp_answer_head *head);
/* Sends initialize anew, with what request->hello says: it has no effect at the server. The request may be gone afterwards. */
void mcp_hello_again(struct mcp_request *request);
/* The same with less than before, which the server has refused. */
void mcp_hello_less(struct mcp_request *request);
/* The answer is a stream. False: no memory. */
MUST_USE bool mcp_hello_begin(struct mcp_request *request, const struct mcp_answer_head *head);
/* The stream has ended, or was left, before the client got any of it. */
void mcp_hello_done(struct mcp_request *request);

/* The same for HTTP+SSE, where the answer comes on the session's stream. */
MUST_USE bool mcp_initialize_sse(struct mcp_request *request);

/* ---- mcp_place.c ---- */

/* Takes a place for a session, by the limits of plan and server, and goes on with `placed`, now or later. False: refused,
 * by either. */
MUST_USE bool mcp_place_for(struct mcp_request *request,
			    bool (*placed)(struct mcp_request *request));
/* The session has begun, and the place is its. */
void mcp_place_begun(struct mcp_request *request);
/* It does not begin. Harmless when there is no place. */
void mcp_place_give(struct mcp_request *request);

/* ---- mcp_sse.c: HTTP+SSE of 2024-11-05 ---- */

/* The answer to a GET is an event stream: its first event decides what it is. The fields are there. */
void mcp_sse_begin(struct mcp_request *request);
/* Notes for the session's stream who answers its samplings: link.token.mode. */
void mcp_sse_note(struct mcp_request *request, enum revision revision);
/* The stream is closed, and so the session is over. */
void mcp_sse_over(struct mcp_request *request);
/* Takes over what is noted. */
void mcp_sse_refresh(struct mcp_request *request);
/* The token of a message's query; absent: none. */
struct slice mcp_sse_token(struct slice query);

/* ---- mcp_post.c: the gateway's own messages to a server ---- */

/* Posts `body`, which is copied. A connection that fails is tried again for a while; that the server refuses the message is
 * logged by nobody but the counters. False: no memory, or there is no way to the server. */
bool mcp_post(struct mcp_host *mcp, const struct mcp_link *link, const struct gather *body);
/* The same, and when it is over so is the claim of that id (mcp_shared_settled); absent: none. */
bool mcp_post_answer(struct mcp_host *mcp, const struct mcp_link *link, const struct gather *body,
		     struct slice settles);
/* The answer to a request that no buffer holds. */
void mcp_post_too_large(struct mcp_host *mcp, const struct mcp_link *link, struct slice id);
MUST_USE bool mcp_post_slab(struct slab *slab);
/* Answers a server's requests in an event that no client will get: a ping with {}, others with an error. */
void mcp_answer_unheard(struct mcp_host *mcp, const struct mcp_link *link, struct slice event);
/* An error as the answer to the server's request of that id. */
void mcp_post_error(struct mcp_host *mcp, const struct mcp_link *link, struct slice id,
		    const struct fault *fault, const struct error_data *data);

/* ---- mcp_sampling.c ---- */

MUST_USE bool mcp_sampling_slab(struct slab *slab);
/* A server's request for a sampling in `text`, from which all that is needed is copied. `stream`: the client's exchange
 * that it came on; NULL: the session's own stream. It is answered, whatever happens. */
void mcp_sampling_begin(struct mcp_host *mcp, const struct mcp_link *link,
			const struct caller *caller, struct slice text,
			const struct mcp_message *message, struct mcp_request *stream);
/* The same of one that a gateway had claimed which is dead: it is this one's, and came `came_s` after 1970. */
void mcp_sampling_inherit(struct mcp_host *mcp, const struct mcp_link *link,
			  const struct caller *caller, struct slice text,
			  const struct mcp_message *message, uint64_t came_s);
/* One of the samplings of a round (mcp_round.h), which gets the answer in place of the server. */
struct mcp_entry {
	const struct mcp_entry_events *events;
	struct mcp_request *request;
	nsec_t until;                  /* no sampling takes longer */
	struct mcp_sampling *sampling; /* NULL: it is not under way */
	struct slice name;             /* as the server wrote it */
	/* Names the sampling: the same one, of a call that the client repeats, is paid for once. All zero: it has no name. */
	struct mcp_digest once;
	struct slice answer; /* JSON text; absent: not there yet */
};

/* One of the first two for each entry, perhaps from inside mcp_sampling_ask. */
struct mcp_entry_events {
	/* The answer, a bare result, valid during the call. */
	void (*answered)(struct mcp_entry *entry, const struct gather *result);
	/* Why there is none; `data` NULL: nothing more. */
	void (*failed)(struct mcp_entry *entry, const struct fault *fault,
		       const struct error_data *data);
	/* Follows each of both that does not come from inside, when nothing of the sampling is left. The request may be
	 * gone afterwards. */
	void (*go_on)(struct mcp_request *request);
};

/* Begins the sampling of an entry, with these params (absent: none). */
void mcp_sampling_ask(struct mcp_host *mcp, const struct mcp_link *link,
		      const struct caller *caller, struct slice params, struct mcp_entry *entry);
/* Nobody wants its answer any more. */
void mcp_sampling_drop(struct mcp_sampling *sampling);
/* The server gives the request of that id up. True: it was one that is answered here. */
bool mcp_sampling_cancelled(struct mcp_host *mcp, const struct mcp_link *link, struct slice id);
/* The stream goes; what it has begun goes on without it. */
void mcp_samplings_detach(struct mcp_request *stream);
/* The client gives its request up: what the stream has begun is answered -1. */
void mcp_samplings_stop(struct mcp_request *stream);

/* ---- mcp_own.c: a session's own stream ---- */

enum mcp_own_begun {
	MCP_OWN_NOT,   /* somebody in this process has it, or there is no way to it */
	MCP_OWN_OPENS, /* it is about to open */
	MCP_OWN_ASKS,  /* it is, unless another gateway has it, which is asked for first */
};

/* Opens it, if nobody has; without a request not while Redis is away, since another gateway may have it. `request` (NULL:
 * none) waits for it, unless MCP_OWN_NOT: request->own_opened follows, unless mcp_own_forget comes first. One with
 * home_found waits only to hear whose the stream is: for ASKS that follows in its place. */
enum mcp_own_begun mcp_own_open(struct mcp_host *mcp, const struct mcp_link *link,
				const struct caller *caller, struct mcp_request *request);
MUST_USE bool mcp_own_slab(struct slab *slab);
/* A new configuration is in use: those whose server it has not end as soon as no call is open. */
void mcp_owns_use_config(struct mcp_host *mcp);
/* All of them end. */
void mcp_owns_end(struct mcp_host *mcp);
/* The one that the request waits for is not waited for any more. */
void mcp_own_forget(struct mcp_request *request);

/* ---- mcp_claim.c, mcp_peers.c: with other gateways ---- */

/* What the shared state of all gateways tells this worker; its owner is a struct mcp_host. */
extern const struct mcp_shared_events mcp_peer_events;
/* A call of a session that has a stream of the gateway's own has come: some gateway that lives is to have it. */
void mcp_home_check(struct mcp_request *request);
/* A dead gateway's claim, as it was kept (absent: it was not), is this gateway's: the server is answered, if there is a way to
 * it. */
void mcp_claim_inherit(struct mcp_host *mcp, const struct mcp_who *who, struct slice id,
		       struct slice text);

/* ---- mcp_get.c: a client's GET ---- */

/* Serves it from the session's own stream. False: refused. */
MUST_USE bool mcp_get(struct mcp_request *request);
/* The client has left, or the answer is over. */
void mcp_get_gone(struct mcp_request *request);
/* The stream ends, in good order. */
void mcp_get_end(struct mcp_request *request);

/* As mcp_get_end, also of one that waits, which is refused with `err`, and of one that passes from the server. */
void mcp_get_leave(struct mcp_request *request, enum err err);

/* ---- mcp_count.c: metrics ---- */

/* A message of a client that was read, or a GET or DELETE. */
void mcp_count_message(const struct mcp_request *request, enum mcp_message_kind kind);
/* What of a server's event stream passes; `kind` where the answer is one JSON text. */
void mcp_count_passed(const struct mcp_host *mcp, const struct mcp_link *link,
		      const struct mcp_passed *passed);
void mcp_count_whole(const struct mcp_request *request, struct slice body);
/* The head of a server's answer came at `at`. Counts the first one to a POST. */
void mcp_count_head(struct mcp_request *request, nsec_t at);
/* The client's stream is open, or the request is over. Harmless when nothing changes. */
void mcp_count_stream(struct mcp_request *request, bool open);
/* A request that was refused, if it was for its server. */
void mcp_count_failure(const struct mcp_request *request);
/* What a server said to one of the gateway's own messages. */
void mcp_count_post(struct mcp_host *mcp, const struct mcp_link *link,
		    const struct upstream_call *call);
/* A server's request stays without an answer: there was no memory for it, or no way to the server. */
void mcp_count_lost(struct mcp_host *mcp, const struct mcp_link *link);

#endif
