/* override_hpack_flatten.c - the head of an answer over HTTP/2, in HPACK (RFC 7541).
 *
 * Called by libh2o instead of its own h2o_hpack_flatten_response, as override_hpack_parse.c says. libh2o's would
 * pack each value in Huffman's code, look for it in its dynamic table and enter it there: too much for a
 * date that is packed anew each time and a request's id that never comes again. Plain they are 25 bytes
 * more. No field is entered into a table here (6.2.2), and the peer is told so. */
#include "gateway/http/http_h2o_parts.h"

#include <string.h>

#include "codec/base/must.h"
#include "gateway/http/hpack.h"

enum { STATUS_200 = 8, NAME_CONTENT_LENGTH = 28 }; /* indexes of the static table, appendix A */
enum { DIGITS_MAX = 20 };                          /* of 2^64 */
/* Beside a field's name and value: its first byte, or an index, and two lengths. */
enum { FIELD_ROOM = 1 + 2 * HPACK_INT_MAX };

/* A table of no bytes, said once. A peer whose SETTINGS allow less than the usual 4,096 waits for such a word
 * at the beginning of a block (4.2), and libh2o does not keep what they allow. */
static uint8_t *put_table_size(uint8_t *to, h2o_hpack_header_table_t *table)
{
	if (table->hpack_capacity == 0)
		return to;
	table->hpack_capacity = 0;
	return hpack_put_int(to, 0x20, 5, 0);
}

/* A field whose name is in the static table. */
static uint8_t *put_known(uint8_t *to, unsigned name, struct slice value)
{
	return hpack_put_text(hpack_put_int(to, 0, 4, name), value);
}

static uint8_t *put_status(uint8_t *to, int status)
{
	must(status >= 100 && status <= 999);
	const char digits[] = { (char)('0' + status / 100), (char)('0' + status / 10 % 10),
				(char)('0' + status % 10) };

	if (status == 200)
		return hpack_put_int(to, 0x80, 7, STATUS_200);
	return put_known(to, STATUS_200, slice_of(digits, sizeof(digits)));
}

static uint8_t *put_length(uint8_t *to, size_t value)
{
	char digits[DIGITS_MAX], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) != 0);
	return put_known(to, NAME_CONTENT_LENGTH,
			 slice_of(at, (size_t)(digits + sizeof(digits) - at)));
}

static uint8_t *put_field(uint8_t *to, const h2o_iovec_t *name, struct slice value)
{
	int known = 0;

	if (h2o_iovec_is_token(name))
		known = CONTAINER_OF(name, h2o_token_t, buf)->http2_static_table_name_index;
	if (known != 0)
		return put_known(to, (unsigned)known, value);
	*to++ = 0;
	return hpack_put_text(hpack_put_text(to, to_slice(*name)), value);
}

/* At least what the block takes, without its frame's head. */
static size_t room_for(const h2o_res_t *res)
{
	size_t room = HPACK_INT_MAX + 3 * FIELD_ROOM + H2O_TIMESTR_RFC1123_LEN + DIGITS_MAX;

	for (size_t i = 0; i < res->headers.size; i++)
		room += FIELD_ROOM + res->headers.entries[i].name->len +
			res->headers.entries[i].value.len;
	return room;
}

static uint8_t *put_fields(uint8_t *to, const h2o_res_t *res, const h2o_timestamp_t *ts,
			   size_t content_length)
{
	to = put_status(to, res->status);
	to = put_field(to, &H2O_TOKEN_DATE->buf,
		       slice_of(ts->str->rfc1123, H2O_TIMESTR_RFC1123_LEN));
	for (size_t i = 0; i < res->headers.size; i++)
		to = put_field(to, res->headers.entries[i].name,
			       to_slice(res->headers.entries[i].value));
	return content_length == SIZE_MAX ? to : put_length(to, content_length);
}

/* Makes frames of at most `most` bytes of the block of `len` bytes behind the first frame's head, from the
 * last one on, which goes furthest. Nearly always there is one. Returns their end. */
static uint8_t *frame_block(uint8_t *begin, size_t len, size_t most, uint32_t stream_id)
{
	const size_t frames = (len + most - 1) / most;

	for (size_t i = frames; i-- > 0;) {
		uint8_t *frame = begin + i * (H2O_HTTP2_FRAME_HEADER_SIZE + most);
		const size_t piece = i + 1 == frames ? len - i * most : most;
		const uint8_t flags = i + 1 == frames ? H2O_HTTP2_FRAME_FLAG_END_HEADERS : 0;
		if (i != 0)
			(void)memmove(frame + H2O_HTTP2_FRAME_HEADER_SIZE,
				      begin + H2O_HTTP2_FRAME_HEADER_SIZE + i * most, piece);
		(void)h2o_http2_encode_frame_header(frame, piece,
						    i == 0 ? H2O_HTTP2_FRAME_TYPE_HEADERS
							   : H2O_HTTP2_FRAME_TYPE_CONTINUATION,
						    flags, (int32_t)stream_id);
	}
	return begin + len + frames * H2O_HTTP2_FRAME_HEADER_SIZE;
}

/* libh2o's declaration has no comment: it appends to *buf. */
void h2o_hpack_flatten_response(h2o_buffer_t **buf, h2o_hpack_header_table_t *table,
				uint32_t stream_id, size_t max_frame_size, h2o_res_t *res,
				h2o_timestamp_t *ts, const h2o_iovec_t *server_name,
				size_t content_length)
{
	const size_t room = room_for(res), frames = room / max_frame_size + 1;

	must(server_name->len == 0); /* http_h2o.c */
	uint8_t *begin =
		(uint8_t *)h2o_buffer_reserve(buf, room + frames * H2O_HTTP2_FRAME_HEADER_SIZE)
			.base;
	uint8_t *block = begin + H2O_HTTP2_FRAME_HEADER_SIZE, *to = put_table_size(block, table);
	const size_t len = (size_t)(put_fields(to, res, ts, content_length) - block);
	(*buf)->size += (size_t)(frame_block(begin, len, max_frame_size, stream_id) - begin);
}
