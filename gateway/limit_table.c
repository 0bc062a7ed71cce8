#include "gateway/limit_table.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file: a page of header, the index, the slots. The index is a hash table of words (tag in the
 * high half, slot number + 1 in the low half), twice as long as there are slots, so that a search
 * always ends. Slots are handed out in turn: those in use lie together, and their numbers are dense.
 *
 * Every step is one compare-and-swap on one word, so a process that dies leaves nothing half done:
 * no lock to break, no state to finish. */
enum {
	TABLE_MAGIC = 0x534c5431, /* changes with the layout */
	PAGE_BYTES = 4096,
	SLOT_BYTES = 128, /* two cache lines, as the prefetcher takes them */
	SLOTS_MAX = 1 << 24,
};

struct table_header {
	uint32_t magic;
	uint32_t slots;           /* a power of two */
	_Atomic uint64_t claimed; /* slots handed out so far */
	_Atomic uint64_t spare; /* number + 1 of a slot that was claimed but not needed, 0: none */
};

/* Money of a period: the two latest days (months) have a word each, chosen by parity, so that a
 * request from before midnight is settled where it was taken. The word names its period: whoever
 * writes for a newer one replaces name and amount at once, and nobody can add to the wrong one. */
struct limit_slot {
	_Alignas(SLOT_BYTES) uint8_t name[16]; /* written before the index shows the slot */
	_Atomic uint64_t requests_tat, tokens_tat;
	_Atomic uint64_t concurrent;
	_Atomic uint64_t day[2], month[2];
};

_Static_assert(sizeof(struct limit_slot) == SLOT_BYTES, "a slot fills its lines");
_Static_assert(sizeof(struct table_header) <= PAGE_BYTES, "the header fits its page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "atomics in shared memory must not use a lock");

struct limit_table {
	struct table_header *header;
	_Atomic uint64_t *index;
	struct limit_slot *slots;
	uint64_t index_mask;
	size_t bytes;
};

/* ---- the file ---- */

static size_t slots_offset(size_t slots)
{
	const size_t index_bytes = 2 * slots * sizeof(uint64_t);

	return PAGE_BYTES + (index_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t file_bytes(size_t slots)
{
	return slots_offset(slots) + slots * SLOT_BYTES;
}

int limit_table_create(size_t slots)
{
	struct table_header header = { .magic = TABLE_MAGIC, .slots = 2 };

	if (slots == 0 || slots > SLOTS_MAX / 2) {
		errno = EINVAL;
		return -1;
	}
	while (header.slots < 2 * slots)
		header.slots *= 2;

	const int fd = memfd_create("sluice-limits", MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)file_bytes(header.slots)) == 0 &&
	    pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	const int reason = errno;
	(void)close(fd);
	errno = reason;
	return -1;
}

static bool header_holds(const struct table_header *header, size_t bytes)
{
	return header->magic == TABLE_MAGIC && header->slots >= 2 && header->slots <= SLOTS_MAX &&
	       (header->slots & (header->slots - 1)) == 0 && file_bytes(header->slots) == bytes;
}

struct limit_table *limit_table_map(int fd)
{
	struct stat about;

	if (fstat(fd, &about) != 0)
		return NULL;
	if (about.st_size < PAGE_BYTES) {
		errno = EINVAL;
		return NULL;
	}
	const size_t bytes = (size_t)about.st_size;
	struct table_header *header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return NULL;

	struct limit_table *table = NULL;
	if (!header_holds(header, bytes))
		errno = EINVAL;
	else
		table = malloc(sizeof(*table));
	if (table == NULL) {
		const int reason = errno;
		(void)munmap(header, bytes);
		errno = reason;
		return NULL;
	}
	*table = (struct limit_table){
		.header = header,
		.index = (void *)((char *)header + PAGE_BYTES),
		.slots = (void *)((char *)header + slots_offset(header->slots)),
		.index_mask = 2 * (uint64_t)header->slots - 1,
		.bytes = bytes,
	};
	return table;
}

void limit_table_unmap(struct limit_table *table)
{
	if (table == NULL)
		return;
	(void)munmap(table->header, table->bytes);
	free(table);
}

void limit_table_recover(struct limit_table *table)
{
	const uint64_t claimed = atomic_load(&table->header->claimed);

	/* Slots that were claimed but never shown are zero, or will be named anew. */
	for (uint64_t i = 0; i < claimed && i < table->header->slots; i++)
		atomic_store(&table->slots[i].concurrent, 0);
}

/* ---- slots ---- */

/* A slot nobody else knows of, with its name written; NULL when there is none left. */
static struct limit_slot *slot_claim(struct limit_table *table, const uint8_t key[16])
{
	struct table_header *header = table->header;
	uint64_t number = atomic_exchange(&header->spare, 0);

	if (number == 0) {
		uint64_t claimed = atomic_load(&header->claimed);
		do {
			if (claimed >= header->slots)
				return NULL;
		} while (!atomic_compare_exchange_weak(&header->claimed, &claimed, claimed + 1));
		number = claimed + 1;
	}
	struct limit_slot *slot = &table->slots[number - 1];
	(void)memcpy(slot->name, key, sizeof(slot->name));
	return slot;
}

/* Somebody else was faster to show a slot of that name: the next claim takes this one. A second
 * spare is forgotten, which takes two such races at once. */
static void slot_spare(struct limit_table *table, const struct limit_slot *slot)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&table->header->spare, &none,
					     (uint64_t)limit_slot_index(table, slot) + 1);
}

static struct limit_slot *slot_at(struct limit_table *table, uint64_t entry)
{
	const uint32_t number = (uint32_t)entry; /* + 1 */

	must(number >= 1 && number <= table->header->slots);
	return &table->slots[number - 1];
}

struct limit_slot *limit_table_slot(struct limit_table *table, const uint8_t key[16])
{
	uint64_t place, tag; /* a key is a digest, so its bytes are chance enough */
	struct limit_slot *mine = NULL, *found = NULL;

	(void)memcpy(&place, key, sizeof(place));
	(void)memcpy(&tag, key + sizeof(place), sizeof(tag));
	tag &= ~(uint64_t)UINT32_MAX;
	for (; found == NULL; place++) {
		_Atomic uint64_t *entry = &table->index[place & table->index_mask];
		uint64_t seen = atomic_load_explicit(entry, memory_order_acquire);

		if (seen == 0) {
			if (mine == NULL && (mine = slot_claim(table, key)) == NULL)
				return NULL;
			if (atomic_compare_exchange_strong(
				    entry, &seen,
				    tag | ((uint64_t)limit_slot_index(table, mine) + 1)))
				return mine;
		}
		if ((seen & ~(uint64_t)UINT32_MAX) == tag &&
		    memcmp(slot_at(table, seen)->name, key, sizeof(mine->name)) == 0)
			found = slot_at(table, seen);
	}
	if (mine != NULL)
		slot_spare(table, mine);
	return found;
}

uint32_t limit_slot_index(const struct limit_table *table, const struct limit_slot *slot)
{
	return (uint32_t)(slot - table->slots);
}

/* ---- money ---- */

enum { AMOUNT_BITS = 54 };
#define AMOUNT_MAX ((UINT64_C(1) << AMOUNT_BITS) - 1) /* 18 million USD in nano-USD */

#define TAG_MAX (UINT64_MAX >> AMOUNT_BITS)

/* A word of the two that a period may use: its tag repeats after 2,048 periods, so that the money of
 * one day could be taken for another's only where nothing was asked for 5.6 years in between. */
static _Atomic uint64_t *period_word(_Atomic uint64_t words[2], uint32_t period)
{
	return &words[period & 1];
}

static uint64_t period_tag(uint32_t period)
{
	return (period >> 1) & TAG_MAX;
}

static bool period_is(uint64_t word, uint32_t period)
{
	return word >> AMOUNT_BITS == period_tag(period);
}

static uint64_t period_amount(uint64_t word, uint32_t period)
{
	return period_is(word, period) ? word & AMOUNT_MAX : 0;
}

static uint64_t period_pack(uint32_t period, uint64_t amount)
{
	return period_tag(period) << AMOUNT_BITS | (amount < AMOUNT_MAX ? amount : AMOUNT_MAX);
}

static enum err money_take(uint64_t word, uint32_t period, uint64_t limit, uint64_t ask,
			   uint64_t *next)
{
	const uint64_t used = period_amount(word, period);
	const uint64_t most = limit < AMOUNT_MAX ? limit : AMOUNT_MAX;

	/* What costs nothing passes even where the budget is overspent. */
	if (ask != 0 && limit != LIMIT_NONE && (ask > most || used > most - ask))
		return ERR_BUDGET;
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
	const struct tenant_limits *limits;
	const struct limit_ask *ask;
	nsec_t now;
	uint64_t wall_s; /* when it was taken */
	uint64_t tokens_used, usd_used;
};

/* A limit is one word and two pure functions on it. */
struct limit_step {
	enum limit limit;
	_Atomic uint64_t *(*word)(struct limit_slot *slot, uint64_t wall_s);
	/* ERR_OK and *next, or why not and, for rates, *wait_ns. */
	enum err (*take)(const struct claim *claim, uint64_t word, uint64_t *next, nsec_t *wait_ns);
	/* The word once the true cost (claim.*_used) is known. With nothing used it undoes the take. */
	uint64_t (*settle)(const struct claim *claim, uint64_t word);
};

static _Atomic uint64_t *requests_word(struct limit_slot *slot, uint64_t wall_s)
{
	(void)wall_s;
	return &slot->requests_tat;
}

static enum err rate_take(nsec_t tat, struct quota_limit limit, uint64_t n, nsec_t now,
			  uint64_t *next, nsec_t *wait_ns)
{
	if (n == 0) { /* nothing asked: no debt stands in the way */
		*next = tat;
		return ERR_OK;
	}
	return quota_take(tat, limit, n, now, next, wait_ns);
}

static enum err requests_take(const struct claim *claim, uint64_t word, uint64_t *next,
			      nsec_t *wait_ns)
{
	return rate_take(word, claim->limits->requests, claim->ask->requests, claim->now, next,
			 wait_ns);
}

static uint64_t requests_settle(const struct claim *claim, uint64_t word)
{
	return quota_settle(word, claim->limits->requests, claim->ask->requests, 0, claim->now);
}

static _Atomic uint64_t *tokens_word(struct limit_slot *slot, uint64_t wall_s)
{
	(void)wall_s;
	return &slot->tokens_tat;
}

static enum err tokens_take(const struct claim *claim, uint64_t word, uint64_t *next,
			    nsec_t *wait_ns)
{
	return rate_take(word, claim->limits->tokens, claim->ask->tokens, claim->now, next,
			 wait_ns);
}

static uint64_t tokens_settle(const struct claim *claim, uint64_t word)
{
	return quota_settle(word, claim->limits->tokens, claim->ask->tokens, claim->tokens_used,
			    claim->now);
}

static _Atomic uint64_t *concurrent_word(struct limit_slot *slot, uint64_t wall_s)
{
	(void)wall_s;
	return &slot->concurrent;
}

static enum err concurrent_take(const struct claim *claim, uint64_t word, uint64_t *next,
				nsec_t *wait_ns)
{
	const uint64_t n = claim->ask->concurrent;

	if (n != 0 && word + n > claim->limits->concurrent) {
		*wait_ns = SEC; /* nobody knows when a request ends (DESIGN 4.4) */
		return ERR_CONCURRENCY;
	}
	*next = word + n;
	return ERR_OK;
}

static uint64_t concurrent_settle(const struct claim *claim, uint64_t word)
{
	must(word >= claim->ask->concurrent);
	return word - claim->ask->concurrent;
}

static _Atomic uint64_t *day_word(struct limit_slot *slot, uint64_t wall_s)
{
	return period_word(slot->day, quota_day(wall_s));
}

static enum err day_take(const struct claim *claim, uint64_t word, uint64_t *next, nsec_t *wait_ns)
{
	(void)wait_ns;
	return money_take(word, quota_day(claim->wall_s), claim->limits->usd_per_day,
			  claim->ask->usd, next);
}

static uint64_t day_settle(const struct claim *claim, uint64_t word)
{
	return money_settle(word, quota_day(claim->wall_s), claim->ask->usd, claim->usd_used);
}

static _Atomic uint64_t *month_word(struct limit_slot *slot, uint64_t wall_s)
{
	return period_word(slot->month, quota_month(wall_s));
}

static enum err month_take(const struct claim *claim, uint64_t word, uint64_t *next,
			   nsec_t *wait_ns)
{
	(void)wait_ns;
	return money_take(word, quota_month(claim->wall_s), claim->limits->usd_per_month,
			  claim->ask->usd, next);
}

static uint64_t month_settle(const struct claim *claim, uint64_t word)
{
	return money_settle(word, quota_month(claim->wall_s), claim->ask->usd, claim->usd_used);
}

/* The order is part of the contract: of several limits in the way, the first is named. */
static const struct limit_step limit_steps[] = {
	{ LIMIT_requests_per_minute, requests_word, requests_take, requests_settle },
	{ LIMIT_tokens_per_minute, tokens_word, tokens_take, tokens_settle },
	{ LIMIT_concurrent, concurrent_word, concurrent_take, concurrent_settle },
	{ LIMIT_usd_per_day, day_word, day_take, day_settle },
	{ LIMIT_usd_per_month, month_word, month_take, month_settle },
};

/* No word says anything about another one, so none needs an order between them. */
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

static void step_settle(const struct limit_step *step, struct limit_slot *slot,
			const struct claim *claim)
{
	_Atomic uint64_t *word = step->word(slot, claim->wall_s);
	uint64_t seen = word_load(word);

	while (!word_swap(word, &seen, step->settle(claim, seen)))
		;
}

static enum err step_take(const struct limit_step *step, struct limit_slot *slot,
			  const struct claim *claim, bool only_look, nsec_t *wait_ns)
{
	_Atomic uint64_t *word = step->word(slot, claim->wall_s);
	uint64_t seen = word_load(word), next;

	do {
		const enum err err = step->take(claim, seen, &next, wait_ns);
		if (err != ERR_OK)
			return err;
	} while (!only_look && !word_swap(word, &seen, next));
	return ERR_OK;
}

/* Index of the first step that refuses, with *refusal filled, or the number of steps. */
static size_t steps_walk(struct limit_slot *slot, const struct claim *claim, bool only_look,
			 struct limit_refusal *refusal)
{
	for (size_t i = 0; i < COUNT_OF(limit_steps); i++) {
		nsec_t wait_ns = 0;
		const enum err err = step_take(&limit_steps[i], slot, claim, only_look, &wait_ns);

		if (err != ERR_OK) {
			*refusal = (struct limit_refusal){
				.err = err,
				.limit = limit_info(limit_steps[i].limit)->name,
				.wait_ns = wait_ns,
			};
			return i;
		}
	}
	return COUNT_OF(limit_steps);
}

bool limit_take(struct limit_slot *slot, const struct tenant_limits *limits,
		const struct limit_ask *ask, nsec_t now, uint64_t wall_s,
		struct limit_refusal *refusal)
{
	const struct claim claim = { .limits = limits, .ask = ask, .now = now, .wall_s = wall_s };

	/* Looking first keeps a storm of refused requests from holding, for moments, what others
	 * could have had; what is left to undo are races between two that both saw room. */
	if (steps_walk(slot, &claim, true, refusal) != COUNT_OF(limit_steps))
		return false;
	size_t taken = steps_walk(slot, &claim, false, refusal);
	if (taken == COUNT_OF(limit_steps))
		return true;
	while (taken-- > 0)
		step_settle(&limit_steps[taken], slot, &claim);
	return false;
}

uint64_t limit_settle(struct limit_slot *slot, const struct tenant_limits *limits,
		      const struct limit_ask *ask, uint64_t taken_wall_s, uint64_t tokens_used,
		      uint64_t usd_used, nsec_t now)
{
	const struct claim claim = { .limits = limits,
				     .ask = ask,
				     .now = now,
				     .wall_s = taken_wall_s,
				     .tokens_used = tokens_used,
				     .usd_used = usd_used };

	for (size_t i = 0; i < COUNT_OF(limit_steps); i++)
		if (limit_steps[i].limit != LIMIT_requests_per_minute &&
		    limit_steps[i].limit != LIMIT_concurrent)
			step_settle(&limit_steps[i], slot, &claim);
	return usd_used > ask->usd ? usd_used - ask->usd : 0;
}

void limit_release(struct limit_slot *slot)
{
	const uint64_t before =
		atomic_fetch_sub_explicit(&slot->concurrent, 1, memory_order_relaxed);

	must(before > 0);
}

struct limit_state limit_read(const struct limit_slot *slot, uint64_t wall_s)
{
	const uint32_t day = quota_day(wall_s), month = quota_month(wall_s);

	return (struct limit_state){
		.requests_tat = atomic_load_explicit(&slot->requests_tat, memory_order_relaxed),
		.tokens_tat = atomic_load_explicit(&slot->tokens_tat, memory_order_relaxed),
		.concurrent =
			(uint32_t)atomic_load_explicit(&slot->concurrent, memory_order_relaxed),
		.usd_day = period_amount(
			atomic_load_explicit(&slot->day[day & 1], memory_order_relaxed), day),
		.usd_month = period_amount(
			atomic_load_explicit(&slot->month[month & 1], memory_order_relaxed), month),
	};
}
