/* Messages between the workers of gateways, through a real Redis.
 *
 * ctest: timeout=60 */
#include "tests/unit/gateway/state/mcp_shared_rig.h"

/* ---- the bus ---- */

static struct heard {
	uint32_t count;
	struct peer_address from;
	char text[64];
	size_t len;
} at_a, at_b, at_b_first, at_c_first;

static void note_heard(void *owner, const struct peer_address *from, struct slice body)
{
	struct heard *heard = owner;

	heard->count++;
	heard->from = *from;
	heard->len = body.len;
	(void)snprintf(heard->text, sizeof(heard->text), "%.*s", (int)body.len, body.at);
}

static void a_message_comes_to_the_worker_that_it_is_for_or_to_the_first_of_all_others(void **state)
{
	const struct slice parts[] = { SLICE("one "), SLICE(""), SLICE("two") };
	struct peer_address to = peer_bus_own(b->workers[1].bus);

	(void)state;
	at_a = at_b = at_b_first = at_c_first = (struct heard){ 0 };
	peer_bus_hear(a->workers[0].bus, PEER_MCP_END, note_heard, &at_a);
	peer_bus_hear(b->workers[1].bus, PEER_MCP_END, note_heard, &at_b);
	peer_bus_hear(b->workers[0].bus, PEER_MCP_END, note_heard, &at_b_first);
	peer_bus_hear(c->workers[0].bus, PEER_MCP_END, note_heard, &at_c_first);
	assert_true(peer_bus_tell(a->workers[1].bus, &to, PEER_MCP_END, parts, COUNT_OF(parts)));
	assert_true(
		peer_bus_tell(a->workers[1].bus, &to, PEER_MCP_CREDIT, parts, 1)); /* nobody's */
	(void)settle();
	assert_int_equal(at_b.count, 1);
	assert_string_equal(at_b.text, "one two");
	to = peer_bus_own(a->workers[1].bus);
	assert_true(peer_address_eq(&at_b.from, &to));
	peer_bus_tell_all(a->workers[1].bus, PEER_MCP_END, parts, 1);
	(void)settle();
	assert_true(at_b.count == 1 && at_a.count == 0);
	assert_true(at_b_first.count == 1 && at_c_first.count == 1);
	to = peer_bus_own(a->workers[0].bus);
	assert_true(peer_bus_tell(a->workers[1].bus, &to, PEER_MCP_END, parts, 1));
	(void)settle();
	assert_int_equal(at_a.count, 1); /* of another worker of its own */
}

static void a_message_has_a_bound_and_needs_redis(void **state)
{
	static char text[PEER_MESSAGE_MAX];
	const struct peer_address to = peer_bus_own(b->workers[1].bus);
	struct slice part = { text, PEER_MESSAGE_MAX - 8 };

	(void)state;
	at_b = (struct heard){ 0 };
	(void)memset(text, 'x', sizeof(text));
	peer_bus_hear(b->workers[1].bus, PEER_MCP_END, note_heard, &at_b);
	assert_true(peer_bus_tell(a->workers[0].bus, &to, PEER_MCP_END, &part, 1));
	(void)settle();
	assert_true(at_b.count == 1 && at_b.len == part.len);
	part.len++;
	assert_false(peer_bus_tell(a->workers[0].bus, &to, PEER_MCP_END, &part, 1));
	fake_unready(a->workers[0].client.link);
	part.len = 1;
	assert_false(peer_bus_tell(a->workers[0].bus, &to, PEER_MCP_END, &part, 1));
	(void)settle();
	assert_int_equal(at_b.count, 1);
}

static void while_redis_does_not_keep_up_no_more_is_told(void **state)
{
	static char text[64 << 10];
	const struct peer_address to = peer_bus_own(b->workers[1].bus);
	const struct slice part = { text, sizeof(text) };
	uint32_t told = 0;

	(void)state;
	at_b = (struct heard){ 0 };
	peer_bus_hear(b->workers[1].bus, PEER_MCP_END, note_heard, &at_b);
	while (peer_bus_tell(a->workers[0].bus, &to, PEER_MCP_END, &part, 1))
		assert_true(++told < 128);
	assert_in_range(told, 32, 127);
	assert_true(redis_link_ready(a->workers[0].client.link));
	(void)settle();
	assert_int_equal(at_b.count, told);
	assert_true(peer_bus_tell(a->workers[0].bus, &to, PEER_MCP_END, &part, 1));
	(void)settle();
	assert_int_equal(at_b.count, told + 1);
}

static void what_is_no_message_is_passed_over(void **state)
{
	(void)state;
	for (size_t len = 0; len < 9; len++)
		freeReplyObject(
			redisCommand(connection, "PUBLISH sluice:1:bus %b", "\0\1abcdefg", len));
	freeReplyObject(redisCommand(connection, "PUBLISH sluice:1:bus %b", "\377\1abcdefg", 9));
	freeReplyObject(redisCommand(connection, "PUBLISH sluice:1:bus %b", "\5\1abcdefg", 9));
	(void)settle();
}

static void who_may_have_missed_something_is_told(void **state)
{
	struct worker *worker = &a->workers[1];

	(void)state;
	fake_unready(worker->client.listener); /* slow, and no more */
	fake_ready(worker->client.listener);
	assert_int_equal(worker->gaps, 0);
	fake_unready(worker->client.listener);
	fake_lost(worker->client.listener);
	assert_int_equal(worker->gaps, 1);
	fake_ready(worker->client.listener);
	assert_int_equal(worker->gaps, 2);
	fake_unready(worker->client.link);
	fake_lost(worker->client.link);
	fake_ready(worker->client.link);
	assert_int_equal(worker->gaps, 3);
	(void)settle();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_message_comes_to_the_worker_that_it_is_for_or_to_the_first_of_all_others),
		TEST(a_message_has_a_bound_and_needs_redis),
		TEST(while_redis_does_not_keep_up_no_more_is_told),
		TEST(what_is_no_message_is_passed_over),
		TEST(who_may_have_missed_something_is_told),
	};
	return cmocka_run_group_tests_name("peer_bus", tests, start_server, stop_server);
}
