#include "gateway/front/mcp/mcp_link.h"

enum revision mcp_link_revision(const struct mcp_link *link)
{
	enum revision revision;

	return mcp_token_revision(&link->token, &revision) ? revision : REVISION_2025_11_25;
}

static bool copy(struct slice *text, struct arena *into)
{
	if (slice_absent(*text))
		return true;
	*text = arena_copy(into, *text);
	return !slice_absent(*text);
}

bool mcp_link_copy(struct mcp_link *out, const struct mcp_link *link, struct arena *into)
{
	*out = *link;
	out->modern_head = slice_of(NULL, 0);
	return copy(&out->token.server, into) && copy(&out->token.upstream_id, into) &&
	       copy(&out->token.revision, into) && copy(&out->token.declared, into) &&
	       copy(&out->authorization, into) && copy(&out->tenant, into) &&
	       copy(&out->client, into);
}

struct mcp_digest mcp_endpoint_digest(const struct mcp_server *server, uint32_t endpoint)
{
	struct mcp_digest digest;

	_Static_assert(sizeof(digest.at) == sizeof(server->digests[endpoint]), "all of it");
	(void)memcpy(digest.at, server->digests[endpoint], sizeof(digest.at));
	return digest;
}

bool mcp_link_place(struct mcp_link *link, const struct mcp_server *server)
{
	for (uint32_t i = 0; i < server->endpoint_count; i++) {
		if (memcmp(server->digests[i], link->token.endpoint.at,
			   sizeof(link->token.endpoint.at)) == 0) {
			link->endpoint = i;
			return true;
		}
	}
	return false;
}

void mcp_link_who(struct mcp_link *link)
{
	link->who.key = mcp_token_key(&link->token);
	_Static_assert(sizeof(link->who.tenant.at) == sizeof(link->token.tenant.at), "one key");
	(void)memcpy(link->who.tenant.at, link->token.tenant.at, sizeof(link->who.tenant.at));
	link->who.server = mcp_server_key(link->token.server);
	link->calls = mcp_call_key(&link->who.key, SLICE(""));
}

struct slice mcp_plain(struct slice value)
{
	if (json_loose_kind(value) != JSON_LOOSE_STRING || value.len < 2 ||
	    memchr(value.at, '\\', value.len) != NULL)
		return slice_of(NULL, 0);
	return slice_of(value.at + 1, value.len - 2);
}
