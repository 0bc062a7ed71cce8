/* provider_sim - an LLM provider for tests, benchmarks and the quickstart.
 *
 * Speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses over HTTP/1.1, with or
 * without TLS, and misbehaves on demand (sim_spec.h). It is an MCP server, too (sim_mcp.h). Prints
 * "listening PORT" once it accepts connections. */
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/sim/sim_io.h"
#include "bench/sim/sim_loop.h"
#include "bench/sim/sim_shared.h"
#include "codec/base/must.h"

#define THREADS_MAX 64

struct options {
	struct sockaddr_in address;
	unsigned threads;
	struct sim_io_tls tls;
	const char *api_key;
	struct sim_spec spec;
};

static void usage(FILE *out)
{
	(void)fputs("provider_sim: a simulated LLM provider\n"
		    "  --address A    default 127.0.0.1\n"
		    "  --port N       0, the default: a free one; printed as \"listening N\"\n"
		    "  --threads N    default 1\n"
		    "  --default W    behaviour of requests whose model says nothing, e.g. "
		    "latency-20ms-size-1024\n"
		    "  --latency T, --size N, --pace T, --chunk N    the same, one at a time\n"
		    "  --cert F --key F    TLS, with these PEM files\n"
		    "  --tls-min V, --tls-max V    1.2 or 1.3\n"
		    "  --api-key K    refuse any other key\n"
		    "  --help\n"
		    "\nPOST /v1/messages, /v1/messages/count_tokens, .../chat/completions, "
		    ".../responses. A model "
		    "\"sim-WORD-WORD...\" "
		    "or a header X-Sim\n"
		    "chooses the behaviour:\n",
		    out);
	sim_spec_print(out);
	(void)fputs("POST, GET, DELETE /mcp: an MCP server (sim_mcp.h).\n"
		    "Times: 20ms, 150us, 2s, or milliseconds.\n"
		    "\nGET /health, GET /stats, GET /last, GET /last/body, POST /reset, POST "
		    "/default with "
		    "words as body.\n",
		    out);
}

static _Noreturn void die(const char *what, const char *value)
{
	(void)fprintf(stderr, "provider_sim: %s: %s\n", what, value);
	exit(2);
}

static unsigned number(const char *option, const char *text, unsigned min, unsigned max)
{
	uint64_t value;

	if (!slice_to_u64(slice_str(text), &value) || value < min || value > max) {
		(void)fprintf(stderr, "provider_sim: --%s: %s is not between %u and %u\n", option,
			      text, min, max);
		exit(2);
	}
	return (unsigned)value;
}

static int tls_version(const char *option, const char *text)
{
	if (strcmp(text, "1.2") != 0 && strcmp(text, "1.3") != 0)
		die(option, "neither 1.2 nor 1.3");
	return strcmp(text, "1.2") == 0 ? 12 : 13;
}

/* `word` NULL: `text` is a row of words; else its argument. */
static void behaviour(struct sim_spec *spec, const char *word, const char *text)
{
	struct sim_buf words = { 0 };
	struct slice wrong;

	if (word != NULL)
		sim_buf_format(&words, "$-", slice_str(word));
	sim_buf_text(&words, text);
	if (!sim_spec_parse(spec, slice_of(words.at, words.len), &wrong))
		die("no such behaviour, or a bad argument", text);
	sim_buf_free(&words);
}

enum option_id {
	OPT_ADDRESS = 256, /* above every character */
	OPT_PORT,
	OPT_THREADS,
	OPT_DEFAULT,
	OPT_WORD, /* latency, size, pace, chunk: words of the same name */
	OPT_CERT,
	OPT_KEY,
	OPT_TLS_MIN,
	OPT_TLS_MAX,
	OPT_API_KEY,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "address", required_argument, NULL, OPT_ADDRESS },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "default", required_argument, NULL, OPT_DEFAULT },
	{ "latency", required_argument, NULL, OPT_WORD },
	{ "size", required_argument, NULL, OPT_WORD },
	{ "pace", required_argument, NULL, OPT_WORD },
	{ "chunk", required_argument, NULL, OPT_WORD },
	{ "cert", required_argument, NULL, OPT_CERT },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "tls-min", required_argument, NULL, OPT_TLS_MIN },
	{ "tls-max", required_argument, NULL, OPT_TLS_MAX },
	{ "api-key", required_argument, NULL, OPT_API_KEY },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static void apply(struct options *options, int id, const char *name, const char *value)
{
	switch (id) {
	case OPT_ADDRESS:
		if (inet_pton(AF_INET, value, &options->address.sin_addr) != 1)
			die("not an IPv4 address", value);
		break;
	case OPT_PORT:
		options->address.sin_port = htons((uint16_t)number(name, value, 0, 65535));
		break;
	case OPT_THREADS:
		options->threads = number(name, value, 1, THREADS_MAX);
		break;
	case OPT_DEFAULT:
		behaviour(&options->spec, NULL, value);
		break;
	case OPT_WORD:
		behaviour(&options->spec, name, value);
		break;
	case OPT_CERT:
		options->tls.cert = value;
		break;
	case OPT_KEY:
		options->tls.key = value;
		break;
	case OPT_TLS_MIN:
		options->tls.version_min = tls_version(name, value);
		break;
	case OPT_TLS_MAX:
		options->tls.version_max = tls_version(name, value);
		break;
	case OPT_API_KEY:
		options->api_key = value;
		break;
	case OPT_HELP:
		usage(stdout);
		exit(0);
	default:
		exit(2); /* getopt_long has said why */
	}
}

static struct options read_options(int argc, char **argv)
{
	struct options options = {
		.address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
		.threads = 1,
		.tls = { .version_min = 12, .version_max = 13 },
		.spec = sim_spec_default,
	};
	int id, index = 0;

	while ((id = getopt_long(argc, argv, "", long_options, &index)) != -1)
		apply(&options, id, long_options[index].name, optarg);
	if (optind < argc)
		die("unexpected argument", argv[optind]);
	if ((options.tls.cert == NULL) != (options.tls.key == NULL))
		die("--cert and --key", "one without the other");
	return options;
}

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "provider_sim: ");
	perror(what);
	exit(1);
}

/* The first one finds the port, which *address then has; the others share it. */
static int listen_on(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	socklen_t len = sizeof(*address);

	if (fd < 0)
		give_up("socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
			 sizeof(on)); /* accepted ones inherit it */
	if (bind(fd, (struct sockaddr *)address, len) != 0)
		give_up("bind");
	if (listen(fd, 4096) != 0)
		give_up("listen");
	if (getsockname(fd, (struct sockaddr *)address, &len) != 0)
		give_up("getsockname");
	return fd;
}

static void *run_thread(void *loop)
{
	sim_loop_run(loop);
	return NULL;
}

/* As many connections as the system allows. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void serve(struct sim_shared *shared, struct options *options, const sigset_t *stop_signals)
{
	struct sim_loop *loops = calloc(options->threads, sizeof(*loops));
	pthread_t threads[THREADS_MAX];
	int signal_number;

	must(loops != NULL);
	for (unsigned i = 0; i < options->threads; i++)
		sim_loop_init(&loops[i], shared, listen_on(&options->address));
	for (unsigned i = 0; i < options->threads; i++)
		if (pthread_create(&threads[i], NULL, run_thread, &loops[i]) != 0)
			give_up("thread");
	(void)printf("listening %u\n", (unsigned)ntohs(options->address.sin_port));
	(void)fflush(stdout);
	must(sigwait(stop_signals, &signal_number) == 0);
	for (unsigned i = 0; i < options->threads; i++) {
		sim_loop_stop(&loops[i]);
		must(pthread_join(threads[i], NULL) == 0);
		sim_loop_fini(&loops[i]);
	}
	free(loops);
}

int main(int argc, char **argv)
{
	struct options options = read_options(argc, argv);
	struct sim_shared shared;
	sigset_t stop_signals;

	sim_shared_init(&shared);
	shared.start_spec = options.spec;
	sim_shared_set_spec(&shared, &options.spec);
	shared.api_key = options.api_key;
	if (options.tls.cert != NULL) {
		shared.tls = sim_io_context(&options.tls);
		if (shared.tls == NULL)
			return 1;
	}
	raise_file_limit();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&stop_signals);
	(void)sigaddset(&stop_signals, SIGTERM);
	(void)sigaddset(&stop_signals, SIGINT);
	must(pthread_sigmask(SIG_BLOCK, &stop_signals, NULL) == 0);
	serve(&shared, &options, &stop_signals);
	sim_shared_fini(&shared);
	return 0;
}
