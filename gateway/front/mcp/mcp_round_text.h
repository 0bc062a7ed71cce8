/* mcp_round_text.h - what a call of 2026-07-28 and the answers to it become on their way, where the gateway may answer the
 * samplings that its server asks for (contract/mcp-proxy.md 7). Pure: texts in, texts out.
 *
 * A message is never written anew: all that is not named here stays as its author wrote it. */
#ifndef GATEWAY_FRONT_MCP_MCP_ROUND_TEXT_H
#define GATEWAY_FRONT_MCP_MCP_ROUND_TEXT_H

#include "codec/mcp/mcp_message.h"
#include "gateway/base/config.h"
#include "gateway/front/mcp/mcp_token.h"

enum { MCP_ENTRIES_MAX = 16 }; /* samplings of one round */

/* What is done about the samplings of one call. */
struct mcp_round_rule {
	bool follows;          /* answers are looked at; false: all passes, both ways */
	bool answers;          /* samplings are answered here; false: they are refused */
	bool cuts;             /* the client's own declaration is taken out */
	struct slice declared; /* becomes clientCapabilities.sampling; absent: nothing does */
};

/* `request`: what the client has sent. `granted`, `tools`: whether the plan has a model for this server, and tools. */
struct mcp_round_rule mcp_round_rule(enum mcp_sampling_mode mode, const struct mcp_message *request,
				     bool granted, bool tools);

/* ---- towards the server ---- */

/* One request to the server. */
struct mcp_leg {
	struct slice text;                 /* as the client sent it */
	const struct mcp_message *message; /* read from it */
	const struct mcp_round_rule *rule;
	struct slice id; /* in place of the client's; absent: that stays */
	/* It answers a round: inputResponses and requestState become these. */
	bool answers_round;
	struct slice answers; /* an object; absent: the state alone is sent */
	struct slice state;   /* JSON text; absent: there is none */
};

/* Its text, in `into`. Absent: no memory. */
MUST_USE struct slice mcp_leg_write(const struct mcp_leg *leg, struct arena *into);

/* An answer to a sampling of a round; both are JSON text. */
struct mcp_answered {
	struct slice name, value;
};

/* The object of them, in `into`. Absent: no memory. */
MUST_USE struct slice mcp_answers_join(const struct mcp_answered *answers, uint32_t count,
				       struct arena *into);

/* The object of the gateway's answers and the client's responses to one round, in `into`. `ours`: an object, or absent;
 * where the client has one of its names, ours counts. `responses`: an object, or absent. Absent: no memory. */
MUST_USE struct slice mcp_answers_merge(struct slice ours, struct slice responses,
					struct arena *into);

/* Whether a client has answered anything: a member inputResponses that is neither null nor empty. */
bool mcp_has_responses(const struct mcp_message *request);

/* What names the call of a round: its params without what changes from leg to leg. Needs `into` meanwhile. False: no
 * memory. */
MUST_USE bool mcp_round_digest(const struct mcp_message *request, struct arena *into,
			       struct mcp_digest *out);

/* ---- towards the client ---- */

/* Whether a response asks for input by name, so that the gateway has a part in it. */
bool mcp_round_asks(const struct mcp_message *response);

/* What of a response changes. */
struct mcp_shown {
	struct slice id;    /* the client's, in place of that of a later leg; absent: it stays */
	bool unsampled;     /* the entries that sample are taken out of inputRequests */
	struct slice state; /* a JSON string, which becomes requestState; absent: nothing does */
};

/* The text of `response`, which was read from a part of `text`, with these changes; in `into` if there are any. Absent:
 * no memory. */
MUST_USE struct slice mcp_round_show(struct slice text, const struct mcp_message *response,
				     const struct mcp_shown *shown, struct arena *into);

/* A message as one event of a stream, in `into`. Absent: no memory. */
MUST_USE struct slice mcp_event_of(struct slice message, struct arena *into);

#endif
