#include "gateway/http/http_h2o_listen.h"

#include "codec/base/must.h"
#include "gateway/http/http_h2o_tls.h"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

/* Between batches the connections that are there get their turn. */
enum { ACCEPT_BATCH = 16 };

#define RETRY_AFTER (100 * MSEC)

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { PREFACE_LEN = sizeof(preface) - 1 };
/* A request line that no other protocol has. */
enum { MEANT_LEN = sizeof("PRI * HTTP/2.0\r\n") - 1 };

/* Clear text: HTTP/2 with prior knowledge is told from HTTP/1.1 here, so that h2o never changes the
 * protocol of a connection behind the guard's back. */
static void on_first_bytes(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	const char *bytes = sock->input->bytes;
	size_t len = sock->input->size < PREFACE_LEN ? sock->input->size : PREFACE_LEN;
	if (err != NULL)
		h2o_socket_close(sock);
	else if (memcmp(bytes, preface, len) == 0 && len < PREFACE_LEN)
		return; /* the rest is to come */
	else if (len == PREFACE_LEN && memcmp(bytes, preface, len) == 0)
		edge_begin(edge, EDGE_HTTP2);
	else if (len >= MEANT_LEN && memcmp(bytes, preface, MEANT_LEN) == 0)
		edge_refuse_preface(edge);
	else
		edge_begin(edge, EDGE_HTTP1);
}

/* ---- listening ---- */
static void on_acceptable(h2o_socket_t *listener, const char *err);

/* The kernel queues what is not accepted. A listener that is readable and not accepted from would
 * turn the loop for nothing, hence it is not even looked at. */
static void listeners_set_open(struct listeners *listeners, bool open)
{
	if (listeners->open == open)
		return;
	listeners->open = open;
	for (size_t i = 0; i < listeners->count; i++) {
		if (open)
			h2o_socket_read_start(listeners->at[i].sock, on_acceptable);
		else
			h2o_socket_read_stop(listeners->at[i].sock);
	}
}

void listeners_refresh(struct listeners *listeners)
{
	const struct edge_host *host = listeners->host;
	bool room = host->count < listeners->connections_max ||
		    (host->leaving == 0 && edge_host_has_idle(host));
	bool waiting = listeners->retry.place != 0;
	listeners_set_open(listeners, room && !waiting && !listeners->stopped);
}

static void on_retry(struct net_timer *timer)
{
	listeners_refresh(CONTAINER_OF(timer, struct listeners, retry));
}

static bool out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void open_edge(const struct listener *listener, struct edge *edge)
{
	if (listener->tls != NULL)
		edge_open_tls(edge, listener->tls);
	else
		h2o_socket_read_start(edge->sock, on_first_bytes);
}

/* Somebody waits, and there is no place for him, or no descriptor. */
static void make_room(struct listeners *listeners)
{
	struct edge_host *host = listeners->host;
	if (host->leaving == 0 && !edge_host_evict(host))
		net_timer_set(host->loop, &listeners->retry, net_now(host->loop) + RETRY_AFTER);
}

static void on_acceptable(h2o_socket_t *acceptor, const char *err)
{
	struct listener *listener = acceptor->data;
	struct listeners *listeners = listener->all;
	struct edge_host *host = listeners->host;
	(void)err; /* accept tells */
	if (host->count >= listeners->connections_max)
		make_room(listeners);
	for (int i = 0; i < ACCEPT_BATCH && host->count < listeners->connections_max; i++) {
		h2o_socket_t *sock = h2o_evloop_socket_accept(acceptor);
		if (sock == NULL && errno == ECONNABORTED)
			continue;
		if (sock == NULL && out_of_resources(errno)) {
			make_room(listeners);
			net_timer_set(host->loop, &listeners->retry,
				      net_now(host->loop) + RETRY_AFTER);
		}
		if (sock == NULL)
			break;
		struct edge *edge = edge_new(host, sock);
		if (edge == NULL)
			continue;
		edge->many_callers = listener->trusted_proxy;
		edge->loopback = listener->loopback;
		edge->listener = (uint32_t)(listener - listeners->at);
		open_edge(listener, edge);
	}
	listeners_refresh(listeners);
}

static bool is_loopback(int fd)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr plain;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .any.ss_family = AF_UNSPEC };
	socklen_t len = sizeof(at);

	must(getsockname(fd, &at.plain, &len) == 0);
	switch (at.any.ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(at.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&at.v6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&at.v6.sin6_addr) &&
			at.v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	default:
		return false;
	}
}

void listeners_init(struct listeners *listeners, struct edge_host *host,
		    const struct http_listener *from, size_t count)
{
	must(count <= LISTENERS_MAX && listeners->connections_max > 0);
	listeners->host = host;
	listeners->retry.fire = on_retry;
	for (size_t i = 0; i < count; i++) {
		struct listener *listener = &listeners->at[listeners->count++];
		listener->all = listeners;
		listener->tls = tls_server_share(from[i].tls);
		listener->trusted_proxy = from[i].trusted_proxy;
		listener->loopback = is_loopback(from[i].fd);
		listener->sock = h2o_evloop_socket_create(net_h2o_loop(host->loop), from[i].fd,
							  H2O_SOCKET_FLAG_DONT_READ);
		listener->sock->data = listener;
	}
	listeners_refresh(listeners);
}

void listeners_set_tls(struct listeners *listeners, size_t n, SSL_CTX *tls)
{
	must(n < listeners->count && (tls != NULL) == (listeners->at[n].tls != NULL));
	SSL_CTX *before = listeners->at[n].tls;
	listeners->at[n].tls = tls_server_share(tls);
	tls_server_free(before);
}

void listeners_stop(struct listeners *listeners)
{
	listeners->stopped = true;
	net_timer_stop(listeners->host->loop, &listeners->retry);
	listeners_refresh(listeners);
}
