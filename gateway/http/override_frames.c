/* override_frames.c - the frames that libh2o reads, and the resets that it writes, over HTTP/2.
 *
 * As override_hpack_parse.c does: libh2o calls h2o_http2_decode_frame for each frame that it is about to handle,
 * and h2o_http2__encode_rst_stream_frame for each stream that it resets, by way of the dynamic linker, and
 * finds those here. Libh2o forgets a stream that was reset, and would end the connection for a trailer that
 * was on its way, or reset the stream again for each frame. */
#include "gateway/http/http_h2o_parts.h"

#include <string.h>

/* Whose input libh2o parses; it parses none of another meanwhile. */
static _Thread_local struct edge *eater;

void http2_eats(struct edge *edge)
{
	eater = edge;
}

static h2o_http2_conn_t *conn_of(const struct edge *edge)
{
	return edge->sock->data;
}

/* ---- frames ---- */
/* An acknowledgement of settings: libh2o does nothing for it. */
static void become_nothing(h2o_http2_frame_t *frame)
{
	frame->type = H2O_HTTP2_FRAME_TYPE_SETTINGS;
	frame->flags = H2O_HTTP2_FRAME_FLAG_ACK;
	frame->length = 0;
	frame->stream_id = 0;
}

/* ---- streams that are gone ---- */
/* What the head's sender entered into the table, later ones refer to. */
static int skip_head(struct edge *edge, h2o_http2_frame_t *frame, const char **err_desc)
{
	h2o_http2_headers_payload_t payload;
	int err = h2o_http2_decode_headers_payload(&payload, frame, err_desc);

	if (err == 0)
		err = http2_skip_fields(&conn_of(edge)->_input_header_table, payload.headers,
					payload.headers_len);
	become_nothing(frame);
	return err;
}

/* Of a stream that we ended, to which libh2o gets to now. */
static int take_ended(struct edge *edge, const struct guard_ended *ended, h2o_http2_frame_t *frame,
		      const char **err_desc)
{
	h2o_http2_conn_t *conn = conn_of(edge);
	h2o_http2_stream_t *stream = h2o_http2_conn_get_stream(conn, frame->stream_id);

	if (stream != NULL && ended->refused) /* it has less than it was to be */
		stream->_expected_content_length = SIZE_MAX;
	const bool gone = stream == NULL ? frame->stream_id <= conn->pull_stream_ids.max_open
					 : stream->state > H2O_HTTP2_STREAM_STATE_RECV_BODY;
	if (gone && frame->type == H2O_HTTP2_FRAME_TYPE_HEADERS)
		return skip_head(edge, frame, err_desc);
	return 0;
}

/* Out of line: connections hardly ever have such a stream. */
static __attribute__((noinline)) ssize_t take_frame(struct edge *edge, h2o_http2_frame_t *frame,
						    ssize_t whole, const char **err_desc)
{
	const struct guard_ended *ended = guard_ends_find(&edge->guard.ends, frame->stream_id);
	const int err = ended != NULL ? take_ended(edge, ended, frame, err_desc) : 0;

	return err != 0 ? err : whole;
}

/* Declared by libh2o. A frame that is not longer than any may be is the guard's concern, and so is HEADERS: the guard makes one
 * of a header block in several frames (h2_guard_split.c). */
ssize_t h2o_http2_decode_frame(h2o_http2_frame_t *frame, const uint8_t *src, size_t len,
			       const h2o_http2_settings_t *settings, const char **err_desc)
{
	if (len < H2O_HTTP2_FRAME_HEADER_SIZE)
		return H2O_HTTP2_ERROR_INCOMPLETE;
	*frame = (h2o_http2_frame_t){ .length = h2o_http2_decode24u(src),
				      .type = src[3],
				      .flags = src[4],
				      .stream_id = h2o_http2_decode32u(src + 5) & 0x7fffffff,
				      .payload = src + H2O_HTTP2_FRAME_HEADER_SIZE };
	if (frame->length > settings->max_frame_size && frame->type != H2O_HTTP2_FRAME_TYPE_HEADERS)
		return H2O_HTTP2_ERROR_FRAME_SIZE;
	const size_t whole = H2O_HTTP2_FRAME_HEADER_SIZE + frame->length;
	if (len < whole)
		return H2O_HTTP2_ERROR_INCOMPLETE;
	if (eater == NULL || eater->guard.ends.count == 0)
		return (ssize_t)whole;
	return take_frame(eater, frame, (ssize_t)whole, err_desc);
}

/* ---- resets ---- */
void http2_put_reset(h2o_buffer_t **to, uint32_t stream, uint32_t code)
{
	enum { CODE_LEN = 4 };
	h2o_iovec_t room = h2o_buffer_reserve(to, H2O_HTTP2_FRAME_HEADER_SIZE + CODE_LEN);
	uint8_t *at =
		h2o_http2_encode_frame_header((uint8_t *)room.base, CODE_LEN,
					      H2O_HTTP2_FRAME_TYPE_RST_STREAM, 0, (int32_t)stream);
	(void)h2o_http2_encode32u(at, code);
	(*to)->size += H2O_HTTP2_FRAME_HEADER_SIZE + CODE_LEN;
}

/* Declared by libh2o. Of a stream that it resets for what came, more may come; once is enough. */
void h2o_http2__encode_rst_stream_frame(h2o_buffer_t **to, uint32_t stream, int code)
{
	const struct guard_ended *ended =
		eater != NULL ? guard_ends_find(&eater->guard.ends, stream) : NULL;

	if (ended != NULL && !ended->refused)
		return;
	if (eater != NULL)
		h2_guard_reset(&eater->guard, &eater->host->budget, stream);
	http2_put_reset(to, stream, (uint32_t)code);
}
