/* redis_link_parts.h - what the files of one connection to Redis share: private to redis_link*.c. */
#ifndef GATEWAY_REDIS_REDIS_LINK_PARTS_H
#define GATEWAY_REDIS_REDIS_LINK_PARTS_H

#include "gateway/redis/redis_backoff.h"
#include "gateway/redis/redis_link.h"
#include "gateway/redis/redis_login.h"
#include "gateway/redis/redis_pending.h"
#include "gateway/redis/redis_sniff.h"

enum link_state {
	LINK_DOWN,     /* waits for its next attempt */
	LINK_OPENING,  /* connecting, or greeting */
	LINK_READY,    /* from here on greeted */
	LINK_TROUBLED, /* connected; answers are awaited, or a probe's */
};

enum { REDIS_ERROR_ROOM = 256 };

struct redis_link {
	struct redis_link_args args;
	enum link_state state;
	struct redis_user *users, **users_end; /* in the order in which they came */
	struct redis_user *meter;              /* the one with `measured`, or NULL */
	struct redis_script *loaded;           /* with the greeting; NULL: none */
	uint64_t generation;
	struct net_conn *conn;
	struct redisReader *reader;
	struct redis_buffer filling, leaving;
	size_t begun_at; /* where the request that is being filled begins */
	struct net_task flush;
	bool flush_queued, reading, broken;
	struct redis_pending pending;
	struct net_timer deadline; /* of what is pending, or of connecting */
	struct net_timer retry;    /* the next attempt or probe */
	nsec_t opened_at;
	struct redis_backoff backoff;
	uint32_t target;
	enum store_fault fault; /* what was told last, and its words */
	char error[REDIS_ERROR_ROOM];
	bool heard;                /* a byte, on this connection, */
	bool proved;               /* the port: it was ready once */
	enum store_fault mismatch; /* the protocol of a port that never answered */
	struct redis_sniff sniff;
	struct redis_login login;
	bool login_unsent; /* to the server at the other end, which knows another */
	bool slow;         /* in trouble for nothing but late answers */
	bool in_time;      /* slow, but the latest answer was not late: a probe is to follow */
	nsec_t took;       /* the latest answer */
};

static inline nsec_t redis_link_now(const struct redis_link *link)
{
	return net_now(link->args.loop);
}

static inline bool redis_link_listens(const struct redis_link *link)
{
	return link->args.channel_count != 0;
}

/* Those who have that function, oldest first. */
#define REDIS_LINK_USERS(user, link, event)                                            \
	for (struct redis_user *user = (link)->users; user != NULL; user = user->next) \
		if (user->events->event != NULL)

/* ---- redis_link.c ---- */

/* The last of those pending; redis_link_send_request must follow. NULL: too many are on their way. */
struct redis_request *redis_link_new_request(struct redis_link *link);
/* Sends it, if there was memory for it. */
MUST_USE bool redis_link_send_request(struct redis_link *link);
/* Everything on its way is lost; it is made again after a pause. Nothing when there is none. */
void redis_link_close(struct redis_link *link, enum store_fault fault, const char *why);

/* ---- redis_link_health.c ---- */

/* Once per change: the fault to its owner, both to stderr. `why` NULL: the fault's words say it all. */
void redis_link_report(struct redis_link *link, enum store_fault fault, const char *why);
/* Login, database and script, then a probe. */
void redis_link_greet(struct redis_link *link);
void redis_link_probe(struct redis_link *link);
/* Another login than the one that the server has heard is told to it. */
void redis_link_renew_login(struct redis_link *link);
/* Not ready from now on, unless it was not. */
void redis_link_trouble(struct redis_link *link, enum store_fault fault, const char *why);
void redis_link_report_turned(struct redis_link *link);
/* `slow` and `in_time` are that now. */
void redis_link_turn(struct redis_link *link, bool slow, bool in_time);
/* Nothing is pending: whether things are well again is for a probe to find out. */
void redis_link_idle(struct redis_link *link, bool at_once);
/* The answers to greeting and probe, and to a login that was renewed. */
void redis_link_own_reply(struct redis_link *link, const struct redis_request *request,
			  const struct redisReply *reply);
void redis_link_login_reply(struct redis_link *link, const struct redisReply *reply);

#endif
