#include "gateway/base/fair_share.h"

#include "codec/base/must.h"

#include <string.h>
#include <sys/mman.h>

enum { KEPT_PART = 16 }; /* of the bound, for what is small */

static struct fair_owner *owner_at(const struct fair_share *share, uint32_t name)
{
	return &share->owners[name - 1];
}

uint32_t fair_share_buckets(uint32_t most)
{
	uint32_t count = 2;

	while (count < most)
		count *= 2;
	return count;
}

size_t fair_share_bytes(uint32_t most, bool ranked)
{
	const size_t ranks = ranked ? (most + most % 2) * sizeof(uint32_t) : 0;

	return most * sizeof(struct fair_owner) + fair_share_buckets(most) * sizeof(uint32_t) +
	       ranks;
}

void fair_share_init(struct fair_share *share, void *memory, uint32_t most, bool ranked)
{
	must(most >= 1 && most <= UINT32_MAX / 2);
	*share = (struct fair_share){ .owners = memory,
				      .most = most,
				      .bucket_mask = fair_share_buckets(most) - 1 };
	share->buckets = (uint32_t *)(void *)(share->owners + most);
	if (ranked)
		share->ranks = share->buckets + share->bucket_mask + 1;
}

bool fair_share_map(struct fair_share *share, uint32_t most, bool ranked)
{
	void *memory = mmap(NULL, fair_share_bytes(most, ranked), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	fair_share_init(share, memory, most, ranked);
	return true;
}

void fair_share_unmap(struct fair_share *share)
{
	if (share->owners != NULL)
		must(munmap(share->owners, fair_share_bytes(share->most, share->ranks != NULL)) ==
		     0);
}

/* Any bytes of a digest will do. */
static uint32_t hash_of(const uint8_t *key)
{
	uint32_t hash;

	(void)memcpy(&hash, key, sizeof(hash));
	return hash;
}

static bool same_key(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, FAIR_KEY_BYTES) == 0;
}

/* ---- ranks ---- */

static void rank_put(struct fair_share *share, uint32_t rank, uint32_t name)
{
	share->ranks[rank] = name;
	owner_at(share, name)->rank = rank;
}

static uint64_t held_at(const struct fair_share *share, uint32_t rank)
{
	return owner_at(share, share->ranks[rank])->held;
}

static void rank_rise(struct fair_share *share, uint32_t name)
{
	const uint64_t held = owner_at(share, name)->held;
	uint32_t rank = owner_at(share, name)->rank;

	for (; rank != 0 && held_at(share, (rank - 1) / 2) < held; rank = (rank - 1) / 2)
		rank_put(share, rank, share->ranks[(rank - 1) / 2]);
	rank_put(share, rank, name);
}

static void rank_sink(struct fair_share *share, uint32_t name)
{
	const uint64_t held = owner_at(share, name)->held;
	uint32_t rank = owner_at(share, name)->rank;

	for (uint32_t below; (below = 2 * rank + 1) < share->count; rank = below) {
		if (below + 1 < share->count && held_at(share, below + 1) > held_at(share, below))
			below++;
		if (held_at(share, below) <= held)
			break;
		rank_put(share, rank, share->ranks[below]);
	}
	rank_put(share, rank, name);
}

/* The last one takes its place; `count` is that without it. */
static void rank_remove(struct fair_share *share, uint32_t name)
{
	const uint32_t rank = owner_at(share, name)->rank, last = share->ranks[share->count];

	if (last == name)
		return;
	rank_put(share, rank, last);
	rank_rise(share, last);
	rank_sink(share, last);
}

/* ---- owners ---- */

uint32_t fair_share_find(const struct fair_share *share, const uint8_t *key)
{
	uint32_t name = share->buckets[hash_of(key) & share->bucket_mask];

	while (name != 0 && !same_key(owner_at(share, name)->key, key))
		name = owner_at(share, name)->next;
	return name;
}

/* Where its account is, or will be if there is another place. */
static uint32_t account_of(const struct fair_share *share, const uint8_t *key)
{
	const uint32_t name = fair_share_find(share, key);

	if (name != 0 || share->count < share->most)
		return name;
	return hash_of(key) % share->most + 1;
}

static uint32_t begin_owner(struct fair_share *share, const uint8_t *key)
{
	uint32_t *bucket = &share->buckets[hash_of(key) & share->bucket_mask];
	uint32_t name = share->unused;

	if (name != 0)
		share->unused = owner_at(share, name)->next;
	else
		name = ++share->fresh;
	struct fair_owner *owner = owner_at(share, name);
	*owner = (struct fair_owner){ .next = *bucket, .rank = share->count++ };
	(void)memcpy(owner->key, key, sizeof(owner->key));
	*bucket = name;
	return name;
}

static void end_owner(struct fair_share *share, uint32_t name)
{
	struct fair_owner *owner = owner_at(share, name);
	uint32_t *at = &share->buckets[hash_of(owner->key) & share->bucket_mask];

	while (*at != name)
		at = &owner_at(share, *at)->next;
	*at = owner->next;
	owner->next = share->unused;
	share->unused = name;
	share->count--;
	if (share->ranks != NULL)
		rank_remove(share, name);
}

uint32_t fair_share_add(struct fair_share *share, const uint8_t *key, uint64_t amount)
{
	uint32_t name = account_of(share, key);

	must(amount != 0);
	if (name == 0)
		name = begin_owner(share, key);
	owner_at(share, name)->held += amount;
	share->sum += amount;
	if (share->ranks != NULL)
		rank_rise(share, name);
	return name;
}

void fair_share_sub(struct fair_share *share, uint32_t owner, uint64_t amount)
{
	struct fair_owner *at = owner_at(share, owner);

	must(owner != 0 && at->held >= amount);
	at->held -= amount;
	share->sum -= amount;
	if (at->held == 0)
		end_owner(share, owner);
	else if (share->ranks != NULL)
		rank_sink(share, owner);
}

/* ---- the rules ---- */

/* More than is free. Up to half of all nobody has. */
static bool has_its_share(const struct fair_share *share, const struct fair_bound *bound,
			  const uint8_t *key)
{
	const uint64_t free = share->sum < bound->most ? bound->most - share->sum : 0;

	return fair_share_held(share, account_of(share, key)) > free;
}

enum fair_verdict fair_share_take(struct fair_share *share, const struct fair_bound *bound,
				  const uint8_t *key, uint64_t amount, uint32_t *owner)
{
	const uint64_t kept = amount <= bound->small ? 0 : bound->most / KEPT_PART;
	const uint64_t room = bound->most - kept;

	if (share->sum != 0) {
		if (share->sum > bound->most / 2 && has_its_share(share, bound, key))
			return FAIR_OWN;
		if (share->sum >= room || amount > room - share->sum)
			return FAIR_FULL;
	}
	*owner = fair_share_add(share, key, amount);
	return FAIR_TAKEN;
}

uint32_t fair_share_victim(const struct fair_share *share, const uint8_t *key, uint64_t amount)
{
	const uint32_t own = account_of(share, key);
	const uint32_t first = share->count == 0 ? 0 : share->ranks[0];

	must(share->ranks != NULL);
	return own != 0 && fair_share_held(share, own) + amount > fair_share_held(share, first)
		       ? own
		       : first;
}
