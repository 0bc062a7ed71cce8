#include "gateway/control/control.h"

#include "gateway/base/leaks.h"
#include "gateway/control/admin.h"
#include "gateway/control/control_parts.h"
#include "gateway/ipc/server_report.h"
#include "gateway/tls/tls_tickets.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TICK_MS = 50, SIGNALS_AT_ONCE = 64 };
#define SEEK_EVERY (500 * MSEC) /* with the pauses between connections: found within two seconds */
#define LOG_PATIENCE (1 * SEC)  /* for the last lines, when stdout is not read */

/* ---- drain ------------------------------------------------------------------------------------- */

/* A worker that hangs is not waited for: nothing of it will end. */
static struct drain_load load_now(const struct control *control)
{
	struct drain_load sum = { 0 };

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct worker *worker = control->args.workers[i];
		const struct worker_shared *shared = worker_shared(worker);
		if (control->watches[i].hangs)
			continue;
		sum.in_flight += atomic_load_explicit(&shared->in_flight, memory_order_relaxed);
		sum.connections += atomic_load_explicit(&shared->connections, memory_order_relaxed);
		sum.accepted += atomic_load_explicit(&worker_http_counters(worker)->connections,
						     memory_order_relaxed);
	}
	return sum;
}

static void tell_all(struct control *control, void (*tell)(struct worker *worker))
{
	for (uint32_t i = 0; i < control->args.worker_count; i++)
		tell(control->args.workers[i]);
}

static void begin_drain(struct control *control)
{
	if (control->drain.phase != DRAIN_NOT)
		return; /* told twice */
	drain_begin(&control->drain, control_now(), control->config->drain);
	(void)fprintf(stderr, "sluice: draining, for %llu s at most\n",
		      (unsigned long long)(control->config->drain / SEC));
	tell_all(control, worker_quiet);
}

static void end_drain(struct control *control, uint64_t in_flight)
{
	if (in_flight > 0)
		(void)fprintf(stderr, "sluice: the drain is over, %llu requests are cut off\n",
			      (unsigned long long)in_flight);
	(void)event_base_loopbreak(control->base);
}

static void enter_phase(struct control *control, const struct drain_load *load)
{
	const struct control_args *args = &control->args;

	switch (control->drain.phase) {
	case DRAIN_NOT:
	case DRAIN_QUIET:
		break;
	case DRAIN_CLOSING:
		control_listen_hold(args->listen_fds, args->listen_count);
		break;
	case DRAIN_LEAVING:
		tell_all(control, worker_stop_accepting);
		control_listen_end(args->listen_fds, args->listen_count);
		tell_all(control, worker_shutdown);
		break;
	case DRAIN_GIVING_UP:
		(void)fprintf(stderr, "sluice: the drain is nearly over, %llu requests are left\n",
			      (unsigned long long)load->in_flight);
		tell_all(control, worker_give_up);
		break;
	case DRAIN_OVER:
		end_drain(control, load->in_flight);
	}
}

static void look_at_drain(struct control *control)
{
	enum drain_phase before = control->drain.phase;
	const struct drain_load load = load_now(control);

	if (before != DRAIN_NOT && drain_step(&control->drain, control_now(), &load) != before)
		enter_phase(control, &load);
}

/* ---- keys of issuers ---------------------------------------------------------------------------- */

static void on_keys(void *arg, struct slice place, struct jwt_keys *keys)
{
	struct control *control = arg;

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		struct jwt_keys *one = jwt_keys_share(keys);
		worker_set_keys(control->args.workers[i], place, &one);
	}
}

static void on_verdict(void *arg, struct slice provider, struct slice identity, struct slice path,
		       bool up)
{
	struct control *control = arg;

	for (uint32_t i = 0; i < control->args.worker_count; i++)
		worker_set_endpoint_up(control->args.workers[i], provider, identity, path, up);
}

/* A worker that has not swapped yet numbers the issuers by another configuration: later, then. */
static void take_refetches(struct control *control)
{
	const struct config *config = control->config;

	for (uint32_t w = 0; w < control->args.worker_count; w++) {
		struct worker *worker = control->args.workers[w];
		if (atomic_load_explicit(&worker_shared(worker)->config_seq,
					 memory_order_acquire) != control->seq)
			continue;
		const uint32_t refetches = worker_take_refetches(worker);
		for (uint32_t i = 0; i < config->jwt_issuer_count; i++)
			if ((refetches >> i & 1) != 0)
				control_jwks_refetch(control->jwks, config->jwks[i].name,
						     control_now());
	}
}

/* While Redis is away its name may have come to mean another server, which is not to be noticed only
 * when the name is due. */
static void find_store(struct control *control)
{
	const struct slice host = control->config->store.host;
	const nsec_t now = control_now();

	if (slice_absent(host) || !metrics_store_is_away(control->args.metrics) ||
	    now < control->store_sought + SEEK_EVERY)
		return;
	control->store_sought = now;
	control_dns_again(control->dns, host);
}

/* ---- timers and signals ------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;

	(void)fd;
	(void)what;
	log_writer_run(control->log);
	(void)control_sweep(control);
	control_reload_tick(control);
	take_refetches(control);
	find_store(control);
	control_jwks_tick(control->jwks, control_now());
	control_checks_tick(control->checks, control_now());
	look_at_drain(control);
}

/* Another server would begin what this one is about to end. */
static void on_hang(const struct control *control, uint32_t i)
{
	bool draining = control->drain.phase != DRAIN_NOT;

	(void)fprintf(stderr, "sluice: worker %u has not turned its loop for 5 s: %s\n", i,
		      draining ? "leaving without it" : "aborting");
	if (!draining)
		abort(); /* the supervisor starts another */
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;
	nsec_t now = control_now(), elapsed = now - control->watched;

	(void)fd;
	(void)what;
	control->watched = now;
	(void)tls_tickets_turn(control->args.tickets, now);
	control_store_watch(control, now);
	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct worker_shared *shared = worker_shared(control->args.workers[i]);
		uint64_t turned = atomic_load_explicit(&shared->turned_ns, memory_order_relaxed);
		if (watch_step(&control->watches[i], turned, elapsed))
			on_hang(control, i);
	}
}

/* A drain ends sockets that are the supervisor's, too: only that begins one, and it is told of others' wishes. */
static void on_stop(struct control *control, pid_t sender)
{
	if (sender == getppid())
		begin_drain(control);
	else if (control->drain.phase == DRAIN_NOT && !report_stop(control->args.report_fd))
		perror("sluice: the supervisor could not be told to end");
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;
	struct signalfd_siginfo info;

	(void)what;
	for (int i = 0; i < SIGNALS_AT_ONCE; i++) {
		if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			break;
		if (info.ssi_signo == SIGHUP)
			control->reload_due = true; /* many are as good as one */
		else
			on_stop(control, (pid_t)info.ssi_pid);
	}
}

/* ---- DNS ---------------------------------------------------------------------------------------- */

static void tell_workers(struct control *control, const struct endpoint *endpoint,
			 const struct upstream_address *addresses, uint32_t count)
{
	struct upstream_address *with_port = calloc(count + 1, sizeof(*with_port));

	if (with_port == NULL)
		return; /* the next answer comes in 30 s */
	for (uint32_t i = 0; i < count; i++) {
		with_port[i] = addresses[i];
		control_dns_port(&with_port[i], endpoint->port);
	}
	for (uint32_t i = 0; i < control->args.worker_count; i++)
		worker_set_addresses(control->args.workers[i], endpoint->identity, with_port,
				     count);
	free(with_port);
}

static void on_addresses(void *arg, struct slice host, const struct upstream_address *addresses,
			 uint32_t count)
{
	struct control *control = arg;
	const struct config *config = control->config;
	struct config_walk walk = { 0 };
	const struct endpoint *endpoint;

	while ((endpoint = config_next_endpoint(config, &walk)) != NULL)
		if (slice_eq(endpoint->host, host))
			tell_workers(control, endpoint, addresses, count);
	control_jwks_resolved(control->jwks, host, addresses, count);
	control_checks_resolved(control->checks, host, addresses, count);
	if (slice_eq(config->store.host, host))
		for (uint32_t i = 0; i < control->args.worker_count; i++)
			worker_set_store_addresses(control->args.workers[i], addresses, count);
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static int on_reload(void *arg, FILE *out)
{
	return control_reload(arg, out);
}

static bool add_timer(struct control *control, nsec_t period, event_callback_fn fire)
{
	const struct timeval wait = { .tv_sec = (time_t)(period / SEC),
				      .tv_usec = (suseconds_t)(period % SEC / USEC) };
	struct event *timer = event_new(control->base, -1, EV_PERSIST, fire, control);

	return timer != NULL && event_add(timer, &wait) == 0;
}

static bool add_signals(struct control *control)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct event *signals =
		event_new(control->base, fd, EV_READ | EV_PERSIST, on_signal, control);

	return fd >= 0 && signals != NULL && event_add(signals, NULL) == 0;
}

static bool begin(struct control *control)
{
	const struct control_args *args = &control->args;
	const struct admin_hooks hooks = {
		.healthz = control_healthz,
		.readyz = control_readyz,
		.is_name = control_is_name,
		.metrics = control_metrics,
		.lessons = control_lessons,
		.reload = on_reload,
		.tenant = control_tenant,
		.budget = control_budget,
		.arg = control,
	};

	control->base = event_base_new();
	control->watches = calloc(args->worker_count, sizeof(*control->watches));
	if (control->base == NULL || control->watches == NULL)
		return false;
	control->log =
		log_writer_new(control->base, STDOUT_FILENO, args->rings, args->worker_count);
	control->dns = control_dns_new(control->base, on_addresses, control);
	control->jwks = control_jwks_new(control->base, on_keys, control);
	control->checks = control_checks_new(control->base, on_verdict, control);
	control->admin = admin_new(control->base, &hooks, args->admin_fd, args->admin_socket_fd);
	return control->log != NULL && control->dns != NULL && control->jwks != NULL &&
	       control->checks != NULL && control->admin != NULL && add_signals(control) &&
	       add_timer(control, TICK_MS * MSEC, on_tick) &&
	       add_timer(control, WATCH_PERIOD, on_watch);
}

int control_run(const struct control_args *args)
{
	struct control control = { .args = *args, .config = args->config, .seq = 1 };

	control.born = control.watched = control.files.looked = control_now();
	control.snapshots[0] = (struct snapshot){ args->config, control.seq };
	if (!begin(&control)) {
		(void)fprintf(stderr, "sluice: the control thread cannot begin: %s\n",
			      strerror(errno));
		return 1;
	}
	control_jwks_want(control.jwks, control.config, control_now());
	control_checks_want(control.checks, control.config, control_now());
	control_dns_want(control.dns, control.config);
	if (!report_ready(args->report_fd))
		perror("sluice: the supervisor could not be told that the server is ready");
	(void)fprintf(stderr, "sluice: serving, configuration %s\n", control.config->digest);
	control_store_begin(&control);
	int looped = event_base_dispatch(control.base);
	log_writer_finish(control.log, LOG_PATIENCE);
	leaks_check();
	return looped == 0 ? 0 : 1;
}
