#include "tests/unit/gateway/settings/settings_rig.h"

#include <string.h>

static void an_endpoint_has_its_zone_and_its_bounds(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, "zone: here\n"
			    "providers:\n"
			    "  main:\n"
			    "    dialect: openai\n"
			    "    endpoints:\n"
			    "      - {url: \"https://a.example\", zone: there, concurrent: 7,"
			    " queue: 0, queue_deadline: 2s}\n"
			    "      - {url: \"https://b.example\"}\n" RIG_MODELS);
	const struct endpoint *e = rig.config->providers[0].endpoints;
	assert_slice(rig.config->zone, "here");
	assert_slice(e[0].zone, "there");
	assert_int_equal(e[0].concurrent, 7);
	assert_int_equal(e[0].queue, 0);
	assert_int_equal(e[0].queue_deadline, 2 * SEC);
	assert_true(slice_absent(e[1].zone));
	assert_int_equal(e[1].concurrent, UINT32_MAX);
	assert_int_equal(e[1].queue, 4096);
	assert_int_equal(e[1].queue_deadline, 0);
	rig_fini(&rig);
}

static void retries_and_breakers_are_as_the_file_says(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig,
		      "retries: {attempts: 2, budget: 0.5, floor: 9}\n"
		      "providers:\n"
		      "  main:\n"
		      "    dialect: openai\n"
		      "    endpoints: [{url: \"https://a.example\"}]\n"
		      "    breaker: {failures: 3, ratio: 0.25, calls: 8, window: 5s, open: 2s,"
		      " open_max: 1m, slow_start: 0s}\n" RIG_MODELS);
	const struct provider_breaker *b = &rig.config->providers[0].breaker;
	assert_int_equal(rig.config->retries.attempts, 2);
	assert_true(rig.config->retries.budget == 0.5);
	assert_int_equal(rig.config->retries.floor, 9);
	assert_int_equal(b->failures, 3);
	assert_true(b->ratio == 0.25);
	assert_int_equal(b->calls, 8);
	assert_int_equal(b->window, 5 * SEC);
	assert_int_equal(b->open, 2 * SEC);
	assert_int_equal(b->open_max, 60 * SEC);
	assert_int_equal(b->slow_start, 0);
	rig_fini(&rig);
}

static void keys_and_queries_go_where_the_host_wants_them(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, "providers:\n"
			    "  main: {dialect: openai, endpoints: [{url: \"https://a.example\"}],"
			    " key_header: api-key, query: api-version=2024-10-21}\n"
			    "  b: {dialect: anthropic, endpoints: [{url: \"https://b.example\"}]}\n"
			    "  c: {dialect: anthropic, endpoints: [{url: \"https://c.example\"}],"
			    " key_header: authorization}\n"
			    "  d: {dialect: openai-responses, endpoints: [{url: "
			    "\"https://d.example\"}]}\n" RIG_MODELS);
	const struct provider *p = rig.config->providers;
	assert_string_equal(p[0].key_header, "api-key: ");
	assert_slice(p[0].query, "?api-version=2024-10-21");
	assert_string_equal(p[1].key_header, "x-api-key: ");
	assert_slice(p[1].query, "");
	assert_string_equal(p[2].key_header, "authorization: Bearer ");
	assert_string_equal(p[3].key_header, "authorization: Bearer ");
	rig_fini(&rig);
}

static void a_file_that_says_nothing_has_the_defaults(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, RIG_PROVIDERS RIG_MODELS);
	const struct provider *p = &rig.config->providers[0];
	assert_true(slice_absent(rig.config->zone));
	assert_int_equal(rig.config->retries.attempts, 4);
	assert_true(rig.config->retries.budget == 0.15);
	assert_int_equal(rig.config->retries.floor, 5);
	assert_int_equal(p->breaker.failures, 5);
	assert_int_equal(p->breaker.open, 1 * SEC);
	assert_int_equal(p->breaker.open_max, 30 * SEC);
	assert_int_equal(p->breaker.slow_start, 10 * SEC);
	assert_true(slice_absent(p->check.path));
	rig_fini(&rig);
}

static void a_path_is_all_that_checks_need(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, "providers:\n"
			    "  main:\n"
			    "    dialect: openai\n"
			    "    endpoints: [{url: \"https://a.example\"}]\n"
			    "    check: {path: \"/health?deep=1\"}\n"
			    "  other:\n"
			    "    dialect: openai\n"
			    "    endpoints: [{url: \"https://a.example\"}]\n"
			    "    check: {path: /, interval: 1s, timeout: 100ms, unhealthy: 1,"
			    " healthy: 7}\n" RIG_MODELS);
	const struct provider_check *c = &rig.config->providers[0].check;
	assert_slice(c->path, "/health?deep=1");
	assert_int_equal(c->interval, 5 * SEC);
	assert_int_equal(c->timeout, 2 * SEC);
	assert_int_equal(c->unhealthy, 3);
	assert_int_equal(c->healthy, 2);
	c = &rig.config->providers[1].check;
	assert_slice(c->path, "/");
	assert_int_equal(c->interval, 1 * SEC);
	assert_int_equal(c->timeout, 100 * MSEC);
	assert_int_equal(c->unhealthy, 1);
	assert_int_equal(c->healthy, 7);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endpoint_has_its_zone_and_its_bounds),
		cmocka_unit_test(retries_and_breakers_are_as_the_file_says),
		cmocka_unit_test(keys_and_queries_go_where_the_host_wants_them),
		cmocka_unit_test(a_file_that_says_nothing_has_the_defaults),
		cmocka_unit_test(a_path_is_all_that_checks_need),
	};
	return cmocka_run_group_tests_name("settings_providers", tests, NULL, NULL);
}
