/* control.h - the libevent thread: signals, reload, DNS, admin listener, log writer, watchdog, drain.
 *
 * Runs on the server process's first thread. It talks to workers by messages and reads what they
 * publish; no request waits for it. */
#ifndef GATEWAY_CONTROL_CONTROL_H
#define GATEWAY_CONTROL_CONTROL_H

#include "gateway/worker/worker.h"

struct control_args {
	const char *config_path;
	struct config *config;         /* the first one, number 1; control's own from now on */
	struct worker *const *workers; /* running */
	struct log_ring *const *rings; /* one per worker */
	uint32_t worker_count;
	struct metrics *metrics;
	struct state_memory *state; /* of the process */
	struct limit_table *limits;
	struct mcp_channels *channels; /* sessions with MCP servers, of the process */
	struct tls_tickets *tickets;   /* the supervisor's; new keys are made here */
	const int *listen_fds;         /* of all workers */
	size_t listen_count;
	int admin_fd, admin_socket_fd; /* -1: none */
	int report_fd;                 /* server_report.h */
	int reader_fd;                 /* config_reader.h; -1: files are read by this process */
	uint64_t restarts;
};

/* Serves until the parent's SIGTERM or SIGINT (blocked by the caller in all threads) and the drain after it;
 * anybody else's are reported to the parent.
 * Returns the exit code: 0 after a drain, 1 when it could not begin. The log is written out. */
int control_run(const struct control_args *args);

#endif
