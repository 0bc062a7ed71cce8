/* mcp_opened.h - tokens of sessions that a worker has opened before: nearly every message comes with one.
 *
 * Saves what opening a token costs, and the digests that follow from it. A token is found again by the caller, and for the
 * server, that it was opened for: each is compared as it is, so that the principal is the same. What can change while a
 * token lives (whether the session is over, whether the endpoint is still there) is asked of others each time. One thread;
 * a place for each token by its last characters, so that a new one drives out at most one. */
#ifndef GATEWAY_FRONT_MCP_MCP_OPENED_H
#define GATEWAY_FRONT_MCP_MCP_OPENED_H

#include "gateway/front/mcp/mcp_link.h"
#include "gateway/identity/caller.h"

struct mcp_opened;

/* NULL: no memory. What is not used takes none. */
struct mcp_opened *mcp_opened_new(void);
void mcp_opened_free(struct mcp_opened *opened);
/* All are forgotten: tokens are sealed with other secrets from now on. */
void mcp_opened_forget(struct mcp_opened *opened);

/* What a client has shown. */
struct mcp_shown_token {
	enum mcp_token_kind kind;
	struct slice server, text;
	const struct caller *caller;
};

/* Sets link->token, with texts in `into` and token.server as it was shown, and link->who. False: it is not there, or there
 * is no memory; *link is unchanged. */
MUST_USE bool mcp_opened_find(struct mcp_opened *opened, const struct mcp_shown_token *shown,
			      struct arena *into, struct mcp_link *link);
/* Remembers what `shown` was opened to, for that caller's principal; texts that are longer than usual are not. */
void mcp_opened_add(struct mcp_opened *opened, const struct mcp_shown_token *shown,
		    const struct mcp_link *link);

#endif
