/* jwt_rig.h - keys made on the spot, their JWKS, and tokens signed by them. */
#ifndef TESTS_UNIT_GATEWAY_JWT_RIG_H
#define TESTS_UNIT_GATEWAY_JWT_RIG_H

#include "codec/base/attr.h"
#include "tests/support/jwt_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

static inline char *number_text(const BIGNUM *number, int width)
{
	unsigned char bytes[1024];
	const int len = width == 0 ? BN_num_bytes(number) : width;

	assert_int_equal(BN_bn2binpad(number, bytes, len), len);
	return jwt_text_base64url(slice_of((const char *)bytes, (size_t)len));
}

static inline char *param_text(const EVP_PKEY *key, const char *name, int width)
{
	BIGNUM *number = NULL;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
	char *text = number_text(number, width);
	BN_free(number);
	return text;
}

/* A member of "keys": the public half, and `more` ("\"kid\":\"k\"") at its end. To be freed. */
static inline char *jwk_of(const EVP_PKEY *key, const char *more)
{
	char *a = NULL, *b = NULL, *text;

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		a = param_text(key, OSSL_PKEY_PARAM_RSA_N, 0);
		b = param_text(key, OSSL_PKEY_PARAM_RSA_E, 0);
		assert_true(asprintf(&text, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\",%s}", a, b,
				     more) > 0);
		break;
	case EVP_PKEY_EC:
		a = param_text(key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
		b = param_text(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
		assert_true(
			asprintf(&text,
				 "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\",%s}",
				 a, b, more) > 0);
		break;
	default: {
		unsigned char bytes[32];
		size_t len = sizeof(bytes);
		assert_int_equal(EVP_PKEY_get_raw_public_key(key, bytes, &len), 1);
		a = jwt_text_base64url(slice_of((const char *)bytes, len));
		assert_true(asprintf(&text, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\",%s}",
				     a, more) > 0);
	}
	}
	free(a);
	free(b);
	return text;
}

/* r and s one behind the other; returns the new length. */
static inline size_t raw_signature(unsigned char *bytes, size_t len)
{
	const unsigned char *at = bytes;
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)len);

	assert_non_null(sig);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(sig), bytes, 32), 32);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(sig), bytes + 32, 32), 32);
	ECDSA_SIG_free(sig);
	return 64;
}

/* Signs as the key's kind does it; the length. */
static inline size_t sign(EVP_PKEY *key, const char *input, unsigned char *out, size_t room)
{
	const int kind = EVP_PKEY_get_base_id(key);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t len = room;

	assert_int_equal(EVP_DigestSignInit(ctx, NULL,
					    kind == EVP_PKEY_ED25519 ? NULL : EVP_sha256(), NULL,
					    key),
			 1);
	assert_int_equal(
		EVP_DigestSign(ctx, out, &len, (const unsigned char *)input, strlen(input)), 1);
	EVP_MD_CTX_free(ctx);
	return kind == EVP_PKEY_EC ? raw_signature(out, len) : len;
}

/* A token; to be freed. */
static inline char *sign_token(EVP_PKEY *key, const char *header, const char *claims)
{
	unsigned char signature[1024];
	char *input = jwt_text_input(header, claims);
	const size_t len = sign(key, input, signature, sizeof(signature));
	char *text = jwt_text_join(input, slice_of((const char *)signature, len));

	free(input);
	return text;
}

#endif
