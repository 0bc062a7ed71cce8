/* Streams that stay open beside a pool's connections, and calls that are bound to one address. */
#include "tests/unit/gateway/upstream/upstream_rig.h"

#include <dirent.h>
#include <netinet/tcp.h>

#define EVENTS_HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"

static const char stream_head[] = EVENTS_HEAD "transfer-encoding: chunked\r\n\r\n",
		  event[] = "9\r\ndata: a\n\n\r\n", end[] = "0\r\n\r\n";

static void stream_init(struct tried *tried)
{
	tried_init(tried);
	tried->pieces = tried->extra.stream = true;
	tried->call.timeouts.idle = NSEC_NEVER;
}

/* Begins a stream over the server's connection `n`. */
static void stream_open(struct rig *rig, struct tried *tried, size_t n)
{
	stream_init(tried);
	tried_start(rig, tried);
	UNTIL(rig, server_reads(rig, n));
	server_sends(rig, n, stream_head);
	UNTIL(rig, tried->heads == 1);
}

/* ---- beside the pool's bound ------------------------------------------------------------------ */

static void streams_do_not_count_with_the_pools_connections(void **state)
{
	enum { PLACES = 2, STREAMS = 40 };
	static struct tried streams[STREAMS];
	struct rig rig;

	(void)state;
	rig_init(&rig, up, PLACES);
	for (size_t i = 0; i < STREAMS; i++) {
		stream_init(&streams[i]);
		tried_start(&rig, &streams[i]);
	}
	for (size_t i = 0; i < STREAMS; i++) { /* those that wait for a head do */
		UNTIL(&rig, server_reads(&rig, i));
		assert_in_range(rig_count(&rig).busy + rig_count(&rig).connecting, 1, PLACES);
		assert_in_range(rig.peer_count, i + 1, i + PLACES);
		server_sends(&rig, i, stream_head);
	}
	UNTIL(&rig, rig_count(&rig).streams == STREAMS);
	assert_int_equal(rig_count(&rig).busy + rig_count(&rig).queued, 0);
	exchange_ok(&rig, STREAMS); /* there is room for others */
	for (size_t i = 0; i < STREAMS; i++)
		server_sends(&rig, i, event);
	for (size_t i = 0; i < STREAMS; i++) {
		UNTIL(&rig, streams[i].piece_count != 0);
		assert_body(&streams[i], "data: a\n\n");
		tried_fini(&streams[i]);
	}
	assert_int_equal(rig_count(&rig).streams, 0);
	rig_fini(&rig);
}

static void an_answer_in_pieces_that_is_no_stream_counts(void **state)
{
	struct tried tried, next;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	tried_init(&tried);
	tried.pieces = true;
	tried_start(&rig, &tried);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0, stream_head);
	UNTIL(&rig, tried.heads == 1);
	assert_int_equal(rig_count(&rig).busy, 1);
	tried_init(&next);
	tried_start(&rig, &next);
	assert_int_equal(rig_count(&rig).queued, 1);
	tried_fini(&next);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void the_connection_of_a_stream_that_ends_well_is_kept_where_there_is_a_place(void **state)
{
	struct tried first, second;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	stream_open(&rig, &first, 0);
	stream_open(&rig, &second, 1);
	server_sends(&rig, 0, end);
	UNTIL(&rig, first.done);
	assert_int_equal(first.err, ERR_OK);
	assert_int_equal(rig_count(&rig).idle, 1);
	server_sends(&rig, 1, end);
	UNTIL(&rig, second.done);
	assert_int_equal(second.err, ERR_OK);
	assert_int_equal(rig_count(&rig).idle, 1); /* there was none for this one */
	assert_int_equal(rig_count(&rig).streams, 0);
	exchange_ok(&rig, 0);
	tried_fini(&first);
	tried_fini(&second);
	rig_fini(&rig);
}

static void enough_of_a_stream_leaves_a_connection_that_can_be_used(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	stream_open(&rig, &tried, 0);
	tried.enough = true;
	server_sends(&rig, 0, event);
	UNTIL(&rig, tried.done);
	assert_int_equal(rig_count(&rig).streams, 1); /* until the rest of it has come */
	server_sends(&rig, 0, end);
	UNTIL(&rig, rig_count(&rig).idle == 1);
	assert_int_equal(rig_count(&rig).streams, 0);
	exchange_ok(&rig, 0);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void a_reload_leaves_streams_alone(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	stream_open(&rig, &tried, 0);
	upstream_mark(up);
	upstream_sweep(up); /* nobody asks for the pool any more */
	server_sends(&rig, 0, event);
	UNTIL(&rig, tried.piece_count == 1);
	server_sends(&rig, 0, end);
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_OK);
	assert_int_equal(rig_count(&rig).idle, 0); /* as there is no pool */
	tried_fini(&tried);
	rig_fini(&rig);
}

/* ---- silence ---------------------------------------------------------------------------------- */

/* The other one tells that the time has passed. */
static void a_stream_may_be_silent_for_longer_than_any_timeout(void **state)
{
	struct tried stream, other;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	stream_init(&stream);
	stream.call.timeouts.first_byte = stream.call.timeouts.total = 60 * MSEC;
	tried_start(&rig, &stream);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0, stream_head);
	UNTIL(&rig, stream.heads == 1);
	stream_init(&other);
	other.call.timeouts.idle = 150 * MSEC;
	tried_start(&rig, &other);
	UNTIL(&rig, server_reads(&rig, 1));
	server_sends(&rig, 1, stream_head);
	UNTIL(&rig, other.done);
	assert_int_equal(other.err, ERR_PROVIDER_DOWN);
	assert_true(other.timed_out);
	assert_string_equal(other.detail, "the answer stalled for longer than the idle timeout");
	assert_false(stream.done);
	server_sends(&rig, 0, event);
	UNTIL(&rig, stream.piece_count == 1);
	tried_fini(&stream);
	tried_fini(&other);
	rig_fini(&rig);
}

/* `sent`: of the head. */
static void assert_head_is_late(const char *sent, const char *detail)
{
	struct tried tried;
	struct rig rig;

	rig_init(&rig, up, UINT32_MAX);
	stream_init(&tried);
	tried.call.timeouts.first_byte = 60 * MSEC;
	tried_start(&rig, &tried);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0, sent);
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_PROVIDER_DOWN);
	assert_true(tried.timed_out);
	assert_string_equal(tried.detail, detail);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void the_wait_for_the_whole_head_is_bounded_all_the_same(void **state)
{
	(void)state;
	assert_head_is_late("", "no answer byte within the first_byte timeout");
	assert_head_is_late("HTTP/1.1 100 Continue\r\n\r\n",
			    "no answer byte within the first_byte timeout");
	assert_head_is_late(EVENTS_HEAD,
			    "the answer's head was not whole within the first_byte timeout");
}

/* So that only a stream is allowed to be silent. */
static void head_may_change_the_timeouts(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	stream_init(&tried);
	tried.idle_from_head = 60 * MSEC;
	tried.call.timeouts.first_byte = NSEC_NEVER;
	tried_start(&rig, &tried);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0,
		     EVENTS_HEAD); /* what is due changes behind a head in two parts, too */
	net_turn(loop, 10 * MSEC);
	server_sends(&rig, 0, "\r\n");
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.heads, 1);
	assert_string_equal(tried.detail, "the answer stalled for longer than the idle timeout");
	tried_fini(&tried);
	rig_fini(&rig);
}

/* Our end of the server's connection `n`. */
static int client_of(const struct rig *rig, size_t n)
{
	struct sockaddr_in want, is;
	DIR *dir = opendir("/proc/self/fd");
	int found = -1;

	assert_non_null(dir);
	assert_int_equal(
		getpeername(rig->peers[n], (struct sockaddr *)&want, &(socklen_t){ sizeof(want) }),
		0);
	for (const struct dirent *entry; found == -1 && (entry = readdir(dir)) != NULL;) {
		const int fd = atoi(entry->d_name);
		if (getsockname(fd, (struct sockaddr *)&is, &(socklen_t){ sizeof(is) }) == 0 &&
		    is.sin_family == AF_INET && is.sin_port == want.sin_port &&
		    is.sin_addr.s_addr == want.sin_addr.s_addr && fd != rig->peers[n])
			found = fd;
	}
	assert_int_equal(closedir(dir), 0);
	assert_int_not_equal(found, -1);
	return found;
}

static int option(int fd, int level, int name)
{
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &(socklen_t){ sizeof(value) }), 0);
	return value;
}

static void the_kernel_looks_for_dead_peers_of_streams_only(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	exchange_ok(&rig, 0);
	const int fd = client_of(&rig, 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	stream_open(&rig, &tried, 0); /* the same connection */
	assert_int_not_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
	tried_fini(&tried);
	rig_fini(&rig);
}

/* ---- one address ------------------------------------------------------------------------------ */

static void pin_to(struct tried *tried, const struct rig *rig, size_t n)
{
	tried_init(tried);
	tried->extra.pin = &rig->addresses[n];
}

/* Over connection `n`, and to that address. */
static void exchange_pinned(struct rig *rig, size_t address, size_t n)
{
	struct tried tried;

	pin_to(&tried, rig, address);
	exchange(rig, &tried, n, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
	assert_int_equal(tried.err, ERR_OK);
	assert_int_equal(tried.peer.len, rig->addresses[address].len);
	assert_memory_equal(&tried.peer.address, &rig->addresses[address].address, tried.peer.len);
	tried_fini(&tried);
}

static void a_call_goes_to_the_address_that_it_is_bound_to(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	assert_int_equal(upstream_address_count(rig.pool), 1);
	upstream_set_addresses(rig.pool, rig.addresses, 2);
	assert_int_equal(upstream_address_count(rig.pool), 2);
	for (int times = 0; times < 3; times++) { /* each over its own kept connection */
		exchange_pinned(&rig, 1, 0);
		exchange_pinned(&rig, 0, 1);
	}
	upstream_set_addresses(rig.pool, rig.addresses, 2); /* known once more: nothing changes */
	exchange_pinned(&rig, 1, 0);
	exchange_pinned(&rig, 0, 1);
	assert_int_equal(rig.peer_count, 2);
	rig_fini(&rig);
}

static void an_idle_connection_to_another_address_makes_room(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	upstream_set_addresses(rig.pool, rig.addresses, 2);
	exchange_pinned(&rig, 0, 0);
	exchange_pinned(&rig, 1, 1);
	exchange_pinned(&rig, 0, 2);
	assert_int_equal(rig_count(&rig).idle, 1);
	rig_fini(&rig);
}

static void an_address_that_the_host_has_no_more_is_not_tried(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	upstream_set_addresses(rig.pool, rig.addresses, 2);
	exchange_pinned(&rig, 1, 0);
	upstream_set_addresses(rig.pool, rig.addresses, 1); /* though a connection to it is kept */
	pin_to(&tried, &rig, 1);
	tried_start(&rig, &tried);
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_PROVIDER_NO_ATTEMPT);
	assert_string_equal(tried.detail, "the address is not the host's any more");
	assert_true(tried.extra.gone);
	assert_false(tried.bytes_sent);
	tried_fini(&tried);

	struct sockaddr_in *port =
		(void *)&rig.addresses[1].address; /* nor one with another port */
	*port = *(const struct sockaddr_in *)(const void *)&rig.addresses[0].address;
	port->sin_port ^= 1;
	pin_to(&tried, &rig, 1);
	tried_start(&rig, &tried);
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_PROVIDER_NO_ATTEMPT);
	assert_int_equal(rig.peer_count, 1);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void an_address_that_goes_while_the_call_waits_is_not_tried_either(void **state)
{
	struct tried first, tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1);
	upstream_set_addresses(rig.pool, rig.addresses, 2);
	pin_to(&first, &rig, 0);
	tried_start(&rig, &first);
	pin_to(&tried, &rig, 1);
	tried_start(&rig, &tried);
	assert_int_equal(rig_count(&rig).queued, 1);
	upstream_set_addresses(rig.pool, rig.addresses, 1);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0, "HTTP/1.1 204 X\r\n\r\n");
	UNTIL(&rig, first.done && tried.done);
	assert_int_equal(first.err, ERR_OK);
	assert_int_equal(tried.err, ERR_PROVIDER_NO_ATTEMPT);
	assert_int_equal(rig_count(&rig).queued + rig_count(&rig).busy, 0);
	tried_fini(&first);
	tried_fini(&tried);
	rig_fini(&rig);
}

/* Not even after the host's addresses were found again meanwhile. */
static void no_other_address_is_tried_when_that_one_refuses(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	for (int again = 0; again < 2; again++) {
		rig_init(&rig, up, UINT32_MAX);
		upstream_set_addresses(rig.pool, rig.addresses, 2);
		assert_int_equal(close(rig.listeners[1]), 0);
		rig.listeners[1] = -1;
		pin_to(&tried, &rig, 1);
		tried_start(&rig, &tried);
		if (again != 0)
			upstream_set_addresses(rig.pool, rig.addresses, 2);
		UNTIL(&rig, tried.done);
		assert_int_equal(tried.err, ERR_PROVIDER_DOWN);
		assert_false(tried.bytes_sent || tried.extra.gone);
		assert_int_equal(rig.peer_count, 0);
		tried_fini(&tried);
		exchange_ok(&rig, 0); /* others try both */
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_do_not_count_with_the_pools_connections),
		cmocka_unit_test(an_answer_in_pieces_that_is_no_stream_counts),
		cmocka_unit_test(
			the_connection_of_a_stream_that_ends_well_is_kept_where_there_is_a_place),
		cmocka_unit_test(enough_of_a_stream_leaves_a_connection_that_can_be_used),
		cmocka_unit_test(a_reload_leaves_streams_alone),
		cmocka_unit_test(a_stream_may_be_silent_for_longer_than_any_timeout),
		cmocka_unit_test(the_wait_for_the_whole_head_is_bounded_all_the_same),
		cmocka_unit_test(head_may_change_the_timeouts),
		cmocka_unit_test(the_kernel_looks_for_dead_peers_of_streams_only),
		cmocka_unit_test(a_call_goes_to_the_address_that_it_is_bound_to),
		cmocka_unit_test(an_idle_connection_to_another_address_makes_room),
		cmocka_unit_test(an_address_that_the_host_has_no_more_is_not_tried),
		cmocka_unit_test(an_address_that_goes_while_the_call_waits_is_not_tried_either),
		cmocka_unit_test(no_other_address_is_tried_when_that_one_refuses),
	};

	return rig_begin() ? cmocka_run_group_tests_name("upstream_streams", tests, NULL, NULL) : 1;
}
