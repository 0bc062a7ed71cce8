#include "gateway/state/idempotency_redis.h"

#include "codec/base/err.h"
#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "gateway/limits/limiter_redis_script.h"
#include "gateway/redis/redis_wire.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* A claim outlives its request's deadline by so much: then its gateway is gone. */
#define CLAIM_SPARE (5 * SEC)

/* A request that was answered while Redis was away. */
struct untold {
	struct state_key tenant, key;
	uint8_t body[SHA256_BYTES];
	uint32_t number;
	nsec_t answered_at;
};

/* What is beyond is forgotten, and its copies elsewhere wait until the claim is over. So do those of a request that
 * came to nothing. */
enum { UNTOLD_MAX = 64 };

struct once_redis {
	struct redis_guest guest;
	struct net_loop *loop;
	struct redis_link *link;
	struct json_work *json;
	struct metrics_worker *metrics;
	struct alive *alive;
	bool knows; /* Redis: the script */
	struct untold untold[UNTOLD_MAX];
	uint32_t untold_count;
};

enum { CLAIMS = 1, TELLS };

/* ---- requests ---- */

static char *put_hex(char *out, const struct state_key *key)
{
	return hex_put_bytes(out, key->at, sizeof(key->at));
}

static void put_key(struct redis_buffer *to, const struct once_claim *claim)
{
	static const char prefix[] = "sluice:once:1:{"; /* the number is that of the layout */
	char text[sizeof(prefix) + 4 * STATE_KEY_BYTES + 1];

	(void)memcpy(text, prefix, sizeof(prefix) - 1);
	char *end = put_hex(text + sizeof(prefix) - 1, &claim->tenant);
	*end++ = '}';
	end = put_hex(end, &claim->call->key);
	redis_put(to, slice_of(text, (size_t)(end - text)));
}

enum { OWNER_BYTES = ALIVE_NAME_BYTES + 3 };

/* Whose a claim is: a gateway's, of that time that the key is in flight there. What is told of an earlier time,
 * by another worker, may come later than the claim of the next. */
static void put_owner(struct redis_buffer *to, struct slice gateway, uint32_t number)
{
	char owner[OWNER_BYTES];

	(void)memcpy(owner, gateway.at, gateway.len);
	for (size_t i = gateway.len; i < OWNER_BYTES; i++, number >>= 8)
		owner[i] = (char)(number & 0xff);
	redis_put(to, slice_of(owner, sizeof(owner)));
}

/* EVALSHA with the script's digest, or EVAL with its text, which makes Redis know it. */
static bool ask(struct once_redis *redis, struct once_claim *claim, uint32_t asked,
		struct slice what, nsec_t lives, struct slice answer, struct slice mark)
{
	struct redis_buffer *to;
	uint64_t ticket;
	struct redis_request *request = redis_link_begin(redis->link, &to, &ticket);

	if (request == NULL)
		return false;
	request->kind = REDIS_GUEST;
	request->guest = &redis->guest;
	request->asked = asked;
	request->waits = asked == CLAIMS ? claim : NULL;
	request->by_text = !redis->knows;
	redis_put_count(to, 10);
	redis_put(to, request->by_text ? SLICE("EVAL") : SLICE("EVALSHA"));
	redis_put(to,
		  request->by_text ? slice_of(once_lua, once_lua_len) : slice_str(once_lua_sha1));
	redis_put_number(to, 1);
	put_key(to, claim);
	redis_put(to, what);
	redis_put(to, slice_of((const char *)claim->call->body, sizeof(claim->call->body)));
	put_owner(to, alive_name(redis->alive), claim->call->number);
	redis_put_number(to, (uint32_t)(lives / MSEC));
	redis_put(to, answer);
	redis_put(to, mark);
	if (!redis_link_send(redis->link))
		return false;
	claim->ticket = ticket;
	redis->knows = true; /* by the time that it gets to what comes behind this */
	return true;
}

/* Whether the digest is a guess; and, for others to judge the claim by this gateway's key, how long it lives. */
static bool send_claim(struct once_redis *redis, struct once_claim *claim)
{
	const nsec_t lives = claim->lasts + CLAIM_SPARE, now = net_now(redis->loop);
	const bool guess = claim->call->guess, known = alive_is_known(redis->alive, now);
	const struct slice older =
		alive_is_steady(redis->alive, now) ? SLICE(ALIVE_LASTS_MS) : SLICE("");
	char text[1 + REDIS_NUMBER_ROOM];
	struct slice mark = slice_of(text, guess || known ? 1 : 0);

	text[0] = guess ? '?' : '-';
	if (known)
		mark.len += redis_number_text(text + 1, (uint32_t)(lives / MSEC));
	claim->held = false;
	claim->pending = ask(redis, claim, CLAIMS, SLICE("claim"), lives, older, mark);
	return claim->pending;
}

bool once_redis_claim(struct once_redis *redis, struct once_claim *claim)
{
	if (send_claim(redis, claim))
		return true;
	metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	return false;
}

void once_redis_forget(struct once_redis *redis, struct once_claim *claim)
{
	if (!claim->pending)
		return;
	redis_link_request(redis->link, claim->ticket)->waits = NULL;
	claim->pending = false;
	claim->held = true; /* it may be, in a moment: what is told comes behind it */
}

void once_redis_end(struct once_redis *redis, const struct once_claim *claim, struct slice member)
{
	struct once_claim own = *claim;

	if (slice_absent(member) || member.len > ONCE_ANSWER_MAX)
		member = SLICE("");
	if (ask(redis, &own, TELLS, SLICE("done"), ONCE_REMEMBERED, member, SLICE("")))
		return;
	if (redis->untold_count == UNTOLD_MAX) {
		metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
		return;
	}
	struct untold *untold = &redis->untold[redis->untold_count++];
	*untold = (struct untold){ .tenant = claim->tenant,
				   .key = claim->call->key,
				   .number = claim->call->number,
				   .answered_at = net_now(redis->loop) };
	(void)memcpy(untold->body, claim->call->body, sizeof(untold->body));
}

void once_redis_drop(struct once_redis *redis, const struct once_claim *claim)
{
	struct once_claim own = *claim;

	(void)ask(redis, &own, TELLS, SLICE("drop"), MSEC, SLICE(""), SLICE(""));
}

/* Without the answer, which is not kept. False: Redis is away again. There is nothing to tell any more when its time is over. */
static bool tell(struct once_redis *redis, const struct untold *untold)
{
	const nsec_t over = untold->answered_at + ONCE_REMEMBERED, now = net_now(redis->loop);
	struct once_call call = { .key = untold->key, .number = untold->number };
	struct once_claim claim = { .tenant = untold->tenant, .call = &call };

	(void)memcpy(call.body, untold->body, sizeof(call.body));
	return over < now + MSEC ||
	       ask(redis, &claim, TELLS, SLICE("done"), over - now, SLICE(""), SLICE(""));
}

static void tell_untold(struct once_redis *redis)
{
	while (redis->untold_count != 0 && tell(redis, &redis->untold[redis->untold_count - 1]))
		redis->untold_count--;
}

/* ---- answers ---- */

/* Of what another gateway may have written only as much is believed as could be ours. */
static bool is_member(struct slice text, struct json_work *json)
{
	static const struct slice before = SLICE_INIT("\"result\":");
	struct json_reader r;

	if (!slice_starts(text, before))
		return false;
	json_open(&r, slice_of(text.at + before.len, text.len - before.len), NULL, json);
	return json_skip(&r, NULL) && json_finish(&r);
}

static void take_answer(struct once_redis *redis, struct once_call *call, struct slice text)
{
	call->verdict = ONCE_DONE;
	if (!is_member(text, redis->json))
		return;
	call->answer = (struct once_answer){ .err = ERR_OK,
					     .member = arena_copy(call->arena, text),
					     .retry_after_s = -1 };
	call->verdict = ONCE_ANSWERED;
}

static void take_reply(struct once_redis *redis, struct once_claim *claim,
		       const struct redisReply *reply)
{
	struct once_call *call = claim->call;

	if (reply->type != REDIS_REPLY_STRING || reply->len == 0)
		return;
	switch (reply->str[0]) {
	case 'L':
		claim->held = true;
		break;
	case 'E':
		call->verdict = ONCE_ELSEWHERE;
		break;
	case 'C':
		call->verdict = ONCE_CONFLICT;
		break;
	case 'D':
		call->verdict = ONCE_DONE;
		break;
	case 'A':
		take_answer(redis, call, slice_of(reply->str + 1, (size_t)reply->len - 1));
		break;
	default:
		break; /* nothing that we know: as if Redis was away */
	}
}

/* Once it was told the script itself, to tell it again would not help. */
static bool forgot_script(const struct redis_request *request, enum redis_outcome outcome,
			  const struct redisReply *reply)
{
	return outcome == REDIS_REFUSED && !request->by_text &&
	       strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

static void on_done(struct redis_guest *guest, const struct redis_request *request,
		    enum redis_outcome outcome, const struct redisReply *reply)
{
	struct once_redis *redis = CONTAINER_OF(guest, struct once_redis, guest);
	struct once_claim *claim = request->waits;

	if (forgot_script(request, outcome, reply)) {
		redis->knows = false;
		if (claim != NULL && send_claim(redis, claim))
			return;
	}
	if (claim == NULL)
		return;
	claim->pending = false;
	if (outcome == REDIS_ANSWERED)
		take_reply(redis, claim, reply);
	else
		metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	if (outcome == REDIS_LOST)
		claim->held =
			true; /* it may have been heard: to be told how it ends does no harm */
	claim->done(claim);
}

static void on_late(struct redis_guest *guest, struct redis_request *request)
{
	struct once_redis *redis = CONTAINER_OF(guest, struct once_redis, guest);
	struct once_claim *claim = request->waits;

	request->waits = NULL;
	if (claim == NULL)
		return;
	claim->pending = false;
	metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	claim->held = true; /* as likely as not: to be told how it ends does no harm */
	claim->done(claim);
}

/* Another server may not know the script. */
static void on_settled(struct redis_guest *guest, bool ready)
{
	struct once_redis *redis = CONTAINER_OF(guest, struct once_redis, guest);

	if (!ready)
		return;
	redis->knows = false;
	tell_untold(redis);
}

struct once_redis *once_redis_new(struct net_loop *loop, struct store_redis *redis,
				  struct alive *alive, struct json_work *json,
				  struct metrics_worker *metrics)
{
	struct once_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	*made = (struct once_redis){
		.guest = { .done = on_done, .late = on_late, .settled = on_settled },
		.loop = loop,
		.json = json,
		.metrics = metrics,
		.alive = alive,
	};
	made->link = store_redis_join(redis, &made->guest);
	return made;
}
