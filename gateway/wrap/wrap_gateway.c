#include "gateway/wrap/wrap_gateway.h"

#include "codec/base/must.h"
#include "codec/sse/sse.h"
#include "gateway/fetch/fetch.h"
#include "gateway/settings/settings_url.h"
#include "gateway/tls/tls.h"
#include "gateway/wrap/wrap_message.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>

enum { ADDRESSES_MAX = 8, ANSWER_MAX = 64 << 20, HOST_MAX = 255 };
#define CONNECT_TIME (5 * SEC)
#define TELL_IN_TIME (1 * SEC) /* the gateway's own deadline comes so much before ours */

struct ask {
	struct ask *next;
	struct wrap_gateway *gateway;
	uint64_t key;
	bool progress, answered, stream;
	nsec_t began;
	struct event *start; /* until it begins */
	struct evdns_getaddrinfo_request *lookup;
	struct upstream_address addresses[ADDRESSES_MAX];
	uint32_t address_count;
	struct fetch *fetch;
	struct wrap_text head, body; /* of the request */
	uint32_t status;
	struct wrap_text answer; /* a JSON body */
	struct sse sse;
	char *buffer; /* of sse */
	size_t size;
};

struct wrap_gateway {
	struct event_base *base;
	struct evdns_base *dns; /* NULL: the address is known */
	struct wrap_session *session;
	struct ssl_ctx_st *tls; /* NULL: clear text */
	char host[HOST_MAX + 1], port[8], shown[256];
	struct wrap_text authority, path, key;
	struct upstream_address address; /* without dns */
	bool away;                       /* the operator was told */
	struct ask *asks;
};

static nsec_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

/* ---- the gateway ----------------------------------------------------------------------------- */

static bool set_unix(struct wrap_gateway *gateway, const char *path)
{
	struct sockaddr_un *address = (struct sockaddr_un *)(void *)&gateway->address.address;

	if (*path == '\0' || strlen(path) >= sizeof(address->sun_path))
		return false;
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, strlen(path) + 1);
	gateway->address.len = sizeof(*address);
	wrap_text_put(&gateway->authority, "localhost");
	return true;
}

/* True if the host is an address, so that there is nothing to look up. */
static bool set_ip(struct wrap_gateway *gateway, bool ipv6, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&gateway->address.address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&gateway->address.address;

	if (ipv6 && inet_pton(AF_INET6, gateway->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		gateway->address.len = sizeof(*v6);
		return true;
	}
	if (ipv6 || inet_pton(AF_INET, gateway->host, &v4->sin_addr) != 1)
		return false;
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	gateway->address.len = sizeof(*v4);
	return true;
}

static bool begin_dns(struct wrap_gateway *gateway)
{
	gateway->dns = evdns_base_new(gateway->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (gateway->dns == NULL)
		return false;
	/* Without a resolv.conf there is a preset. */
	(void)evdns_base_resolv_conf_parse(gateway->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	return true;
}

static bool set_url(struct wrap_gateway *gateway, const char *url, char *problem, size_t room)
{
	struct url_parts parts;
	const char *wrong = url_parse(slice_str(url), &parts);

	if (wrong == NULL && parts.host.len > HOST_MAX)
		wrong = "has a host that is too long";
	if (wrong != NULL) {
		(void)snprintf(problem, room, "--gateway %s", wrong);
		return false;
	}
	(void)memcpy(gateway->host, parts.host.at, parts.host.len);
	(void)snprintf(gateway->port, sizeof(gateway->port), "%u", parts.port);
	wrap_text_print(&gateway->authority, parts.ipv6 ? "[%s]:%s" : "%s:%s", gateway->host,
			gateway->port);
	wrap_text_add(&gateway->path, parts.path);
	if (!set_ip(gateway, parts.ipv6, parts.port) && !begin_dns(gateway)) {
		(void)snprintf(problem, room, "there is no memory for DNS");
		return false;
	}
	if (!parts.tls)
		return true;
	gateway->tls = tls_client_new(gateway->host, slice_of(NULL, 0), problem, room);
	return gateway->tls != NULL;
}

struct wrap_gateway *wrap_gateway_new(struct event_base *base, const char *url, const char *key,
				      char *problem, size_t room)
{
	static const char scheme[] = "unix:";
	static const struct slice path = SLICE_INIT("/v1/sampling");
	struct wrap_gateway *gateway = wrap_alloc(sizeof(*gateway));
	bool good;

	gateway->base = base;
	(void)snprintf(gateway->shown, sizeof(gateway->shown), "%s", url);
	wrap_text_put(&gateway->key, key);
	if (strncmp(url, scheme, sizeof(scheme) - 1) == 0) {
		good = set_unix(gateway, url + sizeof(scheme) - 1);
		(void)snprintf(problem, room,
			       "--gateway unix:PATH wants a path of up to 107 bytes");
	} else {
		good = set_url(gateway, url, problem, room);
	}
	if (!good) {
		wrap_gateway_free(gateway);
		return NULL;
	}
	const struct slice so_far = wrap_text_slice(&gateway->path);
	if (so_far.len < path.len ||
	    !slice_eq(slice_of(so_far.at + so_far.len - path.len, path.len), path))
		wrap_text_add(&gateway->path, path);
	return gateway;
}

void wrap_gateway_serve(struct wrap_gateway *gateway, struct wrap_session *session)
{
	gateway->session = session;
}

/* ---- asks ------------------------------------------------------------------------------------ */

static void ask_free(struct ask *ask)
{
	struct ask **link = &ask->gateway->asks;

	while (*link != ask)
		link = &(*link)->next;
	*link = ask->next;
	fetch_cancel(&ask->fetch);
	if (ask->start != NULL)
		event_free(ask->start);
	wrap_text_free(&ask->head);
	wrap_text_free(&ask->body);
	wrap_text_free(&ask->answer);
	free(ask->buffer);
	free(ask);
}

/* A lookup ends in its callback only. */
static void ask_drop(struct ask *ask)
{
	if (ask->lookup == NULL) {
		ask_free(ask);
	} else {
		ask->answered = true;
		evdns_getaddrinfo_cancel(ask->lookup);
	}
}

void wrap_gateway_free(struct wrap_gateway *gateway)
{
	if (gateway == NULL)
		return;
	for (struct ask *ask = gateway->asks, *next; ask != NULL; ask = next) {
		next = ask->next;
		ask->lookup = NULL; /* evdns_base_free calls nobody back */
		ask_free(ask);
	}
	if (gateway->dns != NULL)
		evdns_base_free(gateway->dns, 0);
	tls_client_free(gateway->tls);
	wrap_text_free(&gateway->authority);
	wrap_text_free(&gateway->path);
	wrap_text_free(&gateway->key);
	free(gateway);
}

static void answer(struct ask *ask, bool good, struct slice json)
{
	if (ask->answered)
		return;
	ask->answered = true;
	ask->gateway->away = false;
	wrap_session_answer(ask->gateway->session, ask->key, good, json, now_ns());
}

/* The gateway could not be asked, or has not answered as one. */
static void fail(struct ask *ask, int code, const char *reason, const char *text,
		 const char *detail)
{
	struct wrap_gateway *gateway = ask->gateway;
	struct wrap_text error = { 0 }, more = { 0 };

	if (ask->answered)
		return;
	if (!gateway->away)
		(void)fprintf(stderr, "sluice wrap: %s %s: %s\n", text, gateway->shown, detail);
	gateway->away = true;
	ask->answered = true;
	wrap_text_put(&more, "\"gateway\":");
	wrap_text_add_string(&more, gateway->shown);
	wrap_text_put(&more, ",\"detail\":");
	wrap_text_add_string(&more, detail);
	wrap_text_add(&more, slice_of("", 1));
	wrap_message_error(&error, code, text, reason, more.at);
	wrap_session_answer(gateway->session, ask->key, false, wrap_text_slice(&error), now_ns());
	wrap_text_free(&error);
	wrap_text_free(&more);
}

/* A JSON-RPC message of the gateway's; false: it is none. */
static bool take_message(struct ask *ask, struct slice json)
{
	struct mcp_message message;
	struct slice object = { NULL, 0 };

	if (!json_loose_whole(json, &object) || json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return false;
	mcp_message_read(object, &message);
	if (message.kind == MCP_NOTIFICATION) {
		if (json_loose_is(message.method, "notifications/progress") && !ask->answered)
			wrap_session_progress(ask->gateway->session, ask->key, object);
		return true;
	}
	const bool good = json_loose_kind(message.result) == JSON_LOOSE_OBJECT;
	if (!good && json_loose_kind(message.error_code) != JSON_LOOSE_NUMBER)
		return false;
	answer(ask, good, good ? message.result : message.error);
	return true;
}

static void take_events(struct ask *ask, struct slice piece)
{
	struct sse_event event;
	enum sse_got got;

	sse_feed(&ask->sse, piece);
	while ((got = sse_next(&ask->sse, &event)) != SSE_NOTHING) {
		if (got == SSE_EVENT) {
			(void)take_message(ask, event.data);
		} else if (ask->size >= ANSWER_MAX) {
			sse_pass(&ask->sse, &event);
		} else {
			char *old = ask->buffer;
			ask->size *= 2;
			ask->buffer = wrap_alloc(ask->size);
			sse_move(&ask->sse, ask->buffer, ask->size);
			free(old);
		}
	}
}

static void on_piece(void *arg, uint32_t status, struct slice type, struct slice piece)
{
	struct ask *ask = arg;
	const struct slice events = SLICE("text/event-stream");

	if (ask->status == 0 && type.len >= events.len &&
	    slice_eq_nocase(slice_of(type.at, events.len), events)) {
		ask->stream = true;
		ask->size = SSE_EVENT_ROOM;
		ask->buffer = wrap_alloc(ask->size);
		sse_init(&ask->sse, ask->buffer, ask->size);
	}
	ask->status = status;
	if (piece.len == 0)
		return;
	if (ask->stream)
		take_events(ask, piece);
	else if (ask->answer.len + piece.len <= ANSWER_MAX)
		wrap_text_add(&ask->answer, piece);
}

static void on_done(void *arg, const char *problem, struct slice body)
{
	struct ask *ask = arg;
	char detail[64];

	(void)body;
	ask->fetch = NULL;
	(void)snprintf(detail, sizeof(detail), "status %u without an answer to the sampling",
		       ask->status);
	if (problem != NULL && now_ns() - ask->began >= WRAP_ASK_TIME)
		fail(ask, -32001, "deadline", "no answer in time from the gateway at", problem);
	else if (problem != NULL)
		fail(ask, -32603, "gateway_unavailable", "cannot reach the gateway at", problem);
	else if (ask->stream || !take_message(ask, wrap_text_slice(&ask->answer)))
		fail(ask, -32603, "gateway_answer", "not answered by the gateway at", detail);
	ask_free(ask);
}

/* ---- its way to the gateway ------------------------------------------------------------------ */

static void connect_to(struct ask *ask)
{
	struct wrap_gateway *gateway = ask->gateway;
	const struct fetch_ask wanted = {
		.base = gateway->base,
		.host = gateway->host,
		.authority = wrap_text_slice(&gateway->authority),
		.path = wrap_text_slice(&gateway->path),
		.accept =
			ask->progress ? "application/json, text/event-stream" : "application/json",
		.head = wrap_text_slice(&ask->head),
		.body = wrap_text_slice(&ask->body),
		.tls = gateway->tls,
		.addresses = ask->addresses,
		.address_count = ask->address_count,
		.deadline = ask->progress ? WRAP_PROGRESS_TIME : WRAP_ASK_TIME,
		.silence = ask->progress ? WRAP_ASK_TIME : 0,
		.patience = CONNECT_TIME,
		.body_max = ANSWER_MAX,
		.piece = on_piece,
		.done = on_done,
		.arg = ask,
	};

	ask->fetch = fetch_start(&wanted);
	must(ask->fetch != NULL);
}

static void on_addresses(int error, struct evutil_addrinfo *found, void *arg)
{
	struct ask *ask = arg;

	ask->lookup = NULL;
	for (struct evutil_addrinfo *at = found; at != NULL && ask->address_count < ADDRESSES_MAX;
	     at = at->ai_next) {
		struct upstream_address *to = &ask->addresses[ask->address_count++];
		(void)memcpy(&to->address, at->ai_addr, at->ai_addrlen);
		to->len = at->ai_addrlen;
	}
	if (found != NULL)
		evutil_freeaddrinfo(found);
	if (ask->answered) { /* it is not wanted any more */
		ask_free(ask);
	} else if (ask->address_count != 0) {
		connect_to(ask);
	} else {
		fail(ask, -32603, "gateway_unavailable", "cannot find the gateway at",
		     evutil_gai_strerror(error));
		ask_free(ask);
	}
}

/* From the loop: an ask is never answered from inside of wrap_gateway_ask. */
static void on_start(evutil_socket_t fd, short what, void *arg)
{
	struct ask *ask = arg;
	struct wrap_gateway *gateway = ask->gateway;
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
					 .ai_socktype = SOCK_STREAM,
					 .ai_protocol = IPPROTO_TCP };

	(void)fd;
	(void)what;
	if (gateway->dns == NULL) {
		ask->addresses[0] = gateway->address;
		ask->address_count = 1;
		connect_to(ask);
		return;
	}
	struct evdns_getaddrinfo_request *lookup = evdns_getaddrinfo(
		gateway->dns, gateway->host, gateway->port, &hints, on_addresses, ask);
	if (lookup != NULL) /* else it is answered, and may be gone */
		ask->lookup = lookup;
}

static void put_request(struct ask *ask, const struct wrap_ask *wanted)
{
	wrap_text_print(&ask->head,
			"Content-Type: application/json\r\nMCP-Protocol-Version: %s\r\n",
			wanted->revision);
	if (ask->gateway->key.len != 0)
		wrap_text_print(&ask->head, "Authorization: Bearer %.*s\r\n",
				(int)ask->gateway->key.len, ask->gateway->key.at);
	if (!wanted->progress)
		wrap_text_print(&ask->head, "Sluice-Timeout: %llu\r\n",
				(unsigned long long)((WRAP_ASK_TIME - TELL_IN_TIME) / MSEC));
	wrap_text_print(&ask->body,
			"{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"sampling/createMessage\"",
			(unsigned long long)wanted->key);
	if (!slice_absent(wanted->params)) {
		wrap_text_put(&ask->body, ",\"params\":");
		wrap_text_add(&ask->body, wanted->params);
	}
	wrap_text_put(&ask->body, "}");
}

void wrap_gateway_ask(struct wrap_gateway *gateway, const struct wrap_ask *wanted)
{
	static const struct timeval at_once = { 0, 0 };
	struct ask *ask = wrap_alloc(sizeof(*ask));

	ask->gateway = gateway;
	ask->key = wanted->key;
	ask->progress = wanted->progress;
	ask->began = now_ns();
	ask->next = gateway->asks;
	gateway->asks = ask;
	put_request(ask, wanted);
	ask->start = event_new(gateway->base, -1, 0, on_start, ask);
	must(ask->start != NULL && event_add(ask->start, &at_once) == 0);
}

void wrap_gateway_cancel(struct wrap_gateway *gateway, uint64_t key)
{
	for (struct ask *ask = gateway->asks; ask != NULL; ask = ask->next)
		if (ask->key == key) {
			ask_drop(ask);
			return;
		}
}
