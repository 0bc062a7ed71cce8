/* When a caller is told about progress, and what. */
#include "gateway/front/rpc/rpc_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct rpc_progress progress;
};

static int rig_make(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig->pool.keep_max = 8;
	arena_init(&rig->arena, &rig->pool, 1 << 16);
	*state = rig;
	return 0;
}

static int rig_free(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	free(rig);
	return 0;
}

static struct rpc_progress *wanted(void **state, const char *token)
{
	struct rig *rig = *state;

	assert_true(rpc_progress_want(&rig->progress, slice_str(token), &rig->arena));
	return &rig->progress;
}

#define assert_due(progress, at) assert_true(rpc_progress_due(progress) == (at))

/* The number of the notification that is written at `now`. */
static uint64_t tell(struct rpc_progress *progress, nsec_t now)
{
	struct slice event = rpc_progress_notify(progress, now);
	const char *number = memmem(event.at, event.len, "\"progress\":", 11);

	assert_non_null(number);
	return strtoull(number + 11, NULL, 10);
}

static void the_token_is_echoed_byte_for_byte(void **state)
{
	static const char *const tokens[] = { "0", "\"\"", "-7", "12345678901234567890",
					      "\"a\\u00e9\\n\"" };
	char expect[256];

	for (size_t i = 0; i < COUNT_OF(tokens); i++) {
		struct rpc_progress *progress = wanted(state, tokens[i]);
		rpc_progress_admit(progress, 0);
		progress->output = 18446744073709551615u;
		struct slice event = rpc_progress_notify(progress, 0);
		int len = snprintf(expect, sizeof(expect),
				   "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
				   "\"notifications/progress\",\"params\":{\"progressToken\":%s,"
				   "\"progress\":18446744073709551615}}\n\n",
				   tokens[i]);
		assert_int_equal(event.len, len);
		assert_memory_equal(event.at, expect, event.len);
		*progress = (struct rpc_progress){ .phase = RPC_PROGRESS_UNWANTED };
	}
}

static void nobody_is_told_who_did_not_ask(void **state)
{
	struct rig *rig = *state;

	rpc_progress_admit(&rig->progress, 1);
	rig->progress.streams = true;
	rig->progress.output = 5;
	assert_due(&rig->progress, NSEC_NEVER);
}

static void nothing_is_told_before_admission(void **state)
{
	struct rpc_progress *progress = wanted(state, "1");

	progress->streams = true;
	assert_due(progress, NSEC_NEVER);
	rpc_progress_admit(progress, 3 * SEC);
	assert_true(rpc_progress_due(progress) <= 3 * SEC);
}

static void the_first_comes_with_the_stream_or_five_seconds_after_admission(void **state)
{
	struct rpc_progress *progress = wanted(state, "1");

	rpc_progress_admit(progress, 3 * SEC);
	assert_due(progress, 8 * SEC);
	rpc_progress_admit(progress, 6 * SEC); /* of a further attempt */
	assert_due(progress, 8 * SEC);
	progress->streams = true;
	assert_true(rpc_progress_due(progress) <= 6 * SEC);
}

static void output_is_told_four_times_a_second_at_most(void **state)
{
	struct rpc_progress *progress = wanted(state, "1");
	uint64_t before = 0;

	rpc_progress_admit(progress, 0);
	progress->streams = true;
	for (nsec_t now = 10 * MSEC; now < 10 * SEC; now += 10 * MSEC) {
		progress->output += 3;
		if (rpc_progress_due(progress) > now)
			continue;
		assert_true(!rpc_progress_begun(progress) ||
			    now - progress->notified_at >= PROGRESS_EVERY);
		assert_true(now == 10 * MSEC || now - progress->notified_at < 270 * MSEC);
		uint64_t number = tell(progress, now);
		assert_int_equal(number, progress->output);
		assert_true(number > before);
		before = number;
	}
}

static void silence_is_broken_by_a_number_that_rises_all_the_same(void **state)
{
	struct rpc_progress *progress = wanted(state, "1");

	rpc_progress_admit(progress, 0);
	assert_int_equal(tell(progress, 5 * SEC), 0);
	assert_due(progress, 5 * SEC + PROGRESS_SILENCE_MAX);
	assert_true(PROGRESS_SILENCE_MAX < 15 * SEC);
	assert_int_equal(tell(progress, 17 * SEC), 1);
	assert_int_equal(tell(progress, 29 * SEC), 2);
	progress->output = 2; /* less than what was told is nothing new */
	assert_due(progress, 29 * SEC + PROGRESS_SILENCE_MAX);
	progress->output = 40;
	assert_due(progress, 29 * SEC + PROGRESS_EVERY);
	assert_int_equal(tell(progress, 30 * SEC), 40);
}

static void another_attempt_begins_anew_and_the_number_still_rises(void **state)
{
	struct rpc_progress *progress = wanted(state, "1");

	rpc_progress_admit(progress, 0);
	progress->output = 100;
	assert_int_equal(tell(progress, 1 * SEC), 100);
	progress->output = 0;
	assert_due(progress, 1 * SEC + PROGRESS_SILENCE_MAX);
	progress->output = 60;
	assert_int_equal(tell(progress, 13 * SEC), 101);
	progress->output = 150;
	assert_int_equal(tell(progress, 14 * SEC), 150);
}

static void want_of_memory_is_an_answer(void **state)
{
	struct rig *rig = *state;

	rig->arena.cap = 10;
	assert_false(rpc_progress_want(&rig->progress, SLICE("1"), &rig->arena));
	assert_due(&rig->progress, NSEC_NEVER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_make, rig_free)
	const struct CMUnitTest tests[] = {
		TEST(the_token_is_echoed_byte_for_byte),
		TEST(nobody_is_told_who_did_not_ask),
		TEST(nothing_is_told_before_admission),
		TEST(the_first_comes_with_the_stream_or_five_seconds_after_admission),
		TEST(output_is_told_four_times_a_second_at_most),
		TEST(silence_is_broken_by_a_number_that_rises_all_the_same),
		TEST(another_attempt_begins_anew_and_the_number_still_rises),
		TEST(want_of_memory_is_an_answer),
	};
	return cmocka_run_group_tests_name("rpc_progress", tests, NULL, NULL);
}
