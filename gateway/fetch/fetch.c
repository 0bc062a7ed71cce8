#include "gateway/fetch/fetch.h"

#include "codec/base/must.h"
#include "gateway/tls/tls.h"
#include "gateway/upstream/upstream_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <stdlib.h>

enum { FETCH_MAGIC = 0x46455443, HEAD_MAX = 32 << 10, PROBLEM_MAX = 256, TYPE_MAX = 128 };

struct fetch {
	uint32_t magic;
	struct fetch_ask ask;
	uint32_t next; /* address to be tried */
	bool connected;
	struct bufferevent *stream; /* NULL between two addresses */
	struct event *timer;        /* to begin, then the deadline */
	struct event *patience;     /* with an address that is silent, until it is connected */
	bool begun;
	uint32_t status; /* of an answer that is given in pieces */
	char type[TYPE_MAX];
	struct upstream_http http;
	char problem[PROBLEM_MAX];
};

static struct timeval timeval_of(nsec_t wait)
{
	return (struct timeval){ .tv_sec = (time_t)(wait / SEC),
				 .tv_usec = (suseconds_t)(wait % SEC / USEC) };
}

/* ---- the end --------------------------------------------------------------------------------- */

static void fetch_free(struct fetch *fetch)
{
	if (fetch->stream != NULL)
		bufferevent_free(fetch->stream);
	if (fetch->timer != NULL)
		event_free(fetch->timer);
	if (fetch->patience != NULL)
		event_free(fetch->patience);
	fetch->magic = 0;
	free(fetch);
}

static void finish(struct fetch *fetch, const char *problem, struct slice body)
{
	must_obj(fetch, FETCH_MAGIC);
	fetch->ask.done(fetch->ask.arg, problem, body);
	fetch_free(fetch);
}

static void fail(struct fetch *fetch, const char *problem)
{
	finish(fetch, problem, slice_of(NULL, 0));
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void judge(struct fetch *fetch, const char *bytes)
{
	struct provider_answer answer;

	if (fetch->ask.piece != NULL) {
		finish(fetch, NULL, slice_of(NULL, 0));
		return;
	}
	upstream_http_answer(&fetch->http, bytes, &answer);
	if (answer.status == 200 || (fetch->ask.any_success && answer.status / 100 == 2)) {
		finish(fetch, NULL, answer.body);
		return;
	}
	(void)snprintf(fetch->problem, sizeof(fetch->problem), "it answered with status %u%s",
		       answer.status,
		       answer.status >= 300 && answer.status < 400
			       ? ", and redirects are not followed"
			       : "");
	fail(fetch, fetch->problem);
}

/* Its spans end with the first piece that is taken. */
static void keep_head(struct fetch *fetch, const char *bytes)
{
	struct provider_answer answer;

	upstream_http_answer(&fetch->http, bytes, &answer);
	const struct slice type = answer.headers.content_type;
	fetch->status = answer.status;
	if (type.len < sizeof(fetch->type)) {
		if (type.len != 0)
			(void)memcpy(fetch->type, type.at, type.len);
		fetch->type[type.len] = '\0';
	}
	fetch->ask.piece(fetch->ask.arg, fetch->status, slice_str(fetch->type), slice_of("", 0));
}

/* The same as upstream_http_read, for an answer that is given in pieces. */
static enum upstream_http_verdict read_pieces(struct fetch *fetch, struct evbuffer *input,
					      char *bytes, size_t len)
{
	struct upstream_http *http = &fetch->http;
	enum upstream_http_verdict verdict = upstream_http_read(http, bytes, len);
	struct slice piece;

	if (http->waits) {
		keep_head(fetch, bytes);
		upstream_http_go_on(http, true);
		verdict = upstream_http_read(http, bytes, len);
	} else if (verdict == UPSTREAM_HTTP_DONE && fetch->status == 0) { /* without a body */
		keep_head(fetch, bytes);
	}
	if (verdict == UPSTREAM_HTTP_REFUSED || fetch->status == 0)
		return verdict;
	const size_t used = upstream_http_take(http, bytes, &piece);
	if (piece.len != 0)
		fetch->ask.piece(fetch->ask.arg, fetch->status, slice_str(fetch->type), piece);
	(void)evbuffer_drain(input, used);
	return verdict;
}

/* The connection has ended, and all that it had brought was given before. */
static void end_without_bytes(struct fetch *fetch)
{
	if (fetch->status == 0)
		fail(fetch, "the connection was closed without an answer");
	else if (upstream_http_end(&fetch->http) == UPSTREAM_HTTP_DONE)
		judge(fetch, NULL);
	else
		fail(fetch, "its answer was cut short");
}

/* Goes on with all that has come; `ended`: nothing more will. The fetch may be gone afterwards. */
static void read_on(struct fetch *fetch, bool ended)
{
	struct evbuffer *input = bufferevent_get_input(fetch->stream);
	const size_t len = evbuffer_get_length(input);
	char *bytes = (char *)evbuffer_pullup(input, -1);

	if (bytes == NULL) { /* of no bytes there is no run */
		if (len != 0)
			fail(fetch, "there is no memory for it");
		else if (ended)
			end_without_bytes(fetch);
		return;
	}
	enum upstream_http_verdict verdict = fetch->ask.piece != NULL
						     ? read_pieces(fetch, input, bytes, len)
						     : upstream_http_read(&fetch->http, bytes, len);
	if (verdict == UPSTREAM_HTTP_MORE && ended)
		verdict = upstream_http_end(&fetch->http);
	switch (verdict) {
	case UPSTREAM_HTTP_DONE:
		judge(fetch, bytes);
		return;
	case UPSTREAM_HTTP_REFUSED:
		(void)snprintf(fetch->problem, sizeof(fetch->problem), "its answer is no good: %s",
			       fetch->http.problem);
		fail(fetch, fetch->problem);
		return;
	case UPSTREAM_HTTP_MORE:
		if (ended)
			fail(fetch, "its answer was cut short");
	}
}

static void on_read(struct bufferevent *stream, void *arg)
{
	(void)stream;
	read_on(arg, false);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void try_addresses(struct fetch *fetch);

static void say_why(struct fetch *fetch)
{
	const int error = EVUTIL_SOCKET_ERROR();
	struct ssl_st *ssl =
		fetch->ask.tls == NULL ? NULL : bufferevent_openssl_get_ssl(fetch->stream);
	const unsigned long code = ssl == NULL ? 0 : bufferevent_get_openssl_error(fetch->stream);

	if (code != 0)
		tls_client_why(ssl, code, fetch->problem, sizeof(fetch->problem));
	else
		(void)snprintf(fetch->problem, sizeof(fetch->problem), "%s",
			       error == 0 ? "the connection was closed"
					  : evutil_socket_error_to_string(error));
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
	struct fetch *fetch = arg;

	must_obj(fetch, FETCH_MAGIC);
	if ((what & BEV_EVENT_CONNECTED) != 0) {
		fetch->connected = true;
		(void)event_del(fetch->patience);
		if (fetch->ask.silence != 0) {
			const struct timeval silence = timeval_of(fetch->ask.silence);
			(void)bufferevent_set_timeouts(stream, &silence, NULL);
		}
		return;
	}
	if ((what & BEV_EVENT_TIMEOUT) != 0) {
		fail(fetch, "it was silent for too long");
		return;
	}
	if ((what & BEV_EVENT_EOF) != 0 && fetch->connected) {
		read_on(fetch, true);
		return;
	}
	say_why(fetch);
	bufferevent_free(stream);
	fetch->stream = NULL;
	if (fetch->connected)
		fail(fetch, fetch->problem);
	else
		try_addresses(fetch);
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
	struct fetch *fetch = arg;

	(void)fd;
	(void)what;
	must_obj(fetch, FETCH_MAGIC);
	must(!fetch->connected);
	bufferevent_free(fetch->stream);
	fetch->stream = NULL;
	(void)snprintf(fetch->problem, sizeof(fetch->problem), "it does not answer");
	try_addresses(fetch);
}

static struct bufferevent *new_stream(const struct fetch_ask *ask)
{
	if (ask->tls == NULL)
		return bufferevent_socket_new(ask->base, -1, BEV_OPT_CLOSE_ON_FREE);
	struct ssl_st *ssl = tls_client_connection(ask->tls, ask->host);
	if (ssl == NULL)
		return NULL;
	/* The stream owns `ssl` from here on, even if it cannot be made. */
	return bufferevent_openssl_socket_new(ask->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
					      BEV_OPT_CLOSE_ON_FREE);
}

static bool put_request(struct fetch *fetch)
{
	const struct fetch_ask *ask = &fetch->ask;
	struct evbuffer *output = bufferevent_get_output(fetch->stream);
	const bool post = !slice_absent(ask->body);

	if (evbuffer_add_printf(output,
				"%s %.*s HTTP/1.1\r\nHost: %.*s\r\n"
				"Accept: %s\r\n"
				"User-Agent: sluice\r\nConnection: close\r\n%.*s",
				post ? "POST" : "GET", (int)ask->path.len, ask->path.at,
				(int)ask->authority.len, ask->authority.at, ask->accept,
				(int)ask->head.len, ask->head.at) <= 0)
		return false;
	if (post && evbuffer_add_printf(output, "Content-Length: %zu\r\n", ask->body.len) <= 0)
		return false;
	return evbuffer_add(output, "\r\n", 2) == 0 &&
	       (!post || evbuffer_add(output, ask->body.at, ask->body.len) == 0);
}

/* Begins at the next address; false when that failed at once. */
static bool try_next(struct fetch *fetch)
{
	const struct upstream_address *address = &fetch->ask.addresses[fetch->next++];
	const struct upstream_http_limits limits = { .head_max = HEAD_MAX,
						     .body_max = fetch->ask.body_max };

	upstream_http_init(&fetch->http, &limits);
	if (fetch->ask.piece != NULL)
		upstream_http_ask(&fetch->http);
	fetch->stream = new_stream(&fetch->ask);
	if (fetch->stream == NULL) {
		(void)snprintf(fetch->problem, sizeof(fetch->problem), "there is no memory for it");
		return false;
	}
	bufferevent_setcb(fetch->stream, on_read, NULL, on_event, fetch);
	if (put_request(fetch) && bufferevent_enable(fetch->stream, EV_READ | EV_WRITE) == 0 &&
	    bufferevent_socket_connect(fetch->stream, (const struct sockaddr *)&address->address,
				       (int)address->len) == 0)
		return true;
	(void)snprintf(fetch->problem, sizeof(fetch->problem), "%s", strerror(errno));
	bufferevent_free(fetch->stream);
	fetch->stream = NULL;
	return false;
}

/* The fetch is gone afterwards if none is left. The last one has all the time that there is. */
static void try_addresses(struct fetch *fetch)
{
	const nsec_t share = fetch->ask.deadline / fetch->ask.address_count;
	const nsec_t most = fetch->ask.patience;
	const struct timeval patience = timeval_of(most != 0 && most < share ? most : share);

	(void)event_del(fetch->patience);
	while (fetch->next < fetch->ask.address_count) {
		if (!try_next(fetch))
			continue;
		if (fetch->next < fetch->ask.address_count || most != 0)
			(void)event_add(fetch->patience, &patience);
		return;
	}
	fail(fetch, fetch->problem);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct fetch *fetch = arg;
	const struct timeval left = timeval_of(fetch->ask.deadline);

	(void)fd;
	(void)what;
	must_obj(fetch, FETCH_MAGIC);
	if (fetch->begun) {
		fail(fetch, "it took too long");
		return;
	}
	fetch->begun = true;
	if (event_add(fetch->timer, &left) != 0)
		fail(fetch, "there is no memory for it");
	else
		try_addresses(fetch);
}

struct fetch *fetch_start(const struct fetch_ask *ask)
{
	static const struct timeval at_once = { 0, 0 };
	struct fetch *fetch = calloc(1, sizeof(*fetch));

	must(ask->address_count > 0);
	if (fetch == NULL)
		return NULL;
	fetch->magic = FETCH_MAGIC;
	fetch->ask = *ask;
	fetch->timer = event_new(ask->base, -1, 0, on_timer, fetch);
	fetch->patience = event_new(ask->base, -1, 0, on_silence, fetch);
	if (fetch->timer != NULL && fetch->patience != NULL &&
	    event_add(fetch->timer, &at_once) == 0)
		return fetch;
	fetch_free(fetch);
	return NULL;
}

void fetch_cancel(struct fetch **fetch)
{
	if (*fetch != NULL)
		fetch_free(*fetch);
	*fetch = NULL;
}
