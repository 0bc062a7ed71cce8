#include "gateway/control/control_dns.h"

#include "codec/base/must.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 32, REFRESH_S = 30, RETRY_S = 5 };

struct dns_name {
	struct dns *dns;
	struct dns_name *next;
	char *host;
	struct event *due;
	struct evdns_getaddrinfo_request *request; /* NULL: not asking, or answered at once */
	bool asking;
	bool wanted; /* by the configuration in force */
	bool gone;   /* freed by the answer that is still to come */
	bool failing;
	struct upstream_address addresses[ADDRESSES_MAX];
	uint32_t count;
};

/* What evdns was told of the machine; it reads the files only once. */
struct dns_files {
	struct timespec resolv_conf, hosts;
};

struct dns {
	struct event_base *base;
	struct evdns_base *evdns;
	struct dns_files files;
	struct dns_name *names;
	uint32_t asking;
	dns_found_fn *found;
	void *arg;
};

/* ---- the resolver ----------------------------------------------------------------------------- */

static struct timespec changed_at(const char *path)
{
	struct stat stat_of;

	return stat(path, &stat_of) == 0 ? stat_of.st_mtim : (struct timespec){ 0, 0 };
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A new resolver when there is none, or when the files that it was made from have changed. It is
 * replaced only while nothing is being asked. */
static void resolver_refresh(struct dns *dns)
{
	const struct dns_files files = { changed_at("/etc/resolv.conf"), changed_at("/etc/hosts") };

	if (dns->evdns != NULL &&
	    (dns->asking > 0 || (same_time(files.resolv_conf, dns->files.resolv_conf) &&
				 same_time(files.hosts, dns->files.hosts))))
		return;
	if (dns->evdns != NULL)
		evdns_base_free(dns->evdns, 0);
	dns->files = files;
	dns->evdns = evdns_base_new(dns->base, 0);
	if (dns->evdns == NULL)
		return;
	/* By itself evdns mixes the case of letters, against forged answers, and drops an answer in another
	 * case: podman's server for the names of containers knows one spelling only (aardvark-dns 1.4). glibc asks
	 * as it is written, too; who a provider is, TLS says. */
	(void)evdns_base_set_option(dns->evdns, "randomize-case:", "0");
	/* Without the file, evdns asks the machine itself; the hosts file is read in any case. */
	(void)evdns_base_resolv_conf_parse(dns->evdns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
}

/* What evdns says in its own words; a name that fails is reported by us. */
static void resolver_log(int is_warning, const char *text)
{
	if (is_warning)
		(void)fprintf(stderr, "sluice: dns: %s\n", text);
}

/* ---- answers ---------------------------------------------------------------------------------- */

void control_dns_port(struct upstream_address *address, uint16_t port)
{
	if (address->address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&address->address)->sin_port = htons(port);
}

/* Connecting a datagram socket sends nothing, but fails where no route leads. */
static bool has_route(const struct upstream_address *address)
{
	struct upstream_address probe = *address;
	int fd = socket(address->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	control_dns_port(&probe, 443);
	bool reachable = connect(fd, (const struct sockaddr *)&probe.address, probe.len) == 0;
	(void)close(fd);
	return reachable;
}

static uint32_t collect(const struct evutil_addrinfo *list,
			struct upstream_address out[ADDRESSES_MAX])
{
	uint32_t count = 0;

	for (; list != NULL && count < ADDRESSES_MAX; list = list->ai_next) {
		if (list->ai_family != AF_INET && list->ai_family != AF_INET6)
			continue;
		out[count] = (struct upstream_address){ .len = (socklen_t)list->ai_addrlen };
		memcpy(&out[count].address, list->ai_addr, list->ai_addrlen);
		count++;
	}
	return count;
}

/* Keeps those with a route, or all if none has. */
static uint32_t keep_reachable(struct upstream_address addresses[ADDRESSES_MAX], uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!has_route(&addresses[i]))
			continue;
		struct upstream_address other = addresses[kept];
		addresses[kept++] = addresses[i];
		addresses[i] = other;
	}
	return kept > 0 ? kept : count;
}

static void schedule(struct dns_name *name, time_t seconds)
{
	const struct timeval wait = { .tv_sec = seconds };

	(void)event_add(name->due, &wait);
}

static void name_free(struct dns_name *name)
{
	if (name->due != NULL)
		event_free(name->due);
	free(name->host);
	free(name);
}

static void on_failure(struct dns_name *name, int error)
{
	struct dns *dns = name->dns;

	if (!name->failing)
		(void)fprintf(stderr, "sluice: host %s cannot be resolved: %s%s\n", name->host,
			      evutil_gai_strerror(error),
			      name->count > 0 ? "; the last addresses stay in use" : "");
	name->failing = true;
	if (name->count == 0)
		dns->found(dns->arg, slice_str(name->host), NULL, 0);
	schedule(name, RETRY_S);
}

static void on_success(struct dns_name *name, const struct upstream_address *addresses,
		       uint32_t count)
{
	struct dns *dns = name->dns;

	if (name->failing)
		(void)fprintf(stderr, "sluice: host %s can be resolved again\n", name->host);
	name->failing = false;
	memcpy(name->addresses, addresses, count * sizeof(*addresses));
	name->count = count;
	dns->found(dns->arg, slice_str(name->host), name->addresses, count);
	schedule(name, REFRESH_S);
}

static void on_answer(int error, struct evutil_addrinfo *list, void *arg)
{
	struct dns_name *name = arg;
	struct upstream_address addresses[ADDRESSES_MAX];
	uint32_t count = error == 0 ? collect(list, addresses) : 0;

	if (list != NULL)
		evutil_freeaddrinfo(list);
	name->asking = false;
	name->request = NULL;
	name->dns->asking--;
	if (name->gone)
		name_free(name);
	else if (count == 0)
		on_failure(name, error == 0 ? EVUTIL_EAI_NODATA : error);
	else
		on_success(name, addresses, keep_reachable(addresses, count));
}

static void ask(struct dns_name *name)
{
	const struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct dns *dns = name->dns;

	resolver_refresh(dns);
	if (dns->evdns == NULL) {
		on_failure(name, EVUTIL_EAI_MEMORY);
		return;
	}
	name->asking = true;
	dns->asking++;
	/* The answer may come before this returns: then it returns NULL. */
	name->request = evdns_getaddrinfo(dns->evdns, name->host, NULL, &hints, on_answer, name);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct dns_name *name = arg;

	(void)fd;
	(void)what;
	if (!name->asking)
		ask(name);
}

/* ---- the names -------------------------------------------------------------------------------- */

static struct dns_name *find(const struct dns *dns, struct slice host)
{
	for (struct dns_name *name = dns->names; name != NULL; name = name->next)
		if (slice_eq(slice_str(name->host), host))
			return name;
	return NULL;
}

static struct dns_name *add(struct dns *dns, struct slice host)
{
	struct dns_name *name = calloc(1, sizeof(*name));

	if (name == NULL)
		return NULL;
	name->dns = dns;
	name->host = strndup(host.at, host.len);
	name->due = event_new(dns->base, -1, 0, on_due, name);
	if (name->host == NULL || name->due == NULL) {
		name_free(name);
		return NULL;
	}
	name->next = dns->names;
	dns->names = name;
	return name;
}

static bool is_literal(struct slice host)
{
	uint8_t bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host.at, bytes) == 1 || inet_pton(AF_INET6, host.at, bytes) == 1;
}

static void want(struct dns *dns, struct slice host)
{
	struct dns_name *name = find(dns, host);

	if (is_literal(host) || (name != NULL && name->wanted))
		return;
	bool known = name != NULL;
	if (!known)
		name = add(dns, host);
	if (name == NULL) {
		(void)fprintf(stderr, "sluice: no memory to resolve a host's name\n");
		return;
	}
	name->wanted = true;
	if (!known)
		ask(name);
	else if (name->count > 0)
		dns->found(dns->arg, host, name->addresses, name->count);
}

static void drop(struct dns_name *name)
{
	if (!name->asking) {
		name_free(name);
		return;
	}
	name->gone = true;
	(void)event_del(name->due);
	evdns_getaddrinfo_cancel(name->request);
}

static void sweep(struct dns *dns)
{
	for (struct dns_name **at = &dns->names; *at != NULL;) {
		struct dns_name *name = *at;
		if (name->wanted) {
			at = &name->next;
			continue;
		}
		*at = name->next;
		drop(name);
	}
}

void control_dns_want(struct dns *dns, const struct config *config)
{
	struct config_walk walk = { 0 };
	const struct endpoint *endpoint;

	for (struct dns_name *name = dns->names; name != NULL; name = name->next)
		name->wanted = false;
	while ((endpoint = config_next_endpoint(config, &walk)) != NULL)
		want(dns, endpoint->host);
	for (uint32_t i = 0; i < config->jwt_issuer_count; i++)
		want(dns, config->jwks[i].endpoint.host);
	if (!slice_absent(config->store.host))
		want(dns, config->store.host);
	sweep(dns);
}

void control_dns_again(struct dns *dns, struct slice host)
{
	struct dns_name *name = find(dns, host);

	if (name == NULL || name->asking)
		return;
	(void)event_del(name->due);
	ask(name);
}

struct dns *control_dns_new(struct event_base *base, dns_found_fn *found, void *arg)
{
	struct dns *dns = calloc(1, sizeof(*dns));

	if (dns == NULL)
		return NULL;
	evdns_set_log_fn(resolver_log);
	dns->base = base;
	dns->found = found;
	dns->arg = arg;
	return dns;
}
