#include "gateway/state/key_shard.h"

void key_shard_init(struct key_shard *shard, struct key_link **buckets, uint32_t count)
{
	must(count != 0 && (count & (count - 1)) == 0 && count <= UINT16_MAX + 1);
	*shard = (struct key_shard){ .buckets = buckets, .mask = count - 1 };
	must(pthread_mutex_init(&shard->lock, NULL) == 0);
}

void key_shard_fini(struct key_shard *shard)
{
	for (size_t i = 0; i <= shard->mask; i++)
		must(shard->buckets[i] == NULL);
	must(pthread_mutex_destroy(&shard->lock) == 0);
}

static struct key_link **bucket_of(const struct key_shard *shard, const struct state_key *key)
{
	return &shard->buckets[(uint32_t)(key->at[1] << 8 | key->at[2]) & shard->mask];
}

/* From there on. */
static struct key_link *find(struct key_link *at, const struct state_key *key)
{
	while (at != NULL && !state_key_eq(at->key, key))
		at = at->next;
	return at;
}

struct key_link *key_shard_find(const struct key_shard *shard, const struct state_key *key)
{
	return find(*bucket_of(shard, key), key);
}

struct key_link *key_link_next(const struct key_link *link)
{
	return find(link->next, link->key);
}

void key_shard_add(struct key_shard *shard, struct key_link *link, const struct state_key *key)
{
	struct key_link **bucket = bucket_of(shard, key);

	*link = (struct key_link){ .key = key, .next = *bucket, .before = bucket };
	if (link->next != NULL)
		link->next->before = &link->next;
	*bucket = link;
}

void key_shard_remove(struct key_link *link)
{
	*link->before = link->next;
	if (link->next != NULL)
		link->next->before = link->before;
}
