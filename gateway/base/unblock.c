#include "gateway/base/unblock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK belongs to the open file, which others may share: a terminal's shell, a pipe's other
 * writers. Opened again it is ours alone. */
static bool open_again(void)
{
	int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_APPEND | O_CLOEXEC | O_NOCTTY);

	if (own < 0)
		return false;
	bool done = dup2(own, STDERR_FILENO) == STDERR_FILENO;
	(void)close(own);
	return done;
}

void unblock_stderr(void)
{
	struct stat file;

	if (fstat(STDERR_FILENO, &file) != 0 || S_ISREG(file.st_mode) || open_again())
		return;
	/* Sockets (the journal's) cannot be opened again, nor pipes of another user; what shares them is
	 * as good as always this service alone. */
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	if (flags != -1 && (S_ISSOCK(file.st_mode) || S_ISFIFO(file.st_mode)))
		(void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
}
