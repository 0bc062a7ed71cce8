#include "gateway/upstream/upstream_pool.h"

#include "codec/base/must.h"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_MAGIC = 0x504f4f4c };

/* Connections that a pool opens in one turn of the loop. What else a burst brings waits for the next turn, when some
 * calls will have been answered: their connections do as well. Opening one costs more than a call on it; if each
 * call of a burst had its own, the turn would grow long by it, and the next one's burst be the larger. Calls whose
 * kept connection was closed under them do not wait, but count. */
enum { DIALS_A_TURN = 16 };

/* An address that failed is tried last for so long, then in turn again. */
static const nsec_t failed_for = 30 * SEC;

/* ---- lists of calls -------------------------------------------------------------------------- */

void upstream_calls_add(struct upstream_calls *calls, struct upstream_call *call)
{
	must(call->prev == NULL);
	call->next = NULL;
	call->prev = calls->end;
	*calls->end = call;
	calls->end = &call->next;
	calls->count++;
}

void upstream_calls_remove(struct upstream_calls *calls, struct upstream_call *call)
{
	must(call->prev != NULL && calls->count > 0);
	*call->prev = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	else
		calls->end = call->prev;
	call->next = NULL;
	call->prev = NULL;
	calls->count--;
}

void upstream_serve_soon(struct upstream_pool *pool)
{
	if (pool->queue.first != NULL && pool->serve.prev == NULL)
		net_soon(pool->up->loop, &pool->serve);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* False when `host` is a name. */
static bool parse_literal(const char *host, struct upstream_address *out)
{
	struct sockaddr_in *v4 = (void *)&out->address;
	struct sockaddr_in6 *v6 = (void *)&out->address;

	*out = (struct upstream_address){ .len = 0 };
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		out->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		out->len = sizeof(*v6);
	}
	return out->len != 0;
}

/* A copy with the pool's port and nothing in the gaps, so that equal addresses are equal bytes.
 * False for other families than IP. */
static bool normalise(const struct upstream_address *in, uint16_t port,
		      struct upstream_address *out)
{
	const struct sockaddr_in *in4 = (const void *)&in->address;
	const struct sockaddr_in6 *in6 = (const void *)&in->address;
	struct sockaddr_in *out4 = (void *)&out->address;
	struct sockaddr_in6 *out6 = (void *)&out->address;

	(void)memset(out, 0, sizeof(*out));
	if (in->address.ss_family == AF_INET) {
		out4->sin_family = AF_INET;
		out4->sin_addr = in4->sin_addr;
		out4->sin_port = htons(port);
		out->len = sizeof(*out4);
	} else if (in->address.ss_family == AF_INET6) {
		out6->sin6_family = AF_INET6;
		out6->sin6_addr = in6->sin6_addr;
		out6->sin6_scope_id = in6->sin6_scope_id;
		out6->sin6_port = htons(port);
		out->len = sizeof(*out6);
	}
	return out->len != 0;
}

/* What is known of an address stays known when the name is resolved again. */
static nsec_t failed_until(const struct upstream_target *targets, uint32_t count,
			   const struct upstream_address *address)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(&targets[i].address.address, &address->address,
			   sizeof(address->address)) == 0)
			return targets[i].failed_until;
	return 0;
}

void upstream_pool_set_targets(struct upstream_pool *pool, const struct upstream_address *addresses,
			       uint32_t count)
{
	struct upstream_target fresh[UPSTREAM_ADDRESSES_MAX];
	uint32_t taken = 0;

	for (uint32_t i = 0; i < count && taken < UPSTREAM_ADDRESSES_MAX; i++) {
		struct upstream_target *target = &fresh[taken];
		if (!normalise(&addresses[i], pool->port, &target->address))
			continue;
		target->failed_until =
			failed_until(pool->targets, pool->target_count, &target->address);
		taken++;
	}
	if (taken == 0) { /* the old ones are better than none */
		pool->unresolved = pool->target_count == 0;
		return;
	}
	(void)memcpy(pool->targets, fresh, taken * sizeof(fresh[0]));
	pool->target_count = taken;
	pool->generation++;
	pool->unresolved = false;
}

uint32_t upstream_address_count(const struct upstream_pool *pool)
{
	return pool->target_count;
}

static uint32_t tried_of(const struct upstream_pool *pool, const struct upstream_conn *conn)
{
	return conn->generation == pool->generation ? conn->tried : 0;
}

uint32_t upstream_pool_untried(const struct upstream_pool *pool, const struct upstream_conn *conn)
{
	uint32_t tried = tried_of(pool, conn), count = 0;

	for (uint32_t i = 0; i < pool->target_count; i++)
		count += (tried >> i & 1) == 0;
	return count;
}

uint32_t upstream_pool_next_address(struct upstream_pool *pool, const struct upstream_conn *conn)
{
	uint32_t tried = tried_of(pool, conn), best = UPSTREAM_NO_ADDRESS;
	nsec_t now = net_now(pool->up->loop), best_until = NSEC_NEVER;

	for (uint32_t i = 0; i < pool->target_count; i++) {
		uint32_t n = (pool->turn + i) % pool->target_count;
		nsec_t until = pool->targets[n].failed_until;
		until = until > now ? until : 0;
		if ((tried >> n & 1) == 0 && until < best_until) {
			best = n;
			best_until = until;
		}
	}
	if (best != UPSTREAM_NO_ADDRESS)
		pool->turn = best + 1;
	return best;
}

void upstream_pool_note_dialled(struct upstream_conn *conn, uint32_t n)
{
	conn->tried = tried_of(conn->pool, conn) | (uint32_t)1 << n;
	conn->generation = conn->pool->generation;
	conn->address = n;
	const struct upstream_address *to = &conn->pool->targets[n].address;
	(void)memcpy(&conn->peer, &to->address, sizeof(conn->peer));
}

/* The target that conn dialled; NULL when the addresses were replaced meanwhile. */
static struct upstream_target *target_of(const struct upstream_conn *conn)
{
	struct upstream_pool *pool = conn->pool;

	return conn->generation == pool->generation ? &pool->targets[conn->address] : NULL;
}

void upstream_pool_note_failed(struct upstream_conn *conn)
{
	struct upstream_target *target = target_of(conn);

	if (target != NULL)
		target->failed_until = net_now(conn->pool->up->loop) + failed_for;
}

void upstream_pool_note_opened(struct upstream_conn *conn)
{
	struct upstream_target *target = target_of(conn);

	if (target != NULL)
		target->failed_until = 0;
	must(!conn->open && conn->pool->connecting > 0);
	conn->open = true;
	conn->pool->connecting--;
}

/* ---- connections ----------------------------------------------------------------------------- */

uint32_t upstream_pool_places(const struct upstream_pool *pool)
{
	return pool->target_count == 0 || pool->conns >= pool->connections_max
		       ? 0
		       : pool->connections_max - pool->conns;
}

bool upstream_pool_may_dial(const struct upstream_pool *pool)
{
	return pool->dials.at != net_now(pool->up->loop) || pool->dials.count < DIALS_A_TURN;
}

static void note_dial(struct upstream_pool *pool)
{
	const nsec_t now = net_now(pool->up->loop); /* of this turn alone */

	if (pool->dials.at != now)
		pool->dials.count = 0;
	pool->dials.at = now;
	pool->dials.count++;
}

/* Several at once, so that those of many streams share pages; they are kept for good. */
static void make_spare(struct upstream *up)
{
	enum { AT_ONCE = 8 };
	struct upstream_conn *conns =
		aligned_alloc(_Alignof(struct upstream_conn), AT_ONCE * sizeof(*conns));

	for (size_t i = 0; conns != NULL && i < AT_ONCE; i++) {
		conns[i].next = up->spare;
		up->spare = &conns[i];
	}
}

struct upstream_conn *upstream_conn_new(struct upstream_pool *pool)
{
	struct upstream *up = pool->up;

	if (up->spare == NULL)
		make_spare(up);
	struct upstream_conn *conn = up->spare;
	if (conn == NULL)
		return NULL;
	up->spare = conn->next;
	*conn = (struct upstream_conn){ .pool = pool, .generation = pool->generation };
	pool->conns++;
	pool->connecting++;
	note_dial(pool);
	return conn;
}

static void conn_end(struct upstream_conn *conn, void (*end)(struct net_conn *))
{
	struct upstream_pool *pool = conn->pool;

	net_timer_stop(pool->up->loop, &conn->drain_timer);
	if (conn->net != NULL)
		end(conn->net);
	uint32_t *count = conn->stream ? &pool->streams : &pool->conns;
	must(*count > 0);
	--*count;
	if (!conn->open)
		pool->connecting--;
	*conn = (struct upstream_conn){ .next = pool->up->spare };
	pool->up->spare = conn;
}

void upstream_conn_drop(struct upstream_conn *conn)
{
	conn_end(conn, net_close);
}

void upstream_conn_abort(struct upstream_conn *conn)
{
	conn_end(conn, net_abort);
}

void upstream_pool_unlist(struct upstream_conn *conn)
{
	struct upstream_pool *pool = conn->pool;

	must(pool->idle > 0);
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	else
		pool->oldest = conn->prev;
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		pool->newest = conn->next;
	conn->next = conn->prev = NULL;
	pool->idle--;
}

void upstream_pool_lose(struct upstream_conn *conn)
{
	must(conn->call == NULL);
	upstream_pool_unlist(conn);
	upstream_conn_drop(conn);
}

/* One timer for all, as the list is in the order of idle_since; it is left alone while it runs, so
 * that a connection in use costs no timer. */
static void arm_idle_timer(struct upstream_pool *pool)
{
	if (pool->idle_armed)
		return;
	pool->idle_armed = true;
	net_timer_set(pool->up->loop, &pool->idle_timer,
		      pool->oldest->idle_since + pool->up->limits.idle_for);
}

static void on_idle_timer(struct net_timer *timer)
{
	struct upstream_pool *pool = CONTAINER_OF(timer, struct upstream_pool, idle_timer);
	nsec_t now = net_now(pool->up->loop), idle_for = pool->up->limits.idle_for;

	pool->idle_armed = false;
	while (pool->oldest != NULL && pool->oldest->idle_since + idle_for <= now)
		upstream_pool_lose(pool->oldest);
	if (pool->oldest != NULL)
		arm_idle_timer(pool);
}

void upstream_pool_keep(struct upstream_conn *conn)
{
	struct upstream_pool *pool = conn->pool;

	must(conn->open && conn->call == NULL);
	if (pool->doomed || pool->idle >= pool->up->limits.idle_max ||
	    (conn->stream && !upstream_pool_end_stream(conn))) {
		upstream_conn_drop(conn);
		return;
	}
	net_coalesce(conn->net, false);
	conn->used = true;
	conn->idle_since = net_now(pool->up->loop);
	conn->next = pool->newest;
	conn->prev = NULL;
	if (pool->newest != NULL)
		pool->newest->prev = conn;
	else
		pool->oldest = conn;
	pool->newest = conn;
	pool->idle++;
	arm_idle_timer(pool);
}

void upstream_pool_let_stream(struct upstream_conn *conn)
{
	struct upstream_pool *pool = conn->pool;

	must(!conn->stream && pool->conns > 0);
	conn->stream = true;
	pool->conns--;
	pool->streams++;
	upstream_serve_soon(pool);
}

bool upstream_pool_end_stream(struct upstream_conn *conn)
{
	struct upstream_pool *pool = conn->pool;

	must(conn->stream && pool->streams > 0);
	if (pool->conns >= pool->connections_max)
		return false;
	conn->stream = false;
	pool->streams--;
	pool->conns++;
	return true;
}

struct upstream_conn *upstream_pool_take(struct upstream_pool *pool)
{
	struct upstream_conn *conn = pool->newest;

	if (conn != NULL)
		upstream_pool_unlist(conn);
	return conn;
}

/* ---- pools ----------------------------------------------------------------------------------- */

struct upstream_pool *upstream_pool_find(const struct upstream *up, struct slice identity)
{
	struct upstream_pool *pool = up->pools;

	while (pool != NULL && !slice_eq(pool->identity, identity))
		pool = pool->next;
	return pool;
}

static void pool_free(struct upstream_pool *pool)
{
	must_obj(pool, POOL_MAGIC);
	must(pool->conns == 0 && pool->streams == 0 && pool->calls == 0);
	net_timer_stop(pool->up->loop, &pool->idle_timer);
	net_task_cancel(&pool->serve);
	tls_client_free(pool->tls);
	free((void *)pool->identity.at);
	free(pool->host);
	pool->magic = 0;
	free(pool);
}

static void take_literal(struct upstream_pool *pool)
{
	struct upstream_address address;

	pool->server_name = pool->host;
	if (!parse_literal(pool->host, &address))
		return;
	pool->server_name = NULL; /* RFC 6066 3: SNI is for names */
	upstream_pool_set_targets(pool, &address, 1);
}

static struct upstream_pool *pool_new(struct upstream *up, const struct endpoint *endpoint,
				      char *problem, size_t room)
{
	struct upstream_pool *pool = calloc(1, sizeof(*pool));
	char *host = strndup(endpoint->host.at, endpoint->host.len);
	char *identity = strndup(endpoint->identity.at, endpoint->identity.len);

	if (pool == NULL || host == NULL || identity == NULL) {
		(void)snprintf(problem, room, "no memory for a connection pool");
		free(pool);
		free(host);
		free(identity);
		return NULL;
	}
	pool->magic = POOL_MAGIC;
	pool->up = up;
	pool->host = host;
	pool->identity = slice_of(identity, endpoint->identity.len);
	pool->port = endpoint->port;
	pool->idle_timer.fire = on_idle_timer;
	pool->serve.run = up->serve;
	upstream_calls_init(&pool->queue);
	take_literal(pool);
	if (endpoint->tls) {
		pool->tls = tls_client_new(host, endpoint->ca_pem, problem, room);
		if (pool->tls == NULL) {
			pool_free(pool);
			return NULL;
		}
	}
	pool->next = up->pools;
	up->pools = pool;
	return pool;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The first endpoint of a snapshot that names the pool sets its bounds, a further one widens them. */
static void take_bounds(struct upstream_pool *pool, const struct endpoint *endpoint)
{
	const struct upstream_limits *limits = &pool->up->limits;
	const uint32_t workers = limits->workers == 0 ? 1 : limits->workers;
	const uint32_t connections =
		least(config_share(endpoint->concurrent, workers), limits->connections_max);
	const uint32_t queue = least(config_share(endpoint->queue, workers), limits->queue_max);
	const nsec_t wait = endpoint->queue_deadline == 0 ? NSEC_NEVER : endpoint->queue_deadline;

	pool->connections_max =
		pool->marked ? most(pool->connections_max, connections) : connections;
	pool->queue_max = pool->marked ? most(pool->queue_max, queue) : queue;
	if (!pool->marked || wait > pool->queue_deadline)
		pool->queue_deadline = wait;
}

struct upstream_pool *upstream_pool_for(struct upstream *up, const struct endpoint *endpoint,
					char *problem, size_t room)
{
	struct upstream_pool *pool = upstream_pool_find(up, endpoint->identity);

	if (pool == NULL)
		pool = pool_new(up, endpoint, problem, room);
	if (pool == NULL)
		return NULL;
	take_bounds(pool, endpoint);
	pool->marked = true;
	pool->doomed = false;
	upstream_serve_soon(pool); /* there may be more places than before */
	return pool;
}

void upstream_pool_let_go(struct upstream_pool *pool)
{
	must_obj(pool, POOL_MAGIC);
	if (!pool->doomed || pool->calls != 0)
		return;
	struct upstream_pool **at = &pool->up->pools;
	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	pool_free(pool);
}

void upstream_hold(struct upstream_pool *pool)
{
	pool->calls++;
}

void upstream_let_go(struct upstream_pool *pool)
{
	must(pool->calls != 0);
	pool->calls--;
	upstream_pool_let_go(pool);
}

void upstream_mark(struct upstream *up)
{
	for (struct upstream_pool *pool = up->pools; pool != NULL; pool = pool->next)
		pool->marked = false;
}

bool upstream_is_marked(const struct upstream *up, struct slice identity)
{
	const struct upstream_pool *pool = upstream_pool_find(up, identity);

	return pool != NULL && pool->marked;
}

void upstream_sweep(struct upstream *up)
{
	struct upstream_pool *next;

	for (struct upstream_pool *pool = up->pools; pool != NULL; pool = next) {
		next = pool->next;
		if (pool->marked)
			continue;
		pool->doomed = true;
		while (pool->newest != NULL)
			upstream_pool_lose(pool->newest);
		upstream_pool_let_go(pool);
	}
}

struct upstream_counts upstream_count(const struct upstream *up, struct slice identity)
{
	const struct upstream_pool *pool = upstream_pool_find(up, identity);

	if (pool == NULL)
		return (struct upstream_counts){ 0 };
	return (struct upstream_counts){
		.idle = pool->idle,
		.busy = pool->conns - pool->idle - pool->connecting,
		.connecting = pool->connecting,
		.queued = pool->queue.count,
		.streams = pool->streams,
	};
}
