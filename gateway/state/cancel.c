#include "gateway/state/cancel.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

#include <stdlib.h>

enum { BUCKETS = 256 /* of a shard */ };

struct shard {
	struct key_shard keys;
	struct key_link *buckets[BUCKETS];
};

struct cancel_table {
	struct shard shards[KEY_SHARDS];
};

static struct key_shard *shard_of(struct cancel_table *cancels, const struct state_key *key)
{
	return &cancels->shards[key_shard_number(key)].keys;
}

struct cancel_table *cancel_table_new(void)
{
	struct cancel_table *cancels = calloc(1, sizeof(*cancels));

	for (size_t i = 0; cancels != NULL && i < KEY_SHARDS; i++)
		key_shard_init(&cancels->shards[i].keys, cancels->shards[i].buckets, BUCKETS);
	return cancels;
}

void cancel_table_free(struct cancel_table *cancels)
{
	for (size_t i = 0; cancels != NULL && i < KEY_SHARDS; i++)
		key_shard_fini(&cancels->shards[i].keys);
	free(cancels);
}

static void run_called_off(struct inbox_item *item)
{
	struct cancel_entry *entry = CONTAINER_OF(item, struct cancel_entry, item);

	entry->cancelled(entry);
}

void cancel_enter(struct cancel_table *cancels, struct cancel_entry *entry, struct inbox *inbox)
{
	struct key_shard *shard = shard_of(cancels, &entry->key);

	must(entry->cancels == NULL && entry->cancelled != NULL);
	entry->cancels = cancels;
	entry->inbox = inbox;
	entry->item = (struct inbox_item){ .run = run_called_off };
	key_shard_lock(shard);
	key_shard_add(shard, &entry->link, &entry->key);
	key_shard_unlock(shard);
}

void cancel_leave(struct cancel_entry *entry)
{
	if (entry->cancels == NULL)
		return;
	struct key_shard *shard = shard_of(entry->cancels, &entry->key);
	key_shard_lock(shard);
	key_shard_remove(&entry->link);
	key_shard_unlock(shard);
	entry->cancels = NULL;
	inbox_take_back(entry->inbox, &entry->item); /* nobody puts it in from here on */
}

uint32_t cancel_all(struct cancel_table *cancels, struct state_key key)
{
	struct key_shard *shard = shard_of(cancels, &key);
	uint32_t count = 0;

	/* Under the lock: none of them can leave before it is in its inbox. */
	key_shard_lock(shard);
	for (struct key_link *at = key_shard_find(shard, &key); at != NULL;
	     at = key_link_next(at)) {
		struct cancel_entry *entry = CONTAINER_OF(at, struct cancel_entry, link);
		inbox_put(entry->inbox, &entry->item);
		count++;
	}
	key_shard_unlock(shard);
	return count;
}

bool cancel_has(struct cancel_table *cancels, struct state_key key)
{
	struct key_shard *shard = shard_of(cancels, &key);

	key_shard_lock(shard);
	const bool found = key_shard_find(shard, &key) != NULL;
	key_shard_unlock(shard);
	return found;
}

uint32_t cancel_each(struct cancel_table *cancels, struct state_key key,
		     void (*look)(const struct cancel_entry *entry, void *arg), void *arg)
{
	struct key_shard *shard = shard_of(cancels, &key);
	uint32_t count = 0;

	key_shard_lock(shard);
	for (struct key_link *at = key_shard_find(shard, &key); at != NULL;
	     at = key_link_next(at)) {
		if (look != NULL)
			look(CONTAINER_OF(at, struct cancel_entry, link), arg);
		count++;
	}
	key_shard_unlock(shard);
	return count;
}

uint32_t cancel_count(struct cancel_table *cancels, struct state_key key)
{
	return cancel_each(cancels, key, NULL, NULL);
}
