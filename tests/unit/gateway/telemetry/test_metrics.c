/* test_metrics.c - what the scrape says after what was counted. promtool, where there is one, judges
 * the whole text. ctest: worker */
#include "gateway/base/config.h"
#include "gateway/telemetry/metrics.h"

#include "codec/base/must.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char *scrape(struct metrics *metrics, const struct metrics_process *process)
{
	static const struct metrics_process nothing = { .version = "test" };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	metrics_print(metrics, process == NULL ? &nothing : process, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Whether `line` is a whole line of the text. */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	return false;
}

static void expect_lines(const char *text, const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!has_line(text, lines[i]))
			fail_msg("no line \"%s\" in:\n%s", lines[i], text);
}

static struct metrics_request answered(uint32_t series, const char *tenant)
{
	return (struct metrics_request){
		.tenant_series = series,
		.tenant = slice_str(tenant),
		.model = SLICE("claude-sonnet"),
		.provider = SLICE("anthropic"),
		.tokens_in = 100,
		.tokens_out = 20,
		.usd_nano = 600000,
		.duration = 1500 * MSEC,
		.attempted = true,
		.queue = 2 * MSEC,
	};
}

static struct metrics_attempt attempt(const char *provider, enum err outcome)
{
	return (struct metrics_attempt){
		.model = SLICE("claude-sonnet"),
		.provider = slice_str(provider),
		.outcome = outcome,
		.ttft = 700 * MSEC,
	};
}

static void a_request_is_found_in_every_family_it_belongs_to(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_requests_total{tenant=\"acme\",outcome=\"ok\"} 2",
		"sluice_tokens_total{tenant=\"acme\",direction=\"input\"} 200",
		"sluice_tokens_total{tenant=\"acme\",direction=\"output\"} 40",
		"sluice_usd_total{tenant=\"acme\"} 0.001200000",
		"sluice_request_duration_seconds_bucket{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\",le=\"1\"} 0",
		"sluice_request_duration_seconds_bucket{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\",le=\"2\"} 2",
		"sluice_request_duration_seconds_bucket{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\",le=\"+Inf\"} 2",
		"sluice_request_duration_seconds_sum{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\"} 3.000000000",
		"sluice_request_duration_seconds_count{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\"} 2",
		"sluice_ttft_seconds_bucket{model=\"claude-sonnet\",provider=\"anthropic\",le=\"0.5\"} 0",
		"sluice_ttft_seconds_count{model=\"claude-sonnet\",provider=\"anthropic\"} 2",
		"sluice_queue_seconds_bucket{le=\"0.001\"} 0",
		"sluice_queue_seconds_bucket{le=\"0.005\"} 2",
		"sluice_settled_without_usage_total 0",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(2, 10);
	struct metrics_request request = answered(3, "acme");
	struct metrics_attempt good = attempt("anthropic", ERR_OK);
	for (uint32_t i = 0; i < 2; i++) {
		metrics_attempt(metrics_worker(metrics, i), &good);
		metrics_request(metrics_worker(metrics, i), &request);
	}

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	free(text);
	metrics_free(metrics);
}

static void tenants_beyond_the_bound_share_one_series_on_all_workers(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_requests_total{tenant=\"t0\",outcome=\"ok\"} 2",
		"sluice_requests_total{tenant=\"t1\",outcome=\"ok\"} 2",
		"sluice_requests_total{tenant=\"_other\",outcome=\"ok\"} 6",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(2, 2);
	for (uint32_t i = 0; i < 10; i++) {
		char name[] = { 't', (char)('0' + i % 5), '\0' };
		struct metrics_request request = answered(i % 5, name);
		metrics_request(metrics_worker(metrics, i % 2), &request);
	}

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	assert_null(strstr(text, "tenant=\"t2\""));
	free(text);
	metrics_free(metrics);
}

static void nobody_has_a_series_however_many_tenants_there_are(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_requests_total{tenant=\"_none\",outcome=\"unauthorized\"} 1",
		"sluice_requests_total{tenant=\"t\",outcome=\"ok\"} 1",
		"sluice_requests_total{tenant=\"_other\",outcome=\"ok\"} 2",
		"sluice_request_duration_seconds_bucket{model=\"_none\",provider=\"_none\",outcome=\"unauthorized\",le=\"0.005\"} 1",
		"sluice_queue_seconds_count 3",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(1, 1);
	struct metrics_request first = answered(0, "t");
	struct metrics_request without_slot = answered(UINT32_MAX, "u");
	struct metrics_request taken_name = answered(9, "_none");
	const struct metrics_request nobody = { .tenant_series = UINT32_MAX,
						.outcome = ERR_UNAUTHORIZED,
						.duration = 5 * MSEC };
	metrics_request(metrics_worker(metrics, 0), &first);
	metrics_request(metrics_worker(metrics, 0), &without_slot);
	metrics_request(metrics_worker(metrics, 0), &taken_name);
	metrics_request(metrics_worker(metrics, 0), &nobody);

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	assert_null(strstr(text, "sluice_ttft_seconds_count{model=\"_none\""));
	free(text);
	metrics_free(metrics);
}

static void attempts_and_limits_are_counted_by_outcome(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_provider_attempts_total{provider=\"openai\",class=\"ok\"} 1",
		"sluice_provider_attempts_total{provider=\"openai\",class=\"provider_unavailable\"} 2",
		"sluice_limit_decisions_total{limit=\"all\",decision=\"granted\"} 2",
		"sluice_limit_decisions_total{limit=\"concurrent\",decision=\"refused\"} 1",
		"sluice_settled_without_usage_total 1",
		"sluice_budget_overrun_usd_total 2.000000005",
		"sluice_in_flight 7",
		"sluice_connections 9",
		"sluice_arena_chunks_high{worker=\"0\"} 11",
		"sluice_requests_slab_high{worker=\"1\"} 12",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(2, 2);
	struct metrics_worker *m = metrics_worker(metrics, 0);
	struct metrics_request request = answered(0, "t");
	struct metrics_attempt good = attempt("openai", ERR_OK);
	struct metrics_attempt bad = attempt("openai", ERR_PROVIDER_DOWN);
	good.usd_overrun_nano = 2000000005;
	metrics_request(m, &request);
	metrics_attempt(m, &good);
	metrics_attempt(m, &bad);
	bad.settled_without_usage = true;
	metrics_attempt(metrics_worker(metrics, 1), &bad);
	metrics_limit(m, NULL, false);
	metrics_limit(metrics_worker(metrics, 1), NULL, false);
	metrics_limit(m, "concurrent", true);
	metrics_gauges(m, &(struct metrics_gauges){ 3, 4, 11, 5 });
	metrics_gauges(metrics_worker(metrics, 1), &(struct metrics_gauges){ 4, 5, 6, 12 });

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	free(text);
	metrics_free(metrics);
}

static void labels_that_take_turns_are_told_apart(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_request_duration_seconds_count{model=\"claude-sonnet\",provider=\"anthropic\",outcome=\"ok\"} 3",
		"sluice_request_duration_seconds_count{model=\"claude-sonnet\",provider=\"bedrock\",outcome=\"ok\"} 2",
		"sluice_request_duration_seconds_count{model=\"_none\",provider=\"_none\",outcome=\"ok\"} 2",
		"sluice_provider_attempts_total{provider=\"anthropic\",class=\"ok\"} 2",
		"sluice_provider_attempts_total{provider=\"bedrock\",class=\"ok\"} 2",
		"sluice_limit_decisions_total{limit=\"all\",decision=\"granted\"} 2",
		"sluice_limit_decisions_total{limit=\"concurrent\",decision=\"refused\"} 2",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(1, 2);
	struct metrics_worker *m = metrics_worker(metrics, 0);
	struct metrics_request one = answered(0, "t"), other = one, none = one;
	const struct metrics_attempt first = attempt("anthropic", ERR_OK);
	const struct metrics_attempt second = attempt("bedrock", ERR_OK);
	other.provider = SLICE("bedrock");
	none.model = none.provider = slice_of(NULL, 0);
	metrics_request(m, &one);
	for (int i = 0; i < 2; i++) {
		metrics_attempt(m, &first);
		metrics_request(m, &one);
		metrics_request(m, &none);
		metrics_attempt(m, &second);
		metrics_request(m, &other);
		metrics_limit(m, NULL, METRICS_GRANTED);
		metrics_limit(m, "concurrent", METRICS_REFUSED);
	}

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	free(text);
	metrics_free(metrics);
}

static void all_that_a_configuration_may_have_has_series_of_its_own(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new(1, 2);
	struct metrics_worker *m = metrics_worker(metrics, 0);

	for (uint32_t i = 0; i < CATALOG_MODELS_MAX; i++) {
		char model[16], provider[16];
		(void)snprintf(model, sizeof(model), "m%u", i);
		(void)snprintf(provider, sizeof(provider), "p%u", i % CONFIG_PROVIDERS_MAX);
		struct metrics_request one = answered(0, "t");
		const struct metrics_attempt at = attempt(provider, ERR_OK);
		one.model = slice_str(model);
		one.provider = slice_str(provider);
		metrics_request(m, &one);
		metrics_attempt(m, &at);
	}
	char *text = scrape(metrics, NULL);
	const char *const lines[] = {
		"sluice_request_duration_seconds_count{model=\"m1023\",provider=\"p255\",outcome="
		"\"ok\"} 1",
		"sluice_provider_attempts_total{provider=\"p255\",class=\"ok\"} 4",
	};
	expect_lines(text, lines, COUNT_OF(lines));
	assert_null(strstr(text, "provider=\"_other\""));
	free(text);
	metrics_free(metrics);
}

static void more_families(FILE *out, void *arg)
{
	struct slice cause = SLICE("quote\" and \\ and\nline");

	assert_ptr_equal(arg, &more_families);
	metrics_print_head(METRIC_GUARD_KILLS, out);
	metrics_print_sample(METRIC_GUARD_KILLS, &cause, 4, out);
}

static void the_process_adds_its_own_figures_and_families(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_reloads_total{result=\"ok\"} 3",
		"sluice_reloads_total{result=\"refused\"} 2",
		"sluice_config_refused 1",
		"sluice_draining 0",
		"sluice_restarts_total 1",
		"sluice_log_dropped_total 8",
		"sluice_config_timestamp_seconds 1700000000",
		"sluice_build_info{version=\"1.2.3\"} 1",
		"sluice_guard_kills_total{cause=\"quote\\\" and \\\\ and\\nline\"} 4",
	};
	/* clang-format on */
	const struct metrics_process process = { .reloads_ok = 3,
						 .reloads_refused = 2,
						 .config_refused = true,
						 .restarts = 1,
						 .log_dropped = 8,
						 .config_loaded_s = 1700000000,
						 .version = "1.2.3",
						 .more = more_families,
						 .arg = (void *)(uintptr_t)&more_families };
	struct metrics *metrics = metrics_new(1, 1);

	char *text = scrape(metrics, &process);
	expect_lines(text, lines, COUNT_OF(lines));
	free(text);
	metrics_free(metrics);
}

struct counting {
	struct metrics *metrics;
	uint32_t worker;
};

static void *count_many(void *arg)
{
	struct counting *counting = arg;

	for (uint32_t i = 0; i < 3000; i++) {
		char name[] = { 't', (char)('0' + i / 10 % 10), (char)('0' + i % 10), '\0' };
		struct metrics_request request = answered(i % 100, name);
		request.model = slice_str(name);
		metrics_request(metrics_worker(counting->metrics, counting->worker), &request);
	}
	return NULL;
}

static void workers_that_meet_new_tenants_at_once_agree_on_their_series(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new(3, 100);
	struct counting counting[3];
	pthread_t threads[3];

	for (uint32_t i = 0; i < 3; i++) {
		counting[i] = (struct counting){ metrics, i };
		assert_int_equal(pthread_create(&threads[i], NULL, count_many, &counting[i]), 0);
	}
	free(scrape(metrics, NULL)); /* a scrape at any moment is harmless */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);

	char *text = scrape(metrics, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		char line[96];
		(void)snprintf(line, sizeof(line),
			       "sluice_requests_total{tenant=\"t%u%u\",outcome=\"ok\"} 90", i / 10,
			       i % 10);
		expect_lines(text, (const char *const[]){ line }, 1);
	}
	assert_null(strstr(text, "\"_other\""));
	free(text);
	metrics_free(metrics);
}

static void what_is_decided_without_redis_is_counted_by_function(void **state)
{
	struct metrics *metrics = metrics_new(2, 3);
	const struct metrics_process process = { .version = "1", .away_usd_bound = 2500000000 };

	(void)state;
	metrics_away(metrics_worker(metrics, 0), AWAY_RATES_LOCAL, 0);
	metrics_away(metrics_worker(metrics, 0), AWAY_BUDGET_LOCAL, 1);
	metrics_away(metrics_worker(metrics, 1), AWAY_BUDGET_LOCAL, 2000000000);
	metrics_away(metrics_worker(metrics, 1), AWAY_BUDGET_CLOSED, 0);
	char *text = scrape(metrics, &process);
	expect_lines(
		text,
		(const char *const[]){
			"sluice_away_decisions_total{function=\"rates\",decision=\"local\"} 1",
			"sluice_away_decisions_total{function=\"rates\",decision=\"closed\"} 0",
			"sluice_away_decisions_total{function=\"budget\",decision=\"local\"} 2",
			"sluice_away_decisions_total{function=\"budget\",decision=\"closed\"} 1",
			"sluice_away_decisions_total{function=\"rates\",decision=\"waited\"} 0",
			"sluice_away_usd_total 2.000000001", "sluice_away_usd_bound 2.500000000" },
		6);
	free(text);
	metrics_free(metrics);
}

static void what_passes_to_and_from_a_server_is_counted_by_its_name(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const lines[] = {
		"sluice_mcp_messages_total{server=\"everything\",direction=\"client\",kind=\"request\"} 2",
		"sluice_mcp_messages_total{server=\"everything\",direction=\"client\",kind=\"other\"} 0",
		"sluice_mcp_messages_total{server=\"everything\",direction=\"server\",kind=\"response\"} 1",
		"sluice_mcp_messages_total{server=\"tickets\",direction=\"server\",kind=\"notification\"} 1",
		"sluice_mcp_samplings_total{server=\"everything\",outcome=\"ok\"} 1",
		"sluice_mcp_samplings_total{server=\"everything\",outcome=\"server_configuration\"} 1",
		"sluice_mcp_upstream_seconds_bucket{server=\"everything\",le=\"0.001\"} 0",
		"sluice_mcp_upstream_seconds_bucket{server=\"everything\",le=\"0.005\"} 1",
		"sluice_mcp_upstream_seconds_count{server=\"tickets\"} 0",
		"sluice_mcp_streams{server=\"everything\",kind=\"post\"} 1",
		"sluice_mcp_streams{server=\"everything\",kind=\"own\"} 0",
		"sluice_mcp_failures_total{server=\"everything\",outcome=\"server_unavailable\"} 2",
		"sluice_mcp_failures_total{server=\"everything\",outcome=\"server_answer_invalid\"} 0",
		"sluice_mcp_failures_total{server=\"tickets\",outcome=\"server_configuration\"} 1",
	};
	/* clang-format on */
	struct metrics *metrics = metrics_new(2, 2);
	struct metrics_worker *m = metrics_worker(metrics, 0), *n = metrics_worker(metrics, 1);
	const uint32_t everything = metrics_mcp_series(m, SLICE("everything"));
	const uint32_t tickets = metrics_mcp_series(n, SLICE("tickets"));

	assert_int_equal(metrics_mcp_series(n, SLICE("everything")), everything);
	metrics_mcp_message(m, everything, false, METRICS_MCP_REQUEST);
	metrics_mcp_message(n, everything, false, METRICS_MCP_REQUEST);
	metrics_mcp_message(n, everything, true, METRICS_MCP_RESPONSE);
	metrics_mcp_message(m, tickets, true, METRICS_MCP_NOTIFICATION);
	metrics_mcp_sampling(m, everything, ERR_OK);
	metrics_mcp_sampling(n, everything, ERR_SERVER_CREDENTIALS);
	metrics_mcp_head(m, everything, 2 * MSEC);
	metrics_mcp_failure(m, everything, METRICS_MCP_AWAY);
	metrics_mcp_failure(n, everything, METRICS_MCP_AWAY);
	metrics_mcp_failure(n, tickets, METRICS_MCP_CREDENTIALS);
	metrics_mcp_stream(m, everything, METRICS_MCP_POST, true);
	metrics_mcp_stream(n, everything, METRICS_MCP_POST, true);
	metrics_mcp_stream(m, everything, METRICS_MCP_POST, false);
	metrics_mcp_stream(m, everything, METRICS_MCP_OWN, true);
	metrics_mcp_stream(m, everything, METRICS_MCP_OWN, false);

	char *text = scrape(metrics, NULL);
	expect_lines(text, lines, COUNT_OF(lines));
	free(text);
	metrics_free(metrics);
}

static void servers_beyond_the_bound_share_one_series(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new(1, 2);
	struct metrics_worker *m = metrics_worker(metrics, 0);
	char name[16];

	for (uint32_t i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i);
		metrics_mcp_message(m, metrics_mcp_series(m, slice_str(name)), false,
				    METRICS_MCP_REQUEST);
	}
	char *text = scrape(metrics, NULL);
	assert_non_null(strstr(text, "{server=\"s1023\",direction=\"client\",kind=\"request\"} 1"));
	assert_null(strstr(text, "{server=\"s2999\""));
	assert_non_null(strstr(text, "{server=\"_other\",direction=\"client\",kind=\"request\"}"));
	free(text);
	metrics_free(metrics);
}

static void promtool_has_nothing_to_say_about_the_scrape(void **state)
{
	(void)state;
	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		print_message("SKIPPED: promtool is not installed (Debian package prometheus)\n");
		skip();
	}
	struct metrics *metrics = metrics_new(2, 3);
	struct metrics_request request = answered(0, "a \"name\" with \\");
	metrics_request(metrics_worker(metrics, 0), &request);
	char *text = scrape(metrics, NULL);

	FILE *judge =
		popen("promtool check metrics 2>&1 | tee -a /dev/stderr | wc -c | grep -qx 0", "w");
	assert_non_null(judge);
	assert_true(fputs(text, judge) >= 0);
	assert_int_equal(pclose(judge), 0);
	free(text);
	metrics_free(metrics);
}

static void the_manual_names_every_metric(void **state)
{
	(void)state;
	static const char *const names[] = {
#define METRIC(symbol, name, type, labels, unit, meaning) name,
#include "gateway/telemetry/tbl/metrics.h"
#undef METRIC
	};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	metrics_print_manual(out);
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		assert_non_null(strstr(text, names[i]));
	assert_non_null(strstr(text, "sluice_requests_total{tenant,outcome}\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_found_in_every_family_it_belongs_to),
		cmocka_unit_test(tenants_beyond_the_bound_share_one_series_on_all_workers),
		cmocka_unit_test(nobody_has_a_series_however_many_tenants_there_are),
		cmocka_unit_test(attempts_and_limits_are_counted_by_outcome),
		cmocka_unit_test(labels_that_take_turns_are_told_apart),
		cmocka_unit_test(all_that_a_configuration_may_have_has_series_of_its_own),
		cmocka_unit_test(the_process_adds_its_own_figures_and_families),
		cmocka_unit_test(workers_that_meet_new_tenants_at_once_agree_on_their_series),
		cmocka_unit_test(what_is_decided_without_redis_is_counted_by_function),
		cmocka_unit_test(what_passes_to_and_from_a_server_is_counted_by_its_name),
		cmocka_unit_test(servers_beyond_the_bound_share_one_series),
		cmocka_unit_test(promtool_has_nothing_to_say_about_the_scrape),
		cmocka_unit_test(the_manual_names_every_metric),
	};
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
