#include "gateway/state/mcp_strict.h"

#include "codec/base/must.h"
#include "gateway/state/mcp_channel_parts.h"

#include <string.h>

static bool same(const struct state_key *one, const struct state_key *other)
{
	return memcmp(one->at, other->at, sizeof(one->at)) == 0;
}

/* Where the server is, if it is known. Another one may have its place. */
static struct mcp_strict *place_of(struct mcp_shard *shard, const struct state_key *server)
{
	return &shard->stricts[server->at[1] % COUNT_OF(shard->stricts)];
}

static bool is_known(const struct mcp_strict *strict, const struct state_key *server, nsec_t now)
{
	return strict->first != MCP_STRICT_NOT && now < strict->until &&
	       same(&strict->server, server);
}

enum mcp_strictness mcp_strict_find(struct mcp_channels *channels, const struct state_key *server,
				    const struct state_key *tenant, nsec_t now)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, server);
	const struct mcp_strict *strict = place_of(shard, server);
	enum mcp_strictness found = MCP_STRICT_NOT;

	if (is_known(strict, server, now))
		found = same(&strict->tenant, tenant) ? strict->first : strict->all;
	mcp_shard_unlock(shard);
	return found;
}

void mcp_strict_note(struct mcp_channels *channels, const struct state_key *server,
		     const struct state_key *tenant, enum mcp_strictness found, nsec_t now)
{
	must(found != MCP_STRICT_NOT);
	struct mcp_shard *shard = mcp_shard_lock(channels, server);
	struct mcp_strict *strict = place_of(shard, server);

	if (!is_known(strict, server, now))
		*strict = (struct mcp_strict){ .server = *server,
					       .tenant = *tenant,
					       .until = now + MCP_STRICT_KEPT,
					       .first = found };
	else if (same(&strict->tenant, tenant))
		strict->first = found;
	else
		strict->all = found < strict->first ? found : strict->first;
	mcp_shard_unlock(shard);
}
