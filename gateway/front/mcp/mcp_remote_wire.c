#include "gateway/front/mcp/mcp_remote_wire.h"

#include "codec/base/must.h"

enum { VERSION = 1, BEGIN = 1 + 8 };

/* Bytes of a message without its text; 0: none of these. */
static size_t head_bytes(enum peer_kind kind)
{
	switch (kind) {
	case PEER_MCP_ATTACH:
		return MCP_REMOTE_HEAD_MAX;
	case PEER_MCP_CREDIT:
		return BEGIN + 8;
	case PEER_MCP_DETACH:
		return BEGIN;
	case PEER_MCP_EVENTS:
		return BEGIN + 4 + 4;
	case PEER_MCP_END:
		return BEGIN + 4 + 8 + 1;
	default:
		return 0;
	}
}

/* ---- writing ---- */

static void put(char **at, uint64_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*(*at)++ = (char)(number >> 8 * i & 0xff);
}

static void put_key(char **at, const struct state_key *key)
{
	(void)memcpy(*at, key->at, sizeof(key->at));
	*at += sizeof(key->at);
}

size_t mcp_remote_pack(enum peer_kind kind, const struct mcp_remote_message *message,
		       char room[MCP_REMOTE_HEAD_MAX])
{
	char *at = room;

	must(message->text.len <= UINT32_MAX);
	put(&at, VERSION, 1);
	put(&at, message->name, 8);
	if (kind == PEER_MCP_ATTACH) {
		put_key(&at, &message->who.key);
		put_key(&at, &message->who.tenant);
		put_key(&at, &message->who.server);
	}
	if (kind == PEER_MCP_EVENTS || kind == PEER_MCP_END)
		put(&at, message->number, 4);
	if (kind == PEER_MCP_CREDIT || kind == PEER_MCP_END)
		put(&at, message->taken, 8);
	if (kind == PEER_MCP_ATTACH || kind == PEER_MCP_EVENTS)
		put(&at, message->text.len, 4);
	if (kind == PEER_MCP_END)
		put(&at, message->is, 1);
	must((size_t)(at - room) == head_bytes(kind));
	return (size_t)(at - room);
}

/* ---- reading: so many bytes are there ---- */

static uint64_t get(const char **at, size_t bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number |= (uint64_t)(uint8_t) * (*at)++ << 8 * i;
	return number;
}

static void get_key(const char **at, struct state_key *out)
{
	(void)memcpy(out->at, *at, sizeof(out->at));
	*at += sizeof(out->at);
}

/* Whether what was read is what somebody may say. */
static bool is_sound(enum peer_kind kind, const struct mcp_remote_message *message)
{
	return message->name != 0 && message->is < MCP_REMOTE_IS &&
	       (kind != PEER_MCP_ATTACH || !state_key_none(&message->who.key)) &&
	       (kind != PEER_MCP_EVENTS || message->text.len != 0);
}

bool mcp_remote_unpack(enum peer_kind kind, struct slice body, struct mcp_remote_message *out)
{
	const size_t head = head_bytes(kind);
	const char *at = body.at;
	struct mcp_remote_message read = { .name = 0 };
	uint64_t text = 0;

	if (head == 0 || body.len < head || get(&at, 1) != VERSION)
		return false;
	read.name = get(&at, 8);
	if (kind == PEER_MCP_ATTACH) {
		get_key(&at, &read.who.key);
		get_key(&at, &read.who.tenant);
		get_key(&at, &read.who.server);
	}
	if (kind == PEER_MCP_EVENTS || kind == PEER_MCP_END)
		read.number = (uint32_t)get(&at, 4);
	if (kind == PEER_MCP_CREDIT || kind == PEER_MCP_END)
		read.taken = get(&at, 8);
	if (kind == PEER_MCP_ATTACH || kind == PEER_MCP_EVENTS)
		text = get(&at, 4);
	if (kind == PEER_MCP_END)
		read.is = (enum mcp_remote_is)get(&at, 1);
	if (text != body.len - head)
		return false;
	read.text = slice_of(at, text);
	if (!is_sound(kind, &read))
		return false;
	*out = read;
	return true;
}
