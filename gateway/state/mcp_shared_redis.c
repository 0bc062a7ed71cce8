/* mcp_shared_redis.c - the commands of mcp_shared.h, and their answers. */
#include "gateway/state/mcp_shared_parts.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"

#include <endian.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

#define LAYOUT "sluice:mcp:1:" /* the number is that of the layout */

enum { KEY_ROOM = 48 };

/* ---- keys ---- */

/* The number of bytes that a key is made of is at most STATE_KEY_BYTES. */
static void put_key(struct redis_buffer *to, const char *prefix, const void *bytes, size_t len)
{
	char text[KEY_ROOM];
	char *at = stpcpy(text, prefix);

	at = hex_put_bytes(at, bytes, len);
	redis_put(to, slice_of(text, (size_t)(at - text)));
}

static void put_record(struct redis_buffer *to, const struct mcp_who *who)
{
	put_key(to, LAYOUT "s:", who->key.at, sizeof(who->key.at));
}

static void put_counted(struct redis_buffer *to, const struct mcp_who *who)
{
	put_key(to, LAYOUT "t:", who->tenant.at, sizeof(who->tenant.at));
	put_key(to, LAYOUT "v:", who->server.at, sizeof(who->server.at));
}

void mcp_shared_put_claims(struct redis_buffer *to, const struct mcp_shared *shared)
{
	put_key(to, LAYOUT "c:", shared->own.gateway, sizeof(shared->own.gateway));
}

void mcp_shared_put_moved(struct redis_buffer *to, const struct mcp_shared *shared)
{
	put_key(to, LAYOUT "m:", shared->own.gateway, sizeof(shared->own.gateway));
}

void mcp_shared_put_gateways(struct redis_buffer *to)
{
	redis_put(to, SLICE(LAYOUT "gateways"));
}

static struct slice key_slice(const struct state_key *key)
{
	return slice_of((const char *)key->at, sizeof(key->at));
}

static void put_own(struct redis_buffer *to, const struct mcp_shared *shared)
{
	redis_put(to, alive_name(shared->alive));
}

static void put_ms(struct redis_buffer *to, nsec_t span)
{
	redis_put_number(to, (uint32_t)(span / MSEC));
}

/* ---- claims as they are kept ---- */

static void put_field(struct redis_buffer *to, const struct state_key *key, uint64_t id)
{
	struct redis_pack pack = { 0 };

	redis_pack_bytes(&pack, key->at, sizeof(key->at));
	redis_pack_bytes(&pack, &id, sizeof(id));
	redis_put_pack(to, &pack);
}

/* Whose it is, whether it is kept, how long its id is; the id, the request. */
static void put_claim(struct redis_buffer *to, const struct mcp_ask *ask)
{
	const bool kept = !slice_absent(ask->kept) && ask->kept.len <= MCP_KEPT_MAX;
	const uint32_t id_len = htole32((uint32_t)ask->id.len);

	if (ask->id.len > MCP_KEPT_MAX) { /* nor can it be answered then */
		redis_put(to, SLICE(""));
		return;
	}
	char *at = redis_put_room(to, MCP_CLAIM_HEAD + ask->id.len + (kept ? ask->kept.len : 0));
	if (at == NULL)
		return;
	at = mempcpy(at, ask->who.key.at, STATE_KEY_BYTES);
	at = mempcpy(at, ask->who.tenant.at, STATE_KEY_BYTES);
	at = mempcpy(at, ask->who.server.at, STATE_KEY_BYTES);
	*at++ = kept;
	at = mempcpy(at, &id_len, sizeof(id_len));
	if (ask->id.len != 0)
		at = mempcpy(at, ask->id.at, ask->id.len);
	if (kept && ask->kept.len != 0)
		(void)memcpy(at, ask->kept.at, ask->kept.len);
}

bool mcp_shared_read_claim(struct slice text, struct mcp_who *who, struct slice *id,
			   struct slice *kept)
{
	const char *at = text.at;
	uint32_t id_len;

	if (text.len < MCP_CLAIM_HEAD)
		return false;
	(void)memcpy(who->key.at, at, STATE_KEY_BYTES);
	(void)memcpy(who->tenant.at, at + STATE_KEY_BYTES, STATE_KEY_BYTES);
	(void)memcpy(who->server.at, at + 2 * STATE_KEY_BYTES, STATE_KEY_BYTES);
	const bool is_kept = at[3 * STATE_KEY_BYTES] != 0;
	(void)memcpy(&id_len, at + 3 * STATE_KEY_BYTES + 1, sizeof(id_len));
	id_len = le32toh(id_len);
	const struct slice rest = slice_of(at + MCP_CLAIM_HEAD, text.len - MCP_CLAIM_HEAD);
	if (id_len > rest.len || rest.len - id_len > MCP_KEPT_MAX)
		return false;
	*id = slice_of(rest.at, id_len);
	*kept = is_kept ? slice_of(rest.at + id_len, rest.len - id_len) : (struct slice){ NULL, 0 };
	return true;
}

/* ---- questions ---- */

static void put_home(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_ask *ask = CONTAINER_OF(call, struct mcp_ask, call);
	const struct mcp_shared *shared = ask->shared;
	const bool steady = alive_is_steady(shared->alive, mcp_shared_now(shared));

	redis_put_script(run, 1, 6);
	put_record(run->to, &ask->who);
	redis_put(run->to, SLICE("home"));
	put_own(run->to, shared);
	put_ms(run->to, MCP_SESSION_IDLE);
	redis_put(run->to, slice_of((const char *)&shared->own.worker, 1));
	redis_put(run->to, ask->take ? SLICE("take") : SLICE(""));
	redis_put(run->to, steady ? SLICE("steady") : SLICE(""));
}

static void put_claimed(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_ask *ask = CONTAINER_OF(call, struct mcp_ask, call);
	const struct mcp_shared *shared = ask->shared;
	const uint64_t id = mcp_session_id(ask->id);

	redis_put_script(run, 3, 5);
	put_record(run->to, &ask->who);
	mcp_shared_put_claims(run->to, shared);
	mcp_shared_put_gateways(run->to);
	put_own(run->to, shared);
	redis_put(run->to, slice_of((const char *)&id, sizeof(id)));
	put_ms(run->to, MCP_SESSION_IDLE);
	put_field(run->to, &ask->who.key, id);
	put_claim(run->to, ask);
}

static void put_place(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_ask *ask = CONTAINER_OF(call, struct mcp_ask, call);

	redis_put_script(run, 2, 6);
	put_counted(run->to, &ask->who);
	redis_put(run->to, SLICE("place"));
	redis_put(run->to, key_slice(&ask->place));
	put_ms(run->to, MCP_PLACE_LASTS);
	put_ms(run->to, MCP_SESSION_IDLE);
	redis_put_number(run->to, ask->tenant_max);
	redis_put_number(run->to, ask->server_max);
}

static uint32_t number_at(const char *at)
{
	uint32_t number;

	(void)memcpy(&number, at, sizeof(number));
	return le32toh(number);
}

/* Of what another gateway may have written only as much is believed as could be ours. */
static void take_home(struct mcp_ask *ask, struct slice text)
{
	enum { HEAD = 1 + 4 + PEER_ADDRESS_BYTES };

	if (text.len < HEAD)
		return;
	ask->note = number_at(text.at + 1);
	(void)memcpy(&ask->home, text.at + 5, sizeof(ask->home));
	switch (text.at[0]) {
	case 'M':
		ask->answer = MCP_SHARED_MINE;
		ask->last_id = slice_of(text.at + HEAD, text.len - HEAD);
		break;
	case 'O':
		ask->answer = MCP_SHARED_OTHERS;
		break;
	case 'N':
		ask->answer = MCP_SHARED_NOBODY;
		break;
	case 'R':
		ask->answer = MCP_SHARED_REFUSED;
		break;
	case 'E':
		ask->answer = MCP_SHARED_ENDED;
		break;
	default:
		break;
	}
}

static void take_claim(struct mcp_ask *ask, struct slice text)
{
	if (text.len < 9 || (text.at[0] != 'C' && text.at[0] != 'B'))
		return;
	ask->answer = text.at[0] == 'C' ? MCP_SHARED_CLAIMED : MCP_SHARED_BEFORE;
	ask->note = number_at(text.at + 1);
	ask->calls = number_at(text.at + 5);
}

static void take_place(struct mcp_ask *ask, struct slice text)
{
	if (text.len == 0)
		return;
	if (text.at[0] == 'R')
		ask->answer = MCP_SHARED_ROOM;
	else if (text.at[0] == 'T')
		ask->answer = MCP_SHARED_TENANT_FULL;
	else if (text.at[0] == 'S')
		ask->answer = MCP_SHARED_SERVER_FULL;
}

static void on_done(struct redis_call *call, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	static void (*const take[])(struct mcp_ask * ask, struct slice text) = {
		[MCP_ASK_HOME] = take_home,
		[MCP_ASK_CLAIM] = take_claim,
		[MCP_ASK_PLACE] = take_place,
	};
	struct mcp_ask *ask = CONTAINER_OF(call, struct mcp_ask, call);

	if (outcome == REDIS_ANSWERED && reply->type == REDIS_REPLY_STRING)
		take[ask->kind](ask, slice_of(reply->str, (size_t)reply->len));
	ask->shared->answered(ask->shared, ask);
}

bool mcp_shared_send(struct mcp_shared *shared, struct mcp_ask *ask)
{
	/* They may be late: two homes, or two answers, are worse than a wait. */
	static const struct redis_call_type types[] = {
		[MCP_ASK_HOME] = { .put = put_home, .done = on_done },
		[MCP_ASK_CLAIM] = { .put = put_claimed, .done = on_done },
		[MCP_ASK_PLACE] = { .put = put_place, .done = on_done },
	};
	struct redis_script *const scripts[] = {
		[MCP_ASK_HOME] = &shared->record,
		[MCP_ASK_CLAIM] = &shared->claim,
		[MCP_ASK_PLACE] = &shared->place,
	};

	ask->shared = shared;
	ask->answer = MCP_SHARED_UNKNOWN;
	ask->home = (struct peer_address){ { 0 }, 0 };
	ask->last_id = (struct slice){ NULL, 0 };
	ask->note = ask->calls = 0;
	ask->call = (struct redis_call){ .type = &types[ask->kind], .owner = shared };
	return redis_script_run(shared->link, scripts[ask->kind], &ask->call) ||
	       redis_script_run_slow(shared->link, scripts[ask->kind], &ask->call,
				     MCP_ASK_PATIENCE);
}

/* ---- what is told ---- */

static struct slice word_of(enum mcp_tell_kind kind)
{
	static const struct slice words[] = {
		[MCP_TELL_SAW] = SLICE_INIT("saw"),
		[MCP_TELL_REFUSED] = SLICE_INIT("refused"),
		[MCP_TELL_FREED] = SLICE_INIT("freed"),
		[MCP_TELL_NOTE] = SLICE_INIT("note"),
		[MCP_TELL_CALL] = SLICE_INIT("call"),
		[MCP_TELL_UNPLACED] = SLICE_INIT("unplaced"),
		[MCP_TELL_BEGUN] = SLICE_INIT("begun"),
		[MCP_TELL_USED] = SLICE_INIT("used"),
		[MCP_TELL_ENDED] = SLICE_INIT("ended"),
	};

	return words[kind];
}

/* Lives while it is sent. */
struct saying {
	struct redis_call call;
	const struct mcp_tell *tell;
};

static void say_of_record(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_tell *tell = CONTAINER_OF(call, struct saying, call)->tell;

	redis_put_script(run, 1, 4);
	put_record(run->to, &tell->who);
	redis_put(run->to, word_of(tell->kind));
	put_own(run->to, call->owner);
	put_ms(run->to, MCP_SESSION_IDLE);
	redis_put(run->to, tell->value);
}

static void say_of_place(struct redis_call *call, const struct redis_script_run *run)
{
	const struct mcp_tell *tell = CONTAINER_OF(call, struct saying, call)->tell;
	const bool unplaced = tell->kind == MCP_TELL_UNPLACED;

	redis_put_script(run, 3, 5);
	put_counted(run->to, &tell->who);
	put_record(run->to, &tell->who);
	redis_put(run->to, word_of(tell->kind));
	redis_put(run->to, key_slice(unplaced ? &tell->place : &tell->who.key));
	put_ms(run->to, MCP_SESSION_IDLE);
	put_ms(run->to, MCP_SESSION_IDLE);
	redis_put(run->to, key_slice(&tell->place));
}

static bool say_settled(const struct mcp_shared *shared, const struct mcp_tell *tell)
{
	struct redis_buffer *to = redis_link_begin(shared->link);

	if (to == NULL)
		return false;
	redis_put_count(to, 3);
	redis_put(to, SLICE("HDEL"));
	mcp_shared_put_claims(to, shared);
	put_field(to, &tell->who.key, tell->id);
	return redis_link_send(shared->link, &(struct redis_command){ .aside = true });
}

bool mcp_shared_say(struct mcp_shared *shared, const struct mcp_tell *tell)
{
	static const struct redis_call_type of_record = { .put = say_of_record },
					    of_place = { .put = say_of_place };
	const bool record = tell->kind <= MCP_TELL_CALL;
	struct saying saying = { { .type = record ? &of_record : &of_place, .owner = shared },
				 tell };

	if (tell->kind == MCP_TELL_SETTLED)
		return say_settled(shared, tell);
	return redis_script_send(shared->link, record ? &shared->record : &shared->place,
				 &saying.call);
}
