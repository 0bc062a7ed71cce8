/* command_server.h - what a configuration says of an MCP server, to standard output: for `explain` and `check`. */
#ifndef GATEWAY_COMMAND_COMMAND_SERVER_H
#define GATEWAY_COMMAND_COMMAND_SERVER_H

#include "gateway/base/config.h"

struct walk;

/* Where the server is, who answers what it samples, how it is called, how many of the tenants may use it. */
void server_print(const struct config *config, const struct mcp_server *server);

/* Whether a tenant may use it, with which models, and what the server is told of that. `only` NULL: a row for each
 * tenant that may. */
void server_print_users(const struct config *config, const struct mcp_server *server,
			const struct tenant *only);

/* All of that as one JSON value. `only` NULL: the tenants that may use it. */
void server_print_json(struct walk *walk, const struct mcp_server *server,
		       const struct tenant *only);

#endif
