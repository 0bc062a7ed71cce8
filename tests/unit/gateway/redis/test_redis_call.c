/* Calls and scripts over a connection whose other end the test is. */
#include "tests/unit/gateway/redis/redis_link_rig.h"

#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define BY_DIGEST \
	"*4\r\n$7\r\nEVALSHA\r\n$40\r\n0123456789012345678901234567890123456789\r\n$1\r\n0\r\n"
#define BY_TEXT "*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n"

/* A call of a script whose one argument is how often it was asked for. */
struct question {
	struct redis_call call;
	uint32_t put, done;
	enum redis_outcome outcome;
};

static void put(struct redis_call *call, const struct redis_script_run *run)
{
	struct question *question = CONTAINER_OF(call, struct question, call);

	assert_ptr_equal(call->owner, question);
	redis_put_script(run, 0, 1);
	redis_put_number(run->to, ++question->put);
}

static void on_over(struct redis_call *call, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct question *question = CONTAINER_OF(call, struct question, call);

	assert_int_equal(reply == NULL, outcome == REDIS_LOST);
	assert_false(redis_call_pending(call));
	question->done++;
	question->outcome = outcome;
}

static struct question *question_new(void)
{
	static const struct redis_call_type type = { .put = put, .done = on_over };
	static struct question all[32];
	static size_t count;

	assert_true(count < COUNT_OF(all));
	struct question *question = &all[count++];
	question->call = (struct redis_call){ .type = &type, .owner = question };
	return question;
}

static struct redis_script *script_new(void)
{
	static struct redis_script all[32];
	static size_t count;

	assert_true(count < COUNT_OF(all));
	all[count] = (struct redis_script){ .text = SLICE("return 1"),
					    .sha1 = "0123456789012345678901234567890123456789" };
	return &all[count++];
}

/* One that the server knows. */
static struct redis_script *known(struct redis_link *link)
{
	struct redis_script *script = script_new();
	struct question *question = question_new();

	assert_true(redis_script_run(link, script, &question->call));
	turn();
	says(":1\r\n");
	assert_int_equal(question->done, 1);
	conn.written_len = 0;
	return script;
}

static void a_script_goes_along_the_first_time_on_each_connection(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = script_new();
	struct question *first = question_new(), *second = question_new(), *third = question_new();

	(void)state;
	assert_true(redis_script_run(link, script, &first->call));
	assert_true(redis_script_run(link, script, &second->call));
	assert_true(redis_call_pending(&first->call) && redis_call_pending(&second->call));
	turn();
	assert_written(BY_TEXT "$1\r\n1\r\n" BY_DIGEST "$1\r\n1\r\n");
	says(":1\r\n:1\r\n");
	assert_int_equal(first->done + second->done, 2);
	assert_int_equal(second->outcome, REDIS_ANSWERED);
	ended(NET_END_CLOSED);
	pass(25 * MSEC);
	opened();
	says("+OK\r\n");
	conn.written_len = 0;
	assert_true(redis_script_run(link, script, &third->call));
	turn();
	assert_written(BY_TEXT "$1\r\n1\r\n");
}

static void a_script_that_is_loaded_with_the_greeting_is_known(void **state)
{
	struct redis_link *link = link_of(arguments(1));
	struct redis_script *script = script_new();
	struct question *question = question_new();

	(void)state;
	redis_link_load(link, script);
	pass(0);
	opened();
	says("$-1\r\n");
	for (int i = 0; i < 16; i++)
		says("$-1\r\n");
	says("+OK\r\n");
	conn.written_len = 0;
	assert_true(redis_script_run(link, script, &question->call));
	turn();
	assert_written(BY_DIGEST "$1\r\n1\r\n");
}

static void a_script_that_was_forgotten_is_run_once_more_with_its_text(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = known(link);
	struct question *question = question_new(), *next = question_new();

	(void)state;
	assert_true(redis_script_run(link, script, &question->call));
	turn();
	assert_written(BY_DIGEST "$1\r\n1\r\n");
	says(NOSCRIPT);
	assert_int_equal(question->done, 0);
	assert_true(redis_call_pending(&question->call));
	assert_written(BY_TEXT "$1\r\n2\r\n"); /* what it is to say now */
	assert_int_equal(told.unready, 0);
	assert_true(redis_script_run(link, script, &next->call));
	turn();
	assert_written(BY_DIGEST "$1\r\n1\r\n");
	says(":1\r\n:1\r\n");
	assert_int_equal(question->done, 1);
	assert_int_equal(question->outcome, REDIS_ANSWERED);
	assert_int_equal(next->done, 1);
}

static void one_that_is_not_known_in_spite_of_its_text_is_refused(void **state)
{
	struct redis_link *link = ready_link();
	struct question *question = question_new();

	(void)state;
	assert_true(redis_script_run(link, script_new(), &question->call));
	turn();
	says(NOSCRIPT);
	assert_int_equal(question->put, 1);
	assert_int_equal(question->done, 1);
	assert_int_equal(question->outcome, REDIS_REFUSED);
}

/* It was let in before the trouble began. */
static void one_that_was_forgotten_is_run_again_while_the_server_is_in_trouble(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = known(link);
	struct question *question = question_new();

	(void)state;
	assert_true(ask(link));
	assert_true(redis_script_run(link, script, &question->call));
	turn();
	says("-OOM command not allowed\r\n" NOSCRIPT);
	assert_false(redis_link_ready(link));
	assert_int_equal(question->put, 2);
	says(":1\r\n");
	assert_int_equal(question->outcome, REDIS_ANSWERED);
}

static void what_is_forgotten_is_told_nothing_and_not_run_again(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = known(link);
	struct question *question = question_new(), *next = question_new();

	(void)state;
	assert_true(redis_script_run(link, script, &question->call));
	turn();
	redis_call_forget(link, &question->call);
	assert_false(redis_call_pending(&question->call));
	redis_call_forget(link, &question->call); /* harmless */
	pass(19 * MSEC);
	says(NOSCRIPT);
	assert_int_equal(question->done, 0);
	assert_int_equal(question->put, 1);
	conn.written_len = 0;
	assert_true(
		redis_script_run(link, script, &next->call)); /* but it is known to be unknown */
	turn();
	assert_written(BY_TEXT "$1\r\n1\r\n");
}

static void what_is_only_told_is_asked_what_to_put_at_once(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = known(link);
	struct question *question = question_new();

	(void)state;
	assert_true(redis_script_send(link, script, &question->call));
	assert_false(redis_call_pending(&question->call));
	question->call = (struct redis_call){ 0 }; /* it may go */
	turn();
	assert_written(BY_DIGEST "$1\r\n1\r\n");
	pass(19 * MSEC);
	says(":1\r\n");
	assert_int_equal(question->done, 0);
}

static void what_is_lost_is_told_so_and_what_cannot_be_sent_is_not_pending(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_script *script = script_new();
	struct question *question = question_new(), *late = question_new();

	(void)state;
	assert_true(redis_script_run(link, script, &question->call));
	turn();
	ended(NET_END_CLOSED);
	assert_int_equal(question->done, 1);
	assert_int_equal(question->outcome, REDIS_LOST);
	assert_false(redis_script_run(link, script, &late->call));
	assert_false(redis_script_run_slow(link, script, &late->call, SEC));
	assert_false(redis_call_pending(&late->call));
	assert_int_equal(late->put, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_script_goes_along_the_first_time_on_each_connection),
		cmocka_unit_test(a_script_that_is_loaded_with_the_greeting_is_known),
		cmocka_unit_test(a_script_that_was_forgotten_is_run_once_more_with_its_text),
		cmocka_unit_test(one_that_is_not_known_in_spite_of_its_text_is_refused),
		cmocka_unit_test(
			one_that_was_forgotten_is_run_again_while_the_server_is_in_trouble),
		cmocka_unit_test(what_is_forgotten_is_told_nothing_and_not_run_again),
		cmocka_unit_test(what_is_only_told_is_asked_what_to_put_at_once),
		cmocka_unit_test(what_is_lost_is_told_so_and_what_cannot_be_sent_is_not_pending),
	};

	return cmocka_run_group_tests_name("redis_call", tests, NULL, NULL);
}
