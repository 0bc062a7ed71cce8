/* sim_conn.h - one connection of the simulator: reads requests, answers them in order.
 *
 * At most one request is in work; while it waits, nothing is read, so its slices stay where they
 * are, and a peer that goes away is noticed by EPOLLRDHUP. */
#ifndef BENCH_SIM_SIM_CONN_H
#define BENCH_SIM_SIM_CONN_H

#include "bench/sim/sim_answer.h"
#include "bench/sim/sim_http.h"
#include "bench/sim/sim_io.h"
#include "bench/sim/sim_loop.h"

enum sim_conn_phase {
	SIM_CONN_READING,   /* the next request */
	SIM_CONN_WAITING,   /* before the answer's first byte */
	SIM_CONN_STREAMING, /* between two events */
	SIM_CONN_DRIBBLING, /* between two bytes */
	SIM_CONN_HANGING,   /* for ever */
	SIM_CONN_CLOSING,   /* when everything is written */
};

struct sim_conn {
	struct sim_loop *loop;
	struct sim_io io;
	enum sim_conn_phase phase;
	enum sim_io_end end; /* how to close */
	uint32_t watched;    /* epoll events */
	uint64_t id, requests;
	struct sim_conn *prev, *next;
	nsec_t due;
	size_t timer_at; /* place in the heap; SIZE_MAX: no timer */

	struct sim_buf in, out;
	size_t out_at; /* written so far */
	bool said_continue;
	bool paused; /* there are bytes, but a request is in work or the peer does not read */

	/* the request in work, slices into `in` */
	struct sim_http http;
	struct sim_ask ask;
	struct sim_spec spec;
	struct sim_quota quota;
	uint64_t number, step;
	bool mcp;         /* it is for the MCP server */
	nsec_t asked;     /* when its sampling was, of an MCP server's tool */
	char problem[96]; /* why it is refused, where that names a part of it */
};

/* Takes over `fd`, also when it fails. */
void sim_conn_new(struct sim_loop *loop, int fd);

/* epoll reported `events`. May free the connection. */
void sim_conn_event(struct sim_conn *conn, uint32_t events);

/* The timer is due. May free the connection. */
void sim_conn_due(struct sim_conn *conn);

void sim_conn_free(struct sim_conn **conn);

#endif
