/* cmocka.h - as much of cmocka as unit/codec/test_set.c and golden/test_vectors.c use, for architectures
 * whose package is not installed (integration/test_codec_neon.py). The first failure ends the program. */
#ifndef TESTS_SUPPORT_CROSS_CMOCKA_H
#define TESTS_SUPPORT_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	void *initial_state;
};

#define cmocka_unit_test_prestate(function, state) \
	{                                          \
#function, function, state         \
	}
#define cmocka_unit_test(function) cmocka_unit_test_prestate(function, NULL)

/* Only in a test's own function. */
#define skip()                             \
	do {                               \
		(void)printf("skipped, "); \
		return;                    \
	} while (0)

#define fail_msg(...)                      \
	do {                               \
		(void)printf(__VA_ARGS__); \
		(void)printf("\n");        \
		exit(1);                   \
	} while (0)
#define assert_true(claim)                                                         \
	do {                                                                       \
		if (!(claim))                                                      \
			fail_msg("%s:%d: not so: %s", __FILE__, __LINE__, #claim); \
	} while (0)
#define assert_false(claim) assert_true(!(claim))
#define assert_null(pointer) assert_true((pointer) == NULL)
#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b) assert_true((long long)(a) == (long long)(b))
#define assert_in_range(value, low, high) assert_true((value) >= (low) && (value) <= (high))
#define assert_string_equal(a, b) assert_true(strcmp((a), (b)) == 0)

static inline int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests,
					  size_t count, int (*begin)(void **), int (*end)(void **))
{
	void *state = NULL;

	(void)printf("%s\n", name);
	if (begin != NULL && begin(&state) != 0)
		return 1;
	for (size_t i = 0; i < count; i++) {
		void *own = tests[i].initial_state;
		tests[i].test_func(own == NULL ? &state : &own);
		(void)printf("%s: OK\n", tests[i].name);
	}
	return end == NULL ? 0 : end(&state);
}
#define cmocka_run_group_tests_name(name, tests, begin, end) \
	_cmocka_run_group_tests((name), (tests), sizeof(tests) / sizeof((tests)[0]), (begin), (end))

#endif
