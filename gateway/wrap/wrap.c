#include "gateway/wrap/wrap.h"

#include "codec/base/must.h"
#include "gateway/wrap/wrap_child.h"
#include "gateway/wrap/wrap_gateway.h"
#include "gateway/wrap/wrap_options.h"
#include "gateway/wrap/wrap_own.h"
#include "gateway/wrap/wrap_stream.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	EXIT_USAGE = 2,
	/* Bytes for one side that has not read them: the other side is not read. */
	WAITING_MAX = 1 << 20,
	/* The same for the side itself, whose own requests are answered here: one that reads late has its answers. */
	ANSWERS_MAX = 64 << 20,
	NONCE_BYTES = 12,
};

/* How long the server may take to end without its input, then behind SIGTERM (MCP, stdio: shutdown). */
static const struct timeval grace = { .tv_sec = 5 };
/* How long its output may stay open without a byte behind its end: a process of its own has it, too. */
static const struct timeval leftover = { .tv_sec = 1 };

struct wrap {
	struct event_base *base;
	struct wrap_session *session;
	struct wrap_gateway *gateway; /* NULL: nobody is asked */
	struct wrap_own own;
	struct wrap_child child;
	bool exited;
	int status;   /* of waitpid, once it has exited */
	int next_end; /* the signal that it gets next if it does not end */
	struct wrap_reader from_client, from_server;
	struct wrap_writer to_client, to_server;
	struct event *signals, *patience, *drained;
};

static nsec_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* All is over when the child has ended and all that it wrote is with the client. */
static void look_for_the_end(struct wrap *wrap)
{
	if (wrap->exited && wrap->from_server.fd < 0 && wrap_writer_waiting(&wrap->to_client) == 0)
		(void)event_base_loopbreak(wrap->base);
}

static void signal_child(struct wrap *wrap, int number)
{
	if (!wrap->exited)
		(void)kill(wrap->child.pid, number);
}

/* Nobody will ask anything of the server any more. */
static void let_child_end(struct wrap *wrap)
{
	wrap_session_end(wrap->session);
	wrap_reader_stop(&wrap->from_client);
	wrap_writer_end(&wrap->to_server);
	if (wrap->next_end == 0) {
		wrap->next_end = SIGTERM;
		(void)event_add(wrap->patience, &grace);
	}
}

static void on_impatient(evutil_socket_t fd, short what, void *arg)
{
	struct wrap *wrap = arg;

	(void)fd;
	(void)what;
	signal_child(wrap, wrap->next_end);
	if (wrap->next_end == SIGTERM)
		(void)event_add(wrap->patience, &grace);
	wrap->next_end = SIGKILL;
}

static void on_leftover(evutil_socket_t fd, short what, void *arg)
{
	struct wrap *wrap = arg;

	(void)fd;
	(void)what;
	if (wrap->from_server.paused) { /* its end is behind what the client has not read */
		(void)event_add(wrap->drained, &leftover);
		return;
	}
	wrap_reader_stop(&wrap->from_server);
	wrap_writer_end(&wrap->to_client);
	look_for_the_end(wrap);
}

static void on_exit_of_child(struct wrap *wrap)
{
	if (wrap->exited || waitpid(wrap->child.pid, &wrap->status, WNOHANG) != wrap->child.pid)
		return;
	wrap->exited = true;
	wrap_session_end(wrap->session);
	wrap_reader_stop(&wrap->from_client);
	wrap_writer_stop(&wrap->to_server);
	(void)event_del(wrap->patience);
	(void)event_add(wrap->drained, &leftover);
	look_for_the_end(wrap);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct wrap *wrap = arg;
	struct signalfd_siginfo info;

	(void)what;
	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	const int number = (int)info.ssi_signo;
	if (number == SIGCHLD)
		on_exit_of_child(wrap);
	else if (wrap->exited)
		(void)event_base_loopbreak(wrap->base);
	else if (info.ssi_code != SI_KERNEL) /* a terminal's goes to the child by itself */
		signal_child(wrap, number);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Whoever writes faster than the other side reads has to wait. */
static void balance(struct wrap *wrap)
{
	const size_t to_server = wrap_writer_waiting(&wrap->to_server);
	const size_t to_client = wrap_writer_waiting(&wrap->to_client);

	wrap_reader_pause(&wrap->from_client, to_server > WAITING_MAX || to_client > ANSWERS_MAX);
	wrap_reader_pause(&wrap->from_server, to_client > WAITING_MAX || to_server > ANSWERS_MAX);
}

static void on_moved(void *arg)
{
	struct wrap *wrap = arg;

	balance(wrap);
	look_for_the_end(wrap);
}

static void on_client_line(void *arg, struct slice bytes, bool whole)
{
	struct wrap *wrap = arg;

	if (whole)
		wrap_session_from_client(wrap->session, bytes, now_ns());
	else
		wrap_writer_put_piece(&wrap->to_server, bytes);
	balance(wrap);
}

static void on_server_line(void *arg, struct slice bytes, bool whole)
{
	struct wrap *wrap = arg;

	if (wrap->exited) /* more may come */
		(void)event_add(wrap->drained, &leftover);
	if (whole)
		wrap_session_from_server(wrap->session, bytes, now_ns());
	else
		wrap_writer_put_piece(&wrap->to_client, bytes);
	balance(wrap);
}

static void on_client_gone(void *arg)
{
	let_child_end(arg);
	look_for_the_end(arg);
}

/* The server takes nothing any more: its client learns of it as it would without a wrapper. */
static void on_server_deaf(void *arg)
{
	struct wrap *wrap = arg;

	wrap_session_end(wrap->session);
	wrap_reader_stop(&wrap->from_client);
}

static void on_server_end(void *arg)
{
	struct wrap *wrap = arg;

	wrap_session_end(wrap->session);
	wrap_writer_end(&wrap->to_client);
	look_for_the_end(wrap);
}

/* ---- effects of the session ------------------------------------------------------------------ */

static void put_to_client(void *arg, struct slice bytes)
{
	struct wrap *wrap = arg;

	wrap_writer_put(&wrap->to_client, bytes);
}

static void put_to_server(void *arg, struct slice bytes)
{
	struct wrap *wrap = arg;

	wrap_writer_put(&wrap->to_server, bytes);
}

static void ask(void *arg, const struct wrap_ask *wanted)
{
	struct wrap *wrap = arg;

	wrap_gateway_ask(wrap->gateway, wanted);
}

static void cancel(void *arg, uint64_t key)
{
	struct wrap *wrap = arg;

	wrap_gateway_cancel(wrap->gateway, key);
}

static void say(void *arg, const char *text)
{
	(void)arg;
	(void)fprintf(stderr, "sluice wrap: %s\n", text);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int complain(const char *problem)
{
	(void)fprintf(stderr, "sluice wrap: %s\n", problem);
	return EXIT_USAGE;
}

/* poll(2): epoll does not take a file as standard input. */
static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config != NULL && event_config_require_features(config, EV_FEATURE_FDS) == 0)
		base = event_base_new_with_config(config);
	if (config != NULL)
		event_config_free(config);
	return base;
}

static struct wrap_session *new_session(struct wrap *wrap, enum wrap_mode mode)
{
	const struct wrap_effects effects = { .to_client = put_to_client,
					      .to_server = put_to_server,
					      .ask = ask,
					      .cancel = cancel,
					      .say = say,
					      .arg = wrap };
	unsigned char chance[NONCE_BYTES];
	char nonce[2 * NONCE_BYTES + 1];

	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
		return NULL;
	for (size_t i = 0; i < sizeof(chance); i++)
		(void)snprintf(nonce + 2 * i, 3, "%02x", chance[i]);
	return wrap_session_new(mode, nonce, &effects);
}

static void start_streams(struct wrap *wrap)
{
	wrap->from_client = (struct wrap_reader){
		.fd = STDIN_FILENO, .line = on_client_line, .end = on_client_gone, .arg = wrap
	};
	wrap->from_server = (struct wrap_reader){
		.fd = wrap->child.out, .line = on_server_line, .end = on_server_end, .arg = wrap
	};
	wrap->to_client = (struct wrap_writer){
		.fd = STDOUT_FILENO, .moved = on_moved, .gone = on_client_gone, .arg = wrap
	};
	wrap->to_server = (struct wrap_writer){
		.fd = wrap->child.in, .moved = on_moved, .gone = on_server_deaf, .arg = wrap
	};
	wrap_reader_start(&wrap->from_client, wrap->base);
	wrap_reader_start(&wrap->from_server, wrap->base);
	wrap_writer_start(&wrap->to_client, wrap->base);
	wrap_writer_start(&wrap->to_server, wrap->base);
}

static void start_events(struct wrap *wrap, int signals)
{
	wrap->signals = event_new(wrap->base, signals, EV_READ | EV_PERSIST, on_signal, wrap);
	wrap->patience = event_new(wrap->base, -1, 0, on_impatient, wrap);
	wrap->drained = event_new(wrap->base, -1, 0, on_leftover, wrap);
	must(wrap->signals != NULL && wrap->patience != NULL && wrap->drained != NULL &&
	     event_add(wrap->signals, NULL) == 0);
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

/* However far it has come. */
static void stop(struct wrap *wrap)
{
	wrap_reader_stop(&wrap->from_client);
	wrap_reader_stop(&wrap->from_server);
	wrap_writer_stop(&wrap->to_client);
	wrap_writer_stop(&wrap->to_server);
	wrap_text_free(&wrap->from_client.lines.held);
	wrap_text_free(&wrap->from_server.lines.held);
	free_event(wrap->signals);
	free_event(wrap->patience);
	free_event(wrap->drained);
	wrap_session_free(wrap->session);
	wrap_gateway_free(wrap->gateway);
	wrap_own_stop(&wrap->own);
	if (wrap->base != NULL)
		event_base_free(wrap->base);
}

/* What is blocked here comes by the descriptor; *before is for the child. -1: it cannot be had. */
static int open_signals(sigset_t *before)
{
	static const int numbers[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD
	};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		(void)sigaddset(&set, numbers[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, before) != 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 0 when the child has run and ended; else an exit status, after a line on stderr. */
static int run(struct wrap *wrap, const struct wrap_options *options)
{
	sigset_t before;
	const int signals = open_signals(&before);

	if (signals < 0)
		return complain(strerror(errno));
	const int code = wrap_child_start(options->command, &before, &wrap->child);
	if (code == 0) {
		start_events(wrap, signals);
		start_streams(wrap);
		while (!wrap->exited)
			if (event_base_dispatch(wrap->base) < 0)
				break;
	}
	(void)close(signals);
	return code;
}

static bool start_gateway(struct wrap *wrap, const struct wrap_options *options, char *problem)
{
	const bool own = options->own.provider != NULL;

	if (own && !wrap_own_start(&wrap->own, &options->own, problem, WRAP_PROBLEM_MAX))
		return false;
	if (!own && options->gateway == NULL)
		return true;
	wrap->gateway =
		wrap_gateway_new(wrap->base, own ? wrap->own.url : options->gateway,
				 own ? wrap->own.key : options->key, problem, WRAP_PROBLEM_MAX);
	return wrap->gateway != NULL;
}

/* Everything but the child. */
static bool prepare(struct wrap *wrap, const struct wrap_options *options, char *problem)
{
	wrap->base = new_base();
	if (wrap->base == NULL) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "the event loop cannot be made");
		return false;
	}
	if (!start_gateway(wrap, options, problem))
		return false;
	wrap_options_forget_keys();
	wrap->session = new_session(wrap, options->mode);
	if (wrap->session == NULL) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "there is no randomness");
		return false;
	}
	if (wrap->gateway != NULL)
		wrap_gateway_serve(wrap->gateway, wrap->session);
	return true;
}

int command_wrap(int argc, char **argv)
{
	struct wrap_options options;
	struct wrap wrap = { .child = { .pid = -1 },
			     .from_client = { .fd = -1 },
			     .from_server = { .fd = -1 },
			     .to_client = { .fd = -1 },
			     .to_server = { .fd = -1 } };
	char problem[WRAP_PROBLEM_MAX];

	if (!wrap_options_read(argc, argv, &options, problem)) {
		(void)complain(problem);
		(void)fprintf(stderr, "sluice wrap --help tells more\n");
		return EXIT_USAGE;
	}
	if (options.help) {
		wrap_options_help(stdout);
		return 0;
	}
	const int code =
		prepare(&wrap, &options, problem) ? run(&wrap, &options) : complain(problem);
	stop(&wrap);
	if (wrap.exited)
		wrap_child_follow(wrap.status);
	return code != 0 ? code : 1; /* the loop has failed */
}
