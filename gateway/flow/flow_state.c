/* flow_state.c - what a request has to do with others: sessions, copies, and what it leaves behind
 * (DESIGN 4.3, 5 State). What is asked and told of tool loops is flow_loop.c's. */
#include "gateway/flow/flow_state.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "gateway/flow/flow_steps.h"

/* ---- the session ---- */

bool flow_in_session(const struct flow *flow)
{
	return flow->state != NULL && !state_key_none(&flow->state->session_key);
}

static void use_session(struct flow *flow)
{
	flow->state->session = flow->ask->session;
	flow->state->session_key = flow_session_key(flow->ask->caller, flow->ask->session);
}

/* What is known of the session, or that it is not there: the front says whether the call goes on. */
static enum flow_move tell_known(struct flow *flow, bool there, uint32_t revision)
{
	struct fault fault;

	if (!there)
		flow->state->session_key = (struct state_key){ { 0 } };
	if (flow->front->known == NULL ||
	    flow->front->known(flow->owner, there, revision, &fault) == ERR_OK)
		return FLOW_NEXT;
	return flow_refuse(flow, &fault, NULL);
}

/* Whether there was one to end shows when it is over. */
static enum flow_move end_session(struct flow *flow, const struct flow_env *env)
{
	if (!env->stateful)
		return flow_refuse_err(flow, ERR_SESSION_UNKNOWN);
	if (flow_state_of(flow) == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	use_session(flow);
	flow->state->save.change = STATE_ENDS;
	return FLOW_ANSWERED;
}

static enum flow_move begin_session(struct flow *flow, const struct flow_env *env)
{
	if (!env->stateful)
		return FLOW_NEXT;
	if (flow_state_of(flow) == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	flow->state->session_key = flow_session_key(flow->ask->caller, flow->ask->begins);
	flow->state->save.change = STATE_BEGINS;
	flow->state->save.revision = (uint32_t)flow->ask->begins_revision;
	return FLOW_NEXT;
}

struct log_session flow_session_report(const struct flow_state *state)
{
	struct log_session out = { .counted = false };
	const struct state_load *load;

	if (state == NULL || state_key_none(&state->session_key))
		return out;
	(void)hex_put_bytes(out.id, state->session_key.at,
			    LOG_SESSION_HEX / 2); /* as its key in Redis begins */
	load = &state->load;
	out.counted = load->session_is == STATE_SESSION_KNOWN;
	out.requests = load->used.requests;
	out.tokens = load->used.tokens;
	out.usd_nano = load->used.usd;
	return out;
}

/* ---- LOAD ---- */

/* False: no memory. */
static bool fill_load(struct flow *flow, const struct flow_env *env)
{
	struct flow_state *state = flow->state;
	const bool early = state->admission != FLOW_ADMITTED;

	state->load = (struct state_load){
		.tenant = state->tenant,
		.session = state->session_key,
		.arena = flow->arena,
		.may_guess = flow->ask->request != NULL && early,
		.early = early,
		.now = env->now,
	};
	return flow_loop_ask(flow, &state->load, env);
}

/* The tenant was refused lately, and nothing but its limits can answer the request: they are asked first. */
static bool asks_limits_first(struct flow *flow, const struct flow_env *env, bool named)
{
	if (named || flow->state->admission == FLOW_ADMITTED || flow->ask->request == NULL ||
	    !slice_absent(flow->ask->idempotency_key) || !flow_refused_lately(flow, env))
		return false;
	flow->state->admission = FLOW_HELD_BACK;
	return true;
}

static enum flow_move take_loaded(struct flow *flow, const struct flow_env *env)
{
	const struct state_load *load = &flow->state->load;

	flow_loop_take(flow);
	if (!flow_find_caller(flow, env))
		return flow_refuse_err(flow, ERR_UNAUTHORIZED);
	if ((flow->awaited & FLOW_PENDING_LOAD) != 0) {
		flow->state->ahead.guess = *load;
		if (load->session_is == STATE_SESSION_UNSURE)
			return FLOW_NEXT; /* of the revision that it was read by */
	}
	if (state_key_none(&load->session))
		return FLOW_NEXT;
	/* Also when the store could not be asked: who begins anew is served (DESIGN 4.4). */
	const bool there = load->session_is == STATE_SESSION_KNOWN;
	return tell_known(flow, there, there ? load->revision : 0);
}

static enum flow_move load(struct flow *flow, const struct flow_env *env)
{
	const struct sampling_ask *ask = flow->ask;
	const bool named = !slice_absent(ask->session);

	if (ask->ends)
		return end_session(flow, env);
	if (!slice_absent(ask->begins))
		return begin_session(flow, env);
	if (!named && (ask->request == NULL || ask->request->call_turns == 0 || !env->stateful))
		return FLOW_NEXT;
	if (flow_state_of(flow) == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	if (named && !env->stateful)
		return tell_known(flow, false, 0);
	if (named)
		use_session(flow);
	if (asks_limits_first(flow, env, named))
		return flow_find_caller(flow, env) ? FLOW_NEXT
						   : flow_refuse_err(flow, ERR_UNAUTHORIZED);
	flow->state->asked = fill_load(flow, env);
	return flow->state->asked ? FLOW_DO_LOAD : flow_refuse_err(flow, ERR_BUSY);
}

/* Whether nothing is known of the call, nor ever will be by another: the usual case. */
static bool is_alone(const struct sampling_ask *ask)
{
	return ask->request != NULL && ask->request->call_turns == 0 &&
	       slice_absent(ask->session) && slice_absent(ask->idempotency_key);
}

/* Without a request there is nothing but what became of its session. */
static enum flow_move sample_or_end(const struct flow *flow, enum flow_move move)
{
	return move == FLOW_NEXT && flow->ask->request == NULL ? FLOW_ANSWERED : move;
}

enum flow_move flow_load(struct flow *flow, const struct flow_env *env)
{
	if (is_alone(flow->ask)) {
		flow->step = FLOW_STEP_JOINED; /* nobody else has a part in it */
		return FLOW_NEXT;
	}
	const enum flow_move move = load(flow, env);
	if (move == FLOW_NEXT) /* nothing is asked */
		flow->step = FLOW_STEP_LOADED;
	return sample_or_end(flow, move);
}

enum flow_move flow_loaded(struct flow *flow, const struct flow_env *env)
{
	return sample_or_end(flow, take_loaded(flow, env));
}

/* ---- JOIN ---- */

static void digest_request(const struct flow *flow, uint8_t digest[SHA256_BYTES])
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	flow->front->digest(flow->owner, &sum);
	sha256_end(&sum, digest);
}

/* Whether the request's session, while it is asked for, is one that this process knows nothing of, so that
 * the revision is the default's. One that the caller names is its session's, or refused. */
static bool guesses_revision(const struct flow *flow)
{
	return flow_in_session(flow) && (flow->awaited & FLOW_PENDING_LOAD) != 0 &&
	       flow->state->load.session_is == STATE_SESSION_UNSURE &&
	       flow->ask->session_may_change;
}

/* A copy that waits for its first has no place of its tenant's. One that holds a large body counts as if it had. */
static uint32_t large_copies_max(const struct flow *flow)
{
	const struct tenant_limits *limits = &flow->caller.plan->limits;

	if (flow->ask->body.len <= BODY_SMALL || limits->count_only)
		return IDEMPOTENCY_SMALL;
	return limits->concurrent;
}

/* Whether the same call would be a copy: by its own name, or by its id in its session. */
static bool may_have_copies(const struct flow *flow)
{
	return !slice_absent(flow->ask->idempotency_key) ||
	       (flow_in_session(flow) && !slice_absent(flow->ask->cancel_id));
}

/* Its own name goes before the id. */
static bool fill_copy(struct flow *flow)
{
	const struct sampling_ask *ask = flow->ask;
	struct idempotency_call *copy;

	if (flow_state_of(flow) == NULL)
		return false;
	if (flow_in_session(flow) && !slice_absent(ask->cancel_id))
		flow->state->cancel.key =
			flow_cancel_key(ask->caller, flow->state->session, ask->cancel_id);
	copy = &flow->state->copy;
	*copy = (struct idempotency_call){ .key = flow->state->cancel.key,
					   .tenant = flow->state->tenant,
					   .large_max = large_copies_max(flow),
					   .arena = flow->arena,
					   .guess = guesses_revision(flow),
					   .unsure = flow_in_session(flow) &&
						     (flow->awaited & FLOW_PENDING_LOAD) != 0 };
	if (!slice_absent(ask->idempotency_key))
		copy->key = flow_idempotency_key(ask->caller, ask->idempotency_key);
	digest_request(flow, copy->body);
	return true;
}

/* The request is the first in the place of one that has gone. That may have spent tokens of the loop and had
 * blocks refused, and the session may have ended: what was known of them is asked anew. To follow one whose
 * time was over is to try again, and wants as much time as that: else copies of one moment would all be made,
 * each for the instant that is left. */
static enum flow_move lead(struct flow *flow, const struct flow_env *env)
{
	struct flow_state *state = flow->state;

	if (state->copy.late && !flow_fits(flow, env->now, 0))
		return flow_refuse_err(flow, ERR_DEADLINE);
	state->copy.late = false;
	if (state->copy.waited && state->asked) {
		state->copy.waited = state->asked = false;
		flow->step = FLOW_STEP_LOAD;
		return FLOW_GO;
	}
	return flow_find_caller(flow, env) ? FLOW_NEXT : flow_refuse_err(flow, ERR_UNAUTHORIZED);
}

/* While its session is guessed, it can only lead: whoever else has a part in it is asked when that is known. */
static enum flow_move join_ahead(struct flow *flow, const struct flow_env *env)
{
	struct flow_state *state = flow->state;

	if (state->copy.verdict != IDEMPOTENCY_LEADS) {
		state->joined = false;
		return FLOW_DO_AWAIT;
	}
	state->ahead.taken |= FLOW_PENDING_CLAIM;
	state->ahead.revision = flow->ask->request->revision;
	return lead(flow, env);
}

/* Its session is known now. Under another revision the same is another request. */
static enum flow_move join_known(struct flow *flow)
{
	if (flow->state->ahead.revision != flow->ask->request->revision) {
		flow->step = FLOW_STEP_JOIN;
		return FLOW_DO_GIVE_BACK;
	}
	flow_uses(flow, FLOW_PENDING_CLAIM);
	return FLOW_GO;
}

/* The first's answer is this one's, too. */
static enum flow_move use_copy(struct flow *flow, const struct idempotency_answer *from)
{
	must(from->err < ERR_COUNT);
	if (slice_absent(from->member))
		return flow_refuse_err(flow, from->err != ERR_OK ? (enum err)from->err : ERR_BUSY);
	flow->end.err = (enum err)from->err;
	flow->end.copy = from;
	return FLOW_ANSWERED;
}

static enum flow_move refuse_copy(struct flow *flow)
{
	static const struct fault fault = {
		.err = ERR_CONCURRENCY,
		.offset = FAULT_NO_OFFSET,
		.detail = "As many copies of this tenant's requests wait for the first of them as "
			  "may",
	};
	struct error_data data = error_data_none;

	data.limit = "copies";
	data.scope = limit_holder_name(LIMIT_OF_TENANT);
	data.retry_after_ms = FLOW_ROOM_RETRY_MS;
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_join(struct flow *flow, const struct flow_env *env)
{
	if (flow->state == NULL || !flow->state->joined) {
		if (!env->stateful || !may_have_copies(flow)) {
			flow->step = FLOW_STEP_JOINED;
			return FLOW_NEXT;
		}
		if (!fill_copy(flow))
			return flow_refuse_err(flow, ERR_BUSY);
		flow->state->joined = true;
		return FLOW_DO_JOIN;
	}
	flow->step = FLOW_STEP_JOINED; /* by a walk that went ahead */
	return FLOW_GO;
}

enum flow_move flow_joined(struct flow *flow, const struct flow_env *env)
{
	static const enum err refusals[] = {
		[IDEMPOTENCY_DONE] = ERR_DUPLICATE_DONE,
		[IDEMPOTENCY_CONFLICT] = ERR_DUPLICATE_CONFLICT,
		[IDEMPOTENCY_ELSEWHERE] = ERR_DUPLICATE_IN_FLIGHT,
		[IDEMPOTENCY_FULL] = ERR_BUSY,
	};

	if ((flow->awaited & FLOW_PENDING_LOAD) != 0)
		return join_ahead(flow, env);
	if ((flow->state->ahead.taken & FLOW_PENDING_CLAIM) != 0)
		return join_known(flow);
	switch (flow->state->copy.verdict) {
	case IDEMPOTENCY_LEADS:
		return lead(flow, env);
	case IDEMPOTENCY_ANSWERED:
		return use_copy(flow, &flow->state->copy.answer);
	case IDEMPOTENCY_CROWDED:
		return refuse_copy(flow);
	case IDEMPOTENCY_WAITS: /* its own deadline has passed before the first was answered */
		return flow_refuse_err(flow, ERR_DEADLINE);
	case IDEMPOTENCY_DONE:
	case IDEMPOTENCY_CONFLICT:
	case IDEMPOTENCY_ELSEWHERE:
	case IDEMPOTENCY_FULL:
		break;
	}
	return flow_refuse_err(flow, refusals[flow->state->copy.verdict]);
}

/* ---- SAVE ---- */

/* A session's counts: of requests that were tried. */
static bool counts(const struct flow *flow)
{
	return flow_in_session(flow) && flow->retries.attempts != 0;
}

bool flow_fill_save(struct flow *flow, const struct flow_env *env)
{
	if (!env->stateful || (flow->state != NULL && flow->state->saving != FLOW_SAVES_NOTHING))
		return false;
	const bool loop = flow_loop_fill_save(flow);
	struct flow_state *state = flow->state;
	if (state == NULL)
		return false;
	struct state_save *save = &state->save;
	/* who answers calls at once finds them known */
	const bool first =
		flow->end.err == ERR_OK && (save->change != STATE_COUNTS || save->call_count != 0);
	if (!first && !counts(flow) && !loop)
		return false;
	save->tenant = state->tenant;
	save->session = state->session_key;
	save->now = env->now;
	if (counts(flow))
		save->requests = 1;
	if (counts(flow) || loop) {
		save->tokens = flow->totals.tokens;
		save->usd = flow->totals.usd;
	}
	state->saving = first ? FLOW_SAVES_FIRST : FLOW_SAVES;
	return true;
}

/* The tenant has begun as many as it may: there is none. */
static void refuse_begin(struct flow *flow)
{
	const struct limit_refusal *refusal = &flow->reservation.refusal;
	struct error_data data = error_data_none;
	const struct fault fault = {
		.err = refusal->err,
		.offset = FAULT_NO_OFFSET,
		.detail = "too many sessions were begun; one serves any number of requests",
	};

	data.retry_after_ms = (int64_t)((refusal->wait_ns + MSEC - 1) / MSEC);
	flow->state->session_key = (struct state_key){ { 0 } };
	(void)flow_refuse(flow, &fault, &data);
}

void flow_saved(struct flow *flow)
{
	const struct state_save *save = &flow->state->save;

	if (save->change == STATE_BEGINS && flow->reservation.refusal.err != ERR_OK) {
		refuse_begin(flow);
		return;
	}
	flow_loop_saved(flow);
	if (save->change == STATE_ENDS && !save->ended)
		(void)flow_refuse_err(flow, save->away ? ERR_STORE : ERR_SESSION_UNKNOWN);
}
