/* state_table.h - a bounded number of equal records, found by key, in the order of their last use.
 *
 * Of one shard, whose lock the caller holds. All records of a table live equally long after their last use,
 * so that the one that was used longest ago is also the first to expire: one list says what to throw away
 * for want of room and for age. Memory is given once; parts of it that were never used are not touched. */
#ifndef GATEWAY_STATE_TABLE_H
#define GATEWAY_STATE_TABLE_H

#include "codec/base/attr.h"
#include "gateway/state.h"

/* What each record begins with; the rest is the caller's. */
struct state_item {
	struct state_key key;
	uint32_t next;         /* private: of the same bucket */
	uint32_t older, newer; /* private */
	nsec_t due;            /* the record counts until then */
};

struct state_table {
	char *items;
	uint32_t *buckets;
	uint32_t item_bytes, most, bucket_mask;
	uint32_t count;          /* of the records that are there, some of which may be due */
	uint32_t fresh;          /* places from there on were never used */
	uint32_t unused;         /* list of places, by `next` */
	uint32_t oldest, newest; /* places + 1; 0: none. So are all of the above */
};

/* Bytes that a table of `most` (at least 1) records of `item_bytes` (a multiple of 8) needs. */
size_t state_table_bytes(uint32_t item_bytes, uint32_t most);

/* In `memory`, aligned to 8 and all zero, which must outlive it. */
void state_table_init(struct state_table *table, void *memory, uint32_t item_bytes, uint32_t most);

/* Also when it is due; NULL when it is not there. */
void *state_table_find(const struct state_table *table, const struct state_key *key);

/* It is the newest from now on. */
void state_table_touch(struct state_table *table, void *item, nsec_t due);

/* A new one, the newest, all zero but for its head. Its key must not be there, and the table
 * not be full. */
void *state_table_add(struct state_table *table, const struct state_key *key, nsec_t due);

/* The one to go next; NULL when there is none. */
void *state_table_oldest(struct state_table *table);

/* Of a full table, the record at any place; places go round. For samples. */
void *state_table_at(const struct state_table *table, uint32_t place);

void state_table_remove(struct state_table *table, void *item);

static inline bool state_table_full(const struct state_table *table)
{
	return table->count == table->most;
}

#endif
