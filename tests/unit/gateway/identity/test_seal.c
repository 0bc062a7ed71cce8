/* Texts that callers keep: they open for what they were sealed for, whichever of the secrets sealed them, and nothing
 * else opens. The cipher is compared with one that is put together from CMAC and HMAC here. */
#include "gateway/identity/seal.h"

#include "codec/base/must.h"
#include "tenants/base64url.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_CAP = 8 << 20 };

static const struct seal_secret secrets[] = { { "the secret that seals at first.." },
					      { "a second one, made a while later" } };
static struct arena_pool pool = { .keep_max = 64 };
static struct arena arena;
static size_t openssl_allocations;
static size_t fail_next; /* the n-th of them from now on fails; 0: none */

/* ---- OpenSSL's memory ---- */

static bool refuse(void)
{
	openssl_allocations++;
	return fail_next != 0 && --fail_next == 0;
}

static void *count_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return refuse() ? NULL : malloc(size);
}

static void *count_realloc(void *at, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return refuse() ? NULL : realloc(at, size);
}

static void count_free(void *at, const char *file, int line)
{
	(void)file;
	(void)line;
	free(at);
}

/* ---- rig ---- */

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, &pool, ARENA_CAP);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_give(&arena);
	return 0;
}

static struct seal *seal_of(const struct seal_secret *first, uint32_t count)
{
	struct seal *seal = seal_new(first, count);

	assert_non_null(seal);
	return seal;
}

static struct slice close_text(struct seal *seal, const char *purpose, struct slice plain)
{
	struct slice text;

	assert_int_equal(seal_close(seal, slice_str(purpose), plain, &arena, &text), ERR_OK);
	return text;
}

/* Whether it opens, as `plain`. */
static bool opens_as(struct seal *seal, const char *purpose, struct slice text, struct slice plain)
{
	struct slice found = SLICE("not written");
	const enum err err = seal_open(seal, slice_str(purpose), text, &arena, &found);

	if (err == ERR_OK) {
		assert_true(slice_eq(found, plain));
		return true;
	}
	assert_int_equal(err, ERR_SESSION_UNKNOWN);
	assert_true(slice_eq(found, SLICE("not written")));
	return false;
}

/* ---- texts ---- */

static void a_text_opens_for_its_purpose_only(void **state)
{
	struct seal *seal = seal_of(secrets, 1), *other = seal_of(&secrets[1], 1);
	const struct slice text = close_text(seal, "mcp-session/a", SLICE("plain"));

	(void)state;
	assert_int_equal(text.len, SEAL_TEXT_LEN(5));
	for (size_t i = 0; i < text.len; i++)
		assert_true(text.at[i] > ' ' && text.at[i] <= '~');
	assert_true(opens_as(seal, "mcp-session/a", text, SLICE("plain")));
	assert_false(opens_as(seal, "mcp-session/b", text, SLICE("")));
	assert_false(opens_as(seal, "mcp-session/", text, SLICE("")));
	assert_false(opens_as(seal, "", text, SLICE("")));
	assert_false(opens_as(other, "mcp-session/a", text, SLICE("")));
	assert_true(opens_as(seal, "mcp-session/a", text, SLICE("plain")));
	seal_free(seal);
	seal_free(other);
	seal_free(NULL);
}

static void no_other_text_opens(void **state)
{
	struct seal *seal = seal_of(secrets, 1);
	const struct slice text = close_text(seal, "p", SLICE("plain"));
	char other[128];

	(void)state;
	assert_true(text.len < sizeof(other));
	for (size_t i = 0; i < text.len; i++) {
		(void)memcpy(other, text.at, text.len);
		other[i] = other[i] == 'A' ? 'B' : 'A';
		assert_false(opens_as(seal, "p", slice_of(other, text.len), SLICE("")));
		assert_false(opens_as(seal, "p", slice_of(text.at, i), SLICE("")));
	}
	(void)memcpy(other, text.at, text.len);
	(void)memcpy(other + text.len, "AAAA", 4);
	assert_false(opens_as(seal, "p", slice_of(other, text.len + 4), SLICE("")));
	seal_free(seal);
}

static void the_first_secret_seals_and_all_of_them_open(void **state)
{
	const struct seal_secret turned[] = { secrets[1], secrets[0] };
	struct seal *old = seal_of(secrets, 1), *both = seal_of(secrets, 2),
		    *after = seal_of(turned, 2), *new = seal_of(turned, 1);
	const struct slice of_old = close_text(old, "p", SLICE("1"));
	const struct slice of_both = close_text(both, "p", SLICE("2"));
	const struct slice of_after = close_text(after, "p", SLICE("3"));

	(void)state;
	assert_true(opens_as(both, "p", of_old, SLICE("1")) &&
		    opens_as(after, "p", of_old, SLICE("1")));
	assert_true(opens_as(old, "p", of_both, SLICE("2")));
	assert_false(opens_as(new, "p", of_both, SLICE("")));
	assert_true(opens_as(both, "p", of_after, SLICE("3")) &&
		    opens_as(new, "p", of_after, SLICE("3")));
	assert_false(opens_as(old, "p", of_after, SLICE("")));
	seal_free(old);
	seal_free(both);
	seal_free(after);
	seal_free(new);
}

static void no_two_texts_are_the_same(void **state)
{
	struct seal *seal = seal_of(secrets, 1);
	struct slice texts[50];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		texts[i] = close_text(seal, "p", SLICE("plain"));
		for (size_t before = 0; before < i; before++)
			assert_false(slice_eq(texts[i], texts[before]));
	}
	seal_free(seal);
}

static void texts_have_bounds(void **state)
{
	static char plain[SEAL_PLAIN_MAX + 1], long_text[SEAL_TEXT_LEN(SEAL_PLAIN_MAX) + 1];
	struct seal *seal = seal_of(secrets, 1);
	struct slice text;

	(void)state;
	(void)memset(plain, 'x', sizeof(plain));
	for (size_t len = 0; len <= SEAL_PLAIN_MAX; len = len < 70 ? len + 1 : len * 2) {
		text = close_text(seal, "p", slice_of(plain, len));
		assert_int_equal(text.len, SEAL_TEXT_LEN(len));
		assert_true(opens_as(seal, "p", text, slice_of(plain, len)));
	}
	text = close_text(seal, "p", slice_of(plain, SEAL_PLAIN_MAX));
	assert_true(opens_as(seal, "p", text, slice_of(plain, SEAL_PLAIN_MAX)));
	assert_int_equal(
		seal_close(seal, SLICE("p"), slice_of(plain, sizeof(plain)), &arena, &text),
		ERR_BODY_TOO_LARGE);
	(void)memset(long_text, 'A', sizeof(long_text));
	assert_false(opens_as(seal, "p", slice_of(long_text, sizeof(long_text)), SLICE("")));
	seal_free(seal);
}

static void refused_memory_is_not_a_wrong_text(void **state)
{
	struct seal *seal = seal_of(secrets, 1);
	struct slice text = close_text(seal, "p", SLICE("plain")), found = SLICE("not written");
	struct arena none;

	(void)state;
	arena_init(&none, &pool, ARENA_CAP);
	pool.fail_next = 1;
	assert_int_equal(seal_open(seal, SLICE("p"), text, &none, &found), ERR_BUSY);
	assert_true(slice_eq(found, SLICE("not written")));
	pool.fail_next = 1;
	assert_int_equal(seal_close(seal, SLICE("p"), SLICE("plain"), &none, &found), ERR_BUSY);
	pool.fail_next = 0;
	assert_true(opens_as(seal, "p", text, SLICE("plain")));
	arena_give(&none);
	seal_free(seal);
}

/* Each time one allocation later fails. */
static void a_seal_is_made_whole_or_not_at_all(void **state)
{
	struct seal *seal = NULL;
	size_t refused = 0;

	(void)state;
	for (size_t n = 1; n < 1000; n++) {
		fail_next = n;
		seal = seal_new(secrets, 2);
		const bool failed = fail_next == 0;
		fail_next = 0;
		if (!failed)
			break;
		refused += seal == NULL;
		if (seal != NULL) /* OpenSSL did without */
			assert_true(
				opens_as(seal, "p", close_text(seal, "p", SLICE("x")), SLICE("x")));
		seal_free(seal);
		seal = NULL;
	}
	assert_non_null(seal); /* with all allocations */
	assert_true(refused > 5);
	seal_free(seal);
}

static void no_call_allocates_but_from_the_arena(void **state)
{
	struct seal *seal = seal_of(secrets, 2);
	struct slice text = close_text(seal, "p", SLICE("plain"));
	char forged[128];

	(void)state;
	(void)memcpy(forged, text.at, text.len);
	forged[text.len - 1] = forged[text.len - 1] == 'A' ? 'Q' : 'A';
	assert_false(opens_as(seal, "p", slice_of(forged, text.len), SLICE("")));
	const size_t before = openssl_allocations;
	assert_true(before > 0); /* it counts */
	for (size_t i = 0; i < 100; i++) {
		text = close_text(seal, "p", SLICE("plain"));
		assert_true(opens_as(seal, "p", text, SLICE("plain")));
		assert_false(opens_as(seal, "q", text, SLICE("")));
		assert_false(opens_as(seal, "p", slice_of(forged, text.len), SLICE("")));
	}
	assert_int_equal(openssl_allocations, before);
	seal_free(seal);
}

/* ---- the cipher ---- */

/* One block of HKDF-SHA256 without salt (RFC 5869). */
static void hkdf(const struct seal_secret *secret, const char *info, uint8_t out[32])
{
	const uint8_t no_salt[32] = { 0 };
	uint8_t prk[32], text[64];
	const size_t len = strlen(info);

	must(HMAC(EVP_sha256(), no_salt, sizeof(no_salt), secret->at, sizeof(secret->at), prk,
		  NULL) != NULL);
	(void)memcpy(text, info, len);
	text[len] = 1;
	must(HMAC(EVP_sha256(), prk, sizeof(prk), text, len + 1, out, NULL) != NULL);
}

static void cmac(const uint8_t key[32], const uint8_t block[16], uint8_t out[16])
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "CMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	char cipher[] = "AES-256-CBC";
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER,
								       cipher, 0),
				      OSSL_PARAM_construct_end() };
	size_t written;

	must(EVP_MAC_init(ctx, key, 32, params) == 1);
	must(EVP_MAC_update(ctx, block, 16) == 1 && EVP_MAC_final(ctx, out, &written, 16) == 1);
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
}

/* XAES-256-GCM by its definition (c2sp.org/XAES-256-GCM); `in` ends with the tag. False: it does not open. */
static bool xaes_open(const uint8_t key[32], const uint8_t nonce[24], struct slice aad,
		      const uint8_t *in, size_t len, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t derived[32], tag[16];
	int written;

	for (uint8_t i = 0; i < 2; i++) {
		uint8_t block[16] = { 0, (uint8_t)(i + 1), 'X', 0 };
		(void)memcpy(block + 4, nonce, 12);
		cmac(key, block, derived + 16 * i);
	}
	(void)memcpy(tag, in + len - 16, sizeof(tag));
	must(EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, derived, nonce + 12) == 1);
	must(EVP_DecryptUpdate(ctx, NULL, &written, (const uint8_t *)aad.at, (int)aad.len) == 1);
	must(EVP_DecryptUpdate(ctx, out, &written, in, (int)len - 16) == 1);
	must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1);
	const bool good = EVP_DecryptFinal_ex(ctx, out + written, &written) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return good;
}

/* The two vectors of the specification: that the cipher above is the one of that name. */
static void the_reference_is_xaes_256_gcm(void **state)
{
	static const struct {
		uint8_t key;
		const char *aad;
		uint8_t sealed[28];
	} rows[] = {
		{ 0x01, "", { 0xce, 0x54, 0x6e, 0xf6, 0x3c, 0x9c, 0xc6, 0x07, 0x65, 0x92,
			      0x36, 0x09, 0xb3, 0x3a, 0x9a, 0x19, 0x74, 0xe9, 0x6e, 0x52,
			      0xda, 0xf2, 0xfc, 0xf7, 0x07, 0x5e, 0x22, 0x71 } },
		{ 0x03, "c2sp.org/XAES-256-GCM", { 0x98, 0x6e, 0xc1, 0x83, 0x25, 0x93, 0xdf,
						   0x54, 0x43, 0xa1, 0x79, 0x43, 0x7f, 0xd0,
						   0x83, 0xbf, 0x3f, 0xdb, 0x41, 0xab, 0xd7,
						   0x40, 0xa2, 0x1f, 0x71, 0xeb, 0x76, 0x9d } },
	};
	uint8_t key[32], out[12];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)memset(key, rows[i].key, sizeof(key));
		assert_true(xaes_open(key, (const uint8_t *)"ABCDEFGHIJKLMNOPQRSTUVWX",
				      slice_str(rows[i].aad), rows[i].sealed,
				      sizeof(rows[i].sealed), out));
		assert_memory_equal(out, "XAES-256-GCM", sizeof(out));
	}
}

/* Other gateways, and other versions of this one, open what was sealed here. */
static void a_text_is_what_its_description_says(void **state)
{
	struct seal *seal = seal_of(&secrets[1], 1);

	(void)state;
	for (size_t i = 0; i < 20; i++) { /* nonces are random */
		const struct slice text =
			close_text(seal, "mcp-state/x", SLICE("a plain text of some length"));
		uint8_t bytes[SEAL_OVERHEAD + 27], id[32], key[32], plain[27];
		assert_int_equal(base64url_decode(text, bytes, sizeof(bytes)), sizeof(bytes));
		hkdf(&secrets[1], "sluice seal id", id);
		hkdf(&secrets[1], "sluice seal key", key);
		assert_int_equal(bytes[0], 1);
		assert_memory_equal(bytes + 1, id, 4);
		assert_true(xaes_open(key, bytes + 5, SLICE("mcp-state/x"), bytes + 29,
				      sizeof(bytes) - 29, plain));
		assert_memory_equal(plain, "a plain text of some length", sizeof(plain));
	}
	seal_free(seal);
}

/* The doubling of the mask carries for about half of all keys. */
static void it_is_so_for_any_secret(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 32; i++) {
		struct seal_secret secret = { { i } };
		struct seal *seal = seal_of(&secret, 1);
		const struct slice text = close_text(seal, "p", SLICE("x"));
		uint8_t bytes[SEAL_OVERHEAD + 1], key[32], plain[1];
		assert_int_equal(base64url_decode(text, bytes, sizeof(bytes)), sizeof(bytes));
		hkdf(&secret, "sluice seal key", key);
		assert_true(xaes_open(key, bytes + 5, SLICE("p"), bytes + 29, sizeof(bytes) - 29,
				      plain));
		seal_free(seal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(a_text_opens_for_its_purpose_only),
		IN(no_other_text_opens),
		IN(the_first_secret_seals_and_all_of_them_open),
		IN(no_two_texts_are_the_same),
		IN(texts_have_bounds),
		IN(refused_memory_is_not_a_wrong_text),
		IN(a_seal_is_made_whole_or_not_at_all),
		IN(no_call_allocates_but_from_the_arena),
		IN(the_reference_is_xaes_256_gcm),
		IN(a_text_is_what_its_description_says),
		IN(it_is_so_for_any_secret),
	};

	must(CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) == 1);
	const int failed = cmocka_run_group_tests_name("seal", tests, NULL, NULL);
	arena_pool_fini(&pool);
	return failed;
}
