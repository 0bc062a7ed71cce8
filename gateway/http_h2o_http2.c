/* http_h2o_http2.c - what only HTTP/2 needs of libh2o's insides. */
#include "gateway/http_h2o_parts.h"

#include <string.h>

static h2o_http2_stream_t *stream_of(h2o_req_t *req)
{
	return CONTAINER_OF(req, h2o_http2_stream_t, req);
}

uint32_t http2_stream_id(h2o_req_t *req)
{
	return stream_of(req)->stream_id;
}

/* What is sent is encoded as if the peer had no dynamic table, which is always allowed (RFC 7541 4.1).
 * h2o would search 32 entries for each field and enter each request's id, which never comes again; and
 * it does not heed SETTINGS_HEADER_TABLE_SIZE. */
static void forget_table(h2o_conn_t *conn)
{
	CONTAINER_OF(conn, h2o_http2_conn_t, super)->_output_header_table.hpack_capacity = 0;
}

/* h2o keeps a body, complete now, in a buffer of 8 KiB or twice that, and so on. */
static void fit_body(h2o_req_t *req)
{
	h2o_http2_stream_t *stream = stream_of(req);
	const size_t len = req->entity.len;

	if (len == 0 || stream->_req_body->capacity < 2 * len)
		return;
	char *body = h2o_mem_alloc_pool(&req->pool, len);
	(void)memcpy(body, req->entity.base, len);
	h2o_buffer_consume(&stream->_req_body, len);
	req->entity.base = body;
}

void http2_arrived(h2o_req_t *req)
{
	forget_table(req->conn);
	fit_body(req);
}
