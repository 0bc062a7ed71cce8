/* Requests of sessions that are called off: those of that key, wherever they are, and nobody else. */
#include "gateway/state/cancel.h"

#include "tests/unit/gateway/net/inbox_rig.h"

struct someone {
	struct cancel_entry entry;
	int told;
	bool leaves; /* when it is told */
};

static struct some_worker workers[2];
static struct cancel_table *cancels;

static void on_called_off(struct cancel_entry *entry)
{
	struct someone *s = CONTAINER_OF(entry, struct someone, entry);

	s->told++;
	if (s->leaves)
		cancel_leave(entry);
}

static struct state_key key_of(const char *id)
{
	return state_key_of(STATE_IDEMPOTENCY, SLICE("acme"), SLICE("billing"), SLICE("session"),
			    slice_str(id));
}

static void enter(struct someone *s, const char *id, int worker)
{
	*s = (struct someone){ .entry = { .key = key_of(id), .cancelled = on_called_off } };
	cancel_enter(cancels, &s->entry, &workers[worker].inbox);
}

static void turn(void)
{
	(void)loop_turn(&workers[0].loop, false);
	(void)loop_turn(&workers[1].loop, false);
}

static int set_up(void **state)
{
	(void)state;
	some_worker_init(&workers[0]);
	some_worker_init(&workers[1]);
	cancels = cancel_table_new();
	return cancels == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	cancel_table_free(cancels); /* which must be empty */
	return 0;
}

static void all_of_the_key_are_told_on_their_own_workers(void **state)
{
	struct someone a, b, c;

	(void)state;
	enter(&a, "1", 0);
	enter(&b, "1", 1);
	enter(&c, "2", 0);
	assert_int_equal(cancel_all(cancels, key_of("1")), 2);
	(void)loop_turn(&workers[0].loop, false);
	assert_true(a.told == 1 && b.told == 0);
	(void)loop_turn(&workers[1].loop, false);
	assert_true(b.told == 1 && c.told == 0);
	assert_int_equal(cancel_all(cancels, key_of("3")), 0);
	cancel_leave(&a.entry);
	cancel_leave(&b.entry);
	cancel_leave(&c.entry);
	cancel_leave(&c.entry); /* harmless */
}

static void a_key_is_known_while_one_of_it_is_in(void **state)
{
	struct someone a, b;

	(void)state;
	assert_false(cancel_has(cancels, key_of("1")));
	enter(&a, "1", 0);
	enter(&b, "1", 1);
	assert_true(cancel_has(cancels, key_of("1")));
	assert_false(cancel_has(cancels, key_of("2")));
	cancel_leave(&a.entry);
	assert_true(cancel_has(cancels, key_of("1")));
	cancel_leave(&b.entry);
	assert_false(cancel_has(cancels, key_of("1")));
	turn();
	assert_true(a.told == 0 && b.told == 0); /* asking tells nobody */
}

static void who_has_left_is_not_told_any_more(void **state)
{
	struct someone a, again;

	(void)state;
	enter(&a, "1", 0);
	assert_int_equal(cancel_all(cancels, key_of("1")), 1);
	cancel_leave(&a.entry); /* it was answered before its turn came */
	enter(&again, "1", 0);  /* another one, of the same id */
	turn();
	assert_true(a.told == 0 && again.told == 0);
	cancel_leave(&again.entry);
	assert_int_equal(cancel_all(cancels, key_of("1")), 0);
}

static void who_is_told_may_leave_from_inside(void **state)
{
	struct someone many[20];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(many); i++) {
		enter(&many[i], "1", i % 2);
		many[i].leaves = true;
	}
	assert_int_equal(cancel_all(cancels, key_of("1")), COUNT_OF(many));
	turn();
	for (size_t i = 0; i < COUNT_OF(many); i++)
		assert_int_equal(many[i].told, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(all_of_the_key_are_told_on_their_own_workers),
		IN(a_key_is_known_while_one_of_it_is_in),
		IN(who_has_left_is_not_told_any_more),
		IN(who_is_told_may_leave_from_inside),
	};
	return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
