#include "gateway/state/state_redis.h"

#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/state/state_redis_wire.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

REDIS_SCRIPT_DECLARE(recall);
REDIS_SCRIPT_DECLARE(remember);

enum { STATE_REDIS_MAGIC = 0x53545245 };

/* A session that began or ended while Redis was away. */
struct missed {
	struct state_key tenant, session;
	uint32_t revision; /* of one that began */
};
enum { MISSED_MAX = 1024 };

/* A note by which Redis learns what it was not there for. */
struct catch_up {
	struct redis_call call;
	struct state_note note;
};

struct state_redis {
	struct state state;
	uint32_t magic;
	struct redis_user user;
	struct redis_script load, save;
	struct net_loop *loop;
	struct redis_link *link;
	struct state_memory *memory;
	struct metrics_worker *metrics;
	struct config_blocks blocks;
	nsec_t deadline;
	/* Requests that come before the first attempt to connect has ended wait for that, within the
	 * deadline of the first of them. */
	bool connecting;
	struct list waiting_recalls, waiting_notes;
	struct net_timer patience;
	struct missed missed[MISSED_MAX]; /* the latest of those that this worker is to tell of */
	uint32_t missed_count;            /* with those that had to make room */
	struct slab catching_up;
};

static struct state_redis *redis_of(struct state *state)
{
	struct state_redis *redis = CONTAINER_OF(state, struct state_redis, state);

	must_obj(redis, STATE_REDIS_MAGIC);
	return redis;
}

static const struct redis_call_type recall_type, note_type, catch_up_type; /* below */

static struct state *own(const struct state_redis *redis)
{
	return state_memory_state(redis->memory);
}

/* ---- calls ---- */

static bool send_recall(struct state_redis *redis, struct state_recall *recall)
{
	recall->call = (struct redis_call){ .type = &recall_type, .owner = redis };
	return redis_script_run(redis->link, &redis->load, &recall->call);
}

static bool send_note(struct state_redis *redis, struct state_note *note)
{
	note->call = (struct redis_call){ .type = &note_type, .owner = redis };
	return note->done == NULL ? redis_script_send(redis->link, &redis->save, &note->call)
				  : redis_script_run(redis->link, &redis->save, &note->call);
}

/* Redis was not there when this session began, or ended; nobody waits for it to be told. */
static void catch_up(struct state_redis *redis, const struct state_recall *recall, bool begins)
{
	struct catch_up *late = slab_take(&redis->catching_up);

	if (late == NULL)
		return; /* when it is asked about again */
	late->call = (struct redis_call){ .type = &catch_up_type, .owner = redis };
	late->note = (struct state_note){ .tenant = recall->tenant,
					  .session = recall->session,
					  .begin_session = begins,
					  .end_session = !begins,
					  .revision = recall->revision,
					  .now = recall->now };
	if (!redis_script_run(redis->link, &redis->save, &late->call))
		slab_give(&redis->catching_up, late); /* likewise */
}

/* ---- answers: what Redis knows and what this process does ---- */

/* A session that this process knows to have begun or ended while Redis was away; and the other way round,
 * what is to be known here when it is away next. */
static void join_session(struct state_redis *redis, struct state_recall *recall,
			 const struct state_recall *mine)
{
	struct state_note note = { .tenant = recall->tenant,
				   .session = recall->session,
				   .now = recall->now };
	const bool known = recall->session_is == STATE_SESSION_KNOWN;
	const bool known_here = mine->session_is == STATE_SESSION_KNOWN;

	if (state_key_none(&recall->session) || (known && known_here))
		return;
	const enum state_here here =
		state_memory_here(redis->memory, &recall->session, recall->now);
	if (known && here == STATE_HERE_ENDED) {
		recall->session_is = STATE_SESSION_UNKNOWN;
		catch_up(redis, recall, false);
	} else if (known) {
		note.begin_session = true;
		note.revision = recall->revision;
		(void)own(redis)->remember(own(redis), &note);
	} else if (known_here && here == STATE_HERE_BEGUN) {
		recall->session_is = STATE_SESSION_KNOWN;
		recall->revision = mine->revision;
		recall->used = mine->used;
		catch_up(redis, recall, true);
	} else if (known_here) { /* it ended at another gateway, or was lost */
		note.end_session = true;
		(void)own(redis)->remember(own(redis), &note);
	}
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What this process counted by itself is part of Redis's sum, unless that was lost. */
static void join_loop(struct state_loop *loop, const struct state_loop *mine)
{
	const uint32_t known = (uint32_t)most(loop->known, mine->known);
	const uint32_t rounds = (uint32_t)most(loop->rounds, mine->rounds);
	const struct state_place place =
		loop->place; /* there may have been another gateway's round */
	const uint64_t usd = state_key_eq(&loop->id, &mine->id) ? most(loop->usd, mine->usd) : 0;

	if (state_key_none(&loop->id) || mine->tokens > loop->tokens)
		*loop = *mine;
	loop->usd = most(loop->usd, usd);
	if (!state_place_none(&place))
		loop->place = place;
	loop->known = known;
	loop->rounds = rounds;
}

static void join_blocks(struct state_redis *redis, struct state_recall *recall)
{
	size_t room = state_found_max(recall);

	for (uint32_t i = 0; recall->found != NULL && i < recall->block_count; i++)
		room -= recall->found[i].len; /* of Redis's, which are no more than that */
	for (uint32_t i = 0; recall->found != NULL && i < recall->block_count; i++) {
		struct state_recall mine = { .blocks = &recall->blocks[i],
					     .block_count = 1,
					     .arena = recall->arena,
					     .now = recall->now };
		if (!slice_absent(recall->found[i]) && recall->found[i].len != 0)
			continue;
		if (!slice_absent(recall->found[i])) { /* another gateway's provider refused them */
			recall->found[i] = (struct slice){ NULL, 0 };
			own(redis)->drop_blocks(own(redis), recall->tenant, &recall->blocks[i], 1);
			continue;
		}
		(void)own(redis)->recall(own(redis), &mine);
		if (mine.found == NULL)
			continue;
		if (mine.found[0].len > room) {
			recall->cut |= recall->early;
			continue;
		}
		recall->found[i] = mine.found[0];
		room -= mine.found[0].len;
	}
	if (recall->cut)
		recall->found = NULL;
}

static void join(struct state_redis *redis, struct state_recall *recall)
{
	struct state_recall mine = { .session = recall->session,
				     .calls = recall->calls,
				     .call_count = recall->call_count,
				     .arena = recall->arena,
				     .now = recall->now };

	(void)own(redis)->recall(own(redis), &mine);
	recall->away = false;
	join_session(redis, recall, &mine);
	join_loop(&recall->loop, &mine.loop);
	join_blocks(redis, recall);
}

/* ---- without Redis: what this process knows ---- */

static void recall_fallback(struct state_redis *redis, struct state_recall *recall)
{
	(void)own(redis)->recall(own(redis), recall);
	recall->away = true;
	metrics_state_away(redis->metrics, STATE_AWAY_RECALL);
	if (state_key_none(&recall->session) || recall->session_is == STATE_SESSION_KNOWN)
		return;
	if (state_memory_here(redis->memory, &recall->session, recall->now) != STATE_HERE_ENDED)
		recall->session_is = STATE_SESSION_UNSURE;
}

static void keep_missed(struct state_redis *redis, const struct state_note *note)
{
	redis->missed[redis->missed_count++ % MISSED_MAX] =
		(struct missed){ note->tenant, note->session, note->revision };
}

/* Redis is back: other gateways are asked about these sessions, too. Those that had to make room are told
 * when they are asked about here. */
static void report_missed(struct state_redis *redis)
{
	const uint32_t count = redis->missed_count < MISSED_MAX ? redis->missed_count : MISSED_MAX;
	const nsec_t now = net_now(redis->loop);

	redis->missed_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct missed *missed = &redis->missed[i];
		const enum state_here here =
			state_memory_here(redis->memory, &missed->session, now);
		const struct state_recall about = { .tenant = missed->tenant,
						    .session = missed->session,
						    .revision = missed->revision,
						    .now = now };
		if (here != STATE_HERE_NOTHING)
			catch_up(redis, &about, here == STATE_HERE_BEGUN);
	}
}

/* The memory store was told already. */
static void note_fallback(struct state_redis *redis, struct state_note *note)
{
	note->away = true;
	note->blocks_kept = false; /* where another gateway finds them */
	metrics_state_away(redis->metrics, STATE_AWAY_NOTE);
	if (!note->begin_session && !note->end_session)
		return;
	state_memory_set_here(redis->memory, &note->tenant, &note->session,
			      note->end_session ? STATE_HERE_ENDED : STATE_HERE_BEGUN, note->now);
	keep_missed(redis, note);
}

/* ---- what becomes of calls ---- */

static void put_recall(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_recall(run, CONTAINER_OF(call, struct state_recall, call), &redis->blocks);
}

static void recall_done(struct redis_call *call, enum redis_outcome outcome,
			const struct redisReply *reply)
{
	struct state_recall *recall = CONTAINER_OF(call, struct state_recall, call);

	if (outcome == REDIS_ANSWERED && state_wire_recalled(reply, recall))
		join(call->owner, recall);
	else
		recall_fallback(call->owner, recall);
	recall->done(recall);
}

static void recall_late(struct redis_call *call)
{
	struct state_recall *recall = CONTAINER_OF(call, struct state_recall, call);
	struct state_redis *redis = call->owner;

	redis_call_forget(redis->link, call);
	recall_fallback(redis, recall);
	recall->done(recall);
}

static const struct redis_call_type recall_type = { put_recall, recall_done, recall_late };

static void put_note(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_note(run, CONTAINER_OF(call, struct state_note, call), &redis->blocks);
}

static void note_done(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct state_note *note = CONTAINER_OF(call, struct state_note, call);
	struct state_redis *redis = call->owner;
	bool ended;

	if (outcome == REDIS_ANSWERED && state_wire_noted(reply, &ended)) {
		note->ended = note->end_session && (ended || note->ended);
		note->blocks_kept = state_wire_keeps(note, &redis->blocks);
	} else {
		note_fallback(redis, note);
	}
	note->done(note);
}

static void note_late(struct redis_call *call)
{
	struct state_note *note = CONTAINER_OF(call, struct state_note, call);
	struct state_redis *redis = call->owner;

	redis_call_forget(redis->link, call);
	note_fallback(redis, note);
	if (redis_link_ready(redis->link))
		report_missed(redis); /* behind the note, which may have been too much by itself */
	note->done(note);
}

static const struct redis_call_type note_type = { put_note, note_done, note_late };

static void put_catch_up(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_note(run, &CONTAINER_OF(call, struct catch_up, call)->note, &redis->blocks);
}

/* Redis knows now what it had missed of that session: it decides again. */
static void caught_up(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct catch_up *late = CONTAINER_OF(call, struct catch_up, call);
	struct state_redis *redis = call->owner;
	const struct state_key session = late->note.session;

	(void)reply;
	slab_give(&redis->catching_up, late);
	if (outcome == REDIS_ANSWERED)
		state_memory_set_here(redis->memory, NULL, &session, STATE_HERE_NOTHING,
				      net_now(redis->loop));
}

static const struct redis_call_type catch_up_type = { .put = put_catch_up, .done = caught_up };

/* ---- at the beginning ---- */

static void send_waiting_recall(struct state_redis *redis, struct state_recall *recall)
{
	list_remove(&recall->waits);
	if (send_recall(redis, recall))
		return;
	recall_fallback(redis, recall);
	recall->done(recall);
}

static void send_waiting_note(struct state_redis *redis, struct state_note *note)
{
	list_remove(&note->waits);
	if (send_note(redis, note))
		return;
	note_fallback(redis, note);
	note->done(note);
}

static void end_waiting(struct state_redis *redis)
{
	struct list_link *link;

	redis->connecting = false;
	net_timer_stop(redis->loop, &redis->patience);
	while ((link = list_first(&redis->waiting_recalls)) != NULL)
		send_waiting_recall(redis, CONTAINER_OF(link, struct state_recall, waits));
	while ((link = list_first(&redis->waiting_notes)) != NULL)
		send_waiting_note(redis, CONTAINER_OF(link, struct state_note, waits));
}

static void on_ready(struct redis_user *user)
{
	struct state_redis *redis = CONTAINER_OF(user, struct state_redis, user);

	report_missed(redis);
	end_waiting(redis);
}

static void on_failed(struct redis_user *user)
{
	end_waiting(CONTAINER_OF(user, struct state_redis, user));
}

static const struct redis_user_events user_events = { .ready = on_ready, .failed = on_failed };

static void on_waited(struct net_timer *timer)
{
	end_waiting(CONTAINER_OF(timer, struct state_redis, patience));
}

static void have_patience(struct state_redis *redis)
{
	if (list_is_empty(&redis->waiting_recalls) && list_is_empty(&redis->waiting_notes))
		net_timer_set(redis->loop, &redis->patience,
			      net_now(redis->loop) + redis->deadline);
}

/* ---- the interface ---- */

/* What this process knows; and that the rest is as the request says. */
static enum state_outcome guess(struct state_redis *redis, struct state_recall *recall)
{
	if (!recall->may_guess)
		return STATE_PENDING;
	(void)own(redis)->recall(own(redis), recall);
	recall->loop.known = recall->call_count;
	if (state_key_none(&recall->session) || recall->session_is == STATE_SESSION_KNOWN)
		return STATE_GUESSED;
	if (state_memory_here(redis->memory, &recall->session, recall->now) == STATE_HERE_ENDED)
		return STATE_PENDING;
	recall->session_is = STATE_SESSION_UNSURE;
	return STATE_GUESSED;
}

static enum state_outcome redis_recall(struct state *state, struct state_recall *recall)
{
	struct state_redis *redis = redis_of(state);

	recall->waits = (struct list_link){ 0 };
	if (send_recall(redis, recall))
		return guess(redis, recall);
	if (!redis->connecting) {
		recall_fallback(redis, recall);
		return STATE_DONE;
	}
	have_patience(redis);
	list_add(&redis->waiting_recalls, &recall->waits);
	return guess(redis, recall);
}

static enum state_outcome redis_remember(struct state *state, struct state_note *note)
{
	struct state_redis *redis = redis_of(state);
	const bool waits = note->done != NULL;

	note->waits = (struct list_link){ 0 };
	(void)own(redis)->remember(own(redis), note);
	if (send_note(redis, note))
		return waits ? STATE_PENDING : STATE_DONE;
	if (!redis->connecting || !waits) {
		note_fallback(redis, note);
		return STATE_DONE;
	}
	have_patience(redis);
	list_add(&redis->waiting_notes, &note->waits);
	return STATE_PENDING;
}

static void redis_forget_recall(struct state *state, struct state_recall *recall)
{
	if (list_has(&recall->waits))
		list_remove(&recall->waits);
	else
		redis_call_forget(redis_of(state)->link, &recall->call);
}

static void redis_forget_note(struct state *state, struct state_note *note)
{
	if (list_has(&note->waits))
		list_remove(&note->waits);
	else
		redis_call_forget(redis_of(state)->link, &note->call);
}

/* What Redis is not told, a provider refuses again. */
static void redis_drop_blocks(struct state *state, struct state_key tenant,
			      const struct state_key *blocks, uint32_t count)
{
	struct state_redis *redis = redis_of(state);

	own(redis)->drop_blocks(own(redis), tenant, blocks, count);
	count = count < STATE_BLOCKS_MAX ? count : STATE_BLOCKS_MAX; /* as many as were found */
	for (uint32_t i = 0; i < count; i++) {
		struct redis_buffer *to = redis_link_begin(redis->link);
		if (to == NULL)
			return;
		state_wire_drop(to, &tenant, &blocks[i], &redis->blocks);
		if (!redis_link_send(redis->link, &(struct redis_command){ .call = NULL }))
			return;
	}
}

struct state *state_redis_state(struct state_redis *redis)
{
	return &redis->state;
}

struct state_redis *state_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct state_memory *memory, const struct config_store *config,
				    struct metrics_worker *metrics)
{
	struct state_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	*made = (struct state_redis){
		.state = { .recall = redis_recall,
			   .remember = redis_remember,
			   .forget_recall = redis_forget_recall,
			   .forget_note = redis_forget_note,
			   .drop_blocks = redis_drop_blocks },
		.magic = STATE_REDIS_MAGIC,
		.user = { .events = &user_events },
		.load = REDIS_SCRIPT_INIT(recall),
		.save = REDIS_SCRIPT_INIT(remember),
		.loop = loop,
		.link = link,
		.memory = memory,
		.metrics = metrics,
		.blocks = config->blocks,
		.deadline = config->deadline,
		.connecting = true,
		.patience.fire = on_waited,
	};
	if (!slab_init(&made->catching_up, sizeof(struct catch_up), MISSED_MAX)) {
		free(made);
		return NULL;
	}
	list_init(&made->waiting_recalls);
	list_init(&made->waiting_notes);
	redis_link_join(link, &made->user);
	return made;
}
