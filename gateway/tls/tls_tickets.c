#include "gateway/tls/tls_tickets.h"

#include "codec/base/must.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* The newest, the one before, and one that nobody looks at: there the next is written. */
enum { TICKETS_MAGIC = 0x544b5453, PLACES = 3, KEY_WORDS = sizeof(struct tls_ticket_key) / 8 };

_Static_assert(sizeof(struct tls_ticket_key) % 8 == 0, "a key is whole words");

struct tls_tickets {
	uint32_t magic;
	_Atomic uint32_t count; /* keys ever made; the newest is in place (count - 1) % PLACES */
	nsec_t made;            /* when; the writer's own */
	_Atomic uint64_t keys[PLACES][KEY_WORDS];
};

static void write_key(struct tls_tickets *tickets, uint32_t number)
{
	uint64_t words[KEY_WORDS];

	must(getrandom(words, sizeof(words), 0) == (ssize_t)sizeof(words));
	atomic_thread_fence(memory_order_release); /* the present count, before the first word */
	for (size_t i = 0; i < KEY_WORDS; i++)
		atomic_store_explicit(&tickets->keys[number % PLACES][i], words[i],
				      memory_order_relaxed);
	explicit_bzero(words, sizeof(words));
}

/* False for who was stopped in here until the key's place was written again. */
static bool read_key(const struct tls_tickets *tickets, uint32_t number, struct tls_ticket_key *out)
{
	uint64_t words[KEY_WORDS];

	for (size_t i = 0; i < KEY_WORDS; i++)
		words[i] = atomic_load_explicit(&tickets->keys[number % PLACES][i],
						memory_order_relaxed);
	(void)memcpy(out, words, sizeof(words));
	explicit_bzero(words, sizeof(words));
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&tickets->count, memory_order_relaxed) - number < PLACES;
}

struct tls_tickets *tls_tickets_new(nsec_t now)
{
	struct tls_tickets *tickets = mmap(NULL, sizeof(*tickets), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (tickets == MAP_FAILED)
		return NULL;
	(void)madvise(tickets, sizeof(*tickets), MADV_DONTDUMP);
	tickets->magic = TICKETS_MAGIC;
	tickets->made = now;
	write_key(tickets, 0);
	atomic_store_explicit(&tickets->count, 1, memory_order_release);
	return tickets;
}

void tls_tickets_free(struct tls_tickets *tickets)
{
	if (tickets == NULL)
		return;
	must_obj(tickets, TICKETS_MAGIC);
	explicit_bzero(tickets, sizeof(*tickets));
	(void)munmap(tickets, sizeof(*tickets));
}

/* A writer that dies in here leaves the keys as they were, and the next one tries again. */
bool tls_tickets_turn(struct tls_tickets *tickets, nsec_t now)
{
	must_obj(tickets, TICKETS_MAGIC);
	if (now - tickets->made < TLS_TICKET_HOUR)
		return false;
	uint32_t count = atomic_load_explicit(&tickets->count, memory_order_relaxed);
	write_key(tickets, count);
	atomic_store_explicit(&tickets->count, count + 1, memory_order_release);
	tickets->made = now;
	return true;
}

void tls_tickets_newest(const struct tls_tickets *tickets, struct tls_ticket_key *out)
{
	must_obj(tickets, TICKETS_MAGIC);
	while (!read_key(tickets, atomic_load_explicit(&tickets->count, memory_order_acquire) - 1,
			 out))
		;
}

bool tls_tickets_find(const struct tls_tickets *tickets, const uint8_t name[16],
		      struct tls_ticket_key *out, bool *old)
{
	must_obj(tickets, TICKETS_MAGIC);
	uint32_t count = atomic_load_explicit(&tickets->count, memory_order_acquire);
	for (uint32_t back = 1; back <= 2 && back <= count; back++) {
		struct tls_ticket_key key;
		bool found = read_key(tickets, count - back, &key) &&
			     memcmp(key.name, name, sizeof(key.name)) == 0;
		if (found) {
			*out = key;
			*old = back == 2;
		}
		explicit_bzero(&key, sizeof(key));
		if (found)
			return true;
	}
	return false;
}
