/* Many calls at once: how a pool without idle connections opens some, turn by turn, and how answers that end
 * together are handed over. The provider is in the same thread, so that it is seen what happens between two turns. */
#include "gateway/upstream/upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CALLS = 100, TURNS = 10000, A_TURN = 16 };

static const char question[] = "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
		  answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

struct rig {
	struct upstream_pool *pool;
	int listener, peers[CALLS];
	size_t peer_count;
	struct upstream_call calls[CALLS];
};

/* Of the only rig: `done` has no other way to it. */
static size_t answered, answered_short, busy;
/* These live until the process ends. */
static struct net_loop *loop;
static struct upstream *up;

static void on_done(struct upstream_call *call)
{
	answered += call->err == ERR_OK && call->answer.status == 200;
	answered_short += call->err == ERR_OK && call->answer.body.len == 2;
	busy += call->err == ERR_BUSY;
	upstream_finish(call);
}

static void rig_init(struct rig *rig, uint32_t concurrent, uint32_t queue, nsec_t queue_deadline)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	char problem[64];

	(void)memset(rig, 0, sizeof(*rig));
	answered = answered_short = busy = 0;
	rig->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(rig->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(rig->listener, CALLS), 0);
	assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&address, &len), 0);
	const struct endpoint endpoint = { .host = SLICE("127.0.0.1"),
					   .port = ntohs(address.sin_port),
					   .concurrent = concurrent,
					   .queue = queue,
					   .queue_deadline = queue_deadline,
					   .identity = SLICE("burst") };
	rig->pool = upstream_pool_for(up, &endpoint, problem, sizeof(problem));
	assert_non_null(rig->pool);
}

static void rig_fini(struct rig *rig)
{
	for (size_t i = 0; i < CALLS; i++) {
		upstream_cancel(&rig->calls[i]);
		upstream_finish(&rig->calls[i]);
	}
	upstream_mark(up);
	upstream_sweep(up);
	net_turn(loop, 0); /* frees what was closed */
	for (size_t i = 0; i < rig->peer_count; i++)
		(void)close(rig->peers[i]);
	(void)close(rig->listener);
}

/* All in the same turn. */
static void start(struct rig *rig, size_t count)
{
	static const struct iovec request = { (void *)(uintptr_t)question, sizeof(question) - 1 };

	for (size_t i = 0; i < count; i++) {
		struct upstream_call *call = &rig->calls[i];
		call->request = &request;
		call->request_count = 1;
		call->done = on_done;
		call->deadline = NSEC_NEVER;
		call->timeouts =
			(struct provider_timeouts){ 60 * SEC, 60 * SEC, 60 * SEC, 60 * SEC };
		upstream_start(rig->pool, call);
	}
}

static void provider_accepts(struct rig *rig)
{
	int peer;

	while ((peer = accept4(rig->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1) {
		assert_in_range(rig->peer_count, 0, CALLS - 1);
		rig->peers[rig->peer_count++] = peer;
	}
	assert_int_equal(errno, EAGAIN);
}

/* Each request that has come, which is whole. */
static void provider_answers(struct rig *rig)
{
	char request[sizeof(question)];

	provider_accepts(rig);
	for (size_t i = 0; i < rig->peer_count; i++)
		if (read(rig->peers[i], request, sizeof(request)) == sizeof(question) - 1)
			assert_int_equal(write(rig->peers[i], answer, sizeof(answer) - 1),
					 sizeof(answer) - 1);
}

/* To its first `count` connections by turns, while the gateway reads. */
static void provider_sends(struct rig *rig, size_t count, const char *bytes, size_t len)
{
	size_t sent[CALLS] = { 0 }, all = 0;

	for (int turns = 0; turns < TURNS && all < count * len; turns++) {
		for (size_t i = 0; i < count; i++) {
			const ssize_t n = write(rig->peers[i], bytes + sent[i], len - sent[i]);
			const size_t gone = n >= 0            ? (size_t)n
					    : errno == EAGAIN ? 0
							      : len - sent[i]; /* nobody listens */
			sent[i] += gone;
			all += gone;
		}
		net_turn(loop, 0);
	}
	assert_int_equal(all, count * len);
	for (int turns = 0; turns < 500; turns++) /* until all is read */
		net_turn(loop, 0);
}

static void until_all_are_done(struct rig *rig)
{
	for (int turns = 0; turns < TURNS && answered + busy < CALLS; turns++) {
		net_turn(loop, 10 * MSEC);
		provider_answers(rig);
	}
}

static struct upstream_counts count(void)
{
	return upstream_count(up, SLICE("burst"));
}

static void a_turn_opens_some_and_the_next_ones_the_rest(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, UINT32_MAX, 0, 0);
	start(&rig, CALLS);
	assert_int_equal(count().connecting, A_TURN);
	assert_int_equal(count().queued, CALLS - A_TURN); /* though nobody may wait for a place */
	for (uint64_t most = A_TURN; most < CALLS; most += A_TURN) {
		const struct upstream_counts now = count();
		assert_in_range(now.connecting + now.busy, 1, most);
		net_turn(loop, 0);
	}
	for (int turns = 0; turns < TURNS && rig.peer_count < CALLS; turns++) {
		net_turn(loop, 10 * MSEC);
		provider_accepts(&rig);
	}
	assert_int_equal(rig.peer_count, CALLS); /* as nobody is answered */
	assert_int_equal(count().queued, 0);
	assert_int_equal(answered + busy, 0);
	rig_fini(&rig);
}

static void answered_connections_serve_those_who_wait(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, UINT32_MAX, 0, 0);
	start(&rig, CALLS);
	until_all_are_done(&rig);
	assert_int_equal(answered, CALLS);
	assert_in_range(rig.peer_count, A_TURN, CALLS * 3 / 4);
	rig_fini(&rig);
}

static void who_waits_for_a_turn_is_not_of_the_queue(void **state)
{
	enum { PLACES = 20, QUEUE = 5 };
	struct rig rig;

	(void)state;
	rig_init(&rig, PLACES, QUEUE, 0);
	start(&rig, CALLS);
	assert_int_equal(count().queued, PLACES - A_TURN + QUEUE);
	until_all_are_done(&rig);
	assert_int_equal(answered, PLACES + QUEUE);
	assert_int_equal(busy, CALLS - PLACES - QUEUE);
	rig_fini(&rig);
}

static void the_queues_deadline_is_not_for_a_turn(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, UINT32_MAX, 0, 1);
	start(&rig, CALLS);
	net_turn(loop, 0); /* it has passed for all of them */
	assert_in_range(count().connecting + count().busy, A_TURN, 2 * A_TURN);
	until_all_are_done(&rig);
	assert_int_equal(answered, CALLS);
	rig_fini(&rig);
}

/* Begins `count` calls, whose requests the provider has then. */
static void have_begun(struct rig *rig, size_t number)
{
	start(rig, number);
	for (int turns = 0; turns < TURNS && count().busy < number; turns++) {
		net_turn(loop, 10 * MSEC);
		provider_accepts(rig);
	}
	assert_int_equal(rig->peer_count, number);
}

static void long_answers_that_end_together_are_handed_over_some_in_a_turn(void **state)
{
	enum { LONG = 12, BODY = 1 << 20, OF_A_TURN = 2 };
	static const char head[] = "HTTP/1.1 200 OK\r\ncontent-length: 1048576\r\n\r\n";
	static char body[BODY];
	struct rig rig;

	(void)state;
	(void)memset(body, 'x', sizeof(body));
	rig_init(&rig, UINT32_MAX, 0, 0);
	have_begun(&rig, LONG + 1);
	provider_sends(&rig, LONG, head, sizeof(head) - 1);
	provider_sends(&rig, LONG, body, BODY - 1);
	assert_int_equal(answered, 0);
	for (size_t i = 0; i < LONG; i++)
		assert_int_equal(write(rig.peers[i], "x", 1), 1);
	assert_int_equal(write(rig.peers[LONG], answer, sizeof(answer) - 1), sizeof(answer) - 1);
	net_turn(loop, 10 * MSEC);
	assert_int_equal(answered, OF_A_TURN + 1);
	assert_int_equal(answered_short, 1); /* though it came last */
	for (size_t told = OF_A_TURN + 1; told < LONG + 1; told += OF_A_TURN) {
		assert_int_equal(answered, told);
		net_turn(loop, 10 * MSEC);
	}
	assert_int_equal(answered, LONG + 1);
	rig_fini(&rig);
}

static void who_leaves_while_his_answer_waits_for_its_turn_is_not_told(void **state)
{
	enum { LONG = 3, BODY = 2 << 20 };
	static const char head[] = "HTTP/1.1 200 OK\r\ncontent-length: 2097152\r\n\r\n";
	static char body[BODY];
	struct rig rig;

	(void)state;
	rig_init(&rig, UINT32_MAX, 0, 0);
	have_begun(&rig, LONG);
	provider_sends(&rig, LONG, head, sizeof(head) - 1);
	provider_sends(&rig, LONG, body, BODY - 1);
	for (size_t i = 0; i < LONG; i++)
		assert_int_equal(write(rig.peers[i], body, 1), 1);
	net_turn(loop, 10 * MSEC);
	assert_int_equal(answered, 1);
	for (size_t i = 0; i < LONG; i++)
		upstream_cancel(&rig.calls[i]);
	for (int turns = 0; turns < 3; turns++)
		net_turn(loop, 0);
	assert_int_equal(answered, 1);
	rig_fini(&rig);
}

/* So many answers of two MiB that end when all the rest of them is there. */
static void long_answers(struct rig *rig, size_t number)
{
	enum { BODY = 2 << 20 };
	static const char head[] = "HTTP/1.1 200 OK\r\ncontent-length: 2097152\r\n\r\n";
	static char body[BODY];

	rig_init(rig, UINT32_MAX, 0, 0);
	have_begun(rig, number + 1);
	provider_sends(rig, number, head, sizeof(head) - 1);
	provider_sends(rig, number, body, BODY - 1);
	/* One that is not long is taken whatever others keep, and in whatever pieces it comes. */
	assert_int_equal(write(rig->peers[number], answer, 1), 1);
	net_turn(loop, 0);
	assert_int_equal(write(rig->peers[number], answer + 1, sizeof(answer) - 2),
			 sizeof(answer) - 2);
	provider_sends(rig, number, body, 1);
	for (int turns = 0; turns < TURNS && answered + busy < number + 1; turns++)
		net_turn(loop, 10 * MSEC);
	assert_int_equal(answered_short, 1);
	rig_fini(rig);
}

/* upstream_limits_default has answers of up to 16 MiB, so that less than that is as much. */
static void answers_that_have_not_ended_have_a_bound_together(void **state)
{
	enum { FIT = 7, MORE = 12 };
	struct rig rig;

	(void)state;
	upstream_bound_answers(up, 0);
	long_answers(&rig, MORE);
	assert_int_equal(answered + busy, MORE + 1);
	assert_in_range(answered, FIT + 1, MORE);
	for (int times = 0; times < 3; times++) { /* of those before nothing is kept */
		long_answers(&rig, FIT);
		assert_int_equal(answered, FIT + 1);
	}
	upstream_bound_answers(up, (2 * MORE + 1) << 20);
	long_answers(&rig, MORE);
	assert_int_equal(answered, MORE + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_opens_some_and_the_next_ones_the_rest),
		cmocka_unit_test(answered_connections_serve_those_who_wait),
		cmocka_unit_test(who_waits_for_a_turn_is_not_of_the_queue),
		cmocka_unit_test(the_queues_deadline_is_not_for_a_turn),
		cmocka_unit_test(long_answers_that_end_together_are_handed_over_some_in_a_turn),
		cmocka_unit_test(answers_that_have_not_ended_have_a_bound_together),
		cmocka_unit_test(who_leaves_while_his_answer_waits_for_its_turn_is_not_told),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	loop = net_loop_new();
	up = loop == NULL ? NULL : upstream_new(loop, &upstream_limits_default);
	return up == NULL ? 1 : cmocka_run_group_tests_name("upstream_burst", tests, NULL, NULL);
}
