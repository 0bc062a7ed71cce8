#include "gateway/redis/redis_link.h"

#include "codec/base/must.h"
#include "gateway/redis/redis_link_parts.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#define CONNECT_MAX (1 * SEC) /* until the connection stands, TLS included */

enum { OUT_MAX = 64 << 20 };

static void on_flush(struct net_task *task);

/* ---- pending requests ---- */

static void arm(struct redis_link *link)
{
	const nsec_t away =
		link->state == LINK_READY ? redis_pending_away_at(&link->pending) : NSEC_NEVER;
	nsec_t due = redis_pending_due(&link->pending);

	due = away < due ? away : due;
	if (link->state == LINK_OPENING && redis_pending_is_empty(&link->pending))
		due = link->opened_at + CONNECT_MAX;
	if (due == NSEC_NEVER)
		net_timer_stop(link->args.loop, &link->deadline);
	else
		net_timer_set(link->args.loop, &link->deadline, due);
}

struct redis_request *redis_link_new_request(struct redis_link *link)
{
	struct redis_request *request = redis_pending_begin(&link->pending, redis_link_now(link));

	if (request != NULL)
		link->begun_at = link->filling.len;
	return request;
}

/* Where its bytes go, if there is room. */
static struct redis_buffer *begin(struct redis_link *link)
{
	return redis_link_new_request(link) == NULL ? NULL : &link->filling;
}

struct redis_buffer *redis_link_begin(struct redis_link *link)
{
	must(!redis_link_listens(link));
	return link->state == LINK_READY ? begin(link) : NULL;
}

bool redis_link_is_slow(const struct redis_link *link, nsec_t patience)
{
	return link->slow && link->took < patience &&
	       !redis_pending_is_quiet(&link->pending, redis_link_now(link), patience);
}

struct redis_buffer *redis_link_begin_slow(struct redis_link *link, nsec_t patience)
{
	return redis_link_is_slow(link, patience) && !link->in_time ? begin(link) : NULL;
}

struct redis_buffer *redis_link_begin_again(struct redis_link *link)
{
	return link->state >= LINK_READY ? begin(link) : NULL;
}

bool redis_link_send_request(struct redis_link *link)
{
	const bool first = link->pending.undue == link->pending.next;

	if (link->filling.failed) {
		const size_t whole = link->begun_at;
		redis_buffer_clear(&link->filling);
		link->filling.len = whole;
		return false;
	}
	redis_pending_push(&link->pending);
	if (first)
		arm(link);
	if (!link->flush_queued) {
		link->flush_queued = true;
		net_soon(link->args.loop, &link->flush);
	}
	return true;
}

bool redis_link_send(struct redis_link *link, const struct redis_command *command)
{
	const uint64_t ticket = link->pending.next;

	redis_pending_place(&link->pending, ticket)->command = *command;
	if (!redis_link_send_request(link))
		return false;
	if (command->call != NULL)
		command->call->ticket = ticket;
	return true;
}

struct redis_command *redis_link_command(struct redis_link *link, uint64_t ticket)
{
	return &redis_pending_at(&link->pending, ticket)->command;
}

bool redis_link_ready(const struct redis_link *link)
{
	return link->state == LINK_READY;
}

uint64_t redis_link_generation(const struct redis_link *link)
{
	return link->generation;
}

static void on_flush(struct net_task *task)
{
	struct redis_link *link = CONTAINER_OF(task, struct redis_link, flush);

	net_task_cancel(task); /* it may be for another reason that this is the time */
	link->flush_queued = false;
	/* What this turn did before is no lateness of Redis's; that it does not take what is there, is. */
	if (redis_pending_keeps(&link->pending))
		redis_pending_left(&link->pending, net_now_exact(link->args.loop));
	if (link->conn == NULL || link->filling.len == 0 || net_writing(link->conn))
		return; /* on_written comes back */
	const struct redis_buffer full = link->filling;
	link->filling = link->leaving;
	link->leaving = full;
	redis_buffer_clear(&link->filling);
	const struct iovec v = { link->leaving.at, link->leaving.len };
	(void)net_write(link->conn, &v, 1); /* if not all of it, on_written comes */
}

void redis_link_flush(struct redis_link *link)
{
	if (link->flush_queued)
		on_flush(&link->flush);
}

/* Since it has left, which may be later than this turn's time. */
static nsec_t took(const struct redis_link *link, const struct redis_request *request)
{
	const nsec_t now = redis_link_now(link);

	return now > request->sent ? now - request->sent : 0;
}

static void end_command(struct redis_link *link, const struct redis_request *request,
			enum redis_outcome outcome, const redisReply *reply)
{
	if (link->meter != NULL)
		link->meter->events->measured(link->meter, outcome, request->late,
					      took(link, request));
	redis_command_end(link, &request->command, outcome, reply);
}

/* Of somebody's request. */
static void on_others_reply(struct redis_link *link, const struct redis_request *request,
			    const redisReply *reply)
{
	const struct redis_command *command = &request->command;
	const bool error = reply->type == REDIS_REPLY_ERROR;

	if (error && !command->aside && !redis_command_lacks_text(command, reply)) {
		redis_link_trouble(link, store_fault_of_error(reply->str), reply->str);
		redis_link_turn(link, false, false);
	}
	end_command(link, request, error ? REDIS_REFUSED : REDIS_ANSWERED, reply);
}

static void on_reply(struct redis_link *link, const redisReply *reply)
{
	const struct redis_request request = redis_pending_pop(&link->pending);

	link->pending.heard = redis_link_now(link);
	link->took = took(link, &request);
	if (link->slow && reply->type != REDIS_REPLY_ERROR)
		redis_link_turn(link, true, !request.late);
	if (request.own && !request.command.aside) {
		redis_link_own_reply(link, &request, reply);
		return;
	}
	if (request.own)
		redis_link_login_reply(link, reply);
	else
		on_others_reply(link, &request, reply);
	if (redis_pending_is_empty(&link->pending) && link->conn != NULL)
		redis_link_idle(link, request.late || reply->type != REDIS_REPLY_ERROR);
}

/* What comes of itself: ["message", channel, text]. */
static bool is_message(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "message") == 0 &&
	       reply->element[2]->type == REDIS_REPLY_STRING;
}

static void take_reply(struct redis_link *link, const redisReply *reply)
{
	if (redis_link_listens(link) && is_message(reply))
		link->args.heard(link->args.owner,
				 slice_of(reply->element[2]->str, reply->element[2]->len));
	else if (redis_pending_is_empty(&link->pending))
		link->broken = true; /* an answer that nobody asked for */
	else
		on_reply(link, reply);
}

/* ---- the connection ---- */

/* Whether the latest answer is not whole yet. */
static bool is_arriving(const struct redis_link *link)
{
	const redisReader *reader = link->reader;

	return reader->ridx > 0 || reader->pos < reader->len;
}

static void on_readable(struct net_conn *conn, void *arg)
{
	struct redis_link *link = arg;
	size_t len;
	const char *bytes = net_input(conn, &len);
	const bool began = is_arriving(link);
	void *reply = NULL;

	link->heard = true;
	link->broken = redisReaderFeed(link->reader, bytes, len) != REDIS_OK;
	net_consume(conn, len);
	link->reading = true;
	while (!link->broken && link->conn == conn) {
		link->broken = redisReaderGetReply(link->reader, &reply) != REDIS_OK;
		if (link->broken || reply == NULL)
			break;
		take_reply(link, reply);
		freeReplyObject(reply);
	}
	link->reading = false;
	if (link->conn != conn) { /* closed meanwhile: the reader was kept for us */
		redisReaderFree(link->reader);
		link->reader = NULL;
	} else if (link->broken) {
		redis_link_close(link, STORE_FAULT_PROTOCOL, "its answer is not of this protocol");
	} else {
		if (began || is_arriving(link))
			redis_pending_moved(&link->pending, len, redis_link_now(link));
		arm(link);
	}
}

static void on_opened(struct net_conn *conn, void *arg)
{
	(void)conn;
	redis_link_greet(arg);
	arm(arg);
}

static void on_written(struct net_conn *conn, void *arg)
{
	struct redis_link *link = arg;

	(void)conn;
	on_flush(&link->flush);
}

static void on_ended(struct net_conn *conn, enum net_end end, void *arg)
{
	redis_link_close(arg, STORE_FAULT_UNREACHABLE,
			 end == NET_END_CLOSED ? "closed the connection" : net_conn_error(conn));
}

static const struct net_conn_events conn_events = {
	.opened = on_opened,
	.readable = on_readable,
	.written = on_written,
	.ended = on_ended,
};

static void retry_later(struct redis_link *link)
{
	link->state = LINK_DOWN;
	net_timer_set(link->args.loop, &link->retry,
		      redis_link_now(link) + redis_backoff_next(&link->backoff));
}

static void lose_all(struct redis_link *link)
{
	while (!redis_pending_is_empty(&link->pending)) {
		const struct redis_request request = redis_pending_pop(&link->pending);
		if (!request.own)
			end_command(link, &request, REDIS_LOST, NULL);
	}
}

/* ---- a port that may speak another protocol ---- */

static void on_found(struct redis_sniff *of, enum store_fault fault)
{
	struct redis_link *link = CONTAINER_OF(of, struct redis_link, sniff);

	if (link->proved)
		return;
	link->mismatch = fault;
	if (fault != STORE_FAULT_NONE)
		redis_link_report(link, fault, NULL);
}

/* The one that has just been tried. */
static void sniff(struct redis_link *link)
{
	const struct redis_link_args *args = &link->args;
	const struct redis_target *target = &args->targets[(link->target - 1) % args->target_count];

	redis_sniff_begin(&link->sniff, (const struct sockaddr *)&target->address, target->len);
}

static void report_failed(struct redis_link *link)
{
	REDIS_LINK_USERS(user, link, failed)
	{
		user->events->failed(user);
	}
}

static void report_lost(struct redis_link *link)
{
	REDIS_LINK_USERS(user, link, lost)
	{
		user->events->lost(user);
	}
}

void redis_link_close(struct redis_link *link, enum store_fault fault, const char *why)
{
	if (link->conn == NULL)
		return;
	const bool opening = link->state == LINK_OPENING;
	const bool strange = opening && !link->heard && !link->proved && link->args.sniffs;
	redis_link_trouble(link, fault, why);
	link->state = LINK_DOWN; /* before anybody is told of his request */
	net_close(link->conn);
	link->conn = NULL;
	if (!link->reading) {
		redisReaderFree(link->reader);
		link->reader = NULL;
	}
	redis_buffer_clear(&link->filling);
	redis_buffer_clear(&link->leaving);
	net_task_cancel(&link->flush);
	link->flush_queued = false;
	link->slow = link->in_time = false;
	link->took = 0;
	lose_all(link);
	arm(link);
	retry_later(link);
	if (strange)
		sniff(link);
	if (opening) {
		report_failed(link);
	} else {
		redis_link_report_turned(link);
		report_lost(link);
	}
}

static void link_open(struct redis_link *link)
{
	const struct redis_link_args *args = &link->args;

	link->state = LINK_OPENING;
	link->heard = false;
	link->opened_at = redis_link_now(link);
	if (args->target_count == 0 || link->reader != NULL) {
		retry_later(link);
		return;
	}
	const struct redis_target *target = &args->targets[link->target++ % args->target_count];
	link->reader = redisReaderCreate();
	if (link->reader != NULL)
		link->conn =
			net_connect(args->loop, (const struct sockaddr *)&target->address,
				    target->len, args->tls, args->server_name, &conn_events, link);
	if (link->conn == NULL) {
		if (link->reader != NULL)
			redisReaderFree(link->reader);
		link->reader = NULL;
		redis_link_report(link, STORE_FAULT_UNREACHABLE,
				  "no memory or descriptor for a connection");
		retry_later(link);
		report_failed(link);
		return;
	}
	arm(link);
}

/* ---- time ---- */

static void on_retry(struct net_timer *timer)
{
	struct redis_link *link = CONTAINER_OF(timer, struct redis_link, retry);

	if (link->state == LINK_DOWN)
		link_open(link);
	else if (redis_pending_is_empty(&link->pending) && link->state == LINK_READY)
		redis_link_probe(link);
	else if (redis_pending_is_empty(&link->pending))
		redis_link_idle(link, true);
}

/* What one command takes says nothing of the others: a server that was in use is given some time. */
static void judge(struct redis_link *link, nsec_t now)
{
	if (link->state != LINK_READY || now >= redis_pending_away_at(&link->pending))
		redis_link_trouble(link, STORE_FAULT_LATE, "answers too late");
}

static void report_late(const struct redis_request *request)
{
	struct redis_call *call = request->command.call;

	if (call != NULL && call->type->late != NULL)
		call->type->late(call);
}

static void on_deadline(struct net_timer *timer)
{
	struct redis_link *link = CONTAINER_OF(timer, struct redis_link, deadline);
	const nsec_t now = redis_link_now(link);
	const bool was_ready = link->state == LINK_READY;
	struct redis_request *request;
	bool late = false;

	if (link->state == LINK_OPENING && redis_pending_is_empty(&link->pending) &&
	    now >= link->opened_at + CONNECT_MAX) {
		redis_link_close(link, STORE_FAULT_UNREACHABLE,
				 "cannot be reached within a second");
		return;
	}
	while ((request = redis_pending_late(&link->pending, now)) != NULL) {
		judge(link, now); /* first: those who are told may ask again */
		late = true;
		report_late(request);
	}
	if (link->state == LINK_READY)
		judge(link, now);
	while (was_ready && link->state == LINK_TROUBLED &&
	       (request = redis_pending_give_up(&link->pending)) != NULL)
		report_late(request);
	if (link->state == LINK_TROUBLED && (late || was_ready))
		redis_link_turn(link, was_ready || link->slow, false);
	if (redis_pending_is_silent(&link->pending, now))
		redis_link_close(link, STORE_FAULT_SILENT, "does not answer");
	else
		arm(link);
}

void redis_link_set_targets(struct redis_link *link, const struct redis_target *targets,
			    uint32_t count)
{
	must(count <= REDIS_ADDRESSES_MAX);
	if (count == 0)
		return;
	if (link->args.target_count == 0 && link->state == LINK_DOWN)
		net_timer_set(link->args.loop, &link->retry, redis_link_now(link));
	(void)memcpy(link->args.targets, targets, count * sizeof(*targets));
	link->args.target_count = count;
}

void redis_link_set_login(struct redis_link *link, struct slice user, struct slice password)
{
	if (redis_login_is(&link->login, user, password))
		return;
	must(redis_login_set(&link->login, user,
			     password)); /* without memory for that it cannot go on */
	link->login_unsent = true;
	redis_link_renew_login(link);
}

static void link_free(struct redis_link *link)
{
	redis_login_fini(&link->login);
	free((char *)link->args.server_name);
	free((char *)link->args.name);
	redis_pending_fini(&link->pending);
	free(link);
}

struct redis_link *redis_link_new(const struct redis_link_args *args)
{
	struct redis_link *link = calloc(1, sizeof(*link));

	if (link == NULL)
		return NULL;
	*link = (struct redis_link){
		.args = *args,
		.state = LINK_DOWN,
		.fault = STORE_FAULT_CONNECTING,
		.filling.most = OUT_MAX,
		.leaving.most = OUT_MAX,
		.flush.run = on_flush,
		.deadline.fire = on_deadline,
		.retry.fire = on_retry,
		.backoff = { .chance = args->seed | 1 },
		.sniff = { .loop = args->loop, .tls = args->tls != NULL, .found = on_found },
	};
	link->users_end = &link->users;
	const bool lined = redis_pending_init(&link->pending, args->deadline);
	link->args.user = link->args.password = (struct slice){ NULL, 0 }; /* `login` has them */
	const bool named = args->server_name != NULL;
	link->args.name = strdup(args->name); /* a configuration goes with the next one */
	link->args.server_name = named ? strdup(args->server_name) : NULL;
	if (!redis_login_set(&link->login, args->user, args->password) || !lined ||
	    link->args.name == NULL || (named && link->args.server_name == NULL)) {
		link_free(link);
		return NULL;
	}
	net_timer_set(args->loop, &link->retry, redis_link_now(link));
	return link;
}

void redis_link_join(struct redis_link *link, struct redis_user *user)
{
	user->next = NULL;
	*link->users_end = user;
	link->users_end = &user->next;
	if (user->events->measured == NULL)
		return;
	must(link->meter == NULL);
	link->meter = user;
}

void redis_link_load(struct redis_link *link, struct redis_script *script)
{
	must(link->loaded == NULL);
	link->loaded = script;
}
