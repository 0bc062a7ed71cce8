#include "gateway/state_once.h"

#include "codec/base/attr.h"
#include "codec/base/err.h"
#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/fair_share.h"

#include <stdlib.h>

enum {
	SHARDS = 64,
	BUCKETS = 1024,
	ENTRIES = ONCE_ENTRIES_MAX / SHARDS,
	BYTES = ONCE_ANSWERS_MAX / SHARDS,
	CHUNKS_KEPT = 16,
};

/* Where an entry stands. The lists are in the order in which answers came: all of one list expire after
 * the same time. */
enum entry_state {
	IN_FLIGHT,
	DONE, /* on the list of those remembered; on that of the kept, too, if it has bytes */
	GONE, /* not to be found any more; there are readers */
};

struct link {
	struct link *next, *before;
};

struct once_entry {
	struct once_entry *next, **place; /* in its bucket */
	struct state_key key;
	uint8_t body[SHA256_BYTES];
	uint32_t number;
	enum entry_state state;
	struct once_call *leader, *waiting, **last; /* IN_FLIGHT */
	struct link remembered, kept;
	nsec_t done_at;
	uint32_t readers; /* told of the answer, and still to copy it */
	struct once_answer answer;
	struct arena arena; /* of the answer's bytes */
};

struct shard {
	pthread_mutex_t lock;
	struct slab entries;
	struct arena_pool pool;
	struct link remembered, kept; /* rings: oldest first */
	size_t bytes;                 /* of the kept */
	uint32_t number;              /* of the entry added last */
	struct once_entry *buckets[BUCKETS];
};

struct once {
	struct shard shards[SHARDS];
	/* Copies that wait, by tenant; behind any shard's lock */
	pthread_mutex_t copies_lock;
	struct fair_share copies, large; /* all of them; those with large bodies */
};

/* ---- rings ---- */

static void ring_init(struct link *ring)
{
	ring->next = ring->before = ring;
}

static bool ring_empty(const struct link *ring)
{
	return ring->next == ring;
}

static void ring_add(struct link *ring, struct link *link)
{
	link->next = ring;
	link->before = ring->before;
	ring->before->next = link;
	ring->before = link;
}

static void ring_remove(struct link *link)
{
	link->next->before = link->before;
	link->before->next = link->next;
	ring_init(link);
}

/* ---- shards ---- */

static void shard_init(struct shard *shard)
{
	must(pthread_mutex_init(&shard->lock, NULL) == 0);
	ring_init(&shard->remembered);
	ring_init(&shard->kept);
	shard->pool.keep_max = CHUNKS_KEPT;
}

static bool make_shares(struct once *once)
{
	enum {
		OWNERS = ONCE_WAITING_MAX + 1
	}; /* so that who finds no room is not taken for another */

	return fair_share_map(&once->copies, OWNERS, false) &&
	       fair_share_map(&once->large, OWNERS, false);
}

static void free_shares(struct once *once)
{
	fair_share_unmap(&once->copies);
	fair_share_unmap(&once->large);
}

struct once *once_new(void)
{
	struct once *once = calloc(1, sizeof(*once));

	if (once == NULL)
		return NULL;
	if (!make_shares(once)) {
		free_shares(once);
		free(once);
		return NULL;
	}
	must(pthread_mutex_init(&once->copies_lock, NULL) == 0);
	for (size_t i = 0; i < SHARDS; i++)
		shard_init(&once->shards[i]);
	return once;
}

/* Keys are digests: any of their bytes will do. */
static struct shard *shard_of(struct once *once, const struct state_key *key)
{
	return &once->shards[key->at[0] % SHARDS];
}

static struct once_entry **bucket_of(struct shard *shard, const struct state_key *key)
{
	return &shard->buckets[(key->at[1] << 8 | key->at[2]) % BUCKETS];
}

static void lock(struct shard *shard)
{
	must(pthread_mutex_lock(&shard->lock) == 0);
}

static void unlock(struct shard *shard)
{
	must(pthread_mutex_unlock(&shard->lock) == 0);
}

/* ---- entries; all under their shard's lock ---- */

static struct once_entry *find(struct shard *shard, const struct state_key *key)
{
	struct once_entry *at = *bucket_of(shard, key);

	while (at != NULL && memcmp(&at->key, key, sizeof(*key)) != 0)
		at = at->next;
	return at;
}

/* What an answer takes of the shard's pool: chunks, which double (arena.h). */
static size_t room_of(const struct once_answer *answer)
{
	enum { OVERHEAD = 64 };
	size_t room = ARENA_CHUNK_BYTES;

	while (room < answer->member.len + OVERHEAD)
		room *= 2;
	return room;
}

static void drop_answer(struct shard *shard, struct once_entry *entry)
{
	if (!ring_empty(&entry->kept)) {
		ring_remove(&entry->kept);
		shard->bytes -= room_of(&entry->answer);
	}
	entry->answer.member = (struct slice){ NULL, 0 };
	arena_give(&entry->arena);
}

static void free_entry(struct shard *shard, struct once_entry *entry)
{
	must(entry->readers == 0 && entry->leader == NULL && entry->waiting == NULL);
	drop_answer(shard, entry);
	slab_give(&shard->entries, entry);
}

/* It is not found any more; freed as soon as nobody reads it. */
static void forget(struct shard *shard, struct once_entry *entry)
{
	must(entry->state != GONE);
	*entry->place = entry->next;
	if (entry->next != NULL)
		entry->next->place = entry->place;
	if (entry->state == DONE)
		ring_remove(&entry->remembered);
	entry->state = GONE;
	if (entry->readers == 0)
		free_entry(shard, entry);
}

static struct once_entry *oldest(struct link *ring, size_t offset)
{
	return ring_empty(ring) ? NULL : (struct once_entry *)(void *)((char *)ring->next - offset);
}

/* What its time is over for. `room`: there has to be a free entry, if need be by forgetting the oldest. */
static void expire(struct shard *shard, nsec_t now, bool room)
{
	struct once_entry *entry;

	while ((entry = oldest(&shard->kept, offsetof(struct once_entry, kept))) != NULL &&
	       now >= entry->done_at + ONCE_KEPT && entry->readers == 0)
		drop_answer(shard, entry);
	while ((entry = oldest(&shard->remembered, offsetof(struct once_entry, remembered))) !=
		       NULL &&
	       now >= entry->done_at + ONCE_REMEMBERED)
		forget(shard, entry);
	if (room && shard->entries.out == ENTRIES && entry != NULL)
		forget(shard, entry);
}

/* Entries are made room for with the first of a shard: not every gateway needs them. NULL: no memory, or
 * no room. */
static struct once_entry *take_entry(struct shard *shard)
{
	if (shard->entries.objects == NULL &&
	    !slab_init(&shard->entries, sizeof(struct once_entry), ENTRIES))
		return NULL;
	return slab_take(&shard->entries);
}

/* NULL likewise. */
static struct once_entry *add(struct shard *shard, struct once_call *call)
{
	struct once_entry *entry = take_entry(shard);

	if (entry == NULL)
		return NULL;
	struct once_entry **bucket = bucket_of(shard, &call->key);
	*entry = (struct once_entry){ .next = *bucket,
				      .place = bucket,
				      .key = call->key,
				      .number = ++shard->number,
				      .state = IN_FLIGHT,
				      .leader = call,
				      .last = &entry->waiting };
	if (entry->next != NULL)
		entry->next->place = &entry->next;
	*bucket = entry;
	(void)memcpy(entry->body, call->body, sizeof(entry->body));
	ring_init(&entry->remembered);
	ring_init(&entry->kept);
	arena_init(&entry->arena, &shard->pool, SIZE_MAX);
	return entry;
}

/* ---- those who wait ---- */

static uint64_t copies_of(const struct fair_share *share, const struct once_call *call)
{
	return fair_share_held(share, fair_share_find(share, call->tenant.at));
}

static bool is_large(const struct once_call *call)
{
	return call->large_max != ONCE_SMALL;
}

/* ONCE_WAITS: its tenant may have another copy wait. */
static enum once_verdict copy_take(struct once *once, struct once_call *call)
{
	static const struct fair_bound bound = { .most = ONCE_WAITING_MAX, .small = 1 };
	static const enum once_verdict verdicts[] = {
		[FAIR_TAKEN] = ONCE_WAITS, [FAIR_OWN] = ONCE_CROWDED, [FAIR_FULL] = ONCE_FULL
	};
	enum fair_verdict verdict = FAIR_OWN;

	must(pthread_mutex_lock(&once->copies_lock) == 0);
	if (!is_large(call) || copies_of(&once->large, call) < call->large_max)
		verdict = fair_share_take(&once->copies, &bound, call->tenant.at, 1, &call->copy);
	if (verdict == FAIR_TAKEN && is_large(call))
		call->large_copy = fair_share_add(&once->large, call->tenant.at, 1);
	must(pthread_mutex_unlock(&once->copies_lock) == 0);
	return verdicts[verdict];
}

static void copy_give(struct once *once, const struct once_call *call)
{
	must(pthread_mutex_lock(&once->copies_lock) == 0);
	fair_share_sub(&once->copies, call->copy, 1);
	if (is_large(call))
		fair_share_sub(&once->large, call->large_copy, 1);
	must(pthread_mutex_unlock(&once->copies_lock) == 0);
}

/* ONCE_WAITS, or why not. */
static enum once_verdict wait_add(struct once *once, struct once_entry *entry,
				  struct once_call *call)
{
	const enum once_verdict verdict = copy_take(once, call);

	if (verdict != ONCE_WAITS)
		return verdict;
	call->entry = entry;
	call->next = NULL;
	call->place = entry->last;
	*entry->last = call;
	entry->last = &call->next;
	return ONCE_WAITS;
}

static void wait_remove(struct once_entry *entry, struct once_call *call)
{
	*call->place = call->next;
	if (call->next != NULL)
		call->next->place = call->place;
	else
		entry->last = call->place;
	call->place = NULL;
	copy_give(call->once, call);
}

/* Of an entry, whether it is the call's. */
static bool same_body(const struct once_entry *entry, const struct once_call *call)
{
	return memcmp(entry->body, call->body, sizeof(entry->body)) == 0;
}

/* The first of those who wait leads from now on; without one there is no entry any more. */
static void pass_on(struct shard *shard, struct once_entry *entry, bool late)
{
	struct once_call *next = entry->waiting;

	entry->leader = next;
	if (next == NULL) {
		forget(shard, entry);
		return;
	}
	wait_remove(entry, next);
	(void)memcpy(entry->body, next->body,
		     sizeof(entry->body)); /* the other may have been a guess */
	next->late = late;
	next->part = ONCE_PART_LEADS;
	inbox_put(next->inbox, &next->item);
}

static void tell_waiting(struct once_entry *entry)
{
	for (struct once_call *call; (call = entry->waiting) != NULL;) {
		wait_remove(entry, call);
		call->part = same_body(entry, call) ? ONCE_PART_READS : ONCE_PART_CONFLICTS;
		entry->readers += call->part == ONCE_PART_READS;
		inbox_put(call->inbox, &call->item);
	}
}

/* The answer is the caller's from here on; without memory for it, its absence is. */
static void read_answer(struct once_call *call, const struct once_entry *entry)
{
	call->answer = entry->answer;
	if (!slice_absent(entry->answer.member))
		call->answer.member = arena_copy(call->arena, entry->answer.member);
}

static void end_reading(struct shard *shard, struct once_call *call)
{
	struct once_entry *entry = call->entry;

	must(entry->readers > 0);
	entry->readers--;
	call->once = NULL;
	if (entry->readers != 0)
		return;
	if (entry->state == GONE)
		free_entry(shard, entry);
	else if (ring_empty(&entry->kept))
		drop_answer(shard, entry);
}

/* On the thread of a call that has waited, which nobody else changes any more. Only here does its owner
 * learn of it: the verdict is not written by others. */
static void run_decided(struct inbox_item *item)
{
	static const enum once_verdict verdicts[] = { [ONCE_PART_LEADS] = ONCE_LEADS,
						      [ONCE_PART_READS] = ONCE_ANSWERED,
						      [ONCE_PART_CONFLICTS] = ONCE_CONFLICT };
	struct once_call *call = CONTAINER_OF(item, struct once_call, item);
	struct shard *shard = shard_of(call->once, &call->key);

	call->verdict = verdicts[call->part];
	call->leads = call->verdict == ONCE_LEADS;
	if (call->verdict == ONCE_ANSWERED) {
		lock(shard);
		read_answer(call, call->entry);
		end_reading(shard, call);
		unlock(shard);
	}
	if (call->verdict == ONCE_CONFLICT)
		call->once = NULL;
	call->decided(call);
}

/* ---- the interface ---- */

static enum once_verdict join_found(struct once *once, struct once_entry *entry,
				    struct once_call *call, nsec_t now)
{
	const bool same = same_body(entry, call);

	if (entry->state == IN_FLIGHT &&
	    (same || atomic_load_explicit(&entry->leader->unsure, memory_order_relaxed)))
		return wait_add(once, entry, call);
	if (!same)
		return ONCE_CONFLICT;
	if (slice_absent(entry->answer.member) || now >= entry->done_at + ONCE_KEPT)
		return ONCE_DONE;
	read_answer(call, entry);
	return ONCE_ANSWERED;
}

static enum once_verdict join(struct once *once, struct shard *shard, struct once_call *call,
			      nsec_t now)
{
	expire(shard, now, false);
	struct once_entry *found = find(shard, &call->key);
	if (found != NULL)
		return join_found(once, found, call, now);
	expire(shard, now, true);
	call->entry = add(shard, call);
	return call->entry != NULL ? ONCE_LEADS : ONCE_FULL;
}

void once_join(struct once *once, struct once_call *call, struct inbox *inbox, nsec_t now)
{
	struct shard *shard = shard_of(once, &call->key);

	must(call->once == NULL && call->decided != NULL);
	call->inbox = inbox;
	call->item = (struct inbox_item){ .run = run_decided };
	call->late = false;
	call->place = NULL;
	lock(shard);
	call->verdict = join(once, shard, call, now);
	if (call->verdict == ONCE_LEADS || call->verdict == ONCE_WAITS) {
		call->once = once;
		call->number = call->entry->number;
	}
	call->leads = call->verdict == ONCE_LEADS;
	call->waited = call->verdict == ONCE_WAITS;
	call->part = call->leads ? ONCE_PART_LEADS : ONCE_PART_WAITS;
	unlock(shard);
}

/* Of an answer that is to be kept, or that somebody waits for. */
static void store_answer(struct once_entry *entry, const struct once_answer *answer)
{
	entry->answer = *answer;
	entry->answer.member = (struct slice){ NULL, 0 };
	if (!slice_absent(answer->member))
		entry->answer.member = arena_copy(&entry->arena, answer->member);
}

/* Others make room for it. */
static void keep(struct shard *shard, struct once_entry *entry)
{
	struct once_entry *other;

	while (shard->bytes + room_of(&entry->answer) > BYTES &&
	       (other = oldest(&shard->kept, offsetof(struct once_entry, kept))) != NULL) {
		if (other->readers != 0)
			return; /* it goes when they have read it; this one is not kept */
		drop_answer(shard, other);
	}
	ring_add(&shard->kept, &entry->kept);
	shard->bytes += room_of(&entry->answer);
}

void once_end(struct once_call *call, const struct once_answer *answer, nsec_t now)
{
	struct shard *shard = shard_of(call->once, &call->key);
	struct once_entry *entry = call->entry;
	const bool good = answer->err == ERR_OK;
	const bool short_enough = answer->member.len <= ONCE_ANSWER_MAX;

	lock(shard);
	must(entry->leader == call && entry->state == IN_FLIGHT && !call->unsure);
	entry->leader = NULL;
	call->once = NULL;
	if (entry->waiting != NULL || (good && short_enough))
		store_answer(entry, answer);
	tell_waiting(entry);
	if (good) {
		entry->state = DONE;
		entry->done_at = now;
		ring_add(&shard->remembered, &entry->remembered);
		if (short_enough && !slice_absent(entry->answer.member))
			keep(shard, entry);
		if (ring_empty(&entry->kept) && entry->readers == 0)
			drop_answer(shard, entry);
	} else {
		forget(shard, entry);
	}
	unlock(shard);
}

bool once_leave(struct once_call *call)
{
	bool last = false;

	if (call->once == NULL)
		return false;
	struct shard *shard = shard_of(call->once, &call->key);
	lock(shard);
	switch (call->part) {
	case ONCE_PART_WAITS:
		wait_remove(call->entry, call);
		break;
	case ONCE_PART_LEADS:
		must(call->entry->leader == call);
		last = call->entry->waiting == NULL;
		pass_on(shard, call->entry, call->late);
		break;
	case ONCE_PART_READS:
		end_reading(shard, call);
		break;
	case ONCE_PART_CONFLICTS:
		break;
	}
	call->once = NULL;
	unlock(shard);
	inbox_take_back(call->inbox, &call->item); /* nobody puts it in from here on */
	return last;
}

void once_free(struct once *once)
{
	if (once == NULL)
		return;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *shard = &once->shards[i];
		expire(shard, NSEC_NEVER, false);
		must(shard->entries.out == 0 && shard->bytes == 0);
		slab_fini(&shard->entries);
		arena_pool_fini(&shard->pool);
		must(pthread_mutex_destroy(&shard->lock) == 0);
	}
	must(once->copies.sum == 0);
	must(pthread_mutex_destroy(&once->copies_lock) == 0);
	free_shares(once);
	free(once);
}
