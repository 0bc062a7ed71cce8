#include "gateway/tls.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

enum { TLS_CLIENT_MAGIC = 0x544c5343 };

_Static_assert(SHA256_BYTES <= SSL_MAX_SID_CTX_LENGTH, "a host's digest is a session id context");

/* What belongs to a client context beside OpenSSL's own; its app data. */
struct tls_client {
	uint32_t magic;
	SSL_SESSION *session; /* the last one; NULL when there is none */
};

static struct tls_client *client_of(const SSL_CTX *ctx)
{
	struct tls_client *client = SSL_CTX_get_app_data(ctx);

	must_obj(client, TLS_CLIENT_MAGIC);
	return client;
}

/* Says what OpenSSL complained about first, and forgets the rest. */
static bool refuse(const char *what, char *problem, size_t room)
{
	unsigned long code = ERR_get_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	ERR_clear_error();
	(void)snprintf(problem, room, "%s%s%s", what, reason == NULL ? "" : ": ",
		       reason == NULL ? "" : reason);
	return false;
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* OpenSSL has a new session: at the end of a 1.2 handshake, or with a ticket of 1.3, which comes
 * later and is the reason for this callback. 1 keeps the reference. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	if (SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)) == NULL)
		return 0; /* a connection that is still being closed outlives tls_client_free */
	struct tls_client *client = client_of(SSL_get_SSL_CTX(ssl));

	if (SSL_get_verify_result(ssl) != X509_V_OK || !SSL_SESSION_is_resumable(session))
		return 0;
	SSL_SESSION_free(client->session);
	client->session = session;
	return 1;
}

void tls_client_resume(SSL_CTX *ctx, SSL *ssl)
{
	struct tls_client *client = client_of(ctx);

	if (client->session == NULL)
		return;
	if (SSL_set_session(ssl, client->session) != 1)
		ERR_clear_error(); /* a full handshake, then */
}

/* A resumed handshake brings no certificate to check, so a session must never serve another host:
 * contexts are per host, and this makes OpenSSL itself refuse a session of another one. */
static bool keep_sessions(SSL_CTX *ctx, const char *host)
{
	uint8_t digest[SHA256_BYTES];

	sha256(slice_str(host), digest);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
							  SSL_SESS_CACHE_NO_INTERNAL_STORE);
	SSL_CTX_sess_set_new_cb(ctx, on_new_session);
	return SSL_CTX_set_session_id_context(ctx, digest, sizeof(digest)) == 1;
}

/* ---- whom to trust --------------------------------------------------------------------------- */

static bool expect_host(SSL_CTX *ctx, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
	unsigned char address[sizeof(struct in6_addr)];

	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

/* Adds every certificate of `bio`; the count, or -1 at one that cannot be read. */
static int add_certificates(X509_STORE *store, BIO *bio)
{
	for (int count = 0;; count++) {
		X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
		if (certificate == NULL) {
			bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
			if (end)
				ERR_clear_error();
			return end ? count : -1;
		}
		int added = X509_STORE_add_cert(store, certificate);
		X509_free(certificate);
		if (added != 1)
			return -1;
	}
}

static bool trust_pem(SSL_CTX *ctx, struct slice pem, char *problem, size_t room)
{
	if (pem.len > INT_MAX)
		return refuse("the CA file is too large", problem, room);
	BIO *bio = BIO_new_mem_buf(pem.at, (int)pem.len);
	if (bio == NULL)
		return refuse("no memory for the CA file", problem, room);
	int count = add_certificates(SSL_CTX_get_cert_store(ctx), bio);
	/* what the operator lists is trusted as it stands, an intermediate CA too */
	(void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	(void)BIO_free(bio);
	if (count < 0)
		return refuse("a certificate of the CA file cannot be used", problem, room);
	if (count == 0)
		return refuse("the CA file has no certificate in PEM form", problem, room);
	return true;
}

static bool trust(SSL_CTX *ctx, struct slice ca_pem, char *problem, size_t room)
{
	if (!slice_absent(ca_pem))
		return trust_pem(ctx, ca_pem, problem, room);
	if (SSL_CTX_set_default_verify_paths(ctx) != 1)
		return refuse("the system's CA store cannot be used", problem, room);
	return true;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static bool client_init(SSL_CTX *ctx, const char *host, struct slice ca_pem, char *problem,
			size_t room)
{
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		return refuse("TLS 1.2 cannot be demanded", problem, room);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (!expect_host(ctx, host) || !keep_sessions(ctx, host))
		return refuse("the host's name cannot be checked", problem, room);
	return trust(ctx, ca_pem, problem, room);
}

SSL_CTX *tls_client_new(const char *host, struct slice ca_pem, char *problem, size_t room)
{
	must(host != NULL);
	ERR_clear_error();
	struct tls_client *client = calloc(1, sizeof(*client));
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	if (client == NULL || ctx == NULL) {
		(void)refuse("no memory for a TLS context", problem, room);
		free(client);
		SSL_CTX_free(ctx);
		return NULL;
	}
	client->magic = TLS_CLIENT_MAGIC;
	(void)SSL_CTX_set_app_data(ctx, client);
	if (!client_init(ctx, host, ca_pem, problem, room)) {
		tls_client_free(ctx);
		return NULL;
	}
	return ctx;
}

void tls_client_free(SSL_CTX *ctx)
{
	if (ctx == NULL)
		return;
	struct tls_client *client = client_of(ctx);
	SSL_SESSION_free(client->session);
	client->magic = 0;
	free(client);
	(void)SSL_CTX_set_app_data(ctx, NULL);
	SSL_CTX_free(ctx);
}
