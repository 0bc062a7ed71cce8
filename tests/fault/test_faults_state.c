/* test_faults_state.c - requests that have to do with others, with every fault: each take of memory fails once, in each
 * of the ways in which their session, their copies, their callers and the process can let them down.
 *
 * A real worker in a world of the test's own (worker_rig.h); what outlives requests is a fake here. Whatever
 * happens, every request ends, and nothing of any of them is left. */
#include "tests/fault/state_rig.h"

/* ---- a run ------------------------------------------------------------------------------------- */

/* What happens while the request waits. */
enum event { NOTHING, GONE, GIVEN_UP, CANCELLED };

static const struct scenario {
	const char *name;
	const char *method; /* NULL: createMessage */
	bool waits, away, unknown;
	enum event recalling, sending, remembering;
	int ends; /* the status where memory does not fail; 0: without an answer */
} scenarios[] = {
	{ .name = "all is well", .ends = 200 },
	{ .name = "the store takes its time", .waits = true, .ends = 200 },
	{ .name = "the session is unknown", .unknown = true, .ends = 404 },
	{ .name = "the store is away", .away = true, .ends = 404 },
	{ .name = "gone while it is recalled", .waits = true, .recalling = GONE },
	{ .name = "given up while it is recalled",
	  .waits = true,
	  .recalling = GIVEN_UP,
	  .ends = 503 },
	{ .name = "gone while sending", .sending = GONE },
	{ .name = "given up while sending", .sending = GIVEN_UP, .ends = 503 },
	{ .name = "cancelled while sending", .sending = CANCELLED, .ends = 202 },
	{ .name = "begins a session", .method = "initialize", .ends = 200 },
	{ .name = "begins one slowly", .method = "initialize", .waits = true, .ends = 200 },
	{ .name = "begins one without the store",
	  .method = "initialize",
	  .away = true,
	  .ends = 200 },
	{ .name = "gone while it begins one",
	  .method = "initialize",
	  .waits = true,
	  .remembering = GONE },
	{ .name = "given up while it begins one",
	  .method = "initialize",
	  .waits = true,
	  .remembering = GIVEN_UP,
	  .ends = 200 },
	{ .name = "ends it", .method = "DELETE", .ends = 204 },
	{ .name = "ends it slowly", .method = "DELETE", .waits = true, .ends = 204 },
	{ .name = "ends one that is unknown", .method = "DELETE", .unknown = true, .ends = 404 },
	{ .name = "ends it without the store", .method = "DELETE", .away = true, .ends = 503 },
	{ .name = "gone while it ends it", .method = "DELETE", .waits = true, .remembering = GONE },
	{ .name = "given up while it ends it",
	  .method = "DELETE",
	  .waits = true,
	  .remembering = GIVEN_UP,
	  .ends = 503 },
};

/* True when the request is over. */
static bool meet(enum event event, void *request)
{
	const struct rpc_call *call = request;

	switch (event) {
	case NOTHING:
		return false;
	case GONE:
		world.handler.gone(world.handler.owner, request);
		return true;
	case GIVEN_UP:
		worker_refuse_waiting(world.worker);
		return false;
	case CANCELLED:
		(void)cancel_all(world.worker->core.cancels, call->call->flow.state->cancel.key);
		rig_deliver();
		return false;
	}
	return false;
}

static struct http_incoming incoming_of(const struct scenario *s)
{
	struct http_incoming in = in_session();

	if (s->method == NULL)
		return in;
	if (strcmp(s->method, "DELETE") == 0)
		in.method = SLICE("DELETE");
	else
		in.body = SLICE("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}");
	return in;
}

/* What the request waits for comes, or does not. True when it is over without an answer. */
static bool go_on(const struct scenario *s, void *request)
{
	for (int n = 0; world.exchange.status == 0; n++) {
		must(n < 20);
		if (fake.load != NULL && meet(s->recalling, request))
			return true;
		if (fake.save != NULL && meet(s->remembering, request))
			return true;
		fake_answers();
		if (world.call == NULL)
			continue;
		world.call->bytes_sent = true;
		if (meet(s->sending, request))
			return true;
		if (world.call != NULL)
			rig_provider_ends(ERR_OK, true, &walk.answer);
	}
	return false;
}

/* The number of takes of memory. */
static size_t once_through(const struct scenario *s, size_t fail)
{
	struct http_incoming in = incoming_of(s);

	set_scene(fail);
	fake.waits = s->waits;
	fake.away = s->away;
	fake.unknown = s->unknown;
	void *request = world_begin(&world.exchange, &in);
	must(request != NULL || world.exchange.refused);
	const bool gone = go_on(s, request);
	const int status = gone ? 0 : world.exchange.status;
	if (fail == 0 && status != s->ends)
		fail_msg("%s: %d", s->name, status);
	if (fail != 0 && status != s->ends && status != 503)
		fail_msg("%s, memory %zu: %d", s->name, fail, status);
	if (!gone && !world.exchange.refused)
		world.handler.sent(world.handler.owner, request);
	check_nothing_is_left(s->name, fail);
	drain_log();
	return takes.count;
}

static void every_fault_ends_the_request_and_leaves_nothing(void **state)
{
	size_t faults = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
		const size_t plain = once_through(&scenarios[i], 0);
		/* Of its copies each is the first: what was answered is remembered by its id. */
		for (size_t fail = 1; fail <= plain; fail++, faults++) {
			forget_copies();
			(void)once_through(&scenarios[i], fail);
		}
		forget_copies();
	}
	print_message("%zu takes of memory have failed\n", faults);
	assert_true(faults > 10 * COUNT_OF(scenarios) / 2);
}

/* ---- ahead of what Redis says ------------------------------------------------------------------ */

/* Its session, its copies and its limits are asked at once; they answer in one of the orders, and one of them
 * may say no. Something may happen after so many answers. */
enum { ANSWERS = 3 };
static const struct ahead_scenario {
	const char *name;
	bool unknown, refused;
	enum idempotency_verdict copies;
	enum event event;
	int ends;
} ahead_scenarios[] = {
	{ .name = "ahead", .copies = IDEMPOTENCY_LEADS, .ends = 200 },
	{ .name = "ahead of no session",
	  .copies = IDEMPOTENCY_LEADS,
	  .unknown = true,
	  .ends = 404 },
	{ .name = "ahead of another gateway's", .copies = IDEMPOTENCY_ELSEWHERE, .ends = 409 },
	{ .name = "ahead of neither", .copies = IDEMPOTENCY_DONE, .unknown = true, .ends = 404 },
	{ .name = "ahead of a limit", .copies = IDEMPOTENCY_LEADS, .refused = true, .ends = 429 },
	{ .name = "ahead of all",
	  .copies = IDEMPOTENCY_CONFLICT,
	  .unknown = true,
	  .refused = true,
	  .ends = 404 },
	{ .name = "ahead, and gone", .copies = IDEMPOTENCY_LEADS, .event = GONE },
	{ .name = "ahead, and given up",
	  .copies = IDEMPOTENCY_LEADS,
	  .event = GIVEN_UP,
	  .ends = 503 },
	{ .name = "ahead, and cancelled",
	  .copies = IDEMPOTENCY_LEADS,
	  .event = CANCELLED,
	  .ends = 202 },
};

static void answer_limits(const struct ahead_scenario *s)
{
	struct reservation *reservation = world.pending;

	if (!s->refused) {
		rig_store_answers();
		return;
	}
	world.pending = NULL;
	reservation->granted = false;
	reservation->refusal = (struct limit_refusal){ .err = ERR_CONCURRENCY,
						       .limit = "concurrent",
						       .wait_ns = SEC };
	reservation->done(reservation);
}

static void answer_one(const struct ahead_scenario *s, int which)
{
	if (which == 0 && fake.load != NULL)
		fake_answers();
	else if (which == 1 && world.claim != NULL)
		rig_others_answer(s->copies);
	else if (which == 2 && world.pending != NULL)
		answer_limits(s);
}

/* True when it is over without an answer. */
static bool go_on_ahead(const struct ahead_scenario *s, int order, int after, void *request)
{
	for (int n = 0; world.exchange.status == 0; n++) {
		must(n < 20);
		if (n == after && world.call == NULL && meet(s->event, request))
			return true;
		answer_one(s, order >= ANSWERS
				      ? (2 * ANSWERS - order + ANSWERS - n % ANSWERS) % ANSWERS
				      : (order + n) % ANSWERS);
		if (world.call != NULL)
			rig_provider_ends(ERR_OK, true, &walk.answer);
	}
	return false;
}

static size_t once_ahead(const struct ahead_scenario *s, int order, int after, size_t fail)
{
	struct http_incoming in = in_session();

	set_scene(fail);
	fake.guesses = true;
	fake.unknown = s->unknown;
	world.limiter_mode = LIMITER_WAITS;
	void *request = world_begin(&world.exchange, &in);
	must(request != NULL || world.exchange.refused);
	const bool gone = go_on_ahead(s, order, after, request);
	const int status = gone ? 0 : world.exchange.status;
	if (status != s->ends && (fail == 0 || status != 503))
		fail_msg("%s, order %d, after %d, memory %zu: %d", s->name, order, after, fail,
			 status);
	if (fail == 0 && s->ends != 200 && world.granted != 0)
		fail_msg("%s, order %d, after %d: it has cost something", s->name, order, after);
	if (!gone && !world.exchange.refused)
		world.handler.sent(world.handler.owner, request);
	nobody_is_held(s->name, fail);
	return takes.count;
}

static void whatever_is_said_to_who_goes_ahead_nothing_is_left(void **state)
{
	size_t faults = 0;

	(void)state;
	world.worker->core.elsewhere = &the_others;
	for (size_t i = 0; i < COUNT_OF(ahead_scenarios); i++)
		for (int n = 0; n < 2 * ANSWERS * ANSWERS; n++) {
			const struct ahead_scenario *s = &ahead_scenarios[i];
			const int order = n % (2 * ANSWERS), after = n / (2 * ANSWERS);
			const size_t plain = once_ahead(s, order, after, 0);
			for (size_t fail = 1; fail <= plain; fail++, faults++)
				(void)once_ahead(s, order, after, fail);
		}
	world.worker->core.elsewhere = NULL;
	print_message("%zu takes of memory have failed\n", faults);
	assert_true(faults > COUNT_OF(ahead_scenarios) * 100);
}

static int group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_ends_the_request_and_leaves_nothing),
		cmocka_unit_test(whatever_is_said_to_who_goes_ahead_nothing_is_left),
	};

	return cmocka_run_group_tests_name("faults_state", tests, NULL, NULL);
}

int main(void)
{
	return state_rig_run(group);
}
