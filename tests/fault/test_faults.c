/* test_faults.c - every golden case, with every fault: each take of memory fails once, in each of the
 * ways in which the store, the provider, the caller and the process can let a request down.
 *
 * A real worker runs the request in a world of the test's own (worker_rig.h). Whatever happens, the run
 * ends in a result or a named error, and nothing of the request is left: its slab object, its memory,
 * its reservation, its place, the provider's answer. */
#include "tests/fault/golden_walk.h"
#include "tests/fault/worker_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- what can go wrong beside memory ---------------------------------------------------------- */

/* Who does not wait for the end, and when. */
enum leaving { NOBODY, CALLER_GONE, PROCESS_LEAVES };

/* A zero is a thing that goes well. */
static const struct scenario {
	const char *name;
	/* the store */
	enum err refusal;       /* refuses */
	bool limiter_waits;     /* answers later */
	enum leaving reserving; /* while it has not answered */
	/* the provider */
	bool no_pool;
	enum err call;        /* how the call ends */
	bool unsent;          /* before any byte of the request has left */
	enum leaving sending; /* while the call goes on */
	enum leaving waiting; /* before another attempt */
	/* the answer */
	bool unread; /* the caller is gone before all of it has left */
	/* how a walk that gets there ends; 0: as without the fault */
	enum err ends;
} scenarios[] = {
	{ .name = "all is well" },
	{ .name = "over the rate", .refusal = ERR_RATE_LIMITED, .ends = ERR_RATE_LIMITED },
	{ .name = "over the burst", .refusal = ERR_OVER_BURST, .ends = ERR_OVER_BURST },
	{ .name = "too many at once", .refusal = ERR_CONCURRENCY, .ends = ERR_CONCURRENCY },
	{ .name = "no money left", .refusal = ERR_BUDGET, .ends = ERR_BUDGET },
	{ .name = "no room in the store", .refusal = ERR_BUSY, .ends = ERR_BUSY },
	{ .name = "the store takes its time", .limiter_waits = true },
	{ .name = "gone while the store is asked",
	  .limiter_waits = true,
	  .reserving = CALLER_GONE,
	  .ends = ERR_CANCELLED },
	{ .name = "given up while the store is asked",
	  .limiter_waits = true,
	  .reserving = PROCESS_LEAVES,
	  .ends = ERR_DRAINING },
	{ .name = "the CA cannot be used", .no_pool = true, .ends = ERR_PROVIDER_NO_ATTEMPT },
	{ .name = "no connection",
	  .call = ERR_PROVIDER_NO_ATTEMPT,
	  .unsent = true,
	  .ends = ERR_PROVIDER_NO_ATTEMPT },
	{ .name = "no place in the queue", .call = ERR_BUSY, .unsent = true, .ends = ERR_BUSY },
	{ .name = "refused by the provider's host",
	  .call = ERR_PROVIDER_DOWN,
	  .unsent = true,
	  .ends = ERR_PROVIDER_DOWN },
	{ .name = "cut short", .call = ERR_PROVIDER_DOWN, .ends = ERR_PROVIDER_DOWN },
	{ .name = "not HTTP", .call = ERR_PROVIDER_ANSWER, .ends = ERR_PROVIDER_ANSWER },
	{ .name = "too late", .call = ERR_DEADLINE, .ends = ERR_DEADLINE },
	{ .name = "too late to be sent",
	  .call = ERR_DEADLINE,
	  .unsent = true,
	  .ends = ERR_DEADLINE },
	{ .name = "gone while sending", .sending = CALLER_GONE, .ends = ERR_CANCELLED },
	{ .name = "gone before sending",
	  .sending = CALLER_GONE,
	  .unsent = true,
	  .ends = ERR_CANCELLED },
	{ .name = "given up while sending", .sending = PROCESS_LEAVES, .ends = ERR_DRAINING },
	{ .name = "given up before sending",
	  .sending = PROCESS_LEAVES,
	  .unsent = true,
	  .ends = ERR_DRAINING },
	{ .name = "the store takes its time, and attempts fail",
	  .limiter_waits = true,
	  .call = ERR_PROVIDER_DOWN,
	  .ends = ERR_PROVIDER_DOWN },
	{ .name = "gone between two attempts",
	  .call = ERR_PROVIDER_DOWN,
	  .waiting = CALLER_GONE,
	  .ends = ERR_CANCELLED },
	{ .name = "given up between two attempts",
	  .call = ERR_PROVIDER_DOWN,
	  .waiting = PROCESS_LEAVES,
	  .ends = ERR_DRAINING },
	{ .name = "gone while the answer leaves", .unread = true },
};

/* ---- one run ---------------------------------------------------------------------------------- */

/* How a run went. */
struct run {
	const struct walk *walk;
	const struct scenario *scenario;
	struct http_incoming in;    /* the walk's, when it comes */
	size_t fail;                /* which take of memory failed; 0: none */
	bool asked, called;         /* the store; the provider */
	bool waited;                /* for another attempt */
	bool streamed;              /* an answer of the provider's was */
	uint32_t granted;           /* attempts */
	bool cancelled;             /* the caller did not wait */
	int status;                 /* of the answer; 0: none */
	bool body;                  /* it has one */
	char reason[64];            /* of an error; "": a result, or no body */
	size_t len;                 /* of the body */
	bool unsaved;               /* which says that the model's reasoning was not kept */
	uint8_t sent[SHA256_BYTES]; /* digest of the provider's last request, if called */
	uint8_t sent_first[SHA256_BYTES];
	bool tenant_logged;
	size_t takes; /* of memory, those that failed too */
};

static struct log_ring *ring;
static struct limit_table *table;

#define check(run, condition)                                                         \
	do {                                                                          \
		if (!(condition))                                                     \
			fail_msg("%s, %s, memory %zu: %s", (run)->walk->vector->name, \
				 (run)->scenario->name, (run)->fail, #condition);     \
	} while (0)

/* True when the request is over. */
static bool leaves(struct run *run, enum leaving who, void *request)
{
	if (who == NOBODY)
		return false;
	if (who == PROCESS_LEAVES) {
		worker_refuse_waiting(world.worker);
		return false; /* the answer is still to go out */
	}
	run->cancelled = true;
	world.handler.gone(world.handler.owner, request);
	return true;
}

/* True when the request is over. */
static bool meet_store(struct run *run, void *request)
{
	if (world.pending == NULL)
		return false;
	if (leaves(run, run->scenario->reserving, request))
		return true;
	if (world.pending != NULL)
		rig_store_answers();
	return false;
}

static bool meet_provider(struct run *run, void *request)
{
	const struct scenario *s = run->scenario;
	const bool first = !run->called;

	run->called = run->called || world.call != NULL;
	if (world.call == NULL)
		return false;
	memcpy(run->sent, world.sent, sizeof(run->sent));
	if (first)
		memcpy(run->sent_first, world.sent, sizeof(run->sent_first));
	world.call->bytes_sent = !s->unsent;
	if (leaves(run, s->sending, request))
		return true;
	if (world.call != NULL && s->call == ERR_OK &&
	    rig_provider_streams(request, &run->walk->answer)) {
		run->streamed = true;
		rig_stream_ends();
	} else if (world.call != NULL)
		rig_provider_ends(s->call, !s->unsent, &run->walk->answer);
	return false;
}

/* The last event of a stream, without its name; absent when it ended without one. */
static struct slice last_event(struct run *run)
{
	static const char begin[] = "event: message\ndata: ";
	struct slice body = slice_of(world.exchange.body, world.exchange.len);
	const char *last = NULL;

	check(run, body.len > 2 && memcmp(body.at + body.len - 2, "\n\n", 2) == 0);
	for (const char *at = strstr(body.at, begin); at != NULL; at = strstr(at + 1, begin))
		last = at + sizeof(begin) - 1;
	if (last == NULL || body.at[body.len - 3] != '}')
		return slice_of(NULL, 0);
	return slice_of(last, (size_t)(body.at + body.len - 2 - last));
}

/* Of an error in a stream: the status that it would have had. */
static int status_of(const char *reason)
{
	for (int err = 1; err < ERR_COUNT; err++)
		if (strcmp(err_info((enum err)err)->reason, reason) == 0)
			return err_info((enum err)err)->status;
	return 0;
}

static void read_stream(struct run *run)
{
	struct slice event = last_event(run);

	run->status = err_info(ERR_BUSY)->status;
	if (slice_absent(event)) /* not even memory for an error */
		return;
	struct json_tree *tree = json_tree_parse(event);
	check(run, tree != NULL);
	bool result = json_tree_get(tree, "result") != NULL;
	check(run, result != (json_tree_get(tree, "error") != NULL));
	json_tree_free(tree);
	run->body = true;
	run->status = 200;
	if (result)
		return;
	const char *at = strstr(event.at, "\"reason\":\"");
	check(run, at != NULL && sscanf(at + 10, "%63[a-z_]", run->reason) == 1);
	run->status = status_of(run->reason);
}

static void read_answer(struct run *run)
{
	const struct http_exchange *exchange = &world.exchange;
	static const char mark[] = "\"reason\":\"";

	run->status = exchange->status;
	run->len = exchange->len;
	run->unsaved = exchange->len != 0 && strstr(exchange->body, "reasoning_not_saved") != NULL;
	if (exchange->len == 0)
		return;
	if (exchange->status == 200 && strncmp(exchange->body, "event:", 6) == 0) {
		read_stream(run);
		return;
	}
	struct json_tree *tree = json_tree_parse(slice_of(exchange->body, exchange->len));
	check(run, tree != NULL);
	bool result = json_tree_get(tree, "result") != NULL;
	check(run, result != (json_tree_get(tree, "error") != NULL));
	json_tree_free(tree);
	run->body = true;
	if (result)
		return;
	const char *at = strstr(exchange->body, mark);
	check(run, at != NULL);
	check(run, sscanf(at + sizeof(mark) - 1, "%63[a-z_]", run->reason) == 1);
}

static void set_scene(const struct scenario *s)
{
	rig_reset();
	world.limiter_mode = s->refusal != ERR_OK ? LIMITER_REFUSES
			     : s->limiter_waits   ? LIMITER_WAITS
						  : LIMITER_ASKS;
	world.refusal =
		(struct limit_refusal){ .err = s->refusal,
					.limit = s->refusal == ERR_BUSY ? NULL : "for a test",
					.wait_ns = 1500 * MSEC };
	struct upstream_pool *pool = s->no_pool ? NULL : &the_pool;
	world.worker->core.providers.pools[0][0] = pool;
}

/* True when the request is over. */
static bool meet_time(struct run *run, struct rpc_call *request)
{
	if (request->call->wait.place == 0)
		return false;
	run->waited = true;
	if (leaves(run, run->scenario->waiting, request))
		return true;
	if (request->call->wait.place != 0)
		rig_time_comes(request);
	return false;
}

/* Its answer has begun, and not ended. */
static bool is_open(const struct http_exchange *exchange)
{
	return exchange->pieces && !exchange->ended;
}

/* Attempt by attempt. True when the request is over without an answer. */
static bool meet_all(struct run *run, void *request)
{
	for (uint32_t n = 0; world.exchange.status == 0 || is_open(&world.exchange); n++) {
		check(run, n < 100);
		if (meet_store(run, request) || meet_provider(run, request) ||
		    meet_time(run, request))
			return true;
	}
	return false;
}

static void go(struct run *run)
{
	set_scene(run->scenario);
	takes.fail = run->fail;
	run->in = run->walk->in;
	void *request = world_begin(&world.exchange, &run->in);
	check(run, request != NULL || world.exchange.refused);
	run->asked =
		world.granted > 0 || world.pending != NULL || world.limiter_mode == LIMITER_REFUSES;
	if (!meet_all(run, request)) {
		read_answer(run);
		check(run, run->status != 0);
		if (!world.exchange.refused)
			(run->scenario->unread ? world.handler.gone
					       : world.handler.sent)(world.handler.owner, request);
	}
	run->granted = world.granted;
	run->takes = takes.count;
	takes.fail = 0;
}

/* ---- what holds after each -------------------------------------------------------------------- */

static void check_nothing_is_left(const struct run *run)
{
	const struct worker *worker = world.worker;
	const struct tenant *tenant =
		tenants_by_id(&run->walk->config->tenants, SLICE(WALK_TENANT));
	struct limit_state limits =
		limit_read(limit_table_slot(table, tenant->limit_key), world.wall_ns / SEC);

	check(run, worker->core.calls.out == 0 && worker->fronts.records.out == 0);
	check(run, worker->core.streams.streams.out == 0);
	check(run, worker->core.arenas.out == 0);
	check(run, list_is_empty(&worker->core.waiting));
	check(run, world.call == NULL && world.buffers == 0);
	check(run, world.pending == NULL);
	check(run, world.granted == world.settled && world.placed <= 1);
	check(run, world.placed == world.released);
	check(run, limits.concurrent == 0);
	check(run, limits.usd_day == world.settled_usd);
	check(run, worker->core.running == NULL);
}

/* DESIGN 5, Limits: what was not sent is not paid for, what was sent and never answered in full. */
static void check_money(const struct run *run)
{
	const struct scenario *s = run->scenario;

	if (world.granted == 0)
		return;
	if (!run->called || s->unsent)
		check(run, world.settled_usd == 0);
	else if (s->call != ERR_OK || s->sending != NOBODY)
		check(run, world.settled_usd == world.reserved_usd);
}

/* All that is in the ring, which may lie in two pieces. */
static size_t read_log(char line[LOG_LINE_MAX])
{
	size_t len = 0;

	for (struct slice piece; (piece = log_ring_peek(ring)).len > 0; len += piece.len) {
		must(len + piece.len <= LOG_LINE_MAX);
		memcpy(line + len, piece.at, piece.len);
		log_ring_read(ring, piece.len);
	}
	return len;
}

static void check_log(struct run *run)
{
	char line[LOG_LINE_MAX];
	size_t len = read_log(line);

	check(run, log_ring_dropped(ring) == 0);
	check(run, len > 0 && memchr(line, '\n', len) == line + len - 1);
	check(run, memmem(line, len, WALK_KEY, sizeof(WALK_KEY) - 1) == NULL);
	run->tenant_logged =
		memmem(line, len, "\"" WALK_TENANT "\"", sizeof(WALK_TENANT) + 1) != NULL;
}

/* Without memory for a body the status says it alone. */
static bool ends_as(const struct run *run, int status, const char *reason)
{
	if (run->status != status)
		return false;
	return run->body ? strcmp(run->reason, reason) == 0 : run->fail != 0 && status != 200;
}

static bool ends_in(const struct run *run, enum err err)
{
	return ends_as(run, err_info(err)->status, err_info(err)->reason);
}

/* The error that the scenario leads to, or the plain run's end; or, without memory, that. */
static void check_end(const struct run *run, const struct run *plain)
{
	const struct scenario *s = run->scenario;
	bool at_store = s->refusal != ERR_OK || s->reserving != NOBODY;
	bool met = s->ends != ERR_OK && (at_store ? plain->asked : plain->called);

	if (run->cancelled) {
		check(run, run->status == 0 && s->ends == ERR_CANCELLED);
		return;
	}
	if (!met && ends_as(run, plain->status, plain->reason)) {
		/* One that was to be improved by a second attempt may be the first all the same; and what
		 * is to be kept beside an answer costs memory of its own. */
		check(run, run->status != 200 || run->len == plain->len || plain->granted > 1 ||
				   (run->unsaved && !plain->unsaved));
		check(run, run->status != 200 || run->tenant_logged);
	} else if (!met || !ends_in(run, s->ends)) {
		check(run, run->fail != 0);
		check(run, ends_in(run, ERR_BUSY));
	}
}

/* Without memory, nothing is left out of a request: it is not sent at all. One that was to be improved by a
 * second attempt may have had the first only. */
static void check_sent(const struct run *run, const struct run *plain)
{
	if (run->called && memcmp(run->sent, plain->sent_first, sizeof(run->sent)) != 0)
		check(run, memcmp(run->sent, plain->sent, sizeof(run->sent)) == 0);
}

static struct run once(const struct walk *walk, const struct scenario *scenario, size_t fail,
		       const struct run *plain)
{
	struct run run = { .walk = walk, .scenario = scenario, .fail = fail };

	go(&run);
	check_nothing_is_left(&run);
	check_money(&run);
	check_log(&run);
	if (plain != NULL) {
		check_end(&run, plain);
		check_sent(&run, plain);
	}
	return run;
}

/* ---- every vector ----------------------------------------------------------------------------- */

static struct walk first; /* of the configuration between tests */
static struct {
	size_t runs, faults; /* of memory */
	size_t results, errors, streams;
} sums;

/* As the vector says. */
static struct run plain_run(const struct walk *walk)
{
	struct run run = once(walk, &scenarios[0], 0, NULL);

	check(&run, (run.status == 200) != walk->expects_error);
	check(&run, run.body);
	sums.results += run.status == 200;
	sums.streams += run.streamed;
	sums.errors += run.status != 200;
	return run;
}

static void use_config(const struct config *config)
{
	worker_set_config(world.worker, config, 2);
	rig_deliver();
}

/* The worker reads its configuration until it has the next one. */
static void walk_end(struct walk *walk)
{
	use_config(first.config);
	walk_fini(walk);
}

static void every_fault_ends_in_a_named_error_and_leaves_nothing(void **state)
{
	const struct vector *vector = *state;
	struct walk walk;

	walk_init(&walk, vector);
	use_config(walk.config);
	struct run plain = plain_run(&walk);
	for (size_t s = 0; s < COUNT_OF(scenarios); s++) {
		bool failed = true;
		for (size_t fail = 0; failed; fail++) {
			struct run run = once(&walk, &scenarios[s], fail, &plain);
			failed = fail == 0 || run.takes >= fail; /* else none was left to fail */
			sums.runs++;
			sums.faults += fail != 0 && failed;
		}
	}
	walk_end(&walk);
}

/* ---- heads that wait for 100 Continue --------------------------------------------------------- */

/* Of the head alone: 0 when it gets 100, or the status. */
static int judge_head(struct run *run, struct slice authorization, struct slice path)
{
	rig_reset();
	run->in = run->walk->in;
	run->in.body = slice_of(NULL, 0);
	run->in.headers[HTTP_AUTHORIZATION] = authorization;
	run->in.path = path;
	run->in.came_at = world.now;
	takes.fail = run->fail;
	const bool goes_on = world.handler.expects(
		world.handler.owner, (struct http_early *)(void *)&world.exchange, &run->in);
	run->takes = takes.count;
	takes.fail = 0;
	check(run, goes_on == (world.exchange.status == 0));
	check_nothing_is_left(run);
	char line[LOG_LINE_MAX];
	check(run, (read_log(line) == 0) == goes_on);
	return world.exchange.status;
}

static void heads_are_judged_without_their_bodies(void **state)
{
	static const struct {
		struct slice authorization, path;
		int status;
	} rows[] = {
		{ SLICE_INIT("Bearer " WALK_KEY), SLICE_INIT("/v1/sampling"), 0 },
		{ SLICE_INIT("Bearer no-such-key-0123456789"), SLICE_INIT("/v1/sampling"), 401 },
		{ { NULL, 0 }, SLICE_INIT("/v1/sampling"), 401 },
		{ SLICE_INIT("Bearer " WALK_KEY), SLICE_INIT("/v1/other"), 404 },
	};
	struct walk walk;

	walk_init(&walk, *state);
	use_config(walk.config);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct run run = { .walk = &walk, .scenario = &scenarios[0] };
		check(&run,
		      judge_head(&run, rows[i].authorization, rows[i].path) == rows[i].status);
		for (size_t takes_of_memory = run.takes; run.fail < takes_of_memory;) {
			run.fail++;
			const int status = judge_head(&run, rows[i].authorization, rows[i].path);
			check(&run,
			      status == rows[i].status || status == err_info(ERR_BUSY)->status);
		}
	}
	walk_end(&walk);
}

static void the_cases_get_to_every_place(void **state)
{
	(void)state;
	print_message("%zu runs, %zu of them with a take of memory that failed; %zu cases end in a "
		      "result and %zu in an error\n",
		      sums.runs, sums.faults, sums.results, sums.errors);
	assert_true(sums.results > 150 && sums.errors > 50 && sums.streams > 40);
	assert_true(sums.faults > 10 * sums.runs / COUNT_OF(scenarios)); /* ten in each */
}

static struct CMUnitTest *make_tests(struct golden_set *set, size_t *count)
{
	struct CMUnitTest *tests = calloc(set->count + 2, sizeof(*tests));

	must(tests != NULL);
	*count = 0;
	for (size_t i = 0; i < set->count; i++) {
		tests[(*count)++] = (struct CMUnitTest){
			.name = set->vectors[i].name,
			.test_func = every_fault_ends_in_a_named_error_and_leaves_nothing,
			.initial_state = &set->vectors[i],
		};
	}
	tests[(*count)++] = (struct CMUnitTest)cmocka_unit_test(the_cases_get_to_every_place);
	tests[(*count)++] = (struct CMUnitTest)cmocka_unit_test_prestate(
		heads_are_judged_without_their_bodies, &set->vectors[0]);
	return tests;
}

int main(void)
{
	struct golden_set set;
	size_t count;

	golden_load(&set);
	walk_init(&first, &set.vectors[0]);
	int fd = limit_table_create(16);
	table = limit_table_map(fd);
	ring = log_ring_new();
	struct metrics *metrics = metrics_new(1, 10);
	must(table != NULL && ring != NULL && metrics != NULL);
	rig_start(first.config, table, metrics, ring);
	struct CMUnitTest *tests = make_tests(&set, &count);
	int failed = _cmocka_run_group_tests("faults", tests, count, NULL, NULL);
	free(tests);
	rig_reset();
	if (failed == 0)
		rig_end();
	metrics_free(metrics);
	log_ring_free(ring);
	limit_table_unmap(table);
	(void)close(fd);
	walk_fini(&first);
	golden_free(&set);
	return failed;
}
