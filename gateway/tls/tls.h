/* tls.h - OpenSSL contexts: of the client side (providers) and of the server side (listeners).
 *
 * libh2o's own host-name check is skipped under TLS 1.3 (engineering/h2o.md 0.1), so the name is
 * verified by OpenSSL itself: one client context per (host, CA), SSL_VERIFY_PEER and
 * X509_VERIFY_PARAM_set1_host / set1_ip_asc on it, TLS 1.2 at least. Sessions are kept by the
 * new-session callback (h2o's cache never resumes 1.3) and offered to the next connection of the
 * same context.
 *
 * A server context belongs to a configuration; connections hold on to theirs, so that a reload
 * concerns new ones only. TLS 1.2 and 1.3 with forward secrecy and AEAD, no renegotiation, ALPN h2 and
 * http/1.1. Nothing is cached: sessions travel in tickets (tls_tickets.h). */
#ifndef GATEWAY_TLS_TLS_H
#define GATEWAY_TLS_TLS_H

#include "codec/base/slice.h"

struct ssl_ctx_st;
struct ssl_st;
struct tls_tickets;

/* ---- providers ---- */

/* `host` NUL-terminated name or IP literal; `ca_pem` absent: the system's store. NULL with a
 * message in `problem` (at most `room` bytes) when the CA cannot be used. One thread uses a
 * context. */
struct ssl_ctx_st *tls_client_new(const char *host, struct slice ca_pem, char *problem,
				  size_t room);
void tls_client_free(struct ssl_ctx_st *ctx);

/* Offers the context's last session to a connection that has not shaken hands yet. */
void tls_client_resume(struct ssl_ctx_st *ctx, struct ssl_st *ssl);

/* For those who speak OpenSSL by themselves: a connection that has not shaken hands yet and asks for
 * `host`, the context's own. NULL: memory. The context must outlive it. */
struct ssl_st *tls_client_connection(struct ssl_ctx_st *ctx, const char *host);

/* What OpenSSL has against the peer of a connection that failed with its error `code`. */
void tls_client_why(const struct ssl_st *ssl, unsigned long code, char *problem, size_t room);

/* ---- listeners ---- */

/* Everything in PEM form. */
struct tls_server_texts {
	struct slice listener;  /* any text that tells one listener from another */
	struct slice cert;      /* the certificate, then what links it to its authority */
	struct slice key;       /* of that certificate, without a passphrase */
	struct slice client_ca; /* whose certificates callers may show; absent: none is asked for */
};

enum tls_part { TLS_PART_OTHER, TLS_PART_CERT, TLS_PART_KEY, TLS_PART_CLIENT_CA };

struct tls_problem {
	enum tls_part part; /* which text is to blame */
	char text[160];     /* "it holds no certificate that can be used: no start line" */
};

/* The context of a listener; any thread may make connections of it. A caller need not show a
 * certificate, but one that is shown must be right. A session is resumed only under the listener and
 * the client_ca that it began under. `tickets` must outlive all connections; NULL: sessions are not
 * resumed beyond this context. NULL after filling in *problem. */
struct ssl_ctx_st *tls_server_new(const struct tls_server_texts *texts,
				  const struct tls_tickets *tickets, struct tls_problem *problem);
/* Lets go of it; accepts NULL. */
void tls_server_free(struct ssl_ctx_st *ctx);
/* One more owner, who will call tls_server_free; accepts and returns NULL. */
struct ssl_ctx_st *tls_server_share(struct ssl_ctx_st *ctx);

#endif
