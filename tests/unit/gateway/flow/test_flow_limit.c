/* What a caller is told whose request a limit refuses. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define OTHER_KEY "beta-key-0123456789"
#define ASK                                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":\"a-7\",\"method\":\"sampling/createMessage\",\"params\":" \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}],"  \
	"\"maxTokens\":50}}"

static struct config *load_config(void)
{
	static const char *const keys[] = { KEY, OTHER_KEY, NULL };

	return bench_config("listen: [{address: \"127.0.0.1:8080\"}]\n"
			    "store: {kind: memory}\n"
			    "providers:\n"
			    "  ant: {dialect: anthropic, endpoints: [{url: "
			    "\"http://127.0.0.1:9001\"}], keys: [k]}\n"
			    "models:\n"
			    "  - {id: claude, provider: ant, name: claude-real, context: 100000,"
			    " price: {input: 3, output: 15}}\n"
			    "plans:\n"
			    "  full: {models: {allow: [\"*\"], default: claude}}\n"
			    "tenants:\n"
			    "  - {id: acme, plan: full, keys: [{sha256: %s, server: billing}]}\n"
			    "  - {id: beta, plan: full, keys: [{sha256: %s, server: mail}]}\n",
			    keys);
}

static int set_up(void **state)
{
	*state = bench_new(load_config());
	return 0;
}

static int tear_down(void **state)
{
	bench_free(*state);
	return 0;
}

/* As a store refuses; of 2026-09-21, as the bench has it. */
static const char *refused(struct bench *b, uint64_t needed, struct limit_refusal refusal)
{
	const struct http_incoming in = incoming(KEY, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	b->flow.reservation.ask.usd = needed;
	b->flow.reservation.granted = false;
	b->flow.reservation.refusal = refusal;
	assert_int_equal(run(b, FLOW_RESERVED), FLOW_ANSWER);
	assert_int_equal(b->flow.end.err, refusal.err);
	return answer_text(b);
}

static void money_that_does_not_last_is_told_with_what_is_left(void **state)
{
	static const struct {
		uint64_t needed;
		struct limit_refusal refusal;
		const char *message, *data;
	} rows[] = {
		{ 20000000,
		  { .err = ERR_BUDGET, .limit = "usd_per_day", .left = 9700000 },
		  "The request may cost up to $0.0200; $0.0097 of usd_per_day is left until 00:00 "
		  "UTC",
		  "\"reason\":\"budget_exceeded\",\"limit\":\"usd_per_day\",\"scope\":\"tenant\","
		  "\"needed\":0.020000000,\"left\":0.009700000,\"resets\":\"2026-09-22T00:00:"
		  "00Z\"" },
		{ 19999999, /* what is needed is rounded up, what there is, down */
		  { .err = ERR_BUDGET, .limit = "usd_per_month", .left = 19999998 },
		  "The request may cost up to $0.0200; $0.0199 of usd_per_month is left until "
		  "2026-10-01 00:00 UTC",
		  "\"needed\":0.019999999,\"left\":0.019999998,\"resets\":\"2026-10-01T00:00:"
		  "00Z\"" },
		{ 100000,
		  { .err = ERR_BUDGET, .limit = "usd_per_day", .left = 99999 },
		  "The request may cost up to $0.0001; $0.000099999 of usd_per_day is left until "
		  "00:00 UTC",
		  "\"left\":0.000099999" },
		{ UINT64_C(12345678900001),
		  { .err = ERR_BUDGET,
		    .limit = "usd_per_day",
		    .holder = LIMIT_OF_SERVER,
		    .left = UINT64_C(12345678900000) },
		  "The request may cost up to $12345.6790; $12345.6789 of per_server.usd_per_day "
		  "is left "
		  "until 00:00 UTC",
		  "\"limit\":\"usd_per_day\",\"scope\":\"per_server\",\"needed\":12345.678900001" },
		{ 20000000,
		  { .err = ERR_BUDGET, .limit = "usd_per_day" },
		  "The budget is spent: the request may cost up to $0.0200, and nothing of "
		  "usd_per_day "
		  "is left until 00:00 UTC",
		  "\"needed\":0.020000000,\"left\":0.000000000,\"resets\":\"2026-09-22T00:00:"
		  "00Z\"" },
		{ 20000000,
		  { .err = ERR_OVER_BUDGET,
		    .limit = "usd_per_month",
		    .holder = LIMIT_OF_MODEL,
		    .left = 5,
		    .budget = 19000000 },
		  "The request may cost up to $0.0200, more than the whole of "
		  "per_model.usd_per_month, "
		  "$0.0190, and can never pass; a smaller bound of output tokens costs less",
		  "\"reason\":\"request_over_budget\",\"limit\":\"usd_per_month\",\"scope\":\"per_"
		  "model\","
		  "\"needed\":0.020000000,\"left\":0.000000005,\"resets\":\"2026-10-01T00:00:"
		  "00Z\"" },
		{ UINT64_MAX,
		  { .err = ERR_OVER_BUDGET,
		    .limit = "usd_per_day",
		    .left = 1000000000,
		    .budget = 5000000000 },
		  "more than the whole of usd_per_day, $5.0000,",
		  "\"needed\":18446744073.709551615,\"left\":1.000000000" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *text = refused(b, rows[i].needed, rows[i].refusal);
		assert_int_equal(b->call.answer.status, 402);
		assert_has(text, "\"code\":402");
		assert_has(text, rows[i].message);
		assert_has(text, rows[i].data);
	}
}

static void a_rate_and_places_are_told_with_the_wait(void **state)
{
	struct bench *b = *state;
	const char *text = refused(b, 7,
				   (struct limit_refusal){ .err = ERR_RATE_LIMITED,
							   .limit = "requests_per_minute",
							   .wait_ns = 1500 * MSEC + 1 });

	assert_int_equal(b->call.answer.status, 429);
	assert_has(text, "\"retryAfterMs\":1501,\"limit\":\"requests_per_minute\"");
	assert_null(strstr(text, "needed"));
}

/* The table's own words, end to end. */
static void what_the_table_refuses_is_told_with_its_figures(void **state)
{
	struct bench *b = *state;
	const struct http_incoming in = incoming(KEY, ASK);
	uint64_t bound;

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	bound = b->flow.reservation.ask.usd;
	b->flow.reservation.scopes[0].limits.usd_per_day = 2 * bound - 1;
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	b->flow.reservation.scopes[0].limits.usd_per_day = 2 * bound - 1;
	assert_int_equal(reserve(b), FLOW_ANSWER);
	assert_int_equal(b->flow.end.err, ERR_BUDGET);
	assert_true(b->flow.reservation.refusal.left == bound - 1);
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	b->flow.reservation.scopes[0].limits.usd_per_day = bound - 1;
	assert_int_equal(reserve(b), FLOW_ANSWER);
	assert_int_equal(b->flow.end.err, ERR_OVER_BUDGET);
	assert_true(b->flow.reservation.refusal.budget == bound - 1);
	assert_has(answer_text(b), "\"left\":0.000000000,");
}

/* Of room for eight such bodies, by two tenants; nothing is given back. */
static void a_tenant_that_has_its_share_of_bodies_is_told_so_and_others_are_not_refused(
	void **state)
{
	struct bench *b = *state;
	struct flow_bodies bodies = { .bound = { .most = 8 * strlen(ASK), .small = UINT64_MAX } };
	void *memory = calloc(1, fair_share_bytes(8, false));
	const struct http_incoming hog = incoming(KEY, ASK);

	must(memory != NULL);
	fair_share_init(&bodies.share, memory, 8, false);
	b->bodies = &bodies;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(start(b, &hog), FLOW_RESERVE);
		assert_int_not_equal(b->flow.caller.holder, 0);
	}
	assert_int_equal(start(b, &hog), FLOW_ANSWER);
	assert_true(b->flow.caller.over_share && b->flow.caller.holder == 0);
	assert_int_equal(b->call.answer.status, 503);
	assert_has(answer_text(b), "\"reason\":\"overloaded\",\"retryAfterMs\":1000,"
				   "\"limit\":\"held_bytes\",\"scope\":\"tenant\"");
	const struct http_incoming other = incoming(OTHER_KEY, ASK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(start(b, &other), FLOW_RESERVE);
	assert_int_equal(bodies.share.sum, 7 * strlen(ASK));
	const struct http_incoming stranger = incoming("a-strangers-key-01", ASK);
	assert_int_equal(start(b, &stranger), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 401);
	assert_int_equal(bodies.share.sum, 7 * strlen(ASK));
	b->bodies = NULL;
	free(memory);
}

int main(void)
{
#define LIMIT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		LIMIT_TEST(money_that_does_not_last_is_told_with_what_is_left),
		LIMIT_TEST(a_rate_and_places_are_told_with_the_wait),
		LIMIT_TEST(what_the_table_refuses_is_told_with_its_figures),
		LIMIT_TEST(
			a_tenant_that_has_its_share_of_bodies_is_told_so_and_others_are_not_refused),
	};
#undef LIMIT_TEST

	return cmocka_run_group_tests_name("flow_limit", tests, NULL, NULL);
}
