/* Signatures, by keys that are made here: nothing of what an attacker may write passes. */
#include "codec/set.h"
#include "gateway/identity/jwt_keys.h"

#include "tests/unit/gateway/identity/jwt_rig.h"

#include <openssl/hmac.h>
#include <openssl/x509.h>

enum { NOW = 1000000 };

static const struct jwt_issuer issuer = {
	SLICE_INIT("i"), SLICE_INIT("a"), SLICE_INIT("t"), { NULL, 0 }, 7, 0
};
static const char claims[] = "{\"iss\":\"i\",\"aud\":\"a\",\"exp\":2000000,\"t\":\"acme\"}";

struct fixture {
	EVP_PKEY *rsa, *other_rsa, *small_rsa, *ec, *other_ec, *ed;
	struct json_work *work;
	struct jwt_space space;
	struct jwt_keys *keys; /* rsa, ec and ed as "r", "e" and "o" */
};

static struct jwt_keys *keys_of(const struct fixture *f, const char *text)
{
	char problem[160];
	struct jwt_keys *keys =
		jwt_keys_new(slice_str(text), f->work, NULL, problem, sizeof(problem));

	if (keys == NULL)
		fail_msg("%s", problem);
	assert_int_equal(ERR_peek_error(), 0);
	return keys;
}

/* A set of these, each "kid" given; frees the texts. */
static char *set_of(char *const *jwks, size_t count)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	(void)fputs("{\"keys\":[", out);
	for (size_t i = 0; i < count; i++) {
		(void)fprintf(out, "%s%s", i == 0 ? "" : ",", jwks[i]);
		free(jwks[i]);
	}
	(void)fputs("]}", out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->rsa = EVP_RSA_gen(2048);
	f->other_rsa = EVP_RSA_gen(2048);
	f->small_rsa = EVP_RSA_gen(1024);
	f->ec = EVP_EC_gen("P-256");
	f->other_ec = EVP_EC_gen("P-256");
	f->ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	f->work = json_work_new(codec_set_best());
	char *const jwks[] = { jwk_of(f->rsa, "\"kid\":\"r\""), jwk_of(f->ec, "\"kid\":\"e\""),
			       jwk_of(f->ed, "\"kid\":\"o\"") };
	char *text = set_of(jwks, COUNT_OF(jwks));
	f->keys = keys_of(f, text);
	free(text);
	assert_int_equal(jwt_keys_count(f->keys), 3);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	EVP_PKEY *const keys[] = { f->rsa, f->other_rsa, f->small_rsa, f->ec, f->other_ec, f->ed };

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		EVP_PKEY_free(keys[i]);
	jwt_keys_free(&f->keys);
	json_work_free(f->work);
	free(f);
	return 0;
}

/* Takes the token over. */
static enum jwt_fault check(struct fixture *f, const struct jwt_keys *keys, char *text)
{
	struct jwt_token token;
	enum jwt_fault fault = jwt_read(slice_str(text), &issuer, 1, slice_of(NULL, 0), NOW,
					f->work, &f->space, &token);

	if (fault == JWT_OK)
		fault = jwt_keys_check(keys, &token);
	free(text);
	assert_int_equal(ERR_peek_error(), 0);
	return fault;
}

static void expect(const char *name, enum jwt_fault got, enum jwt_fault wanted)
{
	if (got != wanted)
		fail_msg("%s: %s instead of %s", name, got == JWT_OK ? "ok" : jwt_fault_reason(got),
			 wanted == JWT_OK ? "ok" : jwt_fault_reason(wanted));
}

static void right_signatures_pass_and_no_others(void **state)
{
	struct fixture *f = *state;
	const struct {
		const char *name;
		EVP_PKEY *signer;
		const char *header;
		enum jwt_fault fault;
	} rows[] = {
		{ "RS256", f->rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}", JWT_OK },
		{ "ES256", f->ec, "{\"alg\":\"ES256\",\"kid\":\"e\"}", JWT_OK },
		{ "EdDSA", f->ed, "{\"alg\":\"EdDSA\",\"kid\":\"o\"}", JWT_OK },
		{ "RS256 without a kid", f->rsa, "{\"alg\":\"RS256\"}", JWT_OK },
		{ "ES256 without a kid", f->ec, "{\"alg\":\"ES256\"}", JWT_OK },
		{ "another RSA key", f->other_rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}",
		  JWT_SIGNATURE },
		{ "another EC key", f->other_ec, "{\"alg\":\"ES256\",\"kid\":\"e\"}",
		  JWT_SIGNATURE },
		{ "a kid that nobody has", f->rsa, "{\"alg\":\"RS256\",\"kid\":\"R\"}",
		  JWT_KEY_UNKNOWN },
		{ "a kid that begins like one", f->rsa, "{\"alg\":\"RS256\",\"kid\":\"rr\"}",
		  JWT_KEY_UNKNOWN },
		{ "RS256 with the EC key's kid", f->rsa, "{\"alg\":\"RS256\",\"kid\":\"e\"}",
		  JWT_KEY_MISFIT },
		{ "ES256 with the RSA key's kid", f->ec, "{\"alg\":\"ES256\",\"kid\":\"r\"}",
		  JWT_KEY_MISFIT },
		{ "EdDSA with the EC key's kid", f->ed, "{\"alg\":\"EdDSA\",\"kid\":\"e\"}",
		  JWT_KEY_MISFIT },
		{ "ES256 by the RSA key", f->rsa, "{\"alg\":\"ES256\",\"kid\":\"e\"}",
		  JWT_SIGNATURE },
		{ "RS256 by the EC key", f->ec, "{\"alg\":\"RS256\",\"kid\":\"r\"}",
		  JWT_SIGNATURE },
		{ "the key that the token brings along", f->other_rsa,
		  "{\"alg\":\"RS256\",\"kid\":\"r\",\"jku\":\"https://"
		  "evil.example\",\"x5u\":\"x\"}",
		  JWT_SIGNATURE },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		expect(rows[i].name,
		       check(f, f->keys, sign_token(rows[i].signer, rows[i].header, claims)),
		       rows[i].fault);
}

/* The confusion of keys: a MAC whose secret is the public key, in every form in which it is published. */
static void a_mac_under_a_public_key_is_nothing(void **state)
{
	struct fixture *f = *state;
	unsigned char *der = NULL, mac[32];
	const int len = i2d_PUBKEY(f->rsa, &der);

	assert_true(len > 0);
	char *input = jwt_text_input("{\"alg\":\"HS256\",\"kid\":\"r\"}", claims);
	assert_non_null(
		HMAC(EVP_sha256(), der, len, (unsigned char *)input, strlen(input), mac, NULL));
	expect("HS256",
	       check(f, f->keys, jwt_text_join(input, slice_of((const char *)mac, sizeof(mac)))),
	       JWT_ALGORITHM);
	free(input);
	input = jwt_text_input("{\"alg\":\"RS256\",\"kid\":\"r\"}", claims);
	assert_non_null(
		HMAC(EVP_sha256(), der, len, (unsigned char *)input, strlen(input), mac, NULL));
	expect("a MAC called RS256",
	       check(f, f->keys, jwt_text_join(input, slice_of((const char *)mac, sizeof(mac)))),
	       JWT_SIGNATURE);
	free(input);
	OPENSSL_free(der);
}

static void signatures_of_no_length_or_of_zeros_are_wrong(void **state)
{
	static const char zeros[256] = { 0 };
	static const struct {
		const char *name, *header;
		size_t len;
	} rows[] = {
		{ "none at all, RS256", "{\"alg\":\"RS256\",\"kid\":\"r\"}", 0 },
		{ "none at all, ES256", "{\"alg\":\"ES256\",\"kid\":\"e\"}", 0 },
		{ "none at all, EdDSA", "{\"alg\":\"EdDSA\",\"kid\":\"o\"}", 0 },
		{ "RS256 of zeros", "{\"alg\":\"RS256\",\"kid\":\"r\"}", 256 },
		{ "RS256, a byte short", "{\"alg\":\"RS256\",\"kid\":\"r\"}", 255 },
		{ "ES256 of zeros", "{\"alg\":\"ES256\",\"kid\":\"e\"}", 64 },
		{ "ES256, a byte short", "{\"alg\":\"ES256\",\"kid\":\"e\"}", 63 },
		{ "ES256, a byte long", "{\"alg\":\"ES256\",\"kid\":\"e\"}", 65 },
		{ "EdDSA of zeros", "{\"alg\":\"EdDSA\",\"kid\":\"o\"}", 64 },
		{ "EdDSA, a byte short", "{\"alg\":\"EdDSA\",\"kid\":\"o\"}", 63 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char *input = jwt_text_input(rows[i].header, claims);
		expect(rows[i].name,
		       check(f, f->keys, jwt_text_join(input, slice_of(zeros, rows[i].len))),
		       JWT_SIGNATURE);
		free(input);
	}
}

/* Of many signatures some have numbers that begin with zeros or with a set bit. */
static void every_signature_of_an_ec_key_is_read(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 300; i++)
		expect("ES256",
		       check(f, f->keys,
			     sign_token(f->ec, "{\"alg\":\"ES256\",\"kid\":\"e\"}", claims)),
		       JWT_OK);
}

static void the_other_form_of_an_ec_signature_is_wrong(void **state)
{
	struct fixture *f = *state;
	unsigned char der[128];
	size_t len = sizeof(der);
	char *input = jwt_text_input("{\"alg\":\"ES256\",\"kid\":\"e\"}", claims);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, f->ec), 1);
	assert_int_equal(EVP_DigestSign(ctx, der, &len, (unsigned char *)input, strlen(input)), 1);
	EVP_MD_CTX_free(ctx);
	expect("DER", check(f, f->keys, jwt_text_join(input, slice_of((const char *)der, len))),
	       JWT_SIGNATURE);
	free(input);
}

/* Each byte of a token counts: whichever is changed, it is not the same token any more. */
static void a_change_anywhere_is_noticed(void **state)
{
	struct fixture *f = *state;
	char *token = sign_token(f->ec, "{\"alg\":\"ES256\",\"kid\":\"e\"}", claims);
	const size_t len = strlen(token);

	for (size_t i = 0; i < len; i++) {
		char *changed = strdup(token);
		assert_non_null(changed);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		if (check(f, f->keys, changed) == JWT_OK)
			fail_msg("byte %zu", i);
	}
	free(token);
}

static void a_key_that_others_share_the_algorithm_with_needs_its_kid(void **state)
{
	struct fixture *f = *state;
	char *const jwks[] = { jwk_of(f->rsa, "\"kid\":\"1\""),
			       jwk_of(f->other_rsa, "\"kid\":\"2\""),
			       jwk_of(f->ec, "\"kid\":\"1\"") };
	char *text = set_of(jwks, COUNT_OF(jwks));
	struct jwt_keys *keys = keys_of(f, text);

	expect("the first",
	       check(f, keys, sign_token(f->rsa, "{\"alg\":\"RS256\",\"kid\":\"1\"}", claims)),
	       JWT_OK);
	expect("the second",
	       check(f, keys,
		     sign_token(f->other_rsa, "{\"alg\":\"RS256\",\"kid\":\"2\"}", claims)),
	       JWT_OK);
	expect("the second under the first's kid",
	       check(f, keys,
		     sign_token(f->other_rsa, "{\"alg\":\"RS256\",\"kid\":\"1\"}", claims)),
	       JWT_SIGNATURE);
	expect("a kid that two kinds share",
	       check(f, keys, sign_token(f->ec, "{\"alg\":\"ES256\",\"kid\":\"1\"}", claims)),
	       JWT_OK);
	expect("none", check(f, keys, sign_token(f->rsa, "{\"alg\":\"RS256\"}", claims)),
	       JWT_KEY_UNKNOWN);
	expect("no key of that kind",
	       check(f, keys, sign_token(f->ed, "{\"alg\":\"EdDSA\"}", claims)), JWT_KEY_UNKNOWN);
	jwt_keys_free(&keys);
	free(text);
}

static void weak_and_impossible_keys_are_not_used(void **state)
{
	struct fixture *f = *state;
	char *small = jwk_of(f->small_rsa, "\"kid\":\"small\""),
	     *even = jwk_of(f->rsa, "\"kid\":\"even\"");
	char *const exponent = strstr(even, "AQAB");
	assert_non_null(exponent);
	(void)memcpy(exponent, "AQAA", 4);
	char *const jwks[] = {
		small,
		even,
		strdup("{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"off\\nthe curve\","
		       "\"x\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\","
		       "\"y\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\"}"),
		strdup("{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
	};
	char *text = set_of(jwks, COUNT_OF(jwks)), *said = NULL, problem[160];
	size_t len = 0;
	FILE *out = open_memstream(&said, &len);
	struct jwt_keys *keys =
		jwt_keys_new(slice_str(text), f->work, out, problem, sizeof(problem));

	assert_int_equal(fclose(out), 0);
	assert_non_null(keys);
	assert_int_equal(jwt_keys_count(keys), 0);
	assert_string_equal(said,
			    "key small is not used: RSA needs 2048 bits at least\n"
			    "key even is not used: its numbers are no RSA key\n"
			    "key off?the?curve is not used: its numbers are no key of its kind\n"
			    "a key is not used: it is of another kind\n");
	expect("a small key",
	       check(f, keys,
		     sign_token(f->small_rsa, "{\"alg\":\"RS256\",\"kid\":\"small\"}", claims)),
	       JWT_KEY_UNKNOWN);
	jwt_keys_free(&keys);
	free(said);
	free(text);
}

static void a_set_has_at_most_64_keys(void **state)
{
	struct fixture *f = *state;

	for (size_t count = JWT_KEYS_MAX; count <= JWT_KEYS_MAX + 1; count++) {
		char *jwks[JWT_KEYS_MAX + 1], problem[160] = "";
		for (size_t i = 0; i < count; i++)
			jwks[i] = jwk_of(f->ed, "\"kid\":\"same\"");
		char *text = set_of(jwks, count);
		struct jwt_keys *keys =
			jwt_keys_new(slice_str(text), f->work, NULL, problem, sizeof(problem));
		assert_int_equal(keys == NULL, count > JWT_KEYS_MAX);
		assert_string_equal(problem, keys == NULL ? "it has more than 64 keys" : "");
		jwt_keys_free(&keys);
		free(text);
	}
}

static void what_is_no_set_is_said_to_be_none(void **state)
{
	struct fixture *f = *state;
	char problem[160];

	assert_null(jwt_keys_new(SLICE("<html>"), f->work, NULL, problem, sizeof(problem)));
	assert_non_null(strstr(problem, "it is no set of keys ("));
	assert_null(jwt_keys_new(SLICE("{}"), f->work, NULL, problem, sizeof(problem)));
	assert_string_equal(problem, "it is no set of keys (no member \"keys\" at byte 2)");
}

static void owners_let_go_one_by_one(void **state)
{
	struct fixture *f = *state;
	struct jwt_keys *one = keys_of(f, "{\"keys\":[]}"), *two = jwt_keys_share(one);
	struct jwt_keys *other = keys_of(f, "{\"keys\":[] }"), *none = NULL;

	assert_true(jwt_keys_same(one, two));
	assert_false(jwt_keys_same(one, other));
	jwt_keys_free(&one);
	assert_null(one);
	assert_int_equal(jwt_keys_count(two), 0);
	jwt_keys_free(&two);
	jwt_keys_free(&other);
	jwt_keys_free(&none);
	assert_null(jwt_keys_share(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_signatures_pass_and_no_others),
		cmocka_unit_test(a_mac_under_a_public_key_is_nothing),
		cmocka_unit_test(signatures_of_no_length_or_of_zeros_are_wrong),
		cmocka_unit_test(every_signature_of_an_ec_key_is_read),
		cmocka_unit_test(the_other_form_of_an_ec_signature_is_wrong),
		cmocka_unit_test(a_change_anywhere_is_noticed),
		cmocka_unit_test(a_key_that_others_share_the_algorithm_with_needs_its_kid),
		cmocka_unit_test(weak_and_impossible_keys_are_not_used),
		cmocka_unit_test(a_set_has_at_most_64_keys),
		cmocka_unit_test(what_is_no_set_is_said_to_be_none),
		cmocka_unit_test(owners_let_go_one_by_one),
	};

	return cmocka_run_group_tests_name("jwt_keys", tests, set_up, tear_down);
}
