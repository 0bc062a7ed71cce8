#include "bench/load/load_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "codec/base/must.h"

struct load_h1 {
	struct load_shot *shot; /* NULL: idle */
	struct load_buf in;
};

static bool h1_start(struct load_conn *conn)
{
	conn->h1 = calloc(1, sizeof(*conn->h1));
	must(conn->h1 != NULL);
	return true;
}

static unsigned h1_room(const struct load_conn *conn)
{
	return conn->h1->shot == NULL && !conn->leaving;
}

static bool h1_send(struct load_conn *conn, struct load_shot *shot)
{
	const struct load_request *request = conn->request;
	char line[4096];
	int len = snprintf(line, sizeof(line),
			   "POST %s HTTP/1.1\r\nhost: %s\r\ncontent-length: %zu\r\n", request->path,
			   request->authority, request->body_len);
	must(len > 0 && (size_t)len < sizeof(line));
	load_buf_add(&conn->out, line, (size_t)len);
	for (size_t i = 0; i < request->field_count; i++) {
		load_buf_add(&conn->out, request->fields[i], strlen(request->fields[i]));
		load_buf_add(&conn->out, "\r\n", 2);
	}
	if (request->key_count != 0) {
		len = snprintf(line, sizeof(line), "%s: %s\r\n", request->keyed,
			       request->keys[shot->key % request->key_count]);
		must(len > 0 && (size_t)len < sizeof(line));
		load_buf_add(&conn->out, line, (size_t)len);
	}
	load_buf_add(&conn->out, "\r\n", 2);
	load_buf_add(&conn->out, request->body, request->body_len);
	conn->h1->shot = shot;
	return true;
}

/* The value of a header field within the head, or NULL; it ends with "\r\n". */
static const char *field(const char *head, const char *name)
{
	for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			return line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " ");
	}
	return NULL;
}

/* Whether the answer is whole. A chunked one ends as the servers that are measured end it: no trailers. */
static bool whole(const struct load_buf *in, const char *head, size_t head_len)
{
	const char *length = field(head, "content-length");
	if (length != NULL)
		return in->len - head_len >= strtoull(length, NULL, 10);
	return in->len >= 5 && memcmp(in->base + in->len - 5, "0\r\n\r\n", 5) == 0;
}

static bool h1_received(struct load_conn *conn, const char *bytes, size_t len)
{
	struct load_h1 *h1 = conn->h1;
	load_buf_add(&h1->in, bytes, len);
	const char *end = memmem(h1->in.base, h1->in.len, "\r\n\r\n", 4);
	if (end == NULL)
		return true;
	size_t head_len = (size_t)(end - h1->in.base) + 4;
	char *head = strndup(h1->in.base, head_len);
	must(head != NULL);
	int status = head_len > 12 ? atoi(head + 9) : 0;
	const char *connection = field(head, "connection");
	bool complete = whole(&h1->in, head, head_len);
	conn->leaving |= connection != NULL && strncasecmp(connection, "close", 5) == 0;
	free(head);
	if (!complete)
		return true;
	struct load_shot *shot = h1->shot;
	if (shot == NULL || status < 200)
		return false; /* nobody asked, or a server that none of ours is */
	h1->in.len = 0;
	h1->shot = NULL;
	load_ended(conn, shot, status);
	return !conn->leaving;
}

static bool h1_flush(struct load_conn *conn)
{
	(void)conn;
	return true;
}

/* A request whose connection was closed before the first byte of an answer may have been taken or
 * not: it counts as lost. */
static void h1_end(struct load_conn *conn)
{
	struct load_shot *shot = conn->h1->shot;
	if (shot != NULL)
		load_ended(conn, shot, 0);
	load_buf_fini(&conn->h1->in);
	free(conn->h1);
	conn->h1 = NULL;
}

const struct load_wire load_wire_h1 = { h1_start, h1_room, h1_send, h1_received, h1_flush, h1_end };
