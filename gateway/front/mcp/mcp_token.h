/* mcp_token.h - what a client keeps for the gateway: its session (`Mcp-Session-Id`, `?s=` of HTTP+SSE) and the state of
 * a round of 2026-07-28 (`requestState`).
 *
 * mcp_*_seal and mcp_*_open are what a front uses. The packed forms are pure: bytes that begin with a version, bounded,
 * and strict (one form for each value, nothing behind the end). The server's name is not packed: it is part of the
 * purpose, so a text that was sealed for one server does not open for another. */
#ifndef GATEWAY_FRONT_MCP_MCP_TOKEN_H
#define GATEWAY_FRONT_MCP_MCP_TOKEN_H

#include "codec/mcp/sampling.h"
#include "gateway/identity/caller.h"
#include "gateway/identity/seal.h"
#include "gateway/state/state.h"
#include "gateway/upstream/upstream.h"

enum {
	MCP_DIGEST_BYTES = 16,
	MCP_UPSTREAM_ID_MAX =
		512, /* of an upstream's session id; a longer one is refused with 502 */
	MCP_REVISION_MAX = 32,
	MCP_SERVER_NAME_MAX = 64,
	MCP_DECLARED_MAX = 400, /* of what a bridged session keeps of its client's initialize */
	MCP_METHOD_MAX = 64,
	/* A packed token: its text has 1,024 characters at most. */
	MCP_TOKEN_MAX = 1024 * 3 / 4 - SEAL_OVERHEAD,
};

/* The first 16 bytes of a SHA-256. */
struct mcp_digest {
	uint8_t at[MCP_DIGEST_BYTES];
};

static inline bool mcp_digest_eq(const struct mcp_digest *a, const struct mcp_digest *b)
{
	return memcmp(a->at, b->at, sizeof(a->at)) == 0;
}

/* Of one text: an upstream credential (Sluice-Upstream-Authorization), params, an endpoint's URL. */
struct mcp_digest mcp_digest_of(struct slice text);

/* Whose a session is: the tenant, the name of the key or certificate, and for a token its issuer, `sub` and client
 * (caller.subject). A name that is absent makes another principal than an empty one. */
struct mcp_digest mcp_principal_of(const struct caller *caller);

/* The address of the upstream that a session lives at. */
struct mcp_pin {
	uint8_t family; /* 0: none; 4, 6 */
	uint16_t port;
	uint8_t at[16]; /* 4 of them where the family is 4; the rest is 0 */
};
/* No pin for what is neither IPv4 nor IPv6, and for IPv6 with a scope, which means nothing at another gateway. */
struct mcp_pin mcp_pin_of(const struct upstream_address *address);
/* False: there is no pin. */
MUST_USE bool mcp_pin_address(const struct mcp_pin *pin, struct upstream_address *out);

/* How the session began: part of what is sealed, so only append. enum mcp_sampling_mode as it came out for this client:
 * MCP_BACKFILL is one whose samplings the gateway answers, MCP_RELAY one that declares sampling itself. */
enum mcp_mode { MCP_MODE_BACKFILL, MCP_MODE_FORCE, MCP_MODE_RELAY, MCP_MODE_REFUSE, MCP_MODES };

/* What a token is good for: `Mcp-Session-Id`, or `?s=` of a HTTP+SSE session. */
enum mcp_token_kind { MCP_TOKEN_SESSION, MCP_TOKEN_SSE };

struct mcp_token {
	struct slice server; /* its name; not packed */
	struct slice
		upstream_id; /* the upstream's session id; of HTTP+SSE its endpoint's path and query */
	struct mcp_digest tenant; /* of the caller (its limit_key) */
	struct mcp_digest principal;
	struct mcp_digest endpoint; /* of the URL of the server's endpoint; all zero: none */
	struct mcp_digest
		authorization; /* of Sluice-Upstream-Authorization; all zero: none was sent */
	struct mcp_pin pin;
	struct slice
		revision; /* as negotiated, also one that the gateway does not know; empty: not known yet */
	enum mcp_mode mode;
	bool tools; /* sampling.tools was declared to the server */
	bool own_get; /* the gateway holds the session's upstream GET, and serves the client's from it */
	/* The server has no sessions and is spoken to in 2026-07-28: upstream_id is the gateway's own, and `declared` what
	 * the client has said of itself (mcp_bridge_text.h). */
	bool bridged;
	struct slice declared; /* of a bridged session only */
	uint64_t issued_s;     /* seconds since 1970 */
};

/* The revision as the codec knows it; false: it does not, and the session is passed without backfill. */
MUST_USE bool mcp_token_revision(const struct mcp_token *token, enum revision *out);

/* The session's key in cancels, channels and the store: of tenant, server and upstream id. */
struct state_key mcp_token_key(const struct mcp_token *token);

/* Of a request in that session by the canonical text of its JSON-RPC id: one that the server made, or the client. */
struct state_key mcp_asked_key(const struct state_key *session, struct slice id);
struct state_key mcp_call_key(const struct state_key *session, struct slice id);

/* Packs into `room`, of MCP_TOKEN_MAX bytes; the length. 0: a part is longer than its bound. */
MUST_USE size_t mcp_token_pack(const struct mcp_token *token, char room[MCP_TOKEN_MAX]);
/* The token that was packed; its slices point into `packed`, and `server` is left alone. False: it is none, and *out is
 * undefined. */
MUST_USE bool mcp_token_unpack(struct slice packed, struct mcp_token *out);

/* The text for the client, in `into`. ERR_BODY_TOO_LARGE: a part is longer than its bound; ERR_BUSY: no memory. */
MUST_USE enum err mcp_token_seal(struct seal *seal, enum mcp_token_kind kind,
				 const struct mcp_token *token, struct arena *into,
				 struct slice *text);
/* The token of a text from a client of `server`; its slices lie in `into`, and out->server is `server`. The caller
 * compares tenant and principal. ERR_SESSION_UNKNOWN: the text is no token of that kind and server (404); ERR_BUSY. */
MUST_USE enum err mcp_token_open(struct seal *seal, enum mcp_token_kind kind, struct slice server,
				 struct slice text, struct arena *into, struct mcp_token *out);

/* The state of a round that the gateway sealed (2026-07-28). */
struct mcp_state {
	struct slice server; /* not packed */
	struct mcp_digest tenant, principal;
	struct slice method;      /* at most MCP_METHOD_MAX bytes */
	struct mcp_digest params; /* of params without _meta, inputResponses and requestState */
	uint64_t expires_s;       /* seconds since 1970 */
	struct slice
		upstream;     /* the upstream's requestState, raw JSON text; absent: it sent none */
	struct slice answers; /* to the round's samplings, in the front's own form; absent: none */
};

/* As with tokens: into `room`, of `size` bytes. Sealing bounds the sum of all parts by SEAL_PLAIN_MAX. */
MUST_USE size_t mcp_state_pack(const struct mcp_state *state, char *room, size_t size);
MUST_USE bool mcp_state_unpack(struct slice packed, struct mcp_state *out);
MUST_USE enum err mcp_state_seal(struct seal *seal, const struct mcp_state *state,
				 struct arena *into, struct slice *text);
/* ERR_SESSION_UNKNOWN: the text is no state that was sealed for that server (400, -32602). The caller compares the
 * rest, and the time. */
MUST_USE enum err mcp_state_open(struct seal *seal, struct slice server, struct slice text,
				 struct arena *into, struct mcp_state *out);

#endif
