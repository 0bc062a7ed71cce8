/* fake_peers.h - gateways beside this one: no configuration of these tests has a store that they could share, so none of
 * these functions is called. */
#ifndef TESTS_FAULT_FAKE_PEERS_H
#define TESTS_FAULT_FAKE_PEERS_H

#include "codec/base/must.h"
#include "gateway/state/mcp_shared.h"

bool mcp_ask_claim(struct mcp_shared *shared, struct mcp_ask *ask, struct slice id,
		   struct slice kept)
{
	(void)shared;
	(void)ask;
	(void)id;
	(void)kept;
	must(false);
	return false;
}

void mcp_ask_forget(struct mcp_ask *ask)
{
	(void)ask;
	must(false);
}

bool mcp_ask_home(struct mcp_shared *shared, struct mcp_ask *ask, bool take)
{
	(void)shared;
	(void)ask;
	(void)take;
	must(false);
	return false;
}

bool mcp_ask_place(struct mcp_shared *shared, struct mcp_ask *ask, uint32_t tenant_max,
		   uint32_t server_max)
{
	(void)shared;
	(void)ask;
	(void)tenant_max;
	(void)server_max;
	must(false);
	return false;
}

void mcp_shared_begun(struct mcp_shared *shared, const struct mcp_ask *ask,
		      const struct mcp_who *who)
{
	(void)shared;
	(void)ask;
	(void)who;
	must(false);
}

void mcp_shared_call(struct mcp_shared *shared, const struct mcp_who *who, bool begun)
{
	(void)shared;
	(void)who;
	(void)begun;
	must(false);
}

void mcp_shared_ended(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)shared;
	(void)who;
	must(false);
}

void mcp_shared_freed(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)shared;
	(void)who;
	must(false);
}

bool mcp_shared_home_known(struct mcp_shared *shared, const struct mcp_who *who,
			   struct peer_address *home)
{
	(void)shared;
	(void)who;
	(void)home;
	must(false);
	return false;
}

bool mcp_shared_lives(const struct mcp_shared *shared, const struct peer_address *peer)
{
	(void)shared;
	(void)peer;
	must(false);
	return false;
}

struct mcp_shared *mcp_shared_new(struct net_loop *loop, struct redis_client *client,
				  struct peer_bus *bus, struct alive *alive,
				  struct mcp_channels *channels, struct inbox *inbox,
				  uint32_t worker, const struct mcp_shared_events *events,
				  void *owner)
{
	(void)loop;
	(void)client;
	(void)bus;
	(void)alive;
	(void)channels;
	(void)inbox;
	(void)worker;
	(void)events;
	(void)owner;
	must(false);
	return NULL;
}

void mcp_shared_note(struct mcp_shared *shared, const struct mcp_who *who, uint32_t note)
{
	(void)shared;
	(void)who;
	(void)note;
	must(false);
}

void mcp_shared_refused(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)shared;
	(void)who;
	must(false);
}

void mcp_shared_saw(struct mcp_shared *shared, const struct mcp_who *who, struct slice last_id)
{
	(void)shared;
	(void)who;
	(void)last_id;
	must(false);
}

void mcp_shared_settled(struct mcp_shared *shared, const struct mcp_who *who, struct slice id)
{
	(void)shared;
	(void)who;
	(void)id;
	must(false);
}

void mcp_shared_unplaced(struct mcp_shared *shared, const struct mcp_ask *ask)
{
	(void)shared;
	(void)ask;
	must(false);
}

void mcp_shared_used(struct mcp_shared *shared, const struct mcp_who *who)
{
	(void)shared;
	(void)who;
	must(false);
}

void peer_bus_hear(struct peer_bus *bus, enum peer_kind kind,
		   void (*heard)(void *owner, const struct peer_address *from, struct slice body),
		   void *owner)
{
	(void)bus;
	(void)kind;
	(void)heard;
	(void)owner;
	must(false);
}

struct peer_bus *peer_bus_new(struct redis_client *client, const struct config_store *config,
			      const struct alive *alive, uint32_t worker)
{
	(void)client;
	(void)config;
	(void)alive;
	(void)worker;
	must(false);
	return NULL;
}

struct peer_address peer_bus_own(const struct peer_bus *bus)
{
	(void)bus;
	must(false);
	return (struct peer_address){ 0 };
}

bool peer_bus_tell(struct peer_bus *bus, const struct peer_address *to, enum peer_kind kind,
		   const struct slice *parts, size_t count)
{
	(void)bus;
	(void)to;
	(void)kind;
	(void)parts;
	(void)count;
	must(false);
	return false;
}

#endif
