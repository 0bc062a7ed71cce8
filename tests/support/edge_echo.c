/* edge_echo.c - the edge by itself: net.h and http.h under a handler that needs no tenant.
 *
 * edge_echo [-p PORT] [-b BODY_MAX] [-c CONNECTIONS_MAX] [-t PATIENCE_MS] [-u UPSTREAM_PORT]
 *           [-U UNFINISHED_BYTES_MAX] [-m (a trusted proxy's requests)] [-w (on all addresses)]
 *           [-C CERT.pem -K KEY.pem [-A CLIENT_CA.pem] [-P TLS_PORT]]
 * prints "listening PORT", with a certificate also "tls PORT", and serves on loopback:
 *   /echo    the body, next tick          /b/N     N bytes after 20 ms
 *   /now/N   N bytes at once              /h/N     a header of N bytes after 20 ms
 *   /hang    no answer at all             /refuse  begin returns NULL
 *   /pieces/N  N pieces of 1,000 bytes, each as soon as the one before has left, then "end"
 *   /drip/N    N pieces of 10 bytes, each 20 ms after the one before has left, then "end"
 *   /open      one piece, and no end
 * /relay   the body goes to /echo at UPSTREAM_PORT over a kept connection, and comes back
 *   /early   401 to who waits for 100 Continue
 *   /who     the names of the client's certificate, "uri:... dns:..."
 *   /room    how many bytes of room the request has; all fill theirs, and want to find it so at their end
 *   /relay-head  as /relay, but when the answer is there status and fields leave, and nothing more
 *   and those of edge_echo_fronts.h
 *   /stats   what has happened so far, as text; not counted itself
 * SIGTERM: stops accepting, shuts down, ends when no connection is left. */
#include "codec/base/must.h"
#include "codec/base/slab.h"
#include "gateway/http/http.h"
#include "gateway/tls/tls.h"
#include "gateway/tls/tls_names.h"
#include "gateway/tls/tls_tickets.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS_MAX = 32768, FILL_MAX = 4 << 20, STATS_ROOM = 2048 };

#define ANSWER_AFTER (20 * MSEC)

struct relay {
	struct net_conn *conn;
	struct relay *next; /* idle ones */
	struct job *job;    /* NULL: idle */
	struct iovec out[2];
	char head[128];
};

struct job {
	struct http_exchange *exchange;
	struct slice path, body, room;
	const struct tls_names *names;
	struct net_timer timer;
	struct relay *relay;
	struct net_buffer *answer; /* of the upstream */
	struct http_field field;
	struct iovec out;
	char digits[24];
	bool counted, answered, drips, endless;
	size_t pieces, piece_bytes; /* still to come */
	enum { FRONT_NONE, FRONT_SILENT, FRONT_WAKES, FRONT_CUTS } front;
	bool rests;
	struct job *next; /* at rest */
};

static struct program {
	struct net_loop *loop;
	struct http_server *server;
	struct slab jobs;
	struct relay *idle;
	int upstream_port;
	bool draining;
	uint64_t begun, answered, cancelled, sent;
	char *fill;
	struct net_message stop;
	const char *cert, *key, *client_ca; /* files */
	bool trusted_proxy;
	in_addr_t address;
	struct job *resting;
} program = { .address = INADDR_LOOPBACK };

/* ---- answers ---- */
static void answer(struct job *job, int status, const char *bytes, size_t len)
{
	job->answered = true;
	program.answered += job->counted;
	job->out = (struct iovec){ (char *)(uintptr_t)bytes, len };
	http_answer(job->exchange, status, &job->field, slice_absent(job->field.name) ? 0 : 1,
		    &job->out, 1, len);
}

/* The number behind `prefix` in the path; false when it is another path. */
static bool number_after(struct slice path, const char *prefix, size_t *n)
{
	uint64_t value;
	struct slice start = slice_str(prefix);
	if (!slice_starts(path, start))
		return false;
	if (!slice_to_u64(slice_of(path.at + start.len, path.len - start.len), &value))
		return false;
	*n = value < FILL_MAX ? (size_t)value : FILL_MAX;
	return true;
}

#include "tests/support/edge_echo_fronts.h"

/* ---- answers in pieces ---- */
static const char the_end[] = "end";

static void next_piece(struct job *job)
{
	if (job->pieces-- != 0) {
		http_more(job->exchange, slice_of(program.fill, job->piece_bytes));
		return;
	}
	job->answered = true;
	program.answered++;
	job->out = (struct iovec){ (char *)(uintptr_t)the_end, sizeof(the_end) - 1 };
	http_end(job->exchange, &job->out, 1, job->out.iov_len);
}

static void begin_pieces(struct job *job, size_t count, size_t bytes)
{
	job->piece_bytes = bytes;
	job->pieces = count == 0 ? 0 : count - 1;
	http_begin_pieces(job->exchange, 200, &stream_field, 1, slice_of(program.fill, bytes));
}

static void on_ready(void *owner, void *request)
{
	struct job *job = request;

	(void)owner;
	if (job->front != FRONT_NONE)
		on_front_ready(job);
	else if (job->drips)
		net_timer_set(program.loop, &job->timer, net_now(program.loop) + ANSWER_AFTER);
	else if (!job->endless)
		next_piece(job);
}

static void on_answer_due(struct net_timer *timer)
{
	struct job *job = CONTAINER_OF(timer, struct job, timer);
	size_t n = 0;
	if (job->front != FRONT_NONE) {
		on_wake(job);
		return;
	}
	if (job->drips) {
		next_piece(job);
		return;
	}
	if (number_after(job->path, "/h/", &n)) {
		job->field = (struct http_field){ SLICE("x-big"), slice_of(program.fill, n) };
		n = 0;
	} else {
		must(number_after(job->path, "/b/", &n));
	}
	answer(job, 200, program.fill, n);
}

static void answer_stats(struct job *job)
{
	static char text[STATS_ROOM]; /* one asker at a time */
	const struct http_counters *counters = http_counters(program.server);
	int len = snprintf(text, sizeof(text),
			   "open=%" PRIu64 " accepted=%" PRIu64 " begun=%" PRIu64
			   " answered=%" PRIu64 " sent=%" PRIu64 " cancelled=%" PRIu64
			   " in_flight=%zu jobs=%zu foreign_reads=%" PRIu64 " tls_full=%" PRIu64
			   " tls_resumed=%" PRIu64 " tls_failed=%" PRIu64,
			   atomic_load(&counters->connections_open),
			   atomic_load(&counters->connections), program.begun, program.answered,
			   program.sent, program.cancelled, http_in_flight(program.server),
			   program.jobs.out, atomic_load(&counters->foreign_reads),
			   atomic_load(&counters->tls_full), atomic_load(&counters->tls_resumed),
			   atomic_load(&counters->tls_failed));
	for (size_t i = 0; http_guard_cause(i) != NULL; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " %s=%" PRIu64,
				http_guard_cause(i), atomic_load(&counters->guard_kills[i]));
	text[len++] = '\n';
	answer(job, 200, text, (size_t)len);
}

static void answer_who(struct job *job)
{
	static const char *const kinds[] = { "uri", "dns" };
	static char text[STATS_ROOM];
	size_t len = 0;
	for (size_t i = 0; job->names != NULL && i < job->names->count; i++) {
		const struct tls_name *name = &job->names->at[i];
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s:%.*s ",
					kinds[name->kind], (int)name->text.len, name->text.at);
	}
	answer(job, 200, text, len);
}

/* ---- relaying: enough of a client to count system calls and try net.h ---- */
static void relay_free(struct relay *relay)
{
	net_close(relay->conn);
	free(relay);
}

static void relay_lose(struct relay *relay)
{
	for (struct relay **at = &program.idle; *at != NULL; at = &(*at)->next)
		if (*at == relay) {
			*at = relay->next;
			break;
		}
	relay_free(relay);
}

static void relay_send(struct relay *relay, struct job *job)
{
	int head = snprintf(relay->head, sizeof(relay->head),
			    "POST /echo HTTP/1.1\r\nHost: upstream\r\nContent-Length: %zu\r\n\r\n",
			    job->body.len);
	relay->job = job;
	job->relay = relay;
	relay->out[0] = (struct iovec){ relay->head, (size_t)head };
	relay->out[1] = (struct iovec){ (char *)(uintptr_t)job->body.at, job->body.len };
	(void)net_write(relay->conn, relay->out, 2);
}

static void on_relay_opened(struct net_conn *conn, void *arg)
{
	(void)conn;
	struct relay *relay = arg;
	relay_send(relay, relay->job);
}

/* An answer with content-length, whole or not yet. */
static bool answer_whole(const char *input, size_t len, size_t *body)
{
	const char *end = memmem(input, len, "\r\n\r\n", 4);
	const char *field = end == NULL ? NULL : memmem(input, (size_t)(end - input), "ength: ", 7);
	if (field == NULL)
		return false;
	*body = (size_t)(end + 4 - input);
	return len - *body >= strtoul(field + 7, NULL, 10);
}

static void on_relay_readable(struct net_conn *conn, void *arg)
{
	struct relay *relay = arg;
	struct job *job = relay->job;
	size_t len, body;
	const char *input = net_input(conn, &len);
	if (job == NULL || !answer_whole(input, len, &body))
		return;
	job->answer = net_take_input(conn);
	job->relay = NULL;
	relay->job = NULL;
	relay->next = program.idle;
	program.idle = relay;
	if (slice_eq(job->path, SLICE("/relay-head")))
		begin_silence(job);
	else
		answer(job, 200, net_buffer_bytes(job->answer, &len) + body, len - body);
}

static void on_relay_written(struct net_conn *conn, void *arg)
{
	(void)conn;
	(void)arg;
}

static void on_relay_ended(struct net_conn *conn, enum net_end end, void *arg)
{
	(void)end;
	struct relay *relay = arg;
	struct job *job = relay->job;
	const char *why = net_conn_error(conn);
	if (job != NULL) {
		job->relay = NULL;
		answer(job, 502, why, strlen(why));
	}
	relay_lose(relay);
}

static const struct net_conn_events relay_events = { on_relay_opened, on_relay_readable,
						     on_relay_written, on_relay_ended, NULL };

static bool relay_start(struct job *job)
{
	struct relay *relay = program.idle;
	if (relay != NULL) {
		program.idle = relay->next;
		relay_send(relay, job);
		return true;
	}
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)program.upstream_port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	relay = calloc(1, sizeof(*relay));
	must(relay != NULL);
	relay->job = job;
	job->relay = relay;
	relay->conn = net_connect(program.loop, (const struct sockaddr *)&to, sizeof(to), NULL,
				  NULL, &relay_events, relay);
	if (relay->conn != NULL)
		return true;
	job->relay = NULL;
	free(relay);
	return false;
}

/* ---- the handler ---- */
static void fill_room(struct job *job, const struct http_incoming *in)
{
	job->room = slice_of(in->room, in->room_bytes);
	must(in->room_bytes % 8 == 0 && (uintptr_t)in->room % 8 == 0);
	if (in->room_bytes != 0)
		(void)memset(in->room, 'r', in->room_bytes);
}

static void answer_room(struct job *job)
{
	(void)snprintf(job->digits, sizeof(job->digits), "%zu", job->room.len);
	answer(job, 200, job->digits, strlen(job->digits));
}

static void job_free(struct job *job)
{
	for (size_t i = 0; i < job->room.len; i++)
		must(job->room.at[i] == 'r');
	net_timer_stop(program.loop, &job->timer);
	rest_out(job);
	net_buffer_free(job->answer);
	if (job->relay != NULL)
		relay_free(job->relay);
	slab_give(&program.jobs, job);
}

static void job_start(struct job *job)
{
	size_t n;
	if (slice_eq(job->path, SLICE("/echo")))
		answer(job, 200, job->body.at, job->body.len);
	else if (number_after(job->path, "/now/", &n))
		answer(job, 200, program.fill, n);
	else if (number_after(job->path, "/b/", &n) || number_after(job->path, "/h/", &n))
		net_timer_set(program.loop, &job->timer, net_now(program.loop) + ANSWER_AFTER);
	else if (number_after(job->path, "/pieces/", &n))
		begin_pieces(job, n, 1000);
	else if ((job->drips = number_after(job->path, "/drip/", &n)))
		begin_pieces(job, n, 10);
	else if ((job->endless = slice_eq(job->path, SLICE("/open"))))
		begin_pieces(job, 1, 10);
	else if (slice_eq(job->path, SLICE("/stats")))
		answer_stats(job);
	else if (slice_eq(job->path, SLICE("/who")))
		answer_who(job);
	else if (slice_eq(job->path, SLICE("/room")))
		answer_room(job);
	else if (start_stream(job) ||
		 (slice_starts(job->path, SLICE("/relay")) && relay_start(job)))
		return;
	else if (!slice_eq(job->path, SLICE("/hang")))
		answer(job, 404, "no such path\n", 13);
}

static void *on_begin(void *owner, struct http_exchange *exchange, const struct http_incoming *in)
{
	const struct http_field field = { SLICE("x-refused"), SLICE("yes") };
	(void)owner;
	if (answer_as_fronts(exchange, in))
		return NULL;
	struct job *job = slice_eq(in->path, SLICE("/refuse")) ? NULL : slab_take(&program.jobs);
	if (job == NULL) {
		http_refuse(exchange, 503, &field, 1, SLICE("{\"busy\":true}"));
		return NULL;
	}
	*job = (struct job){ .exchange = exchange,
			     .path = in->path,
			     .body = in->body,
			     .names = in->names,
			     .timer.fire = on_answer_due,
			     .counted = !slice_eq(in->path, SLICE("/stats")) };
	if (is_front_stream(in->path))
		http_return_room(exchange);
	fill_room(job, in);
	program.begun += job->counted;
	if (in->no_room)
		answer(job, 503, "no room\n", 8);
	else if (in->body_too_large)
		answer(job, 413, "too large\n", 10);
	else
		job_start(job);
	return job;
}

static void on_gone(void *owner, void *request)
{
	(void)owner;
	struct job *job = request;
	program.cancelled += !job->answered;
	job_free(job);
}

static void on_sent(void *owner, void *request)
{
	(void)owner;
	struct job *job = request;
	program.sent += job->counted;
	job_free(job);
}

static bool on_expects(void *owner, struct http_early *early, const struct http_incoming *in)
{
	const struct http_field field = { SLICE("x-early"), SLICE("yes") };

	(void)owner;
	must(in->body.len == 0 && in->room_bytes == 0 && !in->http2 && in->early);
	if (slice_eq(in->path, SLICE("/asked-early"))) {
		http_refuse_early(early, 401, &field, 1, describe(in));
		return false;
	}
	if (!slice_eq(in->path, SLICE("/early")) && !in->body_too_large)
		return true;
	http_refuse_early(early, in->body_too_large ? 413 : 401, &field, 1, SLICE("no"));
	return false;
}

/* ---- start and stop ---- */
static void on_stop(struct net_message *message, void *owner)
{
	(void)message;
	(void)owner;
	program.draining = true;
	http_shutdown(program.server);
	end_resting();
}

static void on_sigterm(int signal_number)
{
	(void)signal_number;
	static atomic_flag once = ATOMIC_FLAG_INIT;
	if (!atomic_flag_test_and_set(&once))
		net_post(program.loop, &program.stop); /* takes no lock */
}

static int listen_on(const char *what, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(program.address) };
	socklen_t len = sizeof(address);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, len) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
		perror("edge_echo: listen");
		exit(1);
	}
	(void)printf("%s %u\n", what, ntohs(address.sin_port));
	(void)fflush(stdout);
	return fd;
}

/* The whole of a file; absent without a path. */
static struct slice slurp(const char *path)
{
	enum { TEXT_MAX = 1 << 20 };
	FILE *file = path == NULL ? NULL : fopen(path, "re");
	if (path == NULL)
		return slice_of(NULL, 0);
	char *text = malloc(TEXT_MAX);
	must(file != NULL && text != NULL);
	size_t len = fread(text, 1, TEXT_MAX, file);
	(void)fclose(file);
	return slice_of(text, len);
}

static struct ssl_ctx_st *tls_context(void)
{
	const struct tls_server_texts texts = { SLICE_INIT("edge_echo"), slurp(program.cert),
						slurp(program.key), slurp(program.client_ca) };
	struct tls_problem problem;
	struct ssl_ctx_st *tls = tls_server_new(&texts, tls_tickets_new(0), &problem);
	if (tls == NULL) {
		(void)fprintf(stderr, "edge_echo: %s\n", problem.text);
		exit(1);
	}
	http_prepare_tls(tls);
	free((void *)(uintptr_t)texts.cert.at);
	free((void *)(uintptr_t)texts.key.at);
	free((void *)(uintptr_t)texts.client_ca.at);
	return tls;
}

static void read_options(int argc, char **argv, int ports[2], struct http_limits *limits)
{
	for (int option; (option = getopt(argc, argv, "p:P:b:c:t:u:U:C:K:A:mw")) != -1;) {
		switch (option) {
		case 'p':
			ports[0] = atoi(optarg);
			break;
		case 'P':
			ports[1] = atoi(optarg);
			break;
		case 'C':
			program.cert = optarg;
			break;
		case 'K':
			program.key = optarg;
			break;
		case 'A':
			program.client_ca = optarg;
			break;
		case 'b':
			limits->body_bytes_max = (size_t)atol(optarg);
			break;
		case 'c':
			limits->connections_max = (uint32_t)atoi(optarg);
			break;
		case 'U':
			limits->unfinished_bytes_max = (size_t)atol(optarg);
			break;
		case 'w':
			program.address = INADDR_ANY;
			break;
		case 'm':
			program.trusted_proxy = true;
			break;
		case 't':
			limits->patience = (nsec_t)atol(optarg) * MSEC;
			break;
		case 'u':
			program.upstream_port = atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct http_handler handler = { NULL,    on_begin, on_gone,
						     on_sent, on_ready, on_expects };
	struct http_limits limits = { .body_bytes_max = 4 << 20,
				      .unfinished_bytes_max = 256 << 20,
				      .connections_max = 10000 };
	struct http_listener listeners[2] = { { .fd = -1 }, { .fd = -1 } };
	int ports[2] = { 0, 0 };
	size_t count = 1;

	read_options(argc, argv, ports, &limits);
	program.stop.run = on_stop;
	program.fill = malloc(FILL_MAX);
	program.loop = net_loop_new();
	if (program.fill == NULL || program.loop == NULL ||
	    !slab_init(&program.jobs, sizeof(struct job), JOBS_MAX))
		return 1;
	(void)memset(program.fill, 'x', FILL_MAX);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, on_sigterm);
	if (program.cert != NULL)
		listeners[1] = (struct http_listener){ .fd = listen_on("tls", ports[count++]),
						       .tls = tls_context() };
	listeners[0].fd = listen_on("listening", ports[0]);
	listeners[0].trusted_proxy = listeners[1].trusted_proxy = program.trusted_proxy;
	program.server = http_server_new(program.loop, listeners, count, &handler, &limits);
	if (program.server == NULL)
		return 1;
	while (!program.draining || http_connections(program.server) != 0)
		net_turn(program.loop, SEC);
	must(http_in_flight(program.server) == 0 && program.jobs.out == 0);
	while (program.idle != NULL)
		relay_lose(program.idle);
	return 0;
}
