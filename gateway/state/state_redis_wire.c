#include "gateway/state/state_redis_wire.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "codec/mcp/sampling.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>

#define AMOUNT_MAX ((UINT64_C(1) << 53) - 1) /* of one save: what Lua's numbers hold */

/* The number is that of the layout: other versions do not find each other's records. */
static const char prefix[] = "sluice:state:1:{";

enum { HEX = 2 * STATE_KEY_BYTES, KEY_ROOM = sizeof(prefix) + HEX + 3 + HEX };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- keys ---- */

static char *put_hex(char *out, const struct state_key *key)
{
	return hex_put_bytes(out, key->at, sizeof(key->at));
}

/* s: session, c: call, l: loop, b: blocks; without `key` what all of that kind begin with. */
static void put_key(struct redis_buffer *to, const struct state_key *tenant, char kind,
		    const struct state_key *key)
{
	char text[KEY_ROOM];
	char *end = text + sizeof(prefix) - 1;

	(void)memcpy(text, prefix, sizeof(prefix) - 1);
	end = put_hex(end, tenant);
	*end++ = '}';
	*end++ = kind;
	*end++ = ':';
	if (key != NULL)
		end = put_hex(end, key);
	redis_put(to, slice_of(text, (size_t)(end - text)));
}

static bool read_key(const struct redisReply *reply, struct state_key *out)
{
	if ((size_t)reply->len != HEX)
		return false;
	for (size_t i = 0; i < HEX; i++) {
		const char c = reply->str[i];
		const bool digit = c >= '0' && c <= '9';
		if (!digit && !(c >= 'a' && c <= 'f'))
			return false;
		const uint8_t value = (uint8_t)(digit ? c - '0' : c - 'a' + 10);
		out->at[i / 2] = (uint8_t)(i % 2 == 0 ? value << 4 : out->at[i / 2] | value);
	}
	return true;
}

/* ---- requests ---- */

static void pack_ms(struct redis_pack *pack, nsec_t ttl)
{
	redis_pack_number(pack, (uint32_t)(ttl / MSEC)); /* settings: a day at most */
}

static void put_amount(struct redis_buffer *to, uint64_t amount)
{
	char text[32];
	const int len =
		snprintf(text, sizeof(text), "%" PRIu64, amount < AMOUNT_MAX ? amount : AMOUNT_MAX);

	redis_put(to, slice_of(text, (size_t)len));
}

void state_wire_load(const struct redis_script_run *run, const struct state_load *load,
		     const struct config_blocks *blocks)
{
	struct redis_buffer *to = run->to;
	const bool session = !state_key_none(&load->session);
	const uint32_t calls = least(load->call_count, STATE_CALLS_MAX);
	const uint32_t texts = least(load->block_count, STATE_BLOCKS_MAX);
	struct redis_pack header = { 0 };

	redis_put_script(run, session + calls + texts, 2);
	if (session)
		put_key(to, &load->tenant, 's', &load->session);
	for (uint32_t i = 0; i < calls; i++)
		put_key(to, &load->tenant, 'c', &load->calls[i]);
	for (uint32_t i = 0; i < texts; i++)
		put_key(to, &load->tenant, 'b', &load->blocks[i]);
	redis_pack_byte(&header, session);
	redis_pack_byte(&header, load->early);
	redis_pack_number(&header, calls);
	pack_ms(&header, STATE_SESSION_TTL);
	pack_ms(&header, blocks->ttl);
	redis_pack_number(&header, (uint32_t)state_found_max(load));
	redis_put_pack(to, &header);
	put_key(to, &load->tenant, 'l', NULL);
}

bool state_wire_keeps(const struct state_save *save, const struct config_blocks *blocks)
{
	return !slice_absent(save->blocks) && save->call_count != 0 &&
	       save->blocks.len <= blocks->each;
}

static void put_save_keys(struct redis_buffer *to, const struct state_save *save, bool texts)
{
	if (!state_key_none(&save->session))
		put_key(to, &save->tenant, 's', &save->session);
	if (!state_key_none(&save->loop))
		put_key(to, &save->tenant, 'l', &save->loop);
	for (uint32_t i = 0; i < least(save->call_count, STATE_CALLS_MAX); i++)
		put_key(to, &save->tenant, 'c', &save->calls[i]);
	if (texts)
		put_key(to, &save->tenant, 'b', &save->calls[0]);
}

static void put_save_header(struct redis_buffer *to, const struct state_save *save,
			    const struct config_blocks *blocks)
{
	struct redis_pack header = { 0 };

	redis_pack_byte(&header, !state_key_none(&save->session));
	_Static_assert(STATE_COUNTS == 0 && STATE_BEGINS == 1 && STATE_ENDS == 2,
		       "as the script has it");
	redis_pack_byte(&header, (uint8_t)save->change);
	redis_pack_byte(&header, !state_key_none(&save->loop));
	redis_pack_byte(&header, state_wire_keeps(save, blocks));
	redis_pack_number(&header, least(save->call_count, STATE_CALLS_MAX));
	pack_ms(&header, STATE_SESSION_TTL);
	pack_ms(&header, STATE_LOOP_TTL);
	pack_ms(&header, blocks->ttl);
	redis_put_pack(to, &header);
}

static void put_call_record(struct redis_buffer *to, const struct state_save *save)
{
	struct redis_pack record = { 0 };
	char hex[HEX];

	(void)put_hex(hex, &save->loop);
	redis_pack_bytes(&record, hex, sizeof(hex));
	redis_pack_number(&record, save->rounds);
	redis_put_pack(to, &record);
}

void state_wire_save(const struct redis_script_run *run, const struct state_save *save,
		     const struct config_blocks *blocks)
{
	enum { ARGUMENTS = 8 };
	struct redis_buffer *to = run->to;
	const bool texts = state_wire_keeps(save, blocks);
	const uint32_t keys = (uint32_t)!state_key_none(&save->session) +
			      (uint32_t)!state_key_none(&save->loop) +
			      least(save->call_count, STATE_CALLS_MAX) + (uint32_t)texts;

	must(save->revision < REVISION_COUNT);
	redis_put_script(run, keys, ARGUMENTS);
	put_save_keys(to, save, texts);
	put_save_header(to, save, blocks);
	put_amount(to, save->requests);
	put_amount(to, save->tokens);
	put_amount(to, save->usd);
	redis_put(to, slice_str(revision_name((enum revision)save->revision)));
	put_call_record(to, save);
	redis_put(to, texts ? save->blocks : SLICE(""));
	redis_put(to, save->call_count == 0
			      ? SLICE("")
			      : slice_of((const char *)save->target.at, sizeof(save->target.at)));
}

void state_wire_drop(struct redis_buffer *to, const struct state_key *tenant,
		     const struct state_key *of, const struct config_blocks *blocks)
{
	redis_put_count(to, 5);
	redis_put(to, SLICE("SET"));
	put_key(to, tenant, 'b', of);
	redis_put(to, SLICE(""));
	redis_put(to, SLICE("PX"));
	redis_put_number(to, (uint32_t)(blocks->ttl / MSEC));
}

/* ---- answers ---- */

enum {
	SAYS_REVISION,
	SAYS_KNOWN,
	SAYS_ROUNDS,
	SAYS_LOOP,
	SAYS_TOKENS,
	SAYS_USD,
	SAYS_TARGET,
	SAYS_USED_REQUESTS,
	SAYS_USED_TOKENS,
	SAYS_USED_USD,
	SAYS_BLOCKS
};

static bool is_text(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

static struct slice text_of(const struct redisReply *reply)
{
	return slice_of(reply->str, (size_t)reply->len);
}

/* A session of a revision that this version does not know is not known. */
static bool read_session(const struct redisReply *reply, struct state_load *load)
{
	enum revision revision;

	load->session_is = STATE_SESSION_UNKNOWN;
	load->revision = 0;
	if (reply->type == REDIS_REPLY_NIL)
		return true;
	if (!is_text(reply))
		return false;
	if (revision_find(text_of(reply), &revision)) {
		load->session_is = STATE_SESSION_KNOWN;
		load->revision = revision;
	}
	return true;
}

static bool read_count(const struct redisReply *reply, uint32_t *out)
{
	if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 || reply->integer > UINT32_MAX)
		return false;
	*out = (uint32_t)reply->integer;
	return true;
}

static bool read_amount(const struct redisReply *reply, uint64_t *out)
{
	return is_text(reply) && slice_to_u64(text_of(reply), out);
}

/* Empty: it is not known. */
static bool read_target(const struct redisReply *reply, struct state_target *out)
{
	if (!is_text(reply) || (reply->len != 0 && (size_t)reply->len != sizeof(out->at)))
		return false;
	if (reply->len != 0)
		(void)memcpy(out->at, reply->str, sizeof(out->at));
	return true;
}

static bool read_used(struct redisReply *const *says, struct state_used *out)
{
	return read_amount(says[SAYS_USED_REQUESTS], &out->requests) &&
	       read_amount(says[SAYS_USED_TOKENS], &out->tokens) &&
	       read_amount(says[SAYS_USED_USD], &out->usd);
}

static bool read_loop(struct redisReply *const *says, struct state_loop *out)
{
	struct state_loop loop = { .known = 0 };

	if (!read_count(says[SAYS_KNOWN], &loop.known) ||
	    !read_count(says[SAYS_ROUNDS], &loop.rounds) || !is_text(says[SAYS_LOOP]) ||
	    !read_amount(says[SAYS_TOKENS], &loop.tokens) ||
	    !read_amount(says[SAYS_USD], &loop.usd) ||
	    !read_target(says[SAYS_TARGET], &loop.target))
		return false;
	if (says[SAYS_LOOP]->len != 0 && !read_key(says[SAYS_LOOP], &loop.id))
		return false;
	*out = loop;
	return true;
}

/* Where the arena has no room they are absent, and what is more than was to be. */
static void copy_blocks(struct redisReply *const *texts, uint32_t count, struct state_load *load)
{
	const struct slice *guess = load->found;
	size_t room = state_found_max(load);

	load->found = NULL;
	load->cut = false;
	for (uint32_t i = 0; i < count; i++)
		load->cut |= load->early && texts[i]->type == REDIS_REPLY_INTEGER;
	if (load->block_count == 0 || load->cut)
		return;
	load->found = arena_zero(load->arena, load->block_count * sizeof(load->found[0]));
	for (uint32_t i = 0; load->found != NULL && i < count; i++) {
		if (!is_text(texts[i]) || (size_t)texts[i]->len > room)
			continue;
		/* What was guessed right is in the arena already. */
		if (guess != NULL && !slice_absent(guess[i]) &&
		    slice_eq(guess[i], text_of(texts[i])))
			load->found[i] = guess[i];
		else
			load->found[i] = arena_copy(load->arena, text_of(texts[i]));
		room -= load->found[i].len;
	}
}

bool state_wire_loaded(const struct redisReply *reply, struct state_load *load)
{
	const uint32_t texts = least(load->block_count, STATE_BLOCKS_MAX);

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != SAYS_BLOCKS + texts)
		return false;
	if (!read_session(reply->element[SAYS_REVISION], load) ||
	    !read_used(reply->element, &load->used) || !read_loop(reply->element, &load->loop))
		return false;
	copy_blocks(reply->element + SAYS_BLOCKS, texts, load);
	return true;
}

bool state_wire_saved(const struct redisReply *reply, bool *ended)
{
	if (reply->type != REDIS_REPLY_INTEGER)
		return false;
	*ended = reply->integer == 1;
	return true;
}
