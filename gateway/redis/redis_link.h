/* redis_link.h - one connection to Redis: requests in order, answers in order, and its health.
 *
 * All requests of a tick leave in one write, with the loop's next turn at the latest. Nothing waits longer than
 * the deadline, which begins when they leave, since what a tick takes is not Redis's doing: a request without an
 * answer by then is told late; its answer, which may still come, is told too, or that it never will.
 *
 * The link stops being ready with the first request that has failed, and when no answer was in time for one and a
 * half times the deadline: one late answer is the matter of its command. Whatever is on its way then is late, too. It is ready again when a probe, alone, has been written and
 * answered in time. A connection that owes answers and has given none for a second, or for one and a half times the
 * deadline if that is longer, is given up and made again, after a pause that grows and varies. */
#ifndef GATEWAY_REDIS_REDIS_LINK_H
#define GATEWAY_REDIS_REDIS_LINK_H

#include "gateway/base/redis_fault.h"
#include "gateway/net/net.h"
#include "gateway/redis/redis_call.h"

enum {
	REDIS_ADDRESSES_MAX = 8,
	REDIS_IN_FLIGHT_MAX = 32768, /* calls; a power of two */
	REDIS_CHANNELS_MAX = 2,      /* of one link that listens */
};

struct redis_user;

/* What becomes of a link, and of all that is sent on it. Each may be NULL. */
struct redis_user_events {
	/* Ready from now on, with nothing on its way, perhaps at another server than before; or not any more. */
	void (*ready)(struct redis_user *user);
	void (*unready)(struct redis_user *user);
	/* An attempt to connect ended without success. */
	void (*failed)(struct redis_user *user);
	/* While it is not ready: whether it is slow, and takes commands of those who wait for it all the same
	 * (redis_link_begin_slow), may have changed. */
	void (*turned)(struct redis_user *user);
	/* Why it is not in use, another reason than before, at first CONNECTING, or NONE. */
	void (*fault)(struct redis_user *user, enum store_fault fault);
	/* A connection that was greeted is over: what was on its way may have got lost. */
	void (*lost)(struct redis_user *user);
	/* Of every command but the link's own. */
	void (*measured)(struct redis_user *user, enum redis_outcome outcome, bool late,
			 nsec_t took);
};

/* Embedded in its owner. */
struct redis_user {
	const struct redis_user_events *events;
	struct redis_user *next; /* private */
};

struct redis_target {
	struct sockaddr_storage address;
	socklen_t len;
};

struct redis_link_args {
	struct net_loop *loop;
	struct redis_target targets[REDIS_ADDRESSES_MAX]; /* may be set later */
	uint32_t target_count;
	struct ssl_ctx_st *tls;  /* NULL: clear text */
	const char *server_name; /* NULL for addresses; copied, as user, password and name are */
	struct slice user, password; /* absent: not sent */
	uint32_t database;
	/* The link does nothing but listen to these, and takes no commands; count 0: none. Their names must outlive it. */
	struct slice channels[REDIS_CHANNELS_MAX];
	uint32_t channel_count;
	void (*heard)(void *owner, struct slice message); /* on any of the channels */
	void *owner;                                      /* whose heard is */
	nsec_t deadline;
	const char *name; /* for messages: no password in it */
	bool quiet;       /* another worker tells of it */
	bool sniffs;      /* a port that never answered is asked for its protocol */
	uint64_t seed;    /* of the pauses */
};

struct redis_link;

/* Begins to connect with the loop's next turn. NULL: memory. Lives until the process ends. */
struct redis_link *redis_link_new(const struct redis_link_args *args);

/* Before the loop's next turn: `user`, which must outlive the link, hears of it from then on, behind those that came
 * before it. At most one may have `measured`. */
void redis_link_join(struct redis_link *link, struct redis_user *user);
/* Likewise: the script, which must outlive the link, is run without keys in every greeting, so that Redis knows it. */
void redis_link_load(struct redis_link *link, struct redis_script *script);

/* Other addresses, for the next connection; if none were known, it begins with the loop's next turn. */
void redis_link_set_targets(struct redis_link *link, const struct redis_target *targets,
			    uint32_t count);

/* Another user or password (copied; absent as in redis_link_args): told at once to the server that is
 * connected, and to every later one. A server that refuses it goes on with the old one, as Redis does, until
 * the connection ends; stderr has it. Nothing when they are those in use. */
void redis_link_set_login(struct redis_link *link, struct slice user, struct slice password);

bool redis_link_ready(const struct redis_link *link);
/* How often it has become ready. */
uint64_t redis_link_generation(const struct redis_link *link);

/* Where a new command's bytes go; redis_link_send must follow. NULL: not ready, or too many are on their way. */
struct redis_buffer *redis_link_begin(struct redis_link *link);

/* Whether the server is there, and nothing is wrong with it but that its answers are late: it owes none, or was
 * heard within `patience`; and its latest answer took no longer than that. */
bool redis_link_is_slow(const struct redis_link *link, nsec_t patience);
/* As redis_link_begin, to a server that is slow. NULL, too, from an answer in time on, until the probe that
 * follows when nothing is owed any more: with `turned` or `ready` it is known what it says. */
struct redis_buffer *redis_link_begin_slow(struct redis_link *link, nsec_t patience);
/* As redis_link_begin, for a command that was sent before and has been answered, ready or not. NULL, too: the
 * connection has ended. */
struct redis_buffer *redis_link_begin_again(struct redis_link *link);

/* False: there was no memory for it, and it never was. */
MUST_USE bool redis_link_send(struct redis_link *link, const struct redis_command *command);
/* What was sent would leave with the loop's next turn: it does now. */
void redis_link_flush(struct redis_link *link);

/* Of a call that is pending. */
struct redis_command *redis_link_command(struct redis_link *link, uint64_t ticket);

#endif
