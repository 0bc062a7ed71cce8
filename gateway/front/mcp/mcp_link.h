/* mcp_link.h - what leads to a session's server: its token, opened, and what follows from it. */
#ifndef GATEWAY_FRONT_MCP_MCP_LINK_H
#define GATEWAY_FRONT_MCP_MCP_LINK_H

#include "codec/base/sha256.h"
#include "codec/json/json_loose.h"
#include "gateway/base/config.h"
#include "gateway/front/mcp/mcp_token.h"
#include "gateway/state/mcp_channel.h"

struct mcp_link {
	struct mcp_token
		token;     /* upstream_id empty: there is no session; revision empty: not known */
	uint32_t series;   /* of the server's metrics */
	uint32_t endpoint; /* of the server's, in the configuration in use */
	/* What the server gets as Authorization instead of the gateway's own (auth: client); absent: nothing. A secret,
	 * which is nowhere but in this process's memory. */
	struct slice authorization;
	struct slice tenant,
		client; /* the caller's names, for the log; client absent: its key has none */
	/* The key that the client has shown for a stream that may be silent for hours; only then. */
	uint8_t key[SHA256_BYTES];
	bool keyed;
	struct slice
		modern_head; /* of a bridged session's request: header lines in place of the client's; absent: none */
	bool sse; /* HTTP+SSE of 2024-11-05: token.upstream_id is where messages are posted */
	struct mcp_who who;     /* of the session; its key is none where there is none */
	struct state_key calls; /* what its open calls are found by (cancel.h) */
};

static inline bool mcp_link_has_session(const struct mcp_link *link)
{
	return link->token.upstream_id.len != 0;
}

/* Whether samplings of the session are taken here: answered, or refused with -1. */
static inline bool mcp_link_takes(const struct mcp_link *link)
{
	return link->token.mode != MCP_MODE_RELAY;
}

/* Whether the client may have declared that it samples, which its server was not told: then nothing passes that it could
 * take for a sampling. */
static inline bool mcp_link_hides(const struct mcp_link *link)
{
	return link->token.mode == MCP_MODE_FORCE || link->token.mode == MCP_MODE_REFUSE;
}

/* Whether they are answered. */
static inline bool mcp_link_answers(const struct mcp_link *link)
{
	return link->token.mode == MCP_MODE_BACKFILL || link->token.mode == MCP_MODE_FORCE;
}

/* Fills `who` and `calls` from the token. */
void mcp_link_who(struct mcp_link *link);

/* The revision by which samplings are read and answered; the newest with sessions where the token's is not known. */
enum revision mcp_link_revision(const struct mcp_link *link);

/* A copy with texts of its own in `into`. False: no memory. */
MUST_USE bool mcp_link_copy(struct mcp_link *out, const struct mcp_link *link, struct arena *into);

/* Finds the endpoint that the session lives at. False: the server has it no more. */
MUST_USE bool mcp_link_place(struct mcp_link *link, const struct mcp_server *server);

/* What a string of plain ASCII means; absent: it is none, or has escapes. */
struct slice mcp_plain(struct slice value);

/* What names an endpoint in a token. */
struct mcp_digest mcp_endpoint_digest(const struct mcp_server *server, uint32_t endpoint);

#endif
