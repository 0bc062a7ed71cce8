/* upstream_rig.h - calls that are not a provider's, and their server in the same thread: it does only what the test says,
 * so that it is seen what happens between two turns. */
#ifndef TESTS_UNIT_GATEWAY_UPSTREAM_UPSTREAM_RIG_H
#define TESTS_UNIT_GATEWAY_UPSTREAM_UPSTREAM_RIG_H

#include "codec/base/must.h"
#include "gateway/upstream/upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS = 10000, PEERS_MAX = 64, TEXT_MAX = 4096 };

/* These live until the process ends. */
static struct net_loop *loop;
static struct upstream *up, *up_stale; /* the latter finds no kept connection fresh */
static struct arena_pool arenas;

/* A server at two addresses with the same port; `listeners` -1: nobody listens there. */
struct rig {
	struct upstream *up;
	struct upstream_pool *pool;
	int listeners[2];
	struct upstream_address addresses[2];
	int peers[PEERS_MAX]; /* its connections, in the order in which they came; -1: closed */
	size_t peer_count;
	size_t requests[PEERS_MAX]; /* that came over each */
};

/* A call and what became of it. */
struct tried {
	struct upstream_call call;
	struct upstream_extra extra;
	struct arena arena;
	const char *request; /* head and body; NULL: a GET */
	struct iovec bytes;
	bool pieces;           /* what `head` answers */
	bool enough;           /* the first piece is */
	nsec_t idle_from_head; /* `head` sets timeouts.idle to that; 0: it does not */
	size_t heads;
	char fields[TEXT_MAX]; /* "name=value|", as `head` saw them, or of the whole answer */
	int64_t content_length;
	bool coded;
	struct upstream_address peer;
	size_t piece_count;
	char body[TEXT_MAX];
	size_t body_len;
	bool done;
	enum err err;
	const char *detail;
	uint16_t status;
	bool bytes_sent, timed_out;
};

/* Turns until the condition holds, which is a fault when it does not come to hold. */
#define UNTIL(rig, condition)                                   \
	do {                                                    \
		bool holds_ = false;                            \
		for (int t_ = 0; t_ < TURNS && !holds_; t_++) { \
			net_turn(loop, 10 * MSEC);              \
			server_accepts(rig);                    \
			holds_ = (condition);                   \
		}                                               \
		assert_true(holds_);                            \
	} while (0)

/* ---- the server ---- */

static inline int rig_listen(struct sockaddr_in *address)
{
	const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*address);

	assert_int_not_equal(fd, -1);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, len), 0);
	assert_int_equal(listen(fd, PEERS_MAX), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

static inline void server_accepts(struct rig *rig)
{
	int peer;

	for (size_t i = 0; i < 2; i++)
		while (rig->listeners[i] != -1 &&
		       (peer = accept4(rig->listeners[i], NULL, NULL,
				       SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1) {
			assert_in_range(rig->peer_count, 0, PEERS_MAX - 1);
			rig->peers[rig->peer_count++] = peer;
		}
}

/* Of requests without a body: whether one more has come over that connection. */
static inline bool server_reads(struct rig *rig, size_t n)
{
	static const char end[] = "\r\n\r\n";
	char bytes[TEXT_MAX];
	ssize_t len;

	server_accepts(rig);
	if (n >= rig->peer_count || rig->peers[n] == -1)
		return false;
	len = read(rig->peers[n], bytes, sizeof(bytes));
	if (len < (ssize_t)sizeof(end) - 1)
		return false;
	assert_memory_equal(bytes + len - (sizeof(end) - 1), end, sizeof(end) - 1);
	rig->requests[n]++;
	return true;
}

static inline void server_sends(struct rig *rig, size_t n, const char *text)
{
	assert_int_equal(send(rig->peers[n], text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline void server_closes(struct rig *rig, size_t n)
{
	assert_int_equal(close(rig->peers[n]), 0);
	rig->peers[n] = -1;
}

/* ---- the rig ---- */

/* `concurrent`: connections at once. */
static inline void rig_init(struct rig *rig, struct upstream *of, uint32_t concurrent)
{
	struct sockaddr_in address[2];
	char problem[64];

	(void)memset(rig, 0, sizeof(*rig));
	for (uint32_t i = 0; i < 2; i++) {
		address[i] = (struct sockaddr_in){ .sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + i),
						   .sin_port = i == 0 ? 0 : address[0].sin_port };
		rig->listeners[i] = rig_listen(&address[i]);
		(void)memcpy(&rig->addresses[i].address, &address[i], sizeof(address[i]));
		rig->addresses[i].len = sizeof(address[i]);
	}
	const struct endpoint endpoint = { .host = SLICE("mcp.example"),
					   .port = ntohs(address[0].sin_port),
					   .concurrent = concurrent,
					   .queue = UINT32_MAX,
					   .identity = SLICE("rig") };
	rig->up = of;
	rig->pool = upstream_pool_for(of, &endpoint, problem, sizeof(problem));
	assert_non_null(rig->pool);
	upstream_set_addresses(rig->pool, rig->addresses, 1);
}

/* All calls are over. */
static inline void rig_fini(struct rig *rig)
{
	upstream_mark(rig->up);
	upstream_sweep(rig->up);
	net_turn(loop, 0); /* frees what was closed */
	for (size_t i = 0; i < rig->peer_count; i++)
		if (rig->peers[i] != -1)
			(void)close(rig->peers[i]);
	for (size_t i = 0; i < 2; i++)
		if (rig->listeners[i] != -1)
			(void)close(rig->listeners[i]);
}

static inline struct upstream_counts rig_count(const struct rig *rig)
{
	return upstream_count(rig->up, SLICE("rig"));
}

/* ---- calls ---- */

static inline struct tried *of_call(struct upstream_call *call)
{
	return CONTAINER_OF(call, struct tried, call);
}

static inline void note_fields(struct tried *tried, struct slice fields)
{
	struct slice name, value;
	size_t at = 0;

	tried->fields[0] = '\0';
	while (upstream_next_field(&fields, &name, &value))
		at += (size_t)snprintf(tried->fields + at, sizeof(tried->fields) - at, "%.*s=%.*s|",
				       (int)name.len, name.at, (int)value.len, value.at);
	assert_in_range(at, 0, sizeof(tried->fields) - 1);
}

static inline void note_extra(struct tried *tried)
{
	note_fields(tried, tried->extra.fields);
	tried->content_length = tried->extra.content_length;
	tried->peer = tried->extra.peer;
	tried->coded = tried->call.coded;
}

static inline void note_bytes(struct tried *tried, struct slice bytes)
{
	assert_in_range(bytes.len, 0, sizeof(tried->body) - tried->body_len);
	(void)memcpy(tried->body + tried->body_len, bytes.at, bytes.len);
	tried->body_len += bytes.len;
}

static inline bool on_head(struct upstream_call *call)
{
	struct tried *tried = of_call(call);

	tried->heads++;
	tried->status = call->answer.status;
	note_extra(tried);
	call->answer.headers = (struct provider_headers){ 0 };
	if (tried->idle_from_head != 0)
		call->timeouts.idle = tried->idle_from_head;
	return tried->pieces;
}

static inline void on_piece(struct upstream_call *call, struct slice bytes)
{
	of_call(call)->piece_count++;
	note_bytes(of_call(call), bytes);
	if (of_call(call)->enough)
		upstream_enough(call, true);
}

static inline void on_done(struct upstream_call *call)
{
	struct tried *tried = of_call(call);

	assert_false(tried->done);
	tried->done = true;
	tried->err = call->err;
	tried->detail = call->detail == NULL ? "" : call->detail;
	tried->bytes_sent = call->bytes_sent;
	tried->timed_out = call->timed_out;
	if (call->err != ERR_OK)
		tried->coded = call->coded;
	if (call->err == ERR_OK && !call->in_pieces) {
		tried->status = call->answer.status;
		note_extra(tried);
		note_bytes(tried, call->answer.body);
	}
	upstream_finish(call);
}

/* A GET with timeouts of a minute; what the test wants otherwise it sets before tried_start. */
static inline void tried_init(struct tried *tried)
{
	(void)memset(tried, 0, sizeof(*tried));
	arena_init(&tried->arena, &arenas, (size_t)1 << 20);
	tried->request = "GET /mcp HTTP/1.1\r\nhost: x\r\n\r\n";
	tried->call = (struct upstream_call){
		.request_count = 1,
		.into = &tried->arena,
		.done = on_done,
		.head = on_head,
		.piece = on_piece,
		.deadline = NSEC_NEVER,
		.timeouts = { 60 * SEC, 60 * SEC, 60 * SEC, NSEC_NEVER },
	};
}

static inline void tried_start(struct rig *rig, struct tried *tried)
{
	tried->bytes = (struct iovec){ (void *)(uintptr_t)tried->request, strlen(tried->request) };
	tried->call.request = &tried->bytes;
	tried->call.extra = &tried->extra;
	upstream_start(rig->pool, &tried->call);
}

static inline void tried_fini(struct tried *tried)
{
	upstream_cancel(&tried->call);
	upstream_finish(&tried->call);
	arena_give(&tried->arena);
}

static inline void assert_body(const struct tried *tried, const char *body)
{
	assert_int_equal(tried->body_len, strlen(body));
	assert_memory_equal(tried->body, body, tried->body_len);
}

/* A call over the server's connection `n`, whose request comes and gets the answer. */
static inline void exchange(struct rig *rig, struct tried *tried, size_t n, const char *answer)
{
	tried_start(rig, tried);
	UNTIL(rig, server_reads(rig, n));
	server_sends(rig, n, answer);
	UNTIL(rig, tried->done);
}

/* The same for a plain GET that is answered well. */
static inline void exchange_ok(struct rig *rig, size_t n)
{
	struct tried tried;

	tried_init(&tried);
	exchange(rig, &tried, n, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
	assert_int_equal(tried.err, ERR_OK);
	assert_body(&tried, "ok");
	tried_fini(&tried);
}

static inline bool rig_begin(void)
{
	struct upstream_limits stale = upstream_limits_default;

	stale.fresh_for = 0;
	(void)signal(SIGPIPE, SIG_IGN);
	loop = net_loop_new();
	up = loop == NULL ? NULL : upstream_new(loop, &upstream_limits_default);
	up_stale = loop == NULL ? NULL : upstream_new(loop, &stale);
	return up != NULL && up_stale != NULL;
}

#endif
