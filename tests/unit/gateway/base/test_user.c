/* test_user.c - who a user is; becoming one is integration/test_user.py's. */
#include "gateway/base/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_user_is_found_by_name(void **state)
{
	struct user user;
	(void)state;

	assert_true(user_find(SLICE("root"), &user));
	assert_string_equal(user.name, "root");
	assert_int_equal(user.uid, 0);
	assert_int_equal(user.gid, 0);
	/* a slice of more than the name */
	assert_true(user_find(slice_of("rootless", 4), &user));
}

static void a_user_that_is_not_there_leaves_the_result_alone(void **state)
{
	struct user user = { .name = "before", .uid = 7 };
	(void)state;

	assert_false(user_find(SLICE("no-such-user-here"), &user));
	assert_false(user_find(SLICE(""), &user));
	assert_string_equal(user.name, "before");
	assert_int_equal(user.uid, 7);
}

static void only_somebody_else_is_a_change(void **state)
{
	const struct user nobody_named = { .name = "", .uid = getuid() + 1 };
	const struct user self = { .name = "self", .uid = getuid() };
	const struct user other = { .name = "other", .uid = getuid() + 1 };
	(void)state;

	assert_false(user_is_another(&nobody_named));
	assert_false(user_is_another(&self));
	assert_true(user_is_another(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_is_found_by_name),
		cmocka_unit_test(a_user_that_is_not_there_leaves_the_result_alone),
		cmocka_unit_test(only_somebody_else_is_a_change),
	};

	return cmocka_run_group_tests_name("user", tests, NULL, NULL);
}
