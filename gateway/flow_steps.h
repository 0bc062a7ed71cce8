/* flow_steps.h - what the flow's own files share. */
#ifndef GATEWAY_FLOW_STEPS_H
#define GATEWAY_FLOW_STEPS_H

#include "gateway/flow.h"

/* What a step wants next. */
enum flow_move {
	FLOW_NEXT,       /* the next row of tbl/steps.h */
	FLOW_DO_RESERVE, /* wait for the store */
	FLOW_DO_SEND,    /* wait for the provider */
	FLOW_DO_WAIT,    /* wait until flow->wait_until, then ROUTE */
	FLOW_FAILED,     /* flow->failure says why; settled first, then RETRY says what comes */
	FLOW_GO,         /* the step is set */
	FLOW_REFUSED,    /* flow_refuse was called: the answer is there */
	FLOW_ANSWERED,   /* an answer other than the model's is there */
};

typedef enum flow_move flow_step_fn(struct flow *flow, const struct flow_env *env);

/* flow_request.c: from HTTP to a decoded request */
flow_step_fn flow_http, flow_headers, flow_decode, flow_method;
/* flow_auth.c: who asks */
flow_step_fn flow_auth;
/* flow_model.c: whether it may pass; the provider's request */
flow_step_fn flow_policy, flow_encode;
/* flow_place.c: where an attempt goes */
flow_step_fn flow_route;
/* flow_attempt.c: one attempt */
flow_step_fn flow_reserve, flow_send, flow_read;
/* flow_retry.c: what comes after one that failed */
flow_step_fn flow_retry;

/* flow_model.c */
/* Every permitted candidate and why it was refused; others' models are not the tenant's business. */
enum flow_move flow_refuse_route(struct flow *flow, const struct flow_env *env, enum err err);

/* flow_place.c: after a failure */
/* Finds principal and plan again in the snapshot in force: one may have come and gone since they were
 * known. False: the tenant is not there any more, or disabled. Before any of the following two. */
MUST_USE bool flow_find_caller(struct flow *flow, const struct flow_env *env);
/* Both set the place of the next attempt: with the same model (`fresh`: not where it has failed since
 * the last wait), or with the next candidate (likewise). An error: there is none. */
MUST_USE enum err flow_stay(struct flow *flow, const struct flow_env *env, bool fresh);
MUST_USE enum err flow_move_on(struct flow *flow, const struct flow_env *env);
/* The next 64 bits of chance: the seed in the log line gives all of them again. */
uint64_t flow_draw(struct flow *flow);

/* flow_attempt.c */
/* The attempt that was reserved for is over: sets flow->settle_tokens and settle_usd, and the sums; says
 * what became of it to those who keep health. */
void flow_settle_up(struct flow *flow, const struct flow_env *env);

/* flow_stream.c */
/* Whether the answer is asked for as a stream: when somebody is told meanwhile, or when the whole one
 * could take longer than anybody waits in silence. */
bool flow_stream_wanted(const struct flow *flow);
/* The stream is over; what dialect_decode says of a whole body. */
MUST_USE enum err flow_stream_end(struct flow *flow, struct sampling_result *result,
				  struct provider_failure *why);

/* flow_retry.c */
/* Whether the deadline leaves that wait, and time for an attempt after it. */
bool flow_fits(const struct flow *flow, nsec_t now, nsec_t wait);
/* That wait and up to a quarter more, by chance: so that those who were sent away together do not come
 * back together. */
nsec_t flow_spread(struct flow *flow, nsec_t wait);
/* No further attempt: the answer that is kept, or the most telling failure. */
enum flow_move flow_give_up(struct flow *flow);

/* flow_answer.c */
/* Makes the JSON-RPC error answer. `data` NULL: none. Always returns FLOW_REFUSED. */
enum flow_move flow_refuse(struct flow *flow, const struct fault *fault,
			   const struct rpc_error_data *data);
/* The same for an error without particulars. */
enum flow_move flow_refuse_err(struct flow *flow, enum err err);
/* The same for what attempts have failed with, with their number. */
enum flow_move flow_refuse_failure(struct flow *flow, const struct flow_failure *failure);
/* 202 or 204 without a body. */
enum flow_move flow_answer_empty(struct flow *flow, int status);
/* Begins a 200 answer with a JSON body; the caller fills flow->answer.body. */
void flow_answer_json(struct flow *flow);
/* Adds a header; `value` must live until the answer is sent. */
void flow_answer_field(struct flow *flow, struct slice name, struct slice value);
/* The createMessage result. */
void flow_answer_result(struct flow *flow);
/* Makes the JSON answer that is there the last event of a stream. */
void flow_answer_event(struct flow *flow);

#endif
