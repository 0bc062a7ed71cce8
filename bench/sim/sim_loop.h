/* sim_loop.h - one thread of the simulator: a listener, an epoll loop, timers.
 *
 * Every thread has its own listener on the same port (SO_REUSEPORT); connections stay on theirs. */
#ifndef BENCH_SIM_SIM_LOOP_H
#define BENCH_SIM_SIM_LOOP_H

#include "bench/sim/sim_mcp.h"
#include "bench/sim/sim_shared.h"
#include "codec/base/clock.h"

struct sim_conn;

struct sim_loop {
	struct sim_shared *shared;
	int epoll_fd, listen_fd, stop_fd;
	nsec_t now;     /* when the loop last woke */
	bool accepting; /* false after running out of descriptors, until a connection ends */

	struct sim_conn **timers; /* binary heap by conn->due */
	size_t timer_count, timer_cap;

	struct sim_conn *conns;        /* all of them */
	struct sim_buf scratch, input; /* for answers */
	struct sim_spec spec;          /* the default behaviour, as of `spec_version` */
	uint64_t spec_version;
	struct sim_mcp mcp;
};

/* Takes over `listen_fd`, which listens and does not block. Ends the program when the system has
 * no more descriptors: nothing runs yet. */
void sim_loop_init(struct sim_loop *loop, struct sim_shared *shared, int listen_fd);

/* Until sim_loop_stop; then closes all connections. */
void sim_loop_run(struct sim_loop *loop);

/* From any thread. */
void sim_loop_stop(struct sim_loop *loop);

void sim_loop_fini(struct sim_loop *loop);

/* sim_conn_due(conn) is called at `due`, or sooner if this is called again with less; one timer per
 * connection. */
void sim_loop_at(struct sim_loop *loop, struct sim_conn *conn, nsec_t due);
void sim_loop_forget(struct sim_loop *loop, struct sim_conn *conn);

/* Events that epoll reports for the connection; `change` false: for the first time. */
void sim_loop_watch(struct sim_loop *loop, struct sim_conn *conn, uint32_t events, bool change);

/* A connection ended, there is a descriptor again. */
void sim_loop_freed(struct sim_loop *loop);

#endif
