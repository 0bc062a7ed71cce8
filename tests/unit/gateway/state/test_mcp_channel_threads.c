/* Homes and clients on several threads: no event comes twice or out of order, and each request reaches one client or
 * comes back to its home.
 * ctest: worker */
#include "tests/unit/gateway/state/mcp_rig.h"

#include <sched.h>
#include <stdatomic.h>

enum { SESSIONS = 2, READERS = 2, EVENTS = 4000, EVENT_BYTES = 16 };

/* What became of an event. */
struct fate {
	_Atomic uint32_t taken, lost;
};

/* One thread's home of a session, which goes and comes, and the readers' clients of that session. */
struct scene {
	char name[4];
	struct fate fates[EVENTS];
	_Atomic bool over;
	_Atomic uint32_t wrong, taken;
};

struct reader {
	struct mcp_client client;
	struct some_worker worker;
	struct scene *scene;
	char bytes[EVENT_BYTES]; /* of an event that has not come whole */
	size_t len;
	long last; /* the event that came last to this client */
};

static struct scene scenes[SESSIONS];

static bool is_request(long number)
{
	return number % 3 == 0;
}

/* ---- the home ---- */

static void never(struct mcp_home *home)
{
	must(home == NULL); /* no session is idle, and none is ended before its home has left */
}

static void note_lost(struct scene *scene, struct mcp_lost *lost)
{
	for (const struct mcp_lost *at = lost; at != NULL; at = at->next)
		atomic_fetch_add(&scene->fates[atol(at->bytes.at)].lost, 1);
	mcp_lost_free(lost);
}

static void push(struct scene *scene, struct mcp_home *home, long number)
{
	char text[32];
	struct mcp_lost *lost;

	(void)snprintf(text, sizeof(text), "%0*ld\n", EVENT_BYTES - 1, number);
	const struct mcp_event event = { slice_of(text, EVENT_BYTES),
					 { NULL, 0 },
					 is_request(number) };
	if (!mcp_home_push(home, &event, NOW, &lost))
		atomic_fetch_add(&scene->fates[number].lost, 1);
	note_lost(scene, lost);
}

static void *home_main(void *argument)
{
	struct scene *scene = argument;
	struct mcp_home home = { .who = session(scene->name), .told = never };
	struct some_worker worker;

	some_worker_init(&worker);
	for (long number = 0; number < EVENTS; number++) {
		if (home.channels == NULL) {
			must(mcp_home_open(channels, &home, &worker.inbox, NOW) == MCP_OPENED);
			mcp_home_answered(&home, true);
		}
		push(scene, &home, number);
		if (number % 32 == 0)
			(void)sched_yield(); /* else there is no reader before it has ended */
		if (number % 997 == 996)
			note_lost(scene, mcp_home_close(&home));
		if (number % 101 == 0)
			must(mcp_session_claim(channels, &home.who,
					       slice_of((const char *)&number, sizeof(number)),
					       NOW) == MCP_CLAIMED);
	}
	note_lost(scene, mcp_home_close(&home));
	must(mcp_session_end(channels, &home.who, NOW));
	atomic_store(&scene->over, true);
	return NULL;
}

/* ---- the client ---- */

static void woken(struct mcp_client *client)
{
	(void)client; /* the reader looks at its state all the time */
}

static void note_event(struct reader *reader)
{
	const long number = atol(reader->bytes);

	if (number <= reader->last || reader->bytes[EVENT_BYTES - 1] != '\n')
		atomic_fetch_add(&reader->scene->wrong, 1);
	reader->last = number;
	atomic_fetch_add(&reader->scene->fates[number].taken, 1);
	atomic_fetch_add(&reader->scene->taken, 1);
}

/* In pieces that are no events' lengths. */
static size_t read_some(struct reader *reader)
{
	char bytes[EVENT_BYTES + 5];
	const size_t taken = mcp_client_take(&reader->client, bytes, sizeof(bytes), NOW);

	for (size_t i = 0; i < taken; i++) {
		reader->bytes[reader->len++] = bytes[i];
		if (reader->len == EVENT_BYTES) {
			note_event(reader);
			reader->len = 0;
		}
	}
	return taken;
}

/* A client's life; what has come of its last event in part is worth nothing. */
static void read_for_a_while(struct reader *reader, unsigned turns)
{
	reader->len = 0;
	reader->last = -1;
	if (mcp_client_attach(channels, &reader->client, &reader->worker.inbox,
			      (struct slice){ NULL, 0 }, NOW) != MCP_ATTACHED)
		return;
	for (unsigned i = 0; i < turns && reader->client.channels != NULL; i++) {
		(void)read_some(reader);
		(void)loop_turn(&reader->worker.loop, false);
		if (reader->client.state == MCP_CHANNEL_CLOSED) {
			while (read_some(reader) != 0)
				;
			break;
		}
	}
	mcp_client_detach(&reader->client, NOW);
}

static void *reader_main(void *argument)
{
	struct reader *reader = argument;

	reader->client = (struct mcp_client){ .who = session(reader->scene->name), .woken = woken };
	some_worker_init(&reader->worker);
	for (unsigned turns = 1; !atomic_load(&reader->scene->over); turns = turns * 5 % 499 + 1)
		read_for_a_while(reader, turns);
	return NULL;
}

/* ---- all of them ---- */

static void every_request_arrives_or_comes_back(void **state)
{
	static struct reader readers[SESSIONS][READERS];
	pthread_t homes[SESSIONS], threads[SESSIONS][READERS];
	uint32_t taken = 0;

	(void)state;
	channels = mcp_channels_new();
	assert_non_null(channels);
	for (size_t i = 0; i < SESSIONS; i++) {
		(void)snprintf(scenes[i].name, sizeof(scenes[i].name), "%zu", i % 10);
		assert_int_equal(pthread_create(&homes[i], NULL, home_main, &scenes[i]), 0);
		for (size_t k = 0; k < READERS; k++) {
			readers[i][k].scene = &scenes[i];
			assert_int_equal(
				pthread_create(&threads[i][k], NULL, reader_main, &readers[i][k]),
				0);
		}
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		assert_int_equal(pthread_join(homes[i], NULL), 0);
		for (size_t k = 0; k < READERS; k++)
			assert_int_equal(pthread_join(threads[i][k], NULL), 0);
		assert_int_equal(atomic_load(&scenes[i].wrong), 0);
		taken += atomic_load(&scenes[i].taken);
		for (long number = 0; number < EVENTS; number++) {
			const struct fate *fate = &scenes[i].fates[number];
			const uint32_t seen = fate->taken + fate->lost;
			assert_true(seen <= 1 && (seen == 1 || !is_request(number)));
		}
	}
	assert_true(taken > 0); /* else nothing was tried */
	mcp_channels_free(channels);
}

/* ---- claims ---- */

enum { CLAIMS = 200, CLAIMERS = 4 };

static _Atomic uint32_t claimed[CLAIMS];
static pthread_barrier_t together;

static void *claim_all(void *argument)
{
	const struct mcp_who who = session("claimed");

	(void)pthread_barrier_wait(&together);
	for (uint32_t i = 0; i < CLAIMS; i++)
		if (mcp_session_claim(channels, &who, slice_of((const char *)&i, sizeof(i)), NOW) ==
		    MCP_CLAIMED)
			atomic_fetch_add(&claimed[i], 1);
	return argument;
}

static void one_of_several_workers_claims_a_request(void **state)
{
	pthread_t threads[CLAIMERS];

	(void)state;
	channels = mcp_channels_new();
	assert_non_null(channels);
	assert_int_equal(pthread_barrier_init(&together, NULL, CLAIMERS), 0);
	for (size_t i = 0; i < CLAIMERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, claim_all, NULL), 0);
	for (size_t i = 0; i < CLAIMERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < CLAIMS; i++)
		assert_int_equal(claimed[i], 1);
	assert_int_equal(pthread_barrier_destroy(&together), 0);
	mcp_channels_free(channels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_arrives_or_comes_back),
		cmocka_unit_test(one_of_several_workers_claims_a_request),
	};

	return cmocka_run_group_tests_name("mcp_channel_threads", tests, NULL, NULL);
}
