/* server.h - the server process: everything that can crash, apart from the supervisor that cannot. */
#ifndef GATEWAY_PROCESS_SERVER_H
#define GATEWAY_PROCESS_SERVER_H

#include "gateway/base/config.h"
#include "gateway/base/seal_secret.h"

struct server_args {
	const char *config_path;     /* for reloads */
	struct config *config;       /* the server's own from now on */
	int limits_fd;               /* the limit table */
	struct tls_tickets *tickets; /* the supervisor's, shared */
	const struct seal_secret
		*seal_secret;  /* likewise: the same for all servers that it makes */
	const int *listen_fds; /* [worker * listen_count + address] */
	size_t listen_count;
	int admin_fd, admin_socket_fd; /* -1: none */
	int report_fd;                 /* server_report.h */
	int reader_fd;     /* config_reader.h; -1: this process reads its files itself */
	uint64_t restarts; /* servers that died before this one */
};

/* Runs in a process of its own, with SIGTERM, SIGINT, SIGHUP blocked. Returns the exit code: 0 after a
 * drain, 1 when it could not start. Threads may still run then: the caller must end the process by
 * _exit. */
int server_run(const struct server_args *args);

#endif
