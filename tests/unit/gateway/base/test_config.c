#include "gateway/base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct endpoint endpoints[6];

/* By name, as the settings leave them. */
static const struct mcp_server servers[] = {
	{ .name = SLICE_INIT("a"),
	  .enabled = true,
	  .endpoints = &endpoints[2],
	  .endpoint_count = 1 },
	{ .name = SLICE_INIT("b"), .endpoints = &endpoints[3], .endpoint_count = 1 },
	{ .name = SLICE_INIT("c"),
	  .enabled = true,
	  .endpoints = &endpoints[4],
	  .endpoint_count = 2 },
};
static const struct provider providers[] = {
	{ .endpoints = endpoints, .endpoint_count = 0 },
	{ .endpoints = endpoints, .endpoint_count = 2 },
};

static void a_walk_visits_providers_and_the_servers_that_are_enabled(void **state)
{
	static const size_t expected[] = { 0, 1, 2, 4, 5 };
	const struct config config = { .providers = providers,
				       .provider_count = COUNT_OF(providers),
				       .mcp_servers = servers,
				       .mcp_server_count = COUNT_OF(servers) };
	const struct config none = { .provider_count = 0 };
	struct config_walk walk = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(expected); i++)
		assert_ptr_equal(config_next_endpoint(&config, &walk), &endpoints[expected[i]]);
	assert_null(config_next_endpoint(&config, &walk));
	assert_null(config_next_endpoint(&config, &walk));
	walk = (struct config_walk){ 0 };
	assert_null(config_next_endpoint(&none, &walk));
}

static void a_server_that_is_not_enabled_is_known_but_not_reached(void **state)
{
	const struct config config = { .mcp_servers = servers,
				       .mcp_server_count = COUNT_OF(servers) };
	const struct config none = { .mcp_server_count = 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(servers); i++) {
		const struct mcp_server *reached = servers[i].enabled ? &servers[i] : NULL;
		assert_ptr_equal(config_mcp_named(&config, servers[i].name), &servers[i]);
		assert_ptr_equal(config_mcp_server(&config, servers[i].name), reached);
	}
	assert_null(config_mcp_named(&config, SLICE("aa")));
	assert_null(config_mcp_named(&config, SLICE("")));
	assert_null(config_mcp_server(&none, SLICE("a")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_visits_providers_and_the_servers_that_are_enabled),
		cmocka_unit_test(a_server_that_is_not_enabled_is_known_but_not_reached),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
