/* command_walk_parts.h - what the files of `explain` and `translate` share: private to command_*.c. */
#ifndef GATEWAY_COMMAND_COMMAND_WALK_PARTS_H
#define GATEWAY_COMMAND_COMMAND_WALK_PARTS_H

#include "gateway/command/explain_log.h"
#include "gateway/flow/flow.h"
#include "gateway/front/rpc/rpc.h"

struct walk {
	const char *config_path, *tenant_id, *server;
	const char *log; /* a log line, or "-": standard input has it; NULL: a request is walked */
	enum revision revision;
	bool revision_said; /* by an option */
	bool json;
	struct config *config;
	const struct tenant *tenant;
	const struct mcp_server *mcp_server; /* of that name; NULL: the name is of callers alone */
	struct slice body;
	struct http_incoming in; /* the call's */
	struct rpc_call call;    /* its arena is also the command's */
	struct logged logged;    /* of a log line */
	struct arena_pool pool;
	struct json_work *work;
	struct health *health; /* nothing is known of any endpoint */
	struct health_view *view;
	struct flow flow;
	struct sampling_request asked; /* as it was sent: before policy changed anything */
	bool refused;
};

/* ---- command_print.c: to standard output ---- */
void walk_print_gather(const struct gather *g);
void walk_print_slice(struct slice s);
/* As a JSON string; null for the absent slice. */
void walk_print_string(struct walk *walk, struct slice plain);
void walk_print_adjustments(adjust_set set, const char *quote, const char *between);
void walk_print_answer(const struct walk *walk);

/* ---- command_explain.c ---- */
/* The decision about the walked request, or about that of the log line. */
void walk_explain(struct walk *walk);

#endif
