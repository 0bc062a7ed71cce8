#include "gateway/state/peer_bus.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"

#include <stdio.h>
#include <stdlib.h>

/* The number is that of the messages: a kind, whether all are told, who tells it, the body. */
#define CHANNEL "sluice:1:bus"

enum {
	HEAD_BYTES = 2 + PEER_ADDRESS_BYTES,
	CHANNEL_ROOM = 48,
	/* Where so many bytes wait to be written, Redis does not keep up, and what others ask of it must not wait behind more. */
	WAITING_MAX = 4 << 20,
};

struct hearer {
	void (*heard)(void *owner, const struct peer_address *from, struct slice body);
	void *owner;
};

struct peer_bus {
	struct redis_link *link;
	struct redis_user tells, hears; /* of the shared connection, and of the listening one */
	struct peer_address own;
	bool hearing; /* what is told to this worker comes */
	char channel[CHANNEL_ROOM];
	struct hearer hearers[PEER_KINDS];
	void (*gap)(void *owner);
	void *gap_owner;
};

static struct slice channel_of(const struct peer_address *to, char text[CHANNEL_ROOM])
{
	char name[2 * ALIVE_NAME_BYTES + 1];

	*hex_put_bytes(name, to->gateway, sizeof(to->gateway)) = '\0';
	const int len = snprintf(text, CHANNEL_ROOM, CHANNEL ":%s:%u", name, to->worker);
	return slice_of(text, (size_t)len);
}

struct peer_address peer_bus_own(const struct peer_bus *bus)
{
	return bus->own;
}

/* ---- telling ---- */

static bool publish(struct peer_bus *bus, struct slice channel, enum peer_kind kind, bool all,
		    const struct slice *parts, size_t count)
{
	const char head[2] = { (char)kind, all };
	size_t len = HEAD_BYTES;

	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	struct redis_buffer *to = len > PEER_MESSAGE_MAX ? NULL : redis_link_begin(bus->link);
	if (to == NULL)
		return false;
	redis_put_count(to, 3);
	redis_put(to, SLICE("PUBLISH"));
	redis_put(to, channel);
	char *at = to->len > WAITING_MAX ? NULL : redis_put_room(to, len);
	if (at != NULL) {
		at = mempcpy(at, head, sizeof(head));
		at = mempcpy(at, &bus->own, sizeof(bus->own));
		for (size_t i = 0; i < count; i++)
			if (parts[i].len != 0)
				at = mempcpy(at, parts[i].at, parts[i].len);
	} else {
		to->failed = true; /* it is not sent */
	}
	/* A user may have no right to it. */
	return redis_link_send(bus->link, &(struct redis_command){ .aside = true });
}

bool peer_bus_tell(struct peer_bus *bus, const struct peer_address *to, enum peer_kind kind,
		   const struct slice *parts, size_t count)
{
	char text[CHANNEL_ROOM];

	return publish(bus, channel_of(to, text), kind, false, parts, count);
}

void peer_bus_tell_all(struct peer_bus *bus, enum peer_kind kind, const struct slice *parts,
		       size_t count)
{
	(void)!publish(bus, SLICE(CHANNEL), kind, true, parts, count);
}

/* ---- hearing ---- */

void peer_bus_hear(struct peer_bus *bus, enum peer_kind kind,
		   void (*heard)(void *owner, const struct peer_address *from, struct slice body),
		   void *owner)
{
	bus->hearers[kind] = (struct hearer){ heard, owner };
}

static void on_heard(void *owner, struct slice message)
{
	const struct peer_bus *bus = owner;
	struct peer_address from;

	/* Of a kind that this version does not know, for example. */
	if (message.len < HEAD_BYTES || (uint8_t)message.at[0] >= PEER_KINDS)
		return;
	const bool all = message.at[1] != 0;
	const struct hearer *hearer = &bus->hearers[(uint8_t)message.at[0]];
	(void)memcpy(&from, message.at + 2, sizeof(from));
	if (hearer->heard == NULL || (all && peer_address_same_gateway(&from, &bus->own)))
		return;
	hearer->heard(hearer->owner, &from,
		      slice_of(message.at + HEAD_BYTES, message.len - HEAD_BYTES));
}

/* ---- gaps ---- */

void peer_bus_on_gap(struct peer_bus *bus, void (*gap)(void *owner), void *owner)
{
	bus->gap = gap;
	bus->gap_owner = owner;
}

static void tell_gap(const struct peer_bus *bus)
{
	if (bus->gap != NULL)
		bus->gap(bus->gap_owner);
}

static void on_told_lost(struct redis_user *user)
{
	tell_gap(CONTAINER_OF(user, struct peer_bus, tells));
}

static void on_hearing_lost(struct redis_user *user)
{
	struct peer_bus *bus = CONTAINER_OF(user, struct peer_bus, hears);

	bus->hearing = false;
	tell_gap(bus);
}

/* Also when an answer was late: then nothing was lost. */
static void on_hearing(struct redis_user *user)
{
	struct peer_bus *bus = CONTAINER_OF(user, struct peer_bus, hears);

	if (bus->hearing)
		return;
	bus->hearing = true;
	tell_gap(bus);
}

/* ---- making one ---- */

struct peer_bus *peer_bus_new(struct redis_client *client, const struct config_store *config,
			      const struct alive *alive, uint32_t worker)
{
	static const struct redis_user_events telling = { .lost = on_told_lost };
	static const struct redis_user_events hearing = { .ready = on_hearing,
							  .lost = on_hearing_lost };
	struct peer_bus *bus = calloc(1, sizeof(*bus));

	must(worker <= UINT8_MAX);
	if (bus == NULL)
		return NULL;
	bus->link = redis_client_link(client);
	bus->tells.events = &telling;
	bus->hears.events = &hearing;
	bus->own.worker = (uint8_t)worker;
	(void)memcpy(bus->own.gateway, alive_name(alive).at, sizeof(bus->own.gateway));
	const struct slice channels[] = { channel_of(&bus->own, bus->channel), SLICE(CHANNEL) };
	struct redis_link *listens =
		redis_client_listen(client, config, channels, worker == 0 ? 2 : 1, on_heard, bus);
	if (listens == NULL) {
		free(bus);
		return NULL;
	}
	redis_link_join(bus->link, &bus->tells);
	redis_link_join(listens, &bus->hears);
	return bus;
}
