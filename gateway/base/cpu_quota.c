#include "gateway/base/cpu_quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long number;

static uint32_t least_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* UINT32_MAX for a quota that is none, as -1 is when it is read as one. */
static uint32_t cpus_of(number quota, number period)
{
	if (period == 0 || quota / period >= UINT32_MAX)
		return UINT32_MAX;
	const uint32_t cpus = (uint32_t)(quota / period) + (quota % period != 0);
	return cpus == 0 ? 1 : cpus;
}

/* The first numbers in a file of a cgroup, one or two; how many there are. */
static int numbers_of(const char *group, const char *name, number *first, number *second)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", group, name) >= (int)sizeof(path))
		return 0;
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return 0;
	const int count = fscanf(file, "%llu %llu", first, second); /* "max 100000" has none */
	(void)fclose(file);
	return count;
}

/* The quota of one cgroup, of either version. */
static uint32_t quota_of(const char *group)
{
	number quota, period, none;

	if (numbers_of(group, "cpu.max", &quota, &period) == 2)
		return cpus_of(quota, period);
	if (numbers_of(group, "cpu.cfs_quota_us", &quota, &none) == 1 &&
	    numbers_of(group, "cpu.cfs_period_us", &period, &none) == 1)
		return cpus_of(quota, period);
	return UINT32_MAX;
}

/* Of the cgroup `path` and those above it; `path` is cut short on the way. */
static uint32_t quota_up_from(const char *hierarchy, char *path)
{
	uint32_t least = UINT32_MAX;
	char group[PATH_MAX];

	for (;;) {
		if (snprintf(group, sizeof(group), "%s%s", hierarchy, path) < (int)sizeof(group))
			least = least_of(least, quota_of(group));
		char *slash = strrchr(path, '/');
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

static bool has_cpu(char *controllers)
{
	char *rest = controllers;

	for (const char *one = strsep(&rest, ","); one != NULL; one = strsep(&rest, ","))
		if (strcmp(one, "cpu") == 0)
			return true;
	return false;
}

/* Of one line of `membership`: NUMBER:CONTROLLERS:PATH, without controllers in version 2. */
static uint32_t quota_of_line(char *line, const char *tree)
{
	char hierarchy[PATH_MAX], *rest = line;

	(void)strsep(&rest, ":");
	char *controllers = strsep(&rest, ":"), *path = rest;
	if (path == NULL)
		return UINT32_MAX;
	path[strcspn(path, "\n")] = '\0';
	if (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
		return UINT32_MAX; /* outside of what this namespace shows */
	if (*controllers == '\0')
		return quota_up_from(tree, path);
	if (!has_cpu(controllers) ||
	    snprintf(hierarchy, sizeof(hierarchy), "%s/cpu", tree) >= (int)sizeof(hierarchy))
		return UINT32_MAX;
	return quota_up_from(hierarchy, path);
}

uint32_t cpu_quota(const char *membership, const char *tree)
{
	uint32_t least = UINT32_MAX;
	char *line = NULL;
	size_t size = 0;
	FILE *file = fopen(membership, "re");

	if (file == NULL)
		return UINT32_MAX;
	while (getline(&line, &size, file) > 0)
		least = least_of(least, quota_of_line(line, tree));
	free(line);
	(void)fclose(file);
	return least;
}
