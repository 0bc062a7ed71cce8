/* rpc.h - the front of `POST /v1/sampling`: one JSON-RPC message over HTTP (DESIGN 4.3).
 *
 * rpc_request.c decides what a request asks, rpc_response.c writes answers; both do no I/O and are driven by rpc_front.c,
 * by the commands and by tests. rpc_stream.c tells a caller meanwhile, as an event stream. */
#ifndef GATEWAY_FRONT_RPC_RPC_H
#define GATEWAY_FRONT_RPC_RPC_H

#include "gateway/front/front.h"
#include "gateway/front/rpc/rpc_progress.h"

enum { RPC_MAGIC = 0x52504331 };

/* An answer; all of it lies in the call's arena, or is static. */
struct rpc_answer {
	int status; /* 0: there is none so far */
	struct http_field fields[4];
	size_t field_count;
	struct gather body; /* count 0: no body */
};

/* Where a request stands. */
enum rpc_phase {
	RPC_ASKED,    /* the core has no outcome */
	RPC_KEPT,     /* rpc_keep has written the answer */
	RPC_ANSWERED, /* the answer is there: it has left, or ends the stream */
};

/* How a caller keeps up with what it is told. */
enum rpc_pace {
	RPC_IN_TIME, /* all of it has left */
	RPC_UNSENT,  /* the last has not */
	RPC_LATE,    /* likewise, and the next was due: the provider is held up */
};

/* One request. What an event of a stream touches comes first. */
struct rpc_call {
	struct front_request front; /* must be the first */
	struct sampling_call *call; /* NULL: not begun */
	struct http_exchange *exchange;
	uint16_t connection; /* the number of its client's, but for the high bits */
	enum rpc_pace pace : 8;
	enum rpc_phase phase : 8;
	struct front_host *host;
	struct {
		struct net_task
			soon; /* the next notification is due in this turn, or with others on its connection, */
		struct net_timer timer; /* or then; both only where progress is wanted */
	} notify;
	struct rpc_progress progress;

	uint32_t magic;
	const struct http_incoming *in;
	bool post;                     /* else DELETE, or refused */
	bool takes_json, takes_stream; /* Accept */
	bool bad_token;                /* refused for it */
	bool envelope_read;            /* `rpc` is known, if only its id */
	bool in_session;               /* the session that it names is there */
	bool may_tools, may_context;   /* what initialize tells of the plan */
	const char *detail;            /* of `wrote`, for the log; NULL: none */
	enum err wrote; /* what was answered instead of the core's outcome; ERR_OK: that */
	enum revision revision;
	struct jsonrpc rpc;
	struct credentials shown;
	struct caller caller;
	struct sampling_ask ask; /* .caller NULL up to it is known */
	struct sampling_ids ids;
	struct arena arena; /* begins in in->room */
	struct rpc_answer answer;
	char begun[SESSION_ID_HEX]; /* id of the session that initialize begins */
};

extern const struct front rpc_front;

/* The row of the core's callbacks; `owner` is a struct rpc_call. */
extern const struct sampling_front rpc_sampling;

/* ---- rpc_request.c ---- */

/* A request that has just come, in `call`, whatever that holds but .arena and .ids; `in` is read up to its end. */
void rpc_init(struct rpc_call *call, const struct http_incoming *in, uint64_t came_wall_ns);

/* Both false: refused, and the answer is written. */
/* Method, headers, caller; `found`: the path is one of ours. */
MUST_USE bool rpc_read_head(struct rpc_call *call, const struct front_host *host, bool found);
/* The same for a request whose body is still to come: only what does not need one, path and caller, is checked. */
MUST_USE bool rpc_read_early(struct rpc_call *call, const struct front_host *host, bool found);
/* The body: call->ask is whole. The caller is known. */
MUST_USE bool rpc_read_body(struct rpc_call *call, struct json_work *json);

/* As sampling_front has them. */
void rpc_digest(void *owner, struct sha256_sum *sum);
enum err rpc_know(void *owner, bool there, uint32_t revision, struct fault *fault);

/* ---- rpc_method.c ---- */

/* A message other than sampling/createMessage: what is asked of its session. */
void rpc_read_method(struct rpc_call *call, struct json_work *json);
/* The answer to one that is done. */
void rpc_write_method(struct rpc_call *call);
/* notifications/cancelled of a session that is there: the request that it names, raw; absent: none. */
struct slice rpc_cancelled_id(const struct rpc_call *call, struct json_work *json);

/* ---- rpc_response.c ---- */

/* A JSON-RPC error; `data` NULL: none. Returns false. */
bool rpc_refuse(struct rpc_call *call, const struct fault *fault, const struct error_data *data);
/* The same for an error without particulars. */
bool rpc_refuse_err(struct rpc_call *call, enum err err);
/* 202 or 204 without a body. */
void rpc_write_empty(struct rpc_call *call, int status);
/* Begins a 200 answer with a JSON body, which the caller fills in. */
void rpc_write_json(struct rpc_call *call);
/* Adds a header; `value` must live until the answer is sent. */
void rpc_add_field(struct rpc_call *call, struct slice name, struct slice value);
/* The answer to an outcome, and as the last event of a stream where the caller gets one. Harmless when it was
 * written before. */
void rpc_write(struct rpc_call *call, const struct sampling_outcome *outcome);
/* As sampling_front.keep. */
struct slice rpc_keep(void *owner, const struct sampling_outcome *outcome);
void rpc_report(const void *owner, struct log_request *line);
/* Begins the answer as an event stream: status and fields. */
void rpc_write_stream_head(struct rpc_call *call);

/* ---- rpc_stream.c ---- */

/* For callers that are told (rpc_progress_wanted) only: before anything else; at the end, harmless when repeated. */
void rpc_stream_init(struct rpc_call *call);
void rpc_stream_fini(struct rpc_call *call);
/* What is to be told has changed, or may be told from now on. */
void rpc_stream_arm(struct rpc_call *call);
/* The answer is there: it is sent as soon as it can. */
void rpc_stream_end(struct rpc_call *call);
/* What was told last has left. */
void rpc_stream_ready(struct rpc_call *call);

#endif
