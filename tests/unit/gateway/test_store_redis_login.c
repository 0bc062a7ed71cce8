/* Who a connection to Redis says it is: copies, and the command that says so. */
#include "gateway/store_redis_login.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) cmocka_unit_test(name)

static const struct slice absent = { NULL, 0 };

static void assert_word(struct slice word, const char *text)
{
	assert_true(slice_eq(word, slice_str(text)));
}

static void the_command_has_the_user_if_there_is_one(void **state)
{
	struct redis_login login = { 0 };
	struct slice words[REDIS_LOGIN_WORDS];

	(void)state;
	assert_int_equal(redis_login_command(&login, words), 0);
	assert_true(redis_login_set(&login, absent, SLICE("pw")));
	assert_int_equal(redis_login_command(&login, words), 2);
	assert_word(words[0], "AUTH");
	assert_word(words[1], "pw");
	assert_true(redis_login_set(&login, SLICE("gate"), SLICE("")));
	assert_int_equal(redis_login_command(&login, words), 3);
	assert_word(words[1], "gate");
	assert_word(words[2], "");
	assert_true(redis_login_set(&login, SLICE("gate"), absent));
	assert_int_equal(redis_login_command(&login, words), 0);
	redis_login_fini(&login);
	assert_int_equal(redis_login_command(&login, words), 0);
}

static void it_keeps_copies_and_may_be_set_to_what_it_has(void **state)
{
	char user[] = "gate", password[] = "pw";
	struct redis_login login = { 0 };
	struct slice words[REDIS_LOGIN_WORDS];

	(void)state;
	assert_true(redis_login_set(&login, slice_str(user), slice_str(password)));
	user[0] = password[0] = 'x';
	assert_true(redis_login_set(&login, login.user, login.password));
	assert_int_equal(redis_login_command(&login, words), 3);
	assert_word(words[1], "gate");
	assert_word(words[2], "pw");
	redis_login_fini(&login);
}

static void absent_is_not_empty(void **state)
{
	struct redis_login login = { 0 };

	(void)state;
	assert_true(redis_login_is(&login, absent, absent));
	assert_false(redis_login_is(&login, absent, SLICE("")));
	assert_true(redis_login_set(&login, absent, SLICE("")));
	assert_true(redis_login_is(&login, absent, SLICE("")));
	assert_false(redis_login_is(&login, absent, absent));
	assert_false(redis_login_is(&login, SLICE(""), SLICE("")));
	redis_login_fini(&login);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_command_has_the_user_if_there_is_one),
		TEST(it_keeps_copies_and_may_be_set_to_what_it_has),
		TEST(absent_is_not_empty),
	};

	return cmocka_run_group_tests_name("store_redis_login", tests, NULL, NULL);
}
