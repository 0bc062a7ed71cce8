#include "gateway/limits/refusals.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

#include <string.h>

static bool is_key(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

/* Keys are digests. */
static uint32_t row_of(const uint8_t tenant[16])
{
	return tenant[0] % REFUSALS_ROWS;
}

static bool is_live(const struct refused *refused, const uint8_t tenant[16], nsec_t now)
{
	return now < refused->until && is_key(refused->tenant, tenant);
}

static const struct limit_scope *scope_of(const struct reservation *reservation,
					  const uint8_t key[16])
{
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		if (is_key(reservation->scopes[i].key, key))
			return &reservation->scopes[i];
	return NULL;
}

/* Whose limit refused. NULL: of two globs a refusal does not say which. */
static const struct limit_scope *refuser(const struct reservation *reservation)
{
	const struct limit_scope *found = NULL;

	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		const struct limit_scope *scope = &reservation->scopes[i];
		if (scope->holder != reservation->refusal.holder)
			continue;
		if (found != NULL)
			return NULL;
		found = scope;
	}
	return found;
}

/* The rate of that name, and what is asked of it; false: it is no rate. */
static bool rate_of(const struct limit_scope *scope, const struct limit_ask *ask, const char *limit,
		    struct quota_limit *rate, uint64_t *asked)
{
	if (strcmp(limit, limit_info(LIMIT_requests_per_minute)->name) == 0) {
		*rate = scope->limits.requests;
		*asked = ask->requests;
		return true;
	}
	*rate = scope->limits.tokens;
	*asked = ask->tokens;
	return strcmp(limit, limit_info(LIMIT_tokens_per_minute)->name) == 0;
}

/* Where it goes: in the place of the same refusal, of one that is over, or of the oldest. */
static struct refused *place_for(struct refusals *refusals, const struct refused *fresh)
{
	struct refused *row = refusals->rows[row_of(fresh->tenant)], *oldest = &row[0];

	for (size_t i = 0; i < REFUSALS_OF_ROW; i++) {
		struct refused *at = &row[i];
		if (at->until != 0 && is_key(at->tenant, fresh->tenant) &&
		    is_key(at->scope, fresh->scope) && at->refusal.limit == fresh->refusal.limit)
			return at;
		if (at->until < oldest->until)
			oldest = at;
	}
	return oldest;
}

void refusals_note(struct refusals *refusals, const struct reservation *reservation, nsec_t now)
{
	const struct limit_refusal *refusal = &reservation->refusal;
	struct refused fresh = { .since = now, .until = now + REFUSALS_LAST, .refusal = *refusal };

	must(!reservation->granted && reservation->scope_count > 0);
	if (refusal->limit == NULL)
		return; /* no limit of the tenant's: no room, or no store */
	(void)memcpy(fresh.tenant, reservation->scopes[0].key, sizeof(fresh.tenant));
	(void)memcpy(fresh.scope, fresh.tenant, sizeof(fresh.scope));
	if (refusal->err == ERR_RATE_LIMITED) {
		const struct limit_scope *scope = refuser(reservation);
		if (refusal->wait_ns < REFUSALS_LAST)
			fresh.until = now + refusal->wait_ns;
		if (scope != NULL &&
		    rate_of(scope, &reservation->ask, refusal->limit, &fresh.rate, &fresh.asked))
			(void)memcpy(fresh.scope, scope->key, sizeof(fresh.scope));
		else
			fresh.asked = 0;
	}
	*place_for(refusals, &fresh) = fresh;
	if (fresh.until > refusals->until)
		refusals->until = fresh.until;
}

bool refusals_has(const struct refusals *refusals, const uint8_t tenant[16], nsec_t now)
{
	if (now >= refusals->until)
		return false;
	const struct refused *row = refusals->rows[row_of(tenant)];
	for (size_t i = 0; i < REFUSALS_OF_ROW; i++)
		if (is_live(&row[i], tenant, now))
			return true;
	return false;
}

/* What a rate that had a wait for some units has for others, `passed` later; 0: none. */
static nsec_t wait_of(const struct refused *refused, uint64_t asked, nsec_t passed)
{
	const nsec_t had = quota_cost(refused->rate, refused->asked) + passed;
	const nsec_t wants = quota_cost(refused->rate, asked) + refused->refusal.wait_ns;

	return wants > had ? wants - had : 0;
}

/* Of the other rate nothing is known. */
static void tell_left(struct reservation *reservation, const struct refused *refused,
		      uint64_t asked, nsec_t wait)
{
	const char *tokens = limit_info(LIMIT_tokens_per_minute)->name;
	struct limit_left *left = reservation->left;
	const nsec_t tat = limit_tat_of_wait(refused->rate, asked, wait, reservation->now);

	limit_left_begin(left, reservation->now);
	limit_room_add(strcmp(refused->refusal.limit, tokens) == 0 ? &left->tokens
								   : &left->requests,
		       refused->rate, tat, reservation->now);
}

static bool answers(const struct refused *refused, struct reservation *reservation)
{
	struct quota_limit rate;
	uint64_t asked;

	if (refused->asked == 0)
		return false;
	const struct limit_scope *scope = scope_of(reservation, refused->scope);
	if (scope == NULL || scope->limits.count_only ||
	    !rate_of(scope, &reservation->ask, refused->refusal.limit, &rate, &asked) ||
	    rate.per_minute != refused->rate.per_minute || rate.burst != refused->rate.burst)
		return false;
	/* More than can be had at once never passes, which is another answer. */
	const nsec_t wait = asked == 0 || asked > rate.burst
				    ? 0
				    : wait_of(refused, asked, reservation->now - refused->since);
	if (wait == 0)
		return false;
	reservation->granted = false;
	reservation->refusal = refused->refusal;
	reservation->refusal.wait_ns = wait;
	if (reservation->left != NULL)
		tell_left(reservation, refused, asked, wait);
	return true;
}

bool refusals_answer(const struct refusals *refusals, struct reservation *reservation)
{
	if (reservation->now >= refusals->until)
		return false;
	const uint8_t *tenant = reservation->scopes[0].key;
	const struct refused *row = refusals->rows[row_of(tenant)];
	for (size_t i = 0; i < REFUSALS_OF_ROW; i++)
		if (is_live(&row[i], tenant, reservation->now) && answers(&row[i], reservation))
			return true;
	return false;
}

void refusals_settled(struct refusals *refusals, const uint8_t tenant[16], nsec_t now)
{
	if (now >= refusals->until)
		return;
	struct refused *row = refusals->rows[row_of(tenant)];
	const char *tokens = limit_info(LIMIT_tokens_per_minute)->name;
	for (size_t i = 0; i < REFUSALS_OF_ROW; i++)
		if (is_live(&row[i], tenant, now) && strcmp(row[i].refusal.limit, tokens) == 0)
			row[i].asked = 0;
}
