#include "gateway/tls/tls_tickets.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tls_ticket_key newest(const struct tls_tickets *tickets)
{
	struct tls_ticket_key key;

	tls_tickets_newest(tickets, &key);
	return key;
}

static bool same(const struct tls_ticket_key *a, const struct tls_ticket_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void a_key_is_good_for_the_hour_after_its_own(void **state)
{
	struct tls_tickets *tickets = tls_tickets_new(5 * SEC);
	struct tls_ticket_key made[5], found;
	bool old;

	(void)state;
	assert_non_null(tickets);
	for (size_t n = 0; n < COUNT_OF(made); n++) {
		nsec_t born = 5 * SEC + n * TLS_TICKET_HOUR;
		assert_int_equal(tls_tickets_turn(tickets, born), n > 0);
		assert_false(tls_tickets_turn(tickets, born + TLS_TICKET_HOUR - 1));
		made[n] = newest(tickets);
		for (size_t i = 0; i <= n; i++) {
			old = i == n; /* must be written */
			assert_int_equal(tls_tickets_find(tickets, made[i].name, &found, &old),
					 n - i <= 1);
			if (n - i > 1)
				continue;
			assert_true(same(&found, &made[i]));
			assert_int_equal(old, i < n);
		}
	}
	tls_tickets_free(tickets);
}

static void no_two_keys_have_a_part_in_common(void **state)
{
	struct tls_tickets *a = tls_tickets_new(0), *b = tls_tickets_new(0);
	struct tls_ticket_key first = newest(a), other = newest(b), second;

	(void)state;
	assert_true(tls_tickets_turn(a, TLS_TICKET_HOUR));
	second = newest(a);
	const struct tls_ticket_key *pairs[][2] = { { &first, &other }, { &first, &second } };
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		const struct tls_ticket_key *x = pairs[i][0], *y = pairs[i][1];
		assert_memory_not_equal(x->name, y->name, sizeof(x->name));
		assert_memory_not_equal(x->cipher, y->cipher, sizeof(x->cipher));
		assert_memory_not_equal(x->mac, y->mac, sizeof(x->mac));
	}
	assert_memory_not_equal(first.cipher, first.mac, sizeof(first.cipher));
	tls_tickets_free(a);
	tls_tickets_free(b);
}

/* The server dies, the supervisor starts another: both see what the first has made. */
static void a_key_made_by_a_child_process_is_its_parents_and_its_siblings(void **state)
{
	struct tls_tickets *tickets = tls_tickets_new(0);
	struct tls_ticket_key before = newest(tickets), found;
	bool old = false;
	int status;

	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(tls_tickets_turn(tickets, TLS_TICKET_HOUR) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct tls_ticket_key after = newest(tickets);
	assert_false(same(&before, &after));
	assert_true(tls_tickets_find(tickets, before.name, &found, &old) && old);
	child = fork();
	if (child == 0) {
		struct tls_ticket_key seen = newest(tickets);
		_exit(same(&seen, &after) && !tls_tickets_turn(tickets, TLS_TICKET_HOUR + 1) ? 0
											     : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tls_tickets_free(tickets);
}

struct reading {
	const struct tls_tickets *tickets;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
};

static void *read_keys(void *arg)
{
	struct reading *reading = arg;
	struct tls_ticket_key key, found;
	bool old;

	while (!atomic_load(&reading->stop)) {
		tls_tickets_newest(reading->tickets, &key);
		if (tls_tickets_find(reading->tickets, key.name, &found, &old) &&
		    !same(&key, &found))
			return arg;
		atomic_fetch_add(&reading->rounds, 1);
	}
	return NULL;
}

/* Far faster than once an hour, so that a reader may well miss its key; but what it gets is whole.
 * The writer waits for a round of reading, as an hour would. */
static void readers_get_whole_keys_while_new_ones_are_made(void **state)
{
	struct tls_tickets *tickets = tls_tickets_new(0);
	struct reading reading = { .tickets = tickets };
	pthread_t threads[2];
	void *broken;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_keys, &reading), 0);
	for (nsec_t hour = 1; hour <= 200; hour++) {
		uint64_t seen = atomic_load(&reading.rounds);
		while (atomic_load(&reading.rounds) < seen + 4)
			;
		assert_true(tls_tickets_turn(tickets, hour * TLS_TICKET_HOUR));
	}
	atomic_store(&reading.stop, true);
	for (size_t i = 0; i < COUNT_OF(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &broken), 0);
		assert_null(broken);
	}
	tls_tickets_free(tickets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_good_for_the_hour_after_its_own),
		cmocka_unit_test(no_two_keys_have_a_part_in_common),
		cmocka_unit_test(a_key_made_by_a_child_process_is_its_parents_and_its_siblings),
		cmocka_unit_test(readers_get_whole_keys_while_new_ones_are_made),
	};

	return cmocka_run_group_tests_name("tls_tickets", tests, NULL, NULL);
}
