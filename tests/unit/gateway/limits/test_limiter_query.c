/* A question between two threads: whoever lets go last frees it. */
#include "gateway/limits/limiter_query.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t tag[16] = "tenant";
static const uint8_t keys[2][16] = { "tenant", "tenant's part" };

static void what_was_asked_is_found_by_the_one_who_answers(void **state)
{
	struct limiter_query *question = limiter_query_new(tag, keys, 2, 5);

	(void)state;
	assert_non_null(question);
	assert_memory_equal(limiter_query_tag(question), tag, sizeof(tag));
	assert_int_equal(limiter_query_count(question), 2);
	assert_memory_equal(limiter_query_key(question, 1), keys[1], sizeof(keys[1]));
	assert_int_equal(limiter_query_top_up(question), 5);
	limiter_query_fill(question, 1)->usd_day = 7;
	limiter_query_answer(question, LIMITER_SAID_DONE);
	assert_int_equal(limiter_query_wait(question, 0), LIMITER_SAID_DONE);
	assert_int_equal(limiter_query_state(question, 0)->usd_day, 0);
	assert_int_equal(limiter_query_state(question, 1)->usd_day, 7);
	limiter_query_free(question);
	limiter_query_free(NULL);
}

static void who_has_waited_in_vain_may_go_before_the_answer(void **state)
{
	struct limiter_query *question = limiter_query_new(tag, keys, 1, 0);

	(void)state;
	assert_non_null(question);
	assert_int_equal(limiter_query_wait(question, 1), LIMITER_SAID_NOTHING);
	limiter_query_free(question);
	limiter_query_fill(question, 0)->usd_day = 7; /* it is still there */
	limiter_query_answer(question, LIMITER_SAID_DONE);
}

static void *answers(void *arg)
{
	struct limiter_query *question = arg;

	limiter_query_fill(question, 0)->concurrent = 3;
	limiter_query_answer(question, LIMITER_SAID_DONE);
	return NULL;
}

static void an_answer_wakes_the_one_who_waits(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct limiter_query *question = limiter_query_new(tag, keys, 1, 0);
		pthread_t thread;
		assert_non_null(question);
		assert_int_equal(pthread_create(&thread, NULL, answers, question), 0);
		assert_int_equal(limiter_query_wait(question, 60 * SEC), LIMITER_SAID_DONE);
		assert_int_equal(limiter_query_state(question, 0)->concurrent, 3);
		limiter_query_free(question);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void a_refusal_is_an_answer(void **state)
{
	struct limiter_query *question = limiter_query_new(tag, keys, 1, 1);

	(void)state;
	assert_non_null(question);
	limiter_query_answer(question, LIMITER_SAID_AWAY);
	assert_int_equal(limiter_query_wait(question, SEC), LIMITER_SAID_AWAY);
	limiter_query_free(question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_asked_is_found_by_the_one_who_answers),
		cmocka_unit_test(who_has_waited_in_vain_may_go_before_the_answer),
		cmocka_unit_test(an_answer_wakes_the_one_who_waits),
		cmocka_unit_test(a_refusal_is_an_answer),
	};

	return cmocka_run_group_tests_name("limiter_query", tests, NULL, NULL);
}
