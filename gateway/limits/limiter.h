/* limiter.h - what flow asks of state. One interface; limiter_memory.c is the default, over the limit
 * table. A limiter may answer at once or later (Redis); the flow does not care. */
#ifndef GATEWAY_LIMITS_LIMITER_H
#define GATEWAY_LIMITS_LIMITER_H

#include "codec/base/list.h"
#include "gateway/limits/limit_left.h"
#include "gateway/net/net.h"

enum limiter_outcome {
	LIMITER_DONE,    /* reservation.granted and, when refused, .refusal are filled */
	LIMITER_PENDING, /* reservation.done will be called once, unless limiter_forget comes first */
};

/* One tenant, one server, and the globs of limits.per_model that one model matches. */
enum { RESERVATION_SCOPES_MAX = 4 };

struct limiter_call;

/* One attempt's claim on limits: on all of its scopes or on none. Lives in the request; the limiter keeps
 * a pointer to it while it is pending. */
struct reservation {
	/* asked */
	struct limit_scope
		*scopes;      /* the asker's, and live as long as this; [0] is the tenant's own:
				     * its key names the tenant. Limits are copies: the snapshot may go
				     * while the request waits */
	uint32_t scope_count; /* 1 .. RESERVATION_SCOPES_MAX */
	struct limit_ask ask; /* of every scope */
	nsec_t now;
	uint64_t wall_s;
	nsec_t deadline; /* the request's: no answer is worth more than that; 0: none */
	void (*done)(struct reservation *reservation);
	/* Written before the answer, granted or not, unless there was no room for a slot, or no store. The asker's; NULL:
	 * nobody wants to know. */
	struct limit_left *left;
	/* answered */
	bool granted;
	struct limit_refusal refusal; /* also ERR_BUSY: no room for another slot */
	/* the limiter's own */
	struct limiter_call *call; /* to Redis, while it is on its way */
	bool fallback;             /* granted by this gateway alone, */
	uint32_t generation;       /* after so many connections */
	struct list_link waits; /* not sent yet: for the first connection, or until Redis is well */
	/* limiter_redis_patience.c: of one that nothing but a refusal awaits */
	struct net_timer patience;
	struct limiter_redis *waits_at;
};

struct limiter_redis;

struct limiter {
	enum limiter_outcome (*reserve)(struct limiter *limiter, struct reservation *reservation);
	/* The attempt ended: true costs replace the reserved ones. Returns nano-USD beyond the
	 * bound. */
	uint64_t (*settle)(struct limiter *limiter, struct reservation *reservation,
			   uint64_t tokens, uint64_t usd, nsec_t now);
	/* The request ended: its place is free again. Exactly once per granted concurrent ask. */
	void (*release)(struct limiter *limiter, struct reservation *reservation);
	/* The attempt is not made after all: what was granted is free again, the request and its place
	 * too, as if it had never been asked for. Instead of settle and release. */
	void (*undo)(struct limiter *limiter, struct reservation *reservation, nsec_t now);
	/* The request is going away while PENDING: the answer, if it comes, is undone by the limiter.
	 */
	void (*forget)(struct limiter *limiter, struct reservation *reservation);
	/* Number of the tenant's slot, for metric series; UINT32_MAX when the limiter has none. */
	uint32_t (*series)(struct limiter *limiter, const uint8_t key[16]);
};

/* Over a mapped limit table, which must outlive it. One per worker; the table is shared. */
struct limiter_memory {
	struct limiter limiter;
	struct limit_table *table;
};
void limiter_memory_init(struct limiter_memory *memory, struct limit_table *table);

#endif
