/* Sessions of /mcp/{server}: they are counted until they end or are idle, and each server request is claimed once. */
#include "tests/unit/gateway/state/mcp_rig.h"

static int set_up(void **state)
{
	(void)state;
	channels = mcp_channels_new();
	return channels == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	mcp_channels_free(channels); /* nothing may be counted then */
	return 0;
}

/* ---- places ---- */

static enum mcp_room take(struct mcp_place *target, const char *tenant, uint32_t tenant_max,
			  const char *server, uint32_t server_max, nsec_t now)
{
	const struct mcp_who who = who_of(tenant, server, "");

	return mcp_place_take(channels, target, &who.tenant, tenant_max, &who.server, server_max,
			      now);
}

/* Begins a session of tenant `a` and server `s`, who may have two. */
static enum mcp_room begin(const char *name, nsec_t now)
{
	const struct mcp_who who = who_of("a", "s", name);
	struct mcp_place target;
	const enum mcp_room room = take(&target, "a", 2, "s", 10, now);

	if (room == MCP_ROOM)
		mcp_session_begin(&target, &who, now);
	return room;
}

static void a_tenant_and_a_server_have_so_many_sessions(void **state)
{
	struct mcp_place places[3], refused = { .channels = channels };

	(void)state;
	assert_int_equal(take(&places[0], "a", 2, "s", 3, NOW), MCP_ROOM);
	assert_int_equal(take(&places[1], "a", 2, "t", 3, NOW), MCP_ROOM);
	assert_int_equal(take(&refused, "a", 2, "s", 3, NOW), MCP_TENANT_FULL);
	assert_null(refused.channels); /* so that dropping it is harmless */
	assert_int_equal(take(&places[2], "b", 2, "s", 2, NOW), MCP_ROOM);
	assert_int_equal(take(&refused, "c", 2, "s", 2, NOW), MCP_SERVER_FULL);
	assert_int_equal(take(&refused, "c", 0, "u", 2, NOW), MCP_TENANT_FULL);
	mcp_place_drop(&refused);
	mcp_place_drop(&places[0]);
	mcp_place_drop(&places[0]);
	assert_int_equal(take(&places[0], "a", 2, "s", 2, NOW), MCP_ROOM);
	for (size_t i = 0; i < COUNT_OF(places); i++)
		mcp_place_drop(&places[i]);
	assert_int_equal(sessions_now("s"), 0);
}

static void a_session_holds_its_place_until_it_ends(void **state)
{
	const struct mcp_who one = who_of("a", "s", "1");

	(void)state;
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	assert_int_equal(begin("2", NOW), MCP_ROOM);
	assert_int_equal(begin("3", NOW), MCP_TENANT_FULL);
	assert_true(mcp_session_end(channels, &one, NOW));
	assert_false(mcp_session_end(channels, &one, NOW)); /* it was over */
	assert_int_equal(sessions_now("s"), 1);
	assert_int_equal(begin("3", NOW), MCP_ROOM);
	assert_int_equal(begin("4", NOW), MCP_TENANT_FULL);
}

static void an_idle_session_gives_its_place_to_another(void **state)
{
	const struct mcp_who one = who_of("a", "s", "1");

	(void)state;
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	assert_int_equal(begin("2", NOW), MCP_ROOM);
	mcp_session_used(channels, &one, NOW + MCP_SESSION_RENEW);
	assert_int_equal(begin("3", NOW + MCP_SESSION_IDLE - 1), MCP_TENANT_FULL);
	/* 2 is idle now; that is looked for once a second at most */
	assert_int_equal(begin("3", NOW + MCP_SESSION_IDLE), MCP_TENANT_FULL);
	assert_int_equal(begin("3", NOW + MCP_SESSION_IDLE + SEC), MCP_ROOM);
	assert_int_equal(begin("4", NOW + MCP_SESSION_IDLE + 2 * SEC), MCP_TENANT_FULL);
	assert_int_equal(sessions_now("s"), 2);
}

static void describe(const char *name, const char *client)
{
	const struct mcp_about about = { .key = who_of("a", "s", name).key,
					 .begun_s = 7,
					 .mode = 2,
					 .tenant = SLICE("a"),
					 .server = SLICE("s"),
					 .client = slice_str(client),
					 .revision = SLICE("2025-11-25") };

	mcp_session_describe(channels, &about);
}

static void what_an_idle_session_was_is_told_once(void **state)
{
	const struct mcp_who first = who_of("a", "s", "1"), two = who_of("a", "s", "2");

	(void)state;
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	assert_int_equal(begin("2", NOW), MCP_ROOM);
	describe("1", "desk");
	describe("1", NULL); /* the later one counts */
	describe("2", "desk");
	describe("3", "desk");                             /* there is no such session */
	assert_true(mcp_session_end(channels, &two, NOW)); /* it did not end by itself */
	describe("2", "desk");
	assert_null(mcp_sessions_idled(channels));
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE);
	struct mcp_about *one = mcp_sessions_idled(channels);
	assert_non_null(one);
	assert_null(one->next);
	assert_true(state_key_eq(&one->key, &first.key));
	assert_int_equal(one->begun_s, 7);
	assert_int_equal(one->mode, 2);
	assert_true(slice_eq(one->tenant, SLICE("a")) && slice_eq(one->server, SLICE("s")));
	assert_true(slice_absent(one->client) && slice_eq(one->revision, SLICE("2025-11-25")));
	mcp_about_free(one);
	assert_null(mcp_sessions_idled(channels));
	/* and what nobody has taken goes with the channels */
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	describe("1", "desk");
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE);
}

static void a_message_renews_a_session_once_a_minute(void **state)
{
	const struct mcp_who one = who_of("a", "s", "1");

	(void)state;
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	mcp_session_used(channels, &one, NOW + MCP_SESSION_RENEW - 1); /* too soon to count */
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE);
	assert_int_equal(sessions_now("s"), 0);
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	mcp_session_used(channels, &one, NOW + MCP_SESSION_RENEW);
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE);
	assert_int_equal(sessions_now("s"), 1);
}

static void a_lost_record_is_made_anew_and_counts(void **state)
{
	const struct mcp_who one = who_of("a", "s", "1");
	const struct state_key server = one.server;

	(void)state;
	mcp_session_used(channels, &one, NOW);
	mcp_session_used(channels, &one, NOW);
	assert_int_equal(mcp_sessions_of(channels, &server, NOW), 1);
	assert_int_equal(begin("1", NOW), MCP_ROOM); /* of the same id: it is counted once */
	assert_int_equal(mcp_sessions_of(channels, &server, NOW), 1);
	assert_int_equal(mcp_sessions_of(channels, &server, NOW + 2 * MCP_SESSION_IDLE), 0);
}

static void an_ended_session_is_known_for_an_hour(void **state)
{
	const struct mcp_who one = who_of("a", "s", "1"), never = who_of("a", "s", "2");

	(void)state;
	assert_int_equal(begin("1", NOW), MCP_ROOM);
	assert_false(mcp_session_ended(channels, &one, NOW));
	assert_true(mcp_session_end(channels, &one, NOW));
	assert_true(mcp_session_end(channels, &never, NOW)); /* its record was lost */
	mcp_session_used(channels, &one, NOW + 2 * MCP_SESSION_RENEW);
	assert_int_equal(sessions_now("s"), 0);
	assert_true(mcp_session_ended(channels, &one, NOW + MCP_SESSION_IDLE - 1));
	assert_true(mcp_session_ended(channels, &never, NOW + MCP_SESSION_IDLE - 1));
	assert_false(mcp_session_ended(channels, &one, NOW + MCP_SESSION_IDLE));
	assert_int_equal(begin("1", NOW + 1), MCP_ROOM); /* the upstream uses that id once more */
	assert_false(mcp_session_ended(channels, &one, NOW + 1));
	assert_int_equal(sessions_now("s"), 1);
}

/* A shard is full: its records have room for so many sessions. */
static void the_record_that_was_not_used_for_longest_goes(void **state)
{
	struct mcp_who who = who_of("a", "s", "");

	(void)state;
	for (uint32_t i = 0; i <= MCP_SHARD_SESSIONS; i++) {
		who.key = (struct state_key){ { 0, (uint8_t)(i >> 8), (uint8_t)i, 1 } };
		assert_int_equal(mcp_session_claim(channels, &who, SLICE("1"), NOW + i),
				 MCP_CLAIMED);
	}
	assert_int_equal(sessions_now("s"), MCP_SHARD_SESSIONS);
	who.key = (struct state_key){ { 0, 0, 0, 1 } };
	assert_false(mcp_session_claimed(channels, &who, SLICE("1")));
	who.key = (struct state_key){ { 0, 0, 1, 1 } };
	assert_true(mcp_session_claimed(channels, &who, SLICE("1")));
}

/* ---- server requests ---- */

static void a_server_request_is_claimed_once_in_its_session(void **state)
{
	const struct mcp_who one = session("1"), two = session("2");

	(void)state;
	assert_false(mcp_session_claimed(channels, &one, SLICE("7")));
	assert_int_equal(mcp_session_claim(channels, &one, SLICE("7"), NOW), MCP_CLAIMED);
	assert_int_equal(mcp_session_claim(channels, &one, SLICE("7"), NOW), MCP_CLAIMED_BEFORE);
	assert_int_equal(mcp_session_claim(channels, &one, SLICE("\"7\""), NOW), MCP_CLAIMED);
	assert_int_equal(mcp_session_claim(channels, &two, SLICE("7"), NOW), MCP_CLAIMED);
	assert_true(mcp_session_claimed(channels, &one, SLICE("7")));
	assert_false(mcp_session_claimed(channels, &two, SLICE("\"7\"")));
	assert_true(mcp_session_end(channels, &two, NOW)); /* nobody waits for an answer any more */
	assert_int_equal(mcp_session_claim(channels, &two, SLICE("8"), NOW), MCP_CLAIMED_BEFORE);
}

static void the_newest_ids_are_remembered(void **state)
{
	const struct mcp_who who = session("1");

	(void)state;
	for (uint32_t i = 0; i <= MCP_IDS_CLAIMED; i++)
		assert_int_equal(mcp_session_claim(channels, &who,
						   slice_of((const char *)&i, sizeof(i)), NOW),
				 MCP_CLAIMED);
	for (uint32_t i = 0; i <= MCP_IDS_CLAIMED; i++)
		assert_int_equal(
			mcp_session_claimed(channels, &who, slice_of((const char *)&i, sizeof(i))),
			i != 0);
}

static void a_claim_renews_its_session(void **state)
{
	const struct mcp_who who = session("1");

	(void)state;
	assert_int_equal(mcp_session_claim(channels, &who, SLICE("1"), NOW), MCP_CLAIMED);
	assert_int_equal(mcp_session_claim(channels, &who, SLICE("2"), NOW + 5), MCP_CLAIMED);
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE);
	assert_true(mcp_session_claimed(channels, &who, SLICE("1")));
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE + 5);
	assert_false(mcp_session_claimed(channels, &who, SLICE("1")));
}

static void without_memory_nothing_is_claimed(void **state)
{
	const struct mcp_who who = session("1");

	(void)state;
	channels->fail_next = 1;
	assert_int_equal(mcp_session_claim(channels, &who, SLICE("1"), NOW), MCP_UNCLAIMED);
	assert_false(mcp_session_claimed(channels, &who, SLICE("1")));
	assert_int_equal(mcp_session_claim(channels, &who, SLICE("1"), NOW), MCP_CLAIMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(a_tenant_and_a_server_have_so_many_sessions),
		IN(a_session_holds_its_place_until_it_ends),
		IN(an_idle_session_gives_its_place_to_another),
		IN(what_an_idle_session_was_is_told_once),
		IN(a_message_renews_a_session_once_a_minute),
		IN(a_lost_record_is_made_anew_and_counts),
		IN(an_ended_session_is_known_for_an_hour),
		IN(the_record_that_was_not_used_for_longest_goes),
		IN(a_server_request_is_claimed_once_in_its_session),
		IN(the_newest_ids_are_remembered),
		IN(a_claim_renews_its_session),
		IN(without_memory_nothing_is_claimed),
	};

	return cmocka_run_group_tests_name("mcp_session", tests, NULL, NULL);
}
