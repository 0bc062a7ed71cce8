/* One worker's knowledge of providers, over configurations from texts. */
#include "gateway/health.h"
#include "tests/unit/gateway/settings_rig.h"

#include <string.h>

static const char two_of_each[] =
	"zone: a\n"
	"retries: {budget: 0.1, floor: 2}\n"
	"providers:\n"
	"  one:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://a.example/v1\", concurrent: 4, queue: 2},\n"
	"                {url: \"https://b.example/v1\", concurrent: 4, queue: 2}]\n"
	"    keys: [key-number-one, key-number-two]\n"
	"    breaker: {failures: 3, open: 2s, open_max: 8s, slow_start: 0s}\n"
	"  other:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://b.example/v1\"}]\n"
	"models:\n"
	"  - {id: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: n, provider: other, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: same, name: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: else, provider: one, context: 8000, price: {input: 1, output: 2}}\n";

/* The same things at other places, and something new. */
static const char moved[] =
	"providers:\n"
	"  new: {dialect: openai, endpoints: [{url: \"https://c.example/v1\"}]}\n"
	"  one:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://c.example/v1\"}, {url: \"https://b.example/v1\"}]\n"
	"    keys: [key-number-two]\n"
	"models:\n"
	"  - {id: l, provider: new, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n";

enum { M, N, SAME, ELSE };

struct bench {
	struct rig rig, next;
	struct health *health;
	struct health_view *view;
	nsec_t now;
	uint64_t random;
};

static const uint64_t wall = 1790000000 * SEC;

static void load(struct rig *rig, const char *text)
{
	rig_load(rig, text);
	if (rig->config == NULL)
		fail_msg("%s", rig->problems);
}

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	load(&b->rig, two_of_each);
	b->health = health_new();
	assert_non_null(b->health);
	b->view = health_view_new(b->health, b->rig.config, 1);
	assert_non_null(b->view);
	b->now = 1000 * SEC;
	*state = b;
	return 0;
}

/* health_free insists that every state was let go of. */
static int tear_down(void **state)
{
	struct bench *b = *state;

	health_view_free(b->view);
	health_free(b->health);
	rig_fini(&b->rig);
	if (b->next.problems != NULL)
		rig_fini(&b->next);
	free(b);
	return 0;
}

static enum err choose(struct bench *b, uint32_t model, struct health_choice *choice)
{
	nsec_t wait;

	return health_choose(b->view, model, NULL, b->now, b->random++, choice, &wait);
}

static const struct health_outcome well = { .retry_after_ms = -1,
					    .status = 200,
					    .took = 500 * MSEC,
					    .answered = true,
					    .output_tokens = 50 };
static const struct health_outcome cut = { .err = ERR_PROVIDER_DOWN,
					   .retry_after_ms = -1,
					   .took = 10 * MSEC };

static struct health_outcome refused(enum err err, enum blame blame, uint16_t status)
{
	return (struct health_outcome){ .err = err,
					.blame = blame,
					.status = status,
					.retry_after_ms = -1,
					.took = 50 * MSEC,
					.answered = true };
}

/* A whole attempt at `model`; the endpoint it went to. */
static uint32_t attempt(struct bench *b, uint32_t model, const struct health_outcome *outcome)
{
	struct health_choice choice = { 0 };

	assert_int_equal(choose(b, model, &choice), ERR_OK);
	health_began(&choice, b->now);
	health_ended(&choice, outcome, b->now);
	return choice.endpoint;
}

/* Fails endpoint `e` of model M until its breaker opens. */
static void break_endpoint(struct bench *b, uint32_t e)
{
	const struct health_tried tried = { .endpoints = e == 0 ? 2 : 1 };

	for (int i = 0; i < 3; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, e);
		health_began(&choice, b->now);
		health_ended(&choice, &cut, b->now);
	}
	assert_int_equal(health_breaker(b->view, 0, e, b->now), 2);
}

/* ---- choosing ---- */

static void attempts_take_turns_among_endpoints_and_keys(void **state)
{
	struct bench *b = *state;
	uint32_t endpoints[2] = { 0 }, keys[2] = { 0 };

	for (int i = 0; i < 100; i++) {
		struct health_choice choice = { 0 };
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		assert_int_equal(choice.provider, 0);
		assert_int_equal(choice.drawn_count, 2);
		endpoints[choice.endpoint]++;
		keys[choice.key]++;
		health_began(&choice, b->now);
		health_ended(&choice, &well, b->now);
	}
	assert_int_equal(endpoints[0], 50);
	assert_int_equal(keys[0], 50);
	struct health_choice choice = { 0 };
	assert_int_equal(choose(b, N, &choice), ERR_OK);
	assert_int_equal(choice.provider, 1);
	assert_int_equal(choice.key, UINT32_MAX);
	health_ended(&choice, NULL, b->now);
	health_ended(&choice, NULL, b->now); /* harmless */
}

static void what_was_tried_comes_last(void **state)
{
	struct bench *b = *state;
	const struct health_tried first = { .endpoints = 1, .keys = 1 };
	const struct health_tried both = { .endpoints = 3, .keys = 3 };

	for (int i = 0; i < 10; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &first, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, 1);
		assert_int_equal(choice.key, 1);
		health_ended(&choice, NULL, b->now);
		assert_int_equal(health_choose(b->view, M, &both, b->now, 0, &choice, &wait),
				 ERR_OK);
		health_ended(&choice, NULL, b->now);
	}
}

static void no_more_calls_than_the_bounds_allow(void **state)
{
	struct bench *b = *state;
	struct health_choice choices[13] = { 0 };
	nsec_t wait = 0;

	for (int i = 0; i < 12; i++) /* four and two, twice */
		assert_int_equal(choose(b, M, &choices[i]), ERR_OK);
	assert_int_equal(health_choose(b->view, M, NULL, b->now, 0, &choices[12], &wait), ERR_BUSY);
	assert_true(wait != 0);
	assert_null(health_down(b->view, b->now)); /* busy is not down */
	health_ended(&choices[5], NULL, b->now);
	assert_int_equal(choose(b, M, &choices[12]), ERR_OK);
	for (int i = 0; i < 13; i++)
		health_ended(&choices[i], NULL, b->now);
}

/* ---- outcomes ---- */

static void outcomes_count_against_whom_they_blame(void **state)
{
	static const struct {
		const char *name;
		struct health_outcome outcome;
		uint32_t breaker, cools_s;
	} rows[] = {
		{ "answered", { .status = 200, .took = SEC, .answered = true }, 0, 0 },
		{ "cut off", { .err = ERR_PROVIDER_DOWN, .took = MSEC }, 2, 0 },
		{ "no connection", { .err = ERR_PROVIDER_NO_ATTEMPT }, 2, 0 },
		{ "not HTTP", { .err = ERR_PROVIDER_ANSWER, .took = MSEC }, 2, 0 },
		{ "500",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 500 },
		  2,
		  0 },
		{ "529",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 529 },
		  2,
		  0 },
		{ "overloaded, told in a 200",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 200 },
		  2,
		  0 },
		{ "409",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 409 },
		  0,
		  0 },
		{ "400", { .err = ERR_PROVIDER_REJECTED, .status = 400 }, 0, 0 },
		{ "404",
		  { .err = ERR_PROVIDER_OPERATOR, .blame = BLAME_MODEL, .status = 404 },
		  0,
		  0 },
		{ "429",
		  { .err = ERR_PROVIDER_RATE,
		    .blame = BLAME_KEY,
		    .status = 429,
		    .retry_after_ms = 7000 },
		  0,
		  7 },
		{ "401",
		  { .err = ERR_PROVIDER_OPERATOR, .blame = BLAME_KEY, .status = 401 },
		  0,
		  60 },
		{ "402",
		  { .err = ERR_PROVIDER_BILLING, .blame = BLAME_KEY, .status = 402 },
		  0,
		  3600 },
		{ "a bad tool call",
		  { .err = ERR_PROVIDER_ANSWER, .blame = BLAME_ANSWER, .status = 200 },
		  0,
		  0 },
		{ "a deadline shorter than its patience",
		  { .err = ERR_DEADLINE, .took = 5 * SEC, .patience = 60 * SEC },
		  0,
		  0 },
		{ "a deadline longer than its patience",
		  { .err = ERR_DEADLINE, .took = 61 * SEC, .patience = 60 * SEC },
		  2,
		  0 },
		{ "a deadline within its answer",
		  { .err = ERR_DEADLINE, .took = 61 * SEC, .patience = 60 * SEC, .answered = true },
		  0,
		  0 },
		{ "a deadline within a stream",
		  { .err = ERR_DEADLINE,
		    .blame = BLAME_ENDPOINT,
		    .status = 200,
		    .took = 61 * SEC,
		    .patience = 60 * SEC,
		    .answered = true },
		  0,
		  0 },
		{ "our own want of memory",
		  { .err = ERR_BUSY, .blame = BLAME_ENDPOINT, .status = 200, .took = SEC },
		  0,
		  0 },
		{ "the caller went away", { .err = ERR_CANCELLED, .took = 90 * SEC }, 0, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b;
		set_up((void **)&b);
		uint32_t cools = 0;

		for (int n = 0; n < 6; n++) {
			struct health_choice choice = { 0 };
			struct health_outcome outcome = rows[i].outcome;
			nsec_t wait;
			if (outcome.retry_after_ms == 0)
				outcome.retry_after_ms = -1;
			if (health_choose(b->view, M, NULL, b->now, 0, &choice, &wait) != ERR_OK)
				break;
			health_began(&choice, b->now);
			health_ended(&choice, &outcome, b->now);
		}
		for (uint32_t k = 0; k < 2; k++) {
			const nsec_t one = health_cools(b->view, 0, k, b->now);
			cools = one / SEC > cools ? (uint32_t)(one / SEC) : cools;
		}
		if (health_breaker(b->view, 0, 0, b->now) != rows[i].breaker ||
		    cools != rows[i].cools_s)
			fail_msg("%s: breaker %u, cools %u s", rows[i].name,
				 health_breaker(b->view, 0, 0, b->now), cools);
		tear_down((void **)&b);
	}
	(void)state;
}

static void what_was_never_sent_tells_nothing(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < 20; i++) {
		struct health_choice choice = { 0 };
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		health_ended(&choice, &cut, b->now);
	}
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

static void an_open_breaker_sends_everybody_to_the_other_and_a_probe_closes_it(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(attempt(b, M, &well), 1);
	assert_null(health_down(b->view, b->now));
	b->now += 2 * SEC;
	bool probed = false;
	for (int i = 0; i < 20 && !probed; i++)
		probed = attempt(b, M, &well) == 0;
	assert_true(probed);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

static uint64_t any(struct bench *b) /* splitmix64 */
{
	uint64_t z = (b->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* So many calls, a hundred a second, of which that share fails by chance; of them, how many were refused
 * here. */
static uint32_t refusals(struct bench *b, uint32_t model, uint32_t calls, uint32_t bad_percent)
{
	const struct health_outcome overloaded = refused(ERR_PROVIDER_DOWN, BLAME_ENDPOINT, 529);
	uint32_t count = 0;

	for (uint32_t i = 0; i < calls; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		b->now += 10 * MSEC;
		if (health_choose(b->view, model, NULL, b->now, any(b), &choice, &wait) != ERR_OK) {
			count++;
			continue;
		}
		health_began(&choice, b->now);
		health_ended(&choice, any(b) % 100 < bad_percent ? &overloaded : &well, b->now);
	}
	return count;
}

static void breakers_do_not_refuse_what_a_failing_provider_would_answer(void **state)
{
	static const struct {
		const char *name;
		uint32_t bad_percent, least, most; /* refused, in percent */
	} rows[] = {
		{ "half of all calls fail", 50, 0, 5 },
		{ "two of three", 67, 0, 20 },
		{ "nine of ten", 90, 50, 95 },
		{ "all", 100, 95, 100 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (uint32_t model = M; model <= N; model++) { /* of two endpoints, of one */
			struct bench *b;
			set_up((void **)&b);
			assert_int_equal(refusals(b, model, 1000, 0), 0);
			const uint32_t percent =
				refusals(b, model, 10000, rows[i].bad_percent) / 100;
			print_message("%s, model %u: %u %%\n", rows[i].name, model, percent);
			assert_in_range(percent, rows[i].least, rows[i].most);
			b->now += SEC * 2;
			assert_int_equal(refusals(b, model, 1000, 0), 0);
			tear_down((void **)&b);
		}
}

/* It may have said no more than its head. */
static void a_stream_that_we_cut_short_closes_no_breaker(void **state)
{
	static const enum err ours[] = { ERR_CANCELLED, ERR_DRAINING, ERR_DEADLINE };
	struct bench *b = *state;

	break_endpoint(b, 0);
	b->now += 2 * SEC;
	for (size_t i = 0; i < COUNT_OF(ours); i++) {
		const struct health_tried tried = { .endpoints = 2 };
		struct health_outcome cut_short = refused(ours[i], BLAME_REQUEST, 200);
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, 0);
		health_began(&choice, b->now);
		health_ended(&choice, &cut_short, b->now);
		assert_int_equal(health_breaker(b->view, 0, 0, b->now), 1);
	}
}

static void a_probe_that_is_never_sent_gives_its_place_back(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	break_endpoint(b, 1);
	b->now += 2 * SEC;
	struct health_choice one = { 0 }, two = { 0 }, three = { 0 };
	nsec_t wait = 0;
	assert_int_equal(choose(b, M, &one), ERR_OK);
	assert_int_equal(choose(b, M, &two), ERR_OK);
	assert_int_equal(health_choose(b->view, M, NULL, b->now, 0, &three, &wait),
			 ERR_PROVIDER_NO_ATTEMPT);
	assert_int_equal(wait, 2 * SEC);
	health_ended(&one, NULL, b->now);
	assert_int_equal(choose(b, M, &three), ERR_OK);
	health_ended(&two, NULL, b->now);
	health_ended(&three, NULL, b->now);
}

static void who_leaves_a_long_answer_does_not_make_its_endpoint_look_slow(void **state)
{
	static const struct {
		const char *name;
		uint32_t unseen_max, least, most; /* of its further calls, in percent */
	} rows[] = {
		{ "a long answer, in one piece", 4096, 45, 55 },
		{ "an answer of one token", 1, 0, 20 },
		{ "a stream that did not begin", 0, 0, 20 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct health_outcome left = { .err = ERR_CANCELLED,
						     .retry_after_ms = -1,
						     .took = 20 * SEC,
						     .unseen_max = rows[i].unseen_max };
		struct bench *b;
		uint32_t there = 0;

		set_up((void **)&b);
		assert_int_equal(refusals(b, M, 100, 0), 0);
		const uint32_t endpoint = attempt(b, M, &left);
		for (int n = 0; n < 100; n++)
			there += attempt(b, M, &well) == endpoint;
		if (there < rows[i].least || there > rows[i].most)
			fail_msg("%s: %u %%", rows[i].name, there);
		tear_down((void **)&b);
	}
	(void)state;
}

/* ---- routing ---- */

static void models_are_down_when_every_endpoint_or_every_key_is(void **state)
{
	struct bench *b = *state;

	assert_null(health_down(b->view, b->now));
	break_endpoint(b, 0);
	assert_null(health_down(b->view, b->now));
	break_endpoint(b, 1);
	const struct bitset *down = health_down(b->view, b->now);
	assert_non_null(down);
	assert_true(bitset_has(down, M) && bitset_has(down, SAME));
	assert_false(bitset_has(down, N)); /* another provider's endpoint is another one's */
	b->now += 2 * SEC;
	assert_null(health_down(b->view, b->now)); /* half open */
	assert_int_equal(attempt(b, M, &well), attempt(b, M, &well) ^ 1);
	const struct health_outcome slow_down = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	for (int i = 0; i < 4; i++) { /* two keys at two endpoints */
		assert_null(health_down(b->view, b->now));
		(void)attempt(b, M, &slow_down);
	}
	down = health_down(b->view, b->now);
	assert_true(down != NULL && bitset_has(down, M) && !bitset_has(down, N));
	b->now += SEC;
	assert_null(health_down(b->view, b->now));
}

static void the_last_endpoints_are_tried_as_soon_as_the_first_time(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	break_endpoint(b, 1);
	for (int i = 0; i < 10; i++) { /* open is 2 s, open_max 8 s */
		struct health_choice none = { 0 };
		assert_int_equal(choose(b, M, &none), ERR_PROVIDER_NO_ATTEMPT);
		b->now += 2 * SEC;
		assert_null(health_down(b->view, b->now));
		(void)attempt(b, M, &cut);
		(void)attempt(b, M, &cut);
	}
	b->now += 2 * SEC;
	const uint32_t well_again = attempt(b, M, &well);
	b->now += 2 * SEC;
	for (int i = 0; i < 10; i++) /* the other one has to wait now */
		assert_int_equal(attempt(b, M, &well), well_again);
}

static void speeds_are_those_of_the_models_name_after_twenty_answers(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < 19; i++)
		(void)attempt(b, M, &well);
	health_tick(b->view, b->now);
	assert_false(health_speeds(b->view)[M].measured);
	(void)attempt(b, SAME, &well);
	(void)attempt(b, M, &cut);
	health_tick(b->view, b->now);
	assert_true(health_speeds(b->view)[M].measured);
	assert_true(health_speeds(b->view)[SAME].measured);
	assert_false(health_speeds(b->view)[N].measured);
}

static void an_answer_that_was_not_read_all_the_time_tells_no_speed(void **state)
{
	struct bench *b = *state;
	struct health_outcome held_up = well;

	held_up.first = 100 * MSEC;
	held_up.took = 60 * SEC;
	held_up.held_up = true;
	for (int i = 0; i < 40; i++)
		(void)attempt(b, M, i % 2 == 0 ? &well : &held_up);
	health_tick(b->view, b->now);
	assert_true(health_speeds(b->view)[M].measured);
	assert_true(health_speeds(b->view)[M].token_ms < 20);
}

static void facts_are_remembered_for_the_model_alone(void **state)
{
	struct bench *b = *state;
	struct profile profile = { .forced_tool = true, .max_stop = 4 };

	health_learn(b->view, M, LEARN_NO_FORCED_TOOL);
	health_learn(b->view, SAME, LEARN_NO_STOP);
	health_apply(b->view, N, &profile);
	assert_true(profile.forced_tool && profile.max_stop == 4);
	health_apply(b->view, M, &profile);
	assert_true(!profile.forced_tool && profile.max_stop == 0);
}

/* ---- keys ---- */

static void a_key_cools_where_it_was_refused(void **state)
{
	struct bench *b = *state;
	const struct health_outcome slow_down = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	uint32_t refused_count = 0;

	for (int i = 0; i < 20; i++) { /* the first endpoint is out of everything */
		struct health_choice c = { 0 };
		assert_int_equal(choose(b, M, &c), ERR_OK);
		refused_count += c.endpoint == 0;
		health_began(&c, b->now);
		health_ended(&c, c.endpoint == 0 ? &slow_down : &well, b->now);
	}
	assert_int_equal(refused_count, 2); /* once with each key */
	assert_int_equal(health_cools(b->view, 0, 0, b->now), SEC);
	assert_int_equal(health_cools(b->view, 0, 1, b->now), SEC);
	assert_null(health_down(b->view, b->now));
}

static void a_key_without_head_room_is_spared(void **state)
{
	struct bench *b = *state;
	const struct provider_headers headers = {
		.rates_sent = true,
		.rates[RATE_TOKENS] = { SLICE("1000000"), SLICE("12"), SLICE("6m0s") },
	};
	struct health_choice choice = { 0 };

	assert_int_equal(choose(b, M, &choice), ERR_OK);
	const uint32_t poor = choice.key, there = choice.endpoint;
	health_began(&choice, b->now);
	health_note_rates(&choice, &headers, b->now, wall);
	health_ended(&choice, &well, b->now);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		assert_true(choice.endpoint != there || choice.key != poor);
		health_ended(&choice, NULL, b->now);
	}
}

static void a_models_rate_limit_leaves_the_keys_to_the_others(void **state)
{
	struct bench *b = *state;
	struct health_outcome limited = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	const struct health_outcome no_money = refused(ERR_PROVIDER_BILLING, BLAME_KEY, 402);
	struct health_choice choice = { 0 };

	limited.retry_after_ms = 30000;
	for (int i = 0; i < 4; i++) /* two keys at two endpoints */
		(void)attempt(b, M, &limited);
	assert_int_equal(choose(b, M, &choice), ERR_PROVIDER_RATE);
	assert_int_equal(choose(b, SAME, &choice), ERR_PROVIDER_RATE); /* is the same model */
	const struct bitset *down = health_down(b->view, b->now);
	assert_true(bitset_has(down, M) && bitset_has(down, SAME) && !bitset_has(down, ELSE));
	(void)attempt(b, ELSE, &well);
	for (int i = 0; i < 4; i++)
		(void)attempt(b, ELSE, &no_money); /* that is the whole key's */
	assert_int_equal(choose(b, ELSE, &choice), ERR_PROVIDER_BILLING);
	b->now += 30 * SEC;
	assert_int_equal(choose(b, M, &choice), ERR_PROVIDER_BILLING);
	assert_true(health_cools(b->view, 0, 0, b->now) > 3000 * SEC);
	assert_true(bitset_has(health_down(b->view, b->now), ELSE));
}

static void a_rate_limit_that_has_ended_is_no_trouble_any_more(void **state)
{
	struct bench *b = *state;
	const struct health_outcome limited = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);

	for (int i = 0; i < 4; i++)
		(void)attempt(b, M, &limited);
	assert_non_null(health_down(b->view, b->now));
	assert_int_equal(health_cools(b->view, 0, 0, b->now), SEC);
	b->now += SEC;
	assert_null(health_down(b->view, b->now));
	health_tick(b->view, b->now);
	assert_int_equal(health_cools(b->view, 0, 0, b->now), 0);
	(void)attempt(b, M, &well);
}

/* ---- retries ---- */

static void a_retry_needs_the_budget_of_tenant_and_provider(void **state)
{
	static const uint8_t a[16] = { 1 }, c[16] = { 2 }, d[16] = { 3 };
	struct bench *b = *state;

	assert_true(health_may_retry(b->view, a, 0, b->now));
	assert_true(health_may_retry(b->view, a, 1, b->now));
	assert_false(health_may_retry(b->view, a, 0, b->now)); /* the tenant's two */
	assert_true(health_may_retry(b->view, c, 0, b->now));
	assert_false(health_may_retry(b->view, d, 0, b->now)); /* the provider's two */
	for (int i = 0; i < 1000; i++)
		health_note_request(b->view, d, 0, b->now += MSEC);
	uint32_t retries = 0;
	while (health_may_retry(b->view, d, 0, b->now))
		retries++;
	assert_in_range(retries, 9, 11);
}

/* ---- configurations ---- */

static void states_go_with_what_they_belong_to_over_a_reload(void **state)
{
	struct bench *b = *state;
	const struct health_outcome no = refused(ERR_PROVIDER_OPERATOR, BLAME_KEY, 401);

	for (struct health_choice c = { 0 }; health_cools(b->view, 0, 1, b->now) == 0;) {
		assert_int_equal(choose(b, M, &c), ERR_OK);
		health_began(&c, b->now);
		health_ended(&c, c.endpoint == 1 && c.key == 1 ? &no : &well, b->now);
	}
	break_endpoint(b, 1);
	health_learn(b->view, M, LEARN_NO_STOP);
	load(&b->next, moved);
	struct health_view *fresh = health_view_new(b->health, b->next.config, 1);
	assert_non_null(fresh);
	health_view_free(b->view);
	b->view = fresh;
	assert_int_equal(health_breaker(fresh, 1, 0, b->now), 0); /* c is new */
	assert_int_equal(health_breaker(fresh, 1, 1, b->now), 2); /* b */
	assert_true(health_cools(fresh, 1, 0, b->now) != 0);      /* the second key */
	struct profile profile = { .max_stop = 4 };
	health_apply(fresh, 0, &profile);
	assert_int_equal(profile.max_stop, 4);
	health_apply(fresh, 1, &profile);
	assert_int_equal(profile.max_stop, 0);
}

static void a_call_in_flight_outlives_the_configuration_that_made_it(void **state)
{
	struct bench *b = *state;
	struct health_choice first = { 0 }, second = { 0 };

	assert_int_equal(choose(b, M, &first), ERR_OK);
	assert_int_equal(choose(b, M, &second), ERR_OK);
	health_began(&first, b->now);
	health_began(&second, b->now);
	load(&b->next, moved);
	struct health_view *fresh = health_view_new(b->health, b->next.config, 1);
	assert_non_null(fresh);
	health_view_free(b->view);
	b->view = fresh;
	health_ended(&first, &cut, b->now); /* one of them was the gone endpoint's last */
	health_ended(&second, &cut, b->now);
	assert_int_equal(health_breaker(fresh, 1, 1, b->now), 0);
}

static void active_checks_keep_an_endpoint_out(void **state)
{
	struct bench *b = *state;
	const struct endpoint *e = &b->rig.config->providers[0].endpoints[0];

	health_checked(b->health, SLICE("one"), e->identity, e->path, false, b->now);
	health_checked(b->health, SLICE("nobody"), e->identity, e->path, false, b->now);
	for (int i = 0; i < 20; i++)
		assert_int_equal(attempt(b, M, &well), 1);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 2);
	health_checked(b->health, SLICE("one"), e->identity, e->path, true, b->now);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(attempts_take_turns_among_endpoints_and_keys),
		CASE(what_was_tried_comes_last),
		CASE(no_more_calls_than_the_bounds_allow),
		CASE(outcomes_count_against_whom_they_blame),
		CASE(what_was_never_sent_tells_nothing),
		CASE(an_open_breaker_sends_everybody_to_the_other_and_a_probe_closes_it),
		CASE(breakers_do_not_refuse_what_a_failing_provider_would_answer),
		CASE(a_stream_that_we_cut_short_closes_no_breaker),
		CASE(a_probe_that_is_never_sent_gives_its_place_back),
		CASE(who_leaves_a_long_answer_does_not_make_its_endpoint_look_slow),
		CASE(models_are_down_when_every_endpoint_or_every_key_is),
		CASE(the_last_endpoints_are_tried_as_soon_as_the_first_time),
		CASE(speeds_are_those_of_the_models_name_after_twenty_answers),
		CASE(an_answer_that_was_not_read_all_the_time_tells_no_speed),
		CASE(facts_are_remembered_for_the_model_alone),
		CASE(a_key_cools_where_it_was_refused),
		CASE(a_key_without_head_room_is_spared),
		CASE(a_models_rate_limit_leaves_the_keys_to_the_others),
		CASE(a_rate_limit_that_has_ended_is_no_trouble_any_more),
		CASE(a_retry_needs_the_budget_of_tenant_and_provider),
		CASE(states_go_with_what_they_belong_to_over_a_reload),
		CASE(a_call_in_flight_outlives_the_configuration_that_made_it),
		CASE(active_checks_keep_an_endpoint_out),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
#undef CASE
}
