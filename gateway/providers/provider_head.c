#include "gateway/providers/provider_head.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/json/json_write.h"

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

static char *put(char *at, struct slice part)
{
	if (part.len != 0)
		(void)memcpy(at, part.at, part.len);
	return at + part.len;
}

/* `below`: what stands behind the dialect's path. */
static struct slice begin_of(const struct provider *provider, const struct endpoint *endpoint,
			     struct slice below, struct arena *into)
{
	const struct slice parts[] = {
		SLICE("POST "),
		endpoint->path,
		slice_str(dialect_get(provider->dialect)->path),
		below,
		provider->query,
		SLICE(" HTTP/1.1\r\nhost: "),
		endpoint->authority,
		SLICE("\r\ncontent-type: application/json\r\naccept: application/json\r\n"
		      "accept-encoding: identity\r\n"), /* nothing here decodes another one */
	};
	size_t len = 0;

	for (size_t i = 0; i < COUNT_OF(parts); i++)
		len += parts[i].len;
	char *bytes = arena_take(into, len), *at = bytes;
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		at = put(at, parts[i]);
	return slice_of(bytes, len);
}

struct slice provider_head_begin(const struct provider *provider, const struct endpoint *endpoint,
				 struct arena *into)
{
	return begin_of(provider, endpoint, SLICE(""), into);
}

static const struct slice line_end = SLICE_INIT("\r\n");

struct slice provider_head(const struct provider *provider, const struct endpoint *endpoint,
			   const struct provider_call *call, struct arena *into)
{
	const struct slice version = dialect_get(provider->dialect)->version_header;
	const char *key = slice_absent(call->key) ? NULL : provider->key_header;
	const char *trace = call->traceparent.len == 0 ? NULL : "traceparent: ";
	char digits[24];
	/* Names with their colons; absent: that header is not sent. */
	const struct {
		struct slice name, value;
	} headers[] = {
		{ version, call->version },
		{ slice_str(key), call->key },
		{ slice_str(trace), call->traceparent },
		{ SLICE("content-length: "), decimal(call->body_bytes, digits) },
	};
	size_t len = endpoint->head.len + line_end.len;

	for (size_t i = 0; i < COUNT_OF(headers); i++)
		if (!slice_absent(headers[i].name))
			len += headers[i].name.len + headers[i].value.len + line_end.len;
	char *bytes = arena_take(into, len);
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	char *at = put(bytes, endpoint->head);
	for (size_t i = 0; i < COUNT_OF(headers); i++)
		if (!slice_absent(headers[i].name))
			at = pen_lit(put(put(at, headers[i].name), headers[i].value), "\r\n");
	at = pen_lit(at, "\r\n");
	must((size_t)(at - bytes) == len);
	return slice_of(bytes, len);
}

struct slice provider_count_head(const struct provider *provider, const struct endpoint *endpoint,
				 const struct provider_call *call, struct arena *into)
{
	const char *below = dialect_get(provider->dialect)->count_path;
	struct endpoint counts = *endpoint;

	must(below != NULL);
	counts.head = begin_of(provider, endpoint, slice_str(below), into);
	return slice_absent(counts.head) ? counts.head
					 : provider_head(provider, &counts, call, into);
}
