#include "gateway/net/net_timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 2000 };

static struct net_timer_heap make(uint32_t room)
{
	struct net_timer_heap heap;
	assert_true(net_timer_heap_init(&heap, room));
	return heap;
}

static void an_empty_heap_is_never_due(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(1);
	assert_int_equal(net_timer_heap_due(&heap), NSEC_NEVER);
	assert_null(net_timer_heap_pop(&heap, NSEC_NEVER));
	net_timer_heap_fini(&heap);
}

static void a_timer_is_due_at_its_time_and_not_before(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(1);
	struct net_timer timer = { 0 };
	net_timer_heap_set(&heap, &timer, 5 * SEC);
	assert_int_equal(net_timer_heap_due(&heap), 5 * SEC);
	assert_null(net_timer_heap_pop(&heap, 5 * SEC - 1));
	assert_ptr_equal(net_timer_heap_pop(&heap, 5 * SEC), &timer);
	assert_int_equal(timer.place, 0);
	assert_null(net_timer_heap_pop(&heap, NSEC_NEVER));
	net_timer_heap_fini(&heap);
}

static void setting_again_moves_a_timer(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(4);
	struct net_timer a = { 0 }, b = { 0 };
	net_timer_heap_set(&heap, &a, 10);
	net_timer_heap_set(&heap, &b, 20);
	net_timer_heap_set(&heap, &a, 30); /* later than b */
	assert_int_equal(heap.count, 2);
	assert_ptr_equal(net_timer_heap_pop(&heap, 100), &b);
	net_timer_heap_set(&heap, &b, 40);
	net_timer_heap_set(&heap, &b, 5); /* earlier than a */
	assert_ptr_equal(net_timer_heap_pop(&heap, 100), &b);
	assert_ptr_equal(net_timer_heap_pop(&heap, 100), &a);
	net_timer_heap_fini(&heap);
}

static void stopping_is_harmless_when_not_set(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(1);
	struct net_timer timer = { 0 };
	net_timer_heap_stop(&heap, &timer);
	net_timer_heap_set(&heap, &timer, 1);
	net_timer_heap_stop(&heap, &timer);
	net_timer_heap_stop(&heap, &timer);
	assert_int_equal(net_timer_heap_due(&heap), NSEC_NEVER);
	net_timer_heap_fini(&heap);
}

static void a_stopped_timer_can_be_set_again(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(1);
	struct net_timer timer = { 0 };
	net_timer_heap_set(&heap, &timer, 1);
	net_timer_heap_stop(&heap, &timer);
	net_timer_heap_set(&heap, &timer, 2);
	assert_ptr_equal(net_timer_heap_pop(&heap, 2), &timer);
	net_timer_heap_fini(&heap);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* The earliest by looking at all of them: the model of a heap. */
static nsec_t earliest(const struct net_timer *timers)
{
	nsec_t due = NSEC_NEVER;
	for (size_t i = 0; i < MANY; i++)
		if (timers[i].place != 0 && timers[i].due < due)
			due = timers[i].due;
	return due;
}

static void many_timers_come_out_in_order_of_time(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(1); /* grows */
	static struct net_timer timers[MANY];
	uint32_t seed = 1;
	for (size_t i = 0; i < MANY; i++)
		net_timer_heap_set(&heap, &timers[i], next_random(&seed) % 1000);
	assert_int_equal(heap.count, MANY);
	nsec_t last = 0;
	for (size_t i = 0; i < MANY; i++) {
		struct net_timer *timer = net_timer_heap_pop(&heap, NSEC_NEVER);
		assert_non_null(timer);
		assert_true(timer->due >= last);
		last = timer->due;
	}
	assert_null(net_timer_heap_pop(&heap, NSEC_NEVER));
	net_timer_heap_fini(&heap);
}

static void any_mix_of_setting_and_stopping_keeps_the_earliest_in_front(void **state)
{
	(void)state;
	struct net_timer_heap heap = make(8);
	static struct net_timer timers[MANY];
	uint32_t seed = 7;
	for (int step = 0; step < 20000; step++) {
		struct net_timer *timer = &timers[next_random(&seed) % MANY];
		if (next_random(&seed) % 3 == 0)
			net_timer_heap_stop(&heap, timer);
		else
			net_timer_heap_set(&heap, timer, next_random(&seed) % 5000);
		if (step % 64 == 0)
			assert_int_equal(net_timer_heap_due(&heap), earliest(timers));
	}
	for (nsec_t due; (due = earliest(timers)) != NSEC_NEVER;)
		assert_int_equal(net_timer_heap_pop(&heap, NSEC_NEVER)->due, due);
	assert_int_equal(heap.count, 0);
	net_timer_heap_fini(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_heap_is_never_due),
		cmocka_unit_test(a_timer_is_due_at_its_time_and_not_before),
		cmocka_unit_test(setting_again_moves_a_timer),
		cmocka_unit_test(stopping_is_harmless_when_not_set),
		cmocka_unit_test(a_stopped_timer_can_be_set_again),
		cmocka_unit_test(many_timers_come_out_in_order_of_time),
		cmocka_unit_test(any_mix_of_setting_and_stopping_keeps_the_earliest_in_front),
	};
	return cmocka_run_group_tests_name("net_timer", tests, NULL, NULL);
}
