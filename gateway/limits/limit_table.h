/* limit_table.h - the shared mapping of 8-byte atomics: limits by slot, exact across workers.
 *
 * A memfd owned by the supervisor; it survives a crash of the server and a reload (DESIGN 2). A
 * slot is named by 16 bytes (a tenant's limit_key) and holds GCRA times with the rates that they were
 * written under, the number in flight and
 * the money of the current UTC day and month and of those before, all updated by compare-and-swap.
 * Taking is all or nothing: what was taken before a refusal is given back. Times are
 * CLOCK_MONOTONIC, which is the same in every process. The file is sparse and slots are handed out
 * in turn: unused ones cost no memory. */
#ifndef GATEWAY_LIMITS_LIMIT_TABLE_H
#define GATEWAY_LIMITS_LIMIT_TABLE_H

#include "tenants/tenant.h"

struct limit_table;
struct limit_slot;

/* Supervisor: creates the memfd with room for `slots` (rounded up to a power of two, at least twice
 * what is asked for). Returns its fd (close-on-exec not set) or -1 with errno. */
int limit_table_create(size_t slots);

/* Any process: maps the table behind `fd`. NULL with errno. */
struct limit_table *limit_table_map(int fd);
void limit_table_unmap(struct limit_table *table);

/* A new server, before it accepts: concurrency of the dead server is zeroed; its reservations stay
 * spent. Nothing else has to be repaired: a process that dies leaves every word whole. */
void limit_table_recover(struct limit_table *table);

/* Whose limits: the tenant's own, those of one of its MCP servers (limits.per_server), those of its
 * use of some models (limits.per_model), those of its requests that only count tokens. */
enum limit_holder {
	LIMIT_OF_TENANT,
	LIMIT_OF_SERVER,
	LIMIT_OF_MODEL,
	LIMIT_OF_COUNTS, /* the rate of requests alone */
	LIMIT_HOLDERS
};

/* "tenant", "per_server", "per_model"; static. */
const char *limit_holder_name(enum limit_holder holder);

/* The name that callers and operators know a limit of that holder by: a holder's limits have the names of the
 * tenant's (limit_refusal), and COUNTS has but one. */
const char *limit_shown_name(enum limit_holder holder, const char *limit);

/* The slot of that name, a tenant's own, claimed on first use. NULL when the table is full. Thread-safe. */
struct limit_slot *limit_table_slot(struct limit_table *table, const uint8_t key[16]);

/* The same for any holder's: servers, whose names callers may choose, claim the first half of the slots only,
 * models the first three quarters, so that no tenant can take the last slots from another. */
struct limit_slot *limit_table_slot_for(struct limit_table *table, enum limit_holder holder,
					const uint8_t key[16]);

struct limit_scope;

/* The slots of `count` scopes, of which the first is the tenant's own. Servers of a tenant that find the first half
 * taken share one slot, by a key that is written into their scope. False: there are more tenants or globs than
 * slots. */
MUST_USE bool limit_table_find(struct limit_table *table, struct limit_scope *scopes,
			       uint32_t count);

/* Dense number of a slot, from 0, stable while the table lives; for metric series. */
uint32_t limit_slot_index(const struct limit_table *table, const struct limit_slot *slot);

/* How many slots the table has: their numbers are below it. */
size_t limit_table_slots(const struct limit_table *table);

/* How many of them are claimed. They are never given back. */
size_t limit_table_claimed(const struct limit_table *table);

/* What one attempt asks for. */
struct limit_ask {
	uint64_t requests; /* 1, or 0 for a further attempt of the same request */
	uint64_t tokens;
	uint64_t usd;        /* nano-USD */
	uint32_t concurrent; /* 1, or 0 when the request already holds its place */
};

/* One slot that a request takes its share of, beside others. */
struct limit_scope {
	/* asked */
	uint8_t key[16]; /* names the slot */
	enum limit_holder holder;
	struct tenant_limits limits;
	/* answered, when granted: with limits.count_only the first limit that would have refused,
	 * else NULL */
	const char *would_refuse;
	/* between taking and settling */
	struct limit_slot *slot;
	uint32_t passed_over; /* rates that count_only let pass untouched, by step */
};

enum { LIMIT_SCOPES_MAX = 2 + PLAN_MODEL_LIMITS_MAX }; /* tenant, server, and those of a model */

struct limit_refusal {
	enum err
		err; /* ERR_RATE_LIMITED, ERR_OVER_BURST, ERR_CONCURRENCY, ERR_BUDGET, ERR_OVER_BUDGET */
	const char *limit; /* requests_per_minute, tokens_per_minute, concurrent, usd_per_day,
			      usd_per_month */
	enum limit_holder holder;
	nsec_t wait_ns;  /* of ERR_RATE_LIMITED: exact; of ERR_CONCURRENCY: 1 s */
	uint64_t left;   /* of ERR_BUDGET and ERR_OVER_BUDGET: nano-USD that nobody has taken */
	uint64_t budget; /* of ERR_OVER_BUDGET: the whole of it, top-ups included */
};

/* Takes from the slots of all (at most LIMIT_SCOPES_MAX) scopes or from none: scope by scope in their order; in each requests,
 * tokens, concurrent, day, month. A money ask above the whole budget of the period, top-ups included, is
 * ERR_OVER_BUDGET, unless that is 0. What is not asked for (0) is not refused, whatever is owed. Limits that count only
 * refuse nothing: a rate that would have is left as it is, places and money are counted. *refusal is
 * written only when false is returned. Limits other than "none" are within the bounds of
 * tenants/tbl/limits.h. */
MUST_USE bool limit_take(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
			 nsec_t now, uint64_t wall_s, struct limit_refusal *refusal);

/* Counts what another store granted as if these limits counted only: the slots are this machine's own
 * part. limit_settle and limit_release follow as after limit_take. */
void limit_count(const struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		 nsec_t now, uint64_t wall_s);

/* Replaces what an attempt reserved by what it used (more is debt, less is given back); `ask` as
 * taken at `taken_wall_s`, so that money goes to the period it came from. Does not touch requests
 * and concurrency. Returns nano-USD used beyond the reservation (0 when none). */
uint64_t limit_settle(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		      uint64_t taken_wall_s, uint64_t tokens_used, uint64_t usd_used, nsec_t now);

/* Gives back all that was taken, requests and places too, as if it had never been: instead of limit_settle
 * and limit_release. */
void limit_undo(struct limit_scope *scopes, uint32_t count, const struct limit_ask *ask,
		uint64_t taken_wall_s, nsec_t now);

/* Ends a request's place in every scope; called exactly once per request that took concurrent = 1. */
void limit_release(struct limit_scope *scopes, uint32_t count);

/* Adds to what the slot may spend in the day and month of `wall_s`, until these end; over limits that
 * say nothing about money it has no effect. */
void limit_top_up(struct limit_slot *slot, uint64_t nano_usd, uint64_t wall_s);

enum { LIMIT_REFUSALS = 3 };

/* A refusal that an operator may ask about; also one by policy. */
struct limit_note {
	uint64_t wall_s; /* 0: none */
	enum err err;
	const char *limit; /* NULL: none, then `holder` means nothing */
	enum limit_holder holder;
};

/* Remembers it: the latest of a second, and of those the latest few. Costs nothing within a second. */
void limit_note(struct limit_slot *slot, const struct limit_note *note);

struct limit_state {
	struct quota_state requests, tokens;
	uint32_t concurrent;
	uint64_t usd_day, usd_month;               /* of the periods that `wall_s` lies in */
	uint64_t usd_day_more, usd_month_more;     /* topped up in these */
	struct limit_note refused[LIMIT_REFUSALS]; /* the latest first */
};
struct limit_state limit_read(const struct limit_slot *slot, uint64_t wall_s);

#endif
