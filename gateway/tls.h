/* tls.h - OpenSSL contexts: for now the client side (providers).
 *
 * libh2o's own host-name check is skipped under TLS 1.3 (engineering/h2o.md 0.1), so the name is
 * verified by OpenSSL itself: one client context per (host, CA), SSL_VERIFY_PEER and
 * X509_VERIFY_PARAM_set1_host / set1_ip_asc on it, TLS 1.2 at least. Sessions are kept by the
 * new-session callback (h2o's cache never resumes 1.3) and offered to the next connection of the
 * same context. */
#ifndef GATEWAY_TLS_H
#define GATEWAY_TLS_H

#include "codec/base/slice.h"

struct ssl_ctx_st;
struct ssl_st;

/* `host` NUL-terminated name or IP literal; `ca_pem` absent: the system's store. NULL with a
 * message in `problem` (at most `room` bytes) when the CA cannot be used. One thread uses a
 * context. */
struct ssl_ctx_st *tls_client_new(const char *host, struct slice ca_pem, char *problem,
				  size_t room);
void tls_client_free(struct ssl_ctx_st *ctx);

/* Offers the context's last session to a connection that has not shaken hands yet. */
void tls_client_resume(struct ssl_ctx_st *ctx, struct ssl_st *ssl);

#endif
