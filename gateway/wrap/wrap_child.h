/* wrap_child.h - the wrapped server's process. */
#ifndef GATEWAY_WRAP_WRAP_CHILD_H
#define GATEWAY_WRAP_WRAP_CHILD_H

#include "codec/base/attr.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct wrap_child {
	pid_t pid;
	int in, out; /* the ends of its standard input and output that are ours: non-blocking, close on exec */
};

enum { WRAP_CHILD_NOT_FOUND = 127, WRAP_CHILD_NOT_RUN = 126 };

/* Starts `argv` with the signal mask `mask` and SIGPIPE at its default; standard error is shared. It gets SIGTERM when
 * this process dies, however that happens. 0; or the exit status of a command that cannot be run, as env(1) has it,
 * after a line on stderr. */
MUST_USE int wrap_child_start(char **argv, const sigset_t *mask, struct wrap_child *out);

/* Ends this process as the child ended, whose status waitpid(2) has given: by its code, or by its signal. */
_Noreturn void wrap_child_follow(int status);

#endif
