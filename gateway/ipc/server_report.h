/* server_report.h - what the server process tells its supervisor, over a pair of sockets.
 *
 * That it is ready, and each configuration it has taken over: the texts of all its files, in a memfd
 * that is sealed and passed along, so that the next server can begin with the same one whatever is on
 * disk by then. Messages are few and small; neither side waits for the other. */
#ifndef GATEWAY_IPC_SERVER_REPORT_H
#define GATEWAY_IPC_SERVER_REPORT_H

#include "gateway/base/config.h"

enum report_kind {
	REPORT_READY = 1, /* the server serves */
	REPORT_CONFIG,    /* it has taken over a configuration */
	REPORT_STOP,      /* somebody told it alone to end */
};

struct report {
	uint32_t kind;
	char digest[17]; /* of REPORT_CONFIG */
	nsec_t drain;    /* of REPORT_CONFIG: how long a server with it may take to leave */
	int texts_fd;    /* of REPORT_CONFIG: the receiver's now; else -1 */
};

/* A pair for one server: [0] the supervisor's, [1] the server's. False with errno. */
MUST_USE bool report_pair(int fds[2]);

/* Server's side. False with errno: the supervisor did not get it. */
MUST_USE bool report_ready(int fd);
MUST_USE bool report_config(int fd, const struct config *config);
MUST_USE bool report_stop(int fd);

/* Supervisor's side: the next message, false when there is none (or the server is gone). */
MUST_USE bool report_receive(int fd, struct report *out);

/* ---- texts of a configuration in a memfd ---- */

/* A sealed memfd, or -1 with errno. */
int report_texts_save(const struct config_file *files, uint32_t count);

struct report_texts {
	struct config_file *files; /* slices of the mapping */
	uint32_t count;
	void *map;
	size_t size;
};
/* False with errno; EBADMSG: not what report_texts_save wrote. The fd stays the caller's. */
MUST_USE bool report_texts_load(int fd, struct report_texts *out);
void report_texts_free(struct report_texts *texts);

#endif
