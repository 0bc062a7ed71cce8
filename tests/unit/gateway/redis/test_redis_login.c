/* Another password for the connection to Redis, at every moment at which it can come. */
#include "tests/unit/gateway/redis/redis_link_rig.h"

#define AUTH(password) "*3\r\n$4\r\nAUTH\r\n$4\r\ngate\r\n$3\r\n" password "\r\n"

static struct redis_link *known_link(void)
{
	char user[] = "gate", password[] = "old", name[] = "redis://test";
	struct redis_link_args args = arguments(1);

	args.user = slice_str(user);
	args.password = slice_str(password);
	args.name = name;
	struct redis_link *link = link_of(args);
	(void)memset(user, 'x', sizeof(user) - 1);
	(void)memset(password, 'x', sizeof(password) - 1);
	(void)memset(name, 'x', sizeof(name) - 1);
	pass(0);
	opened();
	assert_written(AUTH("old") PROBE);
	return link;
}

static void set_password(struct redis_link *link, const char *password)
{
	char user[] = "gate", copy[8];

	(void)snprintf(copy, sizeof(copy), "%s", password);
	redis_link_set_login(link, slice_str(user), slice_str(copy));
	(void)memset(copy, 'x', sizeof(copy));
	turn();
}

static void another_password_is_told_at_once_between_the_requests(void **state)
{
	struct redis_link *link = known_link();

	(void)state;
	says("+OK\r\n+OK\r\n");
	set_password(link, "old");
	assert_written("");
	assert_true(ask(link));
	set_password(link, "new");
	assert_true(ask(link));
	turn();
	assert_written(PING AUTH("new") PING);
	says("+PONG\r\n+OK\r\n+PONG\r\n");
	assert_int_equal(told.answered, 2);
	assert_int_equal(told.ready, 1);
	assert_int_equal(told.unready, 0);
	set_password(link, "new");
	assert_written("");
	ended(NET_END_CLOSED);
	pass(25 * MSEC);
	opened();
	assert_written(AUTH("new") PROBE);
}

static void a_password_that_is_refused_leaves_the_connection_in_use(void **state)
{
	struct redis_link *link = known_link();

	(void)state;
	says("+OK\r\n+OK\r\n");
	set_password(link, "bad");
	assert_written(AUTH("bad"));
	says("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	assert_true(conn.open);
	assert_int_equal(told.unready, 0);
	assert_true(ask(link));
	turn();
	assert_written(PING);
}

static void a_password_that_comes_during_the_greeting_is_told_after_it(void **state)
{
	struct redis_link *link = known_link();

	(void)state;
	set_password(link, "new");
	assert_written("");
	says("+OK\r\n+OK\r\n");
	assert_int_equal(told.ready, 1);
	assert_written(AUTH("new"));
	says("+OK\r\n");
	assert_int_equal(told.ready, 1);
}

static void a_password_that_comes_before_the_connection_greets_it(void **state)
{
	struct redis_link *link = known_link();

	(void)state;
	says("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	assert_false(conn.open);
	set_password(link, "new");
	pass(25 * MSEC);
	opened();
	assert_written(AUTH("new") PROBE);
	says("+OK\r\n+OK\r\n");
	assert_int_equal(told.ready, 1);
	assert_written("");
}

static void a_password_that_is_answered_late_is_trouble_until_a_probe(void **state)
{
	struct redis_link *link = known_link();

	(void)state;
	says("+OK\r\n+OK\r\n");
	set_password(link, "new");
	assert_written(AUTH("new"));
	pass(30 * MSEC);
	assert_int_equal(told.unready, 1);
	assert_int_equal(told.late, 0); /* it is nobody's */
	says("+OK\r\n");
	assert_written(PROBE);
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_password_is_told_at_once_between_the_requests),
		cmocka_unit_test(a_password_that_is_refused_leaves_the_connection_in_use),
		cmocka_unit_test(a_password_that_comes_during_the_greeting_is_told_after_it),
		cmocka_unit_test(a_password_that_comes_before_the_connection_greets_it),
		cmocka_unit_test(a_password_that_is_answered_late_is_trouble_until_a_probe),
	};

	return cmocka_run_group_tests_name("redis_login", tests, NULL, NULL);
}
