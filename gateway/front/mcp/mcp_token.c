#include "gateway/front/mcp/mcp_token.h"

#include "codec/base/pack.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"

#include <endian.h>
#include <netinet/in.h>

enum {
	TOKEN_VERSION = 1,
	STATE_VERSION = 1,
	/* Bits of the byte behind the version. */
	TOKEN_MODE = 3,
	TOKEN_TOOLS = 4,
	TOKEN_OWN_GET = 8,
	TOKEN_ENDPOINT = 16, /* the digest is there, and not all zero; as are the next ones */
	TOKEN_AUTHORIZATION = 32,
	TOKEN_BRIDGED = 64, /* what the client has declared is at the end */
	TOKEN_ALL = 127,
	STATE_UPSTREAM = 1,
	STATE_ANSWERS = 2,
	STATE_ALL = 3,
	/* version, flags, three digests, time, three lengths */
	STATE_BYTES = 2 + 3 * MCP_DIGEST_BYTES + 8 + 1 + 4 + 4,
};

/* version, flags, four digests, pin, time, two lengths */
enum { TOKEN_BYTES = 2 + 4 * MCP_DIGEST_BYTES + 19 + 8 + 1 + 2 + MCP_REVISION_MAX };
_Static_assert(TOKEN_BYTES + MCP_UPSTREAM_ID_MAX <= MCP_TOKEN_MAX, "every token fits");
_Static_assert(TOKEN_BYTES + 2 + MCP_DECLARED_MAX + 64 <= MCP_TOKEN_MAX,
	       "so does one with an id of the gateway's own");
_Static_assert(SEAL_TEXT_LEN(MCP_TOKEN_MAX) <= 1024, "and so does its text");

/* ---- digests and keys ------------------------------------------------------------------------ */

static struct mcp_digest digest_end(struct sha256_sum *sum)
{
	uint8_t digest[SHA256_BYTES];
	struct mcp_digest out;

	sha256_end(sum, digest);
	(void)memcpy(out.at, digest, sizeof(out.at));
	return out;
}

struct mcp_digest mcp_digest_of(struct slice text)
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add(&sum, text);
	return digest_end(&sum);
}

/* Its length first, and one more than that: 0 is an absent one. */
static void add_text(struct sha256_sum *sum, struct slice text)
{
	const uint64_t len = htole64(slice_absent(text) ? 0 : text.len + 1);

	sha256_add(sum, slice_of((const char *)&len, sizeof(len)));
	sha256_add(sum, text);
}

struct mcp_digest mcp_principal_of(const struct caller *caller)
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	add_text(&sum, caller->tenant);
	add_text(&sum, caller->server);
	add_text(&sum, slice_of((const char *)caller->subject, sizeof(caller->subject)));
	return digest_end(&sum);
}

static bool is_none(const struct mcp_digest *digest)
{
	static const struct mcp_digest none;

	return mcp_digest_eq(digest, &none);
}

static struct slice bytes_of(const struct mcp_digest *digest)
{
	return slice_of((const char *)digest->at, sizeof(digest->at));
}

struct state_key mcp_token_key(const struct mcp_token *token)
{
	return state_key_of(STATE_MCP_SESSION, bytes_of(&token->tenant), token->server, SLICE(""),
			    token->upstream_id);
}

static struct state_key request_key(enum state_kind kind, const struct state_key *session,
				    struct slice id)
{
	return state_key_of(kind, SLICE(""), SLICE(""),
			    slice_of((const char *)session->at, sizeof(session->at)), id);
}

struct state_key mcp_asked_key(const struct state_key *session, struct slice id)
{
	return request_key(STATE_MCP_ASKED, session, id);
}

struct state_key mcp_call_key(const struct state_key *session, struct slice id)
{
	return request_key(STATE_MCP_CALL, session, id);
}

bool mcp_token_revision(const struct mcp_token *token, enum revision *out)
{
	return revision_find(token->revision, out);
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct mcp_pin mcp_pin_of(const struct upstream_address *address)
{
	struct mcp_pin pin = { .family = 0 };
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	if (address->address.ss_family == AF_INET) {
		(void)memcpy(&four, &address->address, sizeof(four));
		pin = (struct mcp_pin){ .family = 4, .port = ntohs(four.sin_port) };
		(void)memcpy(pin.at, &four.sin_addr, sizeof(four.sin_addr));
	} else if (address->address.ss_family == AF_INET6) {
		(void)memcpy(&six, &address->address, sizeof(six));
		if (six.sin6_scope_id == 0) {
			pin = (struct mcp_pin){ .family = 6, .port = ntohs(six.sin6_port) };
			(void)memcpy(pin.at, &six.sin6_addr, sizeof(six.sin6_addr));
		}
	}
	return pin;
}

bool mcp_pin_address(const struct mcp_pin *pin, struct upstream_address *out)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(pin->port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(pin->port) };

	if (pin->family != 4 && pin->family != 6)
		return false;
	*out = (struct upstream_address){ .len = pin->family == 4 ? sizeof(four) : sizeof(six) };
	(void)memcpy(&four.sin_addr, pin->at, sizeof(four.sin_addr));
	(void)memcpy(&six.sin6_addr, pin->at, sizeof(six.sin6_addr));
	(void)memcpy(&out->address, pin->family == 4 ? (const void *)&four : (const void *)&six,
		     out->len);
	return true;
}

/* ---- packing --------------------------------------------------------------------------------- */

static void put_digest(struct packer *to, const struct mcp_digest *digest)
{
	pack_bytes(to, digest->at, sizeof(digest->at));
}

static struct mcp_digest get_digest(struct unpacker *from)
{
	const struct slice bytes = unpack_bytes(from, MCP_DIGEST_BYTES);
	struct mcp_digest digest = { { 0 } };

	if (!slice_absent(bytes))
		(void)memcpy(digest.at, bytes.at, sizeof(digest.at));
	return digest;
}

/* One that is left out where it is none. */
static struct mcp_digest get_optional(struct unpacker *from, bool there)
{
	struct mcp_digest digest = { { 0 } };

	if (!there)
		return digest;
	digest = get_digest(from);
	from->bad |= is_none(&digest);
	return digest;
}

static size_t pin_bytes(uint8_t family)
{
	return family == 4 ? 4 : family == 6 ? 16 : 0;
}

static void put_pin(struct packer *to, const struct mcp_pin *pin)
{
	pack_number(to, pin->family, 1);
	if (pin->family == 0)
		return;
	pack_number(to, pin->port, 2);
	pack_bytes(to, pin->at, pin_bytes(pin->family));
}

static struct mcp_pin get_pin(struct unpacker *from)
{
	struct mcp_pin pin = { .family = (uint8_t)unpack_number(from, 1) };
	const size_t len = pin_bytes(pin.family);

	if (len == 0) {
		from->bad |= pin.family != 0;
		return pin;
	}
	pin.port = (uint16_t)unpack_number(from, 2);
	const struct slice bytes = unpack_bytes(from, len);
	if (!slice_absent(bytes))
		(void)memcpy(pin.at, bytes.at, len);
	return pin;
}

/* ---- sessions -------------------------------------------------------------------------------- */

size_t mcp_token_pack(const struct mcp_token *token, char room[MCP_TOKEN_MAX])
{
	struct packer to = { room, room + MCP_TOKEN_MAX, false };
	const bool endpoint = !is_none(&token->endpoint),
		   authorization = !is_none(&token->authorization);

	must(token->mode < MCP_MODES);
	must(token->pin.family == 0 || pin_bytes(token->pin.family) != 0);
	pack_number(&to, TOKEN_VERSION, 1);
	pack_number(&to,
		    (uint32_t)token->mode | (token->tools ? TOKEN_TOOLS : 0) |
			    (token->own_get ? TOKEN_OWN_GET : 0) | (endpoint ? TOKEN_ENDPOINT : 0) |
			    (authorization ? TOKEN_AUTHORIZATION : 0) |
			    (token->bridged ? TOKEN_BRIDGED : 0),
		    1);
	put_digest(&to, &token->tenant);
	put_digest(&to, &token->principal);
	if (endpoint)
		put_digest(&to, &token->endpoint);
	if (authorization)
		put_digest(&to, &token->authorization);
	put_pin(&to, &token->pin);
	pack_number(&to, token->issued_s, 8);
	pack_text(&to, token->revision, 1, MCP_REVISION_MAX);
	pack_text(&to, token->upstream_id, 2, MCP_UPSTREAM_ID_MAX);
	if (token->bridged)
		pack_text(&to, token->declared, 2, MCP_DECLARED_MAX);
	return to.full ? 0 : (size_t)(to.at - room);
}

bool mcp_token_unpack(struct slice packed, struct mcp_token *out)
{
	struct unpacker from = { packed.at, packed.at + packed.len, false };

	from.bad |= unpack_number(&from, 1) != TOKEN_VERSION;
	const uint64_t flags = unpack_number(&from, 1);
	from.bad |= (flags & ~(uint64_t)TOKEN_ALL) != 0;
	out->mode = (enum mcp_mode)(flags & TOKEN_MODE);
	out->tools = (flags & TOKEN_TOOLS) != 0;
	out->own_get = (flags & TOKEN_OWN_GET) != 0;
	out->tenant = get_digest(&from);
	out->principal = get_digest(&from);
	out->endpoint = get_optional(&from, (flags & TOKEN_ENDPOINT) != 0);
	out->authorization = get_optional(&from, (flags & TOKEN_AUTHORIZATION) != 0);
	out->pin = get_pin(&from);
	out->issued_s = unpack_number(&from, 8);
	out->revision = unpack_text(&from, 1, MCP_REVISION_MAX);
	out->upstream_id = unpack_text(&from, 2, MCP_UPSTREAM_ID_MAX);
	out->bridged = (flags & TOKEN_BRIDGED) != 0;
	out->declared = out->bridged ? unpack_text(&from, 2, MCP_DECLARED_MAX) : slice_of(NULL, 0);
	return !from.bad && from.at == from.end;
}

/* ---- states ---------------------------------------------------------------------------------- */

size_t mcp_state_pack(const struct mcp_state *state, char *room, size_t size)
{
	struct packer to = { room, room + size, false };
	const bool upstream = !slice_absent(state->upstream),
		   answers = !slice_absent(state->answers);

	pack_number(&to, STATE_VERSION, 1);
	pack_number(&to, (upstream ? STATE_UPSTREAM : 0u) | (answers ? STATE_ANSWERS : 0u), 1);
	put_digest(&to, &state->tenant);
	put_digest(&to, &state->principal);
	put_digest(&to, &state->params);
	pack_number(&to, state->expires_s, 8);
	pack_text(&to, state->method, 1, MCP_METHOD_MAX);
	if (upstream)
		pack_text(&to, state->upstream, 4, SEAL_PLAIN_MAX);
	if (answers)
		pack_text(&to, state->answers, 4, SEAL_PLAIN_MAX);
	return to.full ? 0 : (size_t)(to.at - room);
}

bool mcp_state_unpack(struct slice packed, struct mcp_state *out)
{
	struct unpacker from = { packed.at, packed.at + packed.len, false };

	from.bad |= unpack_number(&from, 1) != STATE_VERSION;
	const uint64_t flags = unpack_number(&from, 1);
	from.bad |= (flags & ~(uint64_t)STATE_ALL) != 0;
	out->tenant = get_digest(&from);
	out->principal = get_digest(&from);
	out->params = get_digest(&from);
	out->expires_s = unpack_number(&from, 8);
	out->method = unpack_text(&from, 1, MCP_METHOD_MAX);
	out->upstream = out->answers = (struct slice){ NULL, 0 };
	if ((flags & STATE_UPSTREAM) != 0)
		out->upstream = unpack_text(&from, 4, SEAL_PLAIN_MAX);
	if ((flags & STATE_ANSWERS) != 0)
		out->answers = unpack_text(&from, 4, SEAL_PLAIN_MAX);
	return !from.bad && from.at == from.end;
}

/* ---- sealed ---------------------------------------------------------------------------------- */

enum { PURPOSE_MAX = 16 + MCP_SERVER_NAME_MAX };

static const struct slice session_purpose = SLICE_INIT("mcp-session/");
static const struct slice sse_purpose = SLICE_INIT("mcp-sse/");
static const struct slice state_purpose = SLICE_INIT("mcp-state/");

static const struct slice *purpose_of(enum mcp_token_kind kind)
{
	return kind == MCP_TOKEN_SSE ? &sse_purpose : &session_purpose;
}

/* What a text of that purpose and server is sealed for; `room` has PURPOSE_MAX bytes. */
static struct slice for_server(const struct slice *purpose, struct slice server, char *room)
{
	must(server.len <= MCP_SERVER_NAME_MAX);
	(void)memcpy(room, purpose->at, purpose->len);
	(void)memcpy(room + purpose->len, server.at, server.len);
	return slice_of(room, purpose->len + server.len);
}

enum err mcp_token_seal(struct seal *seal, enum mcp_token_kind kind, const struct mcp_token *token,
			struct arena *into, struct slice *text)
{
	char purpose[PURPOSE_MAX], packed[MCP_TOKEN_MAX];
	const size_t len = mcp_token_pack(token, packed);

	if (len == 0)
		return ERR_BODY_TOO_LARGE;
	return seal_close(seal, for_server(purpose_of(kind), token->server, purpose),
			  slice_of(packed, len), into, text);
}

enum err mcp_token_open(struct seal *seal, enum mcp_token_kind kind, struct slice server,
			struct slice text, struct arena *into, struct mcp_token *out)
{
	char purpose[PURPOSE_MAX];
	struct slice packed;
	struct mcp_token token = { .server = server };

	const enum err err =
		seal_open(seal, for_server(purpose_of(kind), server, purpose), text, into, &packed);
	if (err != ERR_OK)
		return err;
	if (!mcp_token_unpack(packed, &token))
		return ERR_SESSION_UNKNOWN;
	*out = token;
	return ERR_OK;
}

enum err mcp_state_seal(struct seal *seal, const struct mcp_state *state, struct arena *into,
			struct slice *text)
{
	char purpose[PURPOSE_MAX];
	size_t room = STATE_BYTES + state->method.len + state->upstream.len + state->answers.len;

	if (room > SEAL_PLAIN_MAX)
		room = SEAL_PLAIN_MAX;
	char *packed = arena_take(into, room);
	if (packed == NULL)
		return ERR_BUSY;
	const size_t len = mcp_state_pack(state, packed, room);
	if (len == 0)
		return ERR_BODY_TOO_LARGE;
	return seal_close(seal, for_server(&state_purpose, state->server, purpose),
			  slice_of(packed, len), into, text);
}

enum err mcp_state_open(struct seal *seal, struct slice server, struct slice text,
			struct arena *into, struct mcp_state *out)
{
	char purpose[PURPOSE_MAX];
	struct slice packed;
	struct mcp_state state = { .server = server };

	const enum err err =
		seal_open(seal, for_server(&state_purpose, server, purpose), text, into, &packed);
	if (err != ERR_OK)
		return err;
	if (!mcp_state_unpack(packed, &state))
		return ERR_SESSION_UNKNOWN;
	*out = state;
	return ERR_OK;
}
