/* What gateways know together of sessions of /mcp/{server}: state/mcp_*.lua in a real Redis, behind mcp_shared.h.
 *
 * ctest: timeout=60 */
#include "tests/unit/gateway/state/mcp_shared_rig.h"

#include "gateway/state/mcp_shared_parts.h"

/* ---- homes ---- */

static void of_all_who_ask_for_it_one_is_the_home(void **state)
{
	struct mcp_ask asks[GATEWAYS * WORKERS];
	uint32_t mine = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(asks); i++) {
		asks[i] = question_of(&session);
		assert_true(mcp_ask_home(gateways[i % GATEWAYS].workers[i / GATEWAYS].shared,
					 &asks[i], i < GATEWAYS));
	}
	(void)settle();
	for (size_t i = 0; i < COUNT_OF(asks); i++) {
		mine += asks[i].answer == MCP_SHARED_MINE;
		assert_true(
			asks[i].answer == MCP_SHARED_MINE ||
			(asks[i].answer == MCP_SHARED_OTHERS && is_home(&asks[i], &a->workers[0])));
	}
	assert_int_equal(mine, 1);
	assert_true(is_home(&asks[0], &a->workers[0]));
}

static void who_only_looks_does_not_become_it(void **state)
{
	(void)state;
	assert_int_equal(home_at(&a->workers[0], false).answer, MCP_SHARED_NOBODY);
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_MINE);
	const struct mcp_ask ask = home_at(&a->workers[0], false);
	assert_int_equal(ask.answer, MCP_SHARED_OTHERS);
	assert_true(is_home(&ask, &b->workers[1]));
	assert_int_equal(home_at(&b->workers[1], false).answer, MCP_SHARED_MINE);
}

static void the_home_of_a_dead_gateway_is_taken_over_with_its_last_id_and_not_before(void **state)
{
	(void)state;
	assert_int_equal(takes(&a->workers[1]), MCP_SHARED_MINE);
	mcp_shared_saw(a->workers[1].shared, &session, SLICE("event-7"));
	(void)settle();
	dies(a);
	pass(3 * SEC);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_OTHERS);
	assert_true(lives(b, a));
	key_expires(a);
	assert_int_equal(home_at(&b->workers[0], false).answer, MCP_SHARED_NOBODY);
	assert_int_equal(b->workers[0].died + b->workers[1].died, 0);
	pass(500 * MSEC);
	assert_false(lives(b, a));
	assert_true(b->workers[0].died == 1 && b->workers[1].died == 1);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE);
	assert_string_equal(last_id, "event-7");
	assert_int_equal(takes(&c->workers[0]), MCP_SHARED_OTHERS);
	pass(2 * SEC);
	assert_true(b->workers[0].died == 1 && b->workers[1].died == 1);
}

static void whose_own_key_is_gone_finds_nobody_dead(void **state)
{
	(void)state;
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	command("FLUSHALL", NULL);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE); /* nothing is known any more */
	key_expires(b);
	assert_int_equal(takes(&c->workers[0]), MCP_SHARED_OTHERS); /* c is not there, either */
	pass(SEC);
	for (size_t i = 0; i < GATEWAYS; i++)
		assert_int_equal(gateways[i].workers[0].died, 0);
}

static void what_a_gateway_says_that_is_not_the_home_any_more_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	mcp_shared_saw(b->workers[0].shared, &session, SLICE("wrong"));
	mcp_shared_refused(b->workers[0].shared, &session);
	mcp_shared_freed(b->workers[0].shared, &session);
	(void)settle();
	assert_int_equal(takes(&c->workers[0]), MCP_SHARED_OTHERS);
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	assert_string_equal(last_id, "");
}

static void within_a_process_its_own_records_say_which_worker_is_the_home(void **state)
{
	struct mcp_home *home = home_in(a, 1);

	(void)state;
	struct mcp_ask ask = home_at(&a->workers[0], true); /* before Redis knows */
	assert_int_equal(ask.answer, MCP_SHARED_OTHERS);
	assert_true(is_home(&ask, &a->workers[1]));
	assert_int_equal(takes(&a->workers[1]), MCP_SHARED_MINE);
	ask = home_at(&a->workers[0], true);
	assert_int_equal(ask.answer, MCP_SHARED_OTHERS);
	assert_true(is_home(&ask, &a->workers[1]));
	assert_null(mcp_home_close(home)); /* and what Redis says is old */
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	ask = home_at(&b->workers[0], true);
	assert_true(is_home(&ask, &a->workers[0]));
}

static void a_home_that_lets_go_is_free_and_every_worker_of_the_others_is_told(void **state)
{
	struct peer_address known;

	(void)state;
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_OTHERS);
	assert_true(mcp_shared_home_known(b->workers[1].shared, &session, &known));
	assert_int_equal(known.worker, 0);
	mcp_shared_saw(a->workers[0].shared, &session, SLICE("9"));
	mcp_shared_freed(a->workers[0].shared, &session);
	(void)settle();
	for (size_t i = 0; i < GATEWAYS * WORKERS; i++) {
		const struct worker *worker = &gateways[i / WORKERS].workers[i % WORKERS];
		assert_int_equal(worker->freed_count, i >= WORKERS);
		if (i >= WORKERS)
			assert_true(state_key_eq(&worker->freed[0], &session.key));
	}
	assert_false(mcp_shared_home_known(b->workers[1].shared, &session, &known));
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_MINE);
	assert_string_equal(last_id, "9");
}

static void an_upstream_without_a_get_is_remembered(void **state)
{
	(void)state;
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	mcp_shared_refused(a->workers[0].shared, &session);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_REFUSED);
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_REFUSED);
}

static void whoever_does_not_wait_for_it_any_more_is_no_home(void **state)
{
	struct mcp_ask ask = question_of(&session);

	(void)state;
	assert_true(mcp_ask_home(a->workers[0].shared, &ask, true));
	mcp_ask_forget(&ask);
	const uint32_t before = done_count;
	(void)settle();
	assert_int_equal(done_count, before);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE);
	mcp_ask_forget(&ask); /* harmless */
}

/* ---- claims ---- */

static void a_request_is_claimed_once_and_all_gateways_know(void **state)
{
	(void)state;
	assert_int_equal(claims(&a->workers[1], "7", SLICE("request")), MCP_SHARED_CLAIMED);
	for (size_t i = 0; i < GATEWAYS; i++)
		assert_int_equal(mcp_session_claimed(gateways[i].channels, &session, SLICE("7")),
				 gateways + i != a); /* a's own claim is its front's */
	assert_false(mcp_session_claimed(b->channels, &session, SLICE("\"7\"")));
	assert_int_equal(claims(&b->workers[0], "7", SLICE("request")), MCP_SHARED_BEFORE);
	assert_int_equal(claims(&a->workers[1], "7", SLICE("request")), MCP_SHARED_BEFORE);
	assert_int_equal(claims(&b->workers[0], "\"7\"", nothing), MCP_SHARED_CLAIMED);
	assert_int_equal(mcp_sessions_of(b->channels, &session.server, now), 0);
	assert_true(mcp_session_used(b->channels, &session, now));
	assert_int_equal(mcp_sessions_of(b->channels, &session.server, now), 1);
}

static void the_newest_256_are_remembered(void **state)
{
	char id[16];

	(void)state;
	for (uint32_t i = 0; i <= MCP_IDS_CLAIMED; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(claims(&gateways[i % GATEWAYS].workers[0], id, nothing),
				 MCP_SHARED_CLAIMED);
	}
	assert_int_equal(claims(&a->workers[0], "1", nothing), MCP_SHARED_BEFORE);
	assert_int_equal(claims(&a->workers[0], "256", nothing), MCP_SHARED_BEFORE);
	assert_int_equal(claims(&a->workers[0], "0", nothing), MCP_SHARED_CLAIMED);
	assert_int_equal(claims(&a->workers[0], "1", nothing), MCP_SHARED_CLAIMED);
}

static void calls_are_counted_over_the_gateways_that_live(void **state)
{
	static const struct {
		struct gateway *at;
		bool begun;
	} calls[] = { { a, true }, { a, true }, { b, true }, { c, true }, { a, false } };
	struct mcp_ask ask = question_of(&session);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(calls); i++)
		mcp_shared_call(calls[i].at->workers[0].shared, &session, calls[i].begun);
	(void)settle();
	dies(c);
	key_expires(c);
	is_answered(mcp_ask_claim(b->workers[0].shared, &ask, SLICE("1"), nothing));
	assert_int_equal(ask.calls, 2);
	mcp_shared_call(a->workers[0].shared, &session, false);
	mcp_shared_call(b->workers[0].shared, &session, false);
	is_answered(mcp_ask_claim(b->workers[0].shared, &ask, SLICE("2"), nothing));
	assert_int_equal(ask.calls, 0);
}

static void what_a_dead_gateway_has_claimed_comes_to_one_of_the_others_once(void **state)
{
	(void)state;
	assert_int_equal(claims(&a->workers[1], "7", SLICE("the request")), MCP_SHARED_CLAIMED);
	assert_int_equal(claims(&a->workers[0], "8", nothing), MCP_SHARED_CLAIMED);
	assert_int_equal(claims(&a->workers[0], "9", SLICE("answered")), MCP_SHARED_CLAIMED);
	mcp_shared_settled(a->workers[0].shared, &session, SLICE("9"));
	(void)settle();
	dies(a);
	pass(2 * SEC);
	assert_int_equal(b->orphans + c->orphans, 0);
	key_expires(a);
	pass(500 * MSEC);
	assert_int_equal(b->orphans + c->orphans, 2);
	struct gateway *heir = b->orphans != 0 ? b : c;
	assert_int_equal(heir->orphans, 2); /* of one look */
	assert_memory_equal(&heir->orphan, &session, sizeof(session));
	if (strcmp(heir->id, "7") == 0)
		assert_true(heir->is_kept && strcmp(heir->kept, "the request") == 0);
	else
		assert_true(strcmp(heir->id, "8") == 0 && !heir->is_kept);
	assert_true(mcp_session_claimed(heir->channels, &session, SLICE("7")));
	pass(2 * SEC);
	assert_int_equal(b->orphans + c->orphans, 2);
	mcp_shared_settled(heir->workers[0].shared, &session, SLICE("7"));
	(void)settle();
	/* who dies next leaves what is left */
	struct gateway *last = heir == b ? c : b;
	dies(heir);
	key_expires(heir);
	pass(SEC);
	assert_true(last->orphans == 1 && strcmp(last->id, "8") == 0);
}

static void what_nobody_waits_for_any_more_is_not_left_to_others(void **state)
{
	struct mcp_ask ask = question_of(&session);

	(void)state;
	assert_true(mcp_ask_claim(a->workers[0].shared, &ask, SLICE("7"), SLICE("given up")));
	mcp_ask_forget(&ask);
	(void)settle();
	assert_int_equal(claims(&b->workers[0], "7", nothing), MCP_SHARED_BEFORE);
	dies(a);
	key_expires(a);
	pass(SEC);
	assert_int_equal(b->orphans + c->orphans, 0);
}

static void many_come_little_by_little_and_none_is_lost_with_an_answer(void **state)
{
	enum { CLAIMS = 50 };
	char id[16];

	(void)state;
	dies(c);
	key_expires(c);
	pass(SEC);
	for (uint32_t i = 0; i < CLAIMS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(claims(&a->workers[0], id, SLICE("kept")), MCP_SHARED_CLAIMED);
	}
	dies(a);
	key_expires(a);
	/* Redis has moved some, and the connection is lost before the answer comes. */
	now += 500 * MSEC;
	fire(&b->workers[0]);
	struct redis_link *link = b->workers[0].client.link;
	const uint64_t count = fake_waiting(link);
	assert_int_equal(redisAppendFormattedCommand(connection, link->out.at, link->out.len),
			 REDIS_OK);
	redis_buffer_clear(&link->out);
	for (uint64_t i = 0; i < count; i++) {
		void *reply = NULL;
		assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
		freeReplyObject(reply);
		fake_answer(link, REDIS_LOST, NULL);
	}
	assert_int_equal(b->orphans, 0);
	fake_unready(link);
	fake_ready(link);
	(void)settle();
	assert_true(b->orphans > 0 && b->orphans < CLAIMS);
	pass(3 * SEC);
	assert_int_equal(b->orphans, CLAIMS);
}

/* ---- places ---- */

static void places_are_counted_over_all_gateways(void **state)
{
	struct mcp_who who = session, other = session;
	struct mcp_ask asks[5];

	(void)state;
	other.tenant.at[0]++;
	assert_int_equal(places(&a->workers[0], &who, 2, 3, &asks[0]), MCP_SHARED_ROOM);
	assert_int_equal(places(&b->workers[0], &who, 2, 3, &asks[1]), MCP_SHARED_ROOM);
	assert_int_equal(places(&c->workers[0], &who, 2, 3, &asks[2]), MCP_SHARED_TENANT_FULL);
	assert_int_equal(places(&c->workers[1], &other, 2, 3, &asks[3]), MCP_SHARED_ROOM);
	assert_int_equal(places(&a->workers[1], &other, 2, 3, &asks[4]), MCP_SHARED_SERVER_FULL);
	/* one begins, another does not */
	mcp_shared_begun(a->workers[0].shared, &asks[0], &who);
	mcp_shared_unplaced(b->workers[0].shared, &asks[1]);
	(void)settle();
	assert_int_equal(places(&c->workers[0], &who, 2, 3, &asks[2]), MCP_SHARED_ROOM);
	assert_int_equal(places(&c->workers[0], &who, 2, 4, &asks[4]), MCP_SHARED_TENANT_FULL);
	/* the session ends */
	mcp_shared_ended(b->workers[0].shared, &who);
	(void)settle();
	assert_int_equal(places(&c->workers[0], &who, 2, 4, &asks[4]), MCP_SHARED_ROOM);
}

static void who_is_idle_or_does_not_come_back_has_no_place_any_more(void **state)
{
	struct mcp_ask ask;

	(void)state;
	assert_int_equal(places(&a->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
	mcp_shared_begun(a->workers[0].shared, &ask, &session);
	assert_int_equal(places(&b->workers[0], &session, 1, 1, &ask), MCP_SHARED_TENANT_FULL);
	redisReply *keys = redisCommand(connection, "KEYS sluice:mcp:1:[tv]:*");
	assert_int_equal(keys->elements, 2);
	for (size_t i = 0; i < 2; i++) {
		char key[64];
		(void)snprintf(key, sizeof(key), "%s", keys->element[i]->str);
		redisReply *ttl = redisCommand(connection, "PTTL %s", key);
		assert_true(ttl->integer > 3590 * 1000 && ttl->integer <= 3600 * 1000);
		freeReplyObject(ttl);
		freeReplyObject(redisCommand(connection, "ZADD %s 1 %b", key, session.key.at,
					     sizeof(session.key.at)));
	}
	freeReplyObject(keys);
	assert_int_equal(places(&b->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
	mcp_ask_forget(&ask);
	assert_int_equal(places(&b->workers[0], &session, 2, 2, &ask), MCP_SHARED_ROOM);
	mcp_shared_used(a->workers[0].shared, &session); /* it is back all the same */
	(void)settle();
	assert_int_equal(places(&b->workers[0], &session, 3, 3, &ask), MCP_SHARED_TENANT_FULL);
}

static void a_place_that_nobody_waits_for_any_more_is_free(void **state)
{
	struct mcp_ask ask = question_of(&session);

	(void)state;
	assert_true(mcp_ask_place(a->workers[0].shared, &ask, 1, 1));
	mcp_ask_forget(&ask);
	(void)settle();
	assert_int_equal(places(&b->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
}

/* ---- what all know ---- */

static void that_a_session_is_over_and_what_is_noted_of_it_all_gateways_know(void **state)
{
	(void)state;
	mcp_shared_note(a->workers[1].shared, &session, 0x01020304);
	(void)settle();
	for (size_t i = 0; i < GATEWAYS; i++)
		assert_int_equal(mcp_session_noted(gateways[i].channels, &session), 0x01020304);
	assert_int_equal(home_at(&b->workers[0], false).note, 0x01020304);
	b->workers[0].client.deaf = true;
	mcp_shared_ended(a->workers[1].shared, &session);
	(void)settle();
	assert_true(mcp_session_ended(c->channels, &session, now));
	assert_false(mcp_session_ended(b->channels, &session, now)); /* it has not heard it, */
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_ENDED);   /* and learns it */
	assert_true(mcp_session_ended(b->channels, &session, now));
	assert_int_equal(claims(&b->workers[1], "1", nothing), MCP_SHARED_BEFORE);
	mcp_shared_used(b->workers[0].shared, &session);
	(void)settle();
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_ENDED);
	/* its upstream uses the id once more */
	struct mcp_ask ask;
	assert_int_equal(places(&b->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
	mcp_shared_begun(b->workers[0].shared, &ask, &session);
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_MINE);
}

static void a_gateway_that_begins_is_known_to_all_at_once(void **state)
{
	(void)state;
	assert_true(lives(a, b) && lives(b, a) && lives(c, b));
	for (size_t k = 0; k < WORKERS; k++)
		redisFree(c->workers[k].client.heard_from);
	mcp_channels_free(c->channels);
	alive_free(c->alive);
	start_gateway(c);
	assert_false(lives(a, c));
	(void)settle();
	assert_true(lives(a, c) && lives(c, a));
	pass(3 * SEC); /* the name before that is as good as dead, though nobody was */
	assert_true(lives(a, c) && lives(c, a));
}

/* ---- what it costs ---- */

static void each_question_is_one_script_and_its_look_another(void **state)
{
	struct mcp_ask ask = question_of(&session);
	struct worker *worker = &a->workers[1];

	(void)state;
	assert_true(mcp_ask_place(worker->shared, &ask, 1, 1));
	assert_int_equal(settle(), 1);
	mcp_shared_begun(worker->shared, &ask, &session);
	assert_int_equal(settle(), 1);
	assert_true(mcp_ask_home(worker->shared, &ask, true));
	assert_int_equal(settle(), 1);
	assert_true(mcp_ask_claim(worker->shared, &ask, SLICE("1"), SLICE("kept")));
	assert_int_equal(settle(), 2); /* and nobody waits for the others to be told */
	mcp_shared_settled(worker->shared, &session, SLICE("1"));
	assert_int_equal(settle(), 1);
	now += MCP_LOOK_EVERY;
	for (size_t i = 0; i < WORKERS; i++)
		fire(&a->workers[i]);
	assert_in_range(settle(), 1, 2); /* and the gateway's key, once a second */
}

static void every_key_expires_and_none_holds_a_word_of_a_callers(void **state)
{
	struct mcp_ask ask;

	(void)state;
	assert_int_equal(places(&a->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
	mcp_shared_begun(a->workers[0].shared, &ask, &session);
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	assert_int_equal(claims(&a->workers[0], "a word", SLICE("kept")), MCP_SHARED_CLAIMED);
	redisReply *keys = redisCommand(connection, "KEYS *");
	assert_true(keys->elements >= 5);
	for (size_t i = 0; i < keys->elements; i++) {
		redisReply *ttl = redisCommand(connection, "PTTL %s", keys->element[i]->str);
		if (ttl->integer <= 0 || strstr(keys->element[i]->str, "word") != NULL)
			fail_msg("%s", keys->element[i]->str);
		freeReplyObject(ttl);
	}
	freeReplyObject(keys);
}

/* The words of the command in the documentation, from +del on. */
static void read_rights(char *rights, size_t size)
{
	FILE *file = fopen("deploy/docs/limits.md", "r");
	static char text[1 << 17];

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	const char *from = strstr(text, " +del ");
	assert_non_null(from);
	const char *to = strstr(from, "```");
	assert_true(to != NULL && (size_t)(to - from) < size);
	for (; from < to; from++)
		*rights++ = *from == '\\' || *from == '\n' ? ' ' : *from;
	*rights = '\0';
}

static void a_user_may_do_what_the_documentation_says(void **state)
{
	char line[2048] = "ACL SETUSER sluice on >pw ~sluice:* &sluice:*";
	struct mcp_ask ask;

	(void)state;
	read_rights(line + strlen(line), sizeof(line) - strlen(line));
	for (char *end = line + strlen(line); end[-1] == ' ';)
		*--end = '\0';
	command(line, NULL);
	command("AUTH sluice pw", NULL);
	/* one_answer fails with the first command that is refused */
	assert_int_equal(places(&a->workers[0], &session, 1, 1, &ask), MCP_SHARED_ROOM);
	mcp_shared_begun(a->workers[0].shared, &ask, &session);
	assert_int_equal(takes(&a->workers[0]), MCP_SHARED_MINE);
	mcp_shared_call(a->workers[0].shared, &session, true);
	mcp_shared_saw(a->workers[0].shared, &session, SLICE("1"));
	mcp_shared_note(a->workers[0].shared, &session, 1);
	mcp_shared_used(a->workers[0].shared, &session);
	assert_int_equal(claims(&a->workers[0], "1", SLICE("kept")), MCP_SHARED_CLAIMED);
	assert_int_equal(claims(&a->workers[0], "2", SLICE("kept")), MCP_SHARED_CLAIMED);
	mcp_shared_settled(a->workers[0].shared, &session, SLICE("2"));
	(void)settle();
	dies(a);
	key_expires(a);
	pass(2 * SEC);
	assert_int_equal(b->orphans + c->orphans, 1);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE);
	mcp_shared_call(b->workers[0].shared, &session, true);
	mcp_shared_call(b->workers[0].shared, &session, false);
	mcp_shared_freed(b->workers[0].shared, &session);
	mcp_shared_refused(b->workers[0].shared, &session);
	assert_int_equal(places(&b->workers[0], &session, 1, 1, &ask), MCP_SHARED_TENANT_FULL);
	assert_int_equal(places(&b->workers[0], &session, 3, 3, &ask), MCP_SHARED_ROOM);
	mcp_shared_unplaced(b->workers[0].shared, &ask);
	mcp_shared_ended(b->workers[0].shared, &session);
	(void)settle();
	command("AUTH default x", NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(of_all_who_ask_for_it_one_is_the_home),
		TEST(who_only_looks_does_not_become_it),
		TEST(the_home_of_a_dead_gateway_is_taken_over_with_its_last_id_and_not_before),
		TEST(whose_own_key_is_gone_finds_nobody_dead),
		TEST(what_a_gateway_says_that_is_not_the_home_any_more_does_not_count),
		TEST(within_a_process_its_own_records_say_which_worker_is_the_home),
		TEST(a_home_that_lets_go_is_free_and_every_worker_of_the_others_is_told),
		TEST(an_upstream_without_a_get_is_remembered),
		TEST(whoever_does_not_wait_for_it_any_more_is_no_home),
		TEST(a_request_is_claimed_once_and_all_gateways_know),
		TEST(the_newest_256_are_remembered),
		TEST(calls_are_counted_over_the_gateways_that_live),
		TEST(what_a_dead_gateway_has_claimed_comes_to_one_of_the_others_once),
		TEST(what_nobody_waits_for_any_more_is_not_left_to_others),
		TEST(many_come_little_by_little_and_none_is_lost_with_an_answer),
		TEST(places_are_counted_over_all_gateways),
		TEST(who_is_idle_or_does_not_come_back_has_no_place_any_more),
		TEST(a_place_that_nobody_waits_for_any_more_is_free),
		TEST(that_a_session_is_over_and_what_is_noted_of_it_all_gateways_know),
		TEST(a_gateway_that_begins_is_known_to_all_at_once),
		TEST(each_question_is_one_script_and_its_look_another),
		TEST(every_key_expires_and_none_holds_a_word_of_a_callers),
		TEST(a_user_may_do_what_the_documentation_says),
	};
	return cmocka_run_group_tests_name("mcp_shared", tests, start_server, stop_server);
}
