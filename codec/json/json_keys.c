#include "codec/json/json_keys.h"

#include "codec/base/must.h"
#include "codec/json/json_scan.h"

#include <stdlib.h>
#include <sys/random.h>

struct json_work *json_work_new(const struct codec_set *set)
{
	must(set != NULL);

	struct json_work *work = calloc(1, sizeof(*work)); /* untouched pages cost nothing */

	if (work == NULL)
		return NULL;
	work->set = set;
	json_keys_clear(work);
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

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Never 0, which is no hash. */
static inline uint32_t hash_end(uint64_t hash, uint64_t tail, size_t len)
{
	hash = mix(hash ^ tail, mix_word);
	hash = mix(hash ^ len, mix_end);
	return (uint32_t)(hash ^ hash >> 32) | (uint32_t)1
						       << 31; /* the lower bits say which slot */
}

static inline uint64_t load_front(const char *at, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)(unsigned char)at[i] << (8 * i);
	return word;
}

/* `ahead`: 8 bytes are readable behind it. */
static inline uint32_t hash_plain(uint64_t hash, struct slice s, bool ahead)
{
	const char *at = s.at;
	size_t left = s.len;

	for (; left >= 8; at += 8, left -= 8)
		hash = mix(hash ^ scan_load8(at), mix_word);
	uint64_t tail =
		ahead ? scan_load8(at) & (((uint64_t)1 << 8 * left) - 1) : load_front(at, left);
	return hash_end(hash, tail, s.len);
}

/* The same for a string with escapes: hashes what hash_plain would see of its meaning. */
static SCAN_RARE uint32_t hash_escaped(uint64_t seed, struct slice raw)
{
	const char *at = raw.at, *end = raw.at + raw.len;
	uint64_t hash = seed, word = 0;
	size_t len = 0;

	while (at < end) {
		const size_t filled = 8 * (len % 8);
		size_t count = 1;
		const uint64_t bytes =
			*at == '\\' ? scan_meaning(&at, &count) : (unsigned char)*at++;
		word |= bytes << filled;
		len += count;
		if (filled + 8 * count >= 64) {
			hash = mix(hash ^ word, mix_word);
			word = bytes >> (64 - filled); /* no escape gives eight bytes */
		}
	}
	return hash_end(hash, word, len);
}

/* Under the seed, which nobody who sends a text can know: without it there is no making keys that
 * collide. `end`: bytes are readable up to there. */
static inline uint32_t hash_of(const struct json_work *work, struct slice raw, bool escaped,
			       const char *end)
{
	return escaped ? hash_escaped(work->seed, raw)
		       : hash_plain(work->seed, raw, end - raw.at >= (ptrdiff_t)raw.len + 8);
}

static inline bool has_escape(struct slice raw)
{
	return raw.len != 0 && memchr(raw.at, '\\', raw.len) != NULL;
}

static inline struct slice text_of(const struct json_key *key)
{
	return slice_of(key->at, key->len);
}

/* The key's hash, which is kept. */
static inline uint32_t hash_known(const struct json_work *work, struct json_key *key)
{
	if (key->hash == 0)
		key->hash =
			hash_of(work, text_of(key), has_escape(text_of(key)), key->at + key->len);
	return key->hash;
}

/* Called once the hashes are equal, which hardly ever means anything else. */
static SCAN_RARE bool same_text(const struct json_key *key, struct slice raw)
{
	return json_str_same(text_of(key), raw);
}

/* A table of `count` slots for the newest set, which may have `max` members, filled anew. */
static SCAN_RARE void slots_build(struct json_work *work, struct json_level *set, size_t count,
				  uint32_t max)
{
	const size_t mask = count - 1, members = (size_t)(work->key_top - set->keys);
	const size_t room = (size_t)(work->keys + KEYS_OPEN_MAX - set->keys);
	size_t stop = count / KEYS_SLOTS_EACH;
	uint16_t *slots = set->slots;

	must((size_t)(slots - work->slots) + count <= KEYS_SLOTS_MAX);
	work->slot_top = slots + count;
	(void)memset(slots, 0, count * sizeof(*slots));
	for (size_t i = 0; i < members; i++) {
		size_t at = hash_known(work, &set->keys[i]) & mask;
		while (slots[at] != 0)
			at = (at + 1) & mask;
		slots[at] = (uint16_t)(i + 1);
	}
	stop = stop < max ? stop : max;
	set->stop = set->keys + (stop < room ? stop : room);
	set->mask = mask;
}

/* The slot of the set's table that holds `raw`, or the empty one where it belongs: `at`, modulo their count, or
 * behind it. */
static inline uint16_t *slots_find(const struct json_level *set, size_t at, struct slice raw,
				   uint32_t hash)
{
	for (at &= set->mask; set->slots[at] != 0; at = (at + 1) & set->mask) {
		const struct json_key *key = &set->keys[set->slots[at] - 1];
		if (key->hash == hash && same_text(key, raw))
			break;
	}
	return &set->slots[at];
}

/* Whether a key of [key, end) is written like `raw`. */
static bool few_have_text(const struct json_key *key, const struct json_key *end, struct slice raw)
{
	for (; key < end; key++)
		if (key->len == raw.len && memcmp(key->at, raw.at, raw.len) == 0)
			return true;
	return false;
}

/* Whether a key of [key, end) means the same as `raw`. */
static bool few_mean(const struct json_work *work, struct json_key *key, const struct json_key *end,
		     struct slice raw, uint32_t hash)
{
	for (; key < end; key++)
		if (hash_known(work, key) == hash && same_text(key, raw))
			return true;
	return false;
}

static inline enum json_keys_answer append(struct json_work *work, struct slice raw, uint32_t hash)
{
	*work->key_top++ = (struct json_key){ raw.at, (uint32_t)raw.len, hash };
	return KEYS_ADDED;
}

/* Where a call would not cost what it saves: the common key of a large set goes through without one, in few registers.
 * The rest are calls in the last place, which cost a jump. */

static inline enum json_keys_answer append_in_slot(struct json_work *work,
						   const struct json_level *set, uint16_t *slot,
						   struct slice raw, uint32_t hash)
{
	*slot = (uint16_t)(work->key_top - set->keys + 1);
	return append(work, raw, hash);
}

/* Another key is in the slot `at`, where this one belongs. */
static SCAN_RARE enum json_keys_answer add_beside(struct json_work *work,
						  const struct json_level *set, size_t at,
						  struct slice raw, uint32_t hash)
{
	uint16_t *slot = slots_find(set, at, raw, hash);

	return *slot != 0 ? KEYS_DUPLICATE : append_in_slot(work, set, slot, raw, hash);
}

static inline enum json_keys_answer add_hashed(struct json_work *work, const struct json_level *set,
					       struct slice raw, uint32_t hash)
{
	const size_t at = hash & set->mask;
	uint16_t *slot = &set->slots[at];

	return *slot != 0 ? add_beside(work, set, at, raw, hash)
			  : append_in_slot(work, set, slot, raw, hash);
}

/* The set has outgrown the comparison one by one, or its table. */
static SCAN_RARE enum json_keys_answer add_to_grown(struct json_work *work, struct json_level *set,
						    uint32_t max, struct slice raw, bool escaped,
						    const char *end)
{
	size_t count = KEYS_SLOTS_FIRST;

	must(work->key_top - set->keys < KEYS_SET_MAX);
	if (set->stop == NULL)
		set->slots = work->slot_top;
	else
		count = KEYS_SLOTS_GROWTH * (set->mask + 1);
	slots_build(work, set, count, max);
	set->filter = KEYS_FILTER_FULL;
	return add_hashed(work, set, raw, hash_of(work, raw, escaped, end));
}

static SCAN_RARE enum json_keys_answer add_to_few(struct json_work *work, struct json_level *set,
						  struct slice raw, bool escaped, const char *end)
{
	struct json_key *first = set->keys, *top = work->key_top;

	if (escaped)
		set->filter = KEYS_FILTER_FULL;
	if (set->filter == KEYS_FILTER_FULL) {
		uint32_t hash = hash_of(work, raw, escaped, end);
		return few_mean(work, first, top, raw, hash) ? KEYS_DUPLICATE
							     : append(work, raw, hash);
	}
	bool last = end - raw.at <
		    8; /* of the text, so it is compared with all, and what follows, too */
	uint64_t bit = last ? KEYS_FILTER_FULL : (uint64_t)1 << json_keys_bit(raw.at, raw.len);
	if ((last || (set->filter & bit) != 0) && few_have_text(first, top, raw))
		return KEYS_DUPLICATE;
	set->filter |= bit;
	return append(work, raw, 0);
}

enum json_keys_answer json_keys_add(struct json_work *work, struct json_level *set, uint32_t max,
				    struct slice raw, bool escaped, const char *end)
{
	const size_t count = (size_t)(work->key_top - set->keys);

	if (count >= max || work->key_top >= work->keys + KEYS_OPEN_MAX)
		return KEYS_FULL;
	if (set->stop == NULL && count < KEYS_FEW)
		return add_to_few(work, set, raw, escaped, end);
	if (work->key_top >= set->stop)
		return add_to_grown(work, set, max, raw, escaped, end);
	return add_hashed(work, set, raw, hash_of(work, raw, escaped, end));
}

enum json_keys_answer json_keys_add_large(struct json_work *work, struct json_level *set,
					  const char *at, size_t len)
{
	const struct slice raw = slice_of(at, len);

	return add_hashed(work, set, raw, hash_plain(work->seed, raw, true));
}

bool json_keys_has(struct json_work *work, const struct json_level *set, const struct json_key *end,
		   struct slice raw)
{
	bool escaped = has_escape(raw);

	if (set->stop != NULL) {
		const uint32_t hash = hash_of(work, raw, escaped, raw.at + raw.len);
		return *slots_find(set, hash, raw, hash) != 0;
	}
	if (few_have_text(set->keys, end, raw))
		return true;
	if (!escaped && set->filter != KEYS_FILTER_FULL)
		return false;
	return few_mean(work, set->keys, end, raw, hash_of(work, raw, escaped, raw.at + raw.len));
}
