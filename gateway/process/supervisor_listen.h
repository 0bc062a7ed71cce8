/* supervisor_listen.h - the listening sockets: made once, kept open as long as the supervisor lives.
 *
 * Each worker has a SO_REUSEPORT socket of its own per address, so that connections queued at a server
 * that dies are accepted by the next one. Each address is bound once without SO_REUSEPORT before, so
 * that one in use is an error instead of a share of somebody else's traffic. */
#ifndef GATEWAY_PROCESS_SUPERVISOR_LISTEN_H
#define GATEWAY_PROCESS_SUPERVISOR_LISTEN_H

#include "gateway/base/config.h"

struct supervisor_sockets {
	int *listen_fds; /* [worker * listen_count + address] */
	size_t listen_count;
	uint32_t workers;
	int admin_fd, admin_socket_fd; /* -1: not configured */
	struct supervisor_path {
		char at[108];
	} * paths; /* of the UNIX sockets, one per address and the admin's, to be removed at the end; or "" */
};

/* All of them, listening and non-blocking; or false after a line on stderr that names the setting, the
 * address and the reason. */
MUST_USE bool supervisor_listen(struct supervisor_sockets *sockets, const struct config *config);

/* Closes them and removes the UNIX socket's file. */
void supervisor_unlisten(struct supervisor_sockets *sockets);

#endif
