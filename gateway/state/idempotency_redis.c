#include "gateway/state/idempotency_redis.h"

#include "codec/base/err.h"
#include "codec/base/hex.h"
#include "codec/base/must.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

REDIS_SCRIPT_DECLARE(idempotency);

/* A claim outlives its request's deadline by so much: then its gateway is gone. */
#define CLAIM_SPARE (5 * SEC)

/* A request that was answered while Redis was away. */
struct unreported {
	struct state_key tenant, key;
	uint8_t body[SHA256_BYTES];
	uint32_t number;
	nsec_t answered_at;
};

/* What is beyond is forgotten, and its copies elsewhere wait until the claim is over. So do those of a request that
 * came to nothing. */
enum { UNREPORTED_MAX = 64 };

struct idempotency_redis {
	struct redis_user user;
	struct redis_script script;
	struct net_loop *loop;
	struct redis_link *link;
	struct json_work *json;
	struct metrics_worker *metrics;
	struct alive *alive;
	struct unreported unreported[UNREPORTED_MAX];
	uint32_t unreported_count;
};

/* ---- requests ---- */

static char *put_hex(char *out, const struct state_key *key)
{
	return hex_put_bytes(out, key->at, sizeof(key->at));
}

static void put_key(struct redis_buffer *to, const struct idempotency_claim *claim)
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

/* The command's arguments: whose claim it is, what becomes of it, and what idempotency.lua wants to know besides. */
struct words {
	struct slice what;
	nsec_t lives;
	struct slice answer, mark;
};

static void put_words(const struct idempotency_redis *redis, const struct redis_script_run *run,
		      const struct idempotency_claim *claim, const struct words *words)
{
	enum { ARGUMENTS = 6 };

	redis_put_script(run, 1, ARGUMENTS);
	put_key(run->to, claim);
	redis_put(run->to, words->what);
	redis_put(run->to, slice_of((const char *)claim->call->body, sizeof(claim->call->body)));
	put_owner(run->to, alive_name(redis->alive), claim->call->number);
	redis_put_number(run->to, (uint32_t)(words->lives / MSEC));
	redis_put(run->to, words->answer);
	redis_put(run->to, words->mark);
}

/* ---- claims ---- */

/* Whether the digest is a guess; and, for others to judge the claim by this gateway's key, how long it lives. */
static void put_claim(struct redis_call *of, const struct redis_script_run *run)
{
	const struct idempotency_claim *claim = CONTAINER_OF(of, struct idempotency_claim, sent);
	const struct idempotency_redis *redis = of->owner;
	const nsec_t lives = claim->lasts + CLAIM_SPARE, now = net_now(redis->loop);
	const bool guess = claim->call->guess, known = alive_is_known(redis->alive, now);
	const struct slice older =
		alive_is_steady(redis->alive, now) ? SLICE(ALIVE_LASTS_MS) : SLICE("");
	char text[1 + REDIS_NUMBER_ROOM];
	struct slice mark = slice_of(text, guess || known ? 1 : 0);

	text[0] = guess ? '?' : '-';
	if (known)
		mark.len += redis_number_text(text + 1, (uint32_t)(lives / MSEC));
	const struct words words = { SLICE("claim"), lives, older, mark };
	put_words(redis, run, claim, &words);
}

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

static void take_answer(struct idempotency_redis *redis, struct idempotency_call *call,
			struct slice text)
{
	call->verdict = IDEMPOTENCY_DONE;
	if (!is_member(text, redis->json))
		return;
	call->answer = (struct idempotency_answer){ .err = ERR_OK,
						    .member = arena_copy(call->arena, text),
						    .retry_after_s = -1 };
	call->verdict = IDEMPOTENCY_ANSWERED;
}

static void take_reply(struct idempotency_redis *redis, struct idempotency_claim *claim,
		       const struct redisReply *reply)
{
	struct idempotency_call *call = claim->call;

	if (reply->type != REDIS_REPLY_STRING || reply->len == 0)
		return;
	switch (reply->str[0]) {
	case 'L':
		claim->held = true;
		break;
	case 'E':
		call->verdict = IDEMPOTENCY_ELSEWHERE;
		break;
	case 'C':
		call->verdict = IDEMPOTENCY_CONFLICT;
		break;
	case 'D':
		call->verdict = IDEMPOTENCY_DONE;
		break;
	case 'A':
		take_answer(redis, call, slice_of(reply->str + 1, (size_t)reply->len - 1));
		break;
	default:
		break; /* nothing that we know: as if Redis was away */
	}
}

static void on_claimed(struct redis_call *of, enum redis_outcome outcome,
		       const struct redisReply *reply)
{
	struct idempotency_claim *claim = CONTAINER_OF(of, struct idempotency_claim, sent);
	struct idempotency_redis *redis = of->owner;

	if (outcome == REDIS_ANSWERED)
		take_reply(redis, claim, reply);
	else
		metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	if (outcome == REDIS_LOST)
		claim->held =
			true; /* it may have been heard: to be told how it ends does no harm */
	claim->done(claim);
}

static void on_late(struct redis_call *of)
{
	struct idempotency_claim *claim = CONTAINER_OF(of, struct idempotency_claim, sent);
	struct idempotency_redis *redis = of->owner;

	redis_call_forget(redis->link, of);
	metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	claim->held = true; /* as likely as not: to be told how it ends does no harm */
	claim->done(claim);
}

static const struct redis_call_type claim_type = { .put = put_claim,
						   .done = on_claimed,
						   .late = on_late };

bool idempotency_redis_claim(struct idempotency_redis *redis, struct idempotency_claim *claim)
{
	claim->held = false;
	claim->sent = (struct redis_call){ .type = &claim_type, .owner = redis };
	if (redis_script_run(redis->link, &redis->script, &claim->sent))
		return true;
	metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
	return false;
}

void idempotency_redis_forget(struct idempotency_redis *redis, struct idempotency_claim *claim)
{
	if (!redis_call_pending(&claim->sent))
		return;
	redis_call_forget(redis->link, &claim->sent);
	claim->held = true; /* it may be, in a moment: what is told comes behind it */
}

/* ---- how they end ---- */

/* Lives while it is sent. */
struct report {
	struct redis_call call;
	const struct idempotency_claim *claim;
	struct words words;
};

static void put_report(struct redis_call *of, const struct redis_script_run *run)
{
	const struct report *report = CONTAINER_OF(of, struct report, call);

	put_words(of->owner, run, report->claim, &report->words);
}

/* False: Redis is away. */
static bool report(struct idempotency_redis *redis, const struct idempotency_claim *claim,
		   const struct words *words)
{
	static const struct redis_call_type type = { .put = put_report };
	struct report report = { { .type = &type, .owner = redis }, claim, *words };

	return redis_script_send(redis->link, &redis->script, &report.call);
}

void idempotency_redis_end(struct idempotency_redis *redis, const struct idempotency_claim *claim,
			   struct slice member)
{
	if (slice_absent(member) || member.len > IDEMPOTENCY_ANSWER_MAX)
		member = SLICE("");
	const struct words words = { SLICE("done"), IDEMPOTENCY_REMEMBERED, member, SLICE("") };
	if (report(redis, claim, &words))
		return;
	if (redis->unreported_count == UNREPORTED_MAX) {
		metrics_state_away(redis->metrics, STATE_AWAY_CLAIM);
		return;
	}
	struct unreported *unreported = &redis->unreported[redis->unreported_count++];
	*unreported = (struct unreported){ .tenant = claim->tenant,
					   .key = claim->call->key,
					   .number = claim->call->number,
					   .answered_at = net_now(redis->loop) };
	(void)memcpy(unreported->body, claim->call->body, sizeof(unreported->body));
}

void idempotency_redis_drop(struct idempotency_redis *redis, const struct idempotency_claim *claim)
{
	static const struct words words = { SLICE_INIT("drop"), MSEC, SLICE_INIT(""),
					    SLICE_INIT("") };

	(void)report(redis, claim, &words);
}

/* Without the answer, which is not kept. False: Redis is away again. There is nothing to tell any more when its time is over. */
static bool report_one(struct idempotency_redis *redis, const struct unreported *unreported)
{
	const nsec_t over = unreported->answered_at + IDEMPOTENCY_REMEMBERED,
		     now = net_now(redis->loop);
	struct idempotency_call call = { .key = unreported->key, .number = unreported->number };
	const struct idempotency_claim claim = { .tenant = unreported->tenant, .call = &call };
	const struct words words = { SLICE("done"), over - now, SLICE(""), SLICE("") };

	(void)memcpy(call.body, unreported->body, sizeof(call.body));
	return over < now + MSEC || report(redis, &claim, &words);
}

static void report_all(struct idempotency_redis *redis)
{
	while (redis->unreported_count != 0 &&
	       report_one(redis, &redis->unreported[redis->unreported_count - 1]))
		redis->unreported_count--;
}

/* ---- making one ---- */

static void on_ready(struct redis_user *user)
{
	report_all(CONTAINER_OF(user, struct idempotency_redis, user));
}

static const struct redis_user_events user_events = { .ready = on_ready };

struct idempotency_redis *idempotency_redis_new(struct net_loop *loop, struct redis_link *link,
						struct alive *alive, struct json_work *json,
						struct metrics_worker *metrics)
{
	struct idempotency_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	*made = (struct idempotency_redis){
		.user = { .events = &user_events },
		.script = REDIS_SCRIPT_INIT(idempotency),
		.loop = loop,
		.link = link,
		.json = json,
		.metrics = metrics,
		.alive = alive,
	};
	redis_link_join(link, &made->user);
	return made;
}
