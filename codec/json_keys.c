#include "codec/json_keys.h"

#include "codec/base/must.h"
#include "codec/json_scan.h"
#include "codec/set.h"

#include <stdlib.h>
#include <sys/random.h>

struct json_work *json_work_new(void)
{
	struct json_work *work = calloc(1, sizeof(*work)); /* untouched pages cost nothing */

	if (work == NULL)
		return NULL;
	work->set = codec_set_best();
	/* Early in a boot the pool may be empty; the address alone (ASLR) must do then. */
	if (getrandom(&work->seed, sizeof(work->seed), GRND_NONBLOCK) != sizeof(work->seed))
		work->seed = (uint64_t)(uintptr_t)work * 0x9e3779b97f4a7c15ull;
	return work;
}

void json_work_free(struct json_work *work)
{
	free(work);
}

static const uint64_t mix_word = 0x9fb21c651e98df25ull, mix_end = 0xd6e8feb86659fd93ull;

static inline uint32_t hash_end(uint64_t hash, uint64_t tail, size_t len)
{
	hash = json_keys_mix(hash ^ tail, mix_word);
	hash = json_keys_mix(hash ^ len, mix_end);
	return (uint32_t)(hash ^ hash >> 32);
}

static inline uint64_t load_front(const char *at, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)(unsigned char)at[i] << (8 * i);
	return word;
}

static inline uint32_t hash_plain(uint64_t hash, struct slice s, const char *end)
{
	const char *at = s.at;
	size_t left = s.len;

	if (left <= KEYS_WORDS)
		return end - at >= 8 ? json_keys_hash_short(hash, at, left)
				     : json_keys_hash2(hash, load_front(at, left), 0, left);
	for (; left >= 8; at += 8, left -= 8)
		hash = json_keys_mix(hash ^ scan_load8(at), mix_word);
	return hash_end(hash, load_front(at, left), s.len);
}

/* The same for a string with escapes: hashes what hash_plain would see of its meaning. */
static SCAN_RARE uint32_t hash_escaped(uint64_t seed, struct slice raw)
{
	const char *at = raw.at, *end = raw.at + raw.len;
	uint64_t hash = seed, front[2] = { 0, 0 }, word = 0;
	size_t len = 0;

	while (at < end) {
		char out[4] = { *at };
		size_t count = 1;
		if (*at == '\\')
			count = scan_unescape(&at, out);
		else
			at++;
		for (size_t i = 0; i < count; i++) {
			uint64_t byte = (uint64_t)(unsigned char)out[i] << (8 * (len % 8));
			word |= byte;
			if (len < KEYS_WORDS)
				front[len / 8] |= byte;
			if (++len % 8 == 0) {
				hash = json_keys_mix(hash ^ word, mix_word);
				word = 0;
			}
		}
	}
	return len <= KEYS_WORDS ? json_keys_hash2(seed, front[0], front[1], len)
				 : hash_end(hash, word, len);
}

static inline uint32_t hash_of(const struct json_work *work, struct slice raw, bool escaped,
			       const char *end)
{
	return escaped ? hash_escaped(work->seed, raw) : hash_plain(work->seed, raw, end);
}

/* Called once the hashes are equal, which hardly ever means anything else. */
static SCAN_RARE bool same_text(const struct json_key *key, struct slice raw)
{
	return json_str_same(slice_of(key->at, key->len), raw);
}

static inline bool key_is(const struct json_key *key, struct slice raw, uint32_t hash)
{
	return key->hash == hash && same_text(key, raw);
}

/* A table of `count` slots for the newest set, filled anew. */
static void slots_build(struct json_work *work, struct json_level set, uint32_t count)
{
	uint32_t mask = count - 1, members = work->key_top - set.keys;
	uint16_t *slots = work->slots + set.slots;

	must(set.slots + count <= KEYS_SLOTS_MAX);
	work->slot_top = set.slots + count;
	(void)memset(slots, 0, count * sizeof(*slots));
	for (uint32_t i = 0; i < members; i++) {
		uint32_t at = work->keys[set.keys + i].hash & mask;
		while (slots[at] != 0)
			at = (at + 1) & mask;
		slots[at] = (uint16_t)(i + 1);
	}
}

/* The slot of `count` at `slots` that holds `raw`, or the empty one where it belongs. */
static uint32_t slots_find(const struct json_work *work, struct json_level set, uint32_t count,
			   struct slice raw, uint32_t hash)
{
	const uint16_t *slots = work->slots + set.slots;
	uint32_t mask = count - 1, at = hash & mask;

	while (slots[at] != 0 && !key_is(&work->keys[set.keys + slots[at] - 1], raw, hash))
		at = (at + 1) & mask;
	return set.slots + at;
}

static inline bool few_have(const struct json_key *key, const struct json_key *end,
			    struct slice raw, uint32_t hash)
{
	for (; key < end; key++)
		if (key_is(key, raw, hash))
			return true;
	return false;
}

static inline enum json_keys_answer append(struct json_work *work, struct slice raw, uint32_t hash)
{
	struct json_key *key = &work->keys[work->key_top++];

	key->at = raw.at;
	key->len = (uint32_t)raw.len;
	key->hash = hash;
	return KEYS_ADDED;
}

/* The set has outgrown the comparison one by one. */
static SCAN_RARE enum json_keys_answer add_to_many(struct json_work *work, struct json_level set,
						   struct slice raw, uint32_t hash)
{
	uint32_t count = work->key_top - set.keys, slots = work->slot_top - set.slots;

	must(count < UINT16_MAX);
	if (2 * count >= slots)
		slots_build(work, set, slots == 0 ? 4 * KEYS_FEW : 2 * slots);
	uint32_t slot = slots_find(work, set, work->slot_top - set.slots, raw, hash);
	if (work->slots[slot] != 0)
		return KEYS_DUPLICATE;
	work->slots[slot] = (uint16_t)(count + 1);
	return append(work, raw, hash);
}

enum json_keys_answer json_keys_add(struct json_work *work, struct json_level *set, uint32_t max,
				    struct slice raw, bool escaped, const char *end)
{
	uint32_t count = work->key_top - set->keys;
	uint32_t hash = hash_of(work, raw, escaped, end);
	uint64_t bit = json_keys_bit(hash), filter = set->filter;

	if (count >= max || work->key_top == KEYS_OPEN_MAX)
		return KEYS_FULL;
	if (count >= KEYS_FEW)
		return add_to_many(work, *set, raw, hash);
	set->filter |= bit;
	if ((filter & bit) != 0 &&
	    few_have(work->keys + set->keys, work->keys + work->key_top, raw, hash))
		return KEYS_DUPLICATE;
	return append(work, raw, hash);
}

bool json_keys_has(const struct json_work *work, struct json_level set, struct json_level top,
		   struct slice raw, const char *end)
{
	bool escaped = raw.len != 0 && memchr(raw.at, '\\', raw.len) != NULL;
	uint32_t hash = hash_of(work, raw, escaped, end), slots = top.slots - set.slots;

	if (slots != 0)
		return work->slots[slots_find(work, set, slots, raw, hash)] != 0;
	return few_have(work->keys + set.keys, work->keys + top.keys, raw, hash);
}
