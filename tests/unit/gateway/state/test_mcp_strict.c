/* Servers that refuse what is declared to them are remembered, for one tenant or for all. */
#include "gateway/state/mcp_strict.h"

#include "tests/unit/gateway/state/mcp_rig.h"

static enum mcp_strictness find(const char *server, const char *tenant, nsec_t now)
{
	const struct state_key at = key_of(server), who = key_of(tenant);

	return mcp_strict_find(channels, &at, &who, now);
}

static void note(const char *server, const char *tenant, enum mcp_strictness found, nsec_t now)
{
	const struct state_key at = key_of(server), who = key_of(tenant);

	mcp_strict_note(channels, &at, &who, found, now);
}

static void one_tenants_finding_is_its_own(void **state)
{
	(void)state;
	assert_int_equal(find("s", "a", NOW), MCP_STRICT_NOT);
	note("s", "a", MCP_STRICT_TOOLS, NOW);
	assert_int_equal(find("s", "a", NOW), MCP_STRICT_TOOLS);
	assert_int_equal(find("s", "b", NOW), MCP_STRICT_NOT);
	assert_int_equal(find("t", "a", NOW), MCP_STRICT_NOT);
	note("s", "a", MCP_STRICT_SAMPLING, NOW);
	assert_int_equal(find("s", "a", NOW), MCP_STRICT_SAMPLING);
	assert_int_equal(find("s", "b", NOW), MCP_STRICT_NOT);
}

static void what_two_have_found_goes_for_all(void **state)
{
	(void)state;
	note("s", "a", MCP_STRICT_SAMPLING, NOW);
	note("s", "b", MCP_STRICT_TOOLS, NOW);
	assert_int_equal(find("s", "a", NOW), MCP_STRICT_SAMPLING);
	assert_int_equal(find("s", "b", NOW), MCP_STRICT_TOOLS);
	assert_int_equal(find("s", "c", NOW), MCP_STRICT_TOOLS);
	note("s", "c", MCP_STRICT_SAMPLING, NOW);
	assert_int_equal(find("s", "d", NOW), MCP_STRICT_SAMPLING);
}

static void it_is_forgotten_after_a_while(void **state)
{
	(void)state;
	note("s", "a", MCP_STRICT_TOOLS, NOW);
	note("s", "b", MCP_STRICT_TOOLS, NOW + SEC); /* does not make it longer */
	assert_int_equal(find("s", "c", NOW + MCP_STRICT_KEPT - 1), MCP_STRICT_TOOLS);
	assert_int_equal(find("s", "a", NOW + MCP_STRICT_KEPT), MCP_STRICT_NOT);
	note("s", "c", MCP_STRICT_TOOLS, NOW + MCP_STRICT_KEPT);
	assert_int_equal(find("s", "a", NOW + MCP_STRICT_KEPT), MCP_STRICT_NOT);
	assert_int_equal(find("s", "c", NOW + MCP_STRICT_KEPT), MCP_STRICT_TOOLS);
}

/* Places are few; what has none is tried as if nothing were known, and never taken for another. */
static void servers_are_not_mixed_up(void **state)
{
	enum { MANY = 4 * KEY_SHARDS * MCP_SHARD_STRICTS };
	char name[16];
	size_t known = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "s%zu", i);
		note(name, "a", i % 2 == 0 ? MCP_STRICT_TOOLS : MCP_STRICT_SAMPLING, NOW);
	}
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "s%zu", i);
		const enum mcp_strictness found = find(name, "a", NOW);
		if (found == MCP_STRICT_NOT)
			continue;
		assert_int_equal(found, i % 2 == 0 ? MCP_STRICT_TOOLS : MCP_STRICT_SAMPLING);
		known++;
	}
	assert_in_range(known, 1, KEY_SHARDS * MCP_SHARD_STRICTS);
}

/* Each with channels of its own. */
static int set_up(void **state)
{
	(void)state;
	channels = mcp_channels_new();
	return channels == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	mcp_channels_free(channels);
	return 0;
}

#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN(one_tenants_finding_is_its_own),
		IN(what_two_have_found_goes_for_all),
		IN(it_is_forgotten_after_a_while),
		IN(servers_are_not_mixed_up),
	};
	return cmocka_run_group_tests_name("mcp_strict", tests, NULL, NULL);
}
