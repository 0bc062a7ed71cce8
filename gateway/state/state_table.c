#include "gateway/state/state_table.h"

#include "codec/base/must.h"

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

/* Accounts: an owner that comes when a twelfth of all places has one each shares another's. */
static uint32_t owners_of(uint32_t most)
{
	enum { PART = 12, LEAST = 16 };
	const uint32_t least = most < LEAST ? most : LEAST;

	return most / PART < least ? least : most / PART;
}

static size_t buckets_bytes(uint32_t most)
{
	return fair_share_buckets(most) * sizeof(uint32_t);
}

size_t state_table_bytes(uint32_t item_bytes, uint32_t most)
{
	const uint32_t owners = owners_of(most);

	return (size_t)item_bytes * most + buckets_bytes(most) +
	       owners * sizeof(struct state_ends) + fair_share_bytes(owners, true);
}

void state_table_init(struct state_table *table, void *memory, uint32_t item_bytes, uint32_t most)
{
	char *buckets = (char *)memory + (size_t)item_bytes * most;
	char *owns = buckets + buckets_bytes(most);
	const uint32_t owners = owners_of(most);

	must(item_bytes >= sizeof(struct state_item) && item_bytes % 8 == 0);
	must(most >= 1 && most <= UINT32_MAX / 2);
	*table = (struct state_table){
		.items = memory,
		.buckets = (uint32_t *)(void *)buckets,
		.item_bytes = item_bytes,
		.most = most,
		.bucket_mask = fair_share_buckets(most) - 1,
		.owns = (struct state_ends *)(void *)owns,
	};
	fair_share_init(&table->share, owns + owners * sizeof(struct state_ends), owners, true);
}

/* ---- the lists of all and of each owner, from the oldest to the newest ---- */

static struct state_ends *ends_of(struct state_table *table, const struct state_item *item,
				  enum state_list list)
{
	return list == STATE_LIST_ALL ? &table->all : &table->owns[item->owner - 1];
}

static void unlink_item(struct state_table *table, struct state_item *item, enum state_list list)
{
	struct state_ends *ends = ends_of(table, item, list);
	const struct state_links links = item->links[list];

	if (links.older != 0)
		item_at(table, links.older)->links[list].newer = links.newer;
	else
		ends->oldest = links.newer;
	if (links.newer != 0)
		item_at(table, links.newer)->links[list].older = links.older;
	else
		ends->newest = links.older;
}

static void link_newest(struct state_table *table, struct state_item *item, enum state_list list)
{
	struct state_ends *ends = ends_of(table, item, list);
	const uint32_t name = name_of(table, item);

	item->links[list] = (struct state_links){ .older = ends->newest };
	if (ends->newest != 0)
		item_at(table, ends->newest)->links[list].newer = name;
	else
		ends->oldest = name;
	ends->newest = name;
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

	for (enum state_list list = 0; list < STATE_LISTS; list++) {
		unlink_item(table, head, list);
		link_newest(table, head, list);
	}
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

void *state_table_add(struct state_table *table, const struct state_key *key,
		      const struct state_key *owner, nsec_t due)
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
	item->owner = fair_share_add(&table->share, owner->at, 1);
	for (enum state_list list = 0; list < STATE_LISTS; list++)
		link_newest(table, item, list);
	table->count++;
	return item;
}

static void *oldest_in(struct state_table *table, const struct state_ends *ends)
{
	return ends->oldest == 0 ? NULL : item_at(table, ends->oldest);
}

void *state_table_oldest(struct state_table *table)
{
	return oldest_in(table, &table->all);
}

void *state_table_oldest_of(struct state_table *table, const struct state_key *owner)
{
	const uint32_t name = fair_share_find(&table->share, owner->at);

	return name == 0 ? NULL : oldest_in(table, &table->owns[name - 1]);
}

void *state_table_victim(struct state_table *table, const struct state_key *owner)
{
	must(state_table_full(table));
	return oldest_in(table, &table->owns[fair_share_victim(&table->share, owner->at, 1) - 1]);
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
	for (enum state_list list = 0; list < STATE_LISTS; list++)
		unlink_item(table, head, list);
	fair_share_sub(&table->share, head->owner, 1);
	head->next = table->unused;
	table->unused = name;
	table->count--;
}
