/* cmocka.h - as much of cmocka as unit/codec/test_set.c uses, for architectures whose package is not
 * installed (integration/test_codec_neon.py). The first failure ends the program. */
#ifndef TESTS_SUPPORT_CROSS_CMOCKA_H
#define TESTS_SUPPORT_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

#define cmocka_unit_test(function)  \
	{                           \
#function, function \
	}

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

static inline int run_tests(const struct CMUnitTest *tests, size_t count, int (*begin)(void **),
			    int (*end)(void **))
{
	void *state = NULL;

	if (begin(&state) != 0)
		return 1;
	for (size_t i = 0; i < count; i++) {
		tests[i].run(&state);
		(void)printf("%s: OK\n", tests[i].name);
	}
	return end(&state);
}
#define cmocka_run_group_tests_name(name, tests, begin, end) \
	run_tests((tests), sizeof(tests) / sizeof((tests)[0]), (begin), (end))

#endif
