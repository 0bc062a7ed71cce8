/* net_conns.c - the connections of a loop: whom the two epolls tell of. */
#include "gateway/net/net_conn_parts.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	BATCH = 256, /* connections that are told of at once */
	/* Of a batch, what the connections touch is asked for in steps, so many connections apart; the
	 * first is the connection itself. Fewer than FEW are not worth it. */
	APART = 2,
	AHEAD = (PREFETCH_STEPS + 1) * APART,
	FEW = 4,
	GUESSES_MAX = 64, /* so many turns at most pass by what the epoll has to say */
};

/* ---- one after the other ---- */

/* One that an earlier callback of this batch closed is still there, and says so. */
static bool is_over(const struct net_conn *conn)
{
	return conn->closed || conn->end != NET_END_NONE;
}

static void conn_event(struct net_conn *conn, uint32_t what)
{
	must_obj(conn, NET_CONN_MAGIC);
	if (is_over(conn))
		return;
	conn->last = conn->last || (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (!conn->connected)
		net_conn_connected(conn, what);
	else if (conn->blocked && (what & EPOLLOUT) != 0)
		net_conn_write_on(conn);
	if (!is_over(conn) && conn->connected && (what & ~(uint32_t)EPOLLOUT) != 0)
		net_conn_read(conn);
}

/* Those behind connection `now` of the batch, which may still be before its first. */
static void look_ahead(const struct epoll_event *events, int count, int now)
{
	if (now + AHEAD < count)
		prefetch_lines(events[now + AHEAD].data.ptr, 1);
	for (int step = 0; step < PREFETCH_STEPS; step++) {
		const int at = now + AHEAD - (step + 1) * APART;
		if (at < 0 || at >= count)
			continue;
		const struct net_conn *conn = events[at].data.ptr;
		if (conn != NULL && !conn->closed && conn->events->prefetch != NULL)
			conn->events->prefetch(conn->arg, (enum prefetch)step);
	}
}

static void tell_coalesced(struct net_conns *conns);

/* Tells the connections that `epoll` has news of, of so many; of BATCH there may be more. */
static int tell(struct net_conns *conns, int epoll)
{
	struct epoll_event events[BATCH];
	const int count = epoll_wait(epoll, events, BATCH, 0);

	must(count >= 0 || errno == EINTR);
	for (int i = count < FEW ? 0 : -AHEAD; i < count; i++) {
		if (count >= FEW)
			look_ahead(events, count, i);
		if (i >= 0 && events[i].data.ptr == NULL)
			tell_coalesced(conns);
		else if (i >= 0)
			conn_event(events[i].data.ptr, events[i].events);
	}
	return count;
}

/* ---- those that wait for each other ---- */

/* How the first epoll watches the second: it tells once, and again only when asked. */
static struct epoll_event news(void)
{
	return (struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.ptr = NULL };
}

/* As long as there is something each time the timer asks, it asks again; of few connections nobody waits for
 * the others. */
static void tell_coalesced(struct net_conns *conns)
{
	struct epoll_event again = news();
	const int count = tell(conns, conns->coalesced.epoll);

	if (count == BATCH || (count > 0 && net_conns_coalesce(conns)))
		net_timer_set(conns->loop, &conns->coalesced.timer,
			      net_now(conns->loop) + (count == BATCH ? 0 : NET_COALESCE));
	else
		must(epoll_ctl(conns->epoll, EPOLL_CTL_MOD, conns->coalesced.epoll, &again) == 0);
}

static void on_timer(struct net_timer *timer)
{
	tell_coalesced(CONTAINER_OF(timer, struct net_conns, coalesced.timer));
}

/* From one epoll to the other; where that refuses, it stays. Of news that it brings the other tells anew. */
static void move(struct net_conn *conn)
{
	const struct net_conns *conns = conn->conns;
	const int from = conn->coalesced ? conns->coalesced.epoll : conns->epoll;

	conn->coalesced = !conn->coalesced;
	if (net_conn_watch(conn, EPOLL_CTL_ADD))
		must(epoll_ctl(from, EPOLL_CTL_DEL, conn->fd, NULL) == 0);
	else
		conn->coalesced = !conn->coalesced;
}

void net_coalesce(struct net_conn *conn, bool on)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, NET_CONN_MAGIC);
	must(!conn->closed);
	must(!on || !conn->may_wait); /* whoever had it before has said that it waits no more */
	if (conn->may_wait != on)
		conns->coalesced.may_wait += on ? 1 : UINT32_MAX;
	conn->may_wait = on;
	if (conn->coalesced ? !on : on && net_conns_coalesce(conns))
		move(conn);
}

/* ---- all of them ---- */

bool net_conns_init(struct net_conns *conns, struct net_loop *loop)
{
	struct epoll_event first = news();

	conns->loop = loop;
	conns->coalesced.timer.fire = on_timer;
	conns->epoll = epoll_create1(EPOLL_CLOEXEC);
	conns->coalesced.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (conns->epoll != -1 && conns->coalesced.epoll != -1 &&
	    epoll_ctl(conns->epoll, EPOLL_CTL_ADD, conns->coalesced.epoll, &first) == 0)
		return true;
	net_conns_fini(conns);
	return false;
}

void net_conns_fini(struct net_conns *conns)
{
	if (conns->epoll != -1)
		(void)close(conns->epoll);
	if (conns->coalesced.epoll != -1)
		(void)close(conns->coalesced.epoll);
}

/* Where just one answer is waited for, it is what came: no need to ask the epoll. If it was not, that says
 * what was; if it was not all, the epoll is still readable. (Only without EPOLLOUT among what is watched
 * does the kernel take back by itself that there is news of a connection that has been read.) */
static bool guess_right(struct net_conns *conns)
{
	struct net_conn *conn = conns->asked == 1 ? conns->last_asked : NULL;

	if (conn == NULL || is_over(conn) || conn->paused || conn->out_watched)
		return false;
	if (++conns->guesses % GUESSES_MAX == 0)
		return false;
	net_conn_read(conn);
	return conns->last_asked != conn;
}

void net_conns_poll(struct net_conns *conns)
{
	if (!guess_right(conns))
		(void)tell(conns, conns->epoll);
}
