/* mcp_remote_wire.h - what mcp_remote.c and mcp_remote_home.c say to each other over the bus, as bytes.
 *
 * Every message begins with a version, so that one of another version is dropped, and the name by which both sides know
 * the client's GET. Numbers are little-endian. Pure. */
#ifndef GATEWAY_FRONT_MCP_MCP_REMOTE_WIRE_H
#define GATEWAY_FRONT_MCP_MCP_REMOTE_WIRE_H

#include "gateway/state/mcp_session.h"
#include "gateway/state/peer_bus.h"

enum { MCP_REMOTE_HEAD_MAX = 1 + 8 + 3 * STATE_KEY_BYTES + 4 };

/* What the client's GET is. The numbers are sent. */
enum mcp_remote_is {
	MCP_REMOTE_OPENING,
	MCP_REMOTE_OPEN,
	MCP_REMOTE_CLOSED, /* this and those behind it: it is not in any more */
	MCP_REMOTE_REFUSED,
	MCP_REMOTE_ENDED,
	MCP_REMOTE_REPLACED,
	MCP_REMOTE_GAP,
	MCP_REMOTE_OTHER, /* its last id is not one of the own GET's */
	MCP_REMOTE_IS
};

struct mcp_remote_message {
	uint64_t name; /* not 0 */
	/* of ATTACH */
	struct mcp_who who;
	/* of ATTACH: the last id, which may be empty; of EVENTS: bytes, not empty */
	struct slice text;
	/* of EVENTS: the piece's; of END: the next piece's */
	uint32_t number;
	/* of CREDIT and END: bytes that the client has taken in all, as the sender knows it */
	uint64_t taken;
	/* of END */
	enum mcp_remote_is is;
};

/* All of the message but `text`, which follows it. Returns its length. `kind` is one of PEER_MCP_ATTACH to PEER_MCP_END. */
size_t mcp_remote_pack(enum peer_kind kind, const struct mcp_remote_message *message,
		       char room[MCP_REMOTE_HEAD_MAX]);

/* Reads what mcp_remote_pack and the text behind it make; `text` lies in `body`. What the kind does not have is zero. False:
 * it is none, of whatever bytes. */
MUST_USE bool mcp_remote_unpack(enum peer_kind kind, struct slice body,
				struct mcp_remote_message *out);

#endif
