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

/* h2o keeps a body in a buffer of 8 KiB or twice that, and so on. */
void http2_fit_body(h2o_req_t *req)
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

void http2_drop_body(h2o_req_t *req)
{
	h2o_http2_stream_t *stream = stream_of(req);

	req->entity = h2o_iovec_init(NULL, 0);
	if (stream->_req_body != NULL)
		h2o_buffer_consume(&stream->_req_body, stream->_req_body->size);
}
