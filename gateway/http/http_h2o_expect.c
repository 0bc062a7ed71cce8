/* http_h2o_expect.c - requests over HTTP/1.1 that wait for 100 Continue before they send their body (RFC 9110 10.1.1): the
 * handler is asked while there is only a head, which no libh2o has read yet. */
#include "gateway/http/http_h2o_exchange.h"

#include "codec/base/must.h"
#include "gateway/http/http_h2o_parts.h"

#include <stdio.h>

struct http_early {
	struct edge *edge;
	bool bodyless;     /* the answer is to have no body */
	struct slice head; /* behind the request line */
};

/* ---- the head ---- */
/* A list that comes in several lines is judged when libh2o has put it together. The name becomes lower case where it is,
 * as libh2o would make it. */
static void take_field(struct slice line, size_t body_bytes_max, struct http_incoming *in,
		       bool *listed)
{
	struct slice value = line;
	const struct slice name = slice_cut(&value, ':');
	size_t n = 0;
	uint64_t length;

	h2o_strtolower((char *)(uintptr_t)name.at, name.len);
	while (n < HTTP_HEADER_COUNT && !slice_eq(name, exchange_headers[n]))
		n++;
	value = slice_trim(value);
	if (n == HTTP_ACCEPT && *listed)
		in->headers[n] = slice_of(NULL, 0);
	else if (n != HTTP_HEADER_COUNT && slice_absent(in->headers[n]))
		in->headers[n] = value;
	*listed |= n == HTTP_ACCEPT;
	if (slice_eq(name, SLICE("host")))
		in->authority = value;
	if (slice_eq(name, SLICE("content-length")))
		in->body_too_large = !slice_to_u64(value, &length) || length > body_bytes_max;
}

/* False: libh2o will not take it for a request. */
static bool read_head(struct http_early *early, size_t body_bytes_max, struct http_incoming *in)
{
	struct slice *head = &early->head;
	struct slice line = exchange_next_line(head);
	bool listed = false;

	while (line.len == 0 && head->len != 0) /* RFC 9112 2.2 */
		line = exchange_next_line(head);
	in->method = slice_cut(&line, ' ');
	in->query = slice_cut(&line, ' ');
	if (slice_absent(line) || in->query.len == 0)
		return false;
	in->path = slice_cut(&in->query, '?');
	struct slice rest = *head;
	for (line = exchange_next_line(&rest); line.len != 0; line = exchange_next_line(&rest))
		take_field(line, body_bytes_max, in, &listed);
	early->bodyless = slice_eq(in->method, SLICE("HEAD"));
	return true;
}

bool exchange_expects(void *owner, struct edge *edge, struct slice head)
{
	struct http_server *server = owner;
	const struct http_handler *handler = &server->handler;
	struct http_early early = { .edge = edge, .head = head };
	struct http_incoming in = { .names = edge->names,
				    .wrongs = &edge->wrongs,
				    .connection = edge->number,
				    .listener = edge->listener,
				    .loopback = edge->loopback,
				    .came_at = net_now(server->edges.loop),
				    .fields = &early.head,
				    .early = true };

	if (handler->expects == NULL || !read_head(&early, server->limits.body_bytes_max, &in))
		return true;
	const bool goes_on = handler->expects(handler->owner, &early, &in);
	must(goes_on == (edge->h1.answer == NULL));
	if (!goes_on)
		edge_count(&server->counters.requests);
	return goes_on;
}

/* ---- the answer ---- */
static void put(h2o_buffer_t **to, struct slice text)
{
	const h2o_iovec_t room = h2o_buffer_reserve(to, text.len);

	must(room.base != NULL); /* libh2o ends the process where memory is refused */
	if (text.len != 0)
		(void)memcpy(room.base, text.at, text.len);
	(*to)->size += text.len;
}

void http_refuse_early(struct http_early *early, int status, const struct http_field *fields,
		       size_t field_count, struct slice body)
{
	h2o_buffer_t **to = &early->edge->h1.answer;
	char line[128];

	const size_t length = exchange_length(status, body.len);

	must(*to == NULL);
	h2o_buffer_init(to, &h2o_socket_buffer_prototype);
	int len = snprintf(line, sizeof(line), "HTTP/1.1 %d %s\r\nConnection: close\r\n", status,
			   http_reason(status));
	if (length != SIZE_MAX)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "Content-Length: %zu\r\n",
				length);
	must(len > 0 && (size_t)len < sizeof(line));
	put(to, slice_of(line, (size_t)len));
	for (size_t i = 0; i < field_count; i++) {
		must(!exchange_writes(fields[i].name));
		put(to, fields[i].name);
		put(to, SLICE(": "));
		put(to, fields[i].value);
		put(to, SLICE("\r\n"));
	}
	put(to, SLICE("\r\n"));
	if (!early->bodyless && exchange_has_body(status))
		put(to, body);
}
