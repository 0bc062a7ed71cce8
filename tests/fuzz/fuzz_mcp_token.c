/* Packed tokens and states of any bytes. What is taken for one is packed into the same bytes again: nothing has two
 * forms, and nothing is read that is not there. The first byte says which of the two the rest is. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_token.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct slice part, struct slice whole)
{
	must(slice_absent(part) ||
	     (part.at >= whole.at && part.at + part.len <= whole.at + whole.len));
}

static void read_token(struct slice packed)
{
	char room[MCP_TOKEN_MAX];
	struct mcp_token token = { .server = SLICE("s") };

	if (!mcp_token_unpack(packed, &token))
		return;
	must(token.upstream_id.len <= MCP_UPSTREAM_ID_MAX &&
	     token.revision.len <= MCP_REVISION_MAX);
	inside(token.upstream_id, packed);
	inside(token.revision, packed);
	must(token.bridged != slice_absent(token.declared));
	must(token.declared.len <= MCP_DECLARED_MAX);
	inside(token.declared, packed);
	must(mcp_token_pack(&token, room) == packed.len);
	must(memcmp(room, packed.at, packed.len) == 0);
}

static void read_state(struct slice packed)
{
	static char room[SEAL_PLAIN_MAX];
	struct mcp_state state = { .server = SLICE("s") };

	if (!mcp_state_unpack(packed, &state))
		return;
	must(state.method.len <= MCP_METHOD_MAX);
	inside(state.method, packed);
	inside(state.upstream, packed);
	inside(state.answers, packed);
	must(packed.len > SEAL_PLAIN_MAX ||
	     mcp_state_pack(&state, room, sizeof(room)) == packed.len);
	must(packed.len > SEAL_PLAIN_MAX || memcmp(room, packed.at, packed.len) == 0);
}

/* In a block of its own, so that ASan sees a byte read too far. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *packed = malloc(size);
	must(packed != NULL);
	(void)memcpy(packed, data + 1, size - 1);
	if (data[0] == 'T')
		read_token(slice_of(packed, size - 1));
	else
		read_state(slice_of(packed, size - 1));
	free(packed);
	return 0;
}
