/* redis_link.h - one connection to Redis: requests in order, answers in order, and its health.
 *
 * All requests of a tick leave in one write, with the loop's next turn at the latest. Nothing waits longer than
 * the deadline, which begins when they leave, since what a tick takes is not Redis's doing: a request without an
 * answer by then is told late; its answer, which may still come, is told too, or that it never will. From the
 * first late or failed request until a probe, alone, has been written and answered in time, the link is not
 * ready. A connection that owes answers and has given none for a second, or for the deadline if that is longer,
 * is given up and made again, after a pause that grows and varies. */
#ifndef GATEWAY_REDIS_REDIS_LINK_H
#define GATEWAY_REDIS_REDIS_LINK_H

#include "gateway/base/redis_fault.h"
#include "gateway/net/net.h"
#include "gateway/redis/redis_wire.h"

struct reservation;
struct asking;

enum {
	REDIS_ADDRESSES_MAX = 8,
	REDIS_IN_FLIGHT_MAX = 32768, /* a power of two */
	REDIS_CHANGES_MAX = 4,       /* two days, two months */
	REDIS_SCOPES_MAX = 4         /* of one reservation */
};

/* A change of a money counter that was sent. */
struct redis_change {
	bool month;
	uint32_t period;
	uint64_t more, less; /* one of them is 0 */
};

/* Times of rates, in ns, and the units a minute that they are of, 0: not known. */
struct redis_owed {
	uint64_t requests_rate, tokens_rate;
	uint64_t requests_less, tokens_more, tokens_less;
};

/* What a request told of one limited thing, and what it claims of it. */
struct redis_part {
	uint32_t tenant;
	uint32_t given_back; /* places */
	struct redis_owed owed;
	uint64_t requests_cost, tokens_cost; /* of the same rates */
	uint8_t change_count;
	struct redis_change changes[REDIS_CHANGES_MAX];
};

/* What limits.lua is asked, by its numbers; or something else; or a guest's. */
enum redis_kind { REDIS_TELL, REDIS_CLAIM, REDIS_TOP_UP, REDIS_READ, REDIS_BIRTH, REDIS_GUEST };

enum { REDIS_ABOUT_BYTES = 16 };
struct redis_guest;

/* A request on its way: the link's part, then what the store wants to know when it is over. */
struct redis_request {
	nsec_t sent;  /* begun; from when its bytes have left: then */
	bool late;    /* told so */
	bool own;     /* the link's: greeting and probe */
	bool by_text; /* EVAL */
	bool aside;   /* that it is refused says nothing of how Redis is */
	uint8_t part_count;
	enum redis_kind kind;
	uint32_t places;                 /* claimed of every part */
	uint64_t usd;                    /* likewise; or of the top-up */
	struct reservation *reservation; /* of a claim; NULL: nobody waits any more */
	struct asking *asking;           /* of a top-up and of what is read */
	struct redis_guest *guest;       /* whose it is; what follows is the guest's */
	void *waits;                     /* who asked; NULL: nobody waits (any more) */
	uint32_t asked;
	uint8_t about[REDIS_ABOUT_BYTES];
	struct redis_part parts[REDIS_SCOPES_MAX];
};

enum redis_outcome {
	REDIS_ANSWERED,
	REDIS_REFUSED, /* an error: nothing was done */
	REDIS_LOST,    /* nobody knows whether it was done */
};

/* Whoever keeps something else in the same Redis: requests of kind REDIS_GUEST are told to it, and what
 * becomes of the connection. */
struct redis_guest {
	/* As of redis_link_events. */
	void (*done)(struct redis_guest *guest, const struct redis_request *request,
		     enum redis_outcome outcome, const struct redisReply *reply);
	void (*late)(struct redis_guest *guest, struct redis_request *request);
	/* A connection is ready, perhaps to another server than before; or an attempt to make one has
	 * failed. */
	void (*settled)(struct redis_guest *guest, bool ready);
	struct redis_guest *next; /* the host's */
};

struct redis_link_events {
	/* The request is over; `reply` is NULL when LOST. */
	void (*done)(void *owner, const struct redis_request *request, enum redis_outcome outcome,
		     const struct redisReply *reply);
	/* No answer by the deadline; done comes later. */
	void (*late)(void *owner, struct redis_request *request);
	/* Ready from now on, with nothing on its way; or not any more. */
	void (*ready)(void *owner);
	void (*unready)(void *owner);
	/* An attempt to connect ended without success. */
	void (*failed)(void *owner);
	/* While it is not ready: whether it is slow, and takes requests of those who wait for it all the same
	 * (redis_link_begin_slow), may have changed. */
	void (*turned)(void *owner);
	/* Why it is not in use, another reason than before, at first CONNECTING, or NONE. NULL where nobody asks. */
	void (*fault)(void *owner, enum store_fault fault);
	/* To the channel that the link listens to; NULL where there is none. */
	void (*heard)(void *owner, struct slice message);
	/* Of a request of the store's, for metrics. */
	void (*measured)(void *owner, enum redis_outcome outcome, bool late, nsec_t took);
};

struct redis_target {
	struct sockaddr_storage address;
	socklen_t len;
};

struct redis_link_args {
	struct net_loop *loop;
	const struct redis_link_events *events;
	void *owner;
	struct redis_target targets[REDIS_ADDRESSES_MAX]; /* may be set later */
	uint32_t target_count;
	struct ssl_ctx_st *tls;  /* NULL: clear text */
	const char *server_name; /* NULL for addresses; copied, as user, password and name are */
	struct slice user, password; /* absent: not sent */
	uint32_t database;
	struct slice
		script; /* run once without keys, so that Redis knows it; must outlive the link */
	struct slice
		channel; /* the link does nothing but listen to it, and has no requests; absent:
				 none; must outlive the link */
	nsec_t deadline;
	const char *name; /* for messages: no password in it */
	bool quiet;       /* another worker tells of it */
	bool sniffs;      /* a port that never answered is asked for its protocol */
	uint64_t seed;    /* of the pauses */
};

struct redis_link;

/* Begins to connect with the loop's next turn. NULL: memory. Lives until the process ends. */
struct redis_link *redis_link_new(const struct redis_link_args *args);

/* Other addresses, for the next connection; if none were known, it begins with the loop's next turn. */
void redis_link_set_targets(struct redis_link *link, const struct redis_target *targets,
			    uint32_t count);

/* Another user or password (copied; absent as in redis_link_args): told at once to the server that is
 * connected, and to every later one. A server that refuses it goes on with the old one, as Redis does, until
 * the connection ends; stderr has it. Nothing when they are those in use. */
void redis_link_set_login(struct redis_link *link, struct slice user, struct slice password);

bool redis_link_ready(const struct redis_link *link);

/* A new request, to be filled by the caller, whose bytes go to *buffer next; *ticket names it. NULL:
 * not ready, or too many are on their way. redis_link_send must follow. */
struct redis_request *redis_link_begin(struct redis_link *link, struct redis_buffer **buffer,
				       uint64_t *ticket);

/* Whether the server is there, and nothing is wrong with it but that its answers are late: it owes none, or was
 * heard within `patience`; and its latest answer took no longer than that. */
bool redis_link_is_slow(const struct redis_link *link, nsec_t patience);
/* As redis_link_begin, to a server that is slow. NULL, too, from an answer in time on, until the probe that
 * follows when nothing is owed any more: with `turned` or `ready` it is known what it says. */
struct redis_request *redis_link_begin_slow(struct redis_link *link, nsec_t patience,
					    struct redis_buffer **buffer, uint64_t *ticket);

/* False: there was no memory for it, and it never was. */
MUST_USE bool redis_link_send(struct redis_link *link);
/* What was sent would leave with the loop's next turn: it does now. */
void redis_link_flush(struct redis_link *link);

/* A request that is not over. */
struct redis_request *redis_link_request(struct redis_link *link, uint64_t ticket);

#endif
