/* Random histories of one slot against a naive model with a clock of its own. */
#include "gateway/limits/limit_table.h"

#include "tenants/limit.h"
#include "tests/support/one_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* A bucket's level is counted in 1/60,000 units: a rate a minute adds itself every millisecond. */
enum { DAY_S = 86400, MODEL_DAYS = 200, MODEL_HELD = 32, MODEL_UNIT = 60000 };

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */

/* A repeatable source of chance (xorshift64*). */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(2685821657736338717);
}

struct held {
	bool in_use;
	struct limit_ask ask;
	uint64_t wall_s;
};

struct model {
	struct tenant_limits limits;
	nsec_t now, at; /* and when the buckets were refilled last */
	int64_t requests, tokens;
	uint64_t concurrent;
	uint64_t day_usd[MODEL_DAYS], month_usd[MODEL_DAYS / 28 + 2];
	struct held held[MODEL_HELD];
};

static int64_t units(uint64_t n)
{
	return (int64_t)n * MODEL_UNIT;
}

static void fill(int64_t *level, struct quota_limit limit, nsec_t passed)
{
	*level += (int64_t)(passed / MSEC * limit.per_minute);
	if (*level > units(limit.burst))
		*level = units(limit.burst);
}

static void model_refill(struct model *m)
{
	fill(&m->requests, m->limits.requests, m->now - m->at);
	fill(&m->tokens, m->limits.tokens, m->now - m->at);
	m->at = m->now;
}

static uint64_t model_wall(const struct model *m)
{
	return monday + m->now / SEC;
}

static uint64_t *model_day(struct model *m, uint64_t wall_s)
{
	return &m->day_usd[quota_day(wall_s) - quota_day(monday)];
}

static uint64_t *model_month(struct model *m, uint64_t wall_s)
{
	return &m->month_usd[quota_month(wall_s) - quota_month(monday)];
}

/* The limit that has to refuse; NULL: granted. */
static const char *model_take(struct model *m, const struct limit_ask *ask)
{
	uint64_t *day = model_day(m, model_wall(m)), *month = model_month(m, model_wall(m));

	if (units(ask->requests) > m->requests)
		return "requests_per_minute";
	if (units(ask->tokens) > m->tokens)
		return "tokens_per_minute";
	if (m->concurrent + ask->concurrent > m->limits.concurrent)
		return "concurrent";
	if (*day + ask->usd > m->limits.usd_per_day)
		return "usd_per_day";
	if (*month + ask->usd > m->limits.usd_per_month)
		return "usd_per_month";
	m->requests -= units(ask->requests);
	m->tokens -= units(ask->tokens);
	m->concurrent += ask->concurrent;
	*day += ask->usd;
	*month += ask->usd;
	return NULL;
}

static void model_settle(struct model *m, const struct held *held, uint64_t tokens, uint64_t usd)
{
	m->tokens += units(held->ask.tokens) - units(tokens);
	model_refill(m);
	*model_day(m, held->wall_s) += usd - held->ask.usd;
	*model_month(m, held->wall_s) += usd - held->ask.usd;
}

/* Rates that divide a minute, and times in milliseconds: nothing is rounded on either side. */
static void model_init(struct model *m, uint64_t *seed)
{
	static const uint64_t rates[] = { 60, 600, 6000, 60000 };
	struct tenant_limits limits = limit_defaults();

	limits.requests =
		(struct quota_limit){ rates[next_random(seed) % 4], 1 + next_random(seed) % 20 };
	limits.tokens = (struct quota_limit){ rates[next_random(seed) % 4],
					      100 + next_random(seed) % 5000 };
	limits.concurrent = 1 + (uint32_t)(next_random(seed) % 6);
	limits.usd_per_day = 1000 + next_random(seed) % 20000;
	limits.usd_per_month = 5 * limits.usd_per_day;
	*m = (struct model){ .limits = limits,
			     .requests = units(limits.requests.burst),
			     .tokens = units(limits.tokens.burst) };
}

/* A few seconds, sometimes a day or two. */
static void time_passes(struct model *m, uint64_t *seed)
{
	m->now += next_random(seed) % 3000 * MSEC;
	if (next_random(seed) % 40 == 0)
		m->now += next_random(seed) % (2 * DAY_S) * SEC;
	model_refill(m);
}

/* True: both granted. */
static bool attempt_begins(struct model *m, struct limit_slot *slot, struct held *held,
			   uint64_t *seed)
{
	held->ask =
		(struct limit_ask){ .requests = next_random(seed) % 2,
				    .tokens = 1 + next_random(seed) % (m->limits.tokens.burst / 3),
				    .usd = 1 + next_random(seed) % 800,
				    .concurrent = (uint32_t)(next_random(seed) % 2) };
	held->wall_s = model_wall(m);
	const char *due = model_take(m, &held->ask);
	struct limit_refusal refusal = { .limit = "none" };

	held->in_use = one_take(slot, &m->limits, &held->ask, m->now, held->wall_s, &refusal);
	assert_int_equal(held->in_use, due == NULL);
	if (due != NULL)
		assert_string_equal(refusal.limit, due);
	return held->in_use;
}

static void attempt_ends(struct model *m, struct limit_slot *slot, struct held *held,
			 uint64_t *seed)
{
	const uint64_t tokens = next_random(seed) % (held->ask.tokens * 3 / 2 + 1);
	const uint64_t usd = next_random(seed) % (held->ask.usd * 5 / 4 + 1);
	const uint64_t beyond = usd > held->ask.usd ? usd - held->ask.usd : 0;

	/* Days later the slot may have forgotten that day, which the model never does. */
	if (quota_day(model_wall(m)) - quota_day(held->wall_s) < 2) {
		model_settle(m, held, tokens, usd);
		assert_int_equal(
			one_settle(slot, &m->limits, &held->ask, held->wall_s, tokens, usd, m->now),
			beyond);
	}
	if (held->ask.concurrent != 0) {
		one_release(slot);
		m->concurrent--;
	}
	held->in_use = false;
}

static void assert_agree(struct model *m, const struct limit_slot *slot)
{
	const struct limit_state is = limit_read(slot, model_wall(m));

	assert_int_equal(is.concurrent, m->concurrent);
	assert_int_equal(is.usd_day, *model_day(m, model_wall(m)));
	assert_int_equal(is.usd_month, *model_month(m, model_wall(m)));
	assert_int_equal(quota_remaining(is.requests.tat, m->limits.requests, m->now),
			 m->requests / MODEL_UNIT);
	assert_int_equal(quota_remaining(is.tokens.tat, m->limits.tokens, m->now),
			 m->tokens < 0 ? 0 : m->tokens / MODEL_UNIT);
}

static void random_histories_agree_with_a_naive_model(void **state)
{
	enum { HISTORIES = 60, STEPS = 1000 };
	const int fd = limit_table_create(HISTORIES);
	struct limit_table *table = limit_table_map(fd);
	uint64_t seed = 3, granted = 0, refused = 0;

	(void)state;
	assert_non_null(table);
	for (uint8_t history = 0; history < HISTORIES; history++) {
		struct limit_slot *slot = limit_table_slot(table, (uint8_t[16]){ history });
		struct model m;

		assert_non_null(slot);
		model_init(&m, &seed);
		for (int step = 0; step < STEPS; step++) {
			struct held *held = &m.held[next_random(&seed) % MODEL_HELD];

			time_passes(&m, &seed);
			if (held->in_use)
				attempt_ends(&m, slot, held, &seed);
			else if (attempt_begins(&m, slot, held, &seed))
				granted++;
			else
				refused++;
			assert_agree(&m, slot);
		}
	}
	assert_true(granted > 5000 && refused > 5000); /* both sides were visited */
	limit_table_unmap(table);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_histories_agree_with_a_naive_model),
	};

	return cmocka_run_group_tests_name("limit_table_model", tests, NULL, NULL);
}
