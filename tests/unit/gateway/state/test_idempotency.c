/* Requests that are not made twice: who leads, who waits, and what they get. ctest: worker */
#include "gateway/state/idempotency.h"

#include "codec/base/err.h"
#include "tests/unit/gateway/net/inbox_rig.h"

#include <stdatomic.h>

static struct some_worker workers[2];
static struct idempotency *idempotency;
static struct arena_pool pool;
static struct arena arena;
static nsec_t now;
static struct state_key tenant; /* of who joins next */

struct caller {
	struct idempotency_call call;
	int decided;
	struct member *member; /* of a thread */
};

static void on_decided(struct idempotency_call *call)
{
	CONTAINER_OF(call, struct caller, call)->decided++;
}

static struct state_key key_of(const char *name)
{
	return state_key_of(STATE_IDEMPOTENCY, SLICE("acme"), SLICE("billing"), slice_of(NULL, 0),
			    slice_str(name));
}

static struct caller caller_of(const char *key, const char *body)
{
	struct caller c = { .call = { .key = key_of(key),
				      .tenant = tenant,
				      .large_max = IDEMPOTENCY_SMALL,
				      .arena = &arena,
				      .decided = on_decided } };

	sha256(slice_str(body), c.call.body);
	return c;
}

static enum idempotency_verdict join(struct caller *c, const char *key, const char *body,
				     int worker)
{
	*c = caller_of(key, body);
	idempotency_join(idempotency, &c->call, &workers[worker].inbox, now);
	return c->call.verdict;
}

static enum idempotency_verdict join_large(struct caller *c, const char *key, uint32_t large_max)
{
	*c = caller_of(key, "body");
	c->call.large_max = large_max;
	idempotency_join(idempotency, &c->call, &workers[1].inbox, now);
	return c->call.verdict;
}

static void end(struct caller *c, enum err err, struct slice member)
{
	const struct idempotency_answer answer = { .err = err,
						   .member = member,
						   .retry_after_s = -1 };

	idempotency_end(&c->call, &answer, now);
}

static void turn(void)
{
	while (loop_turn(&workers[0].loop, false) + loop_turn(&workers[1].loop, false) != 0)
		;
}

static void assert_answered(const struct caller *c, enum err err, struct slice member)
{
	assert_int_equal(c->call.verdict, IDEMPOTENCY_ANSWERED);
	assert_int_equal(c->call.answer.err, err);
	assert_true(slice_eq(c->call.answer.member, member));
}

#define RESULT SLICE("\"result\":{\"x\":1}")
#define ERROR SLICE("\"error\":{\"code\":1}")

static int set_up(void **state)
{
	(void)state;
	some_worker_init(&workers[0]);
	some_worker_init(&workers[1]);
	idempotency = idempotency_new();
	arena_init(&arena, &pool, SIZE_MAX);
	now = 1000 * SEC;
	tenant = (struct state_key){ { 0 } };
	return idempotency == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	idempotency_free(idempotency); /* where nobody may be left */
	return 0;
}

/* ---- one after the other ---------------------------------------------------------------------- */

static void the_first_leads_and_copies_on_all_workers_get_its_answer(void **state)
{
	struct caller first, second, third;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&third, "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_true(second.call.waited && !first.call.waited);
	end(&first, ERR_OK, RESULT);
	assert_int_equal(second.decided + third.decided,
			 0); /* it is not this thread's to tell them */
	turn();
	assert_true(second.decided == 1 && third.decided == 1 && first.decided == 0);
	assert_answered(&second, ERR_OK, RESULT);
	assert_answered(&third, ERR_OK, RESULT);
	assert_false(idempotency_leads(&first.call) || idempotency_leads(&second.call));
	(void)idempotency_leave(&second.call); /* harmless */
}

/* They wait before any limit of their tenant's is asked. */
static void only_so_many_copies_wait(void **state)
{
	static struct caller copies[IDEMPOTENCY_WAITING_MAX];
	struct caller first, other, more;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&other, "l", "body", 1), IDEMPOTENCY_LEADS);
	for (size_t i = 0; i < IDEMPOTENCY_WAITING_MAX; i++) {
		(void)memcpy(tenant.at, &i, sizeof(i)); /* each of another tenant */
		assert_int_equal(join(&copies[i], "k", "body", i % 2), IDEMPOTENCY_WAITS);
	}
	tenant.at[8] = 1;
	assert_int_equal(join(&more, "l", "body", 0), IDEMPOTENCY_FULL);
	assert_false(idempotency_leave(&more.call)); /* harmless */
	(void)idempotency_leave(&copies[1].call);
	assert_int_equal(join(&more, "l", "body", 0), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&first.call); /* the next one leads, and waits no more */
	turn();
	assert_true(idempotency_leads(&copies[0].call));
	assert_int_equal(join(&copies[1], "k", "body", 1), IDEMPOTENCY_WAITS);
	end(&copies[0], ERR_OK, RESULT);
	end(&other, ERR_OK, RESULT);
	turn();
	assert_answered(&more, ERR_OK, RESULT);
	assert_answered(&copies[1], ERR_OK, RESULT);
	assert_answered(&copies[IDEMPOTENCY_WAITING_MAX - 1], ERR_OK, RESULT);
}

/* Of two tenants, one of which would have all. */
static void a_tenant_has_its_share_of_copies_that_wait(void **state)
{
	enum { SHARE = IDEMPOTENCY_WAITING_MAX / 2 + 1 };
	static struct caller copies[SHARE], others[100];
	struct caller first, more;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	for (size_t i = 0; i < SHARE; i++)
		assert_int_equal(join(&copies[i], "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&more, "k", "body", 0), IDEMPOTENCY_CROWDED);
	tenant.at[0] = 1;
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_int_equal(join(&others[i], "k", "body", 1), IDEMPOTENCY_WAITS);
	tenant.at[0] = 0;
	assert_int_equal(join(&more, "k", "body", 0), IDEMPOTENCY_CROWDED);
	end(&first, ERR_OK, RESULT);
	turn();
	assert_answered(&copies[SHARE - 1], ERR_OK, RESULT);
	assert_answered(&others[0], ERR_OK, RESULT);
}

static void no_more_large_copies_of_a_tenant_wait_than_it_may_have_requests(void **state)
{
	struct caller first, second, small, large, other;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "l", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&small, "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join_large(&large, "k", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_CROWDED);
	tenant.at[0] = 1; /* another's do not count */
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&other.call);
	tenant.at[0] = 0;
	(void)idempotency_leave(&large.call);
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_WAITS);
	end(&first, ERR_OK, RESULT);
	end(&second, ERR_OK, RESULT);
	turn();
	assert_answered(&small, ERR_OK, RESULT);
	assert_answered(&other, ERR_OK, RESULT);
	assert_int_equal(join(&first, "m", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join_large(&large, "m", 1), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&first.call);
	turn();
	assert_true(idempotency_leads(&large.call)); /* it waits no more */
	assert_int_equal(join_large(&other, "m", 1), IDEMPOTENCY_WAITS);
	end(&large, ERR_OK, RESULT);
	turn();
}

static void an_error_is_everybodys_and_not_remembered(void **state)
{
	struct caller first, second, later;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	end(&first, ERR_PROVIDER_DOWN, ERROR);
	assert_int_equal(join(&later, "k", "another body", 0), IDEMPOTENCY_LEADS);
	turn();
	assert_answered(&second, ERR_PROVIDER_DOWN, ERROR);
	(void)idempotency_leave(&later.call);
}

static void another_body_is_a_conflict_as_long_as_the_key_is_known(void **state)
{
	struct caller first, other;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	(void)idempotency_leave(&other.call); /* harmless */
	end(&first, ERR_OK, RESULT);
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	now += IDEMPOTENCY_REMEMBERED - 1;
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	now += 1;
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_LEADS);
	(void)idempotency_leave(&other.call);
}

static void a_result_is_there_for_a_minute_and_known_of_for_ten(void **state)
{
	static const struct {
		nsec_t after;
		enum idempotency_verdict verdict;
	} cases[] = {
		{ 0, IDEMPOTENCY_ANSWERED },
		{ IDEMPOTENCY_KEPT - 1, IDEMPOTENCY_ANSWERED },
		{ IDEMPOTENCY_KEPT, IDEMPOTENCY_DONE },
		{ IDEMPOTENCY_REMEMBERED - 1, IDEMPOTENCY_DONE },
		{ IDEMPOTENCY_REMEMBERED, IDEMPOTENCY_LEADS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct caller first, later;
		assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
		end(&first, ERR_OK, RESULT);
		now += cases[i].after;
		assert_int_equal(join(&later, "k", "body", 1), cases[i].verdict);
		if (cases[i].verdict == IDEMPOTENCY_ANSWERED)
			assert_answered(&later, ERR_OK, RESULT);
		(void)idempotency_leave(&later.call);
		now += IDEMPOTENCY_REMEMBERED;
	}
}

static void what_is_too_long_to_keep_is_for_those_who_wait(void **state)
{
	static char text[IDEMPOTENCY_ANSWER_MAX + 1];
	struct caller first, second, later;

	(void)state;
	(void)memset(text, 'x', sizeof(text));
	for (size_t over = 0; over <= 1; over++) {
		const char *key = over == 0 ? "fits" : "does not";
		const struct slice member = slice_of(text, IDEMPOTENCY_ANSWER_MAX + over);
		assert_int_equal(join(&first, key, "body", 0), IDEMPOTENCY_LEADS);
		assert_int_equal(join(&second, key, "body", 1), IDEMPOTENCY_WAITS);
		end(&first, ERR_OK, member);
		turn();
		assert_answered(&second, ERR_OK, member);
		assert_int_equal(join(&later, key, "body", 0),
				 over == 0 ? IDEMPOTENCY_ANSWERED : IDEMPOTENCY_DONE);
	}
}

/* ---- those who leave --------------------------------------------------------------------------- */

static void when_the_leader_leaves_the_next_one_leads(void **state)
{
	struct caller c[4];

	(void)state;
	assert_int_equal(join(&c[0], "k", "body", 0), IDEMPOTENCY_LEADS);
	for (int i = 1; i < 4; i++)
		assert_int_equal(join(&c[i], "k", "body", i % 2), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&c[1].call)); /* does not wait any more */
	assert_false(idempotency_leave(&c[0].call));
	/* Whose thread may be looking at it right now. */
	assert_true(c[2].call.verdict == IDEMPOTENCY_WAITS && !idempotency_leads(&c[2].call));
	turn();
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(c[1].decided == 0 && c[2].decided == 1 && c[3].decided == 0);
	for (int i = 1; i < 4; i++) /* other gateways know them by one claim */
		assert_int_equal(c[i].call.number, c[0].call.number);
	end(&c[2], ERR_OK, RESULT);
	turn();
	assert_answered(&c[3], ERR_OK, RESULT);
}

static void each_time_that_a_key_is_in_flight_has_a_number(void **state)
{
	struct caller first, next;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_true(idempotency_leave(&first.call));
	assert_int_equal(join(&next, "k", "body", 1), IDEMPOTENCY_LEADS);
	assert_int_not_equal(next.call.number, first.call.number);
	assert_true(idempotency_leave(&next.call));
}

static void who_follows_one_whose_time_is_over_knows_it(void **state)
{
	struct caller c[4];
	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(join(&c[i], "k", "body", i % 2),
				 i == 0 ? IDEMPOTENCY_LEADS : IDEMPOTENCY_WAITS);
	c[0].call.late = true;
	assert_false(idempotency_leave(&c[0].call));
	turn();
	assert_int_equal(c[1].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(c[1].call.late);
	assert_false(c[2].call.late || c[3].call.late);
	c[1].call.late = false; /* it has time, but its caller leaves */
	assert_false(idempotency_leave(&c[1].call));
	turn();
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_false(c[2].call.late);
	end(&c[2], ERR_OK, RESULT);
	turn();
	assert_answered(&c[3], ERR_OK, RESULT);
}

static void who_leaves_before_it_hears_that_it_leads_passes_it_on(void **state)
{
	struct caller c[3];

	(void)state;
	assert_int_equal(join(&c[0], "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&c[1], "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&c[2], "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&c[0].call));
	assert_false(idempotency_leave(&c[1].call));
	turn();
	assert_true(c[1].decided == 0 && c[2].decided == 1);
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(idempotency_leave(&c[2].call));
	assert_int_equal(join(&c[0], "k", "another body", 0),
			 IDEMPOTENCY_LEADS); /* nothing is left */
	(void)idempotency_leave(&c[0].call);
}

static void who_leaves_before_it_reads_the_answer_reads_nothing(void **state)
{
	struct caller first, second;

	(void)state;
	for (int good = 0; good <= 1; good++) {
		assert_int_equal(join(&first, good ? "k" : "l", "body", 0), IDEMPOTENCY_LEADS);
		assert_int_equal(join(&second, good ? "k" : "l", "body", 1), IDEMPOTENCY_WAITS);
		end(&first, good ? ERR_OK : ERR_BUSY, good ? RESULT : ERROR);
		(void)idempotency_leave(&second.call);
		turn();
		assert_int_equal(second.decided, 0);
	}
}

/* ---- those who are not sure what they ask ------------------------------------------------------- */

static void lead_unsure(struct caller *c, const char *body)
{
	*c = caller_of("k", body);
	c->call.unsure = true;
	idempotency_join(idempotency, &c->call, &workers[0].inbox, now);
	assert_int_equal(c->call.verdict, IDEMPOTENCY_LEADS);
}

static void another_body_waits_for_who_may_be_wrong_and_leads_when_it_was(void **state)
{
	struct caller first, second, third;

	(void)state;
	lead_unsure(&first, "guess");
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&third, "k", "guess", 0), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&first.call));
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_WAITS);
	turn();
	assert_int_equal(second.call.verdict, IDEMPOTENCY_LEADS);
	end(&second, ERR_OK, RESULT);
	turn();
	assert_answered(&first, ERR_OK, RESULT);
	assert_int_equal(third.call.verdict, IDEMPOTENCY_CONFLICT);
	assert_true(first.decided == 1 && second.decided == 1 && third.decided == 1);
	assert_int_equal(join(&third, "k", "body", 0), IDEMPOTENCY_ANSWERED);
}

static void another_body_is_a_conflict_when_the_guess_was_right(void **state)
{
	(void)state;
	for (int good = 0; good <= 1; good++) {
		struct caller first, second, third, gone;
		lead_unsure(&first, "guess");
		assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
		assert_int_equal(join(&gone, "k", "body", 1), IDEMPOTENCY_WAITS);
		first.call.unsure = false;
		assert_int_equal(join(&third, "k", "body", 1), IDEMPOTENCY_CONFLICT);
		end(&first, good ? ERR_OK : ERR_BUSY, good ? RESULT : ERROR);
		assert_int_equal(second.call.verdict, IDEMPOTENCY_WAITS);
		assert_false(idempotency_leave(&gone.call)); /* before it hears of it */
		turn();
		assert_true(second.decided == 1 && gone.decided == 0);
		assert_int_equal(second.call.verdict, IDEMPOTENCY_CONFLICT);
		assert_false(idempotency_leave(&second.call)); /* harmless */
	}
}

/* ---- bounds ------------------------------------------------------------------------------------ */

static void an_answer_that_nobody_has_memory_for_says_so(void **state)
{
	struct caller first, second, later;
	struct arena_pool poor = { .keep_max = 0 };
	struct arena small;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	arena_init(&small, &poor, SIZE_MAX);
	second.call.arena = &small;
	poor.fail_next = 1;
	end(&first, ERR_OK, RESULT);
	turn();
	assert_int_equal(second.call.verdict, IDEMPOTENCY_ANSWERED);
	assert_true(slice_absent(second.call.answer.member));
	assert_int_equal(join(&later, "k", "body", 0),
			 IDEMPOTENCY_ANSWERED); /* there is for others */
	assert_answered(&later, ERR_OK, RESULT);
	arena_give(&small);
	arena_pool_fini(&poor);
}

static void the_oldest_keys_make_room_and_those_in_flight_do_not(void **state)
{
	enum { MANY = IDEMPOTENCY_ENTRIES_MAX + IDEMPOTENCY_ENTRIES_MAX / 4 };
	static struct caller flying[3];
	struct caller c;
	char key[32];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flying); i++) {
		(void)snprintf(key, sizeof(key), "flying %zu", i);
		assert_int_equal(join(&flying[i], key, "body", 0), IDEMPOTENCY_LEADS);
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_LEADS);
		end(&c, ERR_OK, RESULT);
		now += 1; /* ns: nothing expires */
	}
	assert_int_equal(join(&c, "0", "body", 0), IDEMPOTENCY_LEADS); /* forgotten */
	(void)idempotency_leave(&c.call);
	(void)snprintf(key, sizeof(key), "%d", MANY - 1);
	assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_ANSWERED);
	for (size_t i = 0; i < COUNT_OF(flying); i++) {
		(void)snprintf(key, sizeof(key), "flying %zu", i);
		assert_int_equal(join(&c, key, "another", 0), IDEMPOTENCY_CONFLICT);
		(void)idempotency_leave(&flying[i].call);
	}
}

static void answers_take_no_more_memory_than_they_may(void **state)
{
	enum { EACH = 60000, MANY = 2 * IDEMPOTENCY_ANSWERS_MAX / 65536 };
	static char text[EACH];
	struct caller c;
	char key[32];
	int kept = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_LEADS);
		end(&c, ERR_OK, slice_of(text, EACH));
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		const enum idempotency_verdict verdict = join(&c, key, "body", 0);
		assert_true(verdict == IDEMPOTENCY_ANSWERED || verdict == IDEMPOTENCY_DONE);
		kept += verdict == IDEMPOTENCY_ANSWERED;
		arena_give(&arena);
	}
	assert_in_range(kept, 1, IDEMPOTENCY_ANSWERS_MAX / 65536);
}

/* ---- threads ----------------------------------------------------------------------------------- */

enum { THREADS = 4, KEYS = 400, EACH = 5 /* copies of a key on each thread */ };

static _Atomic int led[KEYS], ended[KEYS], answered[KEYS];

struct member {
	struct some_worker worker;
	pthread_t thread;
	struct arena_pool pool;
	struct arena arena;
	struct caller callers[EACH];
	int key, decided;
	uint32_t chance;
};

/* Its caller leaves at times. */
static void lead(struct member *m, struct caller *c)
{
	m->chance = m->chance * 1664525 + 1013904223;
	atomic_fetch_add(&led[m->key], 1);
	if ((m->chance >> 16) % 3 == 0) {
		(void)idempotency_leave(&c->call);
		return;
	}
	const struct idempotency_answer answer = { .err = ERR_OK,
						   .member = RESULT,
						   .retry_after_s = -1 };
	atomic_fetch_add(&ended[m->key], 1);
	idempotency_end(&c->call, &answer, now);
}

static void take_verdict(struct member *m, struct caller *c)
{
	if (c->call.verdict == IDEMPOTENCY_LEADS)
		lead(m, c);
	else if (c->call.verdict == IDEMPOTENCY_ANSWERED && slice_eq(c->call.answer.member, RESULT))
		atomic_fetch_add(&answered[m->key], 1);
	else
		abort();
}

static void decided(struct idempotency_call *call)
{
	struct caller *c = CONTAINER_OF(call, struct caller, call);

	c->member->decided++;
	take_verdict(c->member, c);
}

static void *member_main(void *arg)
{
	struct member *m = arg;

	for (m->key = 0; m->key < KEYS; m->key++) {
		char name[32];
		int waiting = 0;
		m->decided = 0;
		(void)snprintf(name, sizeof(name), "%d", m->key);
		for (int i = 0; i < EACH; i++) {
			struct caller *c = &m->callers[i];
			*c = caller_of(name, "body");
			c->call.arena = &m->arena;
			c->call.decided = decided;
			c->member = m;
			idempotency_join(idempotency, &c->call, &m->worker.inbox, now);
			if (c->call.verdict != IDEMPOTENCY_WAITS)
				take_verdict(m, c);
			else
				waiting++;
		}
		while (m->decided < waiting)
			(void)loop_turn(&m->worker.loop, true);
		arena_give(&m->arena);
	}
	return NULL;
}

static void of_any_number_on_any_threads_one_ends(void **state)
{
	static struct member members[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		some_worker_init(&members[i].worker);
		arena_init(&members[i].arena, &members[i].pool, SIZE_MAX);
		members[i].chance = (uint32_t)i;
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&members[i].thread, NULL, member_main, &members[i]),
				 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(members[i].thread, NULL), 0);
		arena_pool_fini(&members[i].pool);
	}
	int leaders = 0;
	for (int k = 0; k < KEYS; k++) {
		assert_in_range(ended[k], 0, 1); /* 0: all of them have left */
		assert_int_equal(led[k] + answered[k], THREADS * EACH);
		leaders += led[k];
	}
	print_message("%d led, %d keys\n", leaders, KEYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(the_first_leads_and_copies_on_all_workers_get_its_answer),
		IN(only_so_many_copies_wait),
		IN(a_tenant_has_its_share_of_copies_that_wait),
		IN(no_more_large_copies_of_a_tenant_wait_than_it_may_have_requests),
		IN(an_error_is_everybodys_and_not_remembered),
		IN(another_body_is_a_conflict_as_long_as_the_key_is_known),
		IN(a_result_is_there_for_a_minute_and_known_of_for_ten),
		IN(what_is_too_long_to_keep_is_for_those_who_wait),
		IN(when_the_leader_leaves_the_next_one_leads),
		IN(each_time_that_a_key_is_in_flight_has_a_number),
		IN(who_leaves_before_it_hears_that_it_leads_passes_it_on),
		IN(who_follows_one_whose_time_is_over_knows_it),
		IN(who_leaves_before_it_reads_the_answer_reads_nothing),
		IN(another_body_waits_for_who_may_be_wrong_and_leads_when_it_was),
		IN(another_body_is_a_conflict_when_the_guess_was_right),
		IN(an_answer_that_nobody_has_memory_for_says_so),
		IN(the_oldest_keys_make_room_and_those_in_flight_do_not),
		IN(answers_take_no_more_memory_than_they_may),
		IN(of_any_number_on_any_threads_one_ends),
	};
	return cmocka_run_group_tests_name("idempotency", tests, NULL, NULL);
}
