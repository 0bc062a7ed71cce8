#include "bench/load/load_wire.h"

#include <nghttp2/nghttp2.h>

#include <stdlib.h>
#include <string.h>

#include "codec/base/must.h"

enum { FIELDS_MAX = 32, STREAMS_MAX = 128, WINDOW = 1 << 28 };

struct load_h2 {
	nghttp2_session *session;
	struct h2_stream *streams; /* those in flight */
};

struct h2_stream {
	struct load_shot *shot;
	size_t body_at;
	int status;
	struct h2_stream *next, **back; /* *back is this */
};

static void stream_free(struct h2_stream *stream)
{
	*stream->back = stream->next;
	if (stream->next != NULL)
		stream->next->back = stream->back;
	free(stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *data)
{
	struct h2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	(void)flags, (void)data;
	if (stream != NULL && name_len == 7 && memcmp(name, ":status", 7) == 0 && value_len == 3)
		stream->status = atoi((const char *)value); /* nghttp2 ends it with a zero */
	return 0;
}

/* A stream that the server names as untouched may be sent again (RFC 9113 8.7). */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *data)
{
	struct load_conn *conn = data;
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	if (stream == NULL)
		return 0;
	struct load_shot *shot = stream->shot;
	int status = error == NGHTTP2_NO_ERROR ? stream->status : 0;
	stream_free(stream);
	if (error == NGHTTP2_REFUSED_STREAM)
		load_untouched(conn, shot);
	else
		load_ended(conn, shot, status);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
	struct load_conn *conn = data;
	(void)session;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		conn->leaving = true;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *into, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *data)
{
	struct load_conn *conn = data;
	struct h2_stream *stream = source->ptr;
	size_t left = conn->request->body_len - stream->body_at;
	size_t now = left < room ? left : room;
	(void)session, (void)id;
	(void)memcpy(into, conn->request->body + stream->body_at, now);
	stream->body_at += now;
	if (now == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)now;
}

static bool h2_start(struct load_conn *conn)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	nghttp2_session_callbacks *callbacks;
	must(nghttp2_session_callbacks_new(&callbacks) == 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	conn->h2 = calloc(1, sizeof(*conn->h2));
	must(conn->h2 != NULL);
	must(nghttp2_session_client_new(&conn->h2->session, callbacks, conn) == 0);
	nghttp2_session_callbacks_del(callbacks);
	return nghttp2_submit_settings(conn->h2->session, NGHTTP2_FLAG_NONE, settings,
				       COUNT_OF(settings)) == 0 &&
	       nghttp2_session_set_local_window_size(conn->h2->session, NGHTTP2_FLAG_NONE, 0,
						     WINDOW) == 0;
}

static unsigned h2_room(const struct load_conn *conn)
{
	uint32_t most = nghttp2_session_get_remote_settings(
		conn->h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	most = most < STREAMS_MAX ? most : STREAMS_MAX;
	return conn->leaving || conn->in_flight >= most ? 0 : most - conn->in_flight;
}

static nghttp2_nv field_of(const char *name, size_t name_len, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_len,
			     strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static bool h2_send(struct load_conn *conn, struct load_shot *shot)
{
	const struct load_request *request = conn->request;
	struct h2_stream *stream = calloc(1, sizeof(*stream));
	nghttp2_nv fields[FIELDS_MAX];
	size_t n = 0;
	must(stream != NULL && request->field_count + 5 <= FIELDS_MAX);
	fields[n++] = field_of(":method", 7, "POST");
	fields[n++] = field_of(":scheme", 7, "http");
	fields[n++] = field_of(":authority", 10, request->authority);
	fields[n++] = field_of(":path", 5, request->path);
	for (size_t i = 0; i < request->field_count; i++) {
		const char *colon = strchr(request->fields[i], ':');
		fields[n++] = field_of(request->fields[i], (size_t)(colon - request->fields[i]),
				       colon + 1 + strspn(colon + 1, " "));
	}
	if (request->key_count != 0)
		fields[n++] = field_of(request->keyed, strlen(request->keyed),
				       request->keys[shot->key % request->key_count]);
	*stream = (struct h2_stream){ .shot = shot,
				      .next = conn->h2->streams,
				      .back = &conn->h2->streams };
	if (stream->next != NULL)
		stream->next->back = &stream->next;
	conn->h2->streams = stream;
	nghttp2_data_provider body = { .source.ptr = stream, .read_callback = read_body };
	return nghttp2_submit_request(conn->h2->session, NULL, fields, n, &body, stream) > 0;
}

static bool h2_flush(struct load_conn *conn)
{
	const uint8_t *bytes;
	ssize_t len;
	while ((len = nghttp2_session_mem_send(conn->h2->session, &bytes)) > 0)
		load_buf_add(&conn->out, bytes, (size_t)len);
	return len == 0 && (nghttp2_session_want_read(conn->h2->session) ||
			    nghttp2_session_want_write(conn->h2->session) || conn->out.len != 0);
}

static bool h2_received(struct load_conn *conn, const char *bytes, size_t len)
{
	return nghttp2_session_mem_recv(conn->h2->session, (const uint8_t *)bytes, len) ==
	       (ssize_t)len;
}

static void h2_end(struct load_conn *conn)
{
	while (conn->h2->streams != NULL) {
		struct load_shot *shot = conn->h2->streams->shot;
		stream_free(conn->h2->streams);
		load_ended(conn, shot, 0);
	}
	nghttp2_session_del(conn->h2->session);
	free(conn->h2);
	conn->h2 = NULL;
}

const struct load_wire load_wire_h2 = { h2_start, h2_room, h2_send, h2_received, h2_flush, h2_end };
