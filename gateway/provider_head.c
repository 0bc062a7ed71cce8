#include "gateway/provider_head.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

/* Decimal digits of `value` at the end of `room`. */
static struct slice decimal(size_t value, char room[24])
{
	char *at = room + 24;

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	return slice_of(at, (size_t)(room + 24 - at));
}

static const struct slice begin = SLICE_INIT("POST "), host = SLICE_INIT(" HTTP/1.1\r\nhost: "),
			  line_end = SLICE_INIT("\r\n"),
			  length = SLICE_INIT("content-type: application/json\r\n"
					      "accept: application/json\r\n"
					      "content-length: "),
			  end = SLICE_INIT("\r\n\r\n");

static size_t header_len(struct slice name, struct slice value)
{
	return name.len + value.len + line_end.len;
}

static char *put(char *at, struct slice part)
{
	if (part.len != 0)
		(void)memcpy(at, part.at, part.len);
	return at + part.len;
}

static char *put_header(char *at, struct slice name, struct slice value)
{
	return put(put(put(at, name), value), line_end);
}

struct slice provider_head(const struct provider *provider, const struct endpoint *endpoint,
			   const struct provider_call *call, struct arena *into)
{
	const struct dialect *dialect = dialect_get(provider->dialect);
	const struct slice path = slice_str(dialect->path);
	char digits[24];
	const struct slice body = decimal(call->body_bytes, digits);
	/* Names with their colons; absent: that header is not sent. */
	const struct slice names[] = {
		slice_str(dialect->version_header),
		slice_str(slice_absent(call->key) ? NULL : provider->key_header),
		slice_str(call->traceparent.len == 0 ? NULL : "traceparent: "),
	};
	const struct slice values[] = { call->version, call->key, call->traceparent };
	size_t len = begin.len + endpoint->path.len + path.len + provider->query.len + host.len +
		     endpoint->authority.len + line_end.len + length.len + body.len + end.len;

	for (size_t i = 0; i < COUNT_OF(names); i++)
		len += slice_absent(names[i]) ? 0 : header_len(names[i], values[i]);
	char *bytes = arena_take(into, len);
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	char *at = put(put(put(put(bytes, begin), endpoint->path), path), provider->query);
	at = put_header(at, host, endpoint->authority);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!slice_absent(names[i]))
			at = put_header(at, names[i], values[i]);
	at = put(put(put(at, length), body), end);
	must((size_t)(at - bytes) == len);
	return slice_of(bytes, len);
}
