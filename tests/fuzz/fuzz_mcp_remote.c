/* What gateways say to each other of clients' GETs, of any bytes. What is taken for a message is packed into the same bytes
 * again: nothing has two forms, and nothing is read that is not there. The first byte says which kind it is. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_remote_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_message(enum peer_kind kind, struct slice body)
{
	char room[MCP_REMOTE_HEAD_MAX];
	struct mcp_remote_message message;

	if (!mcp_remote_unpack(kind, body, &message))
		return;
	const size_t head = mcp_remote_pack(kind, &message, room);
	must(head + message.text.len == body.len);
	must(memcmp(room, body.at, head) == 0);
	must(message.text.len == 0 || message.text.at == body.at + head);
}

/* In a block of its own, so that ASan sees a byte read too far. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *body = malloc(size);
	must(body != NULL);
	(void)memcpy(body, data + 1, size - 1);
	read_message((enum peer_kind)(data[0] % (PEER_KINDS + 1)), slice_of(body, size - 1));
	free(body);
	return 0;
}
