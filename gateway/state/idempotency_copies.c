#include "gateway/state/idempotency_copies.h"

#include "codec/base/must.h"

enum {
	OWNERS = IDEMPOTENCY_WAITING_MAX + 1
}; /* so that who finds no room is not taken for another */

bool idempotency_copies_init(struct idempotency_copies *copies)
{
	*copies = (struct idempotency_copies){ .all = { .sum = 0 } };
	if (!fair_share_map(&copies->all, OWNERS, false))
		return false;
	if (!fair_share_map(&copies->large, OWNERS, false)) {
		fair_share_unmap(&copies->all);
		return false;
	}
	must(pthread_mutex_init(&copies->lock, NULL) == 0);
	return true;
}

void idempotency_copies_fini(struct idempotency_copies *copies)
{
	must(copies->all.sum == 0 && copies->large.sum == 0);
	must(pthread_mutex_destroy(&copies->lock) == 0);
	fair_share_unmap(&copies->all);
	fair_share_unmap(&copies->large);
}

static bool is_large(const struct idempotency_call *call)
{
	return call->large_max != IDEMPOTENCY_SMALL;
}

static uint64_t large_of(const struct idempotency_copies *copies,
			 const struct idempotency_call *call)
{
	return fair_share_held(&copies->large, fair_share_find(&copies->large, call->tenant.at));
}

enum idempotency_verdict idempotency_copies_take(struct idempotency_copies *copies,
						 struct idempotency_call *call)
{
	static const struct fair_bound bound = { .most = IDEMPOTENCY_WAITING_MAX, .small = 1 };
	static const enum idempotency_verdict verdicts[] = { [FAIR_TAKEN] = IDEMPOTENCY_WAITS,
							     [FAIR_OWN] = IDEMPOTENCY_CROWDED,
							     [FAIR_FULL] = IDEMPOTENCY_FULL };
	enum fair_verdict verdict = FAIR_OWN;

	must(pthread_mutex_lock(&copies->lock) == 0);
	if (!is_large(call) || large_of(copies, call) < call->large_max)
		verdict = fair_share_take(&copies->all, &bound, call->tenant.at, 1, &call->copy);
	if (verdict == FAIR_TAKEN && is_large(call))
		call->large_copy = fair_share_add(&copies->large, call->tenant.at, 1);
	must(pthread_mutex_unlock(&copies->lock) == 0);
	return verdicts[verdict];
}

void idempotency_copies_give(struct idempotency_copies *copies, const struct idempotency_call *call)
{
	must(pthread_mutex_lock(&copies->lock) == 0);
	fair_share_sub(&copies->all, call->copy, 1);
	if (is_large(call))
		fair_share_sub(&copies->large, call->large_copy, 1);
	must(pthread_mutex_unlock(&copies->lock) == 0);
}
