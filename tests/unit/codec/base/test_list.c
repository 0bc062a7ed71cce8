/* A list through members: its order, and that an element leaves it from wherever it is. */
#include "codec/base/list.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 5 };

struct number {
	uint32_t value;
	struct list_link link;
};

static struct list list;
static struct number numbers[COUNT];

static int set_up(void **state)
{
	(void)state;
	list_init(&list);
	for (uint32_t i = 0; i < COUNT; i++) {
		numbers[i] = (struct number){ .value = i };
		list_add(&list, &numbers[i].link);
	}
	return 0;
}

/* The values as digits, the first one in front. */
static uint32_t digits(void)
{
	uint32_t sum = 0;

	for (struct list_link *at = list_first(&list); at != NULL; at = list_next(&list, at))
		sum = 10 * sum + CONTAINER_OF(at, struct number, link)->value + 1;
	return sum;
}

static void elements_are_in_the_order_in_which_they_came(void **state)
{
	(void)state;
	assert_int_equal(digits(), 12345);
	assert_ptr_equal(list_first(&list), &numbers[0].link);
}

static void an_element_leaves_from_wherever_it_is_and_may_come_again(void **state)
{
	(void)state;
	list_remove(&numbers[2].link);
	assert_int_equal(digits(), 1245);
	list_remove(&numbers[0].link);
	assert_int_equal(digits(), 245);
	list_remove(&numbers[4].link);
	assert_int_equal(digits(), 24);
	assert_false(list_has(&numbers[0].link));
	assert_true(list_has(&numbers[1].link));
	list_add(&list, &numbers[0].link);
	assert_int_equal(digits(), 241);
}

static void an_empty_list_has_no_first(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_false(list_is_empty(&list));
		list_remove(list_first(&list));
	}
	assert_true(list_is_empty(&list));
	assert_null(list_first(&list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(elements_are_in_the_order_in_which_they_came, set_up),
		cmocka_unit_test_setup(an_element_leaves_from_wherever_it_is_and_may_come_again,
				       set_up),
		cmocka_unit_test_setup(an_empty_list_has_no_first, set_up),
	};

	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
