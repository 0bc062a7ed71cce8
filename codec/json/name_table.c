#include "codec/json/name_table.h"

#include "codec/json/json_scan.h"

enum { NAMES_FIRST = 8 };

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The last one to eight bytes of `s` as a word; bytes before them may be in it again. */
static inline uint64_t last_word(struct slice s)
{
	uint32_t head, tail;

	if (s.len >= 8)
		return scan_load8(s.at + s.len - 8);
	if (s.len < 4)
		return s.len == 0 ? 0
				  : (uint64_t)(unsigned char)s.at[0] << 16 |
					    (uint64_t)(unsigned char)s.at[s.len / 2] << 8 |
					    (unsigned char)s.at[s.len - 1];
	(void)memcpy(&head, s.at, sizeof(head));
	(void)memcpy(&tail, s.at + s.len - sizeof(tail), sizeof(tail));
	return (uint64_t)head << 32 | tail;
}

/* Multiplied from a secret start: enough against collisions chosen without knowing the seed. */
uint32_t name_hash(uint64_t seed, struct slice s)
{
	const uint64_t word = 0x9fb21c651e98df25ull, end = 0xd6e8feb86659fd93ull;
	uint64_t hash = seed;

	for (size_t i = 0; i + 8 < s.len; i += 8)
		hash = mix(hash ^ scan_load8(s.at + i), word);
	hash = mix(hash ^ last_word(s), word);
	hash = mix(hash ^ s.len, end);
	return (uint32_t)(hash ^ hash >> 32);
}

/* The slot that holds the entry, or the empty one where it belongs; cap is a power of two. */
static uint32_t *slot_of(const struct name_table *names, struct slice plain, uint32_t hash)
{
	uint32_t mask = 2 * names->cap - 1, at = hash & mask;

	for (; names->slots[at] != 0; at = (at + 1) & mask) {
		const struct name_entry *entry = &names->entries[names->slots[at] - 1];
		if (entry->hash == hash && slice_eq(entry->key, plain))
			break;
	}
	return &names->slots[at];
}

static bool name_table_grow(struct name_table *names)
{
	uint32_t cap = names->cap == 0 ? NAMES_FIRST : 2 * names->cap;
	struct name_entry *entries = arena_take(names->into, cap * sizeof(*entries));
	uint32_t *slots = arena_zero(names->into, 2 * (size_t)cap * sizeof(*slots));

	if (entries == NULL || slots == NULL)
		return false;
	if (names->count != 0)
		(void)memcpy(entries, names->entries, names->count * sizeof(*entries));
	names->entries = entries;
	names->slots = slots;
	names->cap = cap;
	for (uint32_t i = 0; i < names->count; i++)
		*slot_of(names, entries[i].key, entries[i].hash) = i + 1;
	return true;
}

uint32_t name_table_find(const struct name_table *names, struct slice plain)
{
	if (names->count == 0)
		return NAME_NONE;
	return *slot_of(names, plain, name_hash(names->seed, plain)) - 1; /* 0 - 1 is NAME_NONE */
}

uint32_t name_table_put(struct name_table *names, struct slice plain)
{
	uint32_t hash = name_hash(names->seed, plain);
	uint32_t *slot = names->count == 0 ? NULL : slot_of(names, plain, hash);

	if (slot != NULL && *slot != 0)
		return *slot - 1;
	if (names->count == names->cap) {
		if (!name_table_grow(names))
			return NAME_NONE;
		slot = NULL;
	}
	if (slot == NULL)
		slot = slot_of(names, plain, hash);
	names->entries[names->count] = (struct name_entry){ .key = plain, .hash = hash };
	*slot = ++names->count;
	return names->count - 1;
}
