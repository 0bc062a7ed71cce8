/* mcp_filter.h - a server's event stream on its way to a client, without the samplings that the gateway answers.
 *
 * Pure: bytes in, callbacks out. All other events pass byte for byte, each as soon as it is known not to be a sampling; of
 * an array of messages (2025-03-26) only the samplings are left out. */
#ifndef GATEWAY_FRONT_MCP_MCP_FILTER_H
#define GATEWAY_FRONT_MCP_MCP_FILTER_H

#include "codec/mcp/mcp_message.h"
#include "codec/mcp/mcp_sniff.h"
#include "codec/sse/sse_cut.h"
#include "gateway/front/mcp/mcp_buffer.h"

enum {
	MCP_HELD_MAX = 16 << 20, /* bytes of an event that is held until it is known */
	MCP_LAST_ID_MAX = 1024,  /* of an event id that is remembered; a longer one is none */
};

/* What passes. */
struct mcp_passed {
	struct slice raw;  /* byte for byte, perhaps without samplings of an array */
	struct slice data; /* the message's text, a part of `raw` if that has it on one line */
	struct slice id;   /* of the event; absent: none */
	struct slice name; /* of the event; absent: none */
	/* The message that it holds; NULL: none, several, or it passes in parts. */
	const struct mcp_message *message;
	bool asks;    /* it holds a request: the server waits for an answer */
	bool answers; /* it holds a response, whole */
	bool last;    /* the end of a response that passes in parts */
	bool between; /* an event ends here, so that a comment may follow */
};

struct mcp_filter;

struct mcp_filter_events {
	/* False: no memory; the stream fails. */
	bool (*pass)(struct mcp_filter *filter, const struct mcp_passed *passed);
	/* A sampling, as the JSON text of its message, valid during the call. */
	void (*take)(struct mcp_filter *filter, struct slice text,
		     const struct mcp_message *message);
	/* The server gives one of its requests up. True: it was a sampling that was taken; nothing passes. */
	bool (*cancel)(struct mcp_filter *filter, struct slice id);
	/* A request, perhaps a sampling, that is too large to be held; the stream fails. */
	void (*too_large)(struct mcp_filter *filter, struct slice id);
};

struct mcp_filter {
	/* read by the owner */
	struct mcp_buffer
		last_id; /* of the newest event with one, also of a swallowed one; len 0: none */
	bool retries;    /* the server has said after how long to come again: */
	uint64_t retry_ms;
	bool failed; /* no memory, or an event is too large */
	/* Set by the owner: no event passes in parts. Else a message that has a result passes as such before it is known
	 * whether it has the method of a sampling, too, which some peers go by. */
	bool whole;
	bool raw; /* set by the owner: it is no event stream, and all bytes pass as they come */
	bool rounds; /* set by the owner: a result may ask for input (2026-07-28), so that its type decides */
	/* private */
	const struct mcp_filter_events *events;
	struct arena *arena;
	struct arena scratch;
	struct sse_cut cut;
	struct mcp_sniff sniff;
	struct mcp_buffer rest; /* of an event that is not whole */
	struct arena room;      /* for it */
	bool takes, swallowed;  /* swallowed: the event before was */
};

/* A new stream; *filter is all zero, or was begun before. `takes`: samplings are taken out, else all passes. What is kept
 * for as long as the stream lies in `arena`. */
void mcp_filter_init(struct mcp_filter *filter, const struct mcp_filter_events *events,
		     struct arena *arena, bool takes);

/* Gives back what it holds; harmless when repeated, or when it was never begun. */
void mcp_filter_free(struct mcp_filter *filter);

/* The stream is not read any more: of what it holds, a request that can be read is answered (too_large). */
void mcp_filter_fail(struct mcp_filter *filter);

/* The stream goes on over another connection: what was not whole is forgotten, last_id stays. */
void mcp_filter_again(struct mcp_filter *filter);

/* The next bytes of the stream. False: it has failed, and nothing passes any more. */
MUST_USE bool mcp_filter_feed(struct mcp_filter *filter, struct slice bytes);

/* The stream's orderly end: the bytes of an event that nothing closes pass. False: it has failed. */
MUST_USE bool mcp_filter_end(struct mcp_filter *filter);

/* The event `raw` with other data, in `into`: its further fields stay as they came. `data` has no line ends but between
 * tokens of JSON. Absent: no memory. */
MUST_USE struct slice mcp_filter_with_data(struct slice raw, struct slice data, struct arena *into);

/* What a JSON answer has of samplings is taken out of it: `body` becomes what is left, in `arena` where that is less.
 * False: no memory. */
MUST_USE bool mcp_filter_json(struct mcp_filter *filter, struct slice *body);

#endif
