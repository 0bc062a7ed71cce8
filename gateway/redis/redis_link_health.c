/* redis_link_health.c - what a connection to Redis says by itself, and what it makes of the answers. */
#include "gateway/redis/redis_link_parts.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#define PROBE_EVERY (200 * MSEC)
#define LISTEN_PROBE_EVERY (5 * SEC) /* asks a silent subscription whether it is still there */

/* ---- messages: once per change ---- */

static void note(struct redis_link *link, enum store_fault fault)
{
	if (link->fault == fault)
		return;
	link->fault = fault;
	REDIS_LINK_USERS(user, link, fault)
	{
		user->events->fault(user, fault);
	}
}

/* No answer at all says less than what the port was found to speak. */
static bool says_little(enum store_fault fault)
{
	return fault == STORE_FAULT_UNREACHABLE || fault == STORE_FAULT_SILENT;
}

static bool has_name(enum store_fault fault)
{
	return fault == STORE_FAULT_CLUSTER || fault == STORE_FAULT_TLS_PORT ||
	       fault == STORE_FAULT_PLAIN_PORT;
}

void redis_link_report(struct redis_link *link, enum store_fault fault, const char *why)
{
	char text[REDIS_ERROR_ROOM];

	if (link->mismatch != STORE_FAULT_NONE && says_little(fault)) {
		fault = link->mismatch;
		why = NULL;
	}
	if (!has_name(fault))
		(void)snprintf(text, sizeof(text), "%s", why);
	else
		(void)snprintf(text, sizeof(text), "%s%s%s%s", store_fault_words(fault),
			       why == NULL ? "" : " (", why == NULL ? "" : why,
			       why == NULL ? "" : ")");
	note(link, fault);
	if (strcmp(link->error, text) == 0)
		return;
	(void)memcpy(link->error, text, sizeof(text));
	if (!link->args.quiet)
		(void)fprintf(stderr, "sluice: store %s: %s\n", link->args.name, link->error);
}

/* ---- the link's own requests ---- */

static void own_send(struct redis_link *link, bool aside, const struct slice *words, uint32_t count)
{
	struct redis_request *request = redis_link_new_request(link);

	if (request == NULL)
		return;
	request->own = true;
	request->command = (struct redis_command){ .aside = aside };
	redis_put_count(&link->filling, count);
	for (uint32_t i = 0; i < count; i++)
		redis_put(&link->filling, words[i]);
	if (!redis_link_send_request(link))
		redis_link_close(link, STORE_FAULT_UNREACHABLE, "no memory for a request");
}

static void send_login(struct redis_link *link, bool aside)
{
	struct slice words[REDIS_LOGIN_WORDS];
	const uint32_t count = redis_login_command(&link->login, words);

	link->login_unsent = false;
	if (count != 0)
		own_send(link, aside, words, count);
}

/* For a server that keeps the old password until it has heard the new one. A subscriber may send nothing else. */
void redis_link_renew_login(struct redis_link *link)
{
	if (link->login_unsent && link->state >= LINK_READY && !redis_link_listens(link))
		send_login(link, true);
}

/* A write, so that a replica or a full server does not pass. To listen any server will do. */
void redis_link_probe(struct redis_link *link)
{
	static const struct slice ping = SLICE_INIT("PING");
	const struct slice arguments[] = { SLICE("SET"), SLICE("sluice:2:probe"), SLICE("1"),
					   SLICE("PX"), SLICE("60000") };

	if (redis_link_listens(link))
		own_send(link, false, &ping, 1);
	else
		own_send(link, false, arguments, COUNT_OF(arguments));
}

/* A node of a cluster answers MOVED to keys that are not its own: it is found out here, and not by some tenants'
 * requests. Of any 1,024 slots in a row one key is asked for; none exists. A cluster of one shard has them all. */
static void ask_all_slots(struct redis_link *link)
{
	static const char *const tags[] = {
		"18",  "455", "333", "223", "553", "443", "95",  "663",
		"265", "375", "908", "155", "985", "895", "405", "515"
	};
	char key[32];

	for (size_t i = 0; i < COUNT_OF(tags) && link->conn != NULL; i++) {
		const int len = snprintf(key, sizeof(key), "sluice:2:{%s}slot", tags[i]);
		const struct slice get[] = { SLICE("GET"), slice_of(key, (size_t)len) };
		own_send(link, false, get, COUNT_OF(get));
	}
}

void redis_link_greet(struct redis_link *link)
{
	const struct redis_link_args *args = &link->args;
	char number[16];

	send_login(link, false);
	for (uint32_t i = 0; i < args->channel_count && link->conn != NULL; i++) {
		const struct slice listen[] = { SLICE("SUBSCRIBE"), args->channels[i] };
		own_send(link, false, listen, COUNT_OF(listen));
	}
	if (redis_link_listens(link))
		return;
	(void)snprintf(number, sizeof(number), "%u", args->database);
	const struct slice select[] = { SLICE("SELECT"), slice_str(number) };
	if (link->conn != NULL && args->database != 0)
		own_send(link, false, select, COUNT_OF(select));
	if (link->conn != NULL && link->loaded != NULL) {
		const struct slice load[] = { SLICE("EVAL"), link->loaded->text, SLICE("0") };
		own_send(link, false, load, COUNT_OF(load));
	}
	if (link->conn != NULL && link->loaded != NULL)
		ask_all_slots(link);
	if (link->conn != NULL)
		redis_link_probe(link);
}

/* ---- health ---- */

void redis_link_report_turned(struct redis_link *link)
{
	REDIS_LINK_USERS(user, link, turned)
	{
		user->events->turned(user);
	}
}

void redis_link_turn(struct redis_link *link, bool slow, bool in_time)
{
	const bool turned = slow != link->slow || in_time != link->in_time;

	link->slow = slow;
	link->in_time = in_time;
	if (turned)
		redis_link_report_turned(link);
}

static void become_ready(struct redis_link *link)
{
	link->slow = link->in_time = false;
	link->proved = true;
	link->mismatch = STORE_FAULT_NONE;
	if (link->error[0] != '\0')
		redis_link_report(link, STORE_FAULT_NONE, "in use again");
	link->error[0] = '\0';
	note(link, STORE_FAULT_NONE);
	link->backoff.next = 0;
	link->state = LINK_READY;
	net_timer_stop(link->args.loop, &link->retry);
	if (redis_link_listens(link))
		net_timer_set(link->args.loop, &link->retry,
			      redis_link_now(link) + LISTEN_PROBE_EVERY);
	link->generation++;
	if (link->loaded != NULL)
		link->loaded->generation = link->generation;
	REDIS_LINK_USERS(user, link, ready)
	{
		user->events->ready(user);
	}
	redis_link_renew_login(link);
}

static void probe_later(struct redis_link *link)
{
	net_timer_set(link->args.loop, &link->retry, redis_link_now(link) + PROBE_EVERY);
}

void redis_link_trouble(struct redis_link *link, enum store_fault fault, const char *why)
{
	redis_link_report(link, fault, why);
	if (link->state != LINK_READY)
		return;
	link->state = LINK_TROUBLED;
	REDIS_LINK_USERS(user, link, unready)
	{
		user->events->unready(user);
	}
}

void redis_link_idle(struct redis_link *link, bool at_once)
{
	if (link->state != LINK_TROUBLED || link->conn == NULL)
		return;
	if (at_once)
		redis_link_probe(link);
	else
		probe_later(link);
}

void redis_link_own_reply(struct redis_link *link, const struct redis_request *request,
			  const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		redis_link_close(link, store_fault_of_error(reply->str),
				 reply->str); /* after a failover the next address may be another */
		return;
	}
	if (!redis_pending_is_empty(&link->pending)) /* of the greeting the last counts */
		return;
	if (!request->late) {
		become_ready(link);
		return;
	}
	link->state = LINK_TROUBLED;
	probe_later(link);
	redis_link_turn(link, true, false); /* what else was wrong is over */
}

/* Refused, it leaves the connection as it was: the next one is another matter. */
void redis_link_login_reply(struct redis_link *link, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR && !link->args.quiet)
		(void)fprintf(stderr, "sluice: store %s: goes on with the old password: %s\n",
			      link->args.name, reply->str);
}
