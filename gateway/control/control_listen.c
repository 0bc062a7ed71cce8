#include "gateway/control/control_listen.h"

#include "codec/base/attr.h"

#include <limits.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

/* On a listening TCP socket a filter sees segments from their TCP header on; byte 13 holds the flags. */
enum { TCP_FLAGS_AT = 13, TCP_SYN = 0x02, TCP_ACK = 0x10, PASS_ALL = 0x7fffffff };

/* Linux wants CAP_NET_ADMIN for a filter on a TCP socket since commit 5d39580f68e6 (2026), which stable
 * kernels have taken over: filters could tell others' sequence numbers. */
static bool drop_first_segments(int fd)
{
	static struct sock_filter no_syn[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, TCP_FLAGS_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TCP_SYN | TCP_ACK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_SYN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, PASS_ALL),
	};
	const struct sock_fprog program = { .len = COUNT_OF(no_syn), .filter = no_syn };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* Bound to an interface that there is not, a socket is found for no new connection. Handshakes under way
 * are found by themselves, their connections get the interface they came by, and accept goes on. Nobody
 * needs a capability for it. */
static bool refuse_first_segments(int fd)
{
	const int nowhere = INT_MAX;

	return setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere, sizeof(nowhere)) == 0;
}

void control_listen_hold(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!drop_first_segments(fds[i]) && !refuse_first_segments(fds[i])) {
			perror("sluice: new connections cannot be held off");
			return;
		}
}

void control_listen_end(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (shutdown(fds[i], SHUT_RD) != 0)
			perror("sluice: a socket goes on listening until the end");
}
