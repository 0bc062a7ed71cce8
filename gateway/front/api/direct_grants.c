/* direct_grants.c - what a plan grants of what costs extra (plans.*.direct), what a model has to offer for it, and what it
 * has cost in the end. */
#include "gateway/front/api/direct.h"

#include "codec/api/api_view.h"
#include "codec/base/must.h"
#include "tenants/quota.h"

static bool refuse(struct fault *why, struct slice path, const char *detail)
{
	*why = (struct fault){
		.err = ERR_POLICY, .offset = FAULT_NO_OFFSET, .path = path, .detail = detail
	};
	return false;
}

/* ---- before a model is taken ---- */

static bool takes_members(struct direct_asked *asked, const struct sampling_offer *offer,
			  struct fault *why)
{
	if (!offer->again)
		asked->refused_there =
			api_request_names(&asked->request, offer->refused, offer->refused_count);
	const uint64_t there = asked->refused_there;
	if (there == 0)
		return true;
	/* a copy: the settings may go before it is written */
	return refuse(why,
		      arena_copy(asked->call->ask.arena, offer->refused[__builtin_ctzll(there)]),
		      "Policy does not permit this member for the model's provider");
}

static bool prices_tools(const struct direct_asked *asked, const struct sampling_offer *offer,
			 struct fault *why)
{
	const struct api_granted *granted = &asked->granted;

	if (slice_absent(granted->server_tool))
		return true;
	if (offer->use_price == SAMPLING_NO_PRICE)
		return refuse(why, granted->server_tool,
			      "Policy does not permit server tools of a model without "
			      "price.server_tool");
	if (offer->use_price != 0 && !slice_absent(granted->unbounded))
		return refuse(why, granted->unbounded,
			      "Policy does not permit this server tool without max_uses: nothing "
			      "bounds its cost");
	return true;
}

static bool suits(struct sampling_raw *raw, const struct sampling_offer *offer, struct fault *why)
{
	struct direct_asked *asked = direct_of_raw(raw);

	return (offer->refused_count == 0 || takes_members(asked, offer, why)) &&
	       prices_tools(asked, offer, why) &&
	       api_thinking_check(&asked->request, offer->output_most, "model",
				  asked->call->ask.arena, why) == ERR_OK;
}

/* ---- when the answer is there ---- */

/* Of the tier that was asked for or said: `place` is api_tier_find's. What is no permitted tier has `otherwise`. */
static uint64_t factor_of(const struct direct_paid *paid, uint32_t place, uint64_t otherwise)
{
	if (place == API_TIER_USUAL)
		return QUOTA_FACTOR_ONE;
	return place < paid->tiers.tier_count ? paid->factors[place] : otherwise;
}

static uint64_t factor_said(const struct direct_paid *paid, const struct api_said *said,
			    uint32_t asked)
{
	const uint64_t most = factor_of(paid, asked, QUOTA_FACTOR_ONE);
	const struct slice text = api_said_text(said);

	return slice_absent(text) ? most : factor_of(paid, api_tier_find(text, &paid->tiers), most);
}

/* Each is at most 1000. */
static uint64_t product(uint64_t a, uint64_t b)
{
	const uint64_t ones = a * b;

	return ones / QUOTA_FACTOR_ONE + (ones % QUOTA_FACTOR_ONE != 0);
}

static struct sampling_extra cost(struct sampling_raw *raw, const struct provider_answer *answer)
{
	struct direct_asked *asked = direct_of_raw(raw);
	struct direct_paid *paid = asked->paid;

	must(paid != NULL);
	if (answer != NULL)
		api_paid_answer(&paid->seen, asked->request.api, answer->body);
	return (struct sampling_extra){
		.factor = product(factor_said(paid, &paid->seen.tier, asked->granted.tier),
				  factor_said(paid, &paid->seen.speed, asked->granted.speed)),
		.uses = paid->seen.uses_said ? paid->seen.uses : raw->most.uses,
	};
}

void direct_forget_paid(struct direct_asked *asked)
{
	if (asked->paid != NULL)
		asked->paid->seen = (struct api_paid){ .uses_said = false };
}

/* ---- the plan's ---- */

/* Copies of the tiers: an answer may say any of them. False: no memory. */
static bool keep_tiers(struct direct_paid *paid, const struct plan_direct *direct,
		       struct arena *into)
{
	const uint32_t count = direct->grants.tier_count;
	struct slice *names = arena_take(into, (count + 1) * sizeof(*names));
	uint64_t *factors = arena_take(into, (count + 1) * sizeof(*factors));

	if (names == NULL || factors == NULL)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		names[i] = arena_copy(into, direct->grants.tiers[i]);
		factors[i] = direct->tier_factors[i];
		if (slice_absent(names[i]))
			return false;
	}
	paid->tiers = (struct api_grants){ .tiers = names, .tier_count = count };
	paid->factors = factors;
	return true;
}

/* What the answer's price is found by. False: no memory. */
static bool begin_paid(struct direct_call *call, const struct plan_direct *direct)
{
	struct direct_asked *asked = call->asked;
	struct direct_paid *paid;

	if (direct->grants.tier_count == 0 && slice_absent(asked->granted.server_tool))
		return true;
	paid = arena_zero(&call->arena, sizeof(*paid));
	if (paid == NULL || !keep_tiers(paid, direct, &call->arena))
		return false;
	asked->paid = paid;
	asked->raw.cost = cost;
	asked->raw.most = (struct sampling_extra){
		.factor = product(factor_of(paid, asked->granted.tier, QUOTA_FACTOR_ONE),
				  factor_of(paid, asked->granted.speed, QUOTA_FACTOR_ONE)),
		.uses = asked->granted.uses,
	};
	return true;
}

/* A plan's bounds of samplings are no measure of what agents do here. */
enum err direct_count_loops(struct direct_call *call)
{
	const struct plan_direct *direct = call->caller.plan->direct;
	struct direct_asked *asked = call->asked;

	if (direct == NULL || direct->tool_rounds == PLAN_ROUNDS_ANY || call->api == API_COUNT)
		return ERR_OK;
	asked->raw.loops = true;
	asked->view.tool_rounds = asked->request.tool_rounds;
	asked->view.rounds_most = direct->tool_rounds;
	return api_view_calls(&asked->request, &call->arena, &asked->view);
}

enum err direct_grant(struct direct_call *call, struct fault *fault)
{
	static const struct plan_direct nothing = { .grants = { .n_max = 1 } };
	const struct plan_direct *direct =
		call->caller.plan->direct != NULL ? call->caller.plan->direct : &nothing;
	struct direct_asked *asked = call->asked;
	const struct api_request *request = &asked->request;
	enum err err = api_grants_check(request, &direct->grants, &asked->granted, fault);

	if (err != ERR_OK)
		return err;
	asked->raw.suits = suits;
	asked->raw.fetches = request->documents_by_url != 0 || request->server_tools != 0;
	return begin_paid(call, direct) ? ERR_OK : ERR_BUSY;
}
