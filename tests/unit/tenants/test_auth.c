#include "tenants/auth.h"

#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* The key in a header; absent when what it has cannot be one. */
static struct slice key_in(struct slice header)
{
	const struct slice found = auth_credentials(header);

	return auth_may_be_key(found) ? found : (struct slice){ NULL, 0 };
}

static void a_bearer_header_yields_its_key(void **state)
{
	static const struct {
		const char *name;
		struct slice header, key;
	} rows[] = {
		{ "plain", SLICE_INIT("Bearer 0123456789abcdef"), SLICE_INIT("0123456789abcdef") },
		{ "scheme in capitals", SLICE_INIT("BEARER 0123456789abcdef"),
		  SLICE_INIT("0123456789abcdef") },
		{ "scheme in small", SLICE_INIT("bearer 0123456789abcdef"),
		  SLICE_INIT("0123456789abcdef") },
		{ "spaces around", SLICE_INIT(" Bearer   0123456789abcdef \t"),
		  SLICE_INIT("0123456789abcdef") },
		{ "the key's case is kept", SLICE_INIT("Bearer ABCDEFGHIJklmnop"),
		  SLICE_INIT("ABCDEFGHIJklmnop") },
		{ "edges of visible ASCII", SLICE_INIT("Bearer !~!~!~!~!~!~!~!~"),
		  SLICE_INIT("!~!~!~!~!~!~!~!~") },
		{ "too short", SLICE_INIT("Bearer 0123456789abcde"), { NULL, 0 } },
		{ "no key", SLICE_INIT("Bearer "), { NULL, 0 } },
		{ "no space", SLICE_INIT("Bearer"), { NULL, 0 } },
		{ "glued", SLICE_INIT("Bearer0123456789abcdef"), { NULL, 0 } },
		{ "a tab is no separator", SLICE_INIT("Bearer\t0123456789abcdef"), { NULL, 0 } },
		{ "another scheme", SLICE_INIT("Basic 0123456789abcdef="), { NULL, 0 } },
		{ "a space inside", SLICE_INIT("Bearer 01234567 89abcdef"), { NULL, 0 } },
		{ "a control character",
		  SLICE_INIT("Bearer 01234567\x01"
			     "89abcdef"),
		  { NULL, 0 } },
		{ "DEL", SLICE_INIT("Bearer 0123456789abcde\x7f"), { NULL, 0 } },
		{ "not ASCII", SLICE_INIT("Bearer 0123456789abcd\xc3\xa9"), { NULL, 0 } },
		{ "empty", SLICE_INIT(""), { NULL, 0 } },
		{ "absent", { NULL, 0 }, { NULL, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct slice key = key_in(rows[i].header);
		if (slice_absent(key) != slice_absent(rows[i].key) || !slice_eq(key, rows[i].key))
			fail_msg("%s: \"%.*s\"", rows[i].name, (int)key.len,
				 key.at == NULL ? "" : key.at);
	}
}

static void a_key_has_at_most_256_bytes(void **state)
{
	char header[7 + AUTH_KEY_MAX + 1];

	(void)state;
	(void)memset(header, 'k', sizeof(header));
	(void)memcpy(header, "Bearer ", 7);
	assert_int_equal(key_in(slice_of(header, sizeof(header) - 1)).len, AUTH_KEY_MAX);
	assert_true(slice_absent(key_in(slice_of(header, sizeof(header)))));
	/* a token may be longer */
	assert_int_equal(auth_credentials(slice_of(header, sizeof(header))).len, AUTH_KEY_MAX + 1);
}

static void a_byte_that_is_not_visible_is_found_at_every_place(void **state)
{
	char header[7 + 40] = "Bearer ", *key = header + 7;

	(void)state;
	for (size_t len = 3; len <= 40; len++)
		for (size_t place = 1; place < len - 1; place++) /* blanks around are cut off */
			for (int byte = 0; byte < 256; byte++) {
				(void)memset(key, '~', len);
				key[0] = '!';
				key[place] = (char)byte;
				const struct slice found =
					auth_credentials(slice_of(header, 7 + len));
				if (slice_absent(found) == (byte > ' ' && byte <= '~'))
					fail_msg("0x%02x at %zu of %zu", (unsigned)byte, place,
						 len);
			}
}

enum { KEYS = 20000 };

static struct slice key_text(size_t n, char text[64])
{
	(void)snprintf(text, 64, "sk-test-%016zu", n);
	return slice_str(text);
}

static void every_key_finds_its_own_record_and_others_find_none(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;
	char text[64];
	struct tenants_duplicates twice;
	const struct tenant tenants[] = {
		{ .magic = TENANT_MAGIC, .id = SLICE_INIT("one") },
		{ .magic = TENANT_MAGIC, .id = SLICE_INIT("two"), .disabled = true },
	};

	(void)state;
	arena_init(&arena, &pool, 64 << 20);
	struct tenant_key *keys = arena_zero(&arena, KEYS * sizeof(*keys));
	assert_non_null(keys);
	for (size_t i = 0; i < KEYS; i++) {
		sha256(key_text(i, text), keys[i].digest);
		keys[i].tenant = &tenants[i % 2];
	}
	struct tenants registry = {
		.tenants = tenants, .count = 2, .keys = keys, .key_count = KEYS
	};
	assert_true(tenants_init(&registry, &arena, &twice));
	for (size_t i = 0; i < KEYS; i++) {
		const struct tenant_key *found = auth_find(&registry, key_text(i, text));
		assert_ptr_equal(found, &keys[i]);
		assert_ptr_equal(found->tenant, &tenants[i % 2]); /* a disabled one's too */
	}
	for (size_t i = KEYS; i < 2 * KEYS; i++)
		assert_null(auth_find(&registry, key_text(i, text)));
	assert_null(auth_find(&registry, SLICE("")));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void a_registry_without_keys_knows_nobody(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct tenants registry = { 0 };
	struct tenants_duplicates twice;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	assert_true(tenants_init(&registry, &arena, &twice));
	assert_null(auth_find(&registry, SLICE("0123456789abcdef")));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

/* One wrong bit anywhere in the digest is another key, even if the run begins in the same place. */
static void the_whole_digest_is_compared(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct tenant_key keys[SHA256_BYTES - 8];
	struct tenants registry = { .keys = keys, .key_count = COUNT_OF(keys) };
	const struct slice key = SLICE("0123456789abcdef");
	struct tenants_duplicates twice;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		keys[i] = (struct tenant_key){ 0 };
		sha256(key, keys[i].digest);
		keys[i].digest[8 + i] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(tenants_init(&registry, &arena, &twice));
	assert_int_equal(registry.digest_probes, COUNT_OF(keys)); /* all in one run */
	assert_null(auth_find(&registry, key));
	keys[17].digest[8 + 17] ^= 1 << 17 % 8;
	assert_ptr_equal(auth_find(&registry, key), &keys[17]);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bearer_header_yields_its_key),
		cmocka_unit_test(a_key_has_at_most_256_bytes),
		cmocka_unit_test(a_byte_that_is_not_visible_is_found_at_every_place),
		cmocka_unit_test(every_key_finds_its_own_record_and_others_find_none),
		cmocka_unit_test(a_registry_without_keys_knows_nobody),
		cmocka_unit_test(the_whole_digest_is_compared),
	};

	return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
