/* user.h - whom the server process becomes, so that who takes it over has little (setting `user`). */
#ifndef GATEWAY_BASE_USER_H
#define GATEWAY_BASE_USER_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdbool.h>
#include <sys/types.h>

enum { USER_NAME_MAX = 64 };

struct user {
	char name[USER_NAME_MAX + 1]; /* "": nobody in particular, the process stays who it is */
	uid_t uid;
	gid_t gid; /* the first group; the others are looked up when it is time */
};

/* Looks `name` (at most USER_NAME_MAX bytes) up. False: this system has no such user. */
MUST_USE bool user_find(struct slice name, struct user *out);

/* Whether becoming `user` is a change: it is somebody, and this process is not that one already. */
MUST_USE bool user_is_another(const struct user *user);

/* Makes this process, which has one thread, that user for good: user, groups and capabilities, real,
 * effective and saved; and looks at the result before it says so. Needs CAP_SETUID and CAP_SETGID. A
 * death signal of the parent (PR_SET_PDEATHSIG) is lost by it. False after a line on stderr: the process
 * may be anything between the two then, and must end. */
MUST_USE bool user_become(const struct user *user);

/* Leaves this process, which stays who it is, of its capabilities the one to read files that are somebody
 * else's: CAP_DAC_READ_SEARCH, or CAP_DAC_OVERRIDE where it has but that (containers), or none where it has
 * neither. False after a line on stderr. */
MUST_USE bool user_keep_reading(void);

/* From here on no program that this process executes has more rights than itself. False after a line on
 * stderr. */
MUST_USE bool user_no_more_rights(void);

#endif
