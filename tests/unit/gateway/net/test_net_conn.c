/* Outgoing connections on a loop of their own, to a peer in the same process (local sockets). */
#include "gateway/net/net.h"

#include "codec/base/attr.h"
#include "gateway/net/net_conn.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS = 10000, MUCH = 8 << 20, CLIENTS = 40, FEW = 32 };

/* Turns the loop until `what` is true. */
#define UNTIL(rig, what)                                               \
	do {                                                           \
		for (int turns = 0; turns < TURNS && !(what); turns++) \
			net_turn((rig)->loop, 10 * MSEC);              \
		assert_true(what);                                     \
	} while (0)

/* A connection, what it told, and what it does when it is told. */
struct client {
	struct net_conn *conn;
	int peer; /* the other end; -1: closed */
	uint32_t opened, readable, written, ended;
	enum net_end end;
	char *got;
	size_t got_len;
	size_t leave; /* so many bytes are not consumed */
	bool pauses;  /* at each piece */
	struct client *closes;
};

struct rig {
	struct net_loop *loop;
	int listener;
	struct sockaddr_un address;
	socklen_t address_len;
	struct client clients[CLIENTS];
};

static void on_opened(struct net_conn *conn, void *arg)
{
	(void)conn;
	((struct client *)arg)->opened++;
}

static void on_readable(struct net_conn *conn, void *arg)
{
	struct client *client = arg;
	size_t len;
	const char *bytes = net_input(conn, &len);

	client->readable++;
	if (len > client->leave) {
		assert_in_range(client->got_len + len - client->leave, 0, MUCH);
		memcpy(client->got + client->got_len, bytes, len - client->leave);
		client->got_len += len - client->leave;
		net_consume(conn, len - client->leave);
	}
	if (client->pauses)
		net_pause(conn);
	if (client->closes != NULL && client->closes->conn != NULL) {
		net_close(client->closes->conn);
		client->closes->conn = NULL;
	}
}

static void on_written(struct net_conn *conn, void *arg)
{
	struct client *client = arg;

	assert_false(net_writing(conn));
	client->written++;
}

static void on_ended(struct net_conn *conn, enum net_end end, void *arg)
{
	struct client *client = arg;

	(void)conn;
	client->ended++;
	client->end = end;
}

static const struct net_conn_events events = {
	.opened = on_opened,
	.readable = on_readable,
	.written = on_written,
	.ended = on_ended,
};

static void client_connect(struct rig *rig, struct client *client)
{
	client->got = malloc(MUCH);
	assert_non_null(client->got);
	client->conn = net_connect(rig->loop, (const struct sockaddr *)&rig->address,
				   rig->address_len, NULL, NULL, &events, client);
	assert_non_null(client->conn);
	assert_int_equal(client->opened + client->ended, 0); /* no callback yet */
	client->peer = accept4(rig->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(client->peer >= 0);
	UNTIL(rig, client->opened == 1);
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->loop = net_loop_new();
	assert_non_null(rig->loop);
	rig->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rig->address.sun_family = AF_UNIX; /* a name that is no file: it begins with NUL */
	const int len = snprintf(rig->address.sun_path + 1, sizeof(rig->address.sun_path) - 1,
				 "sluice-net-conn-%d", (int)getpid());
	rig->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	assert_int_equal(bind(rig->listener, (struct sockaddr *)&rig->address, rig->address_len),
			 0);
	assert_int_equal(listen(rig->listener, CLIENTS), 0);
	for (size_t i = 0; i < CLIENTS; i++)
		rig->clients[i].peer = -1;
	*state = rig;
	return 0;
}

static void peer_close(struct client *client)
{
	(void)close(client->peer);
	client->peer = -1;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rig->clients); i++) {
		struct client *client = &rig->clients[i];
		if (client->conn != NULL)
			net_close(client->conn);
		if (client->peer != -1)
			peer_close(client);
		free(client->got);
	}
	net_turn(rig->loop, 0); /* frees what was closed */
	(void)close(rig->listener);
	static struct net_loop *all[64]; /* loops live until the process ends */
	static size_t count;
	assert_true(count < COUNT_OF(all));
	all[count++] = rig->loop;
	free(rig);
	return 0;
}

static void peer_says(const struct client *client, const char *bytes, size_t len)
{
	assert_int_equal(write(client->peer, bytes, len), (ssize_t)len);
}

/* All that has come; 0: nothing. */
static size_t peer_hears(const struct client *client, char *to, size_t room)
{
	const ssize_t got = read(client->peer, to, room);

	assert_true(got >= 0 || errno == EAGAIN);
	return got < 0 ? 0 : (size_t)got;
}

static void bytes_go_both_ways(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	char heard[16];

	client_connect(rig, client);
	const struct iovec question[] = { { (char[]){ "que" }, 3 }, { (char[]){ "stion" }, 5 } };
	assert_true(net_write(client->conn, question, 2));
	assert_false(net_writing(client->conn));
	assert_int_equal(peer_hears(client, heard, sizeof(heard)), 8);
	assert_memory_equal(heard, "question", 8);
	for (uint32_t n = 1; n <= 3; n++) {
		peer_says(client, "answer", 6);
		UNTIL(rig, client->got_len == 6 * n);
		assert_true(net_write(client->conn, question, 2));
	}
	assert_int_equal(client->written, 0); /* nobody is told what is known */
	assert_false(net_ending(client->conn));
}

static void what_is_left_comes_before_what_follows(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	size_t len;

	client_connect(rig, client);
	client->leave = 2;
	for (size_t i = 0; i < 200; i++) {
		const char text[3] = { (char)('a' + i % 26), (char)('a' + i % 26), '.' };
		const uint32_t told = client->readable;
		peer_says(client, text, 3);
		UNTIL(rig, client->readable == told + 1);
	}
	assert_int_equal(client->got_len, 200 * 3 - 2);
	assert_memory_equal(client->got, "aa.bb.cc.", 9);
	assert_memory_equal(net_input(client->conn, &len), "r.", 2);
	assert_int_equal(len, 2);
}

static void what_is_taken_outlives_the_connection(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	size_t len;

	client_connect(rig, client);
	client->leave = 5;
	peer_says(client, "stays", 5);
	UNTIL(rig, client->readable == 1);
	struct net_buffer *taken = net_take_input(client->conn);
	net_close(client->conn);
	client->conn = NULL;
	net_turn(rig->loop, 0);
	assert_memory_equal(net_buffer_bytes(taken, &len), "stays", 5);
	assert_int_equal(len, 5);
	net_buffer_free(taken);
}

static void much_comes_as_a_whole(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	char *text = malloc(MUCH);
	size_t said = 0;

	assert_non_null(text);
	for (size_t i = 0; i < MUCH; i++)
		text[i] = (char)(i * 7 + i / 4096);
	client_connect(rig, client);
	for (int turns = 0; turns < TURNS && client->got_len < MUCH; turns++) {
		const ssize_t put =
			said == MUCH ? 0 : write(client->peer, text + said, MUCH - said);
		said += put > 0 ? (size_t)put : 0;
		net_turn(rig->loop, 10 * MSEC);
	}
	assert_int_equal(client->got_len, MUCH);
	assert_memory_equal(client->got, text, MUCH);
	free(text);
}

static void the_end_is_told_behind_the_last_bytes(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];

	client_connect(rig, client);
	peer_says(client, "last", 4);
	peer_close(client);
	UNTIL(rig, client->ended == 1);
	assert_int_equal(client->end, NET_END_CLOSED);
	assert_int_equal(client->got_len, 4);
	assert_true(net_ending(client->conn));
}

static void who_pauses_hears_nothing_and_misses_nothing(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];

	client_connect(rig, client);
	client->pauses = true;
	peer_says(client, "first", 5);
	UNTIL(rig, client->readable == 1);
	peer_says(client, "second", 6);
	peer_close(client);
	for (int i = 0; i < 3; i++)
		net_turn(rig->loop, 0);
	assert_int_equal(client->readable, 1);
	assert_int_equal(client->ended, 0);
	client->pauses = false;
	net_resume(client->conn);
	UNTIL(rig, client->ended == 1);
	assert_int_equal(client->got_len, 11);
	assert_int_equal(client->end, NET_END_CLOSED);
}

static void what_the_socket_does_not_take_goes_later(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	char *text = malloc(MUCH), *heard = malloc(MUCH);
	size_t len = 0;

	assert_non_null(text);
	assert_non_null(heard);
	for (size_t i = 0; i < MUCH; i++)
		text[i] = (char)(i * 13 + i / 4096);
	client_connect(rig, client);
	{
		struct iovec list[3] = { { text, 1 }, { NULL, 0 }, { text + 1, MUCH - 1 } };
		assert_false(net_write(client->conn, list, 3));
		memset(list, 0xff, sizeof(list)); /* the list may go */
	}
	assert_true(net_writing(client->conn));
	for (int turns = 0; turns < TURNS && len < MUCH; turns++) {
		len += peer_hears(client, heard + len, MUCH - len);
		net_turn(rig->loop, 0);
	}
	assert_int_equal(len, MUCH);
	assert_memory_equal(heard, text, MUCH);
	UNTIL(rig, client->written == 1);
	assert_true(net_write(client->conn, &(struct iovec){ text, 4 }, 1)); /* and again */
	free(text);
	free(heard);
}

static void what_the_peer_said_before_a_write_failed_is_heard(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];

	client_connect(rig, client);
	peer_says(client, "too large", 9);
	peer_close(client);
	(void)net_write(client->conn, &(struct iovec){ (char[]){ "more" }, 4 }, 1);
	assert_int_equal(client->ended, 0); /* not in here */
	UNTIL(rig, client->ended == 1);
	assert_int_equal(client->got_len, 9);
}

static void one_that_is_closed_hears_nothing_of_its_batch(void **state)
{
	struct rig *rig = *state;
	struct client *one = &rig->clients[0], *other = &rig->clients[1];

	client_connect(rig, one);
	client_connect(rig, other);
	one->closes = other;
	other->closes = one;
	peer_says(one, "x", 1);
	peer_says(other, "x", 1);
	UNTIL(rig, one->readable + other->readable == 1);
	net_turn(rig->loop, 0);
	assert_int_equal(one->readable + other->readable, 1);
	assert_true((one->conn == NULL) != (other->conn == NULL));
}

static void a_refusal_is_told_later(void **state)
{
	struct rig *rig = *state;
	struct client *client = &rig->clients[0];
	struct sockaddr_un nobody = rig->address;

	nobody.sun_path[1] = 'S';
	client->conn = net_connect(rig->loop, (const struct sockaddr *)&nobody, rig->address_len,
				   NULL, NULL, &events, client);
	assert_non_null(client->conn);
	assert_int_equal(client->ended, 0);
	UNTIL(rig, client->ended == 1);
	assert_int_equal(client->end, NET_END_FAILED);
	assert_string_equal(net_conn_error(client->conn), "Connection refused");
	assert_int_equal(client->opened, 0);
}

/* ---- net_coalesce ---- */

/* The first `count` clients, whose input may wait. */
static void clients_coalesce(struct rig *rig, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		client_connect(rig, &rig->clients[i]);
		net_coalesce(rig->clients[i].conn, true);
	}
}

/* Each of clients [from, to) is told one byte, in a turn of its own; the most that were told in one turn. */
static uint32_t tell_by_turns(struct rig *rig, size_t from, size_t to)
{
	uint32_t most = 0, before = 0, now;

	for (size_t i = from; i < to; i++)
		before += rig->clients[i].readable;
	for (size_t i = from; i < to; i++) {
		peer_says(&rig->clients[i], "x", 1);
		net_turn(rig->loop, 0);
		now = 0;
		for (size_t k = from; k < to; k++)
			now += rig->clients[k].readable;
		most = now - before > most ? now - before : most;
		before = now;
	}
	return most;
}

static void what_few_bring_does_not_wait(void **state)
{
	struct rig *rig = *state;

	clients_coalesce(rig, FEW);
	assert_int_equal(tell_by_turns(rig, 0, FEW), 1);
	for (size_t i = 0; i < FEW; i++)
		assert_int_equal(rig->clients[i].got_len, 1);
}

/* A turn that takes longer than they may wait reads each for itself: then once more. */
static void what_many_bring_is_read_together(void **state)
{
	struct rig *rig = *state;
	size_t rounds = 0;

	clients_coalesce(rig, CLIENTS);
	do
		rounds++;
	while (rounds < TURNS && tell_by_turns(rig, FEW, CLIENTS) < 2);
	assert_true(rounds < TURNS);
	for (size_t i = FEW; i < CLIENTS; i++)
		UNTIL(rig, rig->clients[i].got_len == rounds);
	peer_says(&rig->clients[FEW], "last", 4);
	peer_close(&rig->clients[FEW]);
	UNTIL(rig, rig->clients[FEW].ended == 1);
	assert_int_equal(rig->clients[FEW].got_len, rounds + 4);
}

static void who_is_in_a_hurry_again_does_not_wait(void **state)
{
	struct rig *rig = *state;
	struct client *last = &rig->clients[CLIENTS - 1];

	clients_coalesce(rig, CLIENTS);
	peer_says(last, "a", 1);
	net_coalesce(last->conn, false); /* what is there already is not forgotten */
	net_turn(rig->loop, 0);
	assert_int_equal(last->got_len, 1);
	for (size_t i = 0; i + 1 < CLIENTS; i++) { /* nor do those count who are gone */
		net_close(rig->clients[i].conn);
		rig->clients[i].conn = NULL;
	}
	net_coalesce(last->conn, true);
	for (size_t n = 2; n < 100; n++) {
		peer_says(last, "b", 1);
		net_turn(rig->loop, 0);
		assert_int_equal(last->got_len, n);
	}
}

static uint32_t got_of_all(const struct rig *rig)
{
	uint32_t got = 0;

	for (size_t i = 0; i < CLIENTS; i++)
		got += (uint32_t)rig->clients[i].got_len;
	return got;
}

static void who_hurries_now_and_then_misses_nothing(void **state)
{
	struct rig *rig = *state;
	char heard[] = "question";
	uint32_t dice = 1, said = 0;

	clients_coalesce(rig, CLIENTS);
	for (uint32_t n = 0; n < 4000; n++) {
		dice = dice * 1664525 + 1013904223;
		const struct client *client = &rig->clients[FEW + (dice >> 16) % (CLIENTS - FEW)];
		net_coalesce(client->conn, false);
		if ((dice >> 24 & 1) != 0)
			net_coalesce(client->conn, true);
		if ((dice >> 25 & 3) == 0)
			net_turn(rig->loop, 0);
		if ((dice >> 27 & 7) == 0 && !net_writing(client->conn))
			assert_true(net_write(client->conn, &(struct iovec){ heard, 8 }, 1));
		peer_says(client, "x", 1);
		said++;
		if (n % 8 == 7) /* before the next byte makes good for one that was missed */
			UNTIL(rig, got_of_all(rig) == said);
	}
}

/* One that stays behind when the others are through. */
static void who_is_left_alone_does_not_wait(void **state)
{
	struct rig *rig = *state;
	struct client *last = &rig->clients[CLIENTS - 1];

	clients_coalesce(rig, CLIENTS);
	for (size_t i = 0; i < FEW; i++)
		net_coalesce(rig->clients[i].conn, false);
	peer_says(last, "a", 1);
	UNTIL(rig, last->got_len == 1);
	for (size_t n = 2; n < 100; n++) {
		peer_says(last, "b", 1);
		net_turn(rig->loop, 0);
		assert_int_equal(last->got_len, n);
	}
}

/* ---- net_together ---- */

struct work {
	struct net_task task;
	struct net_loop *loop;
	nsec_t ran_at; /* 0: not yet */
};

static void on_work(struct net_task *task)
{
	struct work *work = CONTAINER_OF(task, struct work, task);

	work->ran_at = net_now(work->loop);
}

static bool work_put_off(struct work *work, struct net_loop *loop, nsec_t at)
{
	*work = (struct work){ .task = { .run = on_work }, .loop = loop };
	return net_together(loop, &work->task, at);
}

/* As if so many connections might wait. */
static void many_may_wait(struct rig *rig, uint32_t many)
{
	net_loop_conns(rig->loop)->coalesced.may_wait = many;
}

static void where_few_may_wait_nothing_is_put_off(void **state)
{
	struct rig *rig = *state;
	const nsec_t due = 3 * NET_TOGETHER + 1;
	struct work work;

	clients_coalesce(rig, FEW);
	assert_int_equal(net_together_at(rig->loop, 0, due), due);
	assert_false(work_put_off(&work, rig->loop, net_now(rig->loop) + 1));
}

static void where_many_do_it_is_done_in_one_turn_for_a_group(void **state)
{
	struct rig *rig = *state;
	struct work first, second, gone, next;

	clients_coalesce(rig, CLIENTS);
	const nsec_t due = net_together_at(rig->loop, 1, 0);
	assert_true(due > net_now(rig->loop) && due <= net_now(rig->loop) + NET_TOGETHER);
	assert_int_equal(net_together_at(rig->loop, 1, due), due);
	assert_int_equal(net_together_at(rig->loop, 1, due + 1), due + NET_TOGETHER);
	assert_int_equal(net_together_at(rig->loop, 3, due), due);
	assert_int_equal(net_together_at(rig->loop, 2, due), due + NET_TOGETHER / 2);
	assert_true(work_put_off(&next, rig->loop, due + NET_TOGETHER));
	assert_true(work_put_off(&first, rig->loop, due));
	assert_true(work_put_off(&gone, rig->loop, due));
	assert_true(work_put_off(&second, rig->loop, due));
	net_task_cancel(&gone.task);
	UNTIL(rig, second.ran_at != 0);
	assert_int_equal(first.ran_at, second.ran_at);
	assert_true(first.ran_at >= due);
	UNTIL(rig, next.ran_at != 0);
	assert_true(next.ran_at >= due + NET_TOGETHER);
	assert_int_equal(gone.ran_at, 0);
	assert_true(work_put_off(&second, rig->loop, net_together_at(rig->loop, 1, 0)));
	UNTIL(rig, second.ran_at != 0); /* and again */
}

static void the_more_may_wait_the_further_moments_are_apart(void **state)
{
	static const struct {
		uint32_t many;
		nsec_t apart;
	} rows[] = {
		{ FEW + 1, NET_TOGETHER },    { 672, NET_TOGETHER },
		{ 673, 2 * NET_TOGETHER },    { 1344, 2 * NET_TOGETHER },
		{ 1345, 4 * NET_TOGETHER },   { 10000, 16 * NET_TOGETHER },
		{ 10753, NET_TOGETHER_MOST }, { 1000000, NET_TOGETHER_MOST },
	};
	struct rig *rig = *state;
	nsec_t last = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		many_may_wait(rig, rows[i].many);
		for (uint32_t group = 0; group < 70; group++) {
			const nsec_t at = net_together_at(rig->loop, group, last);
			assert_int_equal(net_together_at(rig->loop, group, at + 1),
					 at + rows[i].apart);
		}
		/* A moment of many is one of fewer, too. */
		const nsec_t at = net_together_at(rig->loop, 5, last);
		many_may_wait(rig, FEW + 1);
		assert_int_equal(net_together_at(rig->loop, 5, at), at);
		last = at;
	}
	many_may_wait(rig, 0);
}

/* The groups share the time: no tick has more than its part of them. */
static void groups_have_moments_of_their_own(void **state)
{
	struct rig *rig = *state;
	uint32_t at_tick[64] = { 0 };

	many_may_wait(rig, 1000000);
	const nsec_t start = net_together_at(rig->loop, 0, 0);
	for (uint32_t group = 0; group < 640; group++) {
		const nsec_t at = net_together_at(rig->loop, group, start);
		assert_true(at >= start && at < start + NET_TOGETHER_MOST);
		at_tick[(at - start) / (NET_TOGETHER / 2)]++;
	}
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(at_tick[i], 10);
	many_may_wait(rig, 0);
}

static void what_is_too_far_off_is_not_put_off(void **state)
{
	struct rig *rig = *state;
	struct work work;

	many_may_wait(rig, 1000000);
	const nsec_t next = net_together_at(rig->loop, 7, 0);
	assert_true(work_put_off(&work, rig->loop, next + NET_TOGETHER_MOST));
	net_task_cancel(&work.task);
	assert_false(work_put_off(&work, rig->loop, next + 2 * NET_TOGETHER_MOST));
	assert_null(work.task.prev);
	many_may_wait(rig, 0);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_go_both_ways, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_left_comes_before_what_follows, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_taken_outlives_the_connection, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(much_comes_as_a_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_is_told_behind_the_last_bytes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_pauses_hears_nothing_and_misses_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_the_socket_does_not_take_goes_later, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_the_peer_said_before_a_write_failed_is_heard,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_closed_hears_nothing_of_its_batch,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refusal_is_told_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_few_bring_does_not_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_many_bring_is_read_together, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_is_in_a_hurry_again_does_not_wait, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_hurries_now_and_then_misses_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_is_left_alone_does_not_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(where_few_may_wait_nothing_is_put_off, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_many_do_it_is_done_in_one_turn_for_a_group,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_more_may_wait_the_further_moments_are_apart,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(groups_have_moments_of_their_own, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_too_far_off_is_not_put_off, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
