/* upstream_extra.c - calls that are not a provider's: one address, streams outside the pool's bound, all header lines. */
#include "gateway/upstream/upstream_parts.h"

#include "codec/base/must.h"

/* Idle connections that are looked at for a call; with one address the first of them nearly always is good. */
enum { LOOKS_MAX = 32 };

/* ---- addresses ------------------------------------------------------------------------------- */

static bool is_same(const union upstream_peer *peer, const struct upstream_address *address)
{
	const struct sockaddr_in *in4 = (const void *)&address->address;
	const struct sockaddr_in6 *in6 = (const void *)&address->address;

	if (peer->any.sa_family != address->address.ss_family)
		return false;
	if (peer->any.sa_family == AF_INET)
		return peer->v4.sin_port == in4->sin_port &&
		       peer->v4.sin_addr.s_addr == in4->sin_addr.s_addr;
	return peer->v6.sin6_port == in6->sin6_port &&
	       memcmp(&peer->v6.sin6_addr, &in6->sin6_addr, sizeof(in6->sin6_addr)) == 0;
}

static uint32_t find_address(const struct upstream_pool *pool, const struct upstream_address *pin)
{
	for (uint32_t n = 0; n < pool->target_count; n++)
		if (is_same((const void *)&pool->targets[n].address.address, pin))
			return n;
	return UPSTREAM_NO_ADDRESS;
}

bool upstream_extra_has_address(const struct upstream_call *call)
{
	const struct upstream_address *pin = call->extra->pin;

	return pin == NULL || call->pool->target_count == 0 ||
	       find_address(call->pool, pin) != UPSTREAM_NO_ADDRESS;
}

uint32_t upstream_extra_next_address(const struct upstream_conn *conn)
{
	const struct upstream_address *pin = conn->call->extra->pin;

	if (pin == NULL)
		return upstream_pool_next_address(conn->pool, conn);
	return conn->tried != 0 ? UPSTREAM_NO_ADDRESS : find_address(conn->pool, pin);
}

/* ---- kept connections ------------------------------------------------------------------------ */

struct upstream_conn *upstream_extra_take(const struct upstream_call *call)
{
	struct upstream_pool *pool = call->pool;
	const struct upstream_address *pin = call->extra->pin;
	const nsec_t now = upstream_now(call), fresh_for = pool->up->limits.fresh_for;
	struct upstream_conn *conn = pool->newest, *next;

	for (uint32_t looks = 0; conn != NULL && looks < LOOKS_MAX; looks++, conn = next) {
		next = conn->next;
		if (now - conn->idle_since >= fresh_for)
			break; /* those behind it are older */
		if (pin != NULL && !is_same(&conn->peer, pin))
			continue;
		if (net_is_silent(conn->net)) {
			upstream_pool_unlist(conn);
			return conn;
		}
		upstream_pool_lose(conn);
	}
	if (pool->conns >= pool->connections_max && pool->oldest != NULL)
		upstream_pool_lose(pool->oldest);
	return NULL;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

static void note_peer(const struct upstream_conn *conn, struct upstream_address *peer)
{
	const bool v4 = conn->peer.any.sa_family == AF_INET;

	peer->len = v4 ? sizeof(conn->peer.v4) : sizeof(conn->peer.v6);
	(void)memcpy(&peer->address, &conn->peer, peer->len);
}

/* Of the body, what has come and what is still to come is what the head announced. */
static int64_t announced(const struct upstream_http *http)
{
	const uint64_t length = (uint64_t)http->size + http->left;

	if (!http->length_sent)
		return -1;
	return length > INT64_MAX ? INT64_MAX : (int64_t)length;
}

void upstream_extra_note(struct upstream_conn *conn, const char *bytes)
{
	struct upstream_extra *extra = conn->call->extra;

	extra->fields = upstream_http_fields(&conn->http, bytes);
	extra->content_length = announced(&conn->http);
	note_peer(conn, &extra->peer);
	conn->call->coded = conn->http.coded;
}

bool upstream_extra_head(struct upstream_conn *conn, const char *bytes)
{
	upstream_extra_note(conn, bytes);
	if (conn->call->extra->no_body)
		upstream_http_skip_body(&conn->http);
	return !conn->call->extra->no_body;
}

void upstream_extra_go_on(struct upstream_conn *conn)
{
	struct upstream_call *call = conn->call;

	call->extra->fields = slice_of(NULL, 0);
	if (call->in_pieces && call->extra->stream) {
		if (!conn->probed)
			net_keep_alive(conn->net);
		conn->probed = true;
		upstream_pool_let_stream(conn);
	}
}
