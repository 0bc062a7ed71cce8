/* plain_h2o.c - a server over libh2o as its examples make one: h2o_accept, no guard, no budgets.
 *
 * plain_h2o [CERT KEY]: the column "without" of attack_table.py, and nothing else; it can be killed
 * by one client, which is the point. Prints "listening PORT TLS-PORT" (0: no certificate) and serves
 * on loopback what edge_echo serves:
 *   /b/N    N bytes after 20 ms       /now/N  N bytes at once      /h/N  a header of N bytes
 *   /hang   no answer at all          /stats  requests begun and cancelled, as text
 *   else    1,024 bytes after 20 ms
 * SIGTERM: h2o's graceful shutdown; it ends when killed. */
#include "gateway/net/h2o_include.h"

#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_AFTER_MS = 20, ANSWER_SIZE = 1024, FILL_MAX = 4 << 20, TURN_MS = 50 };

struct plain {
	h2o_globalconf_t config;
	h2o_context_t ctx;
	h2o_accept_ctx_t clear, tls;
	h2o_timeout_t answer_after;
	uint64_t begun, cancelled;
	char *fill;
};

struct plain_handler {
	h2o_handler_t super;
	struct plain *plain;
};

struct job {
	struct plain *plain;
	h2o_req_t *req;
	h2o_timeout_entry_t timer;
	bool answered;
};

static volatile sig_atomic_t stopping;

static void on_sigterm(int number)
{
	(void)number;
	stopping = 1;
}

/* ---- answers ---- */
static h2o_generator_t no_more = { NULL, NULL };

static void answer(struct job *job, const char *bytes, size_t len)
{
	h2o_req_t *req = job->req;
	h2o_iovec_t body = h2o_iovec_init(bytes, len);
	job->answered = true;
	req->res.status = 200;
	req->res.reason = "OK";
	req->res.content_length = len;
	h2o_start_response(req, &no_more);
	h2o_send(req, &body, 1, H2O_SEND_STATE_FINAL);
}

/* The number behind `prefix` in the path. */
static bool number_after(const h2o_req_t *req, const char *prefix, size_t *n)
{
	size_t len = strlen(prefix);
	if (req->path.len < len || memcmp(req->path.base, prefix, len) != 0)
		return false;
	char digits[16] = { 0 };
	size_t room = req->path.len - len;
	(void)memcpy(digits, req->path.base + len, room < 15 ? room : 15);
	unsigned long value = strtoul(digits, NULL, 10);
	*n = value < FILL_MAX ? value : FILL_MAX;
	return true;
}

static void on_answer_due(h2o_timeout_entry_t *entry)
{
	struct job *job = H2O_STRUCT_FROM_MEMBER(struct job, timer, entry);
	size_t n = ANSWER_SIZE;
	if (number_after(job->req, "/h/", &n)) {
		h2o_add_header_by_str(&job->req->pool, &job->req->res.headers, H2O_STRLIT("x-big"),
				      1, NULL, job->plain->fill, n);
		n = 0;
	} else {
		(void)number_after(job->req, "/b/", &n);
	}
	answer(job, job->plain->fill, n);
}

static void answer_stats(struct job *job)
{
	static char text[128]; /* one asker at a time */
	int len = snprintf(text, sizeof(text), "begun=%" PRIu64 " cancelled=%" PRIu64 "\n",
			   job->plain->begun, job->plain->cancelled);
	answer(job, text, (size_t)len);
}

static void on_job_disposed(void *memory)
{
	struct job *job = memory;
	if (h2o_timeout_is_linked(&job->timer))
		h2o_timeout_unlink(&job->timer);
	job->plain->cancelled += !job->answered;
}

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
	struct plain *plain = H2O_STRUCT_FROM_MEMBER(struct plain_handler, super, self)->plain;
	struct job *job = h2o_mem_alloc_shared(&req->pool, sizeof(*job), on_job_disposed);
	size_t n = 0;
	*job = (struct job){ .plain = plain, .req = req, .timer.cb = on_answer_due };
	if (h2o_memis(req->path.base, req->path.len, H2O_STRLIT("/stats"))) {
		answer_stats(job);
		return 0;
	}
	plain->begun++;
	if (number_after(req, "/now/", &n))
		answer(job, plain->fill, n);
	else if (!h2o_memis(req->path.base, req->path.len, H2O_STRLIT("/hang")))
		h2o_timeout_link(plain->ctx.loop, &plain->answer_after, &job->timer);
	return 0;
}

/* ---- listening ---- */
static void on_accept(h2o_socket_t *listener, const char *err)
{
	if (err != NULL)
		return;
	h2o_socket_t *sock = h2o_evloop_socket_accept(listener);
	if (sock != NULL)
		h2o_accept(listener->data, sock);
}

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "plain_h2o: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int listen_on_loopback(struct plain *plain, h2o_accept_ctx_t *accept_ctx)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || bind(fd, (struct sockaddr *)&address, len) == -1 ||
	    listen(fd, SOMAXCONN) == -1 || getsockname(fd, (struct sockaddr *)&address, &len) == -1)
		die("listening");
	h2o_socket_t *sock =
		h2o_evloop_socket_create(plain->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
	sock->data = accept_ctx;
	h2o_socket_read_start(sock, on_accept);
	return ntohs(address.sin_port);
}

static SSL_CTX *tls_new(const char *cert, const char *key)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (ctx == NULL || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		die("certificate or key");
	h2o_ssl_register_alpn_protocols(ctx, h2o_http2_alpn_protocols);
	return ctx;
}

static void plain_init(struct plain *plain)
{
	plain->fill = malloc(FILL_MAX);
	if (plain->fill == NULL)
		die("memory");
	(void)memset(plain->fill, 'x', FILL_MAX);
	h2o_config_init(&plain->config);
	h2o_hostconf_t *host = h2o_config_register_host(
		&plain->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
	h2o_handler_t *handler =
		h2o_create_handler(&host->fallback_path, sizeof(struct plain_handler));
	H2O_STRUCT_FROM_MEMBER(struct plain_handler, super, handler)->plain = plain;
	handler->on_req = on_req;
	h2o_context_init(&plain->ctx, h2o_evloop_create(), &plain->config);
	h2o_timeout_init(plain->ctx.loop, &plain->answer_after, ANSWER_AFTER_MS);
	plain->clear = (h2o_accept_ctx_t){ .ctx = &plain->ctx, .hosts = plain->config.hosts };
	plain->tls = plain->clear;
}

int main(int argc, char **argv)
{
	static struct plain plain;
	bool stopped = false;
	int tls_port = 0;

	if (argc != 1 && argc != 3) {
		(void)fprintf(stderr, "usage: plain_h2o [CERT KEY]\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, on_sigterm);
	plain_init(&plain);
	int port = listen_on_loopback(&plain, &plain.clear);
	if (argc == 3) {
		plain.tls.ssl_ctx = tls_new(argv[1], argv[2]);
		tls_port = listen_on_loopback(&plain, &plain.tls);
	}
	(void)printf("listening %d %d\n", port, tls_port);
	(void)fflush(stdout);
	while (h2o_evloop_run(plain.ctx.loop, TURN_MS) == 0 || errno == EINTR) {
		if (stopping && !stopped)
			h2o_context_request_shutdown(&plain.ctx);
		stopped = stopping != 0;
	}
	die("the loop");
}
