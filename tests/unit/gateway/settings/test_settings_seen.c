/* test_settings_seen.c - whether the files of a configuration have changed, on real files. */
#include "gateway/settings/settings_seen.h"

#include "codec/base/clock.h"
#include "gateway/settings/settings.h"
#include "tests/unit/gateway/ca_pem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

/* Later than anything that a test writes: what was read once is believed to be settled. */
#define LATE (UINT64_C(7258118400) * SEC)
/* Earlier: no file's time is believed. */
#define EARLY (1 * SEC)

struct disk {
	char directory[64];
	struct settings_seen *seen;
	uint8_t state[SHA256_BYTES];
};

static const char *path_of(const struct disk *disk, const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", disk->directory, name);
	return path;
}

static void write_file(const struct disk *disk, const char *name, const char *text)
{
	FILE *file = fopen(path_of(disk, name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct disk *disk = calloc(1, sizeof(*disk));

	assert_non_null(disk);
	(void)strcpy(disk->directory, "/tmp/sluice-seen-XXXXXX");
	assert_non_null(mkdtemp(disk->directory));
	disk->seen = settings_seen_new();
	assert_non_null(disk->seen);
	*state = disk;
	return 0;
}

static int tear_down(void **state)
{
	struct disk *disk = *state;
	char command[128];

	settings_seen_free(&disk->seen);
	settings_seen_free(&disk->seen);
	(void)snprintf(command, sizeof(command), "rm -r %s", disk->directory);
	assert_int_equal(system(command), 0);
	free(disk);
	return 0;
}

static void seen_file(struct disk *disk, const char *name, const char *text)
{
	settings_seen_file(disk->seen, slice_str(path_of(disk, name)), 1000,
			   text == NULL ? (struct slice){ NULL, 0 } : slice_str(text));
}

static bool look(struct disk *disk, uint64_t wall_ns)
{
	return settings_seen_look(disk->seen, wall_ns, disk->state);
}

static void what_is_as_it_was_has_not_changed(void **state)
{
	struct disk *disk = *state;

	write_file(disk, "a", "one");
	seen_file(disk, "a", "one");
	seen_file(disk, "missing", NULL);
	assert_false(look(disk, LATE));
	assert_false(look(disk, LATE));
}

static void another_content_is_a_change_until_it_is_put_back(void **state)
{
	struct disk *disk = *state;
	uint8_t before[SHA256_BYTES];

	write_file(disk, "a", "one");
	seen_file(disk, "a", "one");
	assert_false(look(disk, LATE));
	memcpy(before, disk->state, sizeof(before));
	write_file(disk, "a", "another");
	assert_true(look(disk, LATE));
	assert_memory_not_equal(before, disk->state, sizeof(before));
	write_file(disk, "a", "one");
	assert_false(look(disk, LATE));
	assert_memory_equal(before, disk->state, sizeof(before));
}

static void the_state_tells_two_changes_apart(void **state)
{
	struct disk *disk = *state;
	uint8_t before[SHA256_BYTES];

	seen_file(disk, "a", "one");
	write_file(disk, "a", "on");
	assert_true(look(disk, LATE));
	memcpy(before, disk->state, sizeof(before));
	assert_true(look(disk, LATE));
	assert_memory_equal(before, disk->state, sizeof(before));
	write_file(disk, "a", "on the way");
	assert_true(look(disk, LATE));
	assert_memory_not_equal(before, disk->state, sizeof(before));
}

/* Same size and, as far as its times tell, the same moment. */
static void a_second_write_in_the_same_moment_is_noticed(void **state)
{
	struct disk *disk = *state;
	const struct timeval times[2] = { { 1700000000, 0 }, { 1700000000, 0 } };

	write_file(disk, "a", "one");
	assert_int_equal(utimes(path_of(disk, "a"), times), 0);
	seen_file(disk, "a", "one");
	assert_false(look(disk, EARLY));
	write_file(disk, "a", "two");
	assert_int_equal(utimes(path_of(disk, "a"), times), 0);
	assert_true(look(disk, EARLY));
}

static void a_file_that_comes_or_goes_is_a_change(void **state)
{
	struct disk *disk = *state;

	write_file(disk, "a", "one");
	seen_file(disk, "a", "one");
	seen_file(disk, "b", NULL);
	assert_false(look(disk, LATE));
	write_file(disk, "b", "two");
	assert_true(look(disk, LATE));
	assert_int_equal(unlink(path_of(disk, "b")), 0);
	assert_false(look(disk, LATE));
	assert_int_equal(unlink(path_of(disk, "a")), 0);
	assert_true(look(disk, LATE));
}

static void what_cannot_be_read_as_a_file_counts_as_missing(void **state)
{
	struct disk *disk = *state;
	char text[1002];

	seen_file(disk, "a", NULL);
	assert_int_equal(mkdir(path_of(disk, "a"), 0700), 0);
	assert_false(look(disk, LATE));
	assert_int_equal(rmdir(path_of(disk, "a")), 0);
	memset(text, 'x', sizeof(text));
	text[1001] = '\0';
	write_file(disk, "a", text); /* a byte more than it may have */
	assert_false(look(disk, LATE));
	text[1000] = '\0';
	write_file(disk, "a", text);
	assert_true(look(disk, LATE));
}

static void write_version(const struct disk *disk, const char *version, const char *text)
{
	char name[32];

	assert_int_equal(mkdir(path_of(disk, version), 0700), 0);
	(void)snprintf(name, sizeof(name), "%s/key", version);
	write_file(disk, name, text);
}

/* A projected volume: files are links through "..data", which is replaced as a whole. */
static void a_kubernetes_swap_is_a_change_if_the_content_is(void **state)
{
	struct disk *disk = *state;

	write_version(disk, "..1", "one");
	write_version(disk, "..2", "one");
	write_version(disk, "..3", "two");
	assert_int_equal(symlink("..1", path_of(disk, "..data")), 0);
	assert_int_equal(symlink("..data/key", path_of(disk, "key")), 0);
	seen_file(disk, "key", "one");
	assert_false(look(disk, LATE));
	assert_int_equal(symlink("..2", path_of(disk, "..new")), 0);
	assert_int_equal(rename(path_of(disk, "..new"), path_of(disk, "..data")), 0);
	assert_false(look(disk, LATE));
	assert_int_equal(symlink("..3", path_of(disk, "..new")), 0);
	assert_int_equal(rename(path_of(disk, "..new"), path_of(disk, "..data")), 0);
	assert_true(look(disk, LATE));
}

static void a_pattern_changes_with_the_paths_it_matches(void **state)
{
	struct disk *disk = *state;
	char a[128], b[128];

	write_file(disk, "b.yaml", "");
	write_file(disk, "a.yaml", "");
	(void)strcpy(a, path_of(disk, "a.yaml"));
	(void)strcpy(b, path_of(disk, "b.yaml"));
	const struct slice paths[] = { slice_str(a), slice_str(b) };
	settings_seen_glob(disk->seen, path_of(disk, "*.yaml"), paths, 2);
	settings_seen_glob(disk->seen, path_of(disk, "*.json"), NULL, 0);
	assert_false(look(disk, LATE));
	write_file(disk, "a.txt", "");
	assert_false(look(disk, LATE));
	write_file(disk, "c.yaml", "");
	assert_true(look(disk, LATE));
	assert_int_equal(unlink(path_of(disk, "c.yaml")), 0);
	assert_false(look(disk, LATE));
	write_file(disk, "c.json", "");
	assert_true(look(disk, LATE));
}

static const char base[] =
	"providers: {main: {dialect: openai, endpoints: [{url: \"https://llm.example\"}],"
	" ca: ca.crt, keys: [\"file:key\"]}}\n"
	"models: [{id: m, provider: main, context: 1, price: {input: 1, output: 1}}]\n"
	"tenants: [{files: \"tenants.d/*.yaml\"}]\n";

/* A whole load, good or not. */
static bool load(struct disk *disk)
{
	char path[128], *text = NULL;
	size_t len = 0;
	FILE *problems = open_memstream(&text, &len);

	(void)strcpy(path, path_of(disk, "sluice.yaml"));
	settings_seen_free(&disk->seen);
	disk->seen = settings_seen_new();
	const struct settings_source source = { .path = path, .seen = disk->seen };
	struct config *config = settings_load(&source, problems);
	bool loaded = config != NULL;
	settings_free(&config);
	assert_int_equal(fclose(problems), 0);
	free(text);
	return loaded;
}

static void every_file_that_a_configuration_names_is_looked_at(void **state)
{
	static const char *const names[] = { "sluice.yaml", "ca.crt", "key", "tenants.d/a.yaml",
					     "tenants.d/b.yaml" };
	struct disk *disk = *state;

	write_file(disk, "sluice.yaml", base);
	write_file(disk, "ca.crt", test_ca);
	write_file(disk, "key", "secret\n");
	assert_int_equal(mkdir(path_of(disk, "tenants.d"), 0700), 0);
	write_file(disk, "tenants.d/a.yaml", "- {id: a}\n");
	assert_true(load(disk));
	assert_false(look(disk, LATE));
	write_file(disk, "tenants.d/b.yaml", "- {id: b}\n");
	assert_true(look(disk, LATE));
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		assert_true(load(disk));
		assert_false(look(disk, LATE));
		FILE *file = fopen(path_of(disk, names[i]), "ae");
		assert_non_null(file);
		assert_true(fputs("\n", file) >= 0);
		assert_int_equal(fclose(file), 0);
		if (!look(disk, LATE))
			fail_msg("%s", names[i]);
		write_file(disk, "key", "secret\n"); /* which may not end in two of them */
	}
}

/* Parts of a configuration may come one after the other. */
static void a_load_that_failed_is_tried_again_when_what_it_missed_is_there(void **state)
{
	struct disk *disk = *state;

	write_file(disk, "sluice.yaml", base);
	assert_false(load(disk));
	assert_false(look(disk, LATE));
	write_file(disk, "ca.crt", "no certificate\n");
	assert_true(look(disk, LATE));
	assert_false(load(disk));
	assert_false(look(disk, LATE));
	write_file(disk, "key", "secret\n");
	assert_true(look(disk, LATE));
	assert_false(load(disk));
	assert_false(look(disk, LATE));
	assert_int_equal(mkdir(path_of(disk, "tenants.d"), 0700), 0);
	write_file(disk, "tenants.d/a.yaml", "- {id: a}\n");
	assert_true(look(disk, LATE));
}

static void a_folder_that_could_not_be_read_is_looked_at_again(void **state)
{
	struct disk *disk = *state;

	write_file(disk, "sluice.yaml", base);
	write_file(disk, "ca.crt", test_ca);
	write_file(disk, "key", "secret\n");
	assert_int_equal(symlink("tenants.d", path_of(disk, "tenants.d")),
			 0); /* which leads nowhere */
	assert_false(load(disk));
	assert_false(look(disk, LATE));
	assert_int_equal(unlink(path_of(disk, "tenants.d")), 0);
	assert_true(look(disk, LATE));
	assert_true(load(disk));
	assert_false(look(disk, LATE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define DISK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		DISK(what_is_as_it_was_has_not_changed),
		DISK(another_content_is_a_change_until_it_is_put_back),
		DISK(the_state_tells_two_changes_apart),
		DISK(a_second_write_in_the_same_moment_is_noticed),
		DISK(a_file_that_comes_or_goes_is_a_change),
		DISK(what_cannot_be_read_as_a_file_counts_as_missing),
		DISK(a_kubernetes_swap_is_a_change_if_the_content_is),
		DISK(a_pattern_changes_with_the_paths_it_matches),
		DISK(every_file_that_a_configuration_names_is_looked_at),
		DISK(a_load_that_failed_is_tried_again_when_what_it_missed_is_there),
		DISK(a_folder_that_could_not_be_read_is_looked_at_again),
	};
	return cmocka_run_group_tests_name("settings_seen", tests, NULL, NULL);
}
