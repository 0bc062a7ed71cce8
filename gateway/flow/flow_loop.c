/* flow_loop.c - tool loops: limits over all their rounds, and what a provider wants back of its earlier
 * answers (DESIGN 5 "Tool loop", "Reasoning in a loop"; contract/providers.md 2.1).
 *
 * The request's own history is the truth; what the store adds are rounds that a history has forgotten,
 * tokens and money that forks and retries have spent, and private blocks. Nothing is consumed by being read. */
#include "gateway/flow/flow_loop.h"

#include "codec/base/must.h"
#include "codec/dialect/replay.h"
#include "gateway/flow/flow_schema.h"
#include "gateway/flow/flow_steps.h"
#include "tenants/limit.h"

#include <inttypes.h>

static const struct slice nothing = { NULL, 0 };

/* ---- what is asked ---- */

/* Of an id as it stands in a history or an answer; false: no memory. */
static bool key_of(struct flow *flow, enum state_kind kind, struct slice raw, struct state_key *out)
{
	const struct slice id = json_str_plain(raw, flow->arena);

	if (slice_absent(id))
		return false;
	*out = state_key_of(kind, flow->ask->caller->tenant, flow->ask->caller->server,
			    flow->state->session, id);
	return true;
}

/* The calls of the message, whose results end the request. */
static bool ask_calls(struct flow *flow, uint32_t message, struct state_load *load)
{
	const struct sampling_request *request = flow->ask->request;
	const struct message *turn = &request->messages[message];
	const uint32_t most = turn->count < STATE_CALLS_MAX ? turn->count : STATE_CALLS_MAX;
	struct state_key *keys = arena_take(flow->arena, most * sizeof(*keys));
	uint32_t count = 0;

	for (uint32_t i = 0; keys != NULL && i < turn->count && count < most; i++) {
		const struct block *block = &request->blocks[turn->first + i];
		if (block->type != BLOCK_TOOL_USE)
			continue;
		if (!key_of(flow, STATE_CALL, block->use.id, &keys[count++]))
			return false;
	}
	load->calls = keys;
	load->call_count = count;
	return keys != NULL;
}

bool flow_loop_ask(struct flow *flow, struct state_load *load, const struct flow_env *env)
{
	const struct sampling_request *request = flow->ask->request;
	struct flow_state *state = flow->state;
	const uint32_t turns = request == NULL ? 0 : request->call_turns;
	uint32_t message = 0, call, count = 0, last = 0;
	struct state_key *keys;

	if (turns == 0)
		return true;
	keys = arena_take(flow->arena, turns * sizeof(*keys));
	for (; keys != NULL && count < turns; message++) {
		message = replay_next_turn(request, message, &call);
		must(message != REPLAY_NO_TURN);
		if (!key_of(flow, STATE_CALL, request->blocks[call].use.id, &keys[count++]))
			return false;
		last = message;
	}
	if (keys == NULL)
		return false;
	if (state->admission != FLOW_ADMITTED)
		state->admission = flow_refused_lately(flow, env) ? FLOW_HELD_BACK : FLOW_IN_TURN;
	/* for all turns or for none */
	if (turns <= STATE_BLOCKS_MAX && state->admission != FLOW_HELD_BACK) {
		load->blocks = keys;
		load->block_count = turns;
	}
	return request->tool_rounds == 0 || ask_calls(flow, last, load);
}

/* ---- what is known ---- */

void flow_loop_take(struct flow *flow)
{
	const struct state_load *load = &flow->state->load;
	const struct state_loop *loop = &load->loop;

	flow->state->loop = (struct flow_loop){ .unknown = 0 }; /* nothing of an earlier answer */
	if (flow->ask->request == NULL)
		return;
	flow->ask->request->tool_rounds = flow->state->own_rounds;
	if (load->cut)
		flow->state->admission = FLOW_HELD_BACK;
	if (load->call_count > loop->known && !load->away)
		flow->state->loop.unknown = load->call_count - loop->known;
	if (state_key_none(&loop->id))
		return;
	/* a history may have been shortened */
	if (loop->rounds >= flow->ask->request->tool_rounds)
		flow->ask->request->tool_rounds = loop->rounds + 1;
	_Static_assert(sizeof(flow->attempt.target) == sizeof(loop->target.at), "every place fits");
	(void)memcpy(&flow->state->loop.held, loop->target.at, sizeof(loop->target.at));
}

/* Prompts are cached there, and thoughts are of that model. */
const struct bitset *flow_loop_held(const struct flow *flow, const struct flow_env *env,
				    struct bitset *into)
{
	const struct flow_state *state = flow->state;

	return state != NULL && health_models_at(env->health, &state->loop.held, into) ? into
										       : NULL;
}

/* The first of the loop's limits that is spent, or LIMIT_COUNT. What has cost nothing may go on where
 * nothing may be spent. */
static enum limit spent_limit(const struct state_loop *loop, const struct tenant_limits *limits)
{
	if (loop->tokens >= limits->loop_tokens)
		return LIMIT_loop_tokens;
	if (loop->usd != 0 && loop->usd >= limits->loop_usd)
		return LIMIT_loop_usd;
	return LIMIT_COUNT;
}

/* Members of data: what was spent, and how much may be, in the limit's own unit. Absent: no memory. */
static struct slice spent_member(struct flow *flow, enum limit limit)
{
	enum { ROOM = 96, NANO = 1000000000 };
	const struct state_loop *loop = &flow->state->load.loop;
	const struct tenant_limits *limits = &flow->caller.plan->limits;
	char *text = arena_take(flow->arena, ROOM);
	int len;

	if (text == NULL)
		return nothing;
	if (limit == LIMIT_loop_tokens)
		len = snprintf(text, ROOM, "\"spent\":%" PRIu64 ",\"allowed\":%" PRIu64,
			       loop->tokens, limits->loop_tokens);
	else
		len = snprintf(text, ROOM,
			       "\"spent\":%" PRIu64 ".%09" PRIu64 ",\"allowed\":%" PRIu64
			       ".%09" PRIu64,
			       loop->usd / NANO, loop->usd % NANO, limits->loop_usd / NANO,
			       limits->loop_usd % NANO);
	must(len > 0 && len < ROOM);
	return slice_of(text, (size_t)len);
}

/* NULL: no memory, or nothing to add to what the error says by itself. */
static const char *spent_words(struct flow *flow, enum limit limit)
{
	enum { ROOM = 128 };
	char spent[FLOW_USD_ROOM], allowed[FLOW_USD_ROOM];
	char *text = limit == LIMIT_loop_usd ? arena_take(flow->arena, ROOM) : NULL;

	if (text == NULL)
		return NULL;
	flow_put_usd(spent, flow->state->load.loop.usd, true);
	flow_put_usd(allowed, flow->caller.plan->limits.loop_usd, false);
	(void)snprintf(text, ROOM, "The tool loop has spent %s; its limit loop_usd is %s", spent,
		       allowed);
	return text;
}

static enum flow_move refuse_loop(struct flow *flow, enum err err, const char *words,
				  struct slice particulars)
{
	struct error_data data = error_data_none;
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET, .detail = words };

	data.rule = err_info(err)->reason;
	data.extra = particulars;
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_loop_check(struct flow *flow)
{
	const struct tenant_limits *limits = &flow->caller.plan->limits;

	if (flow->state == NULL)
		return FLOW_NEXT;
	if (flow->state->loop.unknown != 0 && limits->unknown_calls_refuse)
		return refuse_loop(flow, ERR_UNKNOWN_CALLS, NULL, nothing);
	const enum limit spent = spent_limit(&flow->state->load.loop, limits);
	if (spent == LIMIT_COUNT)
		return FLOW_NEXT;
	flow->state->loop.spent = limit_info(spent)->name;
	if (limits->count_only)
		return FLOW_NEXT;
	return refuse_loop(flow, spent == LIMIT_loop_tokens ? ERR_LOOP_TOKENS : ERR_LOOP_USD,
			   spent_words(flow, spent), spent_member(flow, spent));
}

/* ---- private blocks: back to the provider ---- */

void flow_loop_replay(const struct flow *flow, struct encode_in *in)
{
	if (flow->state == NULL)
		return;
	in->replay_unfit = flow->state->loop.unbound;
	if (in->replay_unfit)
		return;
	in->replay = flow->state->load.found; /* NULL while they are held back */
	in->replay_count = flow->state->load.block_count;
}

bool flow_loop_unbind(struct flow *flow)
{
	if (!flow->made->encoded.replayed || flow->state->loop.unbound)
		return false;
	flow->state->loop.unbound = true;
	return true;
}

/* ---- what is saved ---- */

static bool is_loop_known(const struct flow *flow)
{
	return flow->state != NULL && !state_key_none(&flow->state->load.loop.id);
}

static uint32_t count_calls(const struct flow *flow)
{
	uint32_t calls = 0;

	if (flow->end.err != ERR_OK || flow->end.result == NULL)
		return 0;
	for (uint32_t i = 0; i < flow->end.result->block_count; i++)
		calls += flow->end.result->blocks[i].is_tool_use;
	return calls;
}

/* Whether the answer, or what it is based on, has something that a next round would want. What answers a
 * schema is no round. */
static bool reasons(const struct flow *flow)
{
	const struct sampling_result *result = flow->end.result;

	return !flow_schema_is_private(flow) &&
	       (!slice_absent(result->replay) || result->replay_lost ||
		flow->made->encoded.replayed);
}

/* The record of the answer. Also of one that has nothing private, in a loop that has: it is told from one
 * that was lost. Absent: there is nothing to keep, or it cannot be kept. */
static struct slice take_record(struct flow *flow)
{
	if (!reasons(flow) && !flow->made->profile.replay_reasoning)
		return nothing;
	if (flow->attempt.raw || flow->end.result->replay_lost || flow_schema_is_private(flow) ||
	    !replay_may_keep(&flow->made->encoded))
		return nothing;
	return replay_write(flow->walk.dialect, flow->walk.provider_name, &flow->made->encoded,
			    flow->end.result, flow->arena);
}

/* The ids that the server is told; false: no memory. */
static bool issue_calls(struct flow *flow, uint32_t calls, struct state_save *save)
{
	const uint32_t most = calls < STATE_CALLS_MAX ? calls : STATE_CALLS_MAX;
	struct state_key *keys = arena_take(flow->arena, most * sizeof(*keys));
	const struct result_block *block = flow->end.result->blocks;

	for (uint32_t count = 0; keys != NULL && count < most; block++) {
		if (!block->is_tool_use)
			continue;
		if (count == 0 && state_key_none(&save->loop) &&
		    !key_of(flow, STATE_LOOP, block->id, &save->loop))
			return false;
		if (!key_of(flow, STATE_CALL, block->id, &keys[count++]))
			return false;
	}
	save->calls = keys;
	save->call_count = keys == NULL ? 0 : most;
	(void)memcpy(save->target.at, &flow->attempt.target, sizeof(save->target.at));
	return keys != NULL;
}

bool flow_loop_fill_save(struct flow *flow)
{
	const uint32_t calls = count_calls(flow);
	struct state_save *save;

	if (calls == 0 && (!is_loop_known(flow) || flow->retries.attempts == 0))
		return false;
	if (flow->ask->raw != NULL && !flow->ask->raw->loops)
		return false;
	if (calls != 0 && !flow->attempt.raw && reasons(flow)) /* until it is known to be kept */
		flow->totals.adjustments |= ADJUST_BIT(ADJUST_REASONING_NOT_SAVED);
	if (flow_state_of(flow) == NULL)
		return false; /* the loop is what its history says */
	save = &flow->state->save;
	save->loop = flow->state->load.loop.id;
	save->rounds = flow->ask->request->tool_rounds;
	if (calls == 0)
		return true;
	if (!issue_calls(flow, calls, save))
		return false;
	save->blocks = take_record(flow);
	return true;
}

void flow_loop_saved(struct flow *flow)
{
	if (flow->state->save.blocks_kept)
		flow->totals.adjustments &= ~ADJUST_BIT(ADJUST_REASONING_NOT_SAVED);
}
