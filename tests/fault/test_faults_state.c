/* test_faults_state.c - requests that have to do with others, with every fault: each take of memory fails once, in each
 * of the ways in which their session, their copies, their callers and the process can let them down.
 *
 * A real worker in a world of the test's own (worker_rig.h); what outlives requests is a fake here. Whatever
 * happens, every request ends, and nothing of any of them is left. */
#include "tests/fault/golden_walk.h"
#include "tests/fault/worker_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define SESSION "0123456789abcdef0123456789abcdef"

/* ---- what outlives requests: answers at once or later ------------------------------------------ */

static struct {
	struct state state;
	bool waits, guesses, away, unknown;
	enum revision revision; /* of the session */
	struct state_recall *recall;
	struct state_note *note;
	uint32_t notes, forgotten;
} fake;

static void answer_recall(struct state_recall *recall)
{
	recall->away = fake.away;
	recall->session_is = fake.away      ? STATE_SESSION_UNSURE
			     : fake.unknown ? STATE_SESSION_UNKNOWN
					    : STATE_SESSION_KNOWN;
	recall->revision = fake.revision;
}

static enum state_outcome fake_recall(struct state *state, struct state_recall *recall)
{
	(void)state;
	must(fake.recall == NULL);
	if (fake.guesses && recall->may_guess) {
		fake.recall = recall;
		recall->session_is = STATE_SESSION_UNSURE;
		return STATE_GUESSED;
	}
	if (fake.waits) {
		fake.recall = recall;
		return STATE_PENDING;
	}
	answer_recall(recall);
	return STATE_DONE;
}

static enum state_outcome fake_remember(struct state *state, struct state_note *note)
{
	(void)state;
	must(fake.note == NULL);
	fake.notes++;
	if (fake.waits && note->done != NULL) {
		fake.note = note;
		return STATE_PENDING;
	}
	note->away = fake.away;
	note->ended = note->end_session && !fake.unknown && !fake.away;
	return STATE_DONE;
}

static void fake_forget_recall(struct state *state, struct state_recall *recall)
{
	(void)state;
	must(fake.recall == recall);
	fake.recall = NULL;
	fake.forgotten++;
}

static void fake_forget_note(struct state *state, struct state_note *note)
{
	(void)state;
	must(fake.note == note);
	fake.note = NULL;
	fake.forgotten++;
}

static void fake_answers(void)
{
	struct state_recall *recall = fake.recall;
	struct state_note *note = fake.note;

	fake.recall = NULL;
	fake.note = NULL;
	if (recall != NULL) {
		answer_recall(recall);
		recall->done(recall);
	}
	if (note != NULL) {
		note->away = fake.away;
		note->ended = note->end_session;
		note->done(note);
	}
}

/* ---- a run ------------------------------------------------------------------------------------- */

/* What happens while the request waits. */
enum event { NOTHING, GONE, GIVEN_UP, CALLED_OFF };

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
	{ .name = "called off while sending", .sending = CALLED_OFF, .ends = 202 },
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

static struct walk walk;
static struct log_ring *ring;

static void drain_log(void)
{
	for (struct slice piece; (piece = log_ring_peek(ring)).len > 0;)
		log_ring_read(ring, piece.len);
}

/* True when the request is over. */
static bool meet(enum event event, void *request)
{
	struct request *r = request;

	switch (event) {
	case NOTHING:
		return false;
	case GONE:
		world.handler.gone(world.handler.owner, request);
		return true;
	case GIVEN_UP:
		worker_refuse_waiting(world.worker);
		return false;
	case CALLED_OFF:
		(void)flights_call_off(world.worker->args.flights, r->flow.state->flight.key);
		rig_deliver();
		return false;
	}
	return false;
}

static void check_nothing_is_left(const char *name, size_t fail)
{
	const struct worker *worker = world.worker;

	if (worker->requests.out == 0 && worker->streams.out == 0 && worker->arenas.out == 0 &&
	    worker->waiting == NULL && world.call == NULL && world.buffers == 0 &&
	    world.granted == world.settled && world.placed == world.released &&
	    fake.recall == NULL && fake.note == NULL && world.posted == NULL &&
	    world.claim == NULL && world.held == 0 && world.pending == NULL &&
	    worker->panic.step == NULL)
		return;
	fail_msg("%s, memory %zu: something is left", name, fail);
}

static struct http_incoming incoming_of(const struct scenario *s)
{
	struct http_incoming in = walk.in;

	in.headers[HTTP_SESSION_ID] = SLICE(SESSION);
	in.headers[HTTP_PROTOCOL_VERSION] = slice_of(NULL, 0);
	if (s->method == NULL)
		return in;
	if (strcmp(s->method, "DELETE") == 0)
		in.method = SLICE("DELETE");
	else
		in.body = SLICE("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}");
	return in;
}

static void set_scene(const struct scenario *s, size_t fail)
{
	rig_reset();
	fake.guesses = false;
	fake.revision = REVISION_2025_11_25;
	fake.waits = s->waits;
	fake.away = s->away;
	fake.unknown = s->unknown;
	fake.notes = fake.forgotten = 0;
	takes.fail = fail;
}

/* What the request waits for comes, or does not. True when it is over without an answer. */
static bool go_on(const struct scenario *s, void *request)
{
	for (int n = 0; world.exchange.status == 0; n++) {
		must(n < 20);
		if (fake.recall != NULL && meet(s->recalling, request))
			return true;
		if (fake.note != NULL && meet(s->remembering, request))
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
	const struct http_incoming in = incoming_of(s);

	set_scene(s, fail);
	void *request = world.handler.begin(world.handler.owner, &world.exchange, &in);
	must(request != NULL);
	const bool gone = go_on(s, request);
	const int status = gone ? 0 : world.exchange.status;
	if (fail == 0 && status != s->ends)
		fail_msg("%s: %d", s->name, status);
	if (fail != 0 && status != s->ends && status != 503)
		fail_msg("%s, memory %zu: %d", s->name, fail, status);
	if (!gone)
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
			once_free(world.worker->args.once);
			world.worker->args.once = once_new();
			(void)once_through(&scenarios[i], fail);
		}
		once_free(world.worker->args.once);
		world.worker->args.once = once_new();
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
	enum once_verdict copies;
	enum event event;
	int ends;
} ahead_scenarios[] = {
	{ .name = "ahead", .copies = ONCE_LEADS, .ends = 200 },
	{ .name = "ahead of no session", .copies = ONCE_LEADS, .unknown = true, .ends = 404 },
	{ .name = "ahead of another gateway's", .copies = ONCE_ELSEWHERE, .ends = 409 },
	{ .name = "ahead of neither", .copies = ONCE_DONE, .unknown = true, .ends = 404 },
	{ .name = "ahead of a limit", .copies = ONCE_LEADS, .refused = true, .ends = 429 },
	{ .name = "ahead of all",
	  .copies = ONCE_CONFLICT,
	  .unknown = true,
	  .refused = true,
	  .ends = 404 },
	{ .name = "ahead, and gone", .copies = ONCE_LEADS, .event = GONE },
	{ .name = "ahead, and given up", .copies = ONCE_LEADS, .event = GIVEN_UP, .ends = 503 },
	{ .name = "ahead, and called off", .copies = ONCE_LEADS, .event = CALLED_OFF, .ends = 202 },
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
	if (which == 0 && fake.recall != NULL)
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
	const struct scenario plain = { .unknown = s->unknown };
	const struct http_incoming in = incoming_of(&plain);

	set_scene(&plain, fail);
	fake.guesses = true;
	world.store_mode = STORE_WAITS;
	void *request = world.handler.begin(world.handler.owner, &world.exchange, &in);
	must(request != NULL);
	const bool gone = go_on_ahead(s, order, after, request);
	const int status = gone ? 0 : world.exchange.status;
	if (status != s->ends && (fail == 0 || status != 503))
		fail_msg("%s, order %d, after %d, memory %zu: %d", s->name, order, after, fail,
			 status);
	if (fail == 0 && s->ends != 200 && world.granted != 0)
		fail_msg("%s, order %d, after %d: it has cost something", s->name, order, after);
	if (!gone)
		world.handler.sent(world.handler.owner, request);
	once_free(world.worker->args.once); /* which must hold nobody */
	world.worker->args.once = once_new();
	check_nothing_is_left(s->name, fail);
	drain_log();
	return takes.count;
}

static void whatever_is_said_to_who_goes_ahead_nothing_is_left(void **state)
{
	size_t faults = 0;

	(void)state;
	world.worker->elsewhere = &the_others;
	for (size_t i = 0; i < COUNT_OF(ahead_scenarios); i++)
		for (int n = 0; n < 2 * ANSWERS * ANSWERS; n++) {
			const struct ahead_scenario *s = &ahead_scenarios[i];
			const int order = n % (2 * ANSWERS), after = n / (2 * ANSWERS);
			const size_t plain = once_ahead(s, order, after, 0);
			for (size_t fail = 1; fail <= plain; fail++, faults++)
				(void)once_ahead(s, order, after, fail);
		}
	world.worker->elsewhere = NULL;
	print_message("%zu takes of memory have failed\n", faults);
	assert_true(faults > COUNT_OF(ahead_scenarios) * 100);
}

/* ---- copies ------------------------------------------------------------------------------------ */

/* Of a request and its copies, on one exchange each. */
struct copies {
	struct http_exchange exchanges[3];
	void *requests[3];
};

static void begin_copy(struct copies *c, size_t i)
{
	struct http_incoming in = walk.in;

	in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	c->requests[i] = world.handler.begin(world.handler.owner, &c->exchanges[i], &in);
	must(c->requests[i] != NULL);
}

static void nobody_is_held(const char *name)
{
	once_free(world.worker->args.once); /* which must hold nobody */
	world.worker->args.once = once_new();
	check_nothing_is_left(name, 0);
	drain_log();
}

static void end_copies(struct copies *c, size_t first)
{
	for (size_t i = first; i < COUNT_OF(c->requests); i++) {
		world.handler.sent(world.handler.owner, c->requests[i]);
		free(c->exchanges[i].body);
	}
	nobody_is_held("copies");
}

static void begin_copies(struct copies *c)
{
	const struct scenario plain = { .name = "copies" };

	*c = (struct copies){ 0 };
	set_scene(&plain, 0);
	for (size_t i = 0; i < COUNT_OF(c->requests); i++)
		begin_copy(c, i);
	assert_int_equal(world.granted, 1);
	assert_non_null(world.call);
}

static void copies_are_one_call(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	assert_int_equal(c.exchanges[0].status, 200);
	assert_int_equal(c.exchanges[1].status, 0);
	rig_deliver();
	for (size_t i = 1; i < COUNT_OF(c.requests); i++) {
		assert_int_equal(c.exchanges[i].status, 200);
		assert_string_equal(c.exchanges[i].body, c.exchanges[0].body);
	}
	assert_int_equal(world.granted, 1);
	end_copies(&c, 0);
}

static void the_next_copy_goes_on_when_the_first_leaves(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	world.handler.gone(world.handler.owner, c.requests[0]);
	assert_null(world.call);
	rig_deliver();
	assert_int_equal(world.granted, 2);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[1].status, 200);
	assert_int_equal(c.exchanges[2].status, 200);
	end_copies(&c, 1);
}

static void begin_copy_in_session(struct copies *c, size_t i)
{
	const struct scenario plain = { .name = "copies" };
	struct http_incoming in = incoming_of(&plain);

	in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	c->requests[i] = world.handler.begin(world.handler.owner, &c->exchanges[i], &in);
	must(c->requests[i] != NULL);
}

/* Other gateways answer its claim while its session, of which nothing is guessed, is asked about anew. */
static void the_next_copy_waits_for_its_session(void **state)
{
	const struct scenario plain = { .name = "copies" };
	struct copies c = { 0 };

	(void)state;
	set_scene(&plain, 0);
	world.worker->elsewhere = &the_others;
	begin_copy_in_session(&c, 0);
	rig_others_answer(ONCE_LEADS);
	assert_non_null(world.call);
	begin_copy_in_session(&c, 1);
	fake.waits = true;
	world.handler.gone(world.handler.owner, c.requests[0]);
	rig_deliver();
	assert_non_null(fake.recall);
	world.held = 0; /* the same claim, of the same gateway */
	rig_others_answer(ONCE_LEADS);
	assert_int_equal(c.exchanges[1].status, 0);
	assert_null(world.call);
	fake_answers();
	assert_non_null(world.call);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	assert_int_equal(c.exchanges[1].status, 200);
	world.worker->elsewhere = NULL;
	world.handler.sent(world.handler.owner, c.requests[1]);
	free(c.exchanges[1].body);
	nobody_is_held("copies");
}

/* One that goes ahead on a guess of its session's revision meets one that knows it, for another gateway's session was
 * known to its worker a moment earlier: the same request, and one call. */
static void a_copy_waits_for_a_first_that_guesses(void **state)
{
	const struct scenario plain = { .name = "copies" };
	struct copies c = { 0 };

	(void)state;
	set_scene(&plain, 0);
	world.worker->elsewhere = &the_others;
	fake.revision = REVISION_2025_06_18;
	fake.guesses = true;
	begin_copy_in_session(&c, 0);
	struct state_recall *recall = fake.recall;
	assert_non_null(recall);
	fake.recall = NULL;
	fake.guesses = false;
	begin_copy_in_session(&c, 1);
	assert_int_equal(c.exchanges[1].status, 0);
	fake.recall = recall;
	rig_others_answer(ONCE_LEADS);
	fake_answers();
	assert_int_equal(c.exchanges[0].status, 0);
	rig_deliver();  /* it leads now, by what it knows */
	world.held = 0; /* the same gateway's */
	rig_others_answer(ONCE_LEADS);
	assert_non_null(world.call);
	assert_int_equal(world.granted, 1);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[0].status, 200);
	assert_int_equal(c.exchanges[1].status, 200);
	world.worker->elsewhere = NULL;
	for (size_t i = 0; i < 2; i++) {
		world.handler.sent(world.handler.owner, c.requests[i]);
		free(c.exchanges[i].body);
	}
	nobody_is_held("copies");
}

/* The first has left to it what other gateways know of: it gives that back although it never asked for it. */
static void who_leaves_before_it_knows_that_it_leads_gives_the_claim_back(void **state)
{
	(void)state;
	world.worker->elsewhere = &the_others;
	for (int late = 0; late <= 1; late++) {
		const struct scenario plain = { .name = "copies" };
		struct copies c = { 0 };
		set_scene(&plain, 0);
		begin_copy(&c, 0);
		rig_others_answer(ONCE_LEADS);
		begin_copy(&c, 1);
		world.handler.gone(world.handler.owner, c.requests[0]);
		assert_int_equal(world.held, 1);
		if (late)
			rig_time_comes(c.requests[1]);
		else
			world.handler.gone(world.handler.owner, c.requests[1]);
		assert_int_equal(world.held, 0);
		assert_int_equal(c.exchanges[1].status, late ? 504 : 0);
		if (late)
			world.handler.sent(world.handler.owner, c.requests[1]);
		free(c.exchanges[1].body);
		rig_deliver();
		nobody_is_held("a claim that was left");
	}
	world.worker->elsewhere = NULL;
}

static void copies_may_leave_in_any_order(void **state)
{
	(void)state;
	for (int order = 0; order < 6; order++) {
		const size_t first = (size_t)order % 3,
			     second = (first + 1 + (size_t)order / 3) % 3;
		struct copies c;
		begin_copies(&c);
		world.handler.gone(world.handler.owner, c.requests[first]);
		world.handler.gone(world.handler.owner, c.requests[second]);
		world.handler.gone(world.handler.owner, c.requests[3 - first - second]);
		rig_deliver();
		end_copies(&c, COUNT_OF(c.requests));
	}
}

static void a_copy_whose_deadline_passes_does_not_wait_longer(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	rig_time_comes(c.requests[1]);
	assert_int_equal(c.exchanges[1].status, 504);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[2].status, 200);
	end_copies(&c, 0);
}

static void a_process_that_leaves_refuses_all_copies(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	worker_refuse_waiting(world.worker);
	for (size_t i = 0; i < COUNT_OF(c.requests); i++)
		assert_int_equal(c.exchanges[i].status, 503);
	rig_deliver();
	end_copies(&c, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_ends_the_request_and_leaves_nothing),
		cmocka_unit_test(whatever_is_said_to_who_goes_ahead_nothing_is_left),
		cmocka_unit_test(copies_are_one_call),
		cmocka_unit_test(the_next_copy_goes_on_when_the_first_leaves),
		cmocka_unit_test(the_next_copy_waits_for_its_session),
		cmocka_unit_test(a_copy_waits_for_a_first_that_guesses),
		cmocka_unit_test(who_leaves_before_it_knows_that_it_leads_gives_the_claim_back),
		cmocka_unit_test(copies_may_leave_in_any_order),
		cmocka_unit_test(a_copy_whose_deadline_passes_does_not_wait_longer),
		cmocka_unit_test(a_process_that_leaves_refuses_all_copies),
	};
	struct golden_set set;

	golden_load(&set);
	walk_init(&walk, &set.vectors[0]);
	int fd = limit_table_create(16);
	struct limit_table *table = limit_table_map(fd);
	ring = log_ring_new();
	struct metrics *metrics = metrics_new(1, 10);
	must(table != NULL && ring != NULL && metrics != NULL);
	rig_start(walk.config, table, metrics, ring);
	fake.state = (struct state){ .recall = fake_recall,
				     .remember = fake_remember,
				     .forget_recall = fake_forget_recall,
				     .forget_note = fake_forget_note };
	world.worker->state = &fake.state;
	world.worker->args.once = once_new();
	world.worker->args.flights = flights_new();
	int failed = cmocka_run_group_tests_name("faults_state", tests, NULL, NULL);
	rig_reset();
	if (failed == 0) {
		once_free(world.worker->args.once);
		flights_free(world.worker->args.flights);
		rig_end();
	}
	metrics_free(metrics);
	log_ring_free(ring);
	limit_table_unmap(table);
	(void)close(fd);
	walk_fini(&walk);
	golden_free(&set);
	return failed;
}
