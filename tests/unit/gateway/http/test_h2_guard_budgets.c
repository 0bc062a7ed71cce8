/* What a connection may use up: tokens, requests given up, bytes of bodies that are not complete, time. */
#include "tests/unit/gateway/http/h2_guard_rig.h"

/* ---- tokens ---- */
static void time_gives_tokens_back_up_to_the_full_number(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame ping = { PING, 0, 0, 8 };
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START), GUARD_PASS);
	/* 100 tokens a second, 5 for a ping */
	for (int i = 0; i < 20; i++)
		assert_int_equal(give(&rig, ping, START + SEC), GUARD_PASS);
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START + 3600 * SEC), GUARD_PASS);
	assert_int_equal(give(&rig, ping, START + 3600 * SEC), GUARD_FLOOD);
	rig_free(&rig);
}

static void time_that_passes_in_small_steps_counts_in_full(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame ping = { PING, 0, 0, 8 };
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START), GUARD_PASS);
	for (nsec_t ms = 55; ms <= 5500; ms += 55) /* 5.5 tokens each */
		assert_int_equal(give(&rig, ping, START + ms * MSEC), GUARD_PASS);
	rig_free(&rig);
}

static void small_frames_are_counted_by_the_second(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame window = { WINDOW, 0, 0, 4 };
	for (nsec_t s = 1; s <= 2; s++)
		for (int i = 0; i < 100000; i++)
			assert_int_equal(give(&rig, window, START + s * SEC + (nsec_t)i),
					 GUARD_PASS);
	assert_int_equal(give(&rig, window, START + 3 * SEC - 1), GUARD_FLOOD);
	rig_free(&rig);
}

static void answered_requests_give_tokens_back(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame reset = { RST, 0, 1, 4 };
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(give(&rig, reset, START), GUARD_PASS);
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	}
	rig_free(&rig);
}
/* ---- requests that end early ---- */
/* How many may end so, after so many that were answered, before it is too many. */
static int endings_borne(struct rig rig, int answered, enum guard_ending ending)
{
	int count = 0;
	for (int i = 0; i < answered; i++)
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	while (h2_guard_request_over(&rig.guard, ending) == GUARD_PASS && count < 10000)
		count++;
	rig_free(&rig);
	return count;
}

static void so_many_requests_may_end_before_their_answer(void **state)
{
	(void)state;
	assert_int_equal(endings_borne(rig_new(), 0, GUARD_UNBEGUN), 100);
	assert_int_equal(endings_borne(rig_new(), 0, GUARD_GIVEN_UP), 50);
	assert_int_equal(endings_borne(rig_new(), 0, GUARD_ANSWERED), 10000);
}

/* Of those that are begun and given up at last. */
static void no_more_than_100_are_begun_for_nothing_however_they_are_given_up(void **state)
{
	(void)state;
	for (uint32_t at_once = 1; at_once <= 110; at_once++) {
		struct rig rig = rig_new();
		enum guard_verdict verdict = GUARD_PASS;
		uint32_t begun = 0, all = 0;
		while (verdict == GUARD_PASS) { /* fills up, and gives up so many of them */
			for (; h2_guard_may_begin(&rig.guard, begun, SEC); begun++)
				all++;
			for (uint32_t i = 0; i < at_once && begun != 0 && verdict == GUARD_PASS;
			     i++, begun--)
				verdict = h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP);
		}
		assert_int_equal(verdict, GUARD_ABORTED);
		assert_int_equal(all, 100);
		rig_free(&rig);
	}
}

static void a_hundred_requests_are_worked_on_at_once_by_who_gives_up_none(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_true(h2_guard_may_begin(&rig.guard, 99, SEC));
	assert_false(h2_guard_may_begin(&rig.guard, 100, SEC));
	assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP), GUARD_PASS);
	assert_false(h2_guard_may_begin(&rig.guard, 99, SEC));
	assert_true(h2_guard_may_begin(&rig.guard, 98, SEC));
	assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	assert_true(h2_guard_may_begin(&rig.guard, 99, SEC));
	rig_free(&rig);
}

static void who_has_had_answers_may_give_up_as_many_again(void **state)
{
	(void)state;
	assert_int_equal(endings_borne(rig_new(), 10, GUARD_GIVEN_UP), 60);
	assert_int_equal(endings_borne(rig_new(), 50, GUARD_GIVEN_UP), 100);
	assert_int_equal(endings_borne(rig_new(), 1000, GUARD_GIVEN_UP), 100);
}

/* Time forgives, but earns nothing; nor may more be worked on at once. */
static void only_answers_count_in_advance(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	h2_guard_forgive(&rig.guard);
	assert_int_equal(rig.guard.aborted, 0);
	assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	h2_guard_forgive(&rig.guard);
	assert_int_equal(rig.guard.aborted, -2);
	assert_false(h2_guard_may_begin(&rig.guard, 100, SEC));
	rig_free(&rig);
}

static void a_proxy_may_give_up_what_many_callers_do(void **state)
{
	(void)state;
	assert_int_equal(endings_borne(rig_new_shared(), 0, GUARD_GIVEN_UP), 800);
	assert_int_equal(endings_borne(rig_new_shared(), 10000, GUARD_GIVEN_UP), 1600);
	struct rig rig = rig_new_shared();
	const struct frame reset = { RST, 0, 1, 4 };
	for (int i = 0; i < 3200; i++)
		assert_int_equal(give(&rig, reset, START), GUARD_PASS);
	assert_int_equal(give(&rig, reset, START), GUARD_FLOOD);
	rig_free(&rig);
}

static void a_proxy_has_as_much_begun_at_once_as_it_likes_from_the_start(void **state)
{
	(void)state;
	struct rig rig = rig_new_shared();
	for (int i = 0; i < 600; i++)
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP), GUARD_PASS);
	assert_true(h2_guard_may_begin(&rig.guard, 99, 0));
	assert_int_equal(h2_guard_more_in(&rig.guard, 0), 0);
	rig_free(&rig);
}

static void a_proxy_may_have_unfinished_what_the_worker_has_room_for(void **state)
{
	(void)state;
	struct rig rig = rig_new_shared();
	assert_int_equal(h2_guard_bytes_max(&rig.guard, &rig.budget), WORKER_MAX);
	rig.budget.worker_bytes_max = (size_t)100 * CONN_MAX;
	assert_int_equal(h2_guard_bytes_max(&rig.guard, &rig.budget), (size_t)16 * CONN_MAX);
	rig_free(&rig);
}

static uint32_t begun_at_most(nsec_t age)
{
	struct rig rig = rig_new();
	uint32_t begun = 0;
	while (h2_guard_may_begin(&rig.guard, begun, age))
		begun++;
	rig_free(&rig);
	return begun;
}

static void a_new_connection_has_fewer_begun_at_once(void **state)
{
	(void)state;
	assert_int_equal(begun_at_most(0), 32);
	assert_int_equal(begun_at_most(4 * MSEC - 1), 32);
	assert_int_equal(begun_at_most(272 * MSEC - 1), 99);
	assert_int_equal(begun_at_most(272 * MSEC), 100);
	assert_int_equal(begun_at_most(3600 * SEC), 100);
}

static void time_gives_it_one_after_the_other_until_it_has_all(void **state)
{
	(void)state;
	const struct h2_guard guard = { .bounds = &guard_one_caller };
	nsec_t age = MSEC;
	for (uint32_t begun = 33; begun <= 100; begun++) {
		nsec_t more_in = h2_guard_more_in(&guard, age);
		assert_int_equal(begun_at_most(age + more_in - 1), begun - 1);
		assert_int_equal(begun_at_most(age + more_in), begun);
		age += more_in;
	}
	assert_int_equal(h2_guard_more_in(&guard, age), 0);
}

static void bodies_that_are_held_count_as_unfinished(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const size_t half = rig.budget.conn_bytes_max / 2;
	rig.budget.worker_bytes_max = rig.budget.large_bytes_max = 8 * rig.budget.conn_bytes_max;
	assert_int_equal(h2_guard_hold(&rig.guard, &rig.budget, half, START), GUARD_PASS);
	assert_int_equal(rig.budget.unfinished_bytes, half);
	assert_int_equal(h2_guard_hold(&rig.guard, &rig.budget, half, START), GUARD_PASS);
	h2_guard_let_go(&rig.guard, &rig.budget, half);
	assert_int_equal(h2_guard_hold(&rig.guard, &rig.budget, half, START), GUARD_PASS);
	assert_int_equal(h2_guard_hold(&rig.guard, &rig.budget, 2, START), GUARD_UNFINISHED_BYTES);
	h2_guard_fini(&rig.guard, &rig.budget);
	assert_int_equal(rig.budget.unfinished_bytes, 0);
	rig_free(&rig);
}

/* Of a connection that has brought so much of bodies that have not ended. */
static nsec_t wait_at(size_t brought, nsec_t age)
{
	struct rig rig = rig_new();
	rig.budget.conn_bytes_max = 4000;
	assert_int_equal(h2_guard_hold(&rig.guard, &rig.budget, brought, START), GUARD_PASS);
	nsec_t wait = h2_guard_wait(&rig.guard, &rig.budget, START + age);
	rig_free(&rig);
	return wait;
}

static void a_new_connection_brings_its_bodies_by_and_by(void **state)
{
	(void)state;
	assert_int_equal(wait_at(0, 0), 0);
	assert_int_equal(wait_at(1000, 0), 0);
	assert_int_equal(wait_at(1010, 0), MSEC);
	assert_int_equal(wait_at(2500, 0), 150 * MSEC);
	assert_int_equal(wait_at(2500, 149 * MSEC), MSEC);
	assert_int_equal(wait_at(2500, 150 * MSEC), 0);
	assert_int_equal(wait_at(4000, 0), 300 * MSEC);
	assert_int_equal(wait_at(4000, 300 * MSEC - 1), 1);
	assert_int_equal(wait_at(4000, 300 * MSEC), 0);
	assert_int_equal(wait_at(4000, 3600 * SEC), 0);
}

/* Nor does it help to send what is thrown away. */
static void what_is_dropped_of_a_body_too_large_counts_as_brought(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	rig.guard.dropped = CONN_MAX;
	assert_int_equal(h2_guard_wait(&rig.guard, &rig.budget, START), 300 * MSEC);
	rig.guard.dropped = 2 * CONN_MAX;
	assert_int_equal(h2_guard_wait(&rig.guard, &rig.budget, START), 300 * MSEC);
	rig_free(&rig);
}

static void who_has_little_is_not_closed_for_what_others_have(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	rig.budget.worker_bytes_max = 1000000;
	rig.budget.large_bytes_max = 900000;
	rig.budget.unfinished_bytes = 900000; /* with the connection's own */
	assert_false(guard_too_many_bytes(&rig.budget, 900000));
	rig.budget.unfinished_bytes++;
	assert_true(guard_too_many_bytes(&rig.budget, GUARD_LITTLE + 1));
	assert_false(guard_too_many_bytes(&rig.budget, GUARD_LITTLE));
	rig.budget.unfinished_bytes = 1000000;
	assert_false(guard_too_many_bytes(&rig.budget, 1));
	rig.budget.unfinished_bytes++;
	assert_true(guard_too_many_bytes(&rig.budget, 1));
	rig.budget.unfinished_bytes = 0;
	rig_free(&rig);
}

static void an_answered_request_makes_up_for_an_aborted_one(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP), GUARD_PASS);
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	}
	assert_int_equal(rig.guard.aborted, 0);
	rig_free(&rig);
}

static void five_a_second_may_be_given_up(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (nsec_t s = 1; s <= 100; s++) {
		for (int i = 0; i < 5; i++)
			assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP),
					 GUARD_PASS);
		assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + s * SEC),
				 GUARD_PASS);
	}
	assert_int_equal(rig.guard.aborted, 0);
	rig_free(&rig);
}

static void streams_below_the_highest_may_begin_bodies(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(
		give(&rig, (struct frame){ HEADERS, END_HEADERS | END_STREAM, 101, 9 }, START),
		GUARD_PASS);
	for (uint32_t stream = 1; stream <= 9; stream += 2) {
		assert_int_equal(
			give(&rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 }, START),
			GUARD_PASS);
		assert_int_equal(give(&rig, (struct frame){ DATA, 0, stream, 1000 }, START),
				 GUARD_PASS);
	}
	assert_int_equal(rig.guard.holder.bytes, 5 * (1000 + GUARD_UPLOAD_COST + 2 * 9));
	rig_free(&rig);
}

/* Its verdict; `stream` is new. */
static enum guard_verdict upload(struct rig *rig, uint32_t stream)
{
	enum guard_verdict verdict =
		give(rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 }, START);
	for (int i = 0; i < 3 && verdict == GUARD_PASS; i++)
		verdict = give(rig, (struct frame){ DATA, 0, stream, EACH / 3 }, START);
	return verdict;
}

static void the_budget_is_shared_by_connections(void **state)
{
	(void)state;
	struct rig a = rig_new(), b = rig_new();
	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(upload(&a, 2 * i + 1), GUARD_PASS);
	b.budget = a.budget; /* one worker: what a has filled, b sees */
	for (uint32_t i = 0; i < MORE; i++)
		assert_int_equal(upload(&b, 2 * i + 1), GUARD_PASS);
	assert_int_equal(b.guard.holder.over, 0);
	assert_int_equal(upload(&b, 2 * MORE + 1), GUARD_PASS); /* all grow */
	assert_int_equal(b.guard.holder.over, 1);
	assert_int_equal(b.guard.holder.bytes, MORE * KEPT);
	h2_guard_fini(&b.guard, &b.budget);
	assert_int_equal(b.budget.unfinished_bytes, FIT * KEPT);
	free(b.input);
	free(b.sent);
	rig_free(&a);
}

/* ---- pace ---- */
static enum guard_verdict pace(struct rig *rig, nsec_t now)
{
	return h2_guard_check_pace(&rig->guard, &rig->budget, now);
}

/* The stream of the only upload that has ended early; 0: none has. */
static uint32_t over(struct rig *rig)
{
	uint32_t at = 0;
	const struct guard_body *body = h2_guard_over(&rig->guard, &at);
	assert_int_equal(rig->guard.holder.over, body != NULL);
	return body != NULL ? body->stream : 0;
}

static void a_body_that_is_too_slow_ends_alone(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 3, 9 }, START + SEC),
			 GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE), GUARD_PASS);
	assert_int_equal(over(&rig), 0);
	assert_int_equal(pace(&rig, START + PATIENCE + 1), GUARD_PASS);
	assert_int_equal(over(&rig), 1);
	h2_guard_forget(&rig.guard, &rig.budget, 0, START + PATIENCE);
	assert_int_equal(over(&rig), 0);
	assert_int_equal(rig.guard.upload_count, 1);
	assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, 3, 9 }, START + PATIENCE),
			 GUARD_PASS);
	assert_int_equal(rig.guard.upload_count, 0);
	rig_free(&rig);
}

static struct guard_ended *late(struct rig *rig, nsec_t now)
{
	uint32_t at = 0;

	return guard_ends_late(&rig->guard.ends, &at, PATIENCE, now);
}

/* Stream 1 has ended early, and was answered at `answered`. */
static struct rig rig_answered(nsec_t answered)
{
	struct rig rig = rig_new();

	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(pace(&rig, answered), GUARD_PASS);
	h2_guard_forget(&rig.guard, &rig.budget, 0, answered);
	return rig;
}

static void who_goes_on_behind_the_answer_is_asked_to_stop_and_then_closed(void **state)
{
	(void)state;
	const struct frame drip = { DATA, 0, 1, 1 }, other = { DATA, 0, 7, 1 };
	const nsec_t answered = START + PATIENCE + 1, asked = answered + PATIENCE / 2 + 1;
	struct rig rig = rig_answered(answered);
	assert_null(late(&rig, asked - 1));
	assert_int_equal(give(&rig, drip, asked), GUARD_PASS); /* nobody has asked it */
	struct guard_ended *ended = late(&rig, asked);
	assert_non_null(ended);
	assert_int_equal(ended->stream, 1);
	ended->asked = true;
	ended->since = asked;
	assert_null(late(&rig, asked + PATIENCE));
	assert_int_equal(give(&rig, drip, asked + PATIENCE / 2), GUARD_PASS);
	assert_int_equal(give(&rig, other, asked + PATIENCE / 2 + 1), GUARD_PASS);
	assert_int_equal(give(&rig, drip, asked + PATIENCE / 2 + 1), GUARD_SLOW);
	rig_free(&rig);
}

static void who_ends_the_stream_behind_the_answer_is_not_asked_to(void **state)
{
	(void)state;
	const struct frame ends[] = { { DATA, END_STREAM, 1, 1 },
				      { HEADERS, END_HEADERS | END_STREAM, 1, 9 },
				      { RST, 0, 1, 4 } };
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct rig rig = rig_answered(START + PATIENCE + 1);
		assert_int_equal(give(&rig, ends[i], START + PATIENCE + 1), GUARD_PASS);
		assert_null(late(&rig, START + 10 * PATIENCE));
		rig_free(&rig);
	}
}

static void a_stream_that_was_reset_at_once_is_not_asked_to_stop(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	h2_guard_reset(&rig.guard, &rig.budget, 1);
	assert_null(late(&rig, START + 10 * PATIENCE));
	assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 1 }, START + 10 * PATIENCE),
			 GUARD_PASS);
	rig_free(&rig);
}

static void a_body_that_ends_before_its_answer_is_given_is_none_that_ended_early(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE + 1), GUARD_PASS);
	assert_int_equal(over(&rig), 1);
	assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 9000 }, START + PATIENCE + 1),
			 GUARD_PASS);
	assert_int_equal(rig.budget.unfinished_bytes, 0);
	assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, 1, 9 }, START + PATIENCE + 1),
			 GUARD_PASS);
	assert_int_equal(over(&rig), 0);
	rig_free(&rig);
}

/* Begins an upload and brings so much of it. */
static void bring(struct rig *rig, uint32_t stream, uint32_t bytes, nsec_t now)
{
	assert_int_equal(give(rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 }, now),
			 GUARD_PASS);
	for (uint32_t piece; bytes != 0; bytes -= piece) {
		piece = bytes < 10000 ? bytes : 10000;
		assert_int_equal(give(rig, (struct frame){ DATA, 0, stream, piece }, now),
				 GUARD_PASS);
	}
}

/* The connection goes on, and so do the others. */
static void what_is_too_much_for_a_connection_ends_the_heaviest_that_does_not_grow(void **state)
{
	(void)state;
	const nsec_t later = START + SEC;
	struct rig rig = rig_new();
	rig.budget.conn_bytes_max = 150000;
	bring(&rig, 1, 20000, START);
	bring(&rig, 3, 36000, START);
	bring(&rig, 5, 39000, later);
	assert_int_equal(over(&rig), 0);
	bring(&rig, 7, 39000, later);
	assert_int_equal(over(&rig), 3);
	rig_free(&rig);
}

static void where_all_grow_it_is_the_upload_that_asks(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (uint32_t i = 0; i <= FIT; i++)
		assert_int_equal(upload(&rig, 2 * i + 1), GUARD_PASS);
	assert_int_equal(over(&rig), 2 * FIT + 1);
	assert_int_equal(rig.guard.holder.bytes, CONN_MAX);
	rig_free(&rig);
}

static void who_has_too_much_again_and_again_is_closed(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(upload(&rig, 2 * i + 1), GUARD_PASS);
	uint32_t more = 0;
	enum guard_verdict verdict = GUARD_PASS;
	for (; verdict == GUARD_PASS && more < 50; more++)
		verdict = upload(&rig, 2 * (FIT + more) + 1);
	assert_int_equal(verdict, GUARD_UNFINISHED_BYTES);
	assert_int_equal(more, 5); /* 1,000 tokens, less those of the frames */
	rig_free(&rig);
}

static void many_requests_without_a_byte_are_too_much_as_well(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	enum { COST = GUARD_UPLOAD_COST + 2 * 15000, BORNE = CONN_MAX / COST };
	for (uint32_t i = 0; i <= BORNE; i++)
		assert_int_equal(
			give(&rig, (struct frame){ HEADERS, END_HEADERS, 2 * i + 1, 15000 }, START),
			GUARD_PASS);
	assert_int_equal(over(&rig), 2 * BORNE + 1);
	rig_free(&rig);
}

static void a_frame_behind_a_judged_header_must_come_to_its_end(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
	rig.len -= 1;
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE), GUARD_PASS);
	assert_int_equal(scan(&rig, START + PATIENCE), GUARD_PASS); /* a part of it again */
	assert_int_equal(pace(&rig, START + PATIENCE + 1), GUARD_SLOW);
	rig_free(&rig);
}

static void a_stream_of_frames_that_never_ends_on_a_border_is_not_slow(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
	for (nsec_t s = 0; s < 60; s++) { /* each read ends in the middle of the next header */
		put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
		rig.len -= 9;
		assert_int_equal(scan(&rig, START + s * SEC), GUARD_PASS);
		assert_int_equal(pace(&rig, START + s * SEC), GUARD_PASS);
		rig.len += 9;
	}
	rig_free(&rig);
}

static void a_connection_at_rest_is_not_slow(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, 1, 9 }, START), GUARD_PASS);
	assert_int_equal(pace(&rig, START + 3600 * SEC), GUARD_PASS);
	rig_free(&rig);
}

static void memory_for_many_bodies_is_given_back_when_they_have_ended(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (uint32_t stream = 1; stream <= 199; stream += 2)
		assert_int_equal(
			give(&rig, (struct frame){ HEADERS, END_HEADERS, stream, 1 }, START),
			GUARD_PASS);
	assert_int_equal(pace(&rig, START), GUARD_PASS);
	assert_non_null(rig.guard.many);
	for (uint32_t stream = 1; stream <= 199; stream += 2)
		assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, stream, 1 }, START),
				 GUARD_PASS);
	assert_int_equal(pace(&rig, START), GUARD_PASS);
	assert_null(rig.guard.many);
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_gives_tokens_back_up_to_the_full_number),
		cmocka_unit_test(time_that_passes_in_small_steps_counts_in_full),
		cmocka_unit_test(small_frames_are_counted_by_the_second),
		cmocka_unit_test(answered_requests_give_tokens_back),
		cmocka_unit_test(so_many_requests_may_end_before_their_answer),
		cmocka_unit_test(no_more_than_100_are_begun_for_nothing_however_they_are_given_up),
		cmocka_unit_test(a_new_connection_has_fewer_begun_at_once),
		cmocka_unit_test(time_gives_it_one_after_the_other_until_it_has_all),
		cmocka_unit_test(bodies_that_are_held_count_as_unfinished),
		cmocka_unit_test(a_new_connection_brings_its_bodies_by_and_by),
		cmocka_unit_test(what_is_dropped_of_a_body_too_large_counts_as_brought),
		cmocka_unit_test(who_has_little_is_not_closed_for_what_others_have),
		cmocka_unit_test(a_hundred_requests_are_worked_on_at_once_by_who_gives_up_none),
		cmocka_unit_test(who_has_had_answers_may_give_up_as_many_again),
		cmocka_unit_test(only_answers_count_in_advance),
		cmocka_unit_test(a_proxy_may_give_up_what_many_callers_do),
		cmocka_unit_test(a_proxy_has_as_much_begun_at_once_as_it_likes_from_the_start),
		cmocka_unit_test(a_proxy_may_have_unfinished_what_the_worker_has_room_for),
		cmocka_unit_test(an_answered_request_makes_up_for_an_aborted_one),
		cmocka_unit_test(five_a_second_may_be_given_up),
		cmocka_unit_test(streams_below_the_highest_may_begin_bodies),
		cmocka_unit_test(the_budget_is_shared_by_connections),
		cmocka_unit_test(a_body_that_is_too_slow_ends_alone),
		cmocka_unit_test(who_goes_on_behind_the_answer_is_asked_to_stop_and_then_closed),
		cmocka_unit_test(who_ends_the_stream_behind_the_answer_is_not_asked_to),
		cmocka_unit_test(a_stream_that_was_reset_at_once_is_not_asked_to_stop),
		cmocka_unit_test(who_has_too_much_again_and_again_is_closed),
		cmocka_unit_test(
			a_body_that_ends_before_its_answer_is_given_is_none_that_ended_early),
		cmocka_unit_test(
			what_is_too_much_for_a_connection_ends_the_heaviest_that_does_not_grow),
		cmocka_unit_test(where_all_grow_it_is_the_upload_that_asks),
		cmocka_unit_test(many_requests_without_a_byte_are_too_much_as_well),
		cmocka_unit_test(a_frame_behind_a_judged_header_must_come_to_its_end),
		cmocka_unit_test(a_stream_of_frames_that_never_ends_on_a_border_is_not_slow),
		cmocka_unit_test(a_connection_at_rest_is_not_slow),
		cmocka_unit_test(memory_for_many_bodies_is_given_back_when_they_have_ended),
	};
	return cmocka_run_group_tests_name("h2_guard_budgets", tests, NULL, NULL);
}
