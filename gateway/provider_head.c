#include "gateway/provider_head.h"

#include "codec/base/must.h"

enum { HEAD_PARTS = 20 };

struct head_parts {
	struct slice parts[HEAD_PARTS];
	size_t count, bytes;
};

static void add(struct head_parts *head, struct slice part)
{
	must(head->count < HEAD_PARTS);
	head->parts[head->count++] = part;
	head->bytes += part.len;
}

/* A header whose name and colon are `name`. */
static void add_header(struct head_parts *head, const char *name, struct slice value)
{
	add(head, slice_str(name));
	add(head, value);
	add(head, SLICE("\r\n"));
}

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

struct slice provider_head(const struct provider *provider, const struct endpoint *endpoint,
			   const struct provider_call *call, struct arena *into)
{
	const struct dialect *dialect = dialect_get(provider->dialect);
	struct head_parts head = { .count = 0 };
	char digits[24];

	add(&head, SLICE("POST "));
	add(&head, endpoint->path);
	add(&head, slice_str(dialect->path));
	add(&head, provider->query);
	add(&head, SLICE(" HTTP/1.1\r\nhost: "));
	add(&head, endpoint->authority);
	add(&head, SLICE("\r\n"));
	if (dialect->version_header != NULL)
		add_header(&head, dialect->version_header, call->version);
	if (!slice_absent(call->key))
		add_header(&head, provider->key_header, call->key);
	if (call->traceparent.len != 0)
		add_header(&head, "traceparent: ", call->traceparent);
	add(&head, SLICE("content-type: application/json\r\naccept: application/json\r\n"
			 "content-length: "));
	add(&head, decimal(call->body_bytes, digits));
	add(&head, SLICE("\r\n\r\n"));

	char *bytes = arena_take(into, head.bytes);
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	char *at = bytes;
	for (size_t i = 0; i < head.count; i++) {
		if (head.parts[i].len != 0)
			(void)memcpy(at, head.parts[i].at, head.parts[i].len);
		at += head.parts[i].len;
	}
	return slice_of(bytes, head.bytes);
}
