#include "gateway/process/supervisor.h"

#include "codec/base/must.h"
#include "gateway/base/unblock.h"
#include "gateway/base/user.h"
#include "gateway/ipc/server_report.h"
#include "gateway/limits/limit_table.h"
#include "gateway/process/server.h"
#include "gateway/process/supervisor_listen.h"
#include "gateway/process/supervisor_reader.h"
#include "gateway/process/supervisor_restart.h"
#include "gateway/settings/settings.h"
#include "gateway/tls/tls_tickets.h"
#include "gateway/worker/descriptors.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* limit_table_create makes at least twice as many */
	LIMIT_SLOTS_MIN = 65536,
	LIMIT_SLOTS_PER_TENANT = 4, /* tenants come and go by reload, slots stay */
};
#define KILL_GRACE (5 * SEC) /* beyond the drain, before SIGKILL */
#define DRAIN_MAX \
	(86400 * SEC) /* as in tbl/settings.h, for a server that somebody else speaks for */

struct supervisor {
	const char *config_path;
	struct supervisor_sockets sockets;
	int limits_fd, signals_fd;
	struct tls_tickets *tickets; /* in memory that servers share */
	struct seal_secret seal;     /* random; servers inherit it by fork */
	/* What the next server begins with: the configuration loaded at start, inherited by fork, until
	 * a server reports a newer one. */
	struct config *first;
	int texts_fd;     /* -1: `first` is in force */
	nsec_t drain;     /* of the configuration in force */
	struct user user; /* whom servers become; name "": nobody else */
	struct supervisor_reader reader;
	/* the server */
	pid_t server; /* 0: there is none */
	int report_fd;
	bool ready;
	uint64_t started_count;
	nsec_t started, start_at;
	struct supervisor_restart restart;
	bool reload_missed; /* SIGHUP came while there was no server */
	/* the end */
	bool stopping;
	bool told_by_server; /* to stop: whoever told it may have told us as well */
	nsec_t kill_at;
	int exit_code; /* -1: goes on */
};

static nsec_t now_ns(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* ---- the server process ---------------------------------------------------------------------- */

/* In the child: the configuration it begins with, NULL after a line on stderr. */
static struct config *inherited_config(struct supervisor *s)
{
	struct report_texts texts;

	if (s->texts_fd < 0)
		return s->first;
	if (!report_texts_load(s->texts_fd, &texts)) {
		perror("sluice: the configuration in force cannot be read back");
		return NULL;
	}
	const struct settings_source source = { .path = s->config_path,
						.files = texts.files,
						.file_count = texts.count,
						.tickets = s->tickets,
						.auto_workers = s->sockets.workers };
	struct config *config = settings_load(&source, stderr);
	report_texts_free(&texts);
	return config;
}

/* In the child, before it does anything else. The death signal comes last, because a change of the user
 * takes it away. */
static bool step_down(const struct supervisor *s, pid_t parent)
{
	if (user_is_another(&s->user) && !user_become(&s->user))
		return false;
	if (s->user.name[0] != '\0' && !user_no_more_rights())
		return false;
	/* Whoever kills the supervisor wants the service gone. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

/* In the child; the process ends here. */
static _Noreturn void be_server(struct supervisor *s, pid_t parent, int report_fd)
{
	if (!step_down(s, parent))
		_exit(1);
	close_fd(&s->signals_fd);
	close_fd(&s->reader.pair[0]);
	const struct server_args args = {
		.config_path = s->config_path,
		.config = inherited_config(s),
		.limits_fd = s->limits_fd,
		.tickets = s->tickets,
		.seal_secret = &s->seal,
		.listen_fds = s->sockets.listen_fds,
		.listen_count = s->sockets.listen_count,
		.admin_fd = s->sockets.admin_fd,
		.admin_socket_fd = s->sockets.admin_socket_fd,
		.report_fd = report_fd,
		.reader_fd = s->reader.pair[1],
		.restarts = s->started_count - 1,
	};
	int code = args.config == NULL ? 1 : server_run(&args);
	(void)fflush(stdout);
	(void)fflush(stderr);
	_exit(code);
}

/* False with errno. */
static bool fork_server(struct supervisor *s)
{
	pid_t self = getpid();
	int pair[2];

	if (!report_pair(pair))
		return false;
	(void)fflush(stdout); /* else the child would write it again */
	(void)fflush(stderr);
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		be_server(s, self, pair[1]);
	}
	int error = errno;
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		errno = error;
		return false;
	}
	s->server = pid;
	s->report_fd = pair[0];
	return true;
}

/* The server is gone, or could not be made; decides what comes next. */
static void plan_restart(struct supervisor *s, const char *what, int number)
{
	nsec_t now = now_ns(), delay;

	if (s->stopping) {
		s->exit_code = 1;
		return;
	}
	if (!supervisor_restart(&s->restart, s->started, now, s->ready, &delay)) {
		(void)fprintf(stderr,
			      "sluice: the server process ended %d times in a row before it was "
			      "ready: giving up\n",
			      RESTARTS_UNREADY_MAX);
		s->exit_code = 1;
		return;
	}
	s->start_at = now + delay;
	(void)fprintf(stderr, "sluice: the server process %s %d; next start in %" PRIu64 " ms\n",
		      what, number, delay / MSEC);
}

static void start_server(struct supervisor *s)
{
	s->started = now_ns();
	s->started_count++;
	s->ready = false;
	if (!fork_server(s))
		plan_restart(s, "could not be started, errno", errno);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void begin_stop(struct supervisor *s)
{
	s->stopping = true;
	s->kill_at = now_ns() + s->drain + KILL_GRACE;
	if (s->server != 0)
		(void)kill(s->server, SIGTERM);
	else
		s->exit_code = 0;
}

/* Two interrupts are somebody who sits there and waits, unless one of them came by way of the server. */
static void on_stop(struct supervisor *s, int number)
{
	if (!s->stopping) {
		begin_stop(s);
	} else if (s->told_by_server) {
		s->told_by_server = false;
	} else if (number == SIGINT && s->server != 0) {
		(void)fprintf(stderr, "sluice: interrupted again: not waiting any longer\n");
		s->kill_at = 0;
	}
}

/* Signals of one number that wait become one: ours may have been lost in the one it tells of. */
static void on_server_told(struct supervisor *s)
{
	if (s->stopping) {
		(void)kill(s->server, SIGTERM);
		return;
	}
	(void)fprintf(stderr, "sluice: the server process was told to end: so does the gateway\n");
	s->told_by_server = true;
	begin_stop(s);
}

/* ---- what the server reports ------------------------------------------------------------------ */

static void on_ready(struct supervisor *s)
{
	s->ready = true;
	if (s->reload_missed)
		(void)kill(s->server, SIGHUP);
	s->reload_missed = false;
}

static void on_config(struct supervisor *s, const struct report *report)
{
	close_fd(&s->texts_fd);
	s->texts_fd = report->texts_fd;
	s->drain = report->drain < DRAIN_MAX ? report->drain : DRAIN_MAX;
	settings_free(&s->first); /* this one will never be needed again */
}

static void read_reports(struct supervisor *s)
{
	struct report report;

	while (s->report_fd >= 0 && report_receive(s->report_fd, &report)) {
		if (report.kind == REPORT_READY)
			on_ready(s);
		else if (report.kind == REPORT_CONFIG && report.texts_fd >= 0)
			on_config(s, &report);
		else if (report.kind == REPORT_STOP)
			on_server_told(s);
	}
}

static void on_server_end(struct supervisor *s, int status)
{
	read_reports(s); /* its last words may still be there */
	close_fd(&s->report_fd);
	s->server = 0;
	if (s->stopping && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		s->exit_code = 0;
	else if (WIFSIGNALED(status))
		plan_restart(s, "was ended by signal", WTERMSIG(status));
	else
		plan_restart(s, "ended by itself with exit code", WEXITSTATUS(status));
}

/* ---- signals --------------------------------------------------------------------------------- */

/* As process 1 of a container, the supervisor inherits orphans: they are buried too. */
static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->server)
			on_server_end(s, status);
		else if (supervisor_reader_ended(&s->reader, pid, status, now_ns()))
			continue;
}

static void on_signal(struct supervisor *s, int number)
{
	switch (number) {
	case SIGCHLD:
		reap(s);
		break;
	case SIGHUP:
		if (s->server != 0)
			(void)kill(s->server, SIGHUP);
		else
			s->reload_missed = true;
		break;
	default:
		on_stop(s, number);
	}
}

static void read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(s, (int)info.ssi_signo);
}

/* Blocked from here on, in the server too; a reader of stderr that leaves ends nobody. Returns the signalfd, or -1 with errno. */
static int take_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- the loop --------------------------------------------------------------------------------- */

/* Milliseconds for poll() until `due`, rounded up. */
static int until(nsec_t due)
{
	nsec_t now = now_ns();
	nsec_t left = due <= now ? 0 : (due - now + MSEC - 1) / MSEC;

	return left > 60000 ? 60000 : (int)left;
}

static void wait_for_news(struct supervisor *s)
{
	struct pollfd fds[] = { { .fd = s->signals_fd, .events = POLLIN },
				{ .fd = s->report_fd, .events = POLLIN } };
	int timeout = s->stopping ? until(s->kill_at) : s->server == 0 ? until(s->start_at) : -1;

	if (s->reader.pair[0] >= 0 && s->reader.pid == 0) {
		int reader = until(s->reader.start_at);
		timeout = timeout < 0 || reader < timeout ? reader : timeout;
	}
	(void)poll(fds, COUNT_OF(fds), timeout);
	if (fds[1].revents & POLLIN)
		read_reports(s);
	else if (fds[1].revents != 0)
		close_fd(&s->report_fd); /* the server is going; SIGCHLD comes next */
	read_signals(s);
}

static void kill_late_server(struct supervisor *s)
{
	if (!s->stopping || s->server == 0 || now_ns() < s->kill_at)
		return;
	(void)fprintf(stderr,
		      "sluice: the server process is still there after its drain: killed\n");
	(void)kill(s->server, SIGKILL);
	s->kill_at = now_ns() + KILL_GRACE;
}

static int supervise(struct supervisor *s)
{
	while (s->exit_code < 0) {
		if (s->server == 0 && now_ns() >= s->start_at)
			start_server(s);
		if (s->exit_code >= 0)
			break;
		supervisor_reader_tick(&s->reader, now_ns());
		wait_for_news(s);
		kill_late_server(s);
	}
	return s->exit_code;
}

/* ---- before the first server ------------------------------------------------------------------ */

static bool make_limits(struct supervisor *s)
{
	size_t slots = LIMIT_SLOTS_PER_TENANT * s->first->tenants.count;

	s->limits_fd = limit_table_create(slots < LIMIT_SLOTS_MIN ? LIMIT_SLOTS_MIN : slots);
	if (s->limits_fd < 0)
		perror("sluice: the limit table cannot be made");
	return s->limits_fd >= 0;
}

/* Whom the servers become. Nothing of this where they stay who they are. */
static bool prepare_user(struct supervisor *s)
{
	s->user = s->first->user;
	if (!user_is_another(&s->user))
		return true;
	if (geteuid() == 0)
		return supervisor_reader_init(&s->reader, s->config_path);
	(void)fprintf(stderr,
		      "%s:%u: user: only root can become %s; start it as root or as %s, or remove "
		      "the key\n",
		      s->config_path, s->first->user_line, s->user.name, s->user.name);
	return false;
}

static bool prepare(struct supervisor *s)
{
	s->tickets = tls_tickets_new(now_ns());
	if (s->tickets == NULL) {
		perror("sluice: keys of TLS tickets");
		return false;
	}
	must(getrandom(&s->seal, sizeof(s->seal), 0) == (ssize_t)sizeof(s->seal));
	const struct settings_source source = { .path = s->config_path,
						.tickets = s->tickets,
						.warnings = stderr };
	s->first = settings_load(&source, stderr);
	if (s->first == NULL)
		return false;
	s->drain = s->first->drain;
	descriptors_raise(s->first, stderr);
	s->signals_fd = take_signals();
	if (s->signals_fd < 0) {
		perror("sluice: signalfd");
		return false;
	}
	return prepare_user(s) && make_limits(s) && supervisor_listen(&s->sockets, s->first);
}

int supervisor_run(const char *config_path)
{
	struct supervisor s = { .config_path = config_path,
				.limits_fd = -1,
				.signals_fd = -1,
				.texts_fd = -1,
				.report_fd = -1,
				.exit_code = -1,
				.reader = { .pair = { -1, -1 } },
				.sockets = { .admin_fd = -1, .admin_socket_fd = -1 } };
	unblock_stderr(); /* a supervisor that waits for a reader restarts nothing */
	int code = prepare(&s) ? supervise(&s) : 1;

	supervisor_reader_fini(&s.reader);
	supervisor_unlisten(&s.sockets);
	settings_free(&s.first);
	tls_tickets_free(s.tickets);
	explicit_bzero(&s.seal, sizeof(s.seal));
	close_fd(&s.texts_fd);
	close_fd(&s.limits_fd);
	close_fd(&s.signals_fd);
	return code;
}
