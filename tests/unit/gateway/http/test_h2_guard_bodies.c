/* Bodies that are too large: what h2o sees of them. */
#include "tests/unit/gateway/http/h2_guard_rig.h"

/* ---- bodies that are too large ---- */
/* Behind the frame that passes the limit, h2o sees the others and not that body's. */
static const struct seen {
	struct frame sent;
	uint8_t flags;
	bool gone, emptied;
} too_large[] = {
	{ { HEADERS, END_HEADERS, 1, 9 }, .flags = END_HEADERS },
	{ { HEADERS, END_HEADERS, 3, 9 }, .flags = END_HEADERS },
	{ { DATA, 0, 1, 16000 }, .flags = 0 },
	{ { DATA, 0, 1, 16000 }, .flags = 0 },
	{ { DATA, 0, 3, 5 }, .flags = 0 },
	{ { DATA, 0, 1, 9000 }, .flags = END_STREAM, .emptied = true },
	{ { PING, 0, 0, 8 }, .flags = 0 },
	{ { DATA, 0, 1, 0 }, .gone = true },
	{ { DATA, 0, 1, 700 }, .gone = true },
	{ { DATA, 0, 3, 300 }, .flags = 0 },
	{ { WINDOW, 0, 1, 4 }, .flags = 0 },
	{ { DATA, 0, 1, 1 }, .gone = true },
	{ { HEADERS, END_HEADERS | END_STREAM, 5, 70 }, .flags = END_HEADERS | END_STREAM },
	{ { DATA, END_STREAM, 3, 10 }, .flags = END_STREAM },
	{ { DATA, END_STREAM, 1, 200 }, .gone = true },
	{ { RST, 0, 1, 4 }, .flags = 0 },
	{ { PING, 0, 0, 8 }, .flags = 0 },
};

static void what_h2o_sees_of_a_body_too_large_is_the_same_however_it_comes(void **state)
{
	(void)state;
	const size_t pieces[] = { 1, 2, 9, 10, 700, 16008, 16009, 20000, INPUT_MAX };
	struct rig all = rig_new(), wanted = rig_new();
	for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
		struct frame frame = too_large[i].sent;
		put(&all, frame);
		frame.flags = too_large[i].flags;
		frame.len = too_large[i].emptied ? 0 : frame.len;
		if (!too_large[i].gone)
			put(&wanted, frame);
	}
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct rig rig = rig_new();
		assert_int_equal(feed(&rig, all.input + 24, all.len - 24, pieces[i]), GUARD_PASS);
		assert_int_equal(rig.len, wanted.len);
		assert_memory_equal(rig.input, wanted.input, wanted.len);
		/* Until h2o has it. */
		assert_int_equal(h2_guard_refuses(&rig.guard, 1), GUARD_BODY_TOO_LARGE);
		assert_int_equal(h2_guard_refuses(&rig.guard, 3), GUARD_PASS);
		eat(&rig);
		assert_int_equal(rig.len, 0);
		assert_int_equal(h2_guard_refuses(&rig.guard, 1), GUARD_PASS);
		assert_int_equal(rig.guard.holder.bytes, 0);
		rig_free(&rig);
	}
	rig_free(&all);
	rig_free(&wanted);
}

static void a_frame_that_is_dropped_must_come_to_its_end_too(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			put(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 });
		put(&rig, (struct frame){ DATA, 0, 1, 16000 });
	}
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	put(&rig, (struct frame){ DATA, 0, 1, 500 });
	rig.len -= 400;
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(rig.len, 0);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE),
			 GUARD_PASS);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE + 1),
			 GUARD_SLOW);
	rig_free(&rig);
}

/* The headers of a body of so many bytes, given in two pieces. */
static void begin_body(struct rig *rig, const char *length, uint8_t flags, size_t cut)
{
	char bytes[100];
	size_t digits = strlen(length);
	uint32_t len = (uint32_t)(3 + digits);
	size_t head = frame_write((struct frame){ HEADERS, flags, 7, len }, bytes);
	bytes[head - len] = '\x0f'; /* not indexed, content-length */
	bytes[head - len + 1] = '\x0d';
	bytes[head - len + 2] = (char)digits;
	(void)memcpy(bytes + head - digits, length, digits);
	assert_int_equal(feed(rig, bytes, cut, cut), GUARD_PASS);
	assert_int_equal(feed(rig, bytes + cut, head - cut, head), GUARD_PASS);
}

static void a_length_that_is_too_large_ends_the_request_with_its_first_data(void **state)
{
	(void)state;
	const struct {
		const char *length;
		uint8_t flags;
		bool refused;
	} rows_[] = {
		{ "40000", END_HEADERS, false },
		{ "40001", END_HEADERS, true },
		{ "99999999999", END_HEADERS, true },
		{ "99999999999", END_HEADERS | END_STREAM, false },
		{ "x", END_HEADERS, false },
	};
	for (size_t i = 0; i < sizeof(rows_) / sizeof(rows_[0]); i++)
		for (size_t cut = 1; cut < 12; cut++) {
			struct rig rig = rig_new();
			begin_body(&rig, rows_[i].length, rows_[i].flags, cut);
			assert_int_equal(rig.input[24 + 4], rows_[i].flags);
			assert_memory_equal(rig.input + 24 + 12, rows_[i].length,
					    strlen(rows_[i].length)); /* left as it is */
			assert_int_equal(h2_guard_refuses(&rig.guard, 7), GUARD_PASS);
			eat(&rig);
			assert_int_equal(give(&rig, (struct frame){ DATA, 0, 9, 10 }, START),
					 GUARD_PASS);
			put(&rig, (struct frame){ DATA, 0, 7, 900 });
			assert_int_equal(
				h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
				GUARD_PASS);
			const bool refused = rows_[i].refused;
			assert_int_equal(h2_guard_refuses(&rig.guard, 7),
					 refused ? GUARD_BODY_TOO_LARGE : GUARD_PASS);
			assert_int_equal(rig.len, refused ? 9 : 909);
			assert_int_equal(rig.input[4], refused ? END_STREAM : 0);
			rig_free(&rig);
		}
}

/* ---- one body too many ---- */
/* H2o sees a request without a body, and none of its DATA. */
static void assert_refused_head(struct rig *rig, uint32_t stream)
{
	put(rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 });
	assert_int_equal(h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, START),
			 GUARD_PASS);
	assert_int_equal(rig->input[4], END_HEADERS | END_STREAM);
	assert_int_equal(h2_guard_refuses(&rig->guard, stream), GUARD_UPLOADS);
	eat(rig);
	assert_int_equal(give(rig, (struct frame){ DATA, 0, stream, 100 }, START), GUARD_PASS);
	assert_int_equal(rig->len, 0);
}

static void the_body_that_is_one_too_many_is_refused(void **state)
{
	(void)state;
	const struct frame between[] = { { WINDOW, END_STREAM, 1, 4 },
					 { PRIORITY, END_STREAM, 1, 5 } }; /* end nothing */
	for (size_t kind = 0; kind < 2; kind++) {
		struct rig rig = rig_new();
		for (uint32_t i = 0; i < GUARD_UPLOADS_MAX; i++) {
			struct frame other = between[kind];
			other.stream = 2 * i + 1;
			assert_int_equal(
				give(&rig, (struct frame){ HEADERS, END_HEADERS, other.stream, 9 },
				     START),
				GUARD_PASS);
			assert_int_equal(give(&rig, other, START), GUARD_PASS);
		}
		assert_refused_head(&rig, 2 * GUARD_UPLOADS_MAX + 1);
		rig_free(&rig);
	}
}

/* ---- streams that were ended ---- */
static void what_comes_of_a_stream_that_was_reset_is_dropped(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 3, 9 }, START),
			 GUARD_PASS);
	h2_guard_reset(&rig.guard, &rig.budget, 1);
	assert_int_equal(rig.guard.upload_count, 1);
	put(&rig, (struct frame){ DATA, 0, 1, 16000 });
	put(&rig, (struct frame){ DATA, 0, 3, 10 });
	assert_int_equal(h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
			 GUARD_PASS);
	assert_int_equal(rig.len, 19); /* the other's */
	eat(&rig);
	assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, 1, 1 }, START), GUARD_PASS);
	assert_null(guard_ends_find(&rig.guard.ends, 1)); /* nothing more will come */
	rig_free(&rig);
}

static void a_window_is_opened_for_what_was_dropped(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	size_t dropped = 0, opened = 0;
	h2_guard_reset(&rig.guard, &rig.budget, 1);
	for (; dropped + 16000 <= GUARD_DROPPED_MAX; dropped += 16000) {
		assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 16000 }, START),
				 GUARD_PASS);
		opened += h2_guard_open_window(&rig.guard);
	}
	assert_true(opened <= dropped && dropped - opened < 32 << 10);
	/* More than the stream's own window. */
	assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 16000 }, START),
			 GUARD_BODY_TOO_LARGE);
	rig_free(&rig);
}

static void the_stream_that_ended_first_makes_room_unless_h2o_is_still_to_see_it(void **state)
{
	(void)state;
	struct guard_ends ends = { .list = NULL };
	for (uint32_t i = 0; i < GUARD_ENDED_MAX; i++)
		assert_non_null(guard_ends_add(&ends, 2 * i + 1));
	guard_ends_find(&ends, 1)->refused = true;
	assert_non_null(guard_ends_add(&ends, 1001));
	assert_non_null(guard_ends_find(&ends, 1));
	assert_null(guard_ends_find(&ends, 3));
	guard_ends_ate(&ends, 0);
	for (uint32_t i = 0; i < GUARD_ENDED_MAX; i++) {
		struct guard_ended *ended = guard_ends_add(&ends, 2001 + 2 * i);
		assert_non_null(ended);
		ended->refused = true;
	}
	assert_null(guard_ends_add(&ends, 9001));
	guard_ends_fini(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_h2o_sees_of_a_body_too_large_is_the_same_however_it_comes),
		cmocka_unit_test(a_frame_that_is_dropped_must_come_to_its_end_too),
		cmocka_unit_test(a_length_that_is_too_large_ends_the_request_with_its_first_data),
		cmocka_unit_test(the_body_that_is_one_too_many_is_refused),
		cmocka_unit_test(what_comes_of_a_stream_that_was_reset_is_dropped),
		cmocka_unit_test(a_window_is_opened_for_what_was_dropped),
		cmocka_unit_test(
			the_stream_that_ended_first_makes_room_unless_h2o_is_still_to_see_it),
	};
	return cmocka_run_group_tests_name("h2_guard_bodies", tests, NULL, NULL);
}
