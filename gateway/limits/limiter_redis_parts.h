/* limiter_redis_parts.h - what the files of the Redis store share: private to limiter_redis*.c. */
#ifndef GATEWAY_LIMITS_LIMITER_REDIS_PARTS_H
#define GATEWAY_LIMITS_LIMITER_REDIS_PARTS_H

#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/limits/limiter.h"
#include "gateway/limits/limiter_redis_wire.h"
#include "gateway/redis/redis_link.h"
#include "gateway/telemetry/metrics.h"

enum {
	REDIS_MAGIC = 0x52454453,
	PERIODS = 4, /* two days, two months */
};

/* A change of a money counter that was sent. */
struct limiter_change {
	bool month;
	uint32_t period;
	uint64_t more, less; /* one of them is 0 */
};

/* Times of rates, in ns, and the units a minute that they are of, 0: not known. */
struct limiter_owed {
	uint64_t requests_rate, tokens_rate;
	uint64_t requests_less, tokens_more, tokens_less;
};

/* What a call reports of one limited thing, and what it claims of it. */
struct limiter_part {
	uint32_t tenant;     /* its number */
	uint32_t given_back; /* places */
	struct limiter_owed owed;
	uint64_t requests_cost, tokens_cost; /* of the same rates */
	uint8_t change_count;
	struct limiter_change changes[PERIODS];
};

/* What limits.lua is asked, by its numbers. */
enum limiter_asks { LIMITER_REPORT, LIMITER_CLAIM, LIMITER_TOP_UP, LIMITER_CLAIM_TOLD };

struct asking;

/* A call of limits.lua on its way. It outlives what it was made for: what it reports comes back if it fails, and a
 * grant that nobody waits for is undone. */
struct limiter_call {
	struct redis_call call;
	struct limiter_redis *redis;
	enum limiter_asks asks;
	bool packed; /* the parts hold what is reported */
	bool tells;  /* a claim: LIMITER_CLAIM_TOLD */
	uint8_t part_count;
	uint32_t places;                 /* claimed of every part */
	uint64_t usd;                    /* likewise; or of the top-up */
	struct reservation *reservation; /* of a claim; NULL: nobody waits any more */
	struct asking *asking;           /* of a top-up */
	struct limiter_part parts[RESERVATION_SCOPES_MAX];
};

/* Money of one period: what Redis holds of ours, and what is yet to be reported. */
struct redis_money {
	uint32_t period;
	uint64_t reported, more, less;
	uint64_t topped_up; /* by this worker; Redis has it */
};

/* A tenant, or a part of one that has limits of its own, as this worker knows it: by its slot's number
 * in the limit table. */
struct redis_tenant {
	uint8_t tag[16], key[16];           /* the tenant's, which is the hash tag, and its own */
	uint8_t epoch[LIMITER_EPOCH_BYTES]; /* of the state that has what was reported */
	bool known, dirty;
	bool claimed;           /* under the figures that follow */
	bool active;            /* on the list of those whose places are renewed */
	bool renew;             /* its leases begin anew with the next request */
	uint32_t held;          /* places of requests in flight */
	uint32_t unreported;    /* of these, places that this gateway granted itself, */
	uint32_t unreported_at; /* on a connection that does not hear of them: of that generation */
	uint32_t given_back;    /* places; not reported yet */
	uint64_t requests_burst, tokens_burst;  /* of the latest claim, as the rates of `owed` */
	uint8_t figures[LIMITER_FIGURES_BYTES]; /* all four, for limits.lua */
	struct limiter_owed owed;
	struct redis_money money[PERIODS]; /* days by parity, then months by parity */
};

/* Numbers of tenants, each at most once; room for all of them. */
struct tenant_list {
	uint32_t *at;
	uint32_t count;
};

struct limiter_redis {
	struct limiter limiter;
	uint32_t magic;
	struct net_loop *loop;
	struct limit_table *table;
	struct metrics_worker *metrics;
	struct redis_link *link;
	struct redis_user user;
	struct redis_script script;
	const struct redis_call_type *call_type; /* of limiter_call: limiter_redis.c */
	struct slab calls;
	struct redis_tenant *tenants; /* pages that are never used cost no memory */
	struct tenant_list dirty, active, known;
	struct net_timer flush, renew;
	uint8_t me[LIMITER_WORKER_BYTES]; /* chance: process and worker */
	uint32_t generation;              /* of the connection */
	nsec_t deadline;
	bool connecting;     /* the first attempt to connect has not ended */
	struct list waiting; /* for that */
	struct net_timer patience;
	/* limiter_redis_patience.c */
	nsec_t longest;     /* that a request waits which would be refused without an answer */
	bool opening;       /* nothing is known of the first attempt to connect */
	struct list unsent; /* they wait, oldest first */
	/* limiter_redis_epoch.c; names of length 0: none */
	struct redis_pack epoch,
		asked_epoch; /* of Redis's whole store; what it is called if it is new */
	uint32_t names;
	struct redis_call epoch_call;
	uint32_t unreported; /* of `known`, from the first on: to be reported again */
};

static inline struct limiter_redis *limiter_redis_of(struct limiter *limiter)
{
	struct limiter_redis *redis = CONTAINER_OF(limiter, struct limiter_redis, limiter);

	must_obj(redis, REDIS_MAGIC);
	return redis;
}

/* The one that waits for longest; NULL: none does. */
static inline struct reservation *limiter_redis_first(const struct list *list)
{
	struct list_link *link = list_first(list);

	return link == NULL ? NULL : CONTAINER_OF(link, struct reservation, waits);
}

static inline uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- limiter_redis_rates.c: times under rates that change ---- */

/* Those limits are claimed from now on: what is owed becomes what it is under them. */
void limiter_redis_claim_under(struct redis_tenant *tenant, const struct tenant_limits *limits);

/* Adds times of any rate. */
void limiter_redis_owe_times(struct redis_tenant *tenant, const struct limiter_owed *times);

/* ---- limiter_redis_report.c: what Redis holds of this worker, and what is yet to be reported ---- */

/* Of a scope whose slot is known. */
struct redis_tenant *limiter_redis_tenant(struct limiter_redis *redis,
					  const struct reservation *reservation, uint32_t scope);

/* The tenant itself; NULL: the table is full. */
struct redis_tenant *limiter_redis_tenant_of(struct limiter_redis *redis, const uint8_t tag[16]);

/* There is something to report: it leaves with the tenant's next claim, or within milliseconds. */
void limiter_redis_touch(struct limiter_redis *redis, struct redis_tenant *tenant);
bool limiter_redis_has_news(const struct redis_tenant *tenant);

/* What was used in the periods of `wall_s` beyond, or short of, what Redis has counted. */
void limiter_redis_owe(struct redis_tenant *tenant, uint64_t wall_s, uint64_t more, uint64_t less);
/* Redis has counted that for this worker. */
void limiter_redis_note_reported(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd);

/* Redis has added that to the budgets of its current periods, on behalf of this worker. */
void limiter_redis_topped_up(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd);

/* Of a claim on concurrency; nothing for others. */
void limiter_redis_hold_places(struct limiter_redis *redis, struct reservation *reservation);
/* One that is held, of a scope. */
void limiter_redis_give_place(struct limiter_redis *redis, const struct reservation *reservation,
			      uint32_t scope);

/* redis_call_type.put of limiter_call: what there is to report of its parts, and what it claims. */
void limiter_redis_put(struct redis_call *call, const struct redis_script_run *run);
/* A call that reported something was refused, or `lost`: nobody knows whether it was done. */
void limiter_redis_take_back(struct limiter_call *call, bool lost);

void limiter_redis_put_key(struct redis_buffer *to, const uint8_t tag[16], const uint8_t own[16]);

/* Sends what there is to report of a tenant and parts of it, `count` of them, at most RESERVATION_SCOPES_MAX and
 * all of one tag; the second with a claim on all of the reservation's scopes, whose
 * call it fills in; the third with money for the current periods of Redis's clock. False: not now. */
MUST_USE bool limiter_redis_report(struct limiter_redis *redis, struct redis_tenant *const *tenants,
				   uint32_t count);
MUST_USE bool limiter_redis_claim(struct limiter_redis *redis, struct reservation *reservation);
MUST_USE bool limiter_redis_top_up(struct limiter_redis *redis, struct redis_tenant *tenant,
				   uint64_t usd, struct asking *asking);

/* What there is to report leaves within milliseconds; unless Redis is away: then when it is back. */
void limiter_redis_flush_soon(struct limiter_redis *redis);

/* ---- limiter_redis_settle.c: the limiter's functions of these names ---- */
uint64_t limiter_redis_settle(struct limiter *limiter, struct reservation *reservation,
			      uint64_t tokens, uint64_t usd, nsec_t now);
void limiter_redis_release(struct limiter *limiter, struct reservation *reservation);
void limiter_redis_undo(struct limiter *limiter, struct reservation *reservation, nsec_t now);

/* ---- limiter_redis_epoch.c: whether Redis still has what was reported ---- */
void limiter_redis_ask_epoch(struct limiter_redis *redis);
/* Some of what was lost. False: there is more. */
bool limiter_redis_report_again(struct limiter_redis *redis);

/* ---- limiter_redis_fallback.c: while Redis does not decide ---- */

void limiter_refuse(struct reservation *reservation, enum err err, const char *limit,
		    nsec_t wait_ns);

/* As the tenant's on_store_failure says; fills the answer in. What was granted so is settled as `usd`
 * in what may be spent meanwhile, beside the rest. */
void limiter_redis_fall_back(struct limiter_redis *redis, struct reservation *reservation);
void limiter_redis_settle_fallback(struct limiter_redis *redis,
				   const struct reservation *reservation, uint64_t usd);

/* Requests that come before the first attempt to connect has ended wait for that, within the
 * deadline of the first of them; then they are claimed, or decided here. */
void limiter_redis_begin_waiting(struct limiter_redis *redis);
/* False: that time is over. */
MUST_USE bool limiter_redis_await(struct limiter_redis *redis, struct reservation *reservation);
void limiter_redis_end_waiting(struct limiter_redis *redis);

/* ---- limiter_redis_patience.c: requests that nothing but a refusal awaits ---- */

/* In place of a claim that could not be sent: it waits, sent or not. False: it is to be decided now. */
MUST_USE bool limiter_redis_persist(struct limiter_redis *redis, struct reservation *reservation);
/* The answer is late: whether it waits on. */
MUST_USE bool limiter_redis_bear_with(struct limiter_redis *redis, struct reservation *reservation);
/* Its wait is over, with an answer of Redis's or without. Nothing when it has not waited. */
void limiter_redis_waited(struct limiter_redis *redis, struct reservation *reservation,
			  bool answered);
/* Whether the question is also sent to a Redis that is slow. */
static inline bool limiter_redis_is_patient(const struct reservation *reservation)
{
	return reservation->patience.place != 0;
}
/* It does not wait any more, here or for the first connection. */
void limiter_redis_wait_no_more(struct limiter_redis *redis, struct reservation *reservation);
/* The connection is ready, slow, or not there: what was not sent yet is, or refused. */
void limiter_redis_go_on(struct limiter_redis *redis);

/* ---- limiter_redis_query.c: what the control thread asks ---- */

void limiter_redis_note_top_up(const struct limiter_call *call, enum redis_outcome outcome,
			       uint64_t server_s);

#endif
