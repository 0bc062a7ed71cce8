/* fair_share.h - who holds how much of what has a bound for all together, and who may have more of it.
 *
 * Two rules, for two kinds of things. Neither needs to know how many owners there will be.
 * What is asked for, as bytes of bodies, places to wait and streams, is refused: an owner may take more while it
 * holds no more than is free. One owner that takes all it can ends with half and one taking more, two with a
 * third each; an owner that holds nothing is never refused for what others have, but for want of room. The last
 * sixteenth is kept for what is small.
 * What is kept for later, as records of a table, is evicted: the owner that holds most makes room. An owner that
 * holds less than its equal part is never the one that holds most.
 *
 * Sums are exact. Pure; of one thread, or under the caller's lock. Memory is given once. */
#ifndef GATEWAY_BASE_FAIR_SHARE_H
#define GATEWAY_BASE_FAIR_SHARE_H

#include "codec/base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAIR_KEY_BYTES = 16 };

/* Private. */
struct fair_owner {
	uint8_t key[FAIR_KEY_BYTES];
	uint64_t held;
	uint32_t next; /* of the same bucket, or of those unused */
	uint32_t rank; /* its place in `ranks` */
};

struct fair_share {
	uint64_t sum;   /* of all that is held */
	uint32_t count; /* of owners that hold something */
	/* private */
	struct fair_owner *owners;
	uint32_t *buckets;
	uint32_t *ranks; /* a heap: who holds most comes first. NULL: nobody asks for that */
	uint32_t most, bucket_mask;
	uint32_t fresh, unused; /* owners behind the first were never used; list of the others */
};

/* Buckets to find one of `most` things by: a power of two, and even. */
uint32_t fair_share_buckets(uint32_t most);

/* Bytes that accounts of `most` owners (at least 1) need. `ranked`: fair_share_first will be asked. */
size_t fair_share_bytes(uint32_t most, bool ranked);

/* In `memory`, aligned to 8 and all zero, which must outlive it. */
void fair_share_init(struct fair_share *share, void *memory, uint32_t most, bool ranked);

/* In memory of its own, which costs nothing until it is used; false when that is refused. Its end: whatever is
 * held then. Harmless for one that is all zero. */
MUST_USE bool fair_share_map(struct fair_share *share, uint32_t most, bool ranked);
void fair_share_unmap(struct fair_share *share);

/* Keys are digests, 16 bytes. Owners have names from 1 on, while they hold something; 0: holds nothing. */
uint32_t fair_share_find(const struct fair_share *share, const uint8_t *key);

/* The owner holds so much (at least 1) more; its name. An owner that comes when there are already `most` is given
 * the account of another. */
uint32_t fair_share_add(struct fair_share *share, const uint8_t *key, uint64_t amount);

/* It holds so much less. Without anything it has no name any more. */
void fair_share_sub(struct fair_share *share, uint32_t owner, uint64_t amount);

/* 16 bytes, until it has no name any more. */
static inline const uint8_t *fair_share_key(const struct fair_share *share, uint32_t owner)
{
	return share->owners[owner - 1].key;
}

static inline uint64_t fair_share_held(const struct fair_share *share, uint32_t owner)
{
	return owner == 0 ? 0 : share->owners[owner - 1].held;
}

/* ---- the rule of what is asked for ---- */

struct fair_bound {
	uint64_t most;  /* of all together; the first one has room whatever its size */
	uint64_t small; /* up to so much is small: it may have the last sixteenth, too */
};

enum fair_verdict {
	FAIR_TAKEN,
	FAIR_OWN,  /* the owner has its share */
	FAIR_FULL, /* there is no room, whoever asks */
};

/* Adds the amount (at least 1) if it may be had. *owner is written only then. */
MUST_USE enum fair_verdict fair_share_take(struct fair_share *share, const struct fair_bound *bound,
					   const uint8_t *key, uint64_t amount, uint32_t *owner);

/* ---- the rule of what is kept ---- */

/* Whose goes, so that the owner of that key can have so much more: its own, if it would hold most; 0: nobody
 * holds anything. Of a ranked one. */
uint32_t fair_share_victim(const struct fair_share *share, const uint8_t *key, uint64_t amount);

#endif
