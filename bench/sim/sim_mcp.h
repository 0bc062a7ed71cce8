/* sim_mcp.h - an MCP server in the simulator: POST, GET and DELETE of /mcp, as of 2025-11-25.
 *
 * initialize gives a session, of which nothing is remembered; notifications and responses get 202; a GET stays open and
 * silent. tools/call does what the tool's name says: "events" answers by a stream of two notifications and the response,
 * "sample" asks for a sampling on its stream and answers when that is answered, all others answer as JSON. The text of an
 * answer has `size` bytes, and `pace` is between two events (sim_spec.h).
 *
 * GET /mcp/samplings: how long each answered sampling took since this was asked last, a line each in microseconds. A
 * sampling and its answer meet on one thread: --threads 1. */
#ifndef BENCH_SIM_SIM_MCP_H
#define BENCH_SIM_SIM_MCP_H

#include <stdbool.h>

#include "bench/sim/sim_buf.h"

struct sim_conn;

enum { SIM_MCP_ASKING = 4096 };

/* Of a loop; {0} at first. */
struct sim_mcp {
	struct sim_conn *asking[SIM_MCP_ASKING]; /* by number: its sampling has no answer yet */
	struct sim_buf took;                     /* what GET /mcp/samplings shows */
};

/* Whether the server has that path (without a query). */
bool sim_mcp_has(struct slice path);

/* Answers the request of `conn`. False: the answer is not complete, and conn->phase says what it waits for. */
bool sim_mcp_take(struct sim_conn *conn, struct slice path);

/* The same when the timer of such an answer is due. */
bool sim_mcp_due(struct sim_conn *conn);

/* The connection goes. */
void sim_mcp_forget(struct sim_conn *conn);

#endif
