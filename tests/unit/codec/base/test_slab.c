#include "codec/base/slab.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void full_is_an_answer(void **state)
{
	struct slab slab;
	void *objects[3];

	(void)state;
	assert_true(slab_init(&slab, 24, 3));
	for (size_t i = 0; i < 3; i++) {
		objects[i] = slab_take(&slab);
		assert_non_null(objects[i]);
		(void)memset(objects[i], 0xff, 24);
	}
	assert_null(slab_take(&slab));
	slab_give(&slab, objects[1]);
	assert_ptr_equal(slab_take(&slab), objects[1]);
	for (size_t i = 0; i < 3; i++)
		slab_give(&slab, objects[i]);
	slab_fini(&slab);
}

static void the_warmest_object_is_used_again(void **state)
{
	struct slab slab;

	(void)state;
	assert_true(slab_init(&slab, 64, 8));
	void *a = slab_take(&slab), *b = slab_take(&slab);
	slab_give(&slab, a);
	slab_give(&slab, b);
	assert_ptr_equal(slab_take(&slab), b);
	assert_ptr_equal(slab_take(&slab), a);
	slab_give(&slab, a);
	slab_give(&slab, b);
	slab_fini(&slab);
}

static void it_counts_what_is_out_and_the_high_mark(void **state)
{
	struct slab slab;

	(void)state;
	assert_true(slab_init(&slab, 16, 4));
	void *a = slab_take(&slab), *b = slab_take(&slab);
	assert_int_equal(slab.out, 2);
	slab_give(&slab, a);
	assert_int_equal(slab.out, 1);
	assert_int_equal(slab.out_high, 2);
	slab_give(&slab, b);
	assert_int_equal(slab.out, 0);
	slab_fini(&slab);
}

static void objects_are_aligned_and_apart(void **state)
{
	struct slab slab;
	char *last = NULL;

	(void)state;
	assert_true(slab_init(&slab, 17, 5));
	void *objects[5];
	for (size_t i = 0; i < 5; i++) {
		objects[i] = slab_take(&slab);
		assert_int_equal((uintptr_t)objects[i] % 16, 0);
		if (last != NULL)
			assert_true((char *)objects[i] - last >= 17);
		last = objects[i];
	}
	for (size_t i = 0; i < 5; i++)
		slab_give(&slab, objects[i]);
	slab_fini(&slab);
}

static void a_large_one_has_all_its_objects_and_too_large_a_one_is_refused(void **state)
{
	enum { SIZE = 1 << 20, COUNT = 32 };
	struct slab slab;
	char *objects[COUNT];

	(void)state;
	assert_true(slab_init(&slab, SIZE, COUNT));
	for (size_t i = 0; i < COUNT; i++) {
		objects[i] = slab_take(&slab);
		assert_non_null(objects[i]);
		objects[i][0] = objects[i][SIZE - 1] = (char)i;
	}
	assert_null(slab_take(&slab));
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(objects[i][0] + objects[i][SIZE - 1], 2 * i);
		slab_give(&slab, objects[i]);
	}
	void *gone = slab.objects;
	unsigned char resident;
	slab_fini(&slab);
	assert_int_equal(mincore(gone, 1, &resident), -1); /* the kernel has it back */
	assert_int_equal(errno, ENOMEM);
	assert_false(slab_init(&slab, SIZE, SIZE_MAX / SIZE)); /* more than there are addresses */
	assert_false(slab_init(&slab, SIZE, SIZE_MAX / 2));
	slab_fini(&slab); /* harmless */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_is_an_answer),
		cmocka_unit_test(the_warmest_object_is_used_again),
		cmocka_unit_test(it_counts_what_is_out_and_the_high_mark),
		cmocka_unit_test(objects_are_aligned_and_apart),
		cmocka_unit_test(a_large_one_has_all_its_objects_and_too_large_a_one_is_refused),
	};
	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
