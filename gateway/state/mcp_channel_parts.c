#include "gateway/state/mcp_channel_parts.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"

#include <stdlib.h>

struct mcp_shard *mcp_shard_lock(struct mcp_channels *channels, const struct state_key *key)
{
	struct mcp_shard *shard = &channels->shards[key_shard_number(key)];

	key_shard_lock(&shard->keys);
	return shard;
}

void mcp_shard_unlock(struct mcp_shard *shard)
{
	key_shard_unlock(&shard->keys);
}

void *mcp_memory(struct mcp_channels *channels, size_t bytes)
{
	if (channels->fail_next != 0 && --channels->fail_next == 0)
		return NULL;
	return calloc(1, bytes);
}

uint64_t mcp_id_digest(struct slice id)
{
	uint8_t digest[SHA256_BYTES];
	uint64_t first;

	sha256(id, digest);
	(void)memcpy(&first, digest, sizeof(first));
	return first;
}

/* Under the lock, so that neither can leave before it is in its inbox. */
void mcp_session_tell_client(struct mcp_session *session, enum mcp_channel_state why)
{
	struct mcp_client *client = session->client;

	if (client == NULL)
		return;
	session->client = NULL;
	client->session = NULL;
	client->next = why;
	inbox_put(client->inbox, &client->item);
}

void mcp_session_tell_home(struct mcp_session *session, enum mcp_channel_state why)
{
	struct mcp_home *home = session->home;

	if (home == NULL)
		return;
	session->home = NULL;
	home->session = NULL;
	home->next = why;
	inbox_put(home->inbox, &home->item);
}
