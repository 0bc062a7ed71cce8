#include "gateway/state/state_redis.h"

#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/state/state_redis_wire.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

REDIS_SCRIPT_DECLARE(state_load);
REDIS_SCRIPT_DECLARE(state_save);

enum { STATE_REDIS_MAGIC = 0x53545245 };

/* A session that began or ended while Redis was away. */
struct missed {
	struct state_key tenant, session;
	uint32_t revision; /* of one that began */
};
enum { MISSED_MAX = 1024 };

/* What Redis is sent to learn what it was not there for. */
struct catch_up {
	struct redis_call call;
	struct state_save save;
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
	struct list waiting_loads, waiting_saves;
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

static const struct redis_call_type load_type, save_type, catch_up_type; /* below */

static struct state *own(const struct state_redis *redis)
{
	return state_memory_state(redis->memory);
}

/* ---- calls ---- */

static bool send_load(struct state_redis *redis, struct state_load *load)
{
	load->call = (struct redis_call){ .type = &load_type, .owner = redis };
	return redis_script_run(redis->link, &redis->load, &load->call);
}

static bool send_save(struct state_redis *redis, struct state_save *save)
{
	save->call = (struct redis_call){ .type = &save_type, .owner = redis };
	return save->done == NULL ? redis_script_send(redis->link, &redis->save, &save->call)
				  : redis_script_run(redis->link, &redis->save, &save->call);
}

/* Redis was not there when this session began, or ended; nobody waits for it to be told. */
static void catch_up(struct state_redis *redis, const struct state_load *load, bool begins)
{
	struct catch_up *late = slab_take(&redis->catching_up);

	if (late == NULL)
		return; /* when it is asked about again */
	late->call = (struct redis_call){ .type = &catch_up_type, .owner = redis };
	late->save = (struct state_save){ .tenant = load->tenant,
					  .session = load->session,
					  .change = begins ? STATE_BEGINS : STATE_ENDS,
					  .revision = load->revision,
					  .now = load->now };
	if (!redis_script_run(redis->link, &redis->save, &late->call))
		slab_give(&redis->catching_up, late); /* likewise */
}

/* ---- answers: what Redis knows and what this process does ---- */

/* A session that this process knows to have begun or ended while Redis was away; and the other way round,
 * what is to be known here when it is away next. */
static void join_session(struct state_redis *redis, struct state_load *load,
			 const struct state_load *mine)
{
	struct state_save save = { .tenant = load->tenant,
				   .session = load->session,
				   .now = load->now };
	const bool known = load->session_is == STATE_SESSION_KNOWN;
	const bool known_here = mine->session_is == STATE_SESSION_KNOWN;

	if (state_key_none(&load->session) || (known && known_here))
		return;
	const enum state_here here = state_memory_here(redis->memory, &load->session, load->now);
	if (known && here == STATE_HERE_ENDED) {
		load->session_is = STATE_SESSION_UNKNOWN;
		catch_up(redis, load, false);
	} else if (known) {
		save.change = STATE_BEGINS;
		save.revision = load->revision;
		(void)own(redis)->save(own(redis), &save);
	} else if (known_here && here == STATE_HERE_BEGUN) {
		load->session_is = STATE_SESSION_KNOWN;
		load->revision = mine->revision;
		load->used = mine->used;
		catch_up(redis, load, true);
	} else if (known_here) { /* it ended at another gateway, or was lost */
		save.change = STATE_ENDS;
		(void)own(redis)->save(own(redis), &save);
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
	const struct state_target target =
		loop->target; /* there may have been another gateway's round */
	const uint64_t usd = state_key_eq(&loop->id, &mine->id) ? most(loop->usd, mine->usd) : 0;

	if (state_key_none(&loop->id) || mine->tokens > loop->tokens)
		*loop = *mine;
	loop->usd = most(loop->usd, usd);
	if (!state_target_none(&target))
		loop->target = target;
	loop->known = known;
	loop->rounds = rounds;
}

static void join_blocks(struct state_redis *redis, struct state_load *load)
{
	size_t room = state_found_max(load);

	for (uint32_t i = 0; load->found != NULL && i < load->block_count; i++)
		room -= load->found[i].len; /* of Redis's, which are no more than that */
	for (uint32_t i = 0; load->found != NULL && i < load->block_count; i++) {
		struct state_load mine = { .blocks = &load->blocks[i],
					   .block_count = 1,
					   .arena = load->arena,
					   .now = load->now };
		if (!slice_absent(load->found[i]) && load->found[i].len != 0)
			continue;
		if (!slice_absent(load->found[i])) { /* another gateway's provider refused them */
			load->found[i] = (struct slice){ NULL, 0 };
			own(redis)->drop_blocks(own(redis), load->tenant, &load->blocks[i], 1);
			continue;
		}
		(void)own(redis)->load(own(redis), &mine);
		if (mine.found == NULL)
			continue;
		if (mine.found[0].len > room) {
			load->cut |= load->early;
			continue;
		}
		load->found[i] = mine.found[0];
		room -= mine.found[0].len;
	}
	if (load->cut)
		load->found = NULL;
}

static void join(struct state_redis *redis, struct state_load *load)
{
	struct state_load mine = { .session = load->session,
				   .calls = load->calls,
				   .call_count = load->call_count,
				   .arena = load->arena,
				   .now = load->now };

	(void)own(redis)->load(own(redis), &mine);
	load->away = false;
	join_session(redis, load, &mine);
	join_loop(&load->loop, &mine.loop);
	join_blocks(redis, load);
}

/* ---- without Redis: what this process knows ---- */

static void load_fallback(struct state_redis *redis, struct state_load *load)
{
	(void)own(redis)->load(own(redis), load);
	load->away = true;
	metrics_state_away(redis->metrics, STATE_AWAY_RECALL);
	if (state_key_none(&load->session) || load->session_is == STATE_SESSION_KNOWN)
		return;
	if (state_memory_here(redis->memory, &load->session, load->now) != STATE_HERE_ENDED)
		load->session_is = STATE_SESSION_UNSURE;
}

static void keep_missed(struct state_redis *redis, const struct state_save *save)
{
	redis->missed[redis->missed_count++ % MISSED_MAX] =
		(struct missed){ save->tenant, save->session, save->revision };
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
		const struct state_load about = { .tenant = missed->tenant,
						  .session = missed->session,
						  .revision = missed->revision,
						  .now = now };
		if (here != STATE_HERE_NOTHING)
			catch_up(redis, &about, here == STATE_HERE_BEGUN);
	}
}

/* The memory store was told already. */
static void save_fallback(struct state_redis *redis, struct state_save *save)
{
	save->away = true;
	save->blocks_kept = false; /* where another gateway finds them */
	metrics_state_away(redis->metrics, STATE_AWAY_NOTE);
	if (save->change == STATE_COUNTS)
		return;
	state_memory_set_here(redis->memory, &save->tenant, &save->session,
			      save->change == STATE_ENDS ? STATE_HERE_ENDED : STATE_HERE_BEGUN,
			      save->now);
	keep_missed(redis, save);
}

/* ---- what becomes of calls ---- */

static void put_load(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_load(run, CONTAINER_OF(call, struct state_load, call), &redis->blocks);
}

static void load_done(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct state_load *load = CONTAINER_OF(call, struct state_load, call);

	if (outcome == REDIS_ANSWERED && state_wire_loaded(reply, load))
		join(call->owner, load);
	else
		load_fallback(call->owner, load);
	load->done(load);
}

static void load_late(struct redis_call *call)
{
	struct state_load *load = CONTAINER_OF(call, struct state_load, call);
	struct state_redis *redis = call->owner;

	redis_call_forget(redis->link, call);
	load_fallback(redis, load);
	load->done(load);
}

static const struct redis_call_type load_type = { put_load, load_done, load_late };

static void put_save(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_save(run, CONTAINER_OF(call, struct state_save, call), &redis->blocks);
}

static void save_done(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct state_save *save = CONTAINER_OF(call, struct state_save, call);
	struct state_redis *redis = call->owner;
	bool ended;

	if (outcome == REDIS_ANSWERED && state_wire_saved(reply, &ended)) {
		save->ended = save->change == STATE_ENDS && (ended || save->ended);
		save->blocks_kept = state_wire_keeps(save, &redis->blocks);
	} else {
		save_fallback(redis, save);
	}
	save->done(save);
}

static void save_late(struct redis_call *call)
{
	struct state_save *save = CONTAINER_OF(call, struct state_save, call);
	struct state_redis *redis = call->owner;

	redis_call_forget(redis->link, call);
	save_fallback(redis, save);
	if (redis_link_ready(redis->link))
		report_missed(redis); /* behind the save, which may have been too much by itself */
	save->done(save);
}

static const struct redis_call_type save_type = { put_save, save_done, save_late };

static void put_catch_up(struct redis_call *call, const struct redis_script_run *run)
{
	const struct state_redis *redis = call->owner;

	state_wire_save(run, &CONTAINER_OF(call, struct catch_up, call)->save, &redis->blocks);
}

/* Redis knows now what it had missed of that session: it decides again. */
static void caught_up(struct redis_call *call, enum redis_outcome outcome,
		      const struct redisReply *reply)
{
	struct catch_up *late = CONTAINER_OF(call, struct catch_up, call);
	struct state_redis *redis = call->owner;
	const struct state_key session = late->save.session;

	(void)reply;
	slab_give(&redis->catching_up, late);
	if (outcome == REDIS_ANSWERED)
		state_memory_set_here(redis->memory, NULL, &session, STATE_HERE_NOTHING,
				      net_now(redis->loop));
}

static const struct redis_call_type catch_up_type = { .put = put_catch_up, .done = caught_up };

/* ---- at the beginning ---- */

static void send_waiting_load(struct state_redis *redis, struct state_load *load)
{
	list_remove(&load->waits);
	if (send_load(redis, load))
		return;
	load_fallback(redis, load);
	load->done(load);
}

static void send_waiting_save(struct state_redis *redis, struct state_save *save)
{
	list_remove(&save->waits);
	if (send_save(redis, save))
		return;
	save_fallback(redis, save);
	save->done(save);
}

static void end_waiting(struct state_redis *redis)
{
	struct list_link *link;

	redis->connecting = false;
	net_timer_stop(redis->loop, &redis->patience);
	while ((link = list_first(&redis->waiting_loads)) != NULL)
		send_waiting_load(redis, CONTAINER_OF(link, struct state_load, waits));
	while ((link = list_first(&redis->waiting_saves)) != NULL)
		send_waiting_save(redis, CONTAINER_OF(link, struct state_save, waits));
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
	if (list_is_empty(&redis->waiting_loads) && list_is_empty(&redis->waiting_saves))
		net_timer_set(redis->loop, &redis->patience,
			      net_now(redis->loop) + redis->deadline);
}

/* ---- the interface ---- */

/* What this process knows; and that the rest is as the request says. */
static enum state_outcome guess(struct state_redis *redis, struct state_load *load)
{
	if (!load->may_guess)
		return STATE_PENDING;
	(void)own(redis)->load(own(redis), load);
	load->loop.known = load->call_count;
	if (state_key_none(&load->session) || load->session_is == STATE_SESSION_KNOWN)
		return STATE_GUESSED;
	if (state_memory_here(redis->memory, &load->session, load->now) == STATE_HERE_ENDED)
		return STATE_PENDING;
	load->session_is = STATE_SESSION_UNSURE;
	return STATE_GUESSED;
}

static enum state_outcome redis_load(struct state *state, struct state_load *load)
{
	struct state_redis *redis = redis_of(state);

	load->waits = (struct list_link){ 0 };
	if (send_load(redis, load))
		return guess(redis, load);
	if (!redis->connecting) {
		load_fallback(redis, load);
		return STATE_DONE;
	}
	have_patience(redis);
	list_add(&redis->waiting_loads, &load->waits);
	return guess(redis, load);
}

static enum state_outcome redis_save(struct state *state, struct state_save *save)
{
	struct state_redis *redis = redis_of(state);
	const bool waits = save->done != NULL;

	save->waits = (struct list_link){ 0 };
	(void)own(redis)->save(own(redis), save);
	if (send_save(redis, save))
		return waits ? STATE_PENDING : STATE_DONE;
	if (!redis->connecting || !waits) {
		save_fallback(redis, save);
		return STATE_DONE;
	}
	have_patience(redis);
	list_add(&redis->waiting_saves, &save->waits);
	return STATE_PENDING;
}

static void redis_forget_load(struct state *state, struct state_load *load)
{
	if (list_has(&load->waits))
		list_remove(&load->waits);
	else
		redis_call_forget(redis_of(state)->link, &load->call);
}

static void redis_forget_save(struct state *state, struct state_save *save)
{
	if (list_has(&save->waits))
		list_remove(&save->waits);
	else
		redis_call_forget(redis_of(state)->link, &save->call);
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
		.state = { .load = redis_load,
			   .save = redis_save,
			   .forget_load = redis_forget_load,
			   .forget_save = redis_forget_save,
			   .drop_blocks = redis_drop_blocks },
		.magic = STATE_REDIS_MAGIC,
		.user = { .events = &user_events },
		.load = REDIS_SCRIPT_INIT(state_load),
		.save = REDIS_SCRIPT_INIT(state_save),
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
	list_init(&made->waiting_loads);
	list_init(&made->waiting_saves);
	redis_link_join(link, &made->user);
	return made;
}
