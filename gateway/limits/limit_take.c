/* limit_take.c - taking a share of limits, and settling it: compare-and-swap on the words of slots. */
#include "gateway/limits/limit_period.h"
#include "gateway/limits/limit_slot.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

/* ---- money ---- */

/* With what it was topped up by. */
static uint64_t whole_budget(uint64_t limit, uint64_t more)
{
	return limit < AMOUNT_MAX - more ? limit + more : AMOUNT_MAX;
}

static enum err money_take(uint64_t word, uint32_t period, uint64_t limit, uint64_t more,
			   uint64_t ask, uint64_t *next)
{
	const uint64_t used = period_amount(word, period);
	const uint64_t most = whole_budget(limit, more);

	/* What costs nothing passes even where the budget is overspent. */
	if (ask != 0 && limit != LIMIT_NONE && (ask > most || used > most - ask))
		return ask > most && most != 0 ? ERR_OVER_BUDGET : ERR_BUDGET;
	*next = period_pack(period, ask < AMOUNT_MAX ? used + ask : AMOUNT_MAX);
	return ERR_OK;
}

/* A period that is over, and whose word another one uses by now, needs no settling. */
static uint64_t money_settle(uint64_t word, uint32_t period, uint64_t taken, uint64_t used)
{
	const uint64_t amount = period_amount(word, period);
	const uint64_t rest = amount > taken ? amount - taken : 0;

	if (!period_is(word, period))
		return word;
	return period_pack(period, used < AMOUNT_MAX ? rest + used : AMOUNT_MAX);
}

/* ---- taking and settling ---- */

/* One attempt at one moment. */
struct claim {
	struct limit_slot *slot;
	const struct tenant_limits *limits;
	const struct limit_ask *ask;
	nsec_t now;
	uint32_t day, month; /* when it was taken */
	uint64_t tokens_used, usd_used;
	uint64_t day_more, month_more; /* of the slot: topped up */
};

/* A limit is one word and two functions on what was seen of it. Those of rates see to it that it was
 * written under the rate that counts, and may see it anew for that. */
struct limit_step {
	enum limit limit;
	bool rate; /* of GCRA: nothing is counted beyond it */
	_Atomic uint64_t *(*word)(struct limit_slot *slot, const struct claim *claim);
	/* ERR_OK and *next, or why not and, for rates, *wait_ns. */
	enum err (*take)(const struct claim *claim, uint64_t *seen, uint64_t *next,
			 nsec_t *wait_ns);
	/* The word once the true cost (claim.*_used) is known. With nothing used it undoes the take. */
	uint64_t (*settle)(const struct claim *claim, uint64_t *seen);
};

static enum err rate_take(struct limit_rate *rate, struct quota_limit limit, uint64_t n, nsec_t now,
			  uint64_t *seen, uint64_t *next, nsec_t *wait_ns)
{
	nsec_t tat;

	if (n == 0 || limit.per_minute == 0) { /* nothing asked: no debt stands in the way */
		*next = *seen;
		return ERR_OK;
	}
	*seen = rate_align(rate, limit, now, *seen);
	const enum err err = quota_take(rate_tat(*seen), limit, n, now, &tat, wait_ns);
	if (err == ERR_OK)
		*next = rate_word(tat, *seen);
	return err;
}

static uint64_t rate_settle(const struct limit_rate *rate, struct quota_limit limit, uint64_t taken,
			    uint64_t used, nsec_t now, uint64_t *seen)
{
	if (limit.per_minute == 0)
		return *seen;
	const uint64_t written = rate_written(rate, seen);
	const nsec_t tat = rate_tat(*seen);
	if (written == 0 || written == limit.per_minute)
		return rate_word(quota_settle(tat, limit, taken, used, now), *seen);
	return rate_word(quota_settle_under(tat, written, taken, used, now), *seen);
}

static _Atomic uint64_t *requests_word(struct limit_slot *slot, const struct claim *claim)
{
	(void)claim;
	return &slot->requests.word;
}

static enum err requests_take(const struct claim *claim, uint64_t *seen, uint64_t *next,
			      nsec_t *wait_ns)
{
	return rate_take(&claim->slot->requests, claim->limits->requests, claim->ask->requests,
			 claim->now, seen, next, wait_ns);
}

static uint64_t requests_settle(const struct claim *claim, uint64_t *seen)
{
	return rate_settle(&claim->slot->requests, claim->limits->requests, claim->ask->requests, 0,
			   claim->now, seen);
}

static _Atomic uint64_t *tokens_word(struct limit_slot *slot, const struct claim *claim)
{
	(void)claim;
	return &slot->tokens.word;
}

static enum err tokens_take(const struct claim *claim, uint64_t *seen, uint64_t *next,
			    nsec_t *wait_ns)
{
	return rate_take(&claim->slot->tokens, claim->limits->tokens, claim->ask->tokens,
			 claim->now, seen, next, wait_ns);
}

static uint64_t tokens_settle(const struct claim *claim, uint64_t *seen)
{
	return rate_settle(&claim->slot->tokens, claim->limits->tokens, claim->ask->tokens,
			   claim->tokens_used, claim->now, seen);
}

static _Atomic uint64_t *concurrent_word(struct limit_slot *slot, const struct claim *claim)
{
	(void)claim;
	return &slot->concurrent;
}

static enum err concurrent_take(const struct claim *claim, uint64_t *seen, uint64_t *next,
				nsec_t *wait_ns)
{
	const uint64_t n = claim->ask->concurrent;

	if (n != 0 && *seen + n > claim->limits->concurrent) {
		*wait_ns = SEC; /* nobody knows when a request ends (DESIGN 4.4) */
		return ERR_CONCURRENCY;
	}
	*next = *seen + n;
	return ERR_OK;
}

static uint64_t concurrent_settle(const struct claim *claim, uint64_t *seen)
{
	must(*seen >= claim->ask->concurrent);
	return *seen - claim->ask->concurrent;
}

static _Atomic uint64_t *day_word(struct limit_slot *slot, const struct claim *claim)
{
	return period_word(slot->day, claim->day);
}

static enum err day_take(const struct claim *claim, uint64_t *seen, uint64_t *next, nsec_t *wait_ns)
{
	(void)wait_ns;
	return money_take(*seen, claim->day, claim->limits->usd_per_day, claim->day_more,
			  claim->ask->usd, next);
}

static uint64_t day_settle(const struct claim *claim, uint64_t *seen)
{
	return money_settle(*seen, claim->day, claim->ask->usd, claim->usd_used);
}

static _Atomic uint64_t *month_word(struct limit_slot *slot, const struct claim *claim)
{
	return period_word(slot->month, claim->month);
}

static enum err month_take(const struct claim *claim, uint64_t *seen, uint64_t *next,
			   nsec_t *wait_ns)
{
	(void)wait_ns;
	return money_take(*seen, claim->month, claim->limits->usd_per_month, claim->month_more,
			  claim->ask->usd, next);
}

static uint64_t month_settle(const struct claim *claim, uint64_t *seen)
{
	return money_settle(*seen, claim->month, claim->ask->usd, claim->usd_used);
}

/* The order is part of the contract: of several limits in the way, the first is named. */
static const struct limit_step limit_steps[] = {
	{ LIMIT_requests_per_minute, true, requests_word, requests_take, requests_settle },
	{ LIMIT_tokens_per_minute, true, tokens_word, tokens_take, tokens_settle },
	{ LIMIT_concurrent, false, concurrent_word, concurrent_take, concurrent_settle },
	{ LIMIT_usd_per_day, false, day_word, day_take, day_settle },
	{ LIMIT_usd_per_month, false, month_word, month_take, month_settle },
};

/* No word says anything about another one but those of a rate (limit_rate.h), so none else needs an order
 * between them. */
static uint64_t word_load(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static bool word_swap(_Atomic uint64_t *word, uint64_t *seen, uint64_t next)
{
	return *seen == next ||
	       atomic_compare_exchange_weak_explicit(word, seen, next, memory_order_relaxed,
						     memory_order_relaxed);
}

static inline void step_settle(const struct limit_step *step, struct limit_slot *slot,
			       const struct claim *claim)
{
	_Atomic uint64_t *word = step->word(slot, claim);
	uint64_t seen = word_load(word), next;

	while (next = step->settle(claim, &seen), !word_swap(word, &seen, next))
		;
}

/* What a look at one limit saw, and what a take would write. */
struct glimpse {
	_Atomic uint64_t *word;
	uint64_t seen, next;
};

static enum err step_look(const struct limit_step *step, struct limit_slot *slot,
			  const struct claim *claim, struct glimpse *glimpse, nsec_t *wait_ns)
{
	glimpse->word = step->word(slot, claim);
	glimpse->seen = word_load(glimpse->word);
	return step->take(claim, &glimpse->seen, &glimpse->next, wait_ns);
}

/* Writes what the look found, or, where somebody was faster, what holds by now. */
static inline enum err step_take(const struct limit_step *step, const struct claim *claim,
				 struct glimpse *glimpse, nsec_t *wait_ns)
{
	while (!word_swap(glimpse->word, &glimpse->seen, glimpse->next)) {
		const enum err err = step->take(claim, &glimpse->seen, &glimpse->next, wait_ns);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

static void step_pass(size_t step, struct limit_scope *scope, const struct claim *claim)
{
	const struct tenant_limits none = limit_none();
	struct claim unbound = *claim;
	nsec_t wait_ns;

	if (scope->would_refuse == NULL)
		scope->would_refuse = limit_info(limit_steps[step].limit)->name;
	if (limit_steps[step].rate) {
		scope->passed_over |= UINT32_C(1) << step;
		return;
	}
	unbound.limits = &none; /* places and money are counted beyond their limits */
	struct glimpse glimpse;
	enum err err = step_look(&limit_steps[step], scope->slot, &unbound, &glimpse, &wait_ns);
	must(err == ERR_OK);
	err = step_take(&limit_steps[step], &unbound, &glimpse, &wait_ns);
	must(err == ERR_OK);
}

/* One scope while it is asked: the claim on it, and what the look at each of its limits saw. */
struct view {
	struct claim claim;
	struct glimpse glimpses[COUNT_OF(limit_steps)];
};

/* The state of the budget that refused. */
static void note_money(struct limit_refusal *refusal, const struct view *view, size_t step)
{
	const struct claim *claim = &view->claim;
	const bool day = limit_steps[step].limit == LIMIT_usd_per_day;
	const uint64_t used =
		period_amount(view->glimpses[step].seen, day ? claim->day : claim->month);
	const uint64_t whole = day ? whole_budget(claim->limits->usd_per_day, claim->day_more)
				   : whole_budget(claim->limits->usd_per_month, claim->month_more);

	refusal->left = whole > used ? whole - used : 0;
	refusal->budget = refusal->err == ERR_OVER_BUDGET ? whole : 0;
}

static struct limit_refusal refusal_by(const struct limit_scope *scope, const struct view *view,
				       size_t step, enum err err, nsec_t wait_ns)
{
	struct limit_refusal refusal = {
		.err = err,
		.limit = limit_info(limit_steps[step].limit)->name,
		.holder = scope->holder,
		.wait_ns = wait_ns,
	};

	if (err == ERR_BUDGET || err == ERR_OVER_BUDGET)
		note_money(&refusal, view, step);
	return refusal;
}

/* Whether every limit of the scope has room; *refusal says which has not. */
static bool scope_look(const struct limit_scope *scope, struct view *view,
		       struct limit_refusal *refusal)
{
	for (size_t i = 0; i < COUNT_OF(limit_steps); i++) {
		nsec_t wait_ns = 0;
		const enum err err = step_look(&limit_steps[i], scope->slot, &view->claim,
					       &view->glimpses[i], &wait_ns);
		if (err == ERR_OK)
			continue;
		*refusal = refusal_by(scope, view, i, err, wait_ns);
		return false;
	}
	return true;
}

/* After a look that found room everywhere. Index of the first step that refuses all the same, with
 * *refusal filled, or the number of steps. */
static size_t scope_take(const struct limit_scope *scope, struct view *view,
			 struct limit_refusal *refusal)
{
	for (size_t i = 0; i < COUNT_OF(limit_steps); i++) {
		nsec_t wait_ns = 0;
		const enum err err =
			step_take(&limit_steps[i], &view->claim, &view->glimpses[i], &wait_ns);
		if (err == ERR_OK)
			continue;
		*refusal = refusal_by(scope, view, i, err, wait_ns);
		return i;
	}
	return COUNT_OF(limit_steps);
}

/* Takes what there is, and refuses nothing. */
static void scope_count(struct limit_scope *scope, const struct claim *claim)
{
	for (size_t i = 0; i < COUNT_OF(limit_steps); i++) {
		struct glimpse glimpse;
		nsec_t wait_ns;
		enum err err = step_look(&limit_steps[i], scope->slot, claim, &glimpse, &wait_ns);

		if (err == ERR_OK)
			err = step_take(&limit_steps[i], claim, &glimpse, &wait_ns);
		if (err != ERR_OK)
			step_pass(i, scope, claim);
	}
}

/* Gives back what the first `steps` of a scope took. */
static void scope_undo(struct limit_scope *scope, const struct claim *claim, size_t steps)
{
	while (steps-- > 0)
		if ((scope->passed_over >> steps & 1) == 0)
			step_settle(&limit_steps[steps], scope->slot, claim);
}

/* Of no scope yet. */
static struct claim claim_of(const struct limit_ask *ask, nsec_t now, uint64_t wall_s)
{
	return (struct claim){
		.ask = ask, .now = now, .day = quota_day(wall_s), .month = quota_month(wall_s)
	};
}

static struct claim claim_on(const struct limit_scope *scope, const struct claim *claim)
{
	struct claim on = *claim;

	on.slot = scope->slot;
	on.limits = &scope->limits;
	on.day_more = period_read(scope->slot->day_more, claim->day);
	on.month_more = period_read(scope->slot->month_more, claim->month);
	return on;
}

/* Takes from a scope whose look found room, or that only counts. */
static size_t scope_claim(struct limit_scope *scope, struct view *view,
			  struct limit_refusal *refusal)
{
	if (!scope->limits.count_only)
		return scope_take(scope, view, refusal);
	scope_count(scope, &view->claim);
	return COUNT_OF(limit_steps);
}

bool limit_take(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask, nsec_t now,
		uint64_t wall_s, struct limit_refusal *refusal)
{
	const struct claim claim = claim_of(ask, now, wall_s);
	struct view views[LIMIT_SCOPES_MAX];
	uint32_t taken = 0;

	must(count >= 1 && count <= LIMIT_SCOPES_MAX);
	/* Looking first keeps a storm of refused requests from holding, for moments, what others
	 * could have had; what is left to undo are races between two that both saw room. */
	for (uint32_t i = 0; i < count; i++) {
		views[i].claim = claim_on(&scopes[i], &claim);
		scopes[i].would_refuse = NULL;
		scopes[i].passed_over = 0;
		if (!scopes[i].limits.count_only && !scope_look(&scopes[i], &views[i], refusal))
			return false;
	}
	for (; taken < count; taken++) {
		const size_t steps = scope_claim(&scopes[taken], &views[taken], refusal);
		if (steps == COUNT_OF(limit_steps))
			continue;
		scope_undo(&scopes[taken], &views[taken].claim, steps);
		break;
	}
	if (taken == count)
		return true;
	while (taken-- > 0)
		scope_undo(&scopes[taken], &views[taken].claim, COUNT_OF(limit_steps));
	return false;
}

uint64_t limit_settle(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		      uint64_t taken_wall_s, uint64_t tokens_used, uint64_t usd_used, nsec_t now)
{
	struct claim claim = claim_of(ask, now, taken_wall_s);

	claim.tokens_used = tokens_used;
	claim.usd_used = usd_used;
	for (uint32_t s = 0; s < count; s++) {
		const struct claim on = claim_on(&scopes[s], &claim);
		for (size_t i = 0; i < COUNT_OF(limit_steps); i++)
			if (limit_steps[i].limit != LIMIT_requests_per_minute &&
			    limit_steps[i].limit != LIMIT_concurrent &&
			    (scopes[s].passed_over >> i & 1) == 0)
				step_settle(&limit_steps[i], scopes[s].slot, &on);
	}
	return usd_used > ask->usd ? usd_used - ask->usd : 0;
}

void limit_undo(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		uint64_t taken_wall_s, nsec_t now)
{
	const struct claim claim = claim_of(ask, now, taken_wall_s);

	for (uint32_t i = 0; i < count; i++) {
		const struct claim on = claim_on(&scopes[i], &claim);
		scope_undo(&scopes[i], &on, COUNT_OF(limit_steps));
	}
}

void limit_release(struct limit_scope *scopes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		must(scopes[i].slot != NULL);
		const uint64_t before = atomic_fetch_sub_explicit(&scopes[i].slot->concurrent, 1,
								  memory_order_relaxed);
		must(before > 0);
	}
}

void limit_count(const struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		 nsec_t now, uint64_t wall_s)
{
	struct claim claim = claim_of(ask, now, wall_s);

	for (uint32_t i = 0; i < count; i++) {
		struct limit_scope scope = scopes[i];
		claim.slot = scope.slot;
		claim.limits = &scope.limits;
		scope_count(&scope, &claim);
	}
}
