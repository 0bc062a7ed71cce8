#include "gateway/wrap/wrap_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIPES = 3, TO_CHILD = 0, FROM_CHILD, FAILURE };

/* In the child. Says by `failure` what went wrong. */
static _Noreturn void run(char **argv, const sigset_t *mask, int pipes[PIPES][2], pid_t parent)
{
	(void)signal(SIGPIPE, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
	    dup2(pipes[TO_CHILD][0], STDIN_FILENO) >= 0 &&
	    dup2(pipes[FROM_CHILD][1], STDOUT_FILENO) >= 0 &&
	    sigprocmask(SIG_SETMASK, mask, NULL) == 0)
		(void)execvp(argv[0], argv);
	const int error = errno;
	const ssize_t written = write(pipes[FAILURE][1], &error, sizeof(error));
	_exit(written == sizeof(error) ? WRAP_CHILD_NOT_RUN : WRAP_CHILD_NOT_FOUND);
}

static void close_all(int pipes[PIPES][2], int count)
{
	for (int i = 0; i < count; i++) {
		(void)close(pipes[i][0]);
		(void)close(pipes[i][1]);
	}
}

static bool open_pipes(int pipes[PIPES][2])
{
	for (int i = 0; i < PIPES; i++)
		if (pipe2(pipes[i], O_CLOEXEC) != 0) {
			close_all(pipes, i);
			return false;
		}
	if (fcntl(pipes[TO_CHILD][1], F_SETFL, O_NONBLOCK) == 0 &&
	    fcntl(pipes[FROM_CHILD][0], F_SETFL, O_NONBLOCK) == 0)
		return true;
	close_all(pipes, PIPES);
	return false;
}

static int complain(const char *what, int error)
{
	(void)fprintf(stderr, "sluice wrap: %s: %s\n", what, strerror(error));
	return error == ENOENT ? WRAP_CHILD_NOT_FOUND : WRAP_CHILD_NOT_RUN;
}

/* What the child has said before it could become the command; 0: it became it. */
static int wait_for_exec(int failure)
{
	int error = 0;
	ssize_t got;

	do
		got = read(failure, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	return got == sizeof(error) ? error : 0;
}

int wrap_child_start(char **argv, const sigset_t *mask, struct wrap_child *out)
{
	int pipes[PIPES][2];
	const pid_t parent = getpid();

	if (!open_pipes(pipes))
		return complain("pipe", errno);
	const pid_t pid = fork();
	if (pid == 0)
		run(argv, mask, pipes, parent);
	if (pid < 0) {
		const int error = errno;
		close_all(pipes, PIPES);
		return complain("fork", error);
	}
	(void)close(pipes[TO_CHILD][0]);
	(void)close(pipes[FROM_CHILD][1]);
	(void)close(pipes[FAILURE][1]);
	const int error = wait_for_exec(pipes[FAILURE][0]);
	(void)close(pipes[FAILURE][0]);
	*out = (struct wrap_child){ .pid = pid,
				    .in = pipes[TO_CHILD][1],
				    .out = pipes[FROM_CHILD][0] };
	if (error == 0)
		return 0;
	(void)close(out->in);
	(void)close(out->out);
	(void)waitpid(pid, NULL, 0);
	return complain(argv[0], error);
}

void wrap_child_follow(int status)
{
	if (WIFSIGNALED(status)) {
		const int number = WTERMSIG(status);
		sigset_t one;
		(void)signal(number, SIG_DFL);
		(void)sigemptyset(&one);
		(void)sigaddset(&one, number);
		(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
		(void)raise(number);
		exit(128 + number);
	}
	exit(WEXITSTATUS(status));
}
