/* redis_login.h - who a connection to Redis says it is, in memory of its own: configurations come and go. */
#ifndef GATEWAY_REDIS_REDIS_LOGIN_H
#define GATEWAY_REDIS_REDIS_LOGIN_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdbool.h>

enum { REDIS_LOGIN_WORDS = 3 };

/* Zero-initialised there is none. */
struct redis_login {
	struct slice user, password; /* absent: not sent */
	char *text;                  /* theirs, or NULL */
	size_t len;
};

/* Whether these are the ones it has; absent is not the same as empty. */
bool redis_login_is(const struct redis_login *login, struct slice user, struct slice password);

/* Takes copies in the place of what it had, which is wiped. False: no memory, and it stays as it was. */
MUST_USE bool redis_login_set(struct redis_login *login, struct slice user, struct slice password);

/* The command that logs in, as slices of `login`; how many they are. 0: there is no password. */
uint32_t redis_login_command(const struct redis_login *login, struct slice out[REDIS_LOGIN_WORDS]);

/* Wipes it. */
void redis_login_fini(struct redis_login *login);

#endif
