#include "gateway/tls/tls.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "gateway/tls/tls_memory.h"
#include "gateway/tls/tls_tickets.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { TLS_CLIENT_MAGIC = 0x544c5343 };

_Static_assert(SHA256_BYTES <= SSL_MAX_SID_CTX_LENGTH, "a digest is a session id context");

/* Of a list of names, or of certificates, in one message. OpenSSL doubles what it writes into: less than twice as
 * much has to be had (tls_memory.h), and the rest of the message. */
enum { WRITTEN_MAX = 16000 };

_Static_assert(2 * (WRITTEN_MAX + 384) <= TLS_MESSAGE_MAX, "what is written can be doubled");

enum { TICKET_IV = 16 };

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

SSL *tls_client_connection(SSL_CTX *ctx, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];
	SSL *ssl = SSL_new(ctx);

	(void)client_of(ctx);
	/* No name is sent for an address (RFC 6066 3). */
	const bool is_address =
		inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
	if (ssl != NULL && !is_address && SSL_set_tlsext_host_name(ssl, host) != 1) {
		SSL_free(ssl);
		ssl = NULL;
	}
	if (ssl == NULL)
		ERR_clear_error();
	return ssl;
}

void tls_client_why(const SSL *ssl, unsigned long code, char *problem, size_t room)
{
	const long verdict = SSL_get_verify_result(ssl);
	const char *reason = ERR_reason_error_string(code);

	if (verdict != X509_V_OK)
		(void)snprintf(problem, room, "its certificate is not accepted: %s",
			       X509_verify_cert_error_string(verdict));
	else
		(void)snprintf(problem, room, "TLS failed: %s",
			       reason == NULL ? "no reason is known" : reason);
	ERR_clear_error();
}

/* ---- listeners: certificate and key ----------------------------------------------------------- */

/* Says which text is to blame, what is wrong, and what OpenSSL says of it. */
static bool blame(struct tls_problem *problem, enum tls_part part, const char *what)
{
	problem->part = part;
	return refuse(what, problem->text, sizeof(problem->text));
}

/* An encrypted key must not make OpenSSL ask at the terminal. `arg`: a bool to be set, or NULL. */
static int no_passphrase(char *out, int room, int writing, void *arg)
{
	(void)out;
	(void)room;
	(void)writing;
	if (arg != NULL)
		*(bool *)arg = true;
	return -1;
}

/* The first certificate of the text is the server's own, the others are sent along. */
static bool add_chain(SSL_CTX *ctx, BIO *bio, size_t *bytes)
{
	for (size_t count = 0;; count++) {
		X509 *certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
		if (certificate == NULL) {
			bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
			if (end && count > 0)
				ERR_clear_error();
			return end && count > 0;
		}
		*bytes += 5 + (size_t)i2d_X509(certificate, NULL);
		bool added = count == 0 ? SSL_CTX_use_certificate(ctx, certificate) == 1
					: SSL_CTX_add1_chain_cert(ctx, certificate) == 1;
		X509_free(certificate);
		if (!added)
			return false;
	}
}

static BIO *text_bio(struct slice text)
{
	return text.len > INT_MAX ? NULL : BIO_new_mem_buf(text.at, (int)text.len);
}

static bool use_certificate(SSL_CTX *ctx, struct slice pem, struct tls_problem *problem)
{
	BIO *bio = text_bio(pem);
	size_t bytes = 0;
	bool used = bio != NULL && add_chain(ctx, bio, &bytes);

	(void)BIO_free(bio);
	if (used && bytes > WRITTEN_MAX)
		return blame(problem, TLS_PART_CERT, "its chain has more than 16,000 bytes");
	return used || blame(problem, TLS_PART_CERT, "it holds no certificate that can be used");
}

static bool use_key(SSL_CTX *ctx, struct slice pem, struct tls_problem *problem)
{
	bool encrypted = false;
	BIO *bio = text_bio(pem);
	EVP_PKEY *key =
		bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &encrypted);
	(void)BIO_free(bio);
	if (encrypted)
		ERR_clear_error();
	if (key == NULL)
		return blame(problem, TLS_PART_KEY,
			     encrypted ? "it is encrypted"
				       : "it holds no private key that can be used");
	bool match = X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) == 1;
	bool used = match && SSL_CTX_use_PrivateKey(ctx, key) == 1;
	EVP_PKEY_free(key);
	if (used)
		return true;
	if (!match)
		ERR_clear_error();
	return blame(problem, TLS_PART_KEY,
		     match ? "it is too weak or of no known kind" : "it is not the certificate's");
}

/* ---- listeners: callers' certificates ---------------------------------------------------------- */

static X509 *authority(STACK_OF(X509_OBJECT) * objects, int i)
{
	return X509_OBJECT_get0_X509(
		sk_X509_OBJECT_value(objects, i)); /* NULL: it is something else */
}

/* What a caller with several certificates chooses by. None where they are more than a message has room for: it
 * then sends what it has. */
static bool name_authorities(SSL_CTX *ctx)
{
	STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
	const int count = sk_X509_OBJECT_num(objects);
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		if (authority(objects, i) != NULL)
			bytes += 2 + (size_t)i2d_X509_NAME(
					     X509_get_subject_name(authority(objects, i)), NULL);
	for (int i = 0; i < count && bytes <= WRITTEN_MAX; i++)
		if (authority(objects, i) != NULL &&
		    SSL_CTX_add_client_CA(ctx, authority(objects, i)) != 1)
			return false;
	return true;
}

/* Who shows no certificate may still have a key. */
static bool ask_for_certificates(SSL_CTX *ctx, struct slice ca, struct tls_problem *problem)
{
	if (slice_absent(ca))
		return true;
	problem->part = TLS_PART_CLIENT_CA;
	if (!trust_pem(ctx, ca, problem->text, sizeof(problem->text)))
		return false;
	if (!name_authorities(ctx))
		return blame(
			problem, TLS_PART_CLIENT_CA,
			"its authorities' names cannot be sent, which have 32,000 bytes at most");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_max_cert_list(ctx, TLS_MESSAGE_MAX); /* before any is verified */
	return true;
}

/* ---- listeners: sessions ------------------------------------------------------------------------ */

/* RFC 5077's recommended construction: AES-256-CBC, then HMAC-SHA256. */
static bool key_up(const struct tls_ticket_key *key, const unsigned char *iv,
		   EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int enc)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac,
						  sizeof(key->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, enc) == 1 &&
	       EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* 1: done; 2: done, and a fresh ticket is due; 0: a full handshake; -1: failed. */
static int on_ticket(SSL *ssl, unsigned char name[16], unsigned char iv[EVP_MAX_IV_LENGTH],
		     EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int enc)
{
	const struct tls_tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct tls_ticket_key key;
	bool old = false;

	if (enc) {
		tls_tickets_newest(tickets, &key);
		(void)memcpy(name, key.name, sizeof(key.name));
		must(getrandom(iv, TICKET_IV, 0) == TICKET_IV);
	} else if (!tls_tickets_find(tickets, name, &key, &old)) {
		return 0;
	}
	bool up = key_up(&key, iv, cipher, mac, enc);
	OPENSSL_cleanse(&key, sizeof(key));
	return !up ? -1 : old ? 2 : 1;
}

/* A resumed session brings along the certificate that was verified when it began, so it must not be
 * good for a listener that trusts others, nor for this one once its authorities are replaced. */
static bool bind_sessions(SSL_CTX *ctx, const struct tls_server_texts *texts)
{
	uint8_t parts[2][SHA256_BYTES], context[SHA256_BYTES];

	sha256(texts->listener, parts[0]);
	sha256(slice_absent(texts->client_ca) ? SLICE("") : texts->client_ca, parts[1]);
	sha256(slice_of((const char *)parts, sizeof(parts)), context);
	return SSL_CTX_set_session_id_context(ctx, context, sizeof(context)) == 1;
}

static bool use_tickets(SSL_CTX *ctx, const struct tls_tickets *tickets)
{
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* A ticket's lifetime: its key is there at least as long. */
	(void)SSL_CTX_set_timeout(ctx, (long)(TLS_TICKET_HOUR / SEC));
	if (tickets == NULL)
		return true;
	(void)SSL_CTX_set_app_data(ctx, (void *)(uintptr_t)tickets);
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket) == 1;
}

/* ---- listeners: contexts ------------------------------------------------------------------------- */

/* A caller that offers protocols, and none of ours, is refused (RFC 7301 3.2); one that offers none
 * gets HTTP/1.1. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
		   const unsigned char *offered, unsigned int offered_len, void *arg)
{
	static const unsigned char ours[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, len, ours, sizeof(ours) - 1, offered, offered_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static bool server_init(SSL_CTX *ctx, const struct tls_server_texts *texts,
			const struct tls_tickets *tickets, struct tls_problem *problem)
{
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1 ||
	    !bind_sessions(ctx, texts) || !use_tickets(ctx, tickets))
		return blame(problem, TLS_PART_OTHER, "TLS cannot be set up");
	return use_certificate(ctx, texts->cert, problem) && use_key(ctx, texts->key, problem) &&
	       ask_for_certificates(ctx, texts->client_ca, problem);
}

SSL_CTX *tls_server_new(const struct tls_server_texts *texts, const struct tls_tickets *tickets,
			struct tls_problem *problem)
{
	must(!slice_absent(texts->cert) && !slice_absent(texts->key));
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (ctx == NULL) {
		(void)blame(problem, TLS_PART_OTHER, "no memory for a TLS context");
		return NULL;
	}
	if (!server_init(ctx, texts, tickets, problem)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

void tls_server_free(SSL_CTX *ctx)
{
	SSL_CTX_free(ctx);
}

SSL_CTX *tls_server_share(SSL_CTX *ctx)
{
	if (ctx != NULL)
		must(SSL_CTX_up_ref(ctx) == 1);
	return ctx;
}
