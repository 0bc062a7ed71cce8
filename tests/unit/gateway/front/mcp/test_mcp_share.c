/* What tenants hold of a worker in streams: one that takes all it can leaves room for the others. */
#include "gateway/front/mcp/mcp_share.h"

#include "gateway/front/mcp/mcp_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MIB = 1 << 20, STREAMS = MCP_RESTING_MAX };

static struct mcp_shares shares;
static struct mcp_held *held;

static const struct mcp_digest one = { .at = { 1 } }, other = { .at = { 2 } };

static int set_up(void **state)
{
	(void)state;
	held = calloc(STREAMS, sizeof(*held));
	return held == NULL || !mcp_shares_init(&shares);
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < STREAMS; i++)
		mcp_hold_nothing(&shares, &held[i]);
	assert_int_equal(shares.bytes.sum, 0);
	assert_int_equal(shares.streams.sum, 0);
	fair_share_unmap(&shares.bytes);
	fair_share_unmap(&shares.streams);
	free(held);
	return 0;
}

/* How many streams that hold so much it gets from the place `from` on. */
static size_t grab(const struct mcp_digest *tenant, size_t from, size_t bytes)
{
	size_t i = from;

	while (i < STREAMS && mcp_hold_bytes(&shares, &held[i], tenant, bytes))
		i++;
	return i - from;
}

static void bytes_are_shared(void **state)
{
	(void)state;
	mcp_shares_bound(&shares, 256 * MIB);
	const size_t first = grab(&one, 0, MIB);
	assert_in_range(first, 127, 130);
	assert_in_range(grab(&other, first, MIB), 60, 66);
	assert_false(mcp_hold_bytes(&shares, &held[0], &one, 2 * MIB));
	assert_int_equal(held[0].bytes, MIB); /* as before */
	assert_true(mcp_hold_bytes(&shares, &held[0], &one, MIB / 2));
	assert_int_equal(held[0].bytes, MIB / 2);
}

static void what_is_short_is_not_counted(void **state)
{
	(void)state;
	mcp_shares_bound(&shares, 0);
	assert_int_equal(grab(&one, 0, MCP_BYTES_SHORT), STREAMS);
	assert_int_equal(shares.bytes.sum, 0);
	assert_true(mcp_hold_bytes(&shares, &held[0], &one, MCP_BYTES_SHORT + 1));
	assert_int_equal(shares.bytes.sum, MCP_BYTES_SHORT + 1);
	assert_true(mcp_hold_bytes(&shares, &held[0], &one, 0));
	assert_int_equal(shares.bytes.sum, 0);
}

/* However small the configured bound is, and piece by piece as it comes. */
static void the_largest_event_may_always_be_held(void **state)
{
	(void)state;
	mcp_shares_bound(&shares, 0);
	for (size_t bytes = 0; bytes <= MCP_HELD_MAX; bytes += MCP_BYTES_SHORT)
		assert_true(mcp_hold_bytes(&shares, &held[0], &one, bytes));
	assert_int_equal(held[0].bytes, MCP_HELD_MAX);
}

static size_t rest_all(const struct mcp_digest *tenant, size_t from, enum fair_verdict *last)
{
	size_t i = from;

	do
		*last = i == STREAMS ? FAIR_FULL : mcp_hold_stream(&shares, &held[i], tenant);
	while (*last == FAIR_TAKEN && ++i <= STREAMS);
	return i - from;
}

static void streams_are_shared(void **state)
{
	enum fair_verdict last;

	(void)state;
	const size_t first = rest_all(&one, 0, &last);
	assert_int_equal(last, FAIR_OWN);
	assert_in_range(first, STREAMS / 2 - 1, STREAMS / 2 + 1);
	assert_int_equal(mcp_hold_stream(&shares, &held[0], &one), FAIR_TAKEN); /* it has one */
	assert_in_range(rest_all(&other, first, &last), STREAMS / 4 - 1, STREAMS / 4 + 1);
	mcp_hold_nothing(&shares, &held[0]);
	mcp_hold_nothing(&shares, &held[0]);
	assert_int_equal(mcp_hold_stream(&shares, &held[STREAMS - 1], &other), FAIR_TAKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_are_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_short_is_not_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_largest_event_may_always_be_held, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(streams_are_shared, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("mcp_share", tests, NULL, NULL);
}
