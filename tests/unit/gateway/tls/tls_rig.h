/* tls_rig.h - certificates made on the spot, so that nothing expires in the tree, and handshakes over
 * a pair of BIOs. */
#ifndef TESTS_UNIT_GATEWAY_TLS_RIG_H
#define TESTS_UNIT_GATEWAY_TLS_RIG_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* ---- certificates ---- */

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

static inline void add_extension(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	assert_non_null(extension);
	assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

/* `san` NULL: a CA. `issuer` NULL: signed by itself. */
static inline struct identity make_identity(const char *name, const char *san,
					    const struct identity *issuer)
{
	static long serial;
	struct identity id = { EVP_EC_gen("P-256"), X509_new() };

	assert_non_null(id.key);
	assert_non_null(id.certificate);
	assert_int_equal(X509_set_version(id.certificate, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(id.certificate), ++serial), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(id.certificate), -3600));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(id.certificate), 3600));
	assert_int_equal(X509_set_pubkey(id.certificate, id.key), 1);
	X509_NAME *subject = X509_get_subject_name(id.certificate);
	assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
						    (const unsigned char *)name, -1, -1, 0),
			 1);
	X509 *by = issuer == NULL ? id.certificate : issuer->certificate;
	assert_int_equal(X509_set_issuer_name(id.certificate, X509_get_subject_name(by)), 1);
	add_extension(id.certificate, NID_basic_constraints,
		      san == NULL ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (san != NULL)
		add_extension(id.certificate, NID_subject_alt_name, san);
	assert_true(X509_sign(id.certificate, issuer == NULL ? id.key : issuer->key, EVP_sha256()) >
		    0);
	return id;
}

static inline void identity_free(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->certificate);
}

/* What was written to it, to be freed; frees the BIO. */
static inline struct slice bio_text(BIO *bio)
{
	char *at;
	size_t len = (size_t)BIO_get_mem_data(bio, &at);
	char *copy = malloc(len);
	assert_non_null(copy);
	(void)memcpy(copy, at, len);
	(void)BIO_free(bio);
	return slice_of(copy, len);
}

/* The certificates in PEM form, one behind the other; to be freed. */
static inline struct slice pem_of(const struct identity *const *ids, size_t count)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_non_null(bio);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(PEM_write_bio_X509(bio, ids[i]->certificate), 1);
	return bio_text(bio);
}

/* Its key, encrypted if there is a passphrase; to be freed. */
static inline struct slice key_pem_of(const struct identity *id, const char *passphrase)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_non_null(bio);
	assert_int_equal(PEM_write_bio_PrivateKey(bio, id->key,
						  passphrase == NULL ? NULL : EVP_aes_256_cbc(),
						  NULL, 0, NULL, (void *)(uintptr_t)passphrase),
			 1);
	return bio_text(bio);
}

/* ---- handshakes ---- */

/* OpenSSL alone, of one version. */
static inline SSL_CTX *bare_server(const struct identity *id, int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	assert_non_null(ctx);
	assert_int_equal(SSL_CTX_use_certificate(ctx, id->certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, id->key), 1);
	assert_int_equal(SSL_CTX_set_min_proto_version(ctx, version), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, version), 1);
	SSL_CTX_set_security_level(ctx, 0); /* so that TLS 1.1 is the client's to refuse */
	return ctx;
}

struct pair {
	SSL *client, *server;
	bool open;    /* both sides think so */
	bool resumed; /* the client says so */
};

/* One turn of a side that is not through yet; true when it is. */
static inline bool shake(SSL *ssl, bool *failed)
{
	int result = SSL_do_handshake(ssl);
	int error = SSL_get_error(ssl, result);

	if (result != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		*failed = true;
	return result == 1;
}

/* Two ends, before the first byte. */
static inline struct pair pair_new(SSL_CTX *client, SSL_CTX *server)
{
	struct pair pair = { .client = SSL_new(client), .server = SSL_new(server) };
	BIO *near, *far;

	assert_int_equal(BIO_new_bio_pair(&near, 0, &far, 0), 1);
	SSL_set_bio(pair.client, near, near);
	SSL_set_bio(pair.server, far, far);
	SSL_set_connect_state(pair.client);
	SSL_set_accept_state(pair.server);
	return pair;
}

/* Runs the handshake to its end on both sides and passes one byte, so that the client reads the
 * tickets of 1.3. */
static inline void pair_open(struct pair *pair)
{
	bool failed = false;
	char byte;

	for (int turn = 0; turn < 20 && !failed && !pair->open; turn++) {
		bool client_through = shake(pair->client, &failed);
		pair->open = !failed && shake(pair->server, &failed) && client_through;
	}
	if (pair->open) {
		assert_int_equal(SSL_write(pair->server, "x", 1), 1);
		assert_int_equal(SSL_read(pair->client, &byte, 1), 1);
		pair->resumed = SSL_session_reused(pair->client) == 1;
	}
	ERR_clear_error();
}

static inline void pair_free(struct pair *pair)
{
	/* as if closed orderly; OpenSSL throws away the sessions of connections that were not */
	SSL_set_shutdown(pair->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_set_shutdown(pair->server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(pair->client);
	SSL_free(pair->server);
}

static const struct {
	const char *name;
	int number;
} versions[] = { { "1.2", TLS1_2_VERSION }, { "1.3", TLS1_3_VERSION } };

#endif
