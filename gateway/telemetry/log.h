/* log.h - one JSON line per request, and per begin and end of an MCP session, into the worker's ring; never a body,
 * never a key, never a session's id (DESIGN 4.5).
 *
 * A ring has one writer (the worker) and one reader (the control thread, which writes to stdout and
 * never blocks a worker). A line that does not fit is dropped and counted. */
#ifndef GATEWAY_TELEMETRY_LOG_H
#define GATEWAY_TELEMETRY_LOG_H

#include "codec/base/clock.h"
#include "codec/base/err.h"
#include "codec/mcp/sampling.h"

enum {
	LOG_RING_BYTES = 1 << 20,
	LOG_LINE_MAX = 8192,
	LOG_CANDIDATES = 4,
	LOG_DRAWN = 2,
	LOG_ATTEMPTS = 8
};

struct log_ring;
struct log_ring *log_ring_new(void); /* NULL: memory */
void log_ring_free(struct log_ring *ring);

struct log_candidate {
	uint32_t model;
	double score;
};

struct log_drawn {
	uint32_t endpoint;
	double cost;
};

/* What a request kept of the place that answered the last round of its tool loop. */
enum log_held { LOG_HELD_NOTHING, LOG_HELD_MODEL, LOG_HELD_ENDPOINT /* and the model */ };
/* As the line says it; NULL: nothing. */
const char *log_held_name(enum log_held held);

enum { LOG_CONFIG_HEX = 16 }; /* hex digits of a configuration's digest */

/* Everything that `sluice explain --log` needs to route the request once more: the member "route". */
struct log_route {
	/* LOG_CONFIG_HEX digits. NULL: the request was not routed, and the line has no "route". */
	const char *config_digest;
	uint64_t seed;         /* of all chance; 0: none was needed */
	struct slice hint;     /* raw JSON string: the one that matched; absent: none */
	int32_t alias;         /* of the tenant's, by which it did; -1: by a model's name */
	uint64_t input_tokens; /* estimate */
	uint32_t max_tokens;
	bool image, audio;                               /* the model had to take them */
	enum log_held held;                              /* where its tool loop was before */
	double cost, speed, intelligence;                /* priorities; NAN: not stated */
	struct log_candidate candidates[LOG_CANDIDATES]; /* the first that were scored */
	uint32_t candidate_count;
	struct log_drawn
		drawn[LOG_DRAWN]; /* the endpoints between which the last attempt's was chosen */
	uint32_t drawn_count;
};

/* The session that a request is of, by a digest that names it to nobody; and what it had used before. */
enum { LOG_SESSION_HEX = 16 };
struct log_session {
	char id[LOG_SESSION_HEX + 1]; /* hex, NUL; "": none */
	bool counted;                 /* the rest is known */
	uint64_t requests, tokens, usd_nano;
};

/* What a client of the providers' own APIs says of itself; plain, any bytes; absent: nothing. */
struct log_agent {
	struct slice retry;                  /* how often its SDK has tried that before */
	struct slice session, agent, parent; /* of an agent's work */
};

/* Everything the line says; absent slices and zero numbers of parts that did not happen are left
 * out. Names of ours (revision, rpc, stop, digests and ids) are written as they are: they are plain, and of 32
 * bytes at most. */
struct log_request {
	uint64_t wall_ns;
	char request_id[33];         /* 32 hex digits, NUL */
	struct slice traceparent;    /* plain, already checked to be printable; or absent */
	struct slice tenant, server; /* plain */
	const char *front;           /* by which API it came */
	struct slice
		client; /* of a sampling behind a proxied call: the name of the key; plain, or absent */
	struct slice
		tool; /* likewise: the tool, prompt or resource that was called; plain, or absent */
	const struct log_agent *agent; /* NULL: it says nothing */
	struct log_session session;
	const char *revision; /* NULL when not known */
	const char *rpc;      /* JSON-RPC method's name, NULL when not read */
	struct slice model, provider, endpoint;
	struct log_route route;
	uint32_t attempts;
	enum err attempt_classes[LOG_ATTEMPTS]; /* how each of them ended */
	struct usage usage;
	uint64_t usd_nano;
	uint64_t estimated_tokens; /* charged for attempts whose usage never came: not in `usage` */
	const char *stop;          /* MCP stop reason, NULL when none */
	enum err err;
	int status;         /* HTTP; 499 when cancelled */
	const char *detail; /* static; why, for the operator; NULL */
	nsec_t total, queue, provider_ttfb, provider_total;
};

/* Worker side. False: dropped (and counted in the ring). */
bool log_request(struct log_ring *ring, const struct log_request *line);

/* A session of an MCP server that begins or ends. Absent and NULL members are left out; `session`, `mode` and `end` are
 * names of ours, as above. */
struct log_mcp_session {
	uint64_t wall_ns;
	const char *request_id; /* hex; NULL: no request of the client's is the cause */
	struct slice tenant, server, client, revision;
	const char *mode;                  /* who answers its samplings */
	char session[LOG_SESSION_HEX + 1]; /* hex, NUL: the digest that names it to nobody */
	const char *end;                   /* why it ended; NULL: it begins */
	uint64_t lasted_s;                 /* where it ended */
};

/* Worker side, likewise. */
bool log_mcp_session(struct log_ring *ring, const struct log_mcp_session *line);

/* Control side: the oldest unread bytes, contiguous; log_ring_read consumes. */
struct slice log_ring_peek(struct log_ring *ring);
void log_ring_read(struct log_ring *ring, size_t len);
uint64_t log_ring_dropped(const struct log_ring *ring);

#endif
