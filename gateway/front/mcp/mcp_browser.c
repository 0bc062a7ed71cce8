#include "gateway/front/mcp/mcp_browser.h"

#include "codec/json/json_write.h"
#include "gateway/base/header_text.h"

#include <arpa/inet.h>
#include <string.h>

static const struct slice always =
	SLICE_INIT("Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, "
		   "MCP-Protocol-Version, Mcp-Method, Mcp-Name, "
		   "Sluice-Upstream-Authorization, traceparent, tracestate, baggage");

/* A parameter of a tool's, whatever its name, or what the configuration passes on. */
static bool is_allowed(struct slice name, const struct mcp_server *server)
{
	static const struct slice param = SLICE_INIT("mcp-param-");

	if (!header_text_is_name(name))
		return false;
	if (name.len > param.len && slice_eq_nocase(slice_of(name.at, param.len), param))
		return true;
	for (uint32_t i = 0; server != NULL && i < server->pass_header_count; i++)
		if (slice_eq_nocase(server->pass_headers[i], name))
			return true;
	return false;
}

struct slice mcp_browser_headers(struct slice asked, const struct mcp_server *server,
				 struct arena *into)
{
	struct gather text;
	bool more = false;

	gather_init(&text, into);
	gather_raw(&text, always);
	while (!slice_absent(asked)) {
		const struct slice name = slice_trim(slice_cut(&asked, ','));
		if (!is_allowed(name, server))
			continue;
		gather_lit(&text, ", ");
		gather_raw(&text, name);
		more = true;
	}
	const struct slice whole =
		more && gather_done(&text) == ERR_OK ? gather_flat(&text, into) : slice_of(NULL, 0);
	return slice_absent(whole) ? always : whole;
}

size_t mcp_browser_fields(struct slice origin, struct slice headers,
			  struct http_field fields[MCP_BROWSER_FIELDS])
{
	static const struct http_field exposed = {
		SLICE_INIT("access-control-expose-headers"),
		SLICE_INIT("Mcp-Session-Id, WWW-Authenticate, Retry-After, Sluice-Request-Id"),
	};
	static const struct http_field asked[] = {
		{ SLICE_INIT("access-control-allow-methods"), SLICE_INIT("GET, POST, DELETE") },
		{ SLICE_INIT("access-control-max-age"), SLICE_INIT("600") },
	};
	size_t count = 0;

	fields[count++] = (struct http_field){ SLICE("access-control-allow-origin"), origin };
	fields[count++] = (struct http_field){ SLICE("vary"), SLICE("Origin") };
	if (slice_absent(headers)) {
		fields[count++] = exposed;
		return count;
	}
	for (size_t i = 0; i < COUNT_OF(asked); i++)
		fields[count++] = asked[i];
	fields[count++] = (struct http_field){ SLICE("access-control-allow-headers"), headers };
	return count;
}

/* Without port, and without the brackets and the zone (RFC 6874) of an IPv6 address. */
static struct slice host_of(struct slice authority)
{
	if (authority.len != 0 && authority.at[0] == '[') {
		const char *end = memchr(authority.at, ']', authority.len);
		if (end == NULL)
			return slice_of(NULL, 0);
		struct slice address = slice_of(authority.at + 1, (size_t)(end - authority.at) - 1);
		return slice_cut(&address, '%');
	}
	struct slice rest = authority;
	return slice_cut(&rest, ':');
}

static bool is_address(struct slice host)
{
	struct in6_addr address;
	char text[64];

	if (host.len >= sizeof(text))
		return false;
	(void)memcpy(text, host.at, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

static struct slice host_of_url(struct slice url)
{
	const char *at = slice_absent(url) ? NULL : memmem(url.at, url.len, "://", 3);

	if (at == NULL)
		return slice_of(NULL, 0);
	struct slice rest = slice_of(at + 3, url.len - (size_t)(at + 3 - url.at));
	return host_of(slice_cut(&rest, '/'));
}

bool mcp_browser_names_us(struct slice authority, struct slice public_url)
{
	if (slice_absent(authority))
		return true; /* HTTP/1.0: no browser of today */
	const struct slice host = host_of(authority);
	const struct slice ours = host_of_url(public_url);
	if (slice_absent(host) || host.len == 0)
		return false;
	return slice_eq_nocase(host, SLICE("localhost")) || is_address(host) ||
	       (!slice_absent(ours) && slice_eq_nocase(host, ours));
}
