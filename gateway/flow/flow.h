/* flow.h - one request's steps: an event in, an effect out, no I/O.
 *
 * flow_run goes through tbl/steps.h until the request has to wait or is answered, and returns what is
 * to be done; the driver (sampling/, tests, the two commands) does it and comes back with the event.
 * A flow owns nothing but what lies in its arena. It reads the configuration from ROUTE to RESERVE and
 * copies what later steps need, so that a snapshot is never held while a request waits: a further
 * attempt is made with the snapshot that is in force then. */
#ifndef GATEWAY_FLOW_FLOW_H
#define GATEWAY_FLOW_FLOW_H

#include "codec/base/slab.h"
#include "codec/dialect/stream.h"
#include "gateway/base/bounds.h"
#include "gateway/base/config.h"
#include "gateway/base/fair_share.h"
#include "gateway/flow/flow_front.h"
#include "gateway/flow/flow_state.h"
#include "gateway/limits/limiter.h"
#include "gateway/limits/refusals.h"
#include "gateway/providers/health.h"
#include "gateway/telemetry/log.h"
#include "gateway/telemetry/metrics.h"
#include "gateway/upstream/upstream.h"
#include "routing/route.h"

enum flow_step {
#define STEP(symbol, name, meaning) FLOW_STEP_##symbol,
#include "gateway/flow/tbl/steps.h"
#undef STEP
	FLOW_STEP_COUNT
};
const char *flow_step_name(enum flow_step step);

enum flow_event {
	FLOW_START,    /* the first */
	FLOW_LOADED,   /* state->load is answered; or a guess, while FLOW_PENDING_LOAD is awaited */
	FLOW_JOINED,   /* state->copy.verdict is there, and it does not wait; or it leads unless
			     * another gateway says otherwise, while FLOW_PENDING_CLAIM is awaited */
	FLOW_RESERVED, /* reservation.granted or .refusal is there, and nothing is awaited */
	FLOW_GIVEN_BACK,    /* it is, as of FLOW_GIVE_BACK */
	FLOW_SAVED,         /* state->save is answered */
	FLOW_PROVIDER_DONE, /* the call is done */
	FLOW_SETTLED,       /* reservation settled; .overrun is there */
	FLOW_WAITED,        /* wait_until has come */
	/* in any state but OVER; the driver has cancelled the call. It may still be answered, for its copies */
	FLOW_CLIENT_GONE,
	FLOW_CANCELLED, /* likewise, but ANSWER: by another request of its session */
	FLOW_GIVEN_UP,  /* in any state but ANSWER and OVER: the process leaves; likewise */
};

enum flow_effect {
	FLOW_LOAD, /* state->load(&flow->state->load) */
	FLOW_JOIN, /* idempotency_join(&flow->state->copy); if it leads, ask other gateways, too; if it does
			 * not and something is awaited, idempotency_leave */
	FLOW_RESERVE, /* limiter->reserve(&flow->reservation); if flow_has_reserved: it is answered */
	FLOW_AWAIT,   /* nothing: without what is awaited the flow cannot go further ahead */
	FLOW_GIVE_BACK, /* what is in state->ahead.taken: of FLOW_PENDING_LIMITS limiter->undo(&flow->reservation)
			 * if it is granted, or, once the flow was told so, limiter->settle with nothing used: it
			 * keeps its place; of FLOW_PENDING_CLAIM idempotency_leave */
	FLOW_SAVE,   /* state->save(&flow->state->save) */
	FLOW_SEND,   /* start flow->call at flow->walk.endpoint of flow->walk.provider */
	FLOW_SETTLE, /* limiter->settle with flow->charge.tokens and .usd; the attempt is over */
	FLOW_WAIT,   /* nothing, until flow->retries.wait_until */
	FLOW_ANSWER, /* tell the front flow->out */
	FLOW_END,    /* nothing to send (client gone): log, metrics, free */
};

/* What is asked of others on behalf of a request; bits of a set. */
enum flow_pending {
	FLOW_PENDING_LOAD = 1,   /* what is known of its session and loop */
	FLOW_PENDING_CLAIM = 2,  /* whether another gateway has a copy */
	FLOW_PENDING_LIMITS = 4, /* its reservation */
};

/* Bytes of bodies of all requests that are here, by tenant (limits.held_bytes). */
struct flow_bodies {
	struct fair_share share;
	struct fair_bound bound;
};

/* What the driver lends a flow for one call of flow_run. */
struct flow_env {
	const struct config *config;
	struct health_view *health; /* of that configuration */
	struct json_work *json;
	struct jwt_checker *tokens;      /* of the worker; NULL: no tokens (JWT) are taken */
	struct key_cache *keys;          /* likewise; NULL: no key is remembered */
	const struct refusals *refusals; /* likewise; NULL: no refusal is */
	struct stream_slab *streams;     /* not NULL where anything is sent */
	struct flow_bodies *bodies;      /* NULL: they are not counted */
	nsec_t now;
	uint64_t wall_ns;
	bool stateful; /* there are stores of sessions, loops and copies: LOAD, JOIN, SAVE */
	bool crowded;  /* enough requests wait that no limit has counted yet */
};

enum { FLOW_MAGIC = 0x464c4f57 };

enum { FLOW_ATTEMPTS_MAX = 8 };

/* An attempt, for the log line and so that the next one goes elsewhere. Slices are the flow's. */
struct flow_tried {
	enum err err; /* how it ended; ERR_OK: with an answer, or it has not yet */
	enum blame blame;
	bool answered; /* by the provider, if only with an error */
	uint32_t round;
	uint32_t key;
	struct slice model, provider, endpoint;
};

/* Why an attempt brought nothing. */
struct flow_failure {
	struct provider_failure why; /* err ERR_OK: it has not failed */
	const char *detail;          /* for the log; static; NULL: why.detail */
	struct slice particulars;    /* members of the error's data as ready JSON; absent: none */
	bool sent;                   /* the provider may have seen the request */
	int64_t back_ms; /* until its model can be had again, by what we know; 0: not known */
};

struct flow_schema;

/* How the last attempt's target was found, while the next one is prepared: should that not be made, nothing
 * of it is reported. */
struct flow_asked {
	struct slice hint;
	struct route route;
	char config_digest[17];
	struct pool_drawn drawn[POOL_DRAWN_MAX];
	uint32_t drawn_count;
	bool held;
};

/* What a walk from LOAD to RESERVE finds out and a later step, or the log, may look at: another walk
 * begins with none of it (flow_speculate.c). What each walk writes before anybody reads it need not be here. */
struct flow_walk {
	/* known after POLICY */
	bool judged;               /* policy was asked, whatever it said */
	struct slice asked_system; /* if it was: the system prompt, before policy added to it */
	struct verdict_copy {
		uint32_t max_tokens;
		bool final_round;
	} verdict;

	/* known after ROUTE, and anew for each attempt */
	const struct dialect *dialect;
	uint32_t provider, endpoint;
	struct health_choice choice; /* ended when the attempt is over, whatever becomes of it */
	struct slice model_id, provider_name, endpoint_url; /* copies */
	struct slice hint;                                  /* raw; the one that matched */
	char config_digest[17];                             /* "": it was not routed */
	uint64_t draws;                                     /* of chance, by all attempts */
};

/* What is made of a request for a provider: large, and not needed where nothing is sampled. */
struct flow_made {
	struct route route; /* known once config_digest says by which configuration */
	struct price price; /* likewise */
	uint64_t use_price; /* of a server tool, where the front has written the request */
	/* known after ENCODE */
	struct profile profile; /* the model's, and what was learned of it */
	struct encode_out encoded;
	struct flow_tried tried; /* the first attempt lies here */
};

/* How a provider's answer comes. */
enum flow_form {
	FLOW_WHOLE,     /* in one piece, or not at all so far */
	FLOW_STREAMING, /* in `stream`, piece by piece */
	FLOW_STREAMED,  /* it came in `stream` */
};

/* A provider's answer that streams: what each of its events touches. */
struct flow_reading {
	enum flow_form form;
	struct stream *stream; /* of env->streams; the driver gives it back when the flow is over */
	nsec_t first_output_at; /* 0: not yet */
};

/* Who asks, in the configuration in force, and what it holds. */
struct flow_caller {
	const struct tenant *account; /* the snapshot's: valid up to RESERVE */
	const struct plan *plan;      /* likewise: what its server is granted */
	uint32_t
		holder; /* its body is counted by that name in env->bodies; the driver gives it back. 0: it is not */
	bool over_share; /* refused for that */
};

/* The attempt under way, or the last one: what is sent, and what came of it. */
struct flow_attempt {
	bool raw;          /* the front has written the request (ask->raw) */
	bool sent_raw;     /* likewise the one that was sent last */
	bool relayed;      /* the front was told a piece of the answer: no other one may follow */
	bool wants_stream; /* the provider was asked for one */
	bool in_one_piece; /* one did not pass as a stream: the next is asked for whole */
	bool called;       /* it was sent */
	struct slice head;
	struct iovec *send;
	uint32_t send_count;
	struct health_target target; /* where calls of tools may come of it */
	struct usage usage;
	struct flow_failure failure;
};

/* What it reserves, and what it costs. */
struct flow_charge {
	struct limit_scope *scopes; /* room for those of the reservation that follows */
	struct reservation *first;  /* that took the place, once a further attempt has its own */
	bool reserved;              /* granted and not settled yet */
	bool without_usage;         /* settled on what was seen of the answer */
	uint64_t tokens, usd, overrun;
};

/* Where a flow stands between its attempts. */
enum flow_phase {
	FLOW_TRIES,     /* at the first, or at one that was sent */
	FLOW_FAILING,   /* that has failed, and is settled: RETRY follows */
	FLOW_PREPARING, /* the next one is not sent yet */
};

/* An answer without the tool call that was asked for is asked for once more. */
enum flow_repeat {
	FLOW_UNREPEATED, /* there was none so far */
	FLOW_REPEATING,  /* the last one is such an answer */
	FLOW_REPEATED,   /* it was asked for once more: what comes now counts */
};

/* All attempts, and what is made of those that failed. */
struct flow_retries {
	uint32_t attempts;        /* the first entries of `tried` that are valid */
	uint32_t round;           /* how often all had failed, and were asked anew */
	struct flow_tried *tried; /* made->tried, or a list in the arena once there is a second */
	struct flow_failure *reported; /* the failure that the caller gets in the end */
	enum flow_phase phase;
	enum flow_repeat repeat;
	struct flow_asked *asked;   /* while PREPARING; NULL: there was no memory */
	learn_set lessons;          /* of refusals: the request was sent once more for each */
	learn_set lessons_lasting;  /* of them, those that say something of other requests */
	struct slice lessons_of;    /* the model that refused; absent: none has */
	struct flow_schema *schema; /* flow_schema.h; NULL: no structured output was asked for */
	nsec_t wait_until;          /* of FLOW_WAIT */
};

/* Sums of all attempts. */
struct flow_totals {
	struct usage usage;
	uint64_t usd;
	uint64_t tokens;              /* as they were settled */
	uint64_t estimated_tokens;    /* of these, without the provider's usage */
	adjust_set asked_adjustments; /* before it was known who is asked */
	adjust_set adjustments;
};

/* How it ends. */
struct flow_end {
	struct sampling_result *result; /* in the arena; NULL: there is none */
	bool cancelled;                 /* with ERR_CANCELLED: who asked is still there */
	enum err err;                   /* ERR_OK, why it was refused or failed */
	const char *detail;             /* for the log */
	const struct idempotency_answer
		*copy; /* what another request was answered with, and this one is; NULL: nothing */
};

struct flow {
	uint32_t magic;
	enum flow_step step;

	/* What every event of a provider's stream touches. */
	struct flow_reading reading;
	struct upstream_call call; /* the attempt under way, or the last one */

	struct arena *arena;
	const struct sampling_ask *ask;
	const struct sampling_front *front;
	void *owner; /* of the front's callbacks */

	/* The driver's set of enum flow_pending: what was asked and is not answered. Whatever a flow does
	 * meanwhile, it goes ahead of these. */
	unsigned awaited;

	struct flow_caller caller;
	struct flow_made *made;   /* in the arena; NULL: nothing is sampled */
	struct flow_state *state; /* NULL: not needed so far */
	struct flow_walk walk;
	struct flow_attempt attempt;
	struct flow_charge charge;
	struct flow_retries retries;
	struct flow_totals totals;
	struct flow_end end;

	/* Behind here nothing is zero from the start: most of the flow would be cleared only to be
	 * written anew, or never looked at. */

	/* What the front is told. Its fault and data are there where end.err is an error that a step has refused with. */
	struct sampling_outcome out;
	struct reservation reservation; /* up to RESERVE of no scope, and not refused */
};

/* A new call. All that is given must outlive the flow; the caller is of the configuration in force. */
void flow_init(struct flow *flow, const struct sampling_ask *ask,
	       const struct sampling_front *front, void *owner);

/* What calls of that session are cancelled by, under that id. */
struct state_key flow_cancel_key(const struct caller *caller, struct slice session,
				 struct slice cancel_id);
/* The refusal of a body that there is no room for. `own`: the tenant has its share; else others have the rest. */
void flow_body_refusal(bool own, struct fault *fault, struct error_data *data);

/* What routing is asked, for `sluice explain`; after POLICY. */
struct route_query flow_route_query(const struct flow *flow, const struct plan *plan);

/* Goes on as far as possible. */
enum flow_effect flow_run(struct flow *flow, const struct flow_env *env, enum flow_event event);

/* ---- streams; the driver's, while FLOW_SEND is under way ---- */

/* The head of the provider's answer is in flow->call.answer. True: it is a stream, its body comes in
 * pieces. Only where flow->attempt.wants_stream. */
bool flow_stream_head(struct flow *flow, struct json_work *json, nsec_t now, uint64_t wall_ns);
/* The next piece. After any state but OPEN nothing more is wanted. */
enum stream_state flow_stream_take(struct flow *flow, struct slice bytes, nsec_t now);
/* Whether the front may be told the pieces themselves: bytes (flow->attempt.raw), or deltas. */
bool flow_may_relay(const struct flow *flow);
/* Bytes that it holds by now, for upstream_holds. */
size_t flow_stream_held(const struct flow *flow);

/* ---- what is awaited; the driver's ---- */

/* What was in flow->awaited is answered. True: that was the last, and the flow goes on with *event. */
MUST_USE bool flow_answered(struct flow *flow, enum flow_pending what, nsec_t now,
			    enum flow_event *event);
/* With FLOW_RESERVE: whether the reservation was made before, by a walk that went ahead. */
bool flow_has_reserved(const struct flow *flow);

/* The reservation that holds the request's place: limiter->release wants it. */
struct reservation *flow_place(struct flow *flow);

/* What metrics want to know of the attempt that was just settled. */
struct metrics_attempt flow_attempt_report(const struct flow *flow);

/* Tokens of input that a request is taken for before it is encoded. */
uint64_t flow_estimate_input(const struct sampling_request *request, size_t body_bytes);

/* What log and metrics want to know, but for what is the front's; after the flow is over or answered. */
void flow_report(const struct flow *flow, nsec_t now, struct log_request *line,
		 struct metrics_request *metrics);

#endif
