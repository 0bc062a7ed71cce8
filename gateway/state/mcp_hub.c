#include "gateway/state/mcp_hub.h"

#include "codec/base/must.h"

void mcp_hub_init(struct mcp_hub *hub)
{
	hub->members = NULL;
	hub->living.count = 0;
	must(pthread_mutex_init(&hub->lock, NULL) == 0);
}

void mcp_hub_fini(struct mcp_hub *hub)
{
	must(pthread_mutex_destroy(&hub->lock) == 0);
}

static void lock(struct mcp_hub *hub)
{
	must(pthread_mutex_lock(&hub->lock) == 0);
}

static void unlock(struct mcp_hub *hub)
{
	must(pthread_mutex_unlock(&hub->lock) == 0);
}

/* ---- workers ---- */

static void run_told(struct inbox_item *item)
{
	struct mcp_member *member = CONTAINER_OF(item, struct mcp_member, item);

	member->told(member);
}

void mcp_hub_join(struct mcp_hub *hub, struct mcp_member *member)
{
	member->hub = hub;
	member->item = (struct inbox_item){ .run = run_told };
	lock(hub);
	member->next = hub->members;
	hub->members = member;
	unlock(hub);
}

bool mcp_hub_worker(struct mcp_hub *hub, const struct inbox *inbox, uint8_t *worker)
{
	lock(hub);
	const struct mcp_member *member = hub->members;
	while (member != NULL && member->inbox != inbox)
		member = member->next;
	unlock(hub);
	if (member == NULL)
		return false;
	*worker = (uint8_t)member->worker;
	return true;
}

/* Under the lock. */
static void tell(struct mcp_member *member)
{
	inbox_put(member->inbox, &member->item);
}

void mcp_member_take(struct mcp_member *member, struct mcp_news *news)
{
	lock(member->hub);
	*news = member->news;
	member->news.died = member->news.doubted = false;
	member->news.freed_count = 0;
	unlock(member->hub);
}

void mcp_hub_free_home(struct mcp_hub *hub, const struct state_key *key)
{
	lock(hub);
	for (struct mcp_member *member = hub->members; member != NULL; member = member->next) {
		struct mcp_news *news = &member->news;
		if (news->freed_count < MCP_FREED_MAX)
			news->freed[news->freed_count++] = *key;
		else
			news->died = true; /* it looks at all of its sessions then */
		tell(member);
	}
	unlock(hub);
}

void mcp_hub_doubt(struct mcp_hub *hub)
{
	lock(hub);
	for (struct mcp_member *member = hub->members; member != NULL; member = member->next) {
		member->news.doubted = true;
		tell(member);
	}
	unlock(hub);
}

/* ---- gateways ---- */

static bool has(const struct mcp_peers *peers, const uint8_t name[ALIVE_NAME_BYTES])
{
	for (uint32_t i = 0; i < peers->count; i++)
		if (memcmp(peers->at[i], name, ALIVE_NAME_BYTES) == 0)
			return true;
	return false;
}

static void add(struct mcp_peers *peers, const uint8_t name[ALIVE_NAME_BYTES])
{
	if (peers->count < MCP_PEERS_MAX && !has(peers, name))
		(void)memcpy(peers->at[peers->count++], name, ALIVE_NAME_BYTES);
}

/* Under the lock: those that are not among `names` are dead. */
static void bury(struct mcp_hub *hub, const struct mcp_peers *names)
{
	struct mcp_peers *living = &hub->living;
	bool died = false;

	for (uint32_t i = 0; i < living->count;) {
		if (has(names, living->at[i])) {
			i++;
			continue;
		}
		(void)memmove(living->at[i], living->at[--living->count], ALIVE_NAME_BYTES);
		died = true;
	}
	for (struct mcp_member *member = hub->members; died && member != NULL;
	     member = member->next) {
		member->news.died = true;
		tell(member);
	}
}

void mcp_hub_see(struct mcp_hub *hub, struct slice names, bool all)
{
	struct mcp_peers seen = { .count = 0 };

	for (size_t at = 0; at + ALIVE_NAME_BYTES <= names.len; at += ALIVE_NAME_BYTES)
		add(&seen, (const uint8_t *)names.at + at);
	lock(hub);
	if (all && seen.count < MCP_PEERS_MAX)
		bury(hub, &seen);
	for (uint32_t i = 0; i < seen.count; i++)
		add(&hub->living, seen.at[i]);
	unlock(hub);
}

bool mcp_hub_lives(struct mcp_hub *hub, const uint8_t name[ALIVE_NAME_BYTES])
{
	lock(hub);
	const bool lives = has(&hub->living, name);
	unlock(hub);
	return lives;
}
