#include "gateway/state/idempotency.h"

#include "codec/base/attr.h"
#include "codec/base/err.h"
#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/state/idempotency_copies.h"

#include <stdlib.h>

enum {
	BUCKETS = 1024, /* of a shard */
	ENTRIES = IDEMPOTENCY_ENTRIES_MAX / KEY_SHARDS,
	BYTES = IDEMPOTENCY_ANSWERS_MAX / KEY_SHARDS,
	CHUNKS_KEPT = 16,
};

/* Where an entry stands. The lists are in the order in which answers came: all of one list expire after
 * the same time. */
enum entry_state {
	IN_FLIGHT,
	DONE, /* on the list of those remembered; on that of the kept, too, if it has bytes */
	GONE, /* not to be found any more; there are readers */
};

/* On a ring: */
struct held {
	struct list_link link;
	uint32_t owner, amount; /* of the ring's share */
};

/* From the oldest to the newest; whose they are, by number or by bytes. */
struct ring {
	struct list list;
	struct fair_share share;
};

struct idempotency_entry {
	struct key_link link;
	struct state_key key, tenant;
	uint8_t body[SHA256_BYTES];
	uint32_t number;
	enum entry_state state;
	struct idempotency_call *leader; /* IN_FLIGHT */
	struct list waiting;             /* likewise */
	struct held remembered, kept;
	nsec_t done_at;
	uint32_t readers; /* told of the answer, and still to copy it */
	struct idempotency_answer answer;
	struct arena arena; /* of the answer's bytes */
};

struct shard {
	struct key_shard keys;
	struct slab entries;
	struct arena_pool pool;
	struct ring remembered, kept; /* by number; by bytes of answers */
	uint32_t number;              /* of the entry added last */
	struct key_link *buckets[BUCKETS];
};

struct idempotency {
	struct shard shards[KEY_SHARDS];
	struct idempotency_copies copies; /* its lock is taken last */
};

/* ---- rings ---- */

/* Before the first is added; false: no memory. */
static bool ring_map(struct ring *ring)
{
	return ring->share.owners != NULL || fair_share_map(&ring->share, ENTRIES, true);
}

static bool is_on(const struct held *held)
{
	return list_has(&held->link);
}

static void ring_add(struct ring *ring, struct held *held, const struct state_key *tenant,
		     size_t amount)
{
	held->amount = (uint32_t)amount;
	held->owner = fair_share_add(&ring->share, tenant->at, amount);
	list_add(&ring->list, &held->link);
}

static void ring_remove(struct ring *ring, struct held *held)
{
	list_remove(&held->link);
	fair_share_sub(&ring->share, held->owner, held->amount);
}

static struct held *of_link(struct list_link *link)
{
	return link == NULL ? NULL : CONTAINER_OF(link, struct held, link);
}

static struct held *ring_oldest(struct ring *ring)
{
	return of_link(list_first(&ring->list));
}

/* What makes room for so much more of that tenant's: the oldest of who has most. NULL: there is nothing. */
static struct held *ring_victim(struct ring *ring, const struct state_key *tenant, size_t amount)
{
	const uint32_t owner = fair_share_victim(&ring->share, tenant->at, amount);
	struct held *held = ring_oldest(ring);

	while (held != NULL && held->owner != owner)
		held = of_link(list_next(&ring->list, &held->link));
	return held;
}

/* ---- shards ---- */

static void shard_init(struct shard *shard)
{
	key_shard_init(&shard->keys, shard->buckets, BUCKETS);
	list_init(&shard->remembered.list);
	list_init(&shard->kept.list);
	shard->pool.keep_max = CHUNKS_KEPT;
}

struct idempotency *idempotency_new(void)
{
	struct idempotency *idempotency = calloc(1, sizeof(*idempotency));

	if (idempotency == NULL)
		return NULL;
	if (!idempotency_copies_init(&idempotency->copies)) {
		free(idempotency);
		return NULL;
	}
	for (size_t i = 0; i < KEY_SHARDS; i++)
		shard_init(&idempotency->shards[i]);
	return idempotency;
}

static struct shard *shard_of(struct idempotency *idempotency, const struct state_key *key)
{
	return &idempotency->shards[key_shard_number(key)];
}

static void lock(struct shard *shard)
{
	key_shard_lock(&shard->keys);
}

static void unlock(struct shard *shard)
{
	key_shard_unlock(&shard->keys);
}

/* ---- entries; all under their shard's lock ---- */

static struct idempotency_entry *find(struct shard *shard, const struct state_key *key)
{
	struct key_link *link = key_shard_find(&shard->keys, key);

	return link == NULL ? NULL : CONTAINER_OF(link, struct idempotency_entry, link);
}

/* What an answer takes of the shard's pool: chunks, which double (arena.h). */
static size_t room_of(const struct idempotency_answer *answer)
{
	enum { OVERHEAD = 64 };
	size_t room = ARENA_CHUNK_BYTES;

	while (room < answer->member.len + OVERHEAD)
		room *= 2;
	return room;
}

static void drop_answer(struct shard *shard, struct idempotency_entry *entry)
{
	if (is_on(&entry->kept))
		ring_remove(&shard->kept, &entry->kept);
	entry->answer.member = (struct slice){ NULL, 0 };
	arena_give(&entry->arena);
}

static void free_entry(struct shard *shard, struct idempotency_entry *entry)
{
	must(entry->readers == 0 && entry->leader == NULL && list_is_empty(&entry->waiting));
	drop_answer(shard, entry);
	slab_give(&shard->entries, entry);
}

/* It is not found any more; freed as soon as nobody reads it. */
static void forget(struct shard *shard, struct idempotency_entry *entry)
{
	must(entry->state != GONE);
	key_shard_remove(&entry->link);
	if (entry->state == DONE)
		ring_remove(&shard->remembered, &entry->remembered);
	entry->state = GONE;
	if (entry->readers == 0)
		free_entry(shard, entry);
}

static struct idempotency_entry *of_remembered(struct held *held)
{
	return held == NULL ? NULL : CONTAINER_OF(held, struct idempotency_entry, remembered);
}

static struct idempotency_entry *of_kept(struct held *held)
{
	return held == NULL ? NULL : CONTAINER_OF(held, struct idempotency_entry, kept);
}

/* What its time is over for. */
static void expire(struct shard *shard, nsec_t now)
{
	struct idempotency_entry *entry;

	while ((entry = of_kept(ring_oldest(&shard->kept))) != NULL &&
	       now >= entry->done_at + IDEMPOTENCY_KEPT && entry->readers == 0)
		drop_answer(shard, entry);
	while ((entry = of_remembered(ring_oldest(&shard->remembered))) != NULL &&
	       now >= entry->done_at + IDEMPOTENCY_REMEMBERED)
		forget(shard, entry);
}

/* A free entry for another of that tenant's, if it takes one that is remembered: whose, fair_share.h says. */
static void make_room(struct shard *shard, const struct state_key *tenant)
{
	struct idempotency_entry *entry = NULL;

	if (shard->entries.out == ENTRIES)
		entry = of_remembered(ring_victim(&shard->remembered, tenant, 1));
	if (entry != NULL)
		forget(shard, entry);
}

/* Entries are made room for with the first of a shard: not every gateway needs them. NULL: no memory, or
 * no room. */
static struct idempotency_entry *take_entry(struct shard *shard)
{
	if (!ring_map(&shard->remembered) || !ring_map(&shard->kept))
		return NULL;
	if (shard->entries.objects == NULL &&
	    !slab_init(&shard->entries, sizeof(struct idempotency_entry), ENTRIES))
		return NULL;
	return slab_take(&shard->entries);
}

/* NULL likewise. */
static struct idempotency_entry *add(struct shard *shard, struct idempotency_call *call)
{
	struct idempotency_entry *entry = take_entry(shard);

	if (entry == NULL)
		return NULL;
	*entry = (struct idempotency_entry){ .key = call->key,
					     .tenant = call->tenant,
					     .number = ++shard->number,
					     .state = IN_FLIGHT,
					     .leader = call };
	key_shard_add(&shard->keys, &entry->link, &entry->key);
	list_init(&entry->waiting);
	(void)memcpy(entry->body, call->body, sizeof(entry->body));
	arena_init(&entry->arena, &shard->pool, SIZE_MAX);
	return entry;
}

/* ---- those who wait ---- */

/* IDEMPOTENCY_WAITS, or why not. */
static enum idempotency_verdict wait_add(struct idempotency *idempotency,
					 struct idempotency_entry *entry,
					 struct idempotency_call *call)
{
	const enum idempotency_verdict verdict =
		idempotency_copies_take(&idempotency->copies, call);

	if (verdict != IDEMPOTENCY_WAITS)
		return verdict;
	call->entry = entry;
	list_add(&entry->waiting, &call->waits);
	return IDEMPOTENCY_WAITS;
}

/* Who waits for longest; NULL: nobody waits. */
static struct idempotency_call *first_waiting(const struct idempotency_entry *entry)
{
	struct list_link *link = list_first(&entry->waiting);

	return link == NULL ? NULL : CONTAINER_OF(link, struct idempotency_call, waits);
}

static void wait_remove(struct idempotency_call *call)
{
	list_remove(&call->waits);
	idempotency_copies_give(&call->idempotency->copies, call);
}

/* Of an entry, whether it is the call's. */
static bool same_body(const struct idempotency_entry *entry, const struct idempotency_call *call)
{
	return memcmp(entry->body, call->body, sizeof(entry->body)) == 0;
}

/* The first of those who wait leads from now on; without one there is no entry any more. */
static void pass_on(struct shard *shard, struct idempotency_entry *entry, bool late)
{
	struct idempotency_call *next = first_waiting(entry);

	entry->leader = next;
	if (next == NULL) {
		forget(shard, entry);
		return;
	}
	wait_remove(next);
	(void)memcpy(entry->body, next->body,
		     sizeof(entry->body)); /* the other may have been a guess */
	next->late = late;
	next->part = IDEMPOTENCY_PART_LEADS;
	inbox_put(next->inbox, &next->item);
}

static void tell_waiting(struct idempotency_entry *entry)
{
	for (struct idempotency_call *call; (call = first_waiting(entry)) != NULL;) {
		wait_remove(call);
		call->part = same_body(entry, call) ? IDEMPOTENCY_PART_READS
						    : IDEMPOTENCY_PART_CONFLICTS;
		entry->readers += call->part == IDEMPOTENCY_PART_READS;
		inbox_put(call->inbox, &call->item);
	}
}

/* The answer is the caller's from here on; without memory for it, its absence is. */
static void read_answer(struct idempotency_call *call, const struct idempotency_entry *entry)
{
	call->answer = entry->answer;
	if (!slice_absent(entry->answer.member))
		call->answer.member = arena_copy(call->arena, entry->answer.member);
}

static void end_reading(struct shard *shard, struct idempotency_call *call)
{
	struct idempotency_entry *entry = call->entry;

	must(entry->readers > 0);
	entry->readers--;
	call->idempotency = NULL;
	if (entry->readers != 0)
		return;
	if (entry->state == GONE)
		free_entry(shard, entry);
	else if (!is_on(&entry->kept))
		drop_answer(shard, entry);
}

/* On the thread of a call that has waited, which nobody else changes any more. Only here does its owner
 * learn of it: the verdict is not written by others. */
static void run_decided(struct inbox_item *item)
{
	static const enum idempotency_verdict verdicts[] = {
		[IDEMPOTENCY_PART_LEADS] = IDEMPOTENCY_LEADS,
		[IDEMPOTENCY_PART_READS] = IDEMPOTENCY_ANSWERED,
		[IDEMPOTENCY_PART_CONFLICTS] = IDEMPOTENCY_CONFLICT
	};
	struct idempotency_call *call = CONTAINER_OF(item, struct idempotency_call, item);
	struct shard *shard = shard_of(call->idempotency, &call->key);

	call->verdict = verdicts[call->part];
	call->leads = call->verdict == IDEMPOTENCY_LEADS;
	if (call->verdict == IDEMPOTENCY_ANSWERED) {
		lock(shard);
		read_answer(call, call->entry);
		end_reading(shard, call);
		unlock(shard);
	}
	if (call->verdict == IDEMPOTENCY_CONFLICT)
		call->idempotency = NULL;
	call->decided(call);
}

/* ---- the interface ---- */

static enum idempotency_verdict join_found(struct idempotency *idempotency,
					   struct idempotency_entry *entry,
					   struct idempotency_call *call, nsec_t now)
{
	const bool same = same_body(entry, call);

	if (entry->state == IN_FLIGHT &&
	    (same || atomic_load_explicit(&entry->leader->unsure, memory_order_relaxed)))
		return wait_add(idempotency, entry, call);
	if (!same)
		return IDEMPOTENCY_CONFLICT;
	if (slice_absent(entry->answer.member) || now >= entry->done_at + IDEMPOTENCY_KEPT)
		return IDEMPOTENCY_DONE;
	read_answer(call, entry);
	return IDEMPOTENCY_ANSWERED;
}

static enum idempotency_verdict join(struct idempotency *idempotency, struct shard *shard,
				     struct idempotency_call *call, nsec_t now)
{
	expire(shard, now);
	struct idempotency_entry *found = find(shard, &call->key);
	if (found != NULL)
		return join_found(idempotency, found, call, now);
	make_room(shard, &call->tenant);
	call->entry = add(shard, call);
	return call->entry != NULL ? IDEMPOTENCY_LEADS : IDEMPOTENCY_FULL;
}

void idempotency_join(struct idempotency *idempotency, struct idempotency_call *call,
		      struct inbox *inbox, nsec_t now)
{
	struct shard *shard = shard_of(idempotency, &call->key);

	must(call->idempotency == NULL && call->decided != NULL);
	call->inbox = inbox;
	call->item = (struct inbox_item){ .run = run_decided };
	call->late = false;
	call->waits = (struct list_link){ 0 };
	lock(shard);
	call->verdict = join(idempotency, shard, call, now);
	if (call->verdict == IDEMPOTENCY_LEADS || call->verdict == IDEMPOTENCY_WAITS) {
		call->idempotency = idempotency;
		call->number = call->entry->number;
	}
	call->leads = call->verdict == IDEMPOTENCY_LEADS;
	call->waited = call->verdict == IDEMPOTENCY_WAITS;
	call->part = call->leads ? IDEMPOTENCY_PART_LEADS : IDEMPOTENCY_PART_WAITS;
	unlock(shard);
}

/* Of an answer that is to be kept, or that somebody waits for. */
static void store_answer(struct idempotency_entry *entry, const struct idempotency_answer *answer)
{
	entry->answer = *answer;
	entry->answer.member = (struct slice){ NULL, 0 };
	if (!slice_absent(answer->member))
		entry->answer.member = arena_copy(&entry->arena, answer->member);
}

/* Those of the tenant that has most make room for it, which may be the answer's own. */
static void keep(struct shard *shard, struct idempotency_entry *entry)
{
	const size_t room = room_of(&entry->answer);
	struct idempotency_entry *other;

	while (shard->kept.share.sum + room > BYTES &&
	       (other = of_kept(ring_victim(&shard->kept, &entry->tenant, room))) != NULL) {
		if (other->readers != 0)
			return; /* it goes when they have read it; this one is not kept */
		drop_answer(shard, other);
	}
	ring_add(&shard->kept, &entry->kept, &entry->tenant, room);
}

void idempotency_end(struct idempotency_call *call, const struct idempotency_answer *answer,
		     nsec_t now)
{
	struct shard *shard = shard_of(call->idempotency, &call->key);
	struct idempotency_entry *entry = call->entry;
	const bool good = answer->err == ERR_OK;
	const bool short_enough = answer->member.len <= IDEMPOTENCY_ANSWER_MAX;

	lock(shard);
	must(entry->leader == call && entry->state == IN_FLIGHT && !call->unsure);
	entry->leader = NULL;
	call->idempotency = NULL;
	if (!list_is_empty(&entry->waiting) || (good && short_enough))
		store_answer(entry, answer);
	tell_waiting(entry);
	if (good) {
		entry->state = DONE;
		entry->done_at = now;
		ring_add(&shard->remembered, &entry->remembered, &entry->tenant, 1);
		if (short_enough && !slice_absent(entry->answer.member))
			keep(shard, entry);
		if (!is_on(&entry->kept) && entry->readers == 0)
			drop_answer(shard, entry);
	} else {
		forget(shard, entry);
	}
	unlock(shard);
}

bool idempotency_leave(struct idempotency_call *call)
{
	bool last = false;

	if (call->idempotency == NULL)
		return false;
	struct shard *shard = shard_of(call->idempotency, &call->key);
	lock(shard);
	switch (call->part) {
	case IDEMPOTENCY_PART_WAITS:
		wait_remove(call);
		break;
	case IDEMPOTENCY_PART_LEADS:
		must(call->entry->leader == call);
		last = list_is_empty(&call->entry->waiting);
		pass_on(shard, call->entry, call->late);
		break;
	case IDEMPOTENCY_PART_READS:
		end_reading(shard, call);
		break;
	case IDEMPOTENCY_PART_CONFLICTS:
		break;
	}
	call->idempotency = NULL;
	unlock(shard);
	inbox_take_back(call->inbox, &call->item); /* nobody puts it in from here on */
	return last;
}

void idempotency_free(struct idempotency *idempotency)
{
	if (idempotency == NULL)
		return;
	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct shard *shard = &idempotency->shards[i];
		expire(shard, NSEC_NEVER);
		must(shard->entries.out == 0 && shard->kept.share.sum == 0);
		fair_share_unmap(&shard->remembered.share);
		fair_share_unmap(&shard->kept.share);
		slab_fini(&shard->entries);
		arena_pool_fini(&shard->pool);
		key_shard_fini(&shard->keys);
	}
	idempotency_copies_fini(&idempotency->copies);
	free(idempotency);
}
