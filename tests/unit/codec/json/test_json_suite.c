/* JSONTestSuite (test_parsing): y_ must be accepted, n_ refused, i_ is up to us and listed here; by every
 * instruction set of the machine. */
#include "codec/set.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* What the parser may choose: numbers of any size are grammar and pass; whatever is not Unicode, and
 * 500 levels, is refused. */
static const char *const accepted[] = {
	"i_number_double_huge_neg_exp.json", "i_number_huge_exp.json",
	"i_number_neg_int_huge_exp.json",    "i_number_pos_double_huge_exp.json",
	"i_number_real_neg_overflow.json",   "i_number_real_pos_overflow.json",
	"i_number_real_underflow.json",      "i_number_too_big_neg_int.json",
	"i_number_too_big_pos_int.json",     "i_number_very_big_negative_int.json",
};

/* The suite calls these valid, which is RFC 8259's letter; we refuse them on purpose, because two
 * readers that pick different members of a pair disagree about what was said. */
static const char *const duplicates[] = {
	"y_object_duplicated_key.json",
	"y_object_duplicated_key_and_value.json",
};

static bool listed(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static enum err expected(const char *name, bool *any_error)
{
	*any_error =
		name[0] == 'n' || (name[0] == 'i' && !listed(name, accepted, COUNT_OF(accepted)));
	return listed(name, duplicates, COUNT_OF(duplicates)) ? ERR_DUPLICATE_KEY : ERR_OK;
}

/* A block of exactly the file's size, so that reading past its end is seen. */
static struct slice load(const char *directory, const char *name)
{
	char path[4096], buffer[256 * 1024];

	assert_true((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) < sizeof(path));
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t len = fread(buffer, 1, sizeof(buffer), file);
	assert_true(feof(file));
	(void)fclose(file);
	char *bytes = malloc(len == 0 ? 1 : len);
	assert_non_null(bytes);
	(void)memcpy(bytes, buffer, len);
	return slice_of(bytes, len);
}

static void check_file(struct json_work *work, const char *directory, const char *name)
{
	struct slice text = load(directory, name);
	const struct codec_set *set;
	bool any_error;
	enum err want = expected(name, &any_error);

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++) {
		struct fault fault = { .err = ERR_OK };
		bool valid = set->json_valid(text, NULL, work, &fault);
		if (any_error ? valid : fault.err != want)
			fail_msg("%s: %s: err %d at %u", set->name, name, (int)fault.err,
				 fault.offset);
	}
	free((void *)(uintptr_t)text.at);
}

#ifndef SOURCE_DIR
#define SOURCE_DIR "."
#endif

/* Where the suite is, or NULL. */
static DIR *suite_open(char *path, size_t size)
{
	static const char *const below[] = { "/test_parsing", "" };
	const char *shared = getenv("SLUICE_SHARED"), *source = getenv("SLUICE_SOURCE");

	for (size_t i = 0; i < COUNT_OF(below); i++) {
		if (shared != NULL)
			(void)snprintf(path, size, "%s/corpora/JSONTestSuite%s", shared, below[i]);
		else
			(void)snprintf(path, size, "%s/../shared/corpora/JSONTestSuite%s",
				       source != NULL ? source : SOURCE_DIR, below[i]);
		DIR *directory = opendir(path);
		struct dirent *entry;
		while (directory != NULL && (entry = readdir(directory)) != NULL)
			if (strncmp(entry->d_name, "y_", 2) == 0)
				return directory;
		if (directory != NULL)
			(void)closedir(directory);
	}
	return NULL;
}

enum { EXIT_SKIPPED = 77 }; /* what ctest shows as "Skipped" */
static bool skipped;

static void the_suite_agrees(void **state)
{
	char path[2048];
	DIR *directory = suite_open(path, sizeof(path));
	size_t y = 0, n = 0, i = 0;

	(void)state;
	if (directory == NULL) {
		print_message(
			"SKIPPED: JSONTestSuite is not at %s (SLUICE_SHARED names the place)\n",
			path);
		skipped = true;
		skip();
	}
	struct json_work *work = json_work_new(codec_set_best());
	assert_non_null(work);
	rewinddir(directory);
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (strstr(entry->d_name, ".json") == NULL)
			continue;
		check_file(work, path, entry->d_name);
		y += entry->d_name[0] == 'y';
		n += entry->d_name[0] == 'n';
		i += entry->d_name[0] == 'i';
	}
	json_work_free(work);
	(void)closedir(directory);
	assert_int_equal(y, 95);
	assert_int_equal(n, 188);
	assert_int_equal(i, 35);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_suite_agrees),
	};
	int failures = cmocka_run_group_tests_name("json_suite", tests, NULL, NULL);
	return failures == 0 && skipped ? EXIT_SKIPPED : failures;
}
