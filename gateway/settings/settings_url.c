#include "gateway/settings/settings_url.h"

#include <arpa/inet.h>

enum { HOST_MAX = 253 };

static bool is_ip(int family, struct slice host)
{
	char text[HOST_MAX + 1];
	struct in6_addr address;

	if (host.len == 0 || host.len > HOST_MAX)
		return false;
	(void)memcpy(text, host.at, host.len);
	text[host.len] = '\0';
	return inet_pton(family, text, &address) == 1;
}

/* Letters, digits, hyphens, underscores (service names have them), labels of 1 to 63 bytes. */
static bool is_name(struct slice host)
{
	size_t label = 0;

	if (host.len == 0 || host.len > HOST_MAX)
		return false;
	for (size_t i = 0; i < host.len; i++) {
		char c = host.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (c == '.') {
			if (label == 0)
				return false;
			label = 0;
		} else if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_') {
			return false;
		} else if (++label > 63) {
			return false;
		}
	}
	return true;
}

/* All of digits and dots is meant to be an IPv4 address, and must then be one. */
static bool looks_numeric(struct slice host)
{
	for (size_t i = 0; i < host.len; i++)
		if (host.at[i] != '.' && (host.at[i] < '0' || host.at[i] > '9'))
			return false;
	return true;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port". *port is absent without a colon. */
static const char *split_port(struct slice authority, struct slice *host, struct slice *port,
			      bool *ipv6)
{
	struct slice rest = authority;

	*ipv6 = authority.len > 0 && authority.at[0] == '[';
	if (*ipv6) {
		rest = slice_of(rest.at + 1, rest.len - 1);
		*host = slice_cut(&rest, ']');
		if (slice_absent(rest))
			return "has a [ without ]; write an IPv6 address as [2001:db8::1]";
		if (!is_ip(AF_INET6, *host))
			return "has no IPv6 address between [ and ]; write [2001:db8::1]";
		if (rest.len > 0 && rest.at[0] != ':')
			return "has text behind the ]; write [2001:db8::1]:PORT";
		*port = rest.len == 0 ? (struct slice){ NULL, 0 }
				      : slice_of(rest.at + 1, rest.len - 1);
		return NULL;
	}
	*host = slice_cut(&rest, ':');
	*port = rest;
	if (rest.len > 0 && memchr(rest.at, ':', rest.len) != NULL)
		return "has several colons; write an IPv6 address in brackets, [2001:db8::1]:PORT";
	return NULL;
}

static const char *read_port(struct slice text, uint16_t *out)
{
	uint64_t value;

	if (!slice_to_u64(text, &value) || value < 1 || value > 65535)
		return "has a port that is no port; write a number from 1 to 65535";
	*out = (uint16_t)value;
	return NULL;
}

static const char *check_characters(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c == '#')
			return "has a fragment; leave it out";
		if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return "has characters that a URL may not have; write them as %XX";
	}
	return NULL;
}

static const char *check_host(struct slice host)
{
	if (host.len == 0)
		return "has no host; write http://HOST or https://HOST";
	if (looks_numeric(host) ? !is_ip(AF_INET, host) : !is_name(host))
		return "has a host that is neither a name nor an IP address; correct it";
	return NULL;
}

/* The path ends before the query. */
static void split_query(struct url_parts *out)
{
	const char *mark = out->path.len == 0 ? NULL : memchr(out->path.at, '?', out->path.len);
	const size_t len = mark == NULL ? out->path.len : (size_t)(mark - out->path.at);

	out->query = slice_of(out->path.at + len, out->path.len - len);
	out->path.len = len;
}

const char *url_parse_exact(struct slice url, struct url_parts *out)
{
	struct slice rest, authority, port;
	const char *wrong;

	*out = (struct url_parts){ 0 };
	if (url.len >= 8 && slice_eq_nocase(slice_of(url.at, 8), SLICE("https://"))) {
		out->tls = true;
		rest = slice_of(url.at + 8, url.len - 8);
	} else if (url.len >= 7 && slice_eq_nocase(slice_of(url.at, 7), SLICE("http://"))) {
		rest = slice_of(url.at + 7, url.len - 7);
	} else {
		return "has no scheme that can be used; begin it with https:// or http://";
	}
	size_t end = 0;
	while (end < rest.len && strchr("/?#", rest.at[end]) == NULL)
		end++;
	authority = slice_of(rest.at, end);
	out->path = slice_of(rest.at + end, rest.len - end);
	if (memchr(authority.at, '@', authority.len) != NULL)
		return "has a user name or a password; leave them out, credentials have settings "
		       "of their own";
	wrong = split_port(authority, &out->host, &port, &out->ipv6);
	if (wrong == NULL && !out->ipv6)
		wrong = check_host(out->host);
	out->port = out->tls ? 443 : 80;
	if (wrong == NULL && !slice_absent(port))
		wrong = read_port(port, &out->port);
	if (wrong == NULL)
		wrong = check_characters(out->path);
	split_query(out);
	return wrong;
}

const char *url_parse(struct slice url, struct url_parts *out)
{
	const char *wrong = url_parse_exact(url, out);

	while (out->path.len > 0 && out->path.at[out->path.len - 1] == '/')
		out->path.len--;
	return wrong == NULL && out->query.len != 0 ? "has a query; leave it out" : wrong;
}

const char *address_parse(struct slice address, struct slice *host, uint16_t *port)
{
	struct slice text;
	bool ipv6;
	const char *wrong = split_port(address, host, &text, &ipv6);

	if (wrong != NULL)
		return wrong;
	if (!ipv6 && !is_ip(AF_INET, *host))
		return "has no IP address; write one and a port, such as 0.0.0.0:8080 or "
		       "[::]:8080";
	if (slice_absent(text))
		return "has no port; write IP:PORT, such as 0.0.0.0:8080";
	return read_port(text, port);
}

/* ---- a Redis ---- */

static bool cut_scheme(struct slice *rest, struct slice scheme)
{
	if (rest->len < scheme.len || !slice_eq_nocase(slice_of(rest->at, scheme.len), scheme))
		return false;
	*rest = slice_of(rest->at + scheme.len, rest->len - scheme.len);
	return true;
}

/* user:password, :password or user, up to the last @. */
static void cut_login(struct slice *rest, struct redis_url_parts *out)
{
	const char *at = memrchr(rest->at, '@', rest->len);

	if (at == NULL)
		return;
	struct slice login = slice_of(rest->at, (size_t)(at - rest->at));
	*rest = slice_of(at + 1, rest->len - login.len - 1);
	out->user = slice_cut(&login, ':');
	out->password = login;
	if (out->user.len == 0)
		out->user = (struct slice){ NULL, 0 };
}

static const char *read_database(struct slice text, uint32_t *out)
{
	uint64_t value = 0;

	if (text.len != 0 && (!slice_to_u64(text, &value) || value > 65535))
		return "has a path that is no database; write its number, as in "
		       "redis://HOST:6379/0";
	*out = (uint32_t)value;
	return NULL;
}

const char *redis_url_parse(struct slice url, struct redis_url_parts *out)
{
	enum { REDIS_PORT = 6379, UNIX_PATH_MAX = 107 };
	struct slice rest = url, port;
	bool ipv6;

	*out = (struct redis_url_parts){ .port = REDIS_PORT };
	const bool local = cut_scheme(&rest, SLICE("unix://"));
	out->tls = !local && cut_scheme(&rest, SLICE("rediss://"));
	if (!local && !out->tls && !cut_scheme(&rest, SLICE("redis://")))
		return "is not the URL of a Redis; write redis://, rediss:// or unix://";
	cut_login(&rest, out);
	if (!slice_absent(out->user) && slice_absent(out->password))
		return "has a user without a password; write USER:PASSWORD@";
	if (local && (rest.len < 2 || rest.at[0] != '/' || rest.len > UNIX_PATH_MAX))
		return "has no absolute path of at most 107 bytes; write unix:///run/redis.sock";
	if (local) {
		out->path = rest;
		return NULL;
	}
	struct slice authority = slice_cut(&rest, '/');
	const char *wrong = split_port(authority, &out->host, &port, &ipv6);
	if (wrong == NULL && out->host.len == 0)
		return "has no host; write redis://HOST:6379";
	if (wrong == NULL && !ipv6)
		wrong = check_host(out->host);
	if (wrong == NULL && !slice_absent(port))
		wrong = read_port(port, &out->port);
	return wrong != NULL ? wrong : read_database(rest, &out->database);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t url_unescape(struct slice text, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] != '%') {
			out[len++] = text.at[i];
			continue;
		}
		const int high = text.len - i > 2 ? hex_digit(text.at[i + 1]) : -1;
		const int low = text.len - i > 2 ? hex_digit(text.at[i + 2]) : -1;
		if (high < 0 || low < 0)
			return SIZE_MAX;
		out[len++] = (char)(high << 4 | low);
		i += 2;
	}
	return len;
}
