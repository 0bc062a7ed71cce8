#include "gateway/wrap/wrap_own.h"

#include "codec/base/sha256.h"
#include "routing/known.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	READY_TRIES = 2000, /* of 5 ms each */
	STOP_TRIES = 400,
	KEY_BYTES = 16,
	CONTEXT_UNKNOWN = 131072,
};

static const struct wrap_provider providers[] = {
	{ "anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com" },
	{ "openai", "OPENAI_API_KEY", "https://api.openai.com/v1" },
};

const struct wrap_provider *wrap_provider_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(providers); i++)
		if (strcmp(providers[i].name, name) == 0)
			return &providers[i];
	return NULL;
}

/* ---- its configuration ----------------------------------------------------------------------- */

/* All of the catalogue's models take tools. */
static const char *cheapest(const char *vendor)
{
	const struct known_model *best = NULL, *model;

	for (size_t n = 0; (model = known_at(n)) != NULL; n++)
		if (strcmp(model->vendor, vendor) == 0 &&
		    (best == NULL || model->price_input + model->price_output <
					     best->price_input + best->price_output))
			best = model;
	return best == NULL ? NULL : best->name;
}

static bool put_model(struct wrap_text *out, const struct wrap_own_ask *ask, char *problem,
		      size_t room)
{
	const char *name = ask->model == NULL ? cheapest(ask->provider->name) : ask->model;
	const bool known = known_find(slice_str(name)) != NULL;

	if (!known && ask->base_url == NULL) {
		const struct known_model *near = known_nearest(slice_str(name));
		(void)snprintf(problem, room, "--model %.64s is not in the catalogue%s%s", name,
			       near == NULL ? "" : "; did you mean ",
			       near == NULL ? "" : near->name);
		return false;
	}
	wrap_text_put(out, ",\"models\":[{\"provider\":\"own\",\"id\":");
	wrap_text_add_string(out, name);
	if (!known) { /* of a host of one's own: it costs nothing by the token */
		wrap_text_print(out,
				",\"context\":%d,\"price\":{\"input\":0,\"output\":0,"
				"\"cache_read\":0,\"cache_write\":0}",
				CONTEXT_UNKNOWN);
		(void)fprintf(stderr,
			      "sluice wrap: the price of %.64s is not known, so --usd-per-day does "
			      "not bound it\n",
			      name);
	}
	wrap_text_put(out, "}]");
	return true;
}

bool wrap_own_settings(struct wrap_text *out, const struct wrap_own_ask *ask, const char *socket,
		       const char *digest, char *problem, size_t room)
{
	const char *key = getenv(ask->provider->variable);

	wrap_text_put(out, "{\"listen\":[{\"address\":");
	wrap_text_add_string(out, socket);
	wrap_text_print(out,
			"}],\"workers\":1,\"drain\":\"0s\",\"store\":{\"kind\":\"memory\"},"
			"\"providers\":{\"own\":{\"dialect\":\"%s\",\"endpoints\":[{\"url\":",
			ask->provider->name);
	wrap_text_add_string(out, ask->base_url == NULL ? ask->provider->base_url : ask->base_url);
	wrap_text_put(out, "}]");
	if (key != NULL && *key != '\0')
		wrap_text_print(out, ",\"keys\":[\"${%s}\"]", ask->provider->variable);
	wrap_text_put(out, "}}");
	if (!put_model(out, ask, problem, room))
		return false;
	wrap_text_print(
		out,
		",\"tenants\":[{\"id\":\"wrap\",\"keys\":[{\"sha256\":\"%s\",\"server\":\"wrap\"}],"
		"\"capabilities\":{\"tools\":true,\"images\":true,\"audio\":true},"
		"\"models\":{\"allow\":[\"*\"]},\"limits\":{\"usd_per_day\":%s,"
		"\"requests_per_minute\":600,\"requests_burst\":60,\"tokens_per_minute\":2000000,"
		"\"tokens_burst\":2000000,\"concurrent\":16,\"max_tokens\":16384}}]}\n",
		digest, ask->usd_per_day);
	return true;
}

/* ---- its files ------------------------------------------------------------------------------- */

static bool complain(char *problem, size_t room, const char *what)
{
	(void)snprintf(problem, room, "%s: %s", what, strerror(errno));
	return false;
}

static bool make_directory(struct wrap_own *own, char *problem, size_t room)
{
	const char *parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };

	for (size_t i = 0; i < COUNT_OF(parents); i++) {
		if (parents[i] == NULL || parents[i][0] != '/')
			continue;
		const int len = snprintf(own->directory, sizeof(own->directory),
					 "%s/sluice-wrap-XXXXXX", parents[i]);
		if (len < (int)sizeof(own->directory) && mkdtemp(own->directory) != NULL)
			return true;
	}
	own->directory[0] = '\0';
	return complain(problem, room, "no private directory can be made");
}

static void path_of(const struct wrap_own *own, const char *name, char out[128])
{
	(void)snprintf(out, 128, "%s/%s", own->directory, name);
}

static bool write_file(const char *path, struct slice text)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	const bool whole = write(fd, text.at, text.len) == (ssize_t)text.len;
	return close(fd) == 0 && whole;
}

static bool make_key(struct wrap_own *own, char digest[65])
{
	unsigned char chance[KEY_BYTES], sum[SHA256_BYTES];

	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
		return false;
	for (size_t i = 0; i < sizeof(chance); i++)
		(void)snprintf(own->key + 2 * i, 3, "%02x", chance[i]);
	sha256(slice_str(own->key), sum);
	sha256_hex(sum, 64, digest);
	digest[64] = '\0';
	return true;
}

/* ---- its process ----------------------------------------------------------------------------- */

/* In the child. Its log goes nowhere: standard output is the client's. A terminal's signals are not for it. */
static _Noreturn void run(const char *config, pid_t parent)
{
	const int nothing = open("/dev/null", O_RDWR);
	static char name[] = "sluice", serve[] = "serve";
	char option[160];

	(void)snprintf(option, sizeof(option), "--config=%s", config);
	char *const argv[] = { name, serve, option, NULL };
	(void)setsid();
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
	    prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
		(void)execv("/proc/self/exe", argv);
	perror("sluice wrap: the gateway cannot be started");
	_exit(127);
}

static void pause_5ms(void)
{
	const struct timespec wait = { .tv_nsec = 5000000 };

	(void)nanosleep(&wait, NULL);
}

static bool has_ended(struct wrap_own *own)
{
	if (own->pid != 0 && waitpid(own->pid, NULL, WNOHANG) == own->pid)
		own->pid = 0;
	return own->pid == 0;
}

static bool accepts(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	const bool connected = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
	(void)close(fd);
	return connected;
}

static bool wait_until_ready(struct wrap_own *own, const char *socket, char *problem, size_t room)
{
	for (int i = 0; i < READY_TRIES && !has_ended(own); i++) {
		if (accepts(socket))
			return true;
		pause_5ms();
	}
	(void)snprintf(problem, room, "%s",
		       own->pid == 0 ? "its gateway has ended; it has said why"
				     : "its gateway is not ready after ten seconds");
	return false;
}

bool wrap_own_start(struct wrap_own *own, const struct wrap_own_ask *ask, char *problem,
		    size_t room)
{
	char config[128], socket[128], digest[65];
	struct wrap_text text = { 0 };
	const pid_t parent = getpid();

	*own = (struct wrap_own){ 0 };
	if (!make_directory(own, problem, room))
		return false;
	path_of(own, "config.json", config);
	path_of(own, "gateway.sock", socket);
	(void)snprintf(own->url, sizeof(own->url), "unix:%.100s", socket);
	bool good = make_key(own, digest) || complain(problem, room, "there is no randomness");
	if (good)
		good = wrap_own_settings(&text, ask, own->url, digest, problem, room);
	if (good)
		good = write_file(config, wrap_text_slice(&text)) ||
		       complain(problem, room, config);
	wrap_text_free(&text);
	if (!good)
		return false;
	own->pid = fork();
	if (own->pid == 0)
		run(config, parent);
	if (own->pid < 0) {
		own->pid = 0;
		return complain(problem, room, "fork");
	}
	good = wait_until_ready(own, socket, problem, room);
	(void)unlink(config); /* it was read, and is not read again */
	return good;
}

void wrap_own_stop(struct wrap_own *own)
{
	static const char *const files[] = { "config.json", "gateway.sock" };
	char path[128];

	if (!has_ended(own))
		(void)kill(own->pid, SIGTERM);
	for (int i = 0; i < STOP_TRIES && !has_ended(own); i++)
		pause_5ms();
	if (!has_ended(own)) {
		(void)kill(own->pid, SIGKILL);
		(void)waitpid(own->pid, NULL, 0);
	}
	if (own->directory[0] == '\0')
		return;
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		path_of(own, files[i], path);
		(void)unlink(path);
	}
	(void)rmdir(own->directory);
	*own = (struct wrap_own){ 0 };
}
