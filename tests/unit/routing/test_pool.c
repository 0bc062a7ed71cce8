/* Picks of a pool, alone and in a small world: arrivals and durations by a seeded generator. */
#include "routing/pool.h"

#include "codec/base/attr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MEMBERS = 8 };

struct world {
	struct pool_load loads[MEMBERS];
	struct pool_member members[MEMBERS];
	uint32_t count;
	nsec_t now;
	uint64_t chance;
};

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0..1 */
static double uniform(uint64_t *state)
{
	return (double)(next(state) >> 11) / 9007199254740992.0;
}

/* `weights` ends at the first 0. */
static void world_init(struct world *w, const uint32_t weights[MEMBERS])
{
	*w = (struct world){ .now = 1000 * SEC, .chance = 1 };
	for (; w->count < MEMBERS && weights[w->count] != 0; w->count++)
		w->members[w->count] = (struct pool_member){ .load = &w->loads[w->count],
							     .weight = weights[w->count],
							     .share = POOL_SHARE_FULL };
}

static uint64_t everybody(const struct world *w)
{
	return (UINT64_C(1) << w->count) - 1;
}

static uint32_t pick(struct world *w, uint64_t may)
{
	return pool_pick(w->members, w->count, may, w->now, next(&w->chance)).member;
}

/* One call after the other, each `took[m]` long. */
static void run_one_by_one(struct world *w, int calls, const nsec_t *took, uint32_t picked[MEMBERS])
{
	for (int i = 0; i < calls; i++) {
		const uint32_t m = pick(w, everybody(w));
		picked[m]++;
		w->now += took[m];
		pool_note(&w->loads[m], true, took[m], w->now);
	}
}

/* ---- turns ---- */

static void one_member_is_always_picked_and_nothing_is_drawn(void **state)
{
	static const uint32_t weights[MEMBERS] = { 7 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (int i = 0; i < 100; i++) {
		const struct pool_choice choice =
			pool_pick(w.members, 1, 1, w.now, next(&w.chance));
		assert_int_equal(choice.member, 0);
		assert_int_equal(choice.drawn_count, 0);
	}
}

static void idle_members_take_turns_exactly_by_weight(void **state)
{
	static const struct {
		const char *name;
		uint32_t weights[MEMBERS];
	} rows[] = {
		{ "two alike", { 1, 1 } },
		{ "three to one", { 3, 1 } },
		{ "one to ninety-nine", { 1, 99 } },
		{ "coprime", { 3, 7, 11, 13 } },
		{ "the heavy one last", { 1, 2, 3, 100 } },
	};
	static const nsec_t took[MEMBERS] = { 100 * MSEC, 100 * MSEC, 100 * MSEC, 100 * MSEC };

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct world w;
		uint32_t picked[MEMBERS] = { 0 }, total = 0;

		world_init(&w, rows[r].weights);
		for (uint32_t i = 0; i < w.count; i++)
			total += rows[r].weights[i];
		run_one_by_one(&w, (int)total * 5, took, picked);
		for (uint32_t i = 0; i < w.count; i++)
			if (picked[i] != rows[r].weights[i] * 5)
				fail_msg("%s: member %u: %u", rows[r].name, i, picked[i]);
	}
}

static void the_largest_weights_do_not_overflow(void **state)
{
	struct pool_load loads[POOL_MEMBERS_MAX] = { 0 };
	struct pool_member members[POOL_MEMBERS_MAX];
	uint32_t picked[POOL_MEMBERS_MAX] = { 0 };

	(void)state;
	for (size_t i = 0; i < POOL_MEMBERS_MAX; i++)
		members[i] = (struct pool_member){ .load = &loads[i],
						   .weight = UINT32_MAX,
						   .share = POOL_SHARE_FULL };
	for (uint64_t i = 0; i < 640; i++)
		picked[pool_pick(members, POOL_MEMBERS_MAX, UINT64_MAX, SEC, i).member]++;
	for (size_t i = 0; i < POOL_MEMBERS_MAX; i++)
		assert_int_equal(picked[i], 10);
}

static void slow_start_takes_a_part_of_the_weight(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1 };
	static const nsec_t took[MEMBERS] = { MSEC, MSEC };
	uint32_t picked[MEMBERS] = { 0 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	w.members[1].share = POOL_SHARE_FULL / 4;
	run_one_by_one(&w, 500, took, picked);
	assert_int_equal(picked[1], 100);
}

/* ---- who may be picked ---- */

static void only_those_who_may_are_picked(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1, 1, 1 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (int i = 0; i < 100; i++) {
		const uint32_t m = pick(&w, 0xa);
		assert_true(m == 1 || m == 3);
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(pick(&w, 4), 2);
}

static void the_own_zone_goes_first_while_half_of_it_can_be_used(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1, 1, 1, 1, 1 };
	static const struct {
		const char *name;
		uint64_t may, expected;
	} rows[] = {
		{ "all well", 0x3f, 0x0f },        { "three of four", 0x37, 0x07 },
		{ "two of four", 0x33, 0x03 },     { "one of four", 0x31, 0x31 },
		{ "none of the own", 0x30, 0x30 }, { "the others are gone", 0x0f, 0x0f },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct world w;
		uint64_t seen = 0;

		world_init(&w, weights);
		for (uint32_t i = 0; i < 4; i++)
			w.members[i].own_zone = true;
		for (int i = 0; i < 200; i++)
			seen |= UINT64_C(1) << pick(&w, rows[r].may);
		if (seen != rows[r].expected)
			fail_msg("%s: %lx", rows[r].name, (unsigned long)seen);
	}
}

static void without_zones_nobody_is_preferred(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1, 1 };
	uint64_t seen = 0;
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (int i = 0; i < 30; i++)
		seen |= UINT64_C(1) << pick(&w, 7);
	assert_int_equal(seen, 7);
}

/* ---- latency ---- */

static void a_slow_member_is_avoided_and_tried_again_by_and_by(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1 };
	static const nsec_t took[MEMBERS] = { 100 * MSEC, 4000 * MSEC };
	static const nsec_t well[MEMBERS] = { 100 * MSEC, 100 * MSEC };
	uint32_t picked[MEMBERS] = { 0 }, later[MEMBERS] = { 0 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	run_one_by_one(&w, 1000, took, picked);
	assert_in_range(picked[1], 2, 20);
	w.now += 30 * SEC;
	run_one_by_one(&w, 1000, well, later);
	assert_in_range(later[1], 400, 550);
}

static void one_that_hangs_is_left_alone(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (int i = 0; i < 1000; i++) { /* calls to 1 never come back */
		const uint32_t m = pick(&w, 3);
		w.loads[m].in_flight++;
		if (m == 0) {
			w.loads[0].in_flight--;
			pool_note(&w.loads[0], true, 100 * MSEC, w.now);
		}
		w.now += 100 * MSEC;
	}
	assert_in_range(w.loads[1].in_flight, 1, 5);
}

static void a_call_given_up_counts_as_slow(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1 };
	struct world w;
	uint32_t second = 0;

	(void)state;
	world_init(&w, weights);
	pool_note(&w.loads[0], true, 200 * MSEC, w.now);
	pool_waited(&w.loads[1], 20 * SEC, w.now);
	pool_waited(&w.loads[1], 1 * MSEC, w.now); /* tells nothing new */
	for (int i = 0; i < 100; i++)
		second += pick(&w, 3);
	assert_int_equal(second, 0);
}

/* ---- a small world: calls side by side ---- */

struct call {
	nsec_t begin, end;
	uint32_t member;
};

static uint32_t smooth_turns(struct world *w)
{
	int64_t total = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		w->members[i].turn += w->members[i].weight;
		total += w->members[i].weight;
		if (w->members[i].turn > w->members[best].turn)
			best = i;
	}
	w->members[best].turn -= total;
	return best;
}

static void end_calls(struct world *w, struct call *calls, uint32_t *count)
{
	for (uint32_t i = 0; i < *count;) {
		if (calls[i].end > w->now) {
			i++;
			continue;
		}
		struct pool_load *load = &w->loads[calls[i].member];
		load->in_flight--;
		pool_note(load, true, calls[i].end - calls[i].begin, calls[i].end);
		calls[i] = calls[--*count];
	}
}

enum { CALLS = 20000, OPEN_MAX = 4096 };

/* Calls that arrive at random, `per_s` of them; member m takes mean[m] with some spread. Fills what each
 * took, and how often each member was picked. */
static void simulate(struct world *w, double per_s, const nsec_t *mean, bool turns_only,
		     nsec_t took[CALLS], uint32_t picked[MEMBERS])
{
	struct call open[OPEN_MAX];
	uint32_t count = 0;
	uint64_t arrivals = 2, durations = 3;

	for (int i = 0; i < CALLS; i++) {
		w->now += (nsec_t)(-log(1 - uniform(&arrivals)) / per_s * 1e9);
		end_calls(w, open, &count);
		const uint32_t m = turns_only ? smooth_turns(w) : pick(w, everybody(w));
		picked[m]++;
		took[i] = (nsec_t)((double)mean[m] * (0.7 + 0.6 * uniform(&durations)));
		assert_in_range(count, 0, OPEN_MAX - 1);
		open[count++] = (struct call){ w->now, w->now + took[i], m };
		w->loads[m].in_flight++;
	}
}

static void shares_are_those_of_the_weights_at_equal_latency(void **state)
{
	static const struct {
		const char *name;
		uint32_t weights[MEMBERS];
		double per_s; /* x 0.2 s: calls in flight */
	} rows[] = {
		{ "alike, alone", { 1, 1, 1 }, 1 },
		{ "alike, two in flight", { 1, 1, 1 }, 10 },
		{ "alike, a hundred in flight", { 1, 1, 1 }, 500 },
		{ "three to one, one in flight", { 3, 1 }, 5 },
		{ "three to one, five in flight", { 3, 1 }, 25 },
		{ "three to one, forty in flight", { 3, 1 }, 200 },
		{ "one two three, two in flight", { 1, 2, 3 }, 10 },
		{ "one two three, ten in flight", { 1, 2, 3 }, 50 },
		{ "one two three, a hundred in flight", { 1, 2, 3 }, 500 },
		{ "ten to one, twenty in flight", { 10, 1, 1 }, 100 },
	};
	static const nsec_t mean[MEMBERS] = { 200 * MSEC, 200 * MSEC, 200 * MSEC };
	static nsec_t took[CALLS];

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		uint32_t picked[MEMBERS] = { 0 }, total = 0;
		struct world w;

		world_init(&w, rows[r].weights);
		for (uint32_t i = 0; i < w.count; i++)
			total += rows[r].weights[i];
		simulate(&w, rows[r].per_s, mean, false, took, picked);
		for (uint32_t i = 0; i < w.count; i++) {
			const double due = (double)CALLS * rows[r].weights[i] / total;
			if (fabs(picked[i] - due) > 0.05 * due)
				fail_msg("%s: member %u: %u of %.0f", rows[r].name, i, picked[i],
					 due);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	const nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

/* The time that 99 of 100 calls stay below. */
static nsec_t tail(nsec_t took[CALLS])
{
	qsort(took, CALLS, sizeof(took[0]), by_size);
	return took[CALLS / 100 * 99];
}

static void the_tail_is_better_than_in_turn_at_unequal_latency(void **state)
{
	static const struct {
		const char *name;
		nsec_t mean[MEMBERS];
		double per_s;
	} rows[] = {
		{ "one of three is slow", { 200 * MSEC, 200 * MSEC, 3000 * MSEC }, 50 },
		{ "one is slow, few calls", { 200 * MSEC, 200 * MSEC, 3000 * MSEC }, 5 },
	};
	static const uint32_t weights[MEMBERS] = { 1, 1, 1 };
	static nsec_t turns[CALLS], choices[CALLS];

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		uint32_t picked[MEMBERS] = { 0 };
		struct world w;

		world_init(&w, weights);
		simulate(&w, rows[r].per_s, rows[r].mean, true, turns, picked);
		world_init(&w, weights);
		simulate(&w, rows[r].per_s, rows[r].mean, false, choices, picked);
		const double a = (double)tail(turns) / 1e6, b = (double)tail(choices) / 1e6;
		if (b > 0.9 * a)
			fail_msg("%s: p99 %.0f ms in turn, %.0f ms chosen", rows[r].name, a, b);
	}
}

/* ---- outliers ---- */

static void feed(struct world *w, uint32_t member, int good, int bad, nsec_t took)
{
	for (int i = 0; i < good; i++)
		pool_note(&w->loads[member], true, took, w->now);
	for (int i = 0; i < bad; i++)
		pool_note(&w->loads[member], false, 0, w->now);
}

static uint64_t ejected(const struct world *w)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < w->count; i++)
		out |= (uint64_t)(w->loads[i].ejected_until > w->now) << i;
	return out;
}

static void outliers_are_ejected_and_come_back(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1, 1, 1 };
	static const struct {
		const char *name;
		int bad[4];
		nsec_t took[4];
		uint64_t out;
	} rows[] = {
		{ "all alike", { 1, 1, 1, 1 }, { SEC, SEC, SEC, SEC }, 0 },
		{ "one is five times as slow", { 0 }, { SEC, SEC, SEC, 5 * SEC }, 8 },
		{ "one is three times as slow", { 0 }, { SEC, SEC, SEC, 3 * SEC }, 0 },
		{ "tiny differences", { 0 }, { MSEC, MSEC, MSEC, 50 * MSEC }, 0 },
		{ "one fails in half of its calls", { 0, 20, 0, 0 }, { SEC, SEC, SEC, SEC }, 2 },
		{ "all fail alike", { 20, 20, 20, 20 }, { SEC, SEC, SEC, SEC }, 0 },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct world w;

		world_init(&w, weights);
		for (uint32_t i = 0; i < 4; i++)
			feed(&w, i, 20, rows[r].bad[i], rows[r].took[i]);
		pool_review(w.members, w.count, w.now);
		if (ejected(&w) != rows[r].out)
			fail_msg("%s: %lx", rows[r].name, (unsigned long)ejected(&w));
		for (int i = 0; i < 50 && rows[r].out != 0; i++)
			assert_int_equal(rows[r].out >> pick(&w, 0xf) & 1, 0);
		w.now += 10 * SEC;
		assert_int_equal(ejected(&w), 0);
	}
}

static void no_more_than_half_are_ejected_and_the_last_one_never(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1, 1, 1, 1 };
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (uint32_t i = 0; i < 5; i++)
		feed(&w, i, 20, 0, i < 3 ? SEC : 20 * SEC * i);
	for (int i = 0; i < 5; i++)
		pool_review(w.members, w.count, w.now);
	assert_int_equal(ejected(&w), 0x18);
	for (uint32_t i = 0; i < 3; i++) /* now two of the others fail */
		feed(&w, i, 0, i == 0 ? 0 : 80, SEC);
	pool_review(w.members, w.count, w.now);
	assert_int_equal(ejected(&w), 0x18);
	assert_true((0x18 >> pick(&w, 0x18) & 1) !=
		    0); /* only ejected ones may: then they are it */
}

static void who_is_ejected_again_stays_away_longer(void **state)
{
	static const uint32_t weights[MEMBERS] = { 1, 1 };
	nsec_t last = 0;
	struct world w;

	(void)state;
	world_init(&w, weights);
	for (int round = 0; round < 8; round++) {
		feed(&w, 0, 20, 0, SEC);
		feed(&w, 1, 20, 0, 30 * SEC);
		pool_review(w.members, w.count, w.now);
		const nsec_t away = w.loads[1].ejected_until - w.now;
		assert_true(away >= last && away <= 320 * SEC);
		assert_true(round >= 6 || away > last);
		last = away;
		w.now += away;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_member_is_always_picked_and_nothing_is_drawn),
		cmocka_unit_test(idle_members_take_turns_exactly_by_weight),
		cmocka_unit_test(the_largest_weights_do_not_overflow),
		cmocka_unit_test(slow_start_takes_a_part_of_the_weight),
		cmocka_unit_test(only_those_who_may_are_picked),
		cmocka_unit_test(the_own_zone_goes_first_while_half_of_it_can_be_used),
		cmocka_unit_test(without_zones_nobody_is_preferred),
		cmocka_unit_test(a_slow_member_is_avoided_and_tried_again_by_and_by),
		cmocka_unit_test(one_that_hangs_is_left_alone),
		cmocka_unit_test(a_call_given_up_counts_as_slow),
		cmocka_unit_test(shares_are_those_of_the_weights_at_equal_latency),
		cmocka_unit_test(the_tail_is_better_than_in_turn_at_unequal_latency),
		cmocka_unit_test(outliers_are_ejected_and_come_back),
		cmocka_unit_test(no_more_than_half_are_ejected_and_the_last_one_never),
		cmocka_unit_test(who_is_ejected_again_stays_away_longer),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
