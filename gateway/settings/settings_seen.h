/* settings_seen.h - what a load of the configuration has seen on disk, and whether that has changed.
 *
 * Files by their contents, patterns by the paths they match: also those that could not be read, so that
 * a file that was missing is noticed when it comes. Contents, because a swapped symbolic link or a
 * touched file is no change, and a file's time does not tell two writes of one moment apart; it only
 * saves reading what cannot have changed. */
#ifndef GATEWAY_SETTINGS_SETTINGS_SEEN_H
#define GATEWAY_SETTINGS_SETTINGS_SEEN_H

#include "codec/base/attr.h"
#include "codec/base/sha256.h"

#include <glob.h>
#include <stdbool.h>

struct settings_seen;

/* NULL: memory. */
struct settings_seen *settings_seen_new(void);
/* Accepts a pointer to NULL. */
void settings_seen_free(struct settings_seen **seen);

/* ---- by the load. `seen` NULL: nobody asks ---- */

/* `text`: what was read of a file that may have `bytes_max`; absent: it could not be read. */
void settings_seen_file(struct settings_seen *seen, struct slice path, size_t bytes_max,
			struct slice text);
/* The paths that a glob(3) pattern matched, in the order of their bytes. */
void settings_seen_glob(struct settings_seen *seen, const char *pattern, const struct slice *paths,
			size_t count);
/* The same where a folder could not be read. */
void settings_seen_unread(struct settings_seen *seen, const char *pattern);

/* A folder of a pattern that cannot be read. */
struct unread_folder {
	char path[256]; /* as much of it as fits */
	int error;      /* errno */
};

/* glob(3), for which a folder that is not there has no files; one that cannot be read ends it with GLOB_ABORTED, and
 * *unread is that. */
int settings_glob(const char *pattern, int flags, glob_t *found, struct unread_folder *unread);

/* ---- afterwards ---- */

/* Looks again. True when something is not as the load has seen it. `state` names what is there now: the
 * same bytes as after another look mean that nothing has changed between the two. `wall_ns` is the wall
 * clock, which the times of files are compared with. */
MUST_USE bool settings_seen_look(struct settings_seen *seen, uint64_t wall_ns,
				 uint8_t state[SHA256_BYTES]);

#endif
