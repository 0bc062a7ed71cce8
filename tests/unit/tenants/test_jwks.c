#include "codec/set.h"
#include "tenants/jwks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* 32 bytes, and 2 of them, in base64url */
#define X "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define RSA "\"kty\":\"RSA\",\"n\":\"" X "\",\"e\":\"AQAB\""
#define EC "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" X "\",\"y\":\"" X "\""
#define OKP "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" X "\""

struct bench {
	struct json_work *work;
	struct jwk key;
	uint32_t keys, skipped;
	bool good;
	const char *why; /* the last that was passed over */
};

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->work = json_work_new(codec_set_best());
	assert_non_null(b->work);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	json_work_free(b->work);
	free(b);
	return 0;
}

static void read_all(struct bench *b, const char *text)
{
	struct jwks_reader reader;

	b->keys = b->skipped = 0;
	b->why = "";
	for (jwks_open(&reader, slice_str(text), b->work);;) {
		switch (jwks_next(&reader, &b->key)) {
		case JWKS_KEY:
			b->keys++;
			break;
		case JWKS_SKIPPED:
			b->skipped++;
			b->why = reader.skipped;
			break;
		case JWKS_END:
		case JWKS_BAD:
			b->good = reader.json.fault.err == ERR_OK;
			return;
		}
	}
}

static void keys_of_each_kind_are_read(void **state)
{
	static const struct {
		const char *name, *text;
		enum jwt_alg alg;
		size_t a_len, b_len;
	} rows[] = {
		{ "RSA", "{\"keys\":[{" RSA ",\"kid\":\"k\"}]}", JWT_RS256, 32, 3 },
		{ "EC", "{\"keys\":[{" EC ",\"kid\":\"k\"}]}", JWT_ES256, 32, 32 },
		{ "OKP", "{\"keys\":[{" OKP ",\"kid\":\"k\"}]}", JWT_EDDSA, 32, 0 },
		{ "with all that it may say of itself",
		  "{\"x\":{},\"keys\":[{" RSA
		  ",\"kid\":\"\\u006b\",\"use\":\"sig\",\"alg\":\"RS256\","
		  "\"key_ops\":[\"sign\",\"verify\"],\"x5c\":[\"MII\"]}],\"y\":[]}",
		  JWT_RS256, 32, 3 },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		read_all(b, rows[i].text);
		if (!b->good || b->keys != 1 || b->skipped != 0 || b->key.alg != rows[i].alg ||
		    b->key.a_len != rows[i].a_len || b->key.b_len != rows[i].b_len)
			fail_msg("%s: %u keys, %s", rows[i].name, b->keys, b->why);
		assert_int_equal(b->key.kid_len, 1);
		assert_int_equal(b->key.kid[0], 'k');
		assert_int_equal(b->key.a[31], 31);
	}
}

static void keys_of_no_use_are_passed_over(void **state)
{
	static const struct {
		const char *why, *text;
	} rows[] = {
		{ "it is of another kind", "\"kty\":\"oct\",\"k\":\"AAAA\"" },
		{ "it is of another kind", "\"kty\":\"rsa\",\"n\":\"AQAB\",\"e\":\"AQAB\"" },
		{ "it is of another kind",
		  "\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"" X "\",\"y\":\"" X "\"" },
		{ "it is of another kind", "\"kty\":\"EC\",\"x\":\"" X "\",\"y\":\"" X "\"" },
		{ "it is of another kind", "\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"" X "\"" },
		{ "it is of another kind", "\"kid\":\"k\"" },
		{ "it is for another algorithm", RSA ",\"alg\":\"RS512\"" },
		{ "it is for another algorithm", RSA ",\"alg\":\"PS256\"" },
		{ "it is for another algorithm", RSA ",\"alg\":\"ES256\"" },
		{ "it is for another algorithm", OKP ",\"alg\":\"\"" },
		{ "it is not for signatures", RSA ",\"use\":\"enc\"" },
		{ "it is not for verifying", RSA ",\"key_ops\":[\"encrypt\"]" },
		{ "it is not for verifying", RSA ",\"key_ops\":[]" },
		{ "it is not for verifying", RSA ",\"key_ops\":\"verify\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"RSA\",\"e\":\"AQAB\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"RSA\",\"n\":\"A+AB\",\"e\":\"AQAB\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQABAQABAQAB\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" X "\",\"y\":\"AQAB\"" },
		{ "its numbers are missing, malformed or too large",
		  "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" X "AA\"" },
	};
	struct bench *b = *state;
	char text[1024];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(text, sizeof(text), "{\"keys\":[{%s},{" OKP "}]}", rows[i].text);
		read_all(b, text);
		if (!b->good || b->keys != 1 || b->skipped != 1)
			fail_msg("%s: %u keys", rows[i].text, b->keys);
		assert_string_equal(b->why, rows[i].why);
		assert_int_equal(b->key.kid_len, 0);
	}
}

static void a_number_of_4096_bits_fits_and_no_larger_one(void **state)
{
	struct bench *b = *state;
	char text[1024], digits[684 + 1];

	(void)memset(digits, 'A', sizeof(digits));
	for (int len = 683; len <= 684; len++) { /* 683 digits are 512 bytes */
		(void)snprintf(text, sizeof(text),
			       "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%.*s\",\"e\":\"AQAB\"}]}", len,
			       digits);
		read_all(b, text);
		assert_true(b->good);
		assert_int_equal(b->keys, len == 683);
	}
}

static void a_kid_is_bounded(void **state)
{
	struct bench *b = *state;
	char text[1024];

	for (int over = 0; over <= 1; over++) {
		(void)snprintf(text, sizeof(text), "{\"keys\":[{" OKP ",\"kid\":\"%0*d\"}]}",
			       JWT_KID_MAX + over, 0);
		read_all(b, text);
		assert_int_equal(b->keys, over ? 0 : 1);
		assert_string_equal(b->why, over ? "its kid is over 256 bytes" : "");
		(void)snprintf(text, sizeof(text), "{\"keys\":[{" OKP ",\"kid\":\"\\u006b%0*d\"}]}",
			       JWT_KID_MAX - 1 + over, 0);
		read_all(b, text);
		assert_int_equal(b->keys, over ? 0 : 1);
	}
}

static void what_is_no_set_is_refused_as_a_whole(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"[]",
		"{}",
		"{\"key\":[]}",
		"{\"keys\":{}}",
		"{\"keys\":[1]}",
		"{\"keys\":[[]]}",
		"{\"keys\":[{" OKP "}]",
		"{\"keys\":[{" OKP "}]}x",
		"{\"keys\":[{" OKP "},]}",
		"{\"keys\":[{" OKP "}],\"keys\":[]}",
		"{\"keys\":[{" OKP ",\"kty\":\"RSA\"}]}",
		"{\"keys\":[{\"kty\":1}]}",
		"{\"keys\":[{" OKP ",\"kid\":7}]}",
		"<html>sign in</html>",
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		read_all(b, texts[i]);
		if (b->good)
			fail_msg("taken: %s", texts[i]);
	}
	read_all(b, "{\"keys\":[]}");
	assert_true(b->good);
	assert_int_equal(b->keys, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_each_kind_are_read),
		cmocka_unit_test(keys_of_no_use_are_passed_over),
		cmocka_unit_test(a_number_of_4096_bits_fits_and_no_larger_one),
		cmocka_unit_test(a_kid_is_bounded),
		cmocka_unit_test(what_is_no_set_is_refused_as_a_whole),
	};

	return cmocka_run_group_tests_name("jwks", tests, set_up, tear_down);
}
