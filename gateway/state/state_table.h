/* state_table.h - a bounded number of equal records, found by key, in the order of their last use; each has an
 * owner, and the owner with most of them makes room (fair_share.h).
 *
 * Of one shard, whose lock the caller holds. All records of a table live equally long after their last use,
 * so that the one that was used longest ago is also the first to expire: one list says what to throw away
 * for want of room and for age. Memory is given once; parts of it that were never used are not touched. */
#ifndef GATEWAY_STATE_STATE_TABLE_H
#define GATEWAY_STATE_STATE_TABLE_H

#include "codec/base/attr.h"
#include "gateway/base/fair_share.h"
#include "gateway/state/state.h"

/* Private: a list from the oldest to the newest, of all records of a table, and of those of each owner. */
enum state_list { STATE_LIST_ALL, STATE_LIST_OWN, STATE_LISTS };
struct state_links {
	uint32_t older, newer;
};
struct state_ends {
	uint32_t oldest, newest;
};

/* What each record begins with; the rest is the caller's. */
struct state_item {
	struct state_key key;
	uint32_t next;  /* private: of the same bucket */
	uint32_t owner; /* private, as the next */
	struct state_links links[STATE_LISTS];
	nsec_t due; /* the record counts until then */
};

struct state_table {
	char *items;
	uint32_t *buckets;
	uint32_t item_bytes, most, bucket_mask;
	uint32_t count;          /* of the records that are there, some of which may be due */
	uint32_t fresh;          /* places from there on were never used */
	uint32_t unused;         /* list of places, by `next` */
	struct state_ends all;   /* places + 1; 0: none. So are all of the above */
	struct state_ends *owns; /* by owner */
	struct fair_share share; /* of the records */
};

/* Bytes that a table of `most` (at least 1) records of `item_bytes` (a multiple of 8) needs. */
size_t state_table_bytes(uint32_t item_bytes, uint32_t most);

/* In `memory`, aligned to 8 and all zero, which must outlive it. */
void state_table_init(struct state_table *table, void *memory, uint32_t item_bytes, uint32_t most);

/* Also when it is due; NULL when it is not there. */
void *state_table_find(const struct state_table *table, const struct state_key *key);

/* It is the newest from now on. */
void state_table_touch(struct state_table *table, void *item, nsec_t due);

/* A new one of that owner, the newest, all zero but for its head. Its key must not be there, and the table
 * not be full. */
void *state_table_add(struct state_table *table, const struct state_key *key,
		      const struct state_key *owner, nsec_t due);

/* The one to expire next; NULL when there is none. */
void *state_table_oldest(struct state_table *table);

/* The oldest of that owner; NULL when it has none. */
void *state_table_oldest_of(struct state_table *table, const struct state_key *owner);

/* Of a full table, the one that makes room for another of that owner: the oldest of who has most. */
void *state_table_victim(struct state_table *table, const struct state_key *owner);

void state_table_remove(struct state_table *table, void *item);

static inline bool state_table_full(const struct state_table *table)
{
	return table->count == table->most;
}

#endif
