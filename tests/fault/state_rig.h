/* state_rig.h - worker_rig.h with what outlives requests: sessions and loops that a test says what it knows of, and
 * copies. To be included once per program, by its only source. */
#ifndef TESTS_FAULT_STATE_RIG_H
#define TESTS_FAULT_STATE_RIG_H

#include "tests/fault/golden_walk.h"
#include "tests/fault/worker_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- what outlives requests: answers at once or later ------------------------------------------ */

static struct {
	struct state state;
	bool waits, guesses, away, unknown;
	enum revision revision; /* of the session */
	struct state_load *load;
	struct state_save *save;
	uint32_t saves, forgotten;
} fake;

static void answer_load(struct state_load *load)
{
	load->away = fake.away;
	load->session_is = fake.away      ? STATE_SESSION_UNSURE
			   : fake.unknown ? STATE_SESSION_UNKNOWN
					  : STATE_SESSION_KNOWN;
	load->revision = fake.revision;
}

static enum state_outcome fake_load(struct state *state, struct state_load *load)
{
	(void)state;
	must(fake.load == NULL);
	if (fake.guesses && load->may_guess) {
		fake.load = load;
		load->session_is = STATE_SESSION_UNSURE;
		return STATE_GUESSED;
	}
	if (fake.waits) {
		fake.load = load;
		return STATE_PENDING;
	}
	answer_load(load);
	return STATE_DONE;
}

static enum state_outcome fake_save(struct state *state, struct state_save *save)
{
	(void)state;
	must(fake.save == NULL);
	fake.saves++;
	if (fake.waits && save->done != NULL) {
		fake.save = save;
		return STATE_PENDING;
	}
	save->away = fake.away;
	save->ended = save->change == STATE_ENDS && !fake.unknown && !fake.away;
	return STATE_DONE;
}

static void fake_forget_load(struct state *state, struct state_load *load)
{
	(void)state;
	must(fake.load == load);
	fake.load = NULL;
	fake.forgotten++;
}

static void fake_forget_save(struct state *state, struct state_save *save)
{
	(void)state;
	must(fake.save == save);
	fake.save = NULL;
	fake.forgotten++;
}

static inline void fake_answers(void)
{
	struct state_load *load = fake.load;
	struct state_save *save = fake.save;

	fake.load = NULL;
	fake.save = NULL;
	if (load != NULL) {
		answer_load(load);
		load->done(load);
	}
	if (save != NULL) {
		save->away = fake.away;
		save->ended = save->change == STATE_ENDS;
		save->done(save);
	}
}

static struct walk walk;
static struct log_ring *ring;

static void drain_log(void)
{
	for (struct slice piece; (piece = log_ring_peek(ring)).len > 0;)
		log_ring_read(ring, piece.len);
}

static void check_nothing_is_left(const char *name, size_t fail)
{
	const struct worker *worker = world.worker;

	if (worker->core.calls.out == 0 && worker->core.streams.streams.out == 0 &&
	    worker->core.arenas.out == 0 && list_is_empty(&worker->core.waiting) &&
	    world.call == NULL && world.buffers == 0 && world.granted == world.settled &&
	    world.placed == world.released && fake.load == NULL && fake.save == NULL &&
	    world.posted == NULL && world.claim == NULL && world.held == 0 &&
	    world.pending == NULL && worker->core.running == NULL)
		return;
	fail_msg("%s, memory %zu: something is left", name, fail);
}

/* Of a request in a session. */
static inline struct http_incoming in_session(void)
{
	struct http_incoming in = walk.in;

	in.headers[HTTP_SESSION_ID] = SLICE("0123456789abcdef0123456789abcdef");
	in.headers[HTTP_PROTOCOL_VERSION] = slice_of(NULL, 0);
	return in;
}

/* All is known, and answered at once; the `fail`-th take of memory fails. */
static void set_scene(size_t fail)
{
	rig_reset();
	fake.waits = fake.guesses = fake.away = fake.unknown = false;
	fake.revision = REVISION_2025_11_25;
	fake.saves = fake.forgotten = 0;
	takes.fail = fail;
}

/* What was answered is remembered by its key no more; nobody may have a part in it. */
static void forget_copies(void)
{
	idempotency_free(world.worker->core.idempotency);
	world.worker->core.idempotency = idempotency_new();
}

static void nobody_is_held(const char *name, size_t fail)
{
	forget_copies();
	check_nothing_is_left(name, fail);
	drain_log();
}

/* Runs the group of tests in a world of its own: what main returns. */
static int state_rig_run(int (*group)(void))
{
	struct golden_set set;

	golden_load(&set);
	walk_init(&walk, &set.vectors[0]);
	int fd = limit_table_create(16);
	struct limit_table *table = limit_table_map(fd);
	ring = log_ring_new();
	struct metrics *metrics = metrics_new(1, 10);
	must(table != NULL && ring != NULL && metrics != NULL);
	rig_start(walk.config, table, metrics, ring);
	fake.state = (struct state){ .load = fake_load,
				     .save = fake_save,
				     .forget_load = fake_forget_load,
				     .forget_save = fake_forget_save };
	world.worker->core.state = &fake.state;
	world.worker->core.idempotency = idempotency_new();
	world.worker->core.cancels = cancel_table_new();
	int failed = group();
	rig_reset();
	if (failed == 0) {
		idempotency_free(world.worker->core.idempotency);
		cancel_table_free(world.worker->core.cancels);
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

#endif
