/* limiter_memory.c - state within this machine: every answer comes at once, from the limit table. */
#include "gateway/limits/limiter.h"

#include "codec/base/must.h"

static struct limiter_memory *memory_of(struct limiter *limiter)
{
	return CONTAINER_OF(limiter, struct limiter_memory, limiter);
}

static enum limiter_outcome memory_reserve(struct limiter *limiter, struct reservation *reservation)
{
	struct limit_refusal refusal = { .err = ERR_BUSY };

	must(reservation->scope_count >= 1 && reservation->scope_count <= RESERVATION_SCOPES_MAX);
	const bool found = limit_table_find(memory_of(limiter)->table, reservation->scopes,
					    reservation->scope_count);
	reservation->granted = found && limit_take(reservation->scopes, reservation->scope_count,
						   &reservation->ask, reservation->now,
						   reservation->wall_s, &refusal);
	if (!reservation->granted)
		reservation->refusal = refusal;
	if (reservation->left != NULL && found)
		limit_left_read(reservation->left, reservation->scopes, reservation->scope_count,
				reservation->now);
	return LIMITER_DONE;
}

static uint64_t memory_settle(struct limiter *limiter, struct reservation *reservation,
			      uint64_t tokens, uint64_t usd, nsec_t now)
{
	(void)limiter;
	must(reservation->granted);
	return limit_settle(reservation->scopes, reservation->scope_count, &reservation->ask,
			    reservation->wall_s, tokens, usd, now);
}

/* `granted` may be false by then: a further attempt in the same reservation was refused. */
static void memory_release(struct limiter *limiter, struct reservation *reservation)
{
	(void)limiter;
	limit_release(reservation->scopes, reservation->scope_count);
}

static void memory_undo(struct limiter *limiter, struct reservation *reservation, nsec_t now)
{
	(void)limiter;
	must(reservation->granted);
	reservation->granted = false;
	limit_undo(reservation->scopes, reservation->scope_count, &reservation->ask,
		   reservation->wall_s, now);
}

/* Nothing is ever pending, so there is nothing to undo. */
static void memory_forget(struct limiter *limiter, struct reservation *reservation)
{
	(void)limiter;
	(void)reservation;
}

static uint32_t memory_series(struct limiter *limiter, const uint8_t key[16])
{
	struct limit_table *table = memory_of(limiter)->table;
	const struct limit_slot *slot = limit_table_slot(table, key);

	return slot == NULL ? UINT32_MAX : limit_slot_index(table, slot);
}

void limiter_memory_init(struct limiter_memory *memory, struct limit_table *table)
{
	must(table != NULL);
	*memory = (struct limiter_memory){
		.limiter = { .reserve = memory_reserve,
			     .settle = memory_settle,
			     .release = memory_release,
			     .undo = memory_undo,
			     .forget = memory_forget,
			     .series = memory_series },
		.table = table,
	};
}
