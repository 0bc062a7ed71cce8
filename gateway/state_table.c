#include "gateway/state_table.h"

#include "codec/base/must.h"
#include "gateway/fair_share.h"

/* A place is named by its number + 1, so that memory of zeros is a table without records. */
static struct state_item *item_at(const struct state_table *table, uint32_t name)
{
	return (struct state_item *)(void *)(table->items + (size_t)(name - 1) * table->item_bytes);
}

static uint32_t name_of(const struct state_table *table, const struct state_item *item)
{
	return (uint32_t)((size_t)((const char *)item - table->items) / table->item_bytes) + 1;
}

/* Keys are digests: any bytes of them do. The first one names the shard. */
static uint32_t *bucket_of(const struct state_table *table, const struct state_key *key)
{
	uint32_t hash;

	(void)memcpy(&hash, key->at + STATE_KEY_BYTES - sizeof(hash), sizeof(hash));
	return &table->buckets[hash & table->bucket_mask];
}

size_t state_table_bytes(uint32_t item_bytes, uint32_t most)
{
	const size_t buckets = fair_share_buckets(most) * sizeof(uint32_t);

	return (size_t)item_bytes * most + ((buckets + 7) & ~(size_t)7);
}

void state_table_init(struct state_table *table, void *memory, uint32_t item_bytes, uint32_t most)
{
	must(item_bytes >= sizeof(struct state_item) && item_bytes % 8 == 0);
	must(most >= 1 && most <= UINT32_MAX / 2);
	*table = (struct state_table){
		.items = memory,
		.buckets = (uint32_t *)(void *)((char *)memory + (size_t)item_bytes * most),
		.item_bytes = item_bytes,
		.most = most,
		.bucket_mask = fair_share_buckets(most) - 1,
	};
}

/* ---- the row of all, from the oldest to the newest ---- */

static void unlink_item(struct state_table *table, struct state_item *item)
{
	if (item->older != 0)
		item_at(table, item->older)->newer = item->newer;
	else
		table->oldest = item->newer;
	if (item->newer != 0)
		item_at(table, item->newer)->older = item->older;
	else
		table->newest = item->older;
}

static void link_newest(struct state_table *table, struct state_item *item)
{
	const uint32_t name = name_of(table, item);

	item->newer = 0;
	item->older = table->newest;
	if (table->newest != 0)
		item_at(table, table->newest)->newer = name;
	else
		table->oldest = name;
	table->newest = name;
}

/* ---- records ---- */

void *state_table_find(const struct state_table *table, const struct state_key *key)
{
	for (uint32_t name = *bucket_of(table, key); name != 0;) {
		struct state_item *item = item_at(table, name);
		if (state_key_eq(&item->key, key))
			return item;
		name = item->next;
	}
	return NULL;
}

void state_table_touch(struct state_table *table, void *item, nsec_t due)
{
	struct state_item *head = item;

	unlink_item(table, head);
	link_newest(table, head);
	head->due = due;
}

static struct state_item *take_place(struct state_table *table)
{
	struct state_item *item;

	if (table->unused == 0)
		return item_at(table, ++table->fresh);
	item = item_at(table, table->unused);
	table->unused = item->next;
	return item;
}

void *state_table_add(struct state_table *table, const struct state_key *key, nsec_t due)
{
	must(!state_table_full(table));
	must(state_table_find(table, key) == NULL);
	struct state_item *item = take_place(table);
	uint32_t *bucket = bucket_of(table, key);

	(void)memset(item, 0, table->item_bytes);
	item->key = *key;
	item->due = due;
	item->next = *bucket;
	*bucket = name_of(table, item);
	link_newest(table, item);
	table->count++;
	return item;
}

void *state_table_oldest(struct state_table *table)
{
	return table->oldest == 0 ? NULL : item_at(table, table->oldest);
}

void *state_table_at(const struct state_table *table, uint32_t place)
{
	must(state_table_full(table));
	return item_at(table, place % table->most + 1);
}

void state_table_remove(struct state_table *table, void *item)
{
	struct state_item *head = item;
	const uint32_t name = name_of(table, head);
	uint32_t *at = bucket_of(table, &head->key);

	while (*at != name) {
		must(*at != 0);
		at = &item_at(table, *at)->next;
	}
	*at = head->next;
	unlink_item(table, head);
	head->next = table->unused;
	table->unused = name;
	table->count--;
}
