/* mcp_sampling_parts.h - a sampling under way: private to mcp_sampling*.c. */
#ifndef GATEWAY_FRONT_MCP_MCP_SAMPLING_PARTS_H
#define GATEWAY_FRONT_MCP_MCP_SAMPLING_PARTS_H

#include "codec/mcp/sampling.h"
#include "gateway/front/mcp/mcp.h"

struct mcp_sampling {
	uint32_t magic;
	bool kept;
	struct mcp_host *mcp;
	struct mcp_link link;
	struct arena arena;
	struct sampling_ids ids;
	struct caller caller;
	struct sampling_ask ask;
	struct sampling_request request;
	struct jsonrpc rpc;
	struct slice id;      /* of the server's request, as it wrote it */
	struct slice id_text; /* canonical */
	char once[2 * STATE_KEY_BYTES];
	struct gather answer;
	struct slice client,
		tool; /* for the log: the name of the key, and what the client has called; absent: not known */
	struct mcp_entry *entry;    /* of a round: it is answered; NULL: the server is, by a POST */
	struct sampling_call *call; /* NULL: not begun */
	bool unsolicited;           /* it came on the session's own stream */
	bool busy;                  /* the session has as many under way as it may */
	bool claimed; /* all gateways know that this one answers it, until mcp_shared_settled */
	struct mcp_ask claim;
	int status;
	struct net_timer again;    /* when the core is asked once more */
	nsec_t pause;              /* before that; 0: it was asked once */
	struct net_timer progress; /* when the server is told that its request is still worked on */
	uint64_t seconds;          /* that it was told last */
	const char *detail;        /* why it was refused before the core was asked; NULL */
	/* the client's exchange that it came on; NULL: none, or that has ended */
	struct mcp_request *stream;
	struct mcp_sampling *next, **place; /* in its list */
	struct cancel_entry by_id, by_session;
};

/* From now on the server that has given a token is told that its request is worked on, until the timer is stopped. */
void mcp_sampling_progress(struct mcp_sampling *sampling);

/* Goes on with it: it is this gateway's to answer. It may be over when this returns. */
void mcp_sampling_admit(struct mcp_sampling *sampling);
/* It is another gateway's, and goes without a word. */
void mcp_sampling_leave(struct mcp_sampling *sampling);

/* ---- mcp_sampling_answer.c ---- */

/* As sampling_front.keep. */
struct slice mcp_sampling_keep(void *owner, const struct sampling_outcome *outcome);
/* Tells the server, or the round. */
void mcp_sampling_answer(struct mcp_sampling *sampling, const struct sampling_outcome *outcome);

/* ---- mcp_claim.c ---- */

/* Claims it at all gateways first; then one of the two above follows, now or later. */
void mcp_sampling_claim(struct mcp_sampling *sampling);

#endif
