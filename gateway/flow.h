/* flow.h - one request's steps: an event in, an effect out, no I/O.
 *
 * flow_run goes through tbl/steps.h until the request has to wait or is answered, and returns what is
 * to be done; the driver (worker.c, tests, the two commands) does it and comes back with the event.
 * A flow owns nothing but what lies in its arena. It reads the configuration only up to RESERVE and
 * copies what later steps need, so that a snapshot is never held while a request waits. */
#ifndef GATEWAY_FLOW_H
#define GATEWAY_FLOW_H

#include "gateway/config.h"
#include "gateway/health.h"
#include "gateway/http.h"
#include "gateway/jwt_checker.h"
#include "gateway/limits.h"
#include "gateway/log.h"
#include "gateway/metrics.h"
#include "gateway/store.h"
#include "gateway/upstream.h"
#include "routing/route.h"

enum flow_step {
#define STEP(symbol, name, meaning) FLOW_STEP_##symbol,
#include "gateway/tbl/steps.h"
#undef STEP
	FLOW_STEP_COUNT
};
const char *flow_step_name(enum flow_step step);

enum flow_event {
	FLOW_START,         /* the first */
	FLOW_RESERVED,      /* reservation.granted or .refusal is there */
	FLOW_PROVIDER_DONE, /* the call is done */
	FLOW_SETTLED,       /* reservation settled; .overrun is there */
	FLOW_CLIENT_GONE,   /* in any state but OVER; the driver has cancelled the call */
	FLOW_GIVEN_UP,      /* in any state but ANSWER and OVER: the process leaves; likewise */
};

enum flow_effect {
	FLOW_RESERVE, /* store->reserve(&flow->reservation) */
	FLOW_SEND,    /* start flow->call at flow->endpoint of flow->provider */
	FLOW_SETTLE, /* store->settle with flow->settle_tokens, settle_usd; then release if asked */
	FLOW_ANSWER, /* http_answer with flow->answer */
	FLOW_END,    /* nothing to send (client gone): log, metrics, free */
};

/* What the driver lends a flow for one call of flow_run. */
struct flow_env {
	const struct config *config;
	struct health_view *health; /* of that configuration */
	struct json_work *json;
	struct jwt_checker *tokens; /* of the worker; NULL: no tokens (JWT) are taken */
	nsec_t now;
	uint64_t wall_ns;
	bool draining; /* what still arrives is refused */
	/* Told which step runs and for whom, for last words; both or neither NULL. */
	const char **step;
	struct slice *tenant;
};

struct flow_answer {
	int status;
	struct http_field fields[4];
	size_t field_count;
	struct gather body; /* count 0: no body */
};

/* Random bytes of one request: 16 for its id, 12 for call ids that a provider left out. */
enum { FLOW_MAGIC = 0x464c4f57, FLOW_CHANCE_BYTES = REQUEST_ID_HEX / 2 + 12 };

struct flow {
	uint32_t magic;
	enum flow_step step;
	struct arena *arena;

	/* in */
	struct http_incoming in;
	char request_id[REQUEST_ID_HEX + 1];
	uint8_t chance[FLOW_CHANCE_BYTES - REQUEST_ID_HEX / 2];
	uint64_t seed; /* of every choice by chance */
	uint64_t draws;
	char traceparent[TRACEPARENT_LEN + 1]; /* "" when none, or not one */
	nsec_t started, deadline;
	uint64_t started_wall_ns;

	/* known after AUTH; texts are copies */
	bool authenticated;
	struct slice tenant, server;
	const struct tenant_key *principal; /* the snapshot's: valid up to RESERVE */
	struct tenant_key named; /* `principal` of who has a certificate or a token, no key */
	bool bad_token;          /* refused for it */
	const struct plan *plan; /* likewise: what its server is granted */

	/* known after DECODE */
	enum revision revision;
	struct jsonrpc rpc;
	bool rpc_known;
	struct sampling_request request;

	/* known after POLICY */
	bool judged; /* policy was asked, whatever it said */
	struct verdict_copy {
		uint32_t max_tokens;
		bool final_round;
	} verdict;

	/* known after ROUTE */
	struct route route;
	uint64_t input_estimate;
	const struct dialect *dialect;
	uint32_t provider, endpoint;
	struct health_choice choice; /* ended when the attempt is over, whatever becomes of it */
	struct slice model_id, provider_name, endpoint_url; /* copies */
	struct slice hint;                                  /* raw; the one that matched */
	struct price price;
	char config_digest[17];

	/* known after ENCODE */
	struct encode_out encoded;
	struct slice head;
	struct iovec *send;
	uint32_t send_count;

	struct reservation reservation;
	bool reserved; /* granted and not settled yet */
	uint64_t settle_tokens, settle_usd, overrun;
	bool settled_without_usage;

	struct upstream_call call;
	bool called;
	struct sampling_result result;
	struct usage usage;
	uint64_t usd;

	adjust_set adjustments;
	enum err outcome; /* ERR_OK, why it was refused or failed */
	const char *detail;
	struct flow_answer answer;
};

/* A new request. `random` is used up. `arena` is initialised and the flow's until FLOW_END or the
 * answer was sent. `in` is copied; its slices must live as long. */
void flow_init(struct flow *flow, const struct http_incoming *in, struct arena *arena,
	       const uint8_t random[FLOW_CHANCE_BYTES], nsec_t now, uint64_t wall_ns);

/* The answer to a request that there is no room for, without a step. */
void flow_refuse_busy(struct flow *flow);

/* For the commands: the caller is known already, the walk begins at DECODE. */
void flow_begin_as(struct flow *flow, const struct tenant_key *principal, enum revision revision);

/* What routing is asked, for `sluice explain`; after POLICY. */
struct route_query flow_route_query(const struct flow *flow, const struct plan *plan);

/* Goes on as far as possible. */
enum flow_effect flow_run(struct flow *flow, const struct flow_env *env, enum flow_event event);

/* What log and metrics want to know; after the flow is over or answered. */
void flow_report(const struct flow *flow, nsec_t now, struct log_request *line,
		 struct metrics_request *metrics);

#endif
