/* What a key is of, and that nothing else has it. */
#include "gateway/state/state.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct owner {
	const char *name;
	enum state_kind kind;
	struct slice tenant, server, session, id;
};

/* clang-format off */
static const struct owner owners[] = {
	{ "a call", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "a loop", STATE_LOOP, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "a session", STATE_SESSION, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "an idempotency key", STATE_IDEMPOTENCY, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "another tenant's", STATE_CALL, SLICE_INIT("acmf"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "another server's", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("weather"), SLICE_INIT("s"), SLICE_INIT("toolu_1") },
	{ "another session's", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("t"), SLICE_INIT("toolu_1") },
	{ "of no session", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT(""), SLICE_INIT("toolu_1") },
	{ "another call", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("s"), SLICE_INIT("toolu_2") },
	{ "cut elsewhere", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billin"), SLICE_INIT("gs"), SLICE_INIT("toolu_1") },
	{ "cut elsewhere, too", STATE_CALL, SLICE_INIT("acme"), SLICE_INIT("billing"), SLICE_INIT("stoolu_1"), SLICE_INIT("") },
};
/* clang-format on */

static struct state_key key_of(const struct owner *owner)
{
	return state_key_of(owner->kind, owner->tenant, owner->server, owner->session, owner->id);
}

static void whoever_is_not_the_same_has_another_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(owners); i++)
		for (size_t j = 0; j < COUNT_OF(owners); j++) {
			const struct state_key a = key_of(&owners[i]), b = key_of(&owners[j]);
			if (state_key_eq(&a, &b) != (i == j))
				fail_msg("%s and %s", owners[i].name, owners[j].name);
		}
}

static void absent_and_empty_are_the_same(void **state)
{
	const struct slice absent = { NULL, 0 };
	const struct state_key a =
		state_key_of(STATE_CALL, SLICE("acme"), absent, absent, SLICE("toolu_1"));
	const struct state_key b =
		state_key_of(STATE_CALL, SLICE("acme"), SLICE(""), SLICE(""), SLICE("toolu_1"));

	(void)state;
	assert_true(state_key_eq(&a, &b));
}

/* Gateways of different versions look for each other's records. */
static void a_key_stays_the_same_in_all_versions(void **state)
{
	static const uint8_t expected[STATE_KEY_BYTES] = { 0xd8, 0xd4, 0x8b, 0x98, 0xd6, 0xfc,
							   0x70, 0xf0, 0xe0, 0x8c, 0xaf, 0xfd,
							   0x05, 0x37, 0x62, 0x99 };
	const struct state_key key = key_of(&owners[0]);

	(void)state;
	assert_memory_equal(key.at, expected, sizeof(expected));
}

static void a_key_of_zeros_is_none(void **state)
{
	struct state_key key = { { 0 } };

	(void)state;
	assert_true(state_key_none(&key));
	key.at[STATE_KEY_BYTES - 1] = 1;
	assert_false(state_key_none(&key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_is_not_the_same_has_another_key),
		cmocka_unit_test(absent_and_empty_are_the_same),
		cmocka_unit_test(a_key_stays_the_same_in_all_versions),
		cmocka_unit_test(a_key_of_zeros_is_none),
	};
	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
