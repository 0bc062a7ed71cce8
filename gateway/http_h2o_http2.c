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

/* h2o keeps a body in a buffer of 8 KiB or twice that, and so on, and frees what the stream has before it says that
 * the request is over. It looks at it no more: the stream has all that it will. */
h2o_buffer_t *http2_take_body(h2o_req_t *req)
{
	h2o_http2_stream_t *stream = stream_of(req);
	const size_t len = req->entity.len;
	h2o_buffer_t *taken = stream->_req_body;

	if (len == 0)
		return NULL;
	stream->_req_body = NULL;
	if (taken->capacity < 2 * len)
		return taken;
	char *body = h2o_mem_alloc_pool(&req->pool, len);
	(void)memcpy(body, req->entity.base, len);
	req->entity.base = body;
	h2o_buffer_dispose(&taken);
	return NULL;
}
