/* limits/limits.lua in a real Redis, behind the real store, against the limit table: random histories of three
 * gateways end in the same decisions, the same waits to the nanosecond and the same figures as with one
 * table that all of them share. Redis's clock is the test's: the script's TIME reads a list.
 *
 * ctest: timeout=60 */
enum {
	WORKERS = 3,
	SCOPES = 3,
	HELD = 10,
	HISTORIES = 2000,
	LOSSES = 60, /* histories of these */
	STEPS = 24,
	DAY_S = 86400,
	RIG_SLOTS = HISTORIES * SCOPES,
};

#include "tests/exact/limiter_script_rig.h"

static void all_settle_down(void)
{
	for (uint32_t i = 0; i < WORKERS; i++)
		settle_down(workers[i]);
}

static void all_renew(void)
{
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_true(rig_fire(&workers[i]->renew));
	all_settle_down();
}

/* ---- one history ---- */

struct held {
	bool in_use, placed, settled;
	struct limiter_redis *at;
	struct reservation ours, model;
	struct limit_scope our_scopes[SCOPES], model_scopes[SCOPES];
};

struct history {
	uint64_t seed;
	struct limit_scope scopes[SCOPES];
	uint32_t scope_count;
	struct limiter_memory model;
	uint64_t renewed_us;
	struct held held[HELD];
};

static bool is_done;

static void on_done(struct reservation *reservation)
{
	(void)reservation;
	is_done = true;
}

static struct tenant_limits any_limits(uint64_t *seed)
{
	struct tenant_limits limits = limit_none();

	limits.count_only = chance(seed, 6) == 0;
	if (chance(seed, 4) != 0)
		limits.requests = (struct quota_limit){ any_size(seed, 5), any_size(seed, 2) };
	if (chance(seed, 4) != 0)
		limits.tokens = (struct quota_limit){ any_size(seed, 7), any_size(seed, 7) };
	if (chance(seed, 3) != 0)
		limits.concurrent = (uint32_t)chance(seed, 6);
	if (chance(seed, 3) != 0)
		limits.usd_per_day = any_size(seed, 15);
	if (chance(seed, 3) != 0)
		limits.usd_per_month = any_size(seed, 15);
	return limits;
}

/* A new tenant, whose keys nobody had before. `table` NULL: without a model. */
static void history_init(struct history *history, uint64_t number, struct limit_table *table)
{
	*history = (struct history){ .seed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) };
	history->scope_count = 1 + (uint32_t)chance(&history->seed, SCOPES);
	for (uint32_t i = 0; i < history->scope_count; i++) {
		const uint64_t name[2] = { number * UINT64_C(0x9e3779b97f4a7c15) + i,
					   (number * SCOPES + i + 1) << 32 };
		struct limit_scope *scope = &history->scopes[i];
		(void)memcpy(scope->key, name, sizeof(scope->key));
		scope->holder = (enum limit_holder)i;
		scope->limits = any_limits(&history->seed);
	}
	if (table != NULL)
		limiter_memory_init(&history->model, table);
	history->renewed_us = clock_us;
}

/* Mostly moments, now and then days: then all leases are over and have to be renewed. */
static void time_passes(struct history *history)
{
	static const uint64_t spans[] = { 1, 1000, MICROS / 10, 3 * MICROS, 100 * MICROS };
	uint64_t span = chance(&history->seed, spans[chance(&history->seed, COUNT_OF(spans))]) + 1;

	if (chance(&history->seed, 30) == 0)
		span = chance(&history->seed, 4 * (uint64_t)DAY_S) * MICROS;
	if (chance(&history->seed, 500) == 0)
		span = chance(&history->seed, 70 * (uint64_t)DAY_S) * MICROS;
	clock_us += span;
	tell_time();
	if (clock_us - history->renewed_us > 10 * MICROS) {
		all_renew();
		history->renewed_us = clock_us;
	}
}

static uint64_t any_part(uint64_t *seed, uint64_t whole)
{
	return chance(seed, (whole < UINT64_MAX / 8 ? whole : 1000000) + 2) / (1 + chance(seed, 8));
}

/* In scopes of its own. */
static struct reservation any_claim(struct history *history, struct limit_scope scopes[SCOPES])
{
	uint64_t *seed = &history->seed;
	const struct tenant_limits *limits =
		&history->scopes[chance(seed, history->scope_count)].limits;
	struct reservation claim = {
		.scopes = scopes,
		.scope_count = history->scope_count,
		.ask = { .requests = chance(seed, 5) != 0,
			 .tokens = any_part(seed, limits->tokens.burst),
			 .usd = any_part(seed, limits->usd_per_day),
			 .concurrent = chance(seed, 2) != 0 },
		.now = loop.now,
		.wall_s = loop.wall_s,
		.done = on_done,
	};

	(void)memcpy(scopes, history->scopes, sizeof(history->scopes));
	return claim;
}

static void same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a != NULL)
		assert_string_equal(a, b);
}

static void same_answer(const struct reservation *ours, const struct reservation *model)
{
	assert_int_equal(ours->granted, model->granted);
	if (!model->granted) {
		assert_int_equal(ours->refusal.err, model->refusal.err);
		same_text(ours->refusal.limit, model->refusal.limit);
		assert_int_equal(ours->refusal.holder, model->refusal.holder);
		assert_true(ours->refusal.wait_ns == model->refusal.wait_ns);
		assert_true(ours->refusal.left == model->refusal.left);
		assert_true(ours->refusal.budget == model->refusal.budget);
		return;
	}
	for (uint32_t i = 0; i < model->scope_count; i++) {
		same_text(ours->scopes[i].would_refuse, model->scopes[i].would_refuse);
		assert_int_equal(ours->scopes[i].passed_over, model->scopes[i].passed_over);
	}
}

static void begin(struct history *history, struct held *held)
{
	*held = (struct held){ .at = workers[chance(&history->seed, WORKERS)] };
	held->ours = held->model = any_claim(history, held->our_scopes);
	held->model.scopes = held->model_scopes;
	(void)memcpy(held->model_scopes, held->our_scopes, sizeof(held->our_scopes));
	struct limiter *limiter = limiter_redis_limiter(held->at);
	struct limiter *model = &history->model.limiter;

	is_done = false;
	assert_int_equal(limiter->reserve(limiter, &held->ours), LIMITER_PENDING);
	settle_down(held->at);
	assert_true(is_done);
	assert_int_equal(model->reserve(model, &held->model), LIMITER_DONE);
	same_answer(&held->ours, &held->model);
	held->in_use = held->model.granted;
	held->placed = held->in_use && held->model.ask.concurrent != 0;
}

/* Settled, or released, or both. */
static void go_on(struct history *history, struct held *held)
{
	struct limiter *limiter = limiter_redis_limiter(held->at), *model = &history->model.limiter;
	const struct limit_ask *ask = &held->model.ask;
	const uint64_t tokens = any_part(&history->seed, 2 * ask->tokens);
	const uint64_t usd = any_part(&history->seed, 2 * ask->usd);

	if (!held->settled)
		assert_true(limiter->settle(limiter, &held->ours, tokens, usd, loop.now) ==
			    model->settle(model, &held->model, tokens, usd, loop.now));
	held->settled = true;
	if (held->placed && chance(&history->seed, 2) == 0) {
		limiter->release(limiter, &held->ours);
		model->release(model, &held->model);
		held->placed = false;
	}
	held->in_use = held->placed;
	settle_down(held->at);
}

static nsec_t not_past(nsec_t tat)
{
	return tat > loop.now ? tat : loop.now;
}

/* By any gateway; what it shows then is what the table shows. */
static void top_up(struct history *history, struct limit_table *table)
{
	const struct limit_scope *tenant = &history->scopes[0];
	const uint64_t usd = any_part(&history->seed, tenant->limits.usd_per_day);
	struct limit_slot *slot = limit_table_slot(table, tenant->key);
	struct limiter_redis *redis = workers[chance(&history->seed, WORKERS)];
	struct limiter_query *question = limiter_query_new(tenant->key, &tenant->key, 1, usd);

	limiter_redis_ask(redis, question);
	settle_down(redis);
	limit_top_up(slot, usd, loop.wall_s);
	assert_int_equal(limiter_query_wait(question, 0), LIMITER_SAID_DONE);
	const struct limit_state ours = *limiter_query_state(question, 0);
	const struct limit_state model = limit_read(slot, loop.wall_s);
	limiter_query_free(question);
	assert_true(ours.usd_day == model.usd_day && ours.usd_month == model.usd_month);
	assert_true(ours.usd_day_more == model.usd_day_more);
	assert_true(ours.usd_month_more == model.usd_month_more);
	assert_true(not_past(ours.tokens.tat) == not_past(model.tokens.tat));
	assert_int_equal(ours.concurrent, model.concurrent);
}

static void same_figures(const struct history *history, struct limit_table *table)
{
	for (uint32_t i = 0; i < history->scope_count; i++) {
		const struct limiter_state ours = state_in_redis(history->scopes, i);
		const struct limit_state model =
			limit_read(limit_table_slot(table, history->scopes[i].key), loop.wall_s);
		assert_true(not_past(ours.requests.ns) == not_past(model.requests.tat));
		assert_true(not_past(ours.tokens.ns) == not_past(model.tokens.tat));
		assert_int_equal(ours.places, model.concurrent);
		assert_true(ours.day == model.usd_day);
		assert_true(ours.month == model.usd_month);
	}
}

static void live(struct history *history, struct limit_table *table)
{
	for (uint32_t step = 0; step < STEPS; step++) {
		struct held *held = &history->held[chance(&history->seed, HELD)];
		time_passes(history);
		if (chance(&history->seed, 16) == 0)
			top_up(history, table);
		else if (held->in_use)
			go_on(history, held);
		else
			begin(history, held);
	}
	same_figures(history, table);
	for (uint32_t i = 0; i < HELD; i++)
		while (history->held[i].in_use)
			go_on(history, &history->held[i]);
	same_figures(history, table);
}

static void three_gateways_decide_as_one_table_would(void **state)
{
	const uint64_t count = getenv("SLUICE_SANITIZE") != NULL && getenv("SLUICE_SANITIZE")[0]
				       ? HISTORIES / 10
				       : HISTORIES;
	const int fd = limit_table_create(HISTORIES * SCOPES);
	struct limit_table *table = limit_table_map(fd);
	static struct history history;

	(void)state;
	assert_non_null(table);
	(void)close(fd);
	for (uint64_t number = 0; number < count; number++) {
		if (number % 500 == 0)
			print_message("history %llu\n", (unsigned long long)number);
		history_init(&history, number, table);
		live(&history, table);
	}
	limit_table_unmap(table);
}

/* ---- losses ---- */

/* Money that was granted and not settled yet, or settled: what Redis ought to have. */
static uint64_t truth(const struct history *history, uint64_t settled)
{
	for (uint32_t i = 0; i < HELD; i++)
		if (history->held[i].in_use)
			settled += history->held[i].ours.ask.usd;
	return settled;
}

/* No answer is awaited: the claim may wait in line with whatever else is to be sent. */
static void begin_unlimited(struct history *history, struct held *held)
{
	*held = (struct held){ .in_use = true, .at = workers[chance(&history->seed, WORKERS)] };
	held->ours = any_claim(history, held->our_scopes);
	held->ours.ask.usd = any_size(&history->seed, 12);
	held->ours.ask.concurrent = 0;
	struct limiter *limiter = limiter_redis_limiter(held->at);
	assert_int_equal(limiter->reserve(limiter, &held->ours), LIMITER_PENDING);
}

static uint64_t end_unlimited(struct history *history, struct held *held)
{
	struct limiter *limiter = limiter_redis_limiter(held->at);
	const uint64_t usd = any_part(&history->seed, 2 * held->ours.ask.usd);

	assert_true(held->ours.granted);
	(void)limiter->settle(limiter, &held->ours, 0, usd, loop.now);
	held->in_use = false;
	return usd;
}

static void unlimited(struct history *history, uint64_t number)
{
	history_init(history, number, NULL);
	history->scope_count = 1;
	history->scopes[0].limits = limit_none();
	history->scopes[0].limits.away_usd = UINT64_C(1) << 50;
}

/* Requests stand in line, unsent, when Redis loses everything; gateways without a word to say learn of it too. */
static void a_flush_loses_no_money_and_counts_none_twice(void **state)
{
	static struct history history;

	(void)state;
	for (uint64_t number = 0; number < LOSSES; number++) {
		uint64_t settled = 0;
		unlimited(&history, HISTORIES + number);
		for (uint32_t step = 0; step < 40; step++) {
			struct held *held = &history.held[chance(&history.seed, HELD)];
			if (held->in_use) {
				settle_down(held->at);
				settled += end_unlimited(&history, held);
			} else {
				begin_unlimited(&history, held);
			}
			if (chance(&history.seed, 3) == 0)
				all_settle_down();
			if (chance(&history.seed, 8) == 0) {
				command("FLUSHALL");
				clock_us++; /* a state is known by the moment of its epoch */
				tell_time();
			}
		}
		all_settle_down();
		all_renew(); /* here a gateway without traffic looks after its money */
		const struct limiter_state found = state_in_redis(history.scopes, 0);
		assert_true(found.day == truth(&history, settled));
		assert_true(found.month == truth(&history, settled));
	}
}

/* Whether it was done is not known then: the tenant may get less, never more. */
static void a_lost_connection_loses_no_money(void **state)
{
	static struct history history;

	(void)state;
	for (uint64_t number = 0; number < LOSSES; number++) {
		uint64_t settled = 0;
		unlimited(&history, HISTORIES + LOSSES + number);
		for (uint32_t step = 0; step < 40; step++) {
			struct held *held = &history.held[chance(&history.seed, HELD)];
			if (held->in_use) {
				settle_down(held->at);
				settled += end_unlimited(&history, held);
			} else {
				begin_unlimited(&history, held);
			}
			struct limiter_redis *redis = workers[chance(&history.seed, WORKERS)];
			if (chance(&history.seed, 6) == 0 && rig_waiting(redis) != 0) {
				rig_unready(redis);
				exchange(redis, false);
				rig_ready(redis);
			}
		}
		all_settle_down();
		assert_true(state_in_redis(history.scopes, 0).day >= truth(&history, settled));
	}
}

/* ---- clocks ---- */

/* What a gateway spends by itself, it tells of by its own clock. */
static void spend_away(struct history *history, struct limiter_redis *at, uint64_t usd,
		       uint64_t wall_s)
{
	struct limiter *limiter = limiter_redis_limiter(at);
	struct limit_scope scopes[SCOPES];
	struct reservation claim = {
		.scopes = scopes,
		.scope_count = 1,
		.ask = { .usd = usd },
		.done = on_done,
	};

	(void)memcpy(scopes, history->scopes, sizeof(history->scopes));
	rig_unready(at);
	loop.wall_s = wall_s;
	assert_int_equal(limiter->reserve(limiter, &claim), LIMITER_DONE);
	assert_true(claim.granted && claim.fallback);
	tell_time();
	(void)limiter->settle(limiter, &claim, 0, usd, loop.now);
	rig_ready(at);
	settle_down(at);
}

/* Of the same parity as today and this month, so that they have the same place. */
static void a_clock_that_is_ahead_does_not_open_the_present_budget(void **state)
{
	static const uint64_t ahead_days[] = { 0, 2, 60, 4000 };
	static struct history history;

	(void)state;
	for (uint64_t i = 0; i < COUNT_OF(ahead_days); i++) {
		struct held held = { .at = workers[1] };
		unlimited(&history, HISTORIES + 2 * LOSSES + i);
		spend_away(&history, workers[1], 700, loop.wall_s);
		spend_away(&history, workers[0], 200, loop.wall_s + ahead_days[i] * DAY_S);
		const struct limiter_state found = state_in_redis(history.scopes, 0);
		assert_int_equal(found.day, 900);
		assert_int_equal(found.month, 900);
		history.scopes[0].limits.usd_per_day = 950;
		history.scopes[0].limits.usd_per_month = 950;
		held.ours = any_claim(&history, held.our_scopes);
		held.ours.ask = (struct limit_ask){ .usd = 51 };
		struct limiter *limiter = limiter_redis_limiter(held.at);
		assert_int_equal(limiter->reserve(limiter, &held.ours), LIMITER_PENDING);
		settle_down(held.at);
		assert_false(held.ours.granted);
		assert_int_equal(held.ours.refusal.err, ERR_BUDGET);
	}
}

/* Such a place as the script before this one left, or a Redis whose clock was set back. */
static void a_place_that_is_not_due_yet_is_taken_back(void **state)
{
	static struct history history;
	const uint64_t before_us = clock_us;

	(void)state;
	unlimited(&history, HISTORIES + 3 * LOSSES);
	clock_us += 60 * (uint64_t)DAY_S * MICROS;
	tell_time();
	spend_away(&history, workers[0], 500, loop.wall_s);
	clock_us = before_us;
	tell_time();
	spend_away(&history, workers[1], 300, loop.wall_s);
	const struct limiter_state found = state_in_redis(history.scopes, 0);
	assert_int_equal(found.day, 300);
	assert_int_equal(found.month, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(three_gateways_decide_as_one_table_would, begin_workers),
		cmocka_unit_test_setup(a_flush_loses_no_money_and_counts_none_twice, begin_workers),
		cmocka_unit_test_setup(a_lost_connection_loses_no_money, begin_workers),
		cmocka_unit_test_setup(a_clock_that_is_ahead_does_not_open_the_present_budget,
				       begin_workers),
		cmocka_unit_test_setup(a_place_that_is_not_due_yet_is_taken_back, begin_workers),
	};

	return cmocka_run_group_tests_name("limiter_redis_script", tests, begin_server, end_server);
}
