/* test_fd_message.c - a message and its descriptor arrive whole or not at all. */
#include "gateway/base/fd_message.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void open_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(int pair[2])
{
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void a_message_arrives_and_then_there_is_none(void **state)
{
	uint64_t sent = 0x0123456789abcdef, got = 0;
	int pair[2], fd = 77;
	(void)state;

	open_pair(pair);
	assert_true(fd_message_send(pair[0], &sent, sizeof(sent), -1));
	assert_true(fd_message_receive(pair[1], &got, sizeof(got), &fd));
	assert_true(got == sent);
	assert_int_equal(fd, -1);
	assert_false(fd_message_receive(pair[1], &got, sizeof(got), &fd));
	assert_int_equal(errno, EAGAIN);
	close_pair(pair);
}

static void a_descriptor_is_the_receivers_own(void **state)
{
	uint64_t body = 1;
	int pair[2], fd, pipe_fds[2];
	struct stat sent, got;
	(void)state;

	open_pair(pair);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(fstat(pipe_fds[0], &sent), 0);
	assert_true(fd_message_send(pair[0], &body, sizeof(body), pipe_fds[0]));
	close_pair(pipe_fds);
	assert_true(fd_message_receive(pair[1], &body, sizeof(body), &fd));
	assert_int_equal(fstat(fd, &got), 0);
	assert_true(got.st_ino == sent.st_ino);
	(void)close(fd);
	close_pair(pair);
}

/* A sender that somebody has taken over leaves neither a half message nor an open file behind. */
static void a_message_of_another_size_is_dropped_with_its_descriptor(void **state)
{
	char bytes[32] = { 0 };
	int pair[2], fd = 77;
	(void)state;

	open_pair(pair);
	int next = dup(STDERR_FILENO);
	(void)close(next);
	for (size_t size = 8; size <= 32; size += 24) {
		assert_true(fd_message_send(pair[0], bytes, size, pair[0]));
		assert_false(fd_message_receive(pair[1], bytes, 16, &fd));
		assert_int_equal(errno, EBADMSG);
		assert_int_equal(fd, -1);
	}
	int after = dup(STDERR_FILENO);
	assert_int_equal(after, next);
	(void)close(after);
	assert_true(fd_message_send(pair[0], bytes, 16, -1));
	assert_true(fd_message_receive(pair[1], bytes, 16, &fd));
	close_pair(pair);
}

static void a_peer_that_is_gone_is_told_from_one_that_is_silent(void **state)
{
	uint64_t body = 1;
	int pair[2], fd;
	(void)state;

	open_pair(pair);
	(void)close(pair[0]);
	assert_false(fd_message_receive(pair[1], &body, sizeof(body), &fd));
	assert_int_equal(errno, ECONNRESET);
	assert_false(fd_message_send(pair[1], &body, sizeof(body), -1));
	assert_int_equal(errno, EPIPE);
	(void)close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_arrives_and_then_there_is_none),
		cmocka_unit_test(a_descriptor_is_the_receivers_own),
		cmocka_unit_test(a_message_of_another_size_is_dropped_with_its_descriptor),
		cmocka_unit_test(a_peer_that_is_gone_is_told_from_one_that_is_silent),
	};

	return cmocka_run_group_tests_name("fd_message", tests, NULL, NULL);
}
