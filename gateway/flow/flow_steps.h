/* flow_steps.h - what the flow's own files share. */
#ifndef GATEWAY_FLOW_FLOW_STEPS_H
#define GATEWAY_FLOW_FLOW_STEPS_H

#include "gateway/flow/flow.h"
#include "tenants/policy.h"

/* What a step wants next. */
enum flow_move {
	FLOW_NEXT,         /* the next row of tbl/steps.h */
	FLOW_DO_LOAD,      /* wait for what is known, then the next row */
	FLOW_DO_JOIN,      /* wait for copies of the request, likewise */
	FLOW_DO_RESERVE,   /* wait for the store, likewise */
	FLOW_DO_AWAIT,     /* wait for all that is awaited, then once more from LOAD */
	FLOW_DO_GIVE_BACK, /* give back what was taken ahead, then this step again */
	FLOW_DO_SEND,      /* wait for the provider, likewise */
	FLOW_DO_WAIT,      /* wait until flow->retries.wait_until, then ROUTE */
	FLOW_FAILED, /* flow->attempt.failure says why; settled first, then RETRY says what comes */
	FLOW_GO,     /* the step is set */
	FLOW_REFUSED,  /* flow_refuse was called */
	FLOW_ANSWERED, /* how it ends is known otherwise */
};

typedef enum flow_move flow_step_fn(struct flow *flow, const struct flow_env *env);

/* flow_limit.c: its body */
flow_step_fn flow_hold;
/* flow_state.c: what it has to do with others */
flow_step_fn flow_load, flow_loaded, flow_join, flow_joined;
/* flow_policy.c: whether it may pass */
flow_step_fn flow_policy;
/* flow_target.c: where an attempt goes */
flow_step_fn flow_route;
/* flow_encode.c: the provider's request */
flow_step_fn flow_encode;
/* flow_reserve.c: its tenant's limits */
flow_step_fn flow_reserve, flow_reserved;
/* flow_attempt.c: one attempt */
flow_step_fn flow_send, flow_read;
/* flow_retry.c: what comes after one that failed */
flow_step_fn flow_retry;
/* flow_count.c: instead of the four before RETRY where tokens are only counted */
flow_step_fn flow_count_reserve, flow_count_send, flow_count_read;

/* flow_keys.c */
/* flow->state, made at its first use; NULL: no memory. */
struct flow_state *flow_state_of(struct flow *flow);
/* What the caller's session is known by, and requests that it has given the same name. What cancels a request, and
 * finds copies of one without a name, is flow_cancel_key (flow.h). */
struct state_key flow_session_key(const struct caller *caller, struct slice id);
struct state_key flow_idempotency_key(const struct caller *caller, struct slice name);

/* flow_state.c */
/* Whether the request is of a session that is known. */
bool flow_in_session(const struct flow *flow);
/* The request is about to be answered, or to end: fills what is to be saved first into flow->state->save.
 * False: nothing is, or it was filled in before. */
bool flow_fill_save(struct flow *flow, const struct flow_env *env);
/* It was saved, or not: what that means for the answer. */
void flow_saved(struct flow *flow);

/* flow_speculate.c */
/* Its limits are about to be asked, by a new reservation; flow->state is there. */
void flow_asks_limits(struct flow *flow);
/* Whether the answer to the reservation that was made ahead is one to `wanted`. */
MUST_USE bool flow_may_use(struct flow *flow, const struct reservation *wanted);
/* What was in ahead.taken is used, that of the set: from here on as any other. */
void flow_uses(struct flow *flow, unsigned asks);
/* All that was in ahead.taken was given back. */
void flow_given_back(struct flow *flow);
/* Its limits have granted the request, while what goes with it was held back: that is read now. */
enum flow_move flow_admit(struct flow *flow, const struct flow_env *env);

/* flow_loop.c */
/* What is to be asked of the loop that the request's history is one of, and of its turns; flow->state is
 * there. False: no memory. */
MUST_USE bool flow_loop_ask(struct flow *flow, struct state_load *load, const struct flow_env *env);
/* It was answered: rounds, and where the loop went before. */
void flow_loop_take(struct flow *flow);
/* The models where it was answered, in *into; NULL: no matter where. */
const struct bitset *flow_loop_held(const struct flow *flow, const struct flow_env *env,
				    struct bitset *into);
/* What the plan says of the loop: on, or refused with ERR_LOOP_TOKENS, ERR_LOOP_USD or ERR_UNKNOWN_CALLS. */
enum flow_move flow_loop_check(struct flow *flow);
/* What goes back to the provider (replay.h). */
void flow_loop_replay(const struct flow *flow, struct encode_in *in);
/* The provider says that blocks belong to another conversation. True: the request can be sent without. */
bool flow_loop_unbind(struct flow *flow);
/* Its part of that: what the flow's end means for its loop, or for one that begins. */
bool flow_loop_fill_save(struct flow *flow);
/* It was saved. */
void flow_loop_saved(struct flow *flow);

/* flow_policy.c */
/* Policy once more, by another configuration than the one that judged the request. */
struct verdict flow_policy_again(struct flow *flow);

/* flow_query.c */
/* The first block of that type in a user's message, whose index is *message; NULL: there is none. Media of the
 * assistant's turns, and in tool results, becomes a line of text where a model does not take it (providers.md
 * 8.1): only what the user shows decides which models can answer. */
const struct block *flow_shown(const struct sampling_request *request, enum block_type type,
			       uint32_t *message);

/* flow_unfit.c */
/* Every permitted candidate and why it was refused; others' models are not the tenant's business. What no
 * candidate takes is named. `wait`: until one of them can be asked, as far as is known; NSEC_NEVER: it is not. */
enum flow_move flow_refuse_route(struct flow *flow, const struct flow_env *env, enum err err,
				 nsec_t wait);

/* flow_caller.c */
/* Finds account and plan again in the snapshot in force: one may have come and gone since they were
 * known. False: the tenant is not there any more, or disabled. */
MUST_USE bool flow_find_caller(struct flow *flow, const struct flow_env *env);
/* The same before a further attempt, where whatever a reload has withdrawn counts. ERR_UNAUTHORIZED: the
 * tenant or its key is not there any more; else what policy does not permit by now. Before any of the
 * following two. */
struct verdict flow_permit_again(struct flow *flow, const struct flow_env *env);

/* flow_target.c: after a failure */
/* Both set the target of the next attempt: with the same model (`fresh`: not where it has failed since
 * the last wait), or with the next candidate (likewise). An error: there is none. */
MUST_USE enum err flow_stay(struct flow *flow, const struct flow_env *env, bool fresh);
MUST_USE enum err flow_move_on(struct flow *flow, const struct flow_env *env);
/* An attempt has failed: keeps what the log tells of it. */
void flow_keep_asked(struct flow *flow);
/* The request is over: where an attempt was prepared and not made, the last one is reported. */
void flow_restore_asked(struct flow *flow);

/* flow_reserve.c */
/* Room for the scopes of the next reservation; false: no memory. */
MUST_USE bool flow_make_scopes(struct flow *flow);

/* flow_attempt.c */
/* The attempt that was reserved for is over: sets flow->charge.tokens and settle_usd, and the sums; says
 * what became of it to those who keep health. */
void flow_settle_up(struct flow *flow, const struct flow_env *env);

/* flow_limit.c */
/* Of who has its share of what others give back: when is not known. */
enum { FLOW_ROOM_RETRY_MS = 1000 };
/* Whether the request's tenant has to wait, by what its limits said a moment ago. */
bool flow_refused_lately(const struct flow *flow, const struct flow_env *env);
/* The answer to a request that the store has refused. */
enum flow_move flow_refuse_limit(struct flow *flow);
/* "$0.0200": an amount in a message, rounded up (what may be needed) or down (what there is), so that two of
 * them never look as if one fitted the other. */
enum { FLOW_USD_ROOM = 40 };
void flow_put_usd(char text[FLOW_USD_ROOM], uint64_t nano, bool up);

/* flow_cost.c */
/* flow->attempt.usage: the provider's own count of the attempt, if there is one that can be true. */
void flow_judge_usage(struct flow *flow, const struct flow_env *env);
/* By that, or by what was seen of the answer: sets flow->charge.tokens, settle_usd, settled_without_usage. */
void flow_price(struct flow *flow, const struct flow_env *env);

/* flow_raw.c */
/* The models that a request in a provider's own format may go to, of those permitted. False: to all of them. */
MUST_USE bool flow_raw_models(const struct flow *flow, const struct config *config,
			      struct bitset *out);
/* Why there is none: what one of them does not take (ask->raw->unsuited), or nobody has the name. */
enum err flow_raw_nobody(const struct flow *flow);
/* The front's body for an attempt, and what its answer is read with. ERR_BUSY: no memory. */
MUST_USE enum err flow_raw_encode(struct flow *flow, const struct provider *provider,
				  const struct model *model);
/* Tokens of input that it is taken for when a model is chosen. */
uint64_t flow_raw_input(const struct flow *flow);
/* The head of its request, which ends in the empty line, with the front's own lines; absent: no memory. */
/* The request of a front as the core's own, under the plan's policy; once. */
MUST_USE enum err flow_raw_cross(struct flow *flow, struct fault *fault);
MUST_USE struct slice flow_raw_head(const struct flow *flow, struct slice head);

/* flow_raw_cost.c: of an attempt whose request the front has written */
/* What it may take and cost at most, where that is not what one of ours may. */
void flow_raw_bound(const struct flow *flow, const struct flow_env *env, struct limit_ask *ask);
/* What it cost, by its usage and what the answer says beside. */
uint64_t flow_raw_cost(const struct flow *flow, const struct usage *usage);

/* flow_count.c */
static inline bool flow_counts(const struct flow *flow)
{
	return flow->ask->raw != NULL && flow->ask->raw->counts;
}
/* Its request is written: what the walk goes on with. */
static inline void flow_count_encoded(struct flow *flow)
{
	flow->step = FLOW_STEP_COUNTED;
}
/* No provider can be asked now: its limits are asked, and it ends without a number. */
enum flow_move flow_count_nowhere(struct flow *flow);
/* Attempts have failed: it ends without a number, unless the provider has refused the request itself. */
enum flow_move flow_count_give_up(struct flow *flow);

/* flow_stream.c */
/* Whether the answer is asked for as a stream: when somebody is told meanwhile, or when the whole one
 * could take longer than anybody waits in silence. */
bool flow_stream_wanted(const struct flow *flow);
/* The stream is over; what dialect_decode says of a whole body. */
MUST_USE enum err flow_stream_end(struct flow *flow, struct sampling_result *result,
				  struct provider_failure *why);
/* Whether a body is an event stream, whatever its Content-Type says and whether or not one was asked for. */
bool flow_stream_looks_so(struct slice body);
static inline bool flow_stream_sniff(const struct provider_answer *answer)
{
	return answer->status / 100 == 2 && answer->body.len != 0 && answer->body.at[0] != '{' &&
	       flow_stream_looks_so(answer->body);
}
/* Reads such a body. As dialect_decode. */
MUST_USE enum err flow_stream_whole(struct flow *flow, const struct flow_env *env,
				    struct sampling_result *result, struct provider_failure *why);

/* flow_deadline.c */
/* Whether the deadline leaves that wait, and time for an attempt after it. */
bool flow_fits(const struct flow *flow, nsec_t now, nsec_t wait);
/* That wait and up to a quarter more, by chance: so that those who were sent away together do not come
 * back together. */
nsec_t flow_spread(struct flow *flow, nsec_t wait);

/* Whether a wait that a provider wants is the caller's, and not made here. */
bool flow_hands_on(const struct flow *flow, nsec_t wait);
/* The next 64 bits of chance (splitmix64): the seed in the log line gives all of them again. Inline, because every
 * attempt draws. */
static inline uint64_t flow_draw(struct flow *flow)
{
	uint64_t z = flow->ask->ids->seed + ++flow->walk.draws * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* flow_refuse.c */
/* The call ends in that error; what `fault` and `data` (NULL: none) point to is static or in the arena. Always returns
 * FLOW_REFUSED. */
enum flow_move flow_refuse(struct flow *flow, const struct fault *fault,
			   const struct error_data *data);
/* The same for an error without particulars. */
enum flow_move flow_refuse_err(struct flow *flow, enum err err);
/* The same for what policy has refused, its rule named. */
enum flow_move flow_refuse_verdict(struct flow *flow, const struct verdict *verdict);
/* The same for what attempts have failed with, with their number. */
enum flow_move flow_refuse_failure(struct flow *flow, const struct flow_failure *failure);
/* No further attempt: the answer that is kept, or the most telling failure. */
enum flow_move flow_give_up(struct flow *flow);
/* The same for want of memory: without an answer that is kept, ERR_BUSY. */
enum flow_move flow_give_up_busy(struct flow *flow);
/* As if it had not been refused, nor answered. */
void flow_take_back(struct flow *flow);

#endif
