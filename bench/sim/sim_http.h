/* sim_http.h - reads HTTP/1.1 requests out of a buffer that may hold part of one, or several.
 *
 * Strict, so that a gateway's mistakes show: both Content-Length and Transfer-Encoding, a repeated
 * or malformed length, a bare LF or a space in a header name are refused. Chunked bodies are
 * decoded in place. Pure: no socket. */
#ifndef BENCH_SIM_SIM_HTTP_H
#define BENCH_SIM_SIM_HTTP_H

#include <stdbool.h>

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#define SIM_HTTP_HEADERS_MAX 64
#define SIM_HTTP_HEAD_MAX ((size_t)64 << 10)
#define SIM_HTTP_BODY_MAX ((size_t)64 << 20)

enum sim_http_step {
	SIM_HTTP_MORE, /* the request is not complete */
	SIM_HTTP_DONE,
	SIM_HTTP_BAD, /* answer `status`, then close */
};

struct sim_http_header {
	struct slice name, value;
};

/* State of one request; {0} before its first byte. Everything is an offset until DONE, because the
 * buffer moves while it grows. */
struct sim_http {
	size_t scanned;  /* bytes in which the end of the head was not found */
	size_t head_len; /* 0: not there yet */
	size_t raw_at;   /* chunked: next byte to decode; in the end: bytes of the whole request */
	size_t body_len;
	bool chunked, has_length, keep_alive, wants_continue;
	unsigned status; /* after BAD */
	const char *problem;

	/* Valid after DONE while the bytes stay where they are. */
	struct slice method, target, body;
	struct sim_http_header headers[SIM_HTTP_HEADERS_MAX];
	size_t header_count;
};

/* Goes on with the `len` bytes at `at`, which begin with the request's first byte; call again with
 * more after MORE. After DONE the request took http->raw_at bytes. */
MUST_USE enum sim_http_step sim_http_read(struct sim_http *http, char *at, size_t len);

/* The header's value, the first of that name; absent when there is none. */
struct slice sim_http_header(const struct sim_http *http, struct slice name);

/* The reason phrase of a status. */
const char *sim_http_reason(unsigned status);

#endif
