#include "gateway/state/mcp_counts.h"

#include "codec/base/must.h"
#include "gateway/state/mcp_channel.h"

enum {
	PLACES_MAX = MCP_SESSIONS_MAX,
	/* Each owner holds something, so that there are no more of them than this. */
	OWNERS = MCP_SESSIONS_MAX + PLACES_MAX,
	BYTES_SMALL = 4 << 10,
};

bool mcp_counts_init(struct mcp_counts *counts)
{
	*counts = (struct mcp_counts){ .places = 0 };
	if (!fair_share_map(&counts->tenants, OWNERS, false) ||
	    !fair_share_map(&counts->servers, OWNERS, false) ||
	    !fair_share_map(&counts->bytes, MCP_SESSIONS_MAX, false)) {
		fair_share_unmap(&counts->tenants);
		fair_share_unmap(&counts->servers);
		return false;
	}
	must(pthread_mutex_init(&counts->lock, NULL) == 0);
	return true;
}

void mcp_counts_fini(struct mcp_counts *counts)
{
	must(counts->tenants.sum == 0 && counts->servers.sum == 0 && counts->bytes.sum == 0);
	must(counts->places == 0);
	must(pthread_mutex_destroy(&counts->lock) == 0);
	fair_share_unmap(&counts->tenants);
	fair_share_unmap(&counts->servers);
	fair_share_unmap(&counts->bytes);
}

static void lock(struct mcp_counts *counts)
{
	must(pthread_mutex_lock(&counts->lock) == 0);
}

static void unlock(struct mcp_counts *counts)
{
	must(pthread_mutex_unlock(&counts->lock) == 0);
}

static uint64_t held_by(const struct fair_share *share, const struct state_key *key)
{
	return fair_share_held(share, fair_share_find(share, key->at));
}

static struct mcp_counted add(struct mcp_counts *counts, const struct state_key *tenant,
			      const struct state_key *server)
{
	return (struct mcp_counted){ .tenant = fair_share_add(&counts->tenants, tenant->at, 1),
				     .server = fair_share_add(&counts->servers, server->at, 1) };
}

static void sub(struct mcp_counts *counts, struct mcp_counted counted)
{
	fair_share_sub(&counts->tenants, counted.tenant, 1);
	fair_share_sub(&counts->servers, counted.server, 1);
}

enum mcp_room mcp_counts_take(struct mcp_counts *counts, const struct state_key *tenant,
			      uint32_t tenant_max, const struct state_key *server,
			      uint32_t server_max, struct mcp_counted *out)
{
	enum mcp_room room = MCP_ROOM;

	lock(counts);
	if (held_by(&counts->tenants, tenant) >= tenant_max)
		room = MCP_TENANT_FULL;
	else if (held_by(&counts->servers, server) >= server_max)
		room = MCP_SERVER_FULL;
	else if (counts->places == PLACES_MAX)
		room = MCP_PROCESS_FULL;
	if (room == MCP_ROOM) {
		*out = add(counts, tenant, server);
		counts->places++;
	}
	unlock(counts);
	return room;
}

void mcp_counts_keep(struct mcp_counts *counts)
{
	lock(counts);
	must(counts->places != 0);
	counts->places--;
	unlock(counts);
}

void mcp_counts_drop(struct mcp_counts *counts, struct mcp_counted counted)
{
	lock(counts);
	must(counts->places != 0);
	counts->places--;
	sub(counts, counted);
	unlock(counts);
}

struct mcp_counted mcp_counts_add(struct mcp_counts *counts, const struct state_key *tenant,
				  const struct state_key *server)
{
	lock(counts);
	const struct mcp_counted counted = add(counts, tenant, server);
	unlock(counts);
	return counted;
}

void mcp_counts_sub(struct mcp_counts *counts, struct mcp_counted counted)
{
	lock(counts);
	sub(counts, counted);
	unlock(counts);
}

uint32_t mcp_counts_of_server(struct mcp_counts *counts, const struct state_key *server)
{
	lock(counts);
	const uint64_t held = held_by(&counts->servers, server);
	unlock(counts);
	return (uint32_t)held;
}

uint32_t mcp_counts_take_bytes(struct mcp_counts *counts, const struct state_key *tenant,
			       size_t bytes)
{
	static const struct fair_bound bound = { .most = MCP_EVENTS_BYTES_ALL,
						 .small = BYTES_SMALL };
	uint32_t owner = 0;

	lock(counts);
	if (fair_share_take(&counts->bytes, &bound, tenant->at, bytes, &owner) != FAIR_TAKEN)
		owner = 0;
	unlock(counts);
	return owner;
}

void mcp_counts_give_bytes(struct mcp_counts *counts, uint32_t owner, size_t bytes)
{
	lock(counts);
	fair_share_sub(&counts->bytes, owner, bytes);
	unlock(counts);
}
