#include "gateway/store_redis_link.h"

#include "codec/base/must.h"
#include "gateway/store_redis_line.h"
#include "gateway/store_redis_login.h"
#include "gateway/store_redis_pause.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum link_state {
	LINK_DOWN,     /* waits for its next attempt */
	LINK_OPENING,  /* connecting, or greeting */
	LINK_READY,    /* from here on greeted */
	LINK_TROUBLED, /* connected; answers are awaited, or a probe's */
};

#define CONNECT_MAX (1 * SEC) /* until the connection stands, TLS included */
#define PROBE_EVERY (200 * MSEC)
#define LISTEN_PROBE_EVERY (5 * SEC) /* whether who says nothing is still there */

enum { OUT_MAX = 64 << 20, ERROR_ROOM = 128 };

struct redis_link {
	struct redis_link_args args;
	enum link_state state;
	struct net_conn *conn;
	redisReader *reader;
	struct redis_buffer filling, leaving;
	size_t begun_at; /* where the request that is being filled begins */
	struct net_task flush;
	bool flush_queued, reading, broken;
	struct redis_line line;
	struct net_timer deadline; /* of the line, or of connecting */
	struct net_timer retry;    /* the next attempt or probe */
	nsec_t opened_at;
	struct redis_pause pause;
	uint32_t target;
	char error[ERROR_ROOM]; /* what was told last */
	struct redis_login login;
	bool login_unsent; /* to the server at the other end, which knows another */
};

static void link_close(struct redis_link *link, const char *why);
static void link_trouble(struct redis_link *link, const char *why);
static void on_flush(struct net_task *task);

static nsec_t now_of(const struct redis_link *link)
{
	return net_now(link->args.loop);
}

/* ---- messages: once per change ---- */

static void tell(struct redis_link *link, const char *what)
{
	if (strncmp(link->error, what, sizeof(link->error) - 1) == 0)
		return;
	(void)snprintf(link->error, sizeof(link->error), "%s", what);
	if (!link->args.quiet)
		(void)fprintf(stderr, "sluice: store %s: %s\n", link->args.name, link->error);
}

/* ---- the line of requests ---- */

static void arm(struct redis_link *link)
{
	nsec_t due = redis_line_due(&link->line);

	if (link->state == LINK_OPENING && redis_line_is_empty(&link->line))
		due = link->opened_at + CONNECT_MAX;
	if (due == NSEC_NEVER)
		net_timer_stop(link->args.loop, &link->deadline);
	else
		net_timer_set(link->args.loop, &link->deadline, due);
}

static struct redis_request *begin(struct redis_link *link)
{
	struct redis_request *request = redis_line_begin(&link->line, now_of(link));

	if (request != NULL)
		link->begun_at = link->filling.len;
	return request;
}

static bool listens(const struct redis_link *link)
{
	return !slice_absent(link->args.channel);
}

struct redis_request *redis_link_begin(struct redis_link *link, struct redis_buffer **buffer,
				       uint64_t *ticket)
{
	must(!listens(link));
	struct redis_request *request = link->state == LINK_READY ? begin(link) : NULL;

	*buffer = &link->filling;
	*ticket = link->line.next;
	return request;
}

bool redis_link_send(struct redis_link *link)
{
	const bool first = link->line.undue == link->line.next;

	if (link->filling.failed) {
		const size_t whole = link->begun_at;
		redis_buffer_clear(&link->filling);
		link->filling.len = whole;
		return false;
	}
	redis_line_push(&link->line);
	if (first)
		arm(link);
	if (!link->flush_queued) {
		link->flush_queued = true;
		net_soon(link->args.loop, &link->flush);
	}
	return true;
}

struct redis_request *redis_link_request(struct redis_link *link, uint64_t ticket)
{
	return redis_line_at(&link->line, ticket);
}

bool redis_link_ready(const struct redis_link *link)
{
	return link->state == LINK_READY;
}

static void on_flush(struct net_task *task)
{
	struct redis_link *link = CONTAINER_OF(task, struct redis_link, flush);

	net_task_cancel(task); /* it may be for another reason that this is the time */
	link->flush_queued = false;
	/* What this turn did before is no lateness of Redis's; that it does not take what is there, is. */
	if (redis_line_keeps(&link->line))
		redis_line_left(&link->line, net_now_exact(link->args.loop));
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

/* ---- the link's own requests ---- */

static void own_send(struct redis_link *link, bool aside, const struct slice *words, uint32_t count)
{
	struct redis_request *request = begin(link);

	if (request == NULL)
		return;
	request->own = true;
	request->aside = aside;
	redis_put_count(&link->filling, count);
	for (uint32_t i = 0; i < count; i++)
		redis_put(&link->filling, words[i]);
	if (!redis_link_send(link))
		link_close(link, "no memory for a request");
}

static void send_login(struct redis_link *link, bool aside)
{
	struct slice words[REDIS_LOGIN_WORDS];
	const uint32_t count = redis_login_command(&link->login, words);

	link->login_unsent = false;
	if (count != 0)
		own_send(link, aside, words, count);
}

/* To a server that goes on with the old one until it has heard it. Who listens may say nothing but that. */
static void renew_login(struct redis_link *link)
{
	if (link->login_unsent && link->state >= LINK_READY && !listens(link))
		send_login(link, true);
}

/* A write, so that a replica or a full server does not pass. To listen any server will do. */
static void probe(struct redis_link *link)
{
	static const struct slice ping = SLICE_INIT("PING");
	const struct slice arguments[] = { SLICE("SET"), SLICE("sluice:2:probe"), SLICE("1"),
					   SLICE("PX"), SLICE("60000") };

	if (listens(link))
		own_send(link, false, &ping, 1);
	else
		own_send(link, false, arguments, COUNT_OF(arguments));
}

static void greet(struct redis_link *link)
{
	const struct redis_link_args *args = &link->args;
	char number[16];

	send_login(link, false);
	const struct slice listen[] = { SLICE("SUBSCRIBE"), args->channel };
	if (link->conn != NULL && listens(link)) {
		own_send(link, false, listen, COUNT_OF(listen));
		return;
	}
	(void)snprintf(number, sizeof(number), "%u", args->database);
	const struct slice select[] = { SLICE("SELECT"), slice_str(number) };
	if (link->conn != NULL && args->database != 0)
		own_send(link, false, select, COUNT_OF(select));
	const struct slice load[] = { SLICE("EVAL"), args->script, SLICE("0") };
	if (link->conn != NULL && !slice_absent(args->script))
		own_send(link, false, load, COUNT_OF(load));
	if (link->conn != NULL)
		probe(link);
}

/* ---- health ---- */

static void become_ready(struct redis_link *link)
{
	if (link->error[0] != '\0')
		tell(link, "in use again");
	link->error[0] = '\0';
	link->pause.next = 0;
	link->state = LINK_READY;
	net_timer_stop(link->args.loop, &link->retry);
	if (listens(link))
		net_timer_set(link->args.loop, &link->retry, now_of(link) + LISTEN_PROBE_EVERY);
	link->args.events->ready(link->args.owner);
	renew_login(link);
}

static void probe_later(struct redis_link *link)
{
	net_timer_set(link->args.loop, &link->retry, now_of(link) + PROBE_EVERY);
}

static void link_trouble(struct redis_link *link, const char *why)
{
	tell(link, why);
	if (link->state != LINK_READY)
		return;
	link->state = LINK_TROUBLED;
	link->args.events->unready(link->args.owner);
}

/* The line is empty: whether things are well again is for a probe to find out. */
static void on_idle(struct redis_link *link, bool at_once)
{
	if (link->state != LINK_TROUBLED || link->conn == NULL)
		return;
	if (at_once)
		probe(link);
	else
		probe_later(link);
}

static void on_own_reply(struct redis_link *link, const struct redis_request *request,
			 const redisReply *reply)
{
	char why[ERROR_ROOM];

	if (reply->type == REDIS_REPLY_ERROR) {
		(void)snprintf(why, sizeof(why), "%s", reply->str);
		link_close(link, why); /* after a failover the next address may be another */
		return;
	}
	if (!redis_line_is_empty(&link->line)) /* of the greeting the last counts */
		return;
	if (!request->late) {
		become_ready(link);
		return;
	}
	link->state = LINK_TROUBLED;
	probe_later(link);
}

/* Refused, it leaves the connection as it was: the next one is another matter. */
static void on_login_reply(struct redis_link *link, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR && !link->args.quiet)
		(void)fprintf(stderr, "sluice: store %s: goes on with the old password: %s\n",
			      link->args.name, reply->str);
}

/* Since it has left, which may be later than this turn's time. */
static nsec_t took(const struct redis_link *link, const struct redis_request *request)
{
	const nsec_t now = now_of(link);

	return now > request->sent ? now - request->sent : 0;
}

/* Of somebody's request. */
static void on_others_reply(struct redis_link *link, const struct redis_request *request,
			    const redisReply *reply)
{
	const bool error = reply->type == REDIS_REPLY_ERROR;
	const enum redis_outcome outcome = error ? REDIS_REFUSED : REDIS_ANSWERED;

	if (error && !request->aside && strncmp(reply->str, "NOSCRIPT", 8) != 0)
		link_trouble(link, reply->str);
	link->args.events->measured(link->args.owner, outcome, request->late, took(link, request));
	link->args.events->done(link->args.owner, request, outcome, reply);
}

static void on_reply(struct redis_link *link, const redisReply *reply)
{
	const struct redis_request request = redis_line_pop(&link->line);

	link->line.heard = now_of(link);
	if (request.own && !request.aside) {
		on_own_reply(link, &request, reply);
		return;
	}
	if (request.own)
		on_login_reply(link, reply);
	else
		on_others_reply(link, &request, reply);
	if (redis_line_is_empty(&link->line) && link->conn != NULL)
		on_idle(link, request.late || reply->type != REDIS_REPLY_ERROR);
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
	if (listens(link) && is_message(reply))
		link->args.events->heard(link->args.owner,
					 slice_of(reply->element[2]->str, reply->element[2]->len));
	else if (redis_line_is_empty(&link->line))
		link->broken = true; /* an answer that nobody asked for */
	else
		on_reply(link, reply);
}

/* ---- the connection ---- */

static void on_readable(struct net_conn *conn, void *arg)
{
	struct redis_link *link = arg;
	size_t len;
	const char *bytes = net_input(conn, &len);
	void *reply = NULL;

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
		link_close(link, "its answer is not of this protocol");
	} else {
		arm(link);
	}
}

static void on_opened(struct net_conn *conn, void *arg)
{
	(void)conn;
	greet(arg);
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
	link_close(arg, end == NET_END_CLOSED ? "closed the connection" : net_conn_error(conn));
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
	net_timer_set(link->args.loop, &link->retry, now_of(link) + redis_pause(&link->pause));
}

static void lose_all(struct redis_link *link)
{
	while (!redis_line_is_empty(&link->line)) {
		const struct redis_request request = redis_line_pop(&link->line);
		if (request.own)
			continue;
		link->args.events->measured(link->args.owner, REDIS_LOST, request.late,
					    took(link, &request));
		link->args.events->done(link->args.owner, &request, REDIS_LOST, NULL);
	}
}

static void link_close(struct redis_link *link, const char *why)
{
	if (link->conn == NULL)
		return;
	const bool opening = link->state == LINK_OPENING;
	link_trouble(link, why);
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
	lose_all(link);
	arm(link);
	retry_later(link);
	if (opening)
		link->args.events->failed(link->args.owner);
}

static void link_open(struct redis_link *link)
{
	const struct redis_link_args *args = &link->args;

	link->state = LINK_OPENING;
	link->opened_at = now_of(link);
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
		tell(link, "no memory or descriptor for a connection");
		retry_later(link);
		link->args.events->failed(link->args.owner);
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
	else if (redis_line_is_empty(&link->line) && link->state == LINK_READY)
		probe(link);
	else if (redis_line_is_empty(&link->line))
		on_idle(link, true);
}

static void on_deadline(struct net_timer *timer)
{
	struct redis_link *link = CONTAINER_OF(timer, struct redis_link, deadline);
	const nsec_t now = now_of(link);
	struct redis_request *request;

	if (link->state == LINK_OPENING && redis_line_is_empty(&link->line) &&
	    now >= link->opened_at + CONNECT_MAX) {
		link_close(link, "cannot be reached within a second");
		return;
	}
	while ((request = redis_line_late(&link->line, now)) != NULL) {
		link_trouble(link, "answers too late");
		if (!request->own)
			link->args.events->late(link->args.owner, request);
	}
	if (redis_line_is_silent(&link->line, now))
		link_close(link, "does not answer");
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
		net_timer_set(link->args.loop, &link->retry, now_of(link));
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
	renew_login(link);
}

static void link_free(struct redis_link *link)
{
	redis_login_fini(&link->login);
	free((char *)link->args.server_name);
	free((char *)link->args.name);
	redis_line_fini(&link->line);
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
		.filling.most = OUT_MAX,
		.leaving.most = OUT_MAX,
		.flush.run = on_flush,
		.deadline.fire = on_deadline,
		.retry.fire = on_retry,
		.pause = { .chance = args->seed | 1 },
	};
	const bool lined = redis_line_init(&link->line, args->deadline);
	link->args.user = link->args.password = (struct slice){ NULL, 0 }; /* `login` has them */
	const bool named = args->server_name != NULL;
	link->args.name = strdup(args->name); /* a configuration goes with the next one */
	link->args.server_name = named ? strdup(args->server_name) : NULL;
	if (!redis_login_set(&link->login, args->user, args->password) || !lined ||
	    link->args.name == NULL || (named && link->args.server_name == NULL)) {
		link_free(link);
		return NULL;
	}
	net_timer_set(args->loop, &link->retry, now_of(link));
	return link;
}
