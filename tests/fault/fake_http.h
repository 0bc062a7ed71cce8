/* fake_http.h - the caller's side. Stands in for http. */
#ifndef TESTS_FAULT_FAKE_HTTP_H
#define TESTS_FAULT_FAKE_HTTP_H

#include "tests/fault/world.h"

struct http_server {
	char unused;
};
static struct http_server the_http;

struct http_server *http_server_new(struct net_loop *loop, const struct http_listener *listeners,
				    size_t listener_count, const struct http_handler *handler,
				    const struct http_limits *limits)
{
	(void)loop;
	(void)listeners;
	(void)listener_count;
	(void)limits;
	world.handler = *handler;
	return &the_http;
}

void http_answer(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, const struct iovec *body, size_t body_count, size_t body_total)
{
	must(exchange->status == 0 && status != 0);
	must(field_count == 0 || fields != NULL);
	exchange->status = status;
	exchange->body = malloc(body_total + 1);
	must(exchange->body != NULL);
	for (size_t i = 0; i < body_count; i++) {
		must(exchange->len + body[i].iov_len <= body_total);
		if (body[i].iov_len > 0)
			memcpy(exchange->body + exchange->len, body[i].iov_base, body[i].iov_len);
		exchange->len += body[i].iov_len;
	}
	must(exchange->len == body_total);
	exchange->body[body_total] = '\0';
}

static void take_piece(struct http_exchange *exchange, const struct iovec *body, size_t count,
		       size_t total)
{
	exchange->body = realloc(exchange->body, exchange->len + total + 1);
	must(exchange->body != NULL);
	for (size_t i = 0; i < count; i++) {
		(void)memcpy(exchange->body + exchange->len, body[i].iov_base, body[i].iov_len);
		exchange->len += body[i].iov_len;
	}
	exchange->body[exchange->len] = '\0';
}

void http_begin_pieces(struct http_exchange *exchange, int status, const struct http_field *fields,
		       size_t field_count, struct slice first)
{
	const struct iovec piece = { (void *)(uintptr_t)first.at, first.len };

	must(exchange->status == 0);
	must(field_count != 0 && fields != NULL);
	exchange->status = status;
	exchange->pieces = exchange->unsent = true;
	take_piece(exchange, &piece, 1, first.len);
}

void http_more_of(struct http_exchange *exchange, const struct iovec *piece, size_t count,
		  size_t total)
{
	must(exchange->status != 0 && !exchange->unsent && !exchange->ended && total != 0);
	exchange->unsent = true;
	take_piece(exchange, piece, count, total);
}

void http_more(struct http_exchange *exchange, struct slice more)
{
	const struct iovec piece = { (void *)(uintptr_t)more.at, more.len };

	http_more_of(exchange, &piece, 1, more.len);
}

void http_end(struct http_exchange *exchange, const struct iovec *body, size_t body_count,
	      size_t body_total)
{
	must(exchange->status != 0 && !exchange->unsent && !exchange->ended);
	exchange->ended = true;
	take_piece(exchange, body, body_count, body_total);
}

void http_cut(struct http_exchange *exchange)
{
	must(exchange->status != 0 && !exchange->ended);
	exchange->ended = exchange->cut = true;
}

void http_lend(struct http_exchange *exchange, void *room, size_t bytes)
{
	must(exchange->status == 0 && (room != NULL || bytes == 0));
}

void http_return_room(struct http_exchange *exchange)
{
	must(exchange->status == 0);
}

void http_forget_request(struct http_exchange *exchange)
{
	must(exchange->status != 0 && !exchange->ended);
}

void http_rest(struct http_exchange *exchange, bool rests)
{
	must(exchange->status != 0 && !exchange->ended);
	exchange->rests = rests;
}

/* What a request has beside its slots: in.fields. */
struct fake_fields {
	const struct http_field *at;
	size_t count;
};

bool http_next_header(const struct http_incoming *in, size_t *at, struct http_field *field)
{
	const struct fake_fields *fields = in->fields;

	if (fields == NULL || *at == fields->count)
		return false;
	*field = fields->at[(*at)++];
	return true;
}

struct slice http_find_header(const struct http_incoming *in, struct slice name)
{
	struct http_field field;
	size_t at = 0;

	while (http_next_header(in, &at, &field))
		if (slice_eq(field.name, name))
			return field.value;
	return slice_of(NULL, 0);
}

void http_refuse(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, struct slice body)
{
	const struct iovec whole = { (void *)(uintptr_t)body.at, body.len };

	http_answer(exchange, status, fields, field_count, &whole, 1, body.len);
	exchange->refused = true;
}

void http_refuse_early(struct http_early *early, int status, const struct http_field *fields,
		       size_t field_count, struct slice body)
{
	http_refuse((struct http_exchange *)(void *)early, status, fields, field_count, body);
}

void http_drop_body(struct http_exchange *exchange)
{
	must(exchange->refused);
}

void http_set_limits(struct http_server *server, const struct http_limits *limits)
{
	(void)server;
	(void)limits;
}

const struct http_counters *http_counters(const struct http_server *server)
{
	(void)server;
	return NULL;
}

size_t http_in_flight(const struct http_server *server)
{
	(void)server;
	return 0;
}

size_t http_connections(const struct http_server *server)
{
	(void)server;
	return 0;
}

void http_set_tls(struct http_server *server, size_t n, struct ssl_ctx_st *tls)
{
	(void)server;
	(void)n;
	(void)tls;
}

void http_prepare_tls(struct ssl_ctx_st *tls)
{
	(void)tls;
}

void http_quiet(struct http_server *server)
{
	(void)server;
}

void http_stop_accepting(struct http_server *server)
{
	(void)server;
}

void http_shutdown(struct http_server *server)
{
	(void)server;
}

/* A request has just come, as a whole, and the turn in which it came is over. */
static inline void *world_begin(struct http_exchange *exchange, struct http_incoming *in)
{
	in->came_at = world.now;
	void *request = world.handler.begin(world.handler.owner, exchange, in);
	world_turn_ends();
	return request;
}

#endif
