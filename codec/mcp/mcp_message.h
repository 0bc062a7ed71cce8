/* mcp_message.h - reads JSON-RPC messages of MCP that pass through: what a proxy has to know of one, in one pass.
 *
 * Loose as json_loose.h: of several members of one name the last one counts, names and strings are compared by what they
 * mean, and what is not understood is left alone. Every slice is a part of the text that was given, strings with their
 * quotes, and absent where there is no such member. No allocation, no recursion, linear time. */
#ifndef CODEC_MCP_MCP_MESSAGE_H
#define CODEC_MCP_MCP_MESSAGE_H

#include "codec/json/json_loose.h"

enum mcp_message_kind {
	MCP_REQUEST,
	MCP_NOTIFICATION,
	MCP_RESPONSE,
	MCP_ODD, /* an object that is none of them, or not JSON: it is passed on */
};

/* Where a client says what it can do. */
struct mcp_declaration {
	struct slice capabilities; /* all of it; edits need an object */
	struct slice sampling;     /* its member; null and absent are the same: not declared */
	struct slice tools;        /* sampling.tools */
};

/* params._meta */
struct mcp_meta {
	struct slice progress_token;   /* any value; see mcp_message_token */
	struct slice protocol_version; /* io.modelcontextprotocol/protocolVersion */
	struct slice log_level;        /* io.modelcontextprotocol/logLevel */
	struct mcp_declaration client; /* io.modelcontextprotocol/clientCapabilities */
};

/* params, if it is an object */
struct mcp_params {
	struct slice protocol_version; /* of initialize */
	struct mcp_declaration client; /* of initialize: `capabilities` */
	struct slice request_id;       /* of notifications/cancelled */
	struct slice progress_token;   /* of notifications/progress */
	struct slice progress;         /* of notifications/progress */
	struct slice name, uri;        /* of tools/call and prompts/get, of resources/read */
	struct slice input_responses;  /* of a further round (2026-07-28) */
	struct slice request_state;
	struct slice meta_text; /* all of _meta */
	struct mcp_meta meta;
};

/* result, if it is an object */
struct mcp_result {
	struct slice protocol_version; /* of initialize */
	struct slice result_type;
	struct slice input_requests;
	struct slice request_state;
};

struct mcp_message {
	enum mcp_message_kind kind;
	struct slice jsonrpc;
	struct slice id; /* a string or a number; absent: neither */
	struct slice method, params, result, error;
	struct slice error_code; /* error.code */
	struct mcp_params in_params;
	struct mcp_result in_result;
	/* One of the names read here is there twice in its object. From a client that is refused: another reader might take
	 * the first one. */
	bool twice;
	/* private: a result or error that is not null is there; an error is */
	bool answered, failed;
};

/* `object` as cut off by json_loose.h; any other value is odd. A message with a result or error that is not null is a
 * response if it has an id, whatever else it has: so the front of it decides (mcp_sniff.h). Else with a string as method
 * it is a request (with an id) or a notification (without). */
void mcp_message_read(struct slice object, struct mcp_message *out);

/* The same for a text that is one object and white space, in one scan; *object is that object. False: it is anything
 * else (a batch, say, which json_loose_whole finds), and the message is odd. */
MUST_USE bool mcp_message_read_text(struct slice text, struct mcp_message *out,
				    struct slice *object);

/* A request to sample: method and an id. */
bool mcp_message_samples(const struct mcp_message *message);

/* The same, also beside a result or error: some peers go by the method. For a caller that must let no sampling through
 * and holds every message until its end, without mcp_sniff.h. */
bool mcp_message_may_sample(const struct mcp_message *message);

/* A response that asks for input (2026-07-28): its resultType, the last one if there are several, is input_required. */
bool mcp_message_asks(const struct mcp_message *message);

/* The id that notifications/cancelled is about; absent: it is another message, or names none. */
struct slice mcp_message_cancels(const struct mcp_message *message);

/* A request or notification of 2026-07-28 or later: _meta has the protocol version as a string. */
bool mcp_message_modern(const struct mcp_message *message);

/* params._meta.progressToken of a request; absent: none, or neither a string nor a number. */
struct slice mcp_message_token(const struct mcp_message *message);

/* A request that may be answered by a request for input (2026-07-28): tools/call, prompts/get, resources/read. */
bool mcp_message_may_ask(const struct mcp_message *message);

/* An error by which a server refuses what initialize declares: -32600, -32602, -32603. */
bool mcp_message_refuses(const struct mcp_message *message);

/* Whether a revision, as initialize names it, has sampling.tools: 2025-11-25 and later. */
bool mcp_knows_tools(struct slice protocol_version);

/* Whether the client declares that it samples. */
bool mcp_declares(const struct mcp_declaration *declaration);

/* ---- rounds (2026-07-28) ---- */

/* Whether an entry of inputRequests, or any object, has the method of a sampling. */
bool mcp_entry_samples(struct slice entry);

struct mcp_entries {
	uint32_t samplings, others;
};

/* Counts the entries of inputRequests; none if that is no object. */
struct mcp_entries mcp_entries_count(struct slice input_requests);

#endif
