/* jsonrpc.h - the JSON-RPC 2.0 envelope of the public endpoint.
 *
 * The id, a string or an integer, is kept and echoed byte for byte (contract/mcp.md 10.2, 11). */
#ifndef CODEC_MCP_JSONRPC_H
#define CODEC_MCP_JSONRPC_H

#include "codec/base/err.h"
#include "codec/json/json_read.h"
#include "codec/json/json_write.h"

enum rpc_method {
	RPC_CREATE_MESSAGE, /* sampling/createMessage */
	RPC_INITIALIZE,
	RPC_INITIALIZED, /* notifications/initialized */
	RPC_PING,
	RPC_CANCELLED,          /* notifications/cancelled */
	RPC_OTHER_NOTIFICATION, /* no id: 202, nothing happens */
	RPC_RESPONSE,           /* a posted result or error: 202, nothing happens */
	RPC_UNKNOWN,            /* a request for a method that is not ours */
};

/* Bytes of an id as it is written. Answers repeat it, so that a long one would be held for who does not read them. */
enum { RPC_ID_MAX = 1024 };

struct jsonrpc {
	enum rpc_method method;
	struct slice id;     /* raw JSON text of the id, absent when there is none */
	struct slice params; /* raw JSON text, absent when there is none */
};

/* jsonrpc_read (codec/set.h) of the set that the file is compiled for, which callers use.
 *
 * One pass over the whole body, params validated as opaque JSON. On failure out->id is set when it
 * could be read before the error, and *fault says why: ERR_JSON and its kin, ERR_BATCH, ERR_REQUEST
 * (not an object, jsonrpc not "2.0", id neither string nor integer or over RPC_ID_MAX, no method). An id of null is
 * none, and wrong with a method that is no notification. */
MUST_USE enum err jsonrpc_read_here(struct slice body, struct json_work *work, struct arena *into,
				    struct jsonrpc *out, struct fault *fault);

/* {"jsonrpc":"2.0","id":ID,"error":{"code","message","data":{"reason",...}}}; absent id, or over RPC_ID_MAX: null. The
 * message is fault->detail or the row's text; offset and path appear with -32700, -32600 and -32602 only, and what is not
 * known of `data` not at all, nor a provider's request id that is not visible ASCII. `data` NULL: none. */
void jsonrpc_write_error(struct gather *g, struct slice id, const struct fault *fault,
			 const struct error_data *data);

#endif
