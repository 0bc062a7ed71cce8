/* descriptors.h - how the open files of the server process are shared out: callers, providers, MCP servers.
 *
 * A caller's connection that finds no descriptor waits in the kernel's queue, a call to a provider or an MCP server fails:
 * so the number of callers is what gives way where both do not fit. */
#ifndef GATEWAY_WORKER_DESCRIPTORS_H
#define GATEWAY_WORKER_DESCRIPTORS_H

#include "gateway/base/config.h"

struct descriptors {
	uint64_t beside; /* loops, listeners, admin, DNS: whatever else there is */
	uint64_t
		providers; /* as many connections to providers and MCP servers as there may be, or as callers */
	uint64_t
		sessions; /* further ones to MCP servers: each session may hold one, with no caller there */
	uint32_t callers; /* connections of callers that fit beside those, at least 1 */
};

/* Shares out `files`, a limit on open files. Pure. */
struct descriptors descriptors_share(const struct config *config, uint64_t files);

/* Connections of callers that this process has room for, limits.connections at most. */
uint32_t descriptors_callers(const struct config *config);

/* Raises this process's soft limit to the hard one; children inherit it. Where limits.connections does
 * not fit all the same, a line on `problems` says what will be instead. */
void descriptors_raise(const struct config *config, FILE *problems);

#endif
