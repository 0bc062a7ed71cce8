#include "gateway/settings/settings_seen.h"

#include "codec/base/clock.h"
#include "codec/base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file may be written twice within the resolution of its times; one that is older than this has been
 * left alone since it was read. */
#define SETTLED (2 * SEC)

/* A digest of nothing in particular: cannot be read, or matches nothing. */
static const uint8_t none[SHA256_BYTES];
/* Nor is this one: a folder of the pattern cannot be read. */
static const uint8_t unread[SHA256_BYTES] = { 1 };

struct seen_entry {
	struct seen_entry *next;
	uint8_t loaded[SHA256_BYTES]; /* as the load has seen it */
	uint8_t now[SHA256_BYTES];    /* as the last look has */
	bool pattern;
	bool settled;     /* `now` holds for as long as `stat` does */
	struct stat stat; /* of a file, before it was read */
	size_t bytes_max;
	char path[];
};

struct settings_seen {
	struct seen_entry *first, **last;
	bool incomplete; /* for want of memory: everything counts as changed */
};

struct settings_seen *settings_seen_new(void)
{
	struct settings_seen *seen = calloc(1, sizeof(*seen));

	if (seen != NULL)
		seen->last = &seen->first;
	return seen;
}

void settings_seen_free(struct settings_seen **seen)
{
	if (*seen == NULL)
		return;
	for (struct seen_entry *at = (*seen)->first, *next; at != NULL; at = next) {
		next = at->next;
		free(at);
	}
	free(*seen);
	*seen = NULL;
}

/* ---- recording -------------------------------------------------------------------------------- */

/* NULL when there is nobody to tell, or no memory. */
static struct seen_entry *add(struct settings_seen *seen, struct slice path)
{
	if (seen == NULL)
		return NULL;
	struct seen_entry *entry = calloc(1, sizeof(*entry) + path.len + 1);
	if (entry == NULL) {
		seen->incomplete = true;
		return NULL;
	}
	memcpy(entry->path, path.at, path.len);
	*seen->last = entry;
	seen->last = &entry->next;
	return entry;
}

void settings_seen_file(struct settings_seen *seen, struct slice path, size_t bytes_max,
			struct slice text)
{
	struct seen_entry *entry = add(seen, path);

	if (entry == NULL)
		return;
	entry->bytes_max = bytes_max;
	if (!slice_absent(text))
		sha256(text, entry->loaded);
}

/* One path of a list, with the byte that ends it. */
static void add_path(struct sha256_sum *sum, const char *path)
{
	sha256_add(sum, slice_of(path, strlen(path) + 1));
}

void settings_seen_glob(struct settings_seen *seen, const char *pattern, const struct slice *paths,
			size_t count)
{
	struct seen_entry *entry = add(seen, slice_str(pattern));
	struct sha256_sum sum;

	if (entry == NULL)
		return;
	entry->pattern = true;
	if (count == 0)
		return;
	sha256_begin(&sum);
	for (size_t i = 0; i < count; i++)
		add_path(&sum, paths[i].at);
	sha256_end(&sum, entry->loaded);
}

void settings_seen_unread(struct settings_seen *seen, const char *pattern)
{
	struct seen_entry *entry = add(seen, slice_str(pattern));

	if (entry == NULL)
		return;
	entry->pattern = true;
	memcpy(entry->loaded, unread, sizeof(entry->loaded));
}

static _Thread_local struct unread_folder last_unread; /* glob(3) hands no context on */

static int on_unread(const char *path, int error)
{
	if (error == ENOENT || error == ENOTDIR)
		return 0;
	(void)snprintf(last_unread.path, sizeof(last_unread.path), "%s", path);
	last_unread.error = error;
	return 1;
}

int settings_glob(const char *pattern, int flags, glob_t *found, struct unread_folder *folder)
{
	const int error = glob(pattern, flags, on_unread, found);

	if (error == GLOB_ABORTED)
		*folder = last_unread;
	return error;
}

/* ---- looking again ---------------------------------------------------------------------------- */

/* False: it cannot be read, or has more than `bytes_max`. */
static bool sum_file(int fd, size_t bytes_max, uint8_t digest[SHA256_BYTES])
{
	char piece[16384];
	struct sha256_sum sum;
	size_t total = 0;
	ssize_t n;

	sha256_begin(&sum);
	while ((n = read(fd, piece, sizeof(piece))) > 0 && (total += (size_t)n) <= bytes_max)
		sha256_add(&sum, slice_of(piece, (size_t)n));
	sha256_end(&sum, digest);
	explicit_bzero(piece, sizeof(piece)); /* it may be a secret */
	return n == 0;
}

static uint64_t time_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * SEC + (uint64_t)time->tv_nsec;
}

static bool is_old(const struct stat *stat, uint64_t wall_ns)
{
	uint64_t written = time_of(&stat->st_mtim), changed = time_of(&stat->st_ctim);
	uint64_t latest = written > changed ? written : changed;

	return latest < wall_ns && wall_ns - latest >= SETTLED;
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       time_of(&a->st_mtim) == time_of(&b->st_mtim) &&
	       time_of(&a->st_ctim) == time_of(&b->st_ctim);
}

static void look_at_file(struct seen_entry *entry, uint64_t wall_ns)
{
	struct stat now = { 0 };
	uint8_t digest[SHA256_BYTES];

	if (stat(entry->path, &now) == 0 && entry->settled && same_stat(&now, &entry->stat))
		return;
	int fd = open(entry->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool read =
		fd >= 0 && fstat(fd, &entry->stat) == 0 && sum_file(fd, entry->bytes_max, digest);
	memcpy(entry->now, read ? digest : none, sizeof(entry->now));
	entry->settled = read && is_old(&entry->stat, wall_ns);
	if (fd >= 0)
		(void)close(fd);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void look_at_pattern(struct seen_entry *entry)
{
	glob_t found = { 0 };
	struct unread_folder folder;
	struct sha256_sum sum;
	const int error = settings_glob(entry->path, GLOB_NOSORT, &found, &folder);

	memcpy(entry->now, error == GLOB_ABORTED ? unread : none, sizeof(entry->now));
	if (error == 0) {
		qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), by_bytes);
		sha256_begin(&sum);
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_path(&sum, found.gl_pathv[i]);
		sha256_end(&sum, entry->now);
	}
	globfree(&found);
}

bool settings_seen_look(struct settings_seen *seen, uint64_t wall_ns, uint8_t state[SHA256_BYTES])
{
	bool changed = seen->incomplete;
	struct sha256_sum sum;

	sha256_begin(&sum);
	for (struct seen_entry *at = seen->first; at != NULL; at = at->next) {
		if (at->pattern)
			look_at_pattern(at);
		else
			look_at_file(at, wall_ns);
		changed = changed || memcmp(at->now, at->loaded, sizeof(at->now)) != 0;
		sha256_add(&sum, slice_of((const char *)at->now, sizeof(at->now)));
	}
	sha256_end(&sum, state);
	return changed;
}
