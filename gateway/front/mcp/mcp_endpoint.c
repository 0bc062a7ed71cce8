#include "gateway/front/mcp/mcp_endpoint.h"

#include "codec/json/json_write.h"

#include <string.h>

/* Visible ASCII without a fragment: nothing that ends a request line. */
static bool is_reference(struct slice said)
{
	for (size_t i = 0; i < said.len; i++)
		if (said.at[i] <= ' ' || said.at[i] >= 0x7f || said.at[i] == '#' ||
		    said.at[i] == '\\')
			return false;
	return said.len != 0;
}

/* Without the port that the scheme has anyway. */
static struct slice without_default_port(struct slice authority, bool tls)
{
	const struct slice port = tls ? SLICE(":443") : SLICE(":80");

	if (authority.len > port.len &&
	    memcmp(authority.at + authority.len - port.len, port.at, port.len) == 0)
		authority.len -= port.len;
	return authority;
}

/* What is behind an authority that is the server's; absent: it is another's. */
static struct slice behind_own_authority(const struct endpoint *base, struct slice rest)
{
	size_t len = 0;

	while (len < rest.len && rest.at[len] != '/' && rest.at[len] != '?')
		len++;
	if (!slice_eq_nocase(without_default_port(slice_of(rest.at, len), base->tls),
			     without_default_port(base->authority, base->tls)))
		return slice_of(NULL, 0);
	return slice_of(rest.at + len, rest.len - len);
}

static struct slice join(struct slice front, struct slice back, struct arena *into)
{
	struct gather text;

	gather_init(&text, into);
	gather_raw(&text, front);
	gather_raw(&text, back);
	return gather_done(&text) == ERR_OK ? gather_flat(&text, into) : slice_of(NULL, 0);
}

/* A reference without scheme and authority. */
static struct slice resolve_path(const struct endpoint *base, struct slice said, struct arena *into)
{
	struct slice folder = base->path;

	if (said.len != 0 && said.at[0] == '/')
		return said;
	if (said.len == 0 || said.at[0] == '?')
		return join(said.len == 0 ? SLICE("/") : base->path, said, into);
	while (folder.len != 0 && folder.at[folder.len - 1] != '/')
		folder.len--;
	return join(folder.len == 0 ? SLICE("/") : folder, said, into);
}

static bool has_scheme(struct slice said)
{
	for (size_t i = 0; i < said.len; i++) {
		if (said.at[i] == ':')
			return true;
		if (said.at[i] == '/' || said.at[i] == '?')
			return false;
	}
	return false;
}

bool mcp_endpoint_resolve(const struct endpoint *base, struct slice said, struct arena *into,
			  struct slice *path)
{
	const struct slice scheme = base->tls ? SLICE("https://") : SLICE("http://");
	struct slice rest = slice_trim(said);

	if (!is_reference(rest))
		return false;
	if (has_scheme(rest)) {
		if (rest.len < scheme.len ||
		    !slice_eq_nocase(slice_of(rest.at, scheme.len), scheme))
			return false;
		rest = behind_own_authority(base,
					    slice_of(rest.at + scheme.len, rest.len - scheme.len));
		if (slice_absent(rest))
			return false;
		*path = rest.len != 0 && rest.at[0] == '/' ? rest : join(SLICE("/"), rest, into);
		return !slice_absent(*path);
	}
	if (rest.len > 1 && rest.at[0] == '/' && rest.at[1] == '/')
		return false; /* an authority without a scheme */
	*path = resolve_path(base, rest, into);
	return !slice_absent(*path);
}
