/* upstream_pool.h - private to upstream*.c: endpoints, their addresses and their connections.
 *
 * A pool knows nothing of how a call goes on; upstream.c does. A connection is connecting, busy
 * with its call, or idle; all are counted, and the idle ones are on the pool's list. */
#ifndef GATEWAY_UPSTREAM_UPSTREAM_POOL_H
#define GATEWAY_UPSTREAM_UPSTREAM_POOL_H

#include "gateway/upstream/upstream.h"
#include "gateway/upstream/upstream_http.h"

#include <netinet/in.h>

enum {
	UPSTREAM_ADDRESSES_MAX = 32, /* per name; further ones are not used */
	UPSTREAM_NO_ADDRESS = UPSTREAM_ADDRESSES_MAX
};

/* An address as the pool's targets have them. */
union upstream_peer {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* What a piece of an answer touches comes first: two lines of the cache. */
struct upstream_conn {
	_Alignas(64) struct upstream_pool *pool;
	struct net_conn *net;       /* NULL between two addresses */
	struct upstream_call *call; /* NULL: idle */
	bool open;                  /* connected, TLS included */
	bool used;                  /* has served an answer: may be stale */
	bool heard;                 /* a byte has come since the request */
	bool foreign;               /* its call is not a provider's (struct upstream_extra) */
	bool narrow;                /* the kernel was asked to keep little unread input */
	bool draining; /* the rest of an answer that nobody waits for any more; `call` is NULL */
	bool stream;   /* counted in the pool's `streams`, not in its `conns` */
	bool probed;   /* net_keep_alive */
	struct upstream_http http;
	struct upstream_conn *next, *prev; /* of the idle list; next also of the spare list */
	nsec_t idle_since;
	nsec_t give_up;   /* this address, for the next one */
	uint32_t address; /* index in the pool's addresses of generation `generation` */
	uint32_t tried;   /* bit per address */
	uint32_t generation;
	size_t drained; /* of that rest */
	struct net_timer drain_timer;
	union upstream_peer peer; /* what was dialled last */
};

/* First in, first out. A call is on one list at most; `prev` NULL: on none. */
struct upstream_calls {
	struct upstream_call *first, **end;
	uint32_t count;
};

static inline void upstream_calls_init(struct upstream_calls *calls)
{
	*calls = (struct upstream_calls){ .end = &calls->first };
}

void upstream_calls_add(struct upstream_calls *calls, struct upstream_call *call);
void upstream_calls_remove(struct upstream_calls *calls, struct upstream_call *call);

struct upstream_target {
	struct upstream_address address;
	nsec_t failed_until; /* until then it is tried last */
};

struct upstream_pool {
	uint32_t magic;
	struct upstream *up;
	struct upstream_pool *next;
	struct slice identity;   /* owned */
	char *host;              /* owned; NUL-terminated */
	const char *server_name; /* host, or NULL when that is an address */
	uint16_t port;
	struct ssl_ctx_st *tls; /* owned; NULL: clear text */
	struct upstream_target targets[UPSTREAM_ADDRESSES_MAX];
	uint32_t target_count, turn;
	uint32_t generation; /* of the targets */
	bool unresolved;     /* no address was ever known, and the last resolution failed */
	uint32_t connections_max, queue_max;
	nsec_t queue_deadline; /* how long a call waits for a connection; NSEC_NEVER: no bound */
	bool marked, doomed;
	bool idle_armed;
	struct upstream_conn *newest, *oldest; /* idle */
	uint32_t idle, connecting, conns;      /* conns: all of them, but for streams */
	uint32_t streams; /* connections whose answers are streams (struct upstream_extra) */
	struct {
		nsec_t at; /* the turn's time */
		uint32_t count;
	} dials;        /* the latest turn's that had any */
	uint32_t calls; /* started and not yet told `done`, and holders */
	struct upstream_calls queue;
	struct net_task serve; /* of the queue */
	struct net_timer idle_timer;
};

struct upstream {
	struct net_loop *loop;
	struct upstream_limits limits;
	struct upstream_pool *pools;
	struct upstream_conn *spare; /* objects of closed connections, to be used again */
	/* Their `done` is due: those whose answers are short or none, and the others. */
	struct upstream_calls over, over_long;
	struct net_task deliver;
	bool delivering;                      /* `deliver` is queued */
	size_t kept, kept_max;                /* bytes of answers: see upstream_bound_answers */
	upstream_prefetch_fn *prefetch;       /* NULL: nobody wants to know */
	void (*serve)(struct net_task *task); /* upstream_serve, of each pool */
};

/* Something was freed or became known: the first in the queue go on, at the end of this turn. Callers
 * that leave together leave the queue first, so that nothing is begun only to be cancelled. */
void upstream_serve_soon(struct upstream_pool *pool);

/* ---- addresses ---- */

/* The next address to dial for `conn`, never one it has tried: in turn, those that failed lately
 * last. UPSTREAM_NO_ADDRESS when all were tried. */
uint32_t upstream_pool_next_address(struct upstream_pool *pool, const struct upstream_conn *conn);

/* Replaces the addresses; the port is the pool's. With no usable one the old ones stay. */
void upstream_pool_set_targets(struct upstream_pool *pool, const struct upstream_address *addresses,
			       uint32_t count);

/* The pool of that identity, or NULL. */
struct upstream_pool *upstream_pool_find(const struct upstream *up, struct slice identity);

/* How many of the pool's addresses `conn` has not tried. */
uint32_t upstream_pool_untried(const struct upstream_pool *pool, const struct upstream_conn *conn);

/* `conn` dials address `n` now. */
void upstream_pool_note_dialled(struct upstream_conn *conn, uint32_t n);

/* What came of it. */
void upstream_pool_note_failed(struct upstream_conn *conn);
void upstream_pool_note_opened(struct upstream_conn *conn);

/* ---- connections ---- */

/* How many more connections there may be; none while no address is known. */
uint32_t upstream_pool_places(const struct upstream_pool *pool);

/* Whether one of them may be opened in this turn of the loop: so many at once are enough. */
bool upstream_pool_may_dial(const struct upstream_pool *pool);

/* Counted as connecting, with nothing dialled yet. NULL: memory. */
struct upstream_conn *upstream_conn_new(struct upstream_pool *pool);

/* Closes a connection that is not idle, and gives the object back. */
void upstream_conn_drop(struct upstream_conn *conn);
/* The same in the midst of a call or an answer: net_abort. */
void upstream_conn_abort(struct upstream_conn *conn);

/* Puts a clean connection on the idle list, or closes it when that is full or the pool is not
 * wanted any more. */
void upstream_pool_keep(struct upstream_conn *conn);

/* The one used last, off the list; NULL when there is none. */
struct upstream_conn *upstream_pool_take(struct upstream_pool *pool);

/* Takes an idle connection off the list. */
void upstream_pool_unlist(struct upstream_conn *conn);

/* The connection leaves the pool's bound, as its answer is a stream; what waits for a place is served. */
void upstream_pool_let_stream(struct upstream_conn *conn);
/* Its stream is over: it counts again. False: there is no place for it, and it is to be closed. */
bool upstream_pool_end_stream(struct upstream_conn *conn);

/* Closes an idle connection, which ended or sent what nobody asked for. */
void upstream_pool_lose(struct upstream_conn *conn);

/* A call has been told `done`, or was cancelled: frees a pool that waited for this. */
void upstream_pool_let_go(struct upstream_pool *pool);

#endif
