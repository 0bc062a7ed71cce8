#include "gateway/limits/limit_table.h"

#include "codec/base/must.h"
#include "gateway/limits/limit_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file: a page of header, the index, the slots. The index is a hash table of words (tag in the
 * high half, slot number + 1 in the low half), twice as long as there are slots, so that a search
 * always ends. Slots are handed out in turn: those in use lie together, and their numbers are dense.
 *
 * Every step is one compare-and-swap on one word, so a process that dies leaves nothing half done:
 * no lock to break, no state to finish. */
enum {
	TABLE_MAGIC = 0x534c5433, /* changes with the layout */
	PAGE_BYTES = 4096,
	SLOTS_MAX = 1 << 24,
};

struct table_header {
	uint32_t magic;
	uint32_t slots;           /* a power of two */
	_Atomic uint64_t claimed; /* slots handed out so far */
	_Atomic uint64_t spare; /* number + 1 of a slot that was claimed but not needed, 0: none */
};

_Static_assert(sizeof(struct table_header) <= PAGE_BYTES, "the header fits its page");

struct limit_table {
	struct table_header *header;
	_Atomic uint64_t *index;
	struct limit_slot *slots;
	uint64_t index_mask;
	size_t bytes;
};

/* ---- the file ---- */

static size_t slots_offset(size_t slots)
{
	const size_t index_bytes = 2 * slots * sizeof(uint64_t);

	return PAGE_BYTES + (index_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t file_bytes(size_t slots)
{
	return slots_offset(slots) + slots * SLOT_BYTES;
}

int limit_table_create(size_t slots)
{
	struct table_header header = { .magic = TABLE_MAGIC, .slots = 2 };

	if (slots == 0 || slots > SLOTS_MAX / 2) {
		errno = EINVAL;
		return -1;
	}
	while (header.slots < 2 * slots)
		header.slots *= 2;

	const int fd = memfd_create("sluice-limits", MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)file_bytes(header.slots)) == 0 &&
	    pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	const int reason = errno;
	(void)close(fd);
	errno = reason;
	return -1;
}

static bool header_holds(const struct table_header *header, size_t bytes)
{
	return header->magic == TABLE_MAGIC && header->slots >= 2 && header->slots <= SLOTS_MAX &&
	       (header->slots & (header->slots - 1)) == 0 && file_bytes(header->slots) == bytes;
}

struct limit_table *limit_table_map(int fd)
{
	struct stat about;

	if (fstat(fd, &about) != 0)
		return NULL;
	if (about.st_size < PAGE_BYTES) {
		errno = EINVAL;
		return NULL;
	}
	const size_t bytes = (size_t)about.st_size;
	struct table_header *header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return NULL;

	struct limit_table *table = NULL;
	if (!header_holds(header, bytes))
		errno = EINVAL;
	else
		table = malloc(sizeof(*table));
	if (table == NULL) {
		const int reason = errno;
		(void)munmap(header, bytes);
		errno = reason;
		return NULL;
	}
	*table = (struct limit_table){
		.header = header,
		.index = (void *)((char *)header + PAGE_BYTES),
		.slots = (void *)((char *)header + slots_offset(header->slots)),
		.index_mask = 2 * (uint64_t)header->slots - 1,
		.bytes = bytes,
	};
	return table;
}

void limit_table_unmap(struct limit_table *table)
{
	if (table == NULL)
		return;
	(void)munmap(table->header, table->bytes);
	free(table);
}

void limit_table_recover(struct limit_table *table)
{
	const uint64_t claimed = atomic_load(&table->header->claimed);

	/* Slots that were claimed but never shown are zero, or will be named anew. */
	for (uint64_t i = 0; i < claimed && i < table->header->slots; i++)
		atomic_store(&table->slots[i].concurrent, 0);
}

/* ---- slots ---- */

/* How many slots may be claimed when one of that holder is the last of them. */
static uint64_t room_for(const struct limit_table *table, enum limit_holder holder)
{
	static const uint8_t quarters[LIMIT_HOLDERS] = {
		[LIMIT_OF_TENANT] = 4,
		[LIMIT_OF_SERVER] = 2,
		[LIMIT_OF_MODEL] = 3,
		[LIMIT_OF_COUNTS] = 3,
	};

	must((unsigned)holder < LIMIT_HOLDERS);
	return (uint64_t)table->header->slots * quarters[holder] / 4;
}

/* A slot nobody else knows of, with its name written; NULL when `room` are claimed and none is spare. */
static struct limit_slot *slot_claim(struct limit_table *table, uint64_t room,
				     const uint8_t key[16])
{
	struct table_header *header = table->header;
	uint64_t number = atomic_exchange(&header->spare, 0);

	if (number == 0) {
		uint64_t claimed = atomic_load(&header->claimed);
		do {
			if (claimed >= room)
				return NULL;
		} while (!atomic_compare_exchange_weak(&header->claimed, &claimed, claimed + 1));
		number = claimed + 1;
	}
	struct limit_slot *slot = &table->slots[number - 1];
	(void)memcpy(slot->name, key, sizeof(slot->name));
	return slot;
}

/* Somebody else was faster to show a slot of that name: the next claim takes this one. A second
 * spare is forgotten, which takes two such races at once. */
static void slot_spare(struct limit_table *table, const struct limit_slot *slot)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&table->header->spare, &none,
					     (uint64_t)limit_slot_index(table, slot) + 1);
}

static struct limit_slot *slot_at(struct limit_table *table, uint64_t entry)
{
	const uint32_t number = (uint32_t)entry; /* + 1 */

	must(number >= 1 && number <= table->header->slots);
	return &table->slots[number - 1];
}

struct limit_slot *limit_table_slot(struct limit_table *table, const uint8_t key[16])
{
	return limit_table_slot_for(table, LIMIT_OF_TENANT, key);
}

struct limit_slot *limit_table_slot_for(struct limit_table *table, enum limit_holder holder,
					const uint8_t key[16])
{
	const uint64_t room = room_for(table, holder);
	uint64_t place, tag; /* a key is a digest, so its bytes are chance enough */
	struct limit_slot *mine = NULL, *found = NULL;

	(void)memcpy(&place, key, sizeof(place));
	(void)memcpy(&tag, key + sizeof(place), sizeof(tag));
	tag &= ~(uint64_t)UINT32_MAX;
	for (; found == NULL; place++) {
		_Atomic uint64_t *entry = &table->index[place & table->index_mask];
		uint64_t seen = atomic_load_explicit(entry, memory_order_acquire);

		if (seen == 0) {
			if (mine == NULL && (mine = slot_claim(table, room, key)) == NULL)
				return NULL;
			if (atomic_compare_exchange_strong(
				    entry, &seen,
				    tag | ((uint64_t)limit_slot_index(table, mine) + 1)))
				return mine;
		}
		if ((seen & ~(uint64_t)UINT32_MAX) == tag &&
		    memcmp(slot_at(table, seen)->name, key, sizeof(mine->name)) == 0)
			found = slot_at(table, seen);
	}
	if (mine != NULL)
		slot_spare(table, mine);
	return found;
}

bool limit_table_find(struct limit_table *table, struct limit_scope *scopes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct limit_scope *scope = &scopes[i];
		scope->slot = limit_table_slot_for(table, scope->holder, scope->key);
		if (scope->slot == NULL && scope->holder == LIMIT_OF_SERVER) {
			/* no digest that anybody else has */
			(void)memcpy(scope->key, scopes[0].key, sizeof(scope->key));
			scope->key[0] = (uint8_t)~scope->key[0];
			scope->slot = limit_table_slot(table, scope->key);
		}
		if (scope->slot == NULL)
			return false;
	}
	return true;
}

uint32_t limit_slot_index(const struct limit_table *table, const struct limit_slot *slot)
{
	return (uint32_t)(slot - table->slots);
}

size_t limit_table_slots(const struct limit_table *table)
{
	return table->header->slots;
}

size_t limit_table_claimed(const struct limit_table *table)
{
	return atomic_load_explicit(&table->header->claimed, memory_order_relaxed);
}
