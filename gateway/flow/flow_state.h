/* flow_state.h - what a request has to do with others: those before it (its session, its tool loop), those
 * at the same time (copies of it), and those to come.
 *
 * Lies in the arena of a request that needs it; one without session, tools and idempotency key has none. */
#ifndef GATEWAY_FLOW_FLOW_STATE_H
#define GATEWAY_FLOW_FLOW_STATE_H

#include "gateway/flow/flow_loop.h"
#include "gateway/state/cancel.h"
#include "gateway/state/idempotency.h"
#include "gateway/state/state.h"
#include "gateway/telemetry/log.h"

struct flow;

/* What a flow does ahead of answers (flow_speculate.c). */
struct flow_ahead {
	/* Set of enum flow_pending: what it has taken on a guess, and neither used nor given back yet. CLAIM: it
	 * leads its copies, its session guessed; LIMITS: its reservation, granted or not, of a walk that
	 * may not count. */
	unsigned taken;
	enum revision revision;           /* under which it leads */
	struct state_load guess;          /* what it went ahead on */
	struct slice model;               /* whose limits were asked */
	uint64_t tokens_short, usd_short; /* of the reservation: the request has become larger */
};

/* Whether a request leaves something, once that is known. */
enum flow_saving {
	FLOW_SAVES_NOTHING,
	FLOW_SAVES,       /* .save is filled in, and nobody waits for what becomes of it */
	FLOW_SAVES_FIRST, /* likewise, but the answer depends on what becomes of it */
};

/* When what is known of a request is read. */
enum flow_admission {
	FLOW_IN_TURN,   /* before its limits are asked */
	FLOW_HELD_BACK, /* private blocks, or all of it, not until they have granted it */
	FLOW_ADMITTED,  /* they have: it walks once more from LOAD (flow_admit) */
};

struct flow_state {
	struct flow *flow;
	struct slice session;         /* its id as the caller names it; absent: none */
	struct state_key tenant;      /* what limits know it by */
	struct state_key session_key; /* none: the request has no session */
	struct state_load load;       /* FLOW_LOAD */
	bool asked;                   /* it was; what is known counts */
	enum flow_admission admission;
	uint32_t own_rounds; /* of tool calls, by the request's history alone */
	struct flow_ahead ahead;
	struct flow_loop loop;
	struct state_save save; /* FLOW_SAVE */
	enum flow_saving saving;
	struct idempotency_call copy;   /* FLOW_JOIN */
	bool joined;                    /* it was asked; .copy.verdict counts, for metrics too */
	struct idempotency_claim claim; /* the driver's */
	struct cancel_entry cancel;     /* the driver's; .key: what cancels the call */
};

/* What the log says of the request's session; `state` NULL: nothing. */
struct log_session flow_session_report(const struct flow_state *state);

#endif
