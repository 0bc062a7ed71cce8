/* mcp_round.h - a call of 2026-07-28 whose server may ask for input (contract/mcp-proxy.md 7): it is played inside the
 * client's exchange.
 *
 * Each leg is one request upstream, the first under the client's id. A response that asks for samplings alone is answered
 * here, and the call is sent again; one that asks for something else, too, goes to the client without its samplings, and with
 * a requestState of the gateway's own, which holds their answers. Nothing is kept for the client's next request: any
 * gateway serves it. */
#ifndef GATEWAY_FRONT_MCP_MCP_ROUND_H
#define GATEWAY_FRONT_MCP_MCP_ROUND_H

#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_round_text.h"

enum {
	MCP_ROUNDS_MAX = 10,
	MCP_ROUND_STATE_S = 600,    /* seconds that a client has for its part of a round */
	MCP_LEG_ID_MAX = 64,        /* bytes of the id of a further leg */
	MCP_ROUND_ARENA = 64 << 20, /* of one leg: what was asked and answered, or what is sent */
};
#define MCP_ROUNDS_TIME (600 * SEC) /* of all rounds of one exchange */
#define MCP_ROUND_PATIENCE \
	(15 * SEC) /* of a client that has heard nothing; then it gets a stream with comments */

struct mcp_round {
	struct slice restored; /* the state of the gateway's that the client sent; absent: none */
	struct mcp_round_rule rule;
	/* the leg under way */
	char id_text[MCP_LEG_ID_MAX];
	struct slice id;   /* absent: the client's own */
	bool streams;      /* its answer is an event stream */
	struct arena sent; /* its body */
	/* the answer that asks for input, until the next leg is sent */
	struct arena heard;         /* this, and what comes of it */
	struct slice asked;         /* a message; absent: none */
	struct mcp_message message; /* read from it */
	struct mcp_entry entries[MCP_ENTRIES_MAX];
	uint32_t entry_count, pending;
	bool begins;        /* entries are being begun: nothing is decided */
	bool failed;        /* one of them was refused or failed, or there is no memory: */
	struct slice error; /* a JSON-RPC error under the client's id; absent: there is no memory */
	/* all legs */
	struct mcp_request *request;
	uint32_t number; /* rounds so far that were answered here */
	nsec_t until;    /* for all of them, from the first one on */
	bool answered;   /* the client's response is on its way */
	bool progressed; /* the client was told: */
	double progress;
	struct net_timer patience;
	/* while a bridged session asks for tools/list in between (mcp_bridge_list.c) */
	uint32_t listed; /* pages */
	const struct mcp_legs *legs;
	struct slice call_head; /* the call's own link.modern_head */
};

/* Serves a request of 2026-07-28. False: refused, the answer is in place. */
MUST_USE bool mcp_round_serve(struct mcp_request *request);

/* Sends the call again, with what *leg says of the round before. The request may be gone afterwards. */
void mcp_round_again(struct mcp_request *request, struct mcp_leg *leg);

/* ---- mcp_round_state.c: what a client keeps between its requests ---- */

/* What the client brings back of a round that was shown to it becomes part of *leg, in round->heard. False: it is not the
 * gateway's, or not of this call, and the request is refused. */
MUST_USE bool mcp_round_restore(struct mcp_request *request, struct mcp_leg *leg);

/* The requestState for the client, a JSON string in the request's arena. `answers`: an object, or absent.
 * ERR_BODY_TOO_LARGE: there is too much to keep; ERR_BUSY: no memory. */
MUST_USE enum err mcp_round_seal(struct mcp_request *request, struct slice answers,
				 struct slice *state);

/* ---- mcp_round_answer.c: the client's side ---- */

/* The client has got the beginning of a stream. */
static inline bool mcp_round_begun(const struct mcp_request *request)
{
	return request->out.loop != NULL;
}

/* The message is the answer: at the end of the stream that was begun, or by itself with the fields and the status that are
 * in place. It lives as long as the request. Absent: no memory. The request may be gone afterwards, as after the next
 * three. */
void mcp_round_answer(struct mcp_request *request, struct slice message);
/* A JSON-RPC error is the answer. */
void mcp_round_answer_error(struct mcp_request *request, struct slice error);
/* The rounds have come to nothing, for no sampling's fault; that is logged. */
void mcp_round_fail(struct mcp_request *request, enum err err, const char *detail);
/* The same of a leg: where no stream was begun, the status says it, too. */
void mcp_round_fail_leg(struct mcp_request *request, enum err err, const char *detail);
/* An error under the client's id, in the request's arena. Absent: no memory. */
struct slice mcp_round_error(struct mcp_request *request, const struct fault *fault,
			     const struct error_data *data);
/* The client gets a stream before long, if it has heard nothing by then, and takes streams. */
void mcp_round_wait(struct mcp_request *request);
/* What passes of a leg's stream. */
extern const struct mcp_filter_events mcp_round_events;
/* The id that the response of the leg under way has. */
struct slice mcp_round_leg_id(const struct mcp_request *request);
/* The response of the leg under way, as `text`: true, it asks for input that the gateway has a part in; a copy is kept, and
 * nothing of it passes. False: it passes, or (round->failed) there is no memory. */
MUST_USE bool mcp_round_takes(struct mcp_request *request, struct slice text,
			      const struct mcp_message *message);

#endif
