#include "gateway/process/server.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"
#include "gateway/base/no_dump.h"
#include "gateway/control/control.h"
#include "gateway/worker/panic.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct server {
	const struct server_args *args;
	struct limit_table *limits;
	struct metrics *metrics;
	struct state_memory *state;
	struct idempotency *idempotency;
	struct alive *alive;
	struct cancel_table *cancels;
	struct mcp_channels *channels;
	uint32_t count;
	struct log_ring **rings;
	struct worker **workers;
};

static bool complain(const char *what)
{
	perror(what);
	return false;
}

static struct state_memory *make_state(const struct config_blocks *blocks)
{
	const struct state_bounds bounds = {
		.sessions = KEPT_SESSIONS_MAX,
		.calls = KEPT_CALLS_MAX,
		.loops = KEPT_LOOPS_MAX,
		.blocks_bytes = blocks->bytes,
		.blocks_each = blocks->each,
		.blocks_ttl = blocks->ttl,
	};

	return state_memory_new(&bounds);
}

static bool make_shared(struct server *server)
{
	const struct config *config = server->args->config;

	server->limits = limit_table_map(server->args->limits_fd);
	if (server->limits == NULL)
		return complain("sluice: the limit table cannot be mapped");
	limit_table_recover(server->limits);
	server->metrics = metrics_new(server->count, config->metrics_tenants);
	server->state = make_state(&config->store.blocks);
	server->idempotency = idempotency_new();
	server->alive = alive_new();
	server->cancels = cancel_table_new();
	server->channels = mcp_channels_new();
	server->rings = calloc(server->count, sizeof(struct log_ring *));
	server->workers = calloc(server->count, sizeof(struct worker *));
	if (server->metrics == NULL || server->state == NULL || server->idempotency == NULL ||
	    server->alive == NULL || server->cancels == NULL || server->channels == NULL ||
	    server->rings == NULL || server->workers == NULL)
		return complain("sluice: the server cannot begin");
	return true;
}

static bool make_worker(struct server *server, uint32_t i)
{
	const struct server_args *args = server->args;
	struct worker_args worker = {
		.index = i,
		.count = server->count,
		.listen_fds = args->listen_fds + i * args->listen_count,
		.listen_count = args->listen_count,
		.limits = server->limits,
		.metrics = metrics_worker(server->metrics, i),
		.state = server->state,
		.idempotency = server->idempotency,
		.alive = server->alive,
		.cancels = server->cancels,
		.channels = server->channels,
		.seal_secret = args->seal_secret,
		.config = args->config,
	};

	server->rings[i] = worker.log = log_ring_new();
	if (worker.log == NULL)
		return complain("sluice: a log ring cannot be made");
	server->workers[i] = worker_new(&worker);
	return server->workers[i] != NULL;
}

/* All are made before the first one starts: a server accepts when it is whole. */
static bool start_workers(struct server *server)
{
	for (uint32_t i = 0; i < server->count; i++)
		if (!make_worker(server, i))
			return false;
	for (uint32_t i = 0; i < server->count; i++) {
		int error = worker_start(server->workers[i]);
		if (error == 0)
			continue;
		(void)fprintf(stderr, "sluice: worker %u cannot start: %s\n", i, strerror(error));
		return false;
	}
	return true;
}

/* Blocks of that size have a mapping of their own, which goes back to the system with them. By itself glibc would put
 * them among all else after the first that was freed, and what lies behind them would keep their memory for good.
 * With that bound fixed the other has to be said, too: else each block of 128 KiB would go back, and be faulted in again.
 * So not smaller ones: who made us fault in 2 MiB ten times a second had 7 % of a core. How much is taken at once stays
 * small (M_TOP_PAD): calloc clears what was taken before, and would touch tables of megabytes that nobody uses. */
static void keep_large_apart(void)
{
	enum { LARGE = 4 << 20, FREE_AT_THE_TOP = 16 << 20 };

	if (mallopt(M_MMAP_THRESHOLD, LARGE) != 1 ||
	    mallopt(M_TRIM_THRESHOLD, FREE_AT_THE_TOP) != 1)
		(void)fprintf(stderr, "sluice: mallopt refuses its bounds\n");
}

/* What is made here ends with the process, which ends with this function. */
int server_run(const struct server_args *args)
{
	struct server server = { .args = args, .count = args->config->workers };

	keep_large_apart();
	no_dump(); /* again: this process may have another user than its parent */
	panic_install();
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		perror("sluice: SIGPIPE");
	if (!make_shared(&server) || !start_workers(&server))
		return 1;
	const struct control_args control = {
		.config_path = args->config_path,
		.config = args->config,
		.workers = server.workers,
		.rings = server.rings,
		.worker_count = server.count,
		.metrics = server.metrics,
		.state = server.state,
		.limits = server.limits,
		.channels = server.channels,
		.tickets = args->tickets,
		.listen_fds = args->listen_fds,
		.listen_count = server.count * args->listen_count,
		.admin_fd = args->admin_fd,
		.admin_socket_fd = args->admin_socket_fd,
		.report_fd = args->report_fd,
		.reader_fd = args->reader_fd,
		.restarts = args->restarts,
	};
	return control_run(&control);
}
