#include "gateway/process/supervisor_reader.h"

#include "gateway/base/user.h"
#include "gateway/ipc/config_reader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_AGAIN (1 * SEC)

enum { OWN_FD = STDERR_FILENO + 1 };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

bool supervisor_reader_init(struct supervisor_reader *r, const char *config_path)
{
	r->config_path = config_path;
	r->start_at = 0;
	if (reader_pair(r->pair))
		return true;
	perror("sluice: a pair of sockets for the reader");
	return false;
}

/* In the child; the process ends here. Of what the supervisor has open it keeps nothing but stderr and
 * its end of the pair, of what it may do nothing but reading. */
static _Noreturn void be_reader(struct supervisor_reader *r, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_NAME, "sluice-reader"); /* for ps */
	if (dup2(r->pair[0], OWN_FD) != OWN_FD || close_range(OWN_FD + 1, ~0U, 0) != 0 ||
	    !user_keep_reading() || !user_no_more_rights()) {
		perror("sluice: the reader cannot begin");
		_exit(1);
	}
	reader_run(OWN_FD, r->config_path);
	_exit(0);
}

void supervisor_reader_tick(struct supervisor_reader *r, nsec_t now)
{
	pid_t self = getpid();

	if (r->pair[0] < 0 || r->pid != 0 || now < r->start_at)
		return;
	(void)fflush(stdout); /* else the child would write it again */
	(void)fflush(stderr);
	pid_t pid = fork();
	if (pid == 0)
		be_reader(r, self);
	if (pid > 0) {
		r->pid = pid;
		return;
	}
	perror("sluice: the reader cannot be started");
	r->start_at = now + START_AGAIN;
}

bool supervisor_reader_ended(struct supervisor_reader *r, pid_t pid, int status, nsec_t now)
{
	if (r->pid == 0 || r->pid != pid)
		return false;
	(void)fprintf(stderr, "sluice: the reader of the configuration %s %d; another starts\n",
		      WIFSIGNALED(status) ? "was ended by signal" : "ended with exit code",
		      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	r->pid = 0;
	r->start_at = now + START_AGAIN;
	return true;
}

void supervisor_reader_fini(struct supervisor_reader *r)
{
	if (r->pid != 0) {
		(void)kill(r->pid, SIGKILL);
		while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	r->pid = 0;
	close_fd(&r->pair[0]);
	close_fd(&r->pair[1]);
}
