#include "gateway/process/supervisor_listen.h"

#include "codec/base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, ADMIN_BACKLOG = 64 };

static bool complain(const char *key, struct slice where, const char *what)
{
	(void)fprintf(stderr, "sluice: %s: %.*s: %s\n", key, (int)where.len, where.at, what);
	return false;
}

static const char *why(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "the address is in use; stop whoever listens there, or choose another port";
	case EADDRNOTAVAIL:
		return "no interface of this machine has that address";
	case EACCES:
		return "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE";
	default:
		return strerror(error);
	}
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* For what a connection has sent and nobody has read the kernel keeps twice that (and less where net.core.rmem_max is less). By
 * itself it would let that grow to megabytes, and h2o reads what is there in one piece. */
enum { RECEIVE_BUFFER = 256 << 10 };

/* ---- TCP ------------------------------------------------------------------------------------ */

struct address {
	struct sockaddr_storage sockaddr;
	socklen_t len;
};

static bool resolve(const char *key, const struct listen_address *listen, struct address *out)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char port[8];

	(void)snprintf(port, sizeof(port), "%u", listen->port);
	int error =
		getaddrinfo(listen->host.len == 0 ? NULL : listen->host.at, port, &hints, &found);
	if (error != 0)
		return complain(key, listen->text, gai_strerror(error));
	memcpy(&out->sockaddr, found->ai_addr, found->ai_addrlen);
	out->len = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

static bool set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/* A bound socket, or -1 with errno. "[::]" does not take the IPv4 addresses too: they are listed on
 * their own, and both can be. */
static int bind_tcp(const struct address *address, bool reuse_port)
{
	int family = address->sockaddr.ss_family;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) &&
	    (!reuse_port || set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) &&
	    (family != AF_INET6 || set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) &&
	    set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER) &&
	    bind(fd, (const struct sockaddr *)&address->sockaddr, address->len) == 0)
		return fd;
	int error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}

/* Whether nobody else has the address. */
static bool is_free(const struct address *address)
{
	int fd = bind_tcp(address, false);

	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

static int listen_tcp(const struct address *address, bool reuse_port, int backlog)
{
	int fd = bind_tcp(address, reuse_port);

	if (fd < 0 || listen(fd, backlog) == 0)
		return fd;
	int error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}

/* To stderr, like everything that is not a request. */
static void announce(const char *what, struct slice where)
{
	(void)fprintf(stderr, "sluice: %s on %.*s\n", what, (int)where.len, where.at);
}

/* ---- UNIX sockets ----------------------------------------------------------------------------- */

/* A socket file that nobody serves any more is left by a supervisor that was killed. Any other file refuses connections,
 * too, and stays. */
static bool remove_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat found;

	if (fd < 0)
		return false;
	bool refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
		       errno == ECONNREFUSED;
	(void)close(fd);
	if (refused && lstat(address->sun_path, &found) == 0 && S_ISSOCK(found.st_mode))
		return unlink(address->sun_path) == 0;
	errno = EADDRINUSE;
	return false;
}

static bool bind_unix(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(0177); /* the file is its owner's alone from its first moment */
	bool bound = bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
	int error = errno;

	(void)umask(before);
	errno = error;
	return bound;
}

/* Its owner is who serves it, so that those who may act for the service may also tell it to reload. */
static bool hand_over(const struct sockaddr_un *address, const struct user *user)
{
	return !user_is_another(user) || lchown(address->sun_path, user->uid, user->gid) == 0;
}

/* The listening socket at `path`, whose file is to be removed at the end; -1 after a line on stderr. */
static int listen_unix(struct supervisor_path *file, const char *key, struct slice path,
		       const struct user *user, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	must(path.len < sizeof(address.sun_path));
	memcpy(address.sun_path, path.at, path.len);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool bound = fd >= 0 && bind_unix(fd, &address);
	if (fd >= 0 && !bound && errno == EADDRINUSE)
		bound = remove_stale(&address) && bind_unix(fd, &address);
	if (!bound) {
		int error = errno;
		close_fd(&fd);
		(void)complain(key, path,
			       error == EADDRINUSE ? "in use by another process, or not a socket"
			       : error == ENOENT   ? "its directory does not exist"
						   : strerror(error));
		return -1;
	}
	memcpy(file->at, address.sun_path, path.len + 1);
	if (hand_over(&address, user) && listen(fd, backlog) == 0)
		return fd;
	(void)complain(key, path, strerror(errno));
	close_fd(&fd);
	return -1;
}

/* ---- public ---------------------------------------------------------------------------------- */

static bool listen_public_tcp(struct supervisor_sockets *sockets, const struct config *config,
			      size_t n)
{
	const struct listen_address *listen = &config->listen[n];
	struct address address;

	if (!resolve("listen", listen, &address))
		return false;
	if (!is_free(&address))
		return complain("listen", listen->text, why(errno));
	for (uint32_t i = 0; i < sockets->workers; i++) {
		int *fd = &sockets->listen_fds[i * sockets->listen_count + n];
		*fd = listen_tcp(&address, true, BACKLOG);
		if (*fd < 0)
			return complain("listen", listen->text, why(errno));
	}
	return true;
}

/* One queue: each worker has the same socket by a descriptor of its own. */
static bool listen_public_unix(struct supervisor_sockets *sockets, const struct config *config,
			       size_t n)
{
	const struct listen_address *listen = &config->listen[n];

	sockets->listen_fds[n] =
		listen_unix(&sockets->paths[n], "listen", listen->host, &config->user, BACKLOG);
	if (sockets->listen_fds[n] < 0)
		return false;
	for (uint32_t i = 1; i < sockets->workers; i++) {
		int *fd = &sockets->listen_fds[i * sockets->listen_count + n];
		*fd = fcntl(sockets->listen_fds[n], F_DUPFD_CLOEXEC, 0);
		if (*fd < 0)
			return complain("listen", listen->text, strerror(errno));
	}
	return true;
}

static bool listen_public(struct supervisor_sockets *sockets, const struct config *config, size_t n)
{
	const struct listen_address *listen = &config->listen[n];

	if (!(listen->local ? listen_public_unix : listen_public_tcp)(sockets, config, n))
		return false;
	announce("listening", listen->text);
	return true;
}

/* ---- admin ---------------------------------------------------------------------------------- */

static bool listen_admin(struct supervisor_sockets *sockets, const struct config *config)
{
	struct address address;

	if (slice_absent(config->admin.host))
		return true;
	if (!resolve("admin.address", &config->admin, &address))
		return false;
	sockets->admin_fd = listen_tcp(&address, false, ADMIN_BACKLOG);
	if (sockets->admin_fd < 0)
		return complain("admin.address", config->admin.text, why(errno));
	announce("admin", config->admin.text);
	return true;
}

static bool listen_socket(struct supervisor_sockets *sockets, const struct config *config)
{
	const struct slice path = config->admin_socket;

	if (slice_absent(path))
		return true;
	sockets->admin_socket_fd = listen_unix(&sockets->paths[config->listen_count],
					       "admin.socket", path, &config->user, ADMIN_BACKLOG);
	if (sockets->admin_socket_fd < 0)
		return false;
	announce("admin", path);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool supervisor_listen(struct supervisor_sockets *sockets, const struct config *config)
{
	size_t total = (size_t)config->workers * config->listen_count;

	_Static_assert(sizeof(sockets->paths->at) == sizeof(((struct sockaddr_un *)0)->sun_path) &&
			       sizeof(sockets->paths->at) == SOCKET_PATH_MAX + 1,
		       "one limit");
	*sockets = (struct supervisor_sockets){ .listen_count = config->listen_count,
						.workers = config->workers,
						.admin_fd = -1,
						.admin_socket_fd = -1 };
	sockets->listen_fds = malloc(total * sizeof(int));
	sockets->paths = calloc(config->listen_count + 1, sizeof(*sockets->paths));
	if (sockets->listen_fds == NULL || sockets->paths == NULL) {
		free(sockets->listen_fds);
		free(sockets->paths);
		*sockets = (struct supervisor_sockets){ .admin_fd = -1, .admin_socket_fd = -1 };
		return complain("listen", config->listen[0].text, strerror(ENOMEM));
	}
	for (size_t i = 0; i < total; i++)
		sockets->listen_fds[i] = -1;
	bool all = listen_admin(sockets, config) && listen_socket(sockets, config);
	for (size_t i = 0; all && i < config->listen_count; i++)
		all = listen_public(sockets, config, i);
	if (!all)
		supervisor_unlisten(sockets);
	return all;
}

void supervisor_unlisten(struct supervisor_sockets *sockets)
{
	for (size_t i = 0; i < sockets->workers * sockets->listen_count; i++)
		close_fd(&sockets->listen_fds[i]);
	free(sockets->listen_fds);
	close_fd(&sockets->admin_fd);
	close_fd(&sockets->admin_socket_fd);
	for (size_t i = 0; sockets->paths != NULL && i <= sockets->listen_count; i++)
		if (sockets->paths[i].at[0] != '\0')
			(void)unlink(sockets->paths[i].at);
	free(sockets->paths);
	*sockets = (struct supervisor_sockets){ .admin_fd = -1, .admin_socket_fd = -1 };
}
