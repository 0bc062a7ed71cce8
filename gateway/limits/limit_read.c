/* limit_read.c - what an operator asks of a slot, and adds to it: figures, the last refusals, more money. */
#include "gateway/limits/limit_period.h"
#include "gateway/limits/limit_slot.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

#include <stdlib.h>
#include <string.h>

const char *limit_holder_name(enum limit_holder holder)
{
	static const char *const names[LIMIT_HOLDERS] = {
		[LIMIT_OF_TENANT] = "tenant",
		[LIMIT_OF_SERVER] = "per_server",
		[LIMIT_OF_MODEL] = "per_model",
		[LIMIT_OF_COUNTS] = "tenant",
	};

	must(holder < LIMIT_HOLDERS);
	return names[holder];
}

const char *limit_shown_name(enum limit_holder holder, const char *limit)
{
	return holder == LIMIT_OF_COUNTS ? limit_info(LIMIT_count_tokens_per_minute)->name : limit;
}

static void period_add(_Atomic uint64_t words[2], uint32_t period, uint64_t amount)
{
	_Atomic uint64_t *word = period_word(words, period);
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed), sum;

	do {
		sum = period_amount(seen, period);
		sum = amount < AMOUNT_MAX - sum ? sum + amount : AMOUNT_MAX;
	} while (!atomic_compare_exchange_weak_explicit(
		word, &seen, period_pack(period, sum), memory_order_relaxed, memory_order_relaxed));
}

void limit_top_up(struct limit_slot *slot, uint64_t nano_usd, uint64_t wall_s)
{
	period_add(slot->day_more, quota_day(wall_s), nano_usd);
	period_add(slot->month_more, quota_month(wall_s), nano_usd);
}

/* ---- what was refused ---- */

/* A note is one word: second, error, holder, limit + 1. */
enum { NOTE_SECOND_SHIFT = 24, NOTE_ERR_SHIFT = 12, NOTE_HOLDER_SHIFT = 8 };
_Static_assert(ERR_COUNT < 1 << (NOTE_SECOND_SHIFT - NOTE_ERR_SHIFT) && LIMIT_COUNT < 255 &&
		       (int)LIMIT_HOLDERS <= 16,
	       "a note fits its word");

static unsigned limit_number(const char *limit)
{
	for (unsigned i = 0; limit != NULL && i < LIMIT_COUNT; i++)
		if (strcmp(limit_info((enum limit)i)->name, limit) == 0)
			return i + 1;
	return 0;
}

/* Seconds take the words in turn, so that none has to move. */
void limit_note(struct limit_slot *slot, const struct limit_note *note)
{
	_Atomic uint64_t *word = &slot->refused[note->wall_s % LIMIT_REFUSALS];
	const uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

	if (seen >> NOTE_SECOND_SHIFT == note->wall_s)
		return;
	atomic_store_explicit(
		word,
		note->wall_s << NOTE_SECOND_SHIFT | (uint64_t)note->err << NOTE_ERR_SHIFT |
			(uint64_t)note->holder << NOTE_HOLDER_SHIFT | limit_number(note->limit),
		memory_order_relaxed);
}

static struct limit_note note_of(uint64_t word)
{
	const unsigned limit = word & 255;

	return (struct limit_note){
		.wall_s = word >> NOTE_SECOND_SHIFT,
		.err = (enum err)(word >> NOTE_ERR_SHIFT &
				  ((1U << (NOTE_SECOND_SHIFT - NOTE_ERR_SHIFT)) - 1)),
		.limit = limit == 0 ? NULL : limit_info((enum limit)(limit - 1))->name,
		.holder = (enum limit_holder)(word >> NOTE_HOLDER_SHIFT & 15),
	};
}

static int later_first(const void *a, const void *b)
{
	const uint64_t x = ((const struct limit_note *)a)->wall_s;
	const uint64_t y = ((const struct limit_note *)b)->wall_s;

	return (x < y) - (x > y);
}

struct limit_state limit_read(const struct limit_slot *slot, uint64_t wall_s)
{
	const uint32_t day = quota_day(wall_s), month = quota_month(wall_s);
	struct limit_state state = {
		.requests = rate_read(&slot->requests),
		.tokens = rate_read(&slot->tokens),
		.concurrent =
			(uint32_t)atomic_load_explicit(&slot->concurrent, memory_order_relaxed),
		.usd_day = period_read(slot->day, day),
		.usd_month = period_read(slot->month, month),
		.usd_day_more = period_read(slot->day_more, day),
		.usd_month_more = period_read(slot->month_more, month),
	};

	for (size_t i = 0; i < LIMIT_REFUSALS; i++)
		state.refused[i] =
			note_of(atomic_load_explicit(&slot->refused[i], memory_order_relaxed));
	qsort(state.refused, LIMIT_REFUSALS, sizeof(state.refused[0]), later_first);
	return state;
}
