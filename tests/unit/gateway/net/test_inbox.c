/* What other threads put into a worker's inbox: told once, or taken back and never told. */
#include "tests/unit/gateway/net/inbox_rig.h"

struct told {
	struct inbox_item item;
	char name;
	struct told *puts; /* in turn, when it is run; NULL: nobody */
	struct told *takes_back;
};

static struct some_worker worker;
static char trace[64];

static void note(struct inbox_item *item)
{
	struct told *told = CONTAINER_OF(item, struct told, item);
	const size_t len = strlen(trace);

	trace[len] = told->name;
	trace[len + 1] = '\0';
	if (told->puts != NULL)
		inbox_put(&worker.inbox, &told->puts->item);
	if (told->takes_back != NULL)
		inbox_take_back(&worker.inbox, &told->takes_back->item);
}

static struct told told_as(char name)
{
	return (struct told){ .item.run = note, .name = name };
}

static int set_up(void **state)
{
	(void)state;
	some_worker_init(&worker);
	trace[0] = '\0';
	return 0;
}

static void items_are_run_in_their_order_with_one_message(void **state)
{
	struct told a = told_as('a'), b = told_as('b'), c = told_as('c');

	(void)state;
	inbox_put(&worker.inbox, &a.item);
	inbox_put(&worker.inbox, &b.item);
	inbox_put(&worker.inbox, &a.item); /* is in already */
	inbox_put(&worker.inbox, &c.item);
	assert_string_equal(trace, "");
	assert_int_equal(loop_turn(&worker.loop, false), 1);
	assert_string_equal(trace, "abc");
	assert_int_equal(loop_turn(&worker.loop, false), 0);
	inbox_put(&worker.inbox, &b.item); /* and again */
	assert_int_equal(loop_turn(&worker.loop, false), 1);
	assert_string_equal(trace, "abcb");
}

static void what_is_taken_back_is_not_told(void **state)
{
	struct told items[4] = { told_as('a'), told_as('b'), told_as('c'), told_as('d') };
	struct told never = told_as('n');

	(void)state;
	for (int gone = 0; gone < 16; gone++) {
		char expected[5], *at = expected;
		trace[0] = '\0';
		for (int i = 0; i < 4; i++)
			inbox_put(&worker.inbox, &items[i].item);
		for (int i = 0; i < 4; i++)
			if ((gone >> i & 1) != 0)
				inbox_take_back(&worker.inbox, &items[i].item);
			else
				*at++ = items[i].name;
		*at = '\0';
		inbox_take_back(&worker.inbox, &never.item); /* harmless when it is not in */
		(void)loop_turn(&worker.loop, false);
		assert_string_equal(trace, expected);
	}
}

static void an_item_may_put_and_take_back_others(void **state)
{
	struct told a = told_as('a'), b = told_as('b'), c = told_as('c');

	(void)state;
	a.puts = &c;
	a.takes_back = &b;
	inbox_put(&worker.inbox, &a.item);
	inbox_put(&worker.inbox, &b.item);
	(void)loop_turn(&worker.loop, false);
	assert_string_equal(trace, "ac");
}

/* ---- threads: what was taken back is never run afterwards, and nothing is lost --------------- */

enum { ROUNDS = 4000 };

static struct shared {
	pthread_mutex_t lock; /* the promise of inbox_put's caller: the item is there */
	struct told *item;
	bool over;
} shared;

static uint64_t ran;

static void count(struct inbox_item *item)
{
	(void)item;
	ran++;
}

static void *put_often(void *arg)
{
	bool over = false;

	(void)arg;
	while (!over) {
		must(pthread_mutex_lock(&shared.lock) == 0);
		if (shared.item != NULL)
			inbox_put(&worker.inbox, &shared.item->item);
		over = shared.over;
		must(pthread_mutex_unlock(&shared.lock) == 0);
	}
	return NULL;
}

static void set_item(struct told *item, bool over)
{
	must(pthread_mutex_lock(&shared.lock) == 0);
	shared.item = item;
	shared.over = over;
	must(pthread_mutex_unlock(&shared.lock) == 0);
}

static void a_worker_may_free_what_it_has_taken_back(void **state)
{
	pthread_t threads[3];

	(void)state;
	must(pthread_mutex_init(&shared.lock, NULL) == 0);
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_often, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct told *item = malloc(sizeof(*item));
		must(item != NULL);
		*item = (struct told){ .item.run = count };
		set_item(item, false);
		(void)loop_turn(&worker.loop, i % 16 == 0); /* at times until one has come */
		set_item(NULL, false);
		inbox_take_back(&worker.inbox, &item->item);
		free(item); /* the sanitizers watch */
	}
	set_item(NULL, true);
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	const uint64_t before = ran;
	(void)loop_turn(&worker.loop, false);
	assert_int_equal(ran, before);
	assert_true(ran > 0);
	print_message("%llu of %d were told in time\n", (unsigned long long)ran, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup(test, set_up)
		IN(items_are_run_in_their_order_with_one_message),
		IN(what_is_taken_back_is_not_told),
		IN(an_item_may_put_and_take_back_others),
		IN(a_worker_may_free_what_it_has_taken_back),
	};
	return cmocka_run_group_tests_name("inbox", tests, NULL, NULL);
}
