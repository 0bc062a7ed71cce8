#include "gateway/base/cpu_quota.h"

#include "codec/base/attr.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES_MAX = 6, NONE = 0 };

/* A tree of cgroups: files by their paths, and what is in them. */
static const struct row {
	const char *name, *membership;
	const char *files[FILES_MAX][2];
	uint32_t cpus; /* NONE: no quota */
} rows[] = {
	{ "a container of its own namespace", "0::/\n", { { "/cpu.max", "200000 100000\n" } }, 2 },
	{ "rounded up", "0::/\n", { { "/cpu.max", "210000 100000\n" } }, 3 },
	{ "less than one", "0::/\n", { { "/cpu.max", "1000 100000\n" } }, 1 },
	{ "nothing at all", "0::/\n", { { "/cpu.max", "0 100000\n" } }, 1 },
	{ "none", "0::/\n", { { "/cpu.max", "max 100000\n" } }, NONE },
	{ "a period of nothing", "0::/\n", { { "/cpu.max", "100000 0\n" } }, NONE },
	{ "no numbers", "0::/\n", { { "/cpu.max", "" } }, NONE },
	{ "no file", "0::/a/b\n", { { "/a/b/other", "1 1\n" } }, NONE },
	{ "a service of systemd",
	  "0::/system.slice/sluice.service\n",
	  { { "/system.slice/cpu.max", "max 100000\n" },
	    { "/system.slice/sluice.service/cpu.max", "150000 100000\n" } },
	  2 },
	{ "a slice that leaves less",
	  "0::/a/b/c\n",
	  { { "/a/cpu.max", "100000 100000\n" },
	    { "/a/b/cpu.max", "max 100000\n" },
	    { "/a/b/c/cpu.max", "400000 100000\n" } },
	  1 },
	{ "not that of a neighbour", "0::/a/b\n", { { "/a/c/cpu.max", "100000 100000\n" } }, NONE },
	{ "a container that is shown the host's path",
	  "0::/docker/0123\n",
	  { { "/cpu.max", "300000 100000\n" } },
	  3 },
	{ "outside of its namespace",
	  "0::/../other\n",
	  { { "/cpu.max", "300000 100000\n" }, { "/other/cpu.max", "100000 100000\n" } },
	  NONE },
	{ "a name that begins with dots",
	  "0::/..a\n",
	  { { "/cpu.max", "300000 100000\n" }, { "/..a/cpu.max", "100000 100000\n" } },
	  1 },
	{ "a cgroup that is gone", "0::/a (deleted)\n", { { "/cpu.max", "300000 100000\n" } }, 3 },
	{ "the most", "0::/\n", { { "/cpu.max", "4294967294 1\n" } }, UINT32_MAX - 1 },
	{ "one more", "0::/\n", { { "/cpu.max", "4294967295 1\n" } }, NONE },
	{ "as much as there is", "0::/\n", { { "/cpu.max", "18446744073709551615 1\n" } }, NONE },
	{ "version 1",
	  "12:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/b\n",
	  { { "/cpu/a/cpu.cfs_quota_us", "250000\n" },
	    { "/cpu/a/cpu.cfs_period_us", "50000\n" },
	    { "/cpu/b/cpu.cfs_quota_us", "50000\n" },
	    { "/cpu/b/cpu.cfs_period_us", "50000\n" } },
	  5 },
	{ "version 1 in a container",
	  "4:cpuacct,cpu:/kubepods/0123\n",
	  { { "/cpu/cpu.cfs_quota_us", "200000\n" }, { "/cpu/cpu.cfs_period_us", "100000\n" } },
	  2 },
	{ "version 1 without one",
	  "4:cpu:/\n",
	  { { "/cpu/cpu.cfs_quota_us", "-1\n" }, { "/cpu/cpu.cfs_period_us", "100000\n" } },
	  NONE },
	{ "version 1 without the controller",
	  "4:cpuset,cpuacct:/\n",
	  { { "/cpu/cpu.cfs_quota_us", "100000\n" }, { "/cpu/cpu.cfs_period_us", "100000\n" } },
	  NONE },
	{ "both, version 2 without controllers",
	  "4:cpu:/a\n0::/b\n",
	  { { "/cpu/a/cpu.cfs_quota_us", "100000\n" }, { "/cpu/a/cpu.cfs_period_us", "100000\n" } },
	  1 },
	{ "lines that are none", "\nfour\n4:cpu\n", { { "/cpu.max", "100000 100000\n" } }, NONE },
	{ "no line", "", { { "/cpu.max", "100000 100000\n" } }, NONE },
};

static void put(const char *tree, const char *name, const char *text)
{
	char path[PATH_MAX];

	assert_true(snprintf(path, sizeof(path), "%s%s", tree, name) < (int)sizeof(path));
	for (char *slash = path + strlen(tree) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void discard(const char *tree)
{
	char command[PATH_MAX];

	assert_true(snprintf(command, sizeof(command), "rm -r %s", tree) < (int)sizeof(command));
	assert_int_equal(system(command), 0); /* NOLINT: a name of mkdtemp's */
}

static void least_quota_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char tree[] = "/tmp/sluice-cpu-quota-XXXXXX", membership[PATH_MAX];
		assert_non_null(mkdtemp(tree));
		for (size_t f = 0; f < FILES_MAX && rows[i].files[f][0] != NULL; f++)
			put(tree, rows[i].files[f][0], rows[i].files[f][1]);
		put(tree, "/membership", rows[i].membership);
		assert_true(snprintf(membership, sizeof(membership), "%s/membership", tree) <
			    (int)sizeof(membership));
		print_message("  %s\n", rows[i].name);
		assert_int_equal(cpu_quota(membership, tree),
				 rows[i].cpus == NONE ? UINT32_MAX : rows[i].cpus);
		discard(tree);
	}
}

static void nothing_is_known_without_files(void **state)
{
	(void)state;
	assert_int_equal(cpu_quota("/nonexistent/cgroup", "/sys/fs/cgroup"), UINT32_MAX);
}

static void a_path_too_long_hides_nothing_above_it(void **state)
{
	enum { DEEP = 3 * PATH_MAX };
	char tree[] = "/tmp/sluice-cpu-quota-XXXXXX", membership[PATH_MAX], *line = malloc(DEEP);

	(void)state;
	assert_non_null(line);
	assert_non_null(mkdtemp(tree));
	(void)memset(line, 'a', DEEP);
	(void)memcpy(line, "0::/", 4);
	for (size_t at = 100; at + 2 < DEEP; at += 100)
		line[at] = '/';
	line[DEEP - 2] = '\n';
	line[DEEP - 1] = '\0';
	put(tree, "/membership", line);
	put(tree, "/cpu.max", "400000 100000\n");
	assert_true(snprintf(membership, sizeof(membership), "%s/membership", tree) <
		    (int)sizeof(membership));
	assert_int_equal(cpu_quota(membership, tree), 4);
	discard(tree);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_quota_is_found),
		cmocka_unit_test(nothing_is_known_without_files),
		cmocka_unit_test(a_path_too_long_hides_nothing_above_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
