#include "gateway/worker/descriptors.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two listeners; beside callers and providers: 128 + workers * (4 + 2). A pool has at most 4,096
 * connections per worker. */
static const struct row {
	const char *name;
	uint32_t callers, workers, endpoints;
	uint64_t files;
	uint32_t fit;
	uint32_t concurrent; /* of each endpoint; 0: no bound */
} rows[] = {
	{ "room for all", 20000, 2, 1, 1 << 20, 20000, 0 },
	{ "just room for all", 20000, 1, 1, 134 + 4096 + 20000, 20000, 0 },
	{ "one file less", 20000, 1, 1, 134 + 4096 + 19999, 19999, 0 },
	{ "no limit", 1000000, 256, 256, UINT64_MAX, 1000000, 0 },
	{ "providers take no more than half", 20000, 2, 64, 20000, (20000 - 140) / 2, 0 },
	{ "providers never take more than there are callers", 1000, 1, 64, 134 + 2000, 1000, 0 },
	{ "without providers callers get everything", 20000, 1, 0, 1134, 1000, 0 },
	{ "a common soft limit", 20000, 2, 1, 1024, (1024 - 140) / 2, 0 },
	{ "bounds of endpoints leave more to callers", 20000, 2, 3, 20000, 20000 - 140 - 3 * 100,
	  101 },
	{ "a bound of less than one for each worker", 20000, 4, 1, 1152, 1152 - 152 - 4, 3 },
	{ "hardly any", 20000, 1, 1, 136, 1, 0 },
	{ "fewer than the gateway itself needs", 20000, 1, 1, 100, 1, 0 },
};

static void files_are_shared_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct endpoint endpoints[CONFIG_PROVIDERS_MAX];
		for (size_t e = 0; e < COUNT_OF(endpoints); e++)
			endpoints[e] = (struct endpoint){
				.concurrent =
					rows[i].concurrent == 0 ? UINT32_MAX : rows[i].concurrent,
			};
		const struct provider providers[] = {
			{ .enabled = true,
			  .endpoints = endpoints,
			  .endpoint_count = rows[i].endpoints },
			{ .enabled = false, .endpoints = endpoints, .endpoint_count = 64 },
		};
		const struct config config = { .connections_max = rows[i].callers,
					       .workers = rows[i].workers,
					       .listen_count = 2,
					       .providers = providers,
					       .provider_count = COUNT_OF(providers) };
		print_message("  %s\n", rows[i].name);
		const struct descriptors share = descriptors_share(&config, rows[i].files);
		assert_int_equal(share.callers, rows[i].fit);
	}
}

/* One worker, no provider, two MCP servers with one endpoint each and one that is not enabled. */
static void sessions_of_mcp_servers_hold_files_of_their_own(void **state)
{
	static const struct {
		const char *name;
		uint32_t callers, sessions, concurrent;
		uint64_t files;
		uint32_t fit;
	} cases[] = {
		{ "room for all", 20000, 300, 100, 134 + 200 + 600 + 20000, 20000 },
		{ "one file less", 20000, 300, 100, 134 + 200 + 600 + 19999, 19999 },
		{ "calls without a bound", 20000, 300, UINT32_MAX, 134 + 8192 + 600 + 19999,
		  19999 },
		{ "no more than half", 20000, 1000000, 100, 134 + 30000, 15000 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct endpoint endpoint = { .concurrent = cases[i].concurrent };
		const struct mcp_server on = { .enabled = true,
					       .endpoints = &endpoint,
					       .endpoint_count = 1,
					       .sessions = cases[i].sessions };
		struct mcp_server servers[] = { on, on, on };
		servers[1].enabled = false;
		const struct config config = { .connections_max = cases[i].callers,
					       .workers = 1,
					       .listen_count = 2,
					       .mcp_servers = servers,
					       .mcp_server_count = COUNT_OF(servers) };
		print_message("  %s\n", cases[i].name);
		const struct descriptors share = descriptors_share(&config, cases[i].files);
		assert_int_equal(share.callers, cases[i].fit);
		assert_int_equal(share.sessions, 2 * (uint64_t)cases[i].sessions);
	}
}

static void this_process_never_gets_more_than_configured(void **state)
{
	(void)state;
	const struct config config = { .connections_max = 3, .workers = 1, .listen_count = 1 };
	assert_int_equal(descriptors_callers(&config), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_shared_out),
		cmocka_unit_test(sessions_of_mcp_servers_hold_files_of_their_own),
		cmocka_unit_test(this_process_never_gets_more_than_configured),
	};
	return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
