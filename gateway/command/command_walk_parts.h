/* command_walk_parts.h - what the files of `explain` and `translate` share: private to command_*.c. */
#ifndef GATEWAY_COMMAND_COMMAND_WALK_PARTS_H
#define GATEWAY_COMMAND_COMMAND_WALK_PARTS_H

#include "gateway/command/explain_log.h"
#include "gateway/flow/flow.h"
#include "gateway/front/api/direct.h"
#include "gateway/front/rpc/rpc.h"

struct walk_front;

enum { WALK_HEADERS_MAX = 32 };

struct walk {
	const char *config_path, *tenant_id, *server;
	const struct walk_front *front; /* of a provider's own API; NULL: sampling/createMessage */
	const char *headers[WALK_HEADERS_MAX]; /* "NAME: VALUE" */
	size_t header_count;
	const char *log; /* a log line, or "-": standard input has it; NULL: a request is walked */
	enum revision revision;
	bool revision_said; /* by an option */
	bool json;
	struct config *config;
	const struct tenant *tenant;
	const struct mcp_server *mcp_server; /* of that name; NULL: the name is of callers alone */
	struct slice body;
	struct http_incoming in;   /* the call's */
	struct rpc_call call;      /* its arena is also the command's */
	struct direct_call direct; /* instead of it, with `front`; its caller is that of `call` */
	struct front_host host;    /* likewise */
	struct slice head;         /* likewise: the headers as they would come */
	struct logged logged;      /* of a log line */
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

/* ---- command_direct.c ---- */
/* The API of that name of the log; NULL: it is none of a provider. */
const struct walk_front *walk_front_named(struct slice name);
/* As walk_command does it for a sampling: walk->refused, and an answer where it is. */
void walk_run_direct(struct walk *walk, const struct flow_env *env,
		     const uint8_t random[SAMPLING_CHANCE_BYTES]);
/* Prepares walk_is_named for the request of a log line. */
void walk_log_front(struct walk *walk);
/* Whether only models of the name that was asked for, and of the API's format, may answer: *out. */
bool walk_is_named(struct walk *walk, struct bitset *out);
/* The outermost members that the provider gets otherwise than they were sent. */
void walk_print_changes(struct walk *walk, const char *quote, const char *between);

/* ---- command_explain.c ---- */
/* The decision about the walked request, or about that of the log line. */
void walk_explain(struct walk *walk);

#endif
