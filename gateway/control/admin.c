#include "gateway/control/admin.h"

#include "codec/base/slice.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

/* Its clients are the operator's own, and few; what one may cost is bounded all the same. */
enum { CLIENT_PATIENCE_S = 10, HEADERS_MAX = 16384, BODY_MAX = 65536 };

struct admin {
	struct admin_hooks hooks;
	struct evhttp *tcp, *local; /* one each, so that a request knows where it came in */
};

/* ---- the table -------------------------------------------------------------------------------- */

#define TEXT "text/plain; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

#define JSON "application/json"

static const struct page {
	const char *path;
	const char *tail; /* NULL: that path alone; else a tenant's id stands between the two */
	bool changes;     /* POST; else GET and HEAD */
	bool near;        /* only from this machine */
	bool open;        /* for browsers, too */
	const char *type;
	size_t hook; /* offset in struct admin_hooks: admin_tenant_fn where there is a tail */
} pages[] = {
	{ "/healthz", NULL, false, false, true, TEXT, offsetof(struct admin_hooks, healthz) },
	{ "/readyz", NULL, false, false, true, TEXT, offsetof(struct admin_hooks, readyz) },
	{ "/metrics", NULL, false, false, false, PROMETHEUS,
	  offsetof(struct admin_hooks, metrics) },
	{ "/lessons", NULL, false, true, false, JSON, offsetof(struct admin_hooks, lessons) },
	{ "/reload", NULL, true, true, false, TEXT, offsetof(struct admin_hooks, reload) },
	{ "/tenants/", "", false, true, false, JSON, offsetof(struct admin_hooks, tenant) },
	{ "/tenants/", "/budget", true, true, false, JSON, offsetof(struct admin_hooks, budget) },
};

static const char not_found[] =
	"There is GET /healthz, GET /readyz, GET /metrics, GET /lessons, POST /reload, GET "
	"/tenants/ID "
	"and POST /tenants/ID/budget. Sampling is on the public listeners.\n";

/* *id: what stands between path and tail, still percent-encoded, so that it holds no slash. */
static bool is_page(const struct page *page, struct slice path, struct slice *id)
{
	const struct slice tail = slice_str(page->tail);
	const size_t begin = strlen(page->path);

	if (page->tail == NULL)
		return slice_eq(path, slice_str(page->path));
	if (!slice_starts(path, slice_str(page->path)) || path.len <= begin + tail.len)
		return false;
	*id = slice_of(path.at + begin, path.len - begin - tail.len);
	return slice_eq(slice_of(id->at + id->len, tail.len), tail) &&
	       memchr(id->at, '/', id->len) == NULL;
}

static const struct page *find_page(const char *path, struct slice *id)
{
	for (size_t i = 0; path != NULL && i < COUNT_OF(pages); i++)
		if (is_page(&pages[i], slice_str(path), id))
			return &pages[i];
	return NULL;
}

static bool method_fits(const struct page *page, enum evhttp_cmd_type method)
{
	if (page->changes)
		return method == EVHTTP_REQ_POST;
	return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
}

static bool is_loopback(const char *peer)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (peer != NULL && inet_pton(AF_INET, peer, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (peer == NULL || inet_pton(AF_INET6, peer, &v6) != 1)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

static bool is_near(struct evhttp_request *request, bool local)
{
	char *peer = NULL;
	ev_uint16_t port;

	if (local)
		return true;
	evhttp_connection_get_peer(evhttp_request_get_connection(request), &peer, &port);
	return is_loopback(peer);
}

/* Whether a browser can have been sent here by a page of somebody else's: it says where that page is from, and
 * a name that was made to mean this machine is still a name. Whoever speaks HTTP/1.0 need not name a host. */
static bool is_browsers(const struct admin *admin, struct evhttp_request *request, bool local)
{
	const char *host = evhttp_request_get_host(request);
	struct in_addr v4;

	if (evhttp_find_header(evhttp_request_get_input_headers(request), "Origin") != NULL)
		return true;
	return !local && host != NULL && host[0] != '[' && inet_pton(AF_INET, host, &v4) != 1 &&
	       !slice_eq_nocase(slice_str(host), SLICE("localhost")) &&
	       !admin->hooks.is_name(admin->hooks.arg, slice_str(host));
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void set_header(struct evhttp_request *request, const char *name, const char *value)
{
	/* Fails for want of memory only: the answer then goes without it. */
	(void)evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void reply(struct evhttp_request *request, int status, const char *type, const char *text,
		  size_t len)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(request);

	set_header(request, "Content-Type", type);
	set_header(request, "Cache-Control", "no-store");
	if (len > 0 && evbuffer_add(body, text, len) != 0)
		status = 500;
	evhttp_send_reply(request, status, NULL, NULL);
}

static void refuse(struct evhttp_request *request, int status, const char *text)
{
	reply(request, status, TEXT, text, strlen(text));
}

static int ask_tenant(const struct admin *admin, struct evhttp_request *request,
		      const struct page *page, struct slice raw_id, FILE *out)
{
	admin_tenant_fn *hook;
	struct evbuffer *input = evhttp_request_get_input_buffer(request);
	const size_t body_len = evbuffer_get_length(input);
	const char *body = (const char *)evbuffer_pullup(input, -1);
	char *encoded = strndup(raw_id.at, raw_id.len), *id = NULL;
	size_t id_len = 0;
	int status = 500;

	memcpy(&hook, (const char *)&admin->hooks + page->hook, sizeof(hook));
	if (encoded != NULL)
		id = evhttp_uridecode(encoded, 0, &id_len);
	if (id != NULL)
		status = hook(admin->hooks.arg, slice_of(id, id_len),
			      slice_of(body == NULL ? "" : body, body_len), out);
	free(id);
	free(encoded);
	return status;
}

static int ask_page(const struct admin *admin, const struct page *page, FILE *out)
{
	admin_answer_fn *hook;

	memcpy(&hook, (const char *)&admin->hooks + page->hook, sizeof(hook));
	return hook(admin->hooks.arg, out);
}

static void answer(const struct admin *admin, struct evhttp_request *request,
		   const struct page *page, struct slice id)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL) {
		refuse(request, 500, "out of memory\n");
		return;
	}
	int status = page->tail == NULL ? ask_page(admin, page, out)
					: ask_tenant(admin, request, page, id, out);
	const char *type = page->tail != NULL && status != 200 ? TEXT : page->type;
	if (fclose(out) == 0)
		reply(request, status, type, text, len);
	else
		refuse(request, 500, "out of memory\n");
	free(text);
}

static void on_request(struct evhttp_request *request, const struct admin *admin, bool local)
{
	struct slice id = { NULL, 0 };
	const struct page *page =
		find_page(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request)), &id);

	if (page == NULL) {
		refuse(request, 404, not_found);
	} else if (!method_fits(page, evhttp_request_get_command(request))) {
		set_header(request, "Allow", page->changes ? "POST" : "GET, HEAD");
		refuse(request, 405, page->changes ? "Use POST here.\n" : "Use GET here.\n");
	} else if (page->near && !is_near(request, local)) {
		refuse(request, 403,
		       "Only from this machine: over the admin socket or a loopback address.\n");
	} else if (!page->open && is_browsers(admin, request, local)) {
		refuse(request, 403,
		       "Not for browsers: without an Origin header, and with localhost, an IP "
		       "address or one of admin.names as the host.\n");
	} else {
		answer(admin, request, page, id);
	}
}

static void on_tcp(struct evhttp_request *request, void *arg)
{
	on_request(request, arg, false);
}

static void on_local(struct evhttp_request *request, void *arg)
{
	on_request(request, arg, true);
}

/* ---- listening -------------------------------------------------------------------------------- */

static void on_rest_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)evconnlistener_enable(arg);
}

/* Out of descriptors, mostly: the connection stays in the queue, and asking again at once would spin. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	const struct timeval rest = { .tv_usec = 200000 };

	(void)arg;
	(void)evconnlistener_disable(listener);
	if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_rest_over,
			    listener, &rest) != 0)
		(void)evconnlistener_enable(listener);
}

/* The next server process listens on the same sockets, so they are not closed with this one. */
static bool accept_on(struct event_base *base, struct evhttp *http, int fd)
{
	struct evconnlistener *listener = evconnlistener_new(
		base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 0, fd);

	if (listener == NULL)
		return false;
	evconnlistener_set_error_cb(listener, on_accept_error);
	if (evhttp_bind_listener(http, listener) != NULL)
		return true;
	evconnlistener_free(listener);
	return false;
}

static struct evhttp *serve(struct event_base *base, struct admin *admin, int fd,
			    void (*handle)(struct evhttp_request *, void *))
{
	struct evhttp *http = evhttp_new(base);

	if (http == NULL)
		return NULL;
	/* Every method comes to us, so that a wrong one is told what is right. */
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
						 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
						 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
						 EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_timeout(http, CLIENT_PATIENCE_S);
	evhttp_set_max_headers_size(http, HEADERS_MAX);
	evhttp_set_max_body_size(http, BODY_MAX);
	evhttp_set_gencb(http, handle, admin);
	if (accept_on(base, http, fd))
		return http;
	evhttp_free(http);
	return NULL;
}

struct admin *admin_new(struct event_base *base, const struct admin_hooks *hooks, int tcp_fd,
			int unix_fd)
{
	struct admin *admin = calloc(1, sizeof(*admin));

	if (admin == NULL)
		return NULL;
	admin->hooks = *hooks;
	if (tcp_fd >= 0)
		admin->tcp = serve(base, admin, tcp_fd, on_tcp);
	if (unix_fd >= 0)
		admin->local = serve(base, admin, unix_fd, on_local);
	bool served = (tcp_fd < 0 || admin->tcp != NULL) && (unix_fd < 0 || admin->local != NULL);
	return served ? admin : NULL; /* the process ends without it: nothing to take apart */
}
