/* mcp_about.c - what the log says of sessions that end because nobody uses them. */
#include "gateway/state/mcp_channel_parts.h"

#include <stdlib.h>

static char *put(char *at, struct slice *text)
{
	if (slice_absent(*text))
		return at;
	(void)memcpy(at, text->at, text->len);
	*text = slice_of(at, text->len);
	return at + text->len;
}

/* In one piece, the texts behind it. NULL: no memory. */
static struct mcp_about *copy_of(struct mcp_channels *channels, const struct mcp_about *about)
{
	struct mcp_about *copy =
		mcp_memory(channels, sizeof(*copy) + about->tenant.len + about->server.len +
					     about->client.len + about->revision.len);

	if (copy == NULL)
		return NULL;
	*copy = *about;
	copy->next = NULL;
	char *at = put((char *)(copy + 1), &copy->tenant);
	at = put(at, &copy->server);
	at = put(at, &copy->client);
	(void)put(at, &copy->revision);
	return copy;
}

void mcp_session_describe(struct mcp_channels *channels, const struct mcp_about *about)
{
	struct mcp_shard *shard = mcp_shard_lock(channels, &about->key);
	struct mcp_session *session = mcp_session_find(shard, &about->key);

	if (session != NULL && !session->ended) {
		free(session->about);
		session->about = copy_of(channels, about);
	}
	mcp_shard_unlock(shard);
}

void mcp_session_idled(struct mcp_channels *channels, struct mcp_session *session)
{
	struct mcp_about *about = session->about;

	session->about = NULL;
	if (about == NULL)
		return;
	about->next = atomic_load_explicit(&channels->idled, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&channels->idled, &about->next, about,
						      memory_order_release, memory_order_relaxed))
		;
}

struct mcp_about *mcp_sessions_idled(struct mcp_channels *channels)
{
	return atomic_exchange_explicit(&channels->idled, NULL, memory_order_acquire);
}

void mcp_about_free(struct mcp_about *list)
{
	while (list != NULL) {
		struct mcp_about *next = list->next;
		free(list);
		list = next;
	}
}
