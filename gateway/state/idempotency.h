/* idempotency.h - requests that are not made twice (DESIGN 4.3, Idempotency): who is the first of a key,
 * who waits for it, and what it was answered with.
 *
 * Shared by all workers of the process (key_shard.h). A copy that comes while the first
 * is in flight waits, on whatever worker, and gets the same answer, an error too; when the first's
 * caller leaves, or its time is over, the next of those who wait goes on. Who has another body than a first that is unsure of its own
 * waits, too: it may turn out to be a copy, or the first. Only successes are remembered: that there was one
 * for IDEMPOTENCY_REMEMBERED, the answer for IDEMPOTENCY_KEPT if it is not too long. Where there is no room the oldest goes of
 * the tenant that has most (fair_share.h). */
#ifndef GATEWAY_STATE_IDEMPOTENCY_H
#define GATEWAY_STATE_IDEMPOTENCY_H

#include "codec/base/list.h"
#include "codec/base/sha256.h"
#include "gateway/net/inbox.h"
#include "gateway/state/key_shard.h"

#include <stdatomic.h>

#define IDEMPOTENCY_REMEMBERED (600 * SEC)
#define IDEMPOTENCY_KEPT (60 * SEC)

enum {
	IDEMPOTENCY_ANSWER_MAX = 64 << 10,   /* bytes of an answer that is kept */
	IDEMPOTENCY_ANSWERS_MAX = 64 << 20,  /* of memory that all of them take */
	IDEMPOTENCY_ENTRIES_MAX = 64 * 4096, /* keys, in flight and remembered */
	/* Copies of all requests together: they wait before their tenant's limits are asked, and take a quarter of
	 * one worker's places at most. Each tenant has its share of these (fair_share.h). */
	IDEMPOTENCY_WAITING_MAX = 8192,
};

#define IDEMPOTENCY_SMALL UINT32_MAX

enum idempotency_verdict {
	IDEMPOTENCY_WAITS, /* the first is in flight: `decided` will be called once, unless idempotency_leave comes first */
	IDEMPOTENCY_LEADS, /* it goes on, as the first or in its place; idempotency_end or idempotency_leave must follow */
	IDEMPOTENCY_ANSWERED,  /* the first has its answer: `answer` */
	IDEMPOTENCY_DONE,      /* it had one, which is not kept any more */
	IDEMPOTENCY_CONFLICT,  /* another body came under that key */
	IDEMPOTENCY_ELSEWHERE, /* another gateway has it in flight; said by idempotency_redis.c */
	IDEMPOTENCY_FULL,      /* no room for another key, or for another copy */
	IDEMPOTENCY_CROWDED,   /* as many copies of the tenant wait as may */
};

/* What the first was answered with, but for the envelope. */
struct idempotency_answer {
	uint32_t err; /* enum err; ERR_OK: a result */
	struct slice
		member; /* `"result":...` or `"error":...`; absent: there was no memory for it */
	int64_t retry_after_s; /* < 0: none */
};

enum idempotency_part {
	IDEMPOTENCY_PART_WAITS,
	IDEMPOTENCY_PART_LEADS,
	IDEMPOTENCY_PART_READS,
	IDEMPOTENCY_PART_CONFLICTS
};

/* One request's part. Lives in the request. */
struct idempotency_call {
	/* asked */
	struct state_key key;
	struct state_key tenant;
	/* IDEMPOTENCY_SMALL: its body is small, or the tenant may have any number of requests; else of the tenant's
	 * copies with large bodies, so many may wait: they hold what requests in flight hold */
	uint32_t large_max;
	uint8_t body[SHA256_BYTES]; /* digest of what is asked */
	atomic_bool unsure; /* of that: it is a guess, until its owner clears this or leaves */
	bool guess; /* that of the revision is one that nothing vouches for: a session of other gateways */
	struct arena *arena;                            /* answers lie here */
	void (*decided)(struct idempotency_call *call); /* on the worker's own thread */
	/* answered */
	enum idempotency_verdict verdict; /* changes on the worker's own thread only */
	struct idempotency_answer answer;
	uint32_t number; /* of this time that the key is in flight, whoever leads */
	bool waited;     /* it did: what was known before it joined may have changed */
	/* Of who leads and leaves: its time is over. Of who follows it: that of the one before was. */
	bool late;
	/* private */
	struct idempotency *idempotency; /* NULL: it has no part in anything */
	enum idempotency_part part;      /* under the lock, by others too */
	bool leads;                      /* as far as its own thread knows */
	struct idempotency_entry *entry;
	struct list_link waits;    /* among those who wait */
	uint32_t copy, large_copy; /* while it waits: whose copies it is one of */
	struct inbox *inbox;
	struct inbox_item item;
};

struct idempotency;

/* NULL: memory. Lives until the process ends, but for tests. */
struct idempotency *idempotency_new(void);
void idempotency_free(struct idempotency *idempotency); /* nobody may have a part in it */

/* Joins the others of its key: fills call->verdict and, with IDEMPOTENCY_ANSWERED, .answer in. `inbox` is that of
 * the calling worker. */
void idempotency_join(struct idempotency *idempotency, struct idempotency_call *call,
		      struct inbox *inbox, nsec_t now);

/* Who leads has its answer: those who wait get it; a success is remembered. */
void idempotency_end(struct idempotency_call *call, const struct idempotency_answer *answer,
		     nsec_t now);

/* It goes away, whether it waits or leads: of those who wait the next one leads. Harmless when it has no
 * part in anything. True: it led, and there was nobody to follow. */
bool idempotency_leave(struct idempotency_call *call);

/* Whether it leads, and its end is due; whatever its verdict has become since. */
static inline bool idempotency_leads(const struct idempotency_call *call)
{
	return call->idempotency != NULL && call->leads;
}

/* What is asked of other gateways, where there are some (idempotency_redis.h), before a call that leads goes
 * on. Lives in the request. */
struct idempotency_claim {
	/* asked */
	struct state_key tenant;
	struct idempotency_call *call; /* which leads */
	nsec_t lasts;                  /* until the request's deadline */
	void (*done)(struct idempotency_claim *claim);
	/* answered: call->verdict, and with IDEMPOTENCY_ANSWERED .answer */
	bool held; /* it is the process's to end */
	/* private */
	struct redis_call sent;
};

#endif
