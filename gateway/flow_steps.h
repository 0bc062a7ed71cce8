/* flow_steps.h - what the flow's own files share. */
#ifndef GATEWAY_FLOW_STEPS_H
#define GATEWAY_FLOW_STEPS_H

#include "gateway/flow.h"

/* What a step wants next. */
enum flow_move {
	FLOW_NEXT,       /* the next row of tbl/steps.h */
	FLOW_DO_RESERVE, /* wait for the store */
	FLOW_DO_SEND,    /* wait for the provider */
	FLOW_REFUSED,    /* flow_refuse was called: the answer is there */
	FLOW_ANSWERED,   /* an answer other than the model's is there */
};

typedef enum flow_move flow_step_fn(struct flow *flow, const struct flow_env *env);

/* flow_request.c: from HTTP to a decoded request */
flow_step_fn flow_http, flow_headers, flow_decode, flow_method;
/* flow_auth.c: who asks */
flow_step_fn flow_auth;
/* flow_model.c: from a decoded request to the provider and back */
flow_step_fn flow_policy, flow_route, flow_encode, flow_reserve, flow_send, flow_read;
/* The attempt is over, if there was one: its endpoint and key are told. `failure` NULL: what
 * flow->outcome says. Harmless when they were told before. */
void flow_end_choice(struct flow *flow, const struct flow_env *env,
		     const struct provider_failure *failure);

/* flow_answer.c */
/* Makes the JSON-RPC error answer. `data` NULL: none. Always returns FLOW_REFUSED. */
enum flow_move flow_refuse(struct flow *flow, const struct fault *fault,
			   const struct rpc_error_data *data);
/* The same for an error without particulars. */
enum flow_move flow_refuse_err(struct flow *flow, enum err err);
/* 202 or 204 without a body. */
enum flow_move flow_answer_empty(struct flow *flow, int status);
/* Begins a 200 answer with a JSON body; the caller fills flow->answer.body. */
void flow_answer_json(struct flow *flow);
/* Adds a header; `value` must live until the answer is sent. */
void flow_answer_field(struct flow *flow, struct slice name, struct slice value);
/* The createMessage result. */
void flow_answer_result(struct flow *flow);

#endif
