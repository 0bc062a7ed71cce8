/* jsonrpc_envelope.h - the envelope member by member; private to codec/.
 *
 * For readers that decode params while they pass: jsonrpc.c skips them, sampling_read.c does not. */
#ifndef CODEC_MCP_JSONRPC_ENVELOPE_H
#define CODEC_MCP_JSONRPC_ENVELOPE_H

#include "codec/json/json_fields.h"
#include "codec/mcp/jsonrpc.h"

enum envelope_member {
	ENVELOPE_JSONRPC,
	ENVELOPE_ID,
	ENVELOPE_METHOD,
	ENVELOPE_PARAMS,
	ENVELOPE_RESULT,
	ENVELOPE_ERROR,
	ENVELOPE_MEMBERS
};

struct envelope {
	struct slice id, method, params; /* id and params JSON text, method a raw string */
	bool create_message;             /* the method is sampling/createMessage */
	bool version_ok;                 /* jsonrpc is "2.0" */
	bool answered;                   /* has result or error */
	uint32_t null_id;                /* offset of an id that is null; 0: there is none */
	struct fault fault;              /* the first member of a wrong kind; err ERR_OK if none */
	struct json_fields fields;
};

void envelope_init(struct envelope *e);

/* Moves to the next member: enum envelope_member, FIELD_OTHER or FIELD_END. */
uint32_t envelope_next(struct envelope *e, struct json_reader *r);

/* Consumes the value of that member. False when the reader failed; members of a wrong kind are noted in
 * e->fault, so that malformed JSON behind them is still found. */
bool envelope_member(struct envelope *e, struct json_reader *r, uint32_t member);

/* After the closing brace and json_finish: classifies into *rpc, or ERR_REQUEST with *fault. */
MUST_USE enum err envelope_judge(const struct envelope *e, struct jsonrpc *rpc,
				 struct fault *fault);

/* The reader has failed on the way: *fault says why, with a path and the place in words, and out->id is
 * the id if it was there before. */
MUST_USE enum err envelope_malformed(const struct envelope *e, const struct json_reader *r,
				     struct slice body, struct arena *into, struct jsonrpc *out,
				     struct fault *fault);

/* jsonrpc_read with the limits as an argument; NULL is the default. */
MUST_USE enum err envelope_read(struct slice body, const struct json_limits *limits,
				struct json_work *work, struct arena *into, struct jsonrpc *out,
				struct fault *fault);

#endif
