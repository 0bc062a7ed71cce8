#include "gateway/process/supervisor_listen.h"

#include "codec/base/attr.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 2, KEPT_AT_MOST = 512 << 10 };

/* What the kernel grants of `wanted` bytes, which is twice what it is asked for. */
static int granted(int wanted)
{
	FILE *file = fopen("/proc/sys/net/core/rmem_max", "re");
	int max = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &max), 1);
	(void)fclose(file);
	return wanted / 2 < max ? wanted : max * 2;
}

static int option(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &len), 0);
	return value;
}

/* What was connected to a listening socket. */
static int accepted(int listening, int *caller)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &len), 0);
	*caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(*caller >= 0);
	assert_int_equal(connect(*caller, (const struct sockaddr *)&address, len), 0);
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* By itself the kernel starts at net.ipv4.tcp_rmem and grows to megabytes; a size that was set stays. */
static void what_nobody_has_read_is_bounded_on_every_connection(void **state)
{
	const struct listen_address listen = { .text = SLICE("127.0.0.1:0"),
					       .host = SLICE("127.0.0.1") };
	const struct config config = { .listen = &listen, .listen_count = 1, .workers = WORKERS };
	struct supervisor_sockets sockets;

	(void)state;
	assert_true(supervisor_listen(&sockets, &config));
	for (size_t i = 0; i < WORKERS; i++) {
		int caller, fd = accepted(sockets.listen_fds[i], &caller);
		assert_int_equal(option(fd, SO_RCVBUF), granted(KEPT_AT_MOST));
		(void)close(fd);
		(void)close(caller);
	}
	supervisor_unlisten(&sockets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_has_read_is_bounded_on_every_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
