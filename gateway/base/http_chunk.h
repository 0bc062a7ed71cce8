/* http_chunk.h - the size line of a chunk, read as it comes (RFC 9112 7.1); pure.
 *
 * One reader for both directions: the answers of providers, and the requests of callers, which libh2o's own
 * decoder would take with bare LFs and with text behind a size. Two servers that disagree about where a
 * chunk ends disagree about where the next request begins. */
#ifndef GATEWAY_BASE_HTTP_CHUNK_H
#define GATEWAY_BASE_HTTP_CHUNK_H

#include "codec/base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_CHUNK_LINE_MAX = 256 /* bytes of size, extensions and CR LF */ };

enum http_chunk_step {
	HTTP_CHUNK_DIGITS,
	HTTP_CHUNK_BLANKS, /* behind the digits: an extension or the end follows */
	HTTP_CHUNK_EXTENSION,
	HTTP_CHUNK_LF, /* the CR was there */
	HTTP_CHUNK_WHOLE,
};

/* All zero: at the beginning of a line. */
struct http_chunk_line {
	uint64_t size; /* of the chunk's data; valid once the step is HTTP_CHUNK_WHOLE */
	uint16_t len;  /* bytes of the line so far */
	uint8_t digits;
	uint8_t step; /* enum http_chunk_step */
};

/* Takes bytes of `input` from *at on, up to the end of the line at most, and moves *at behind them. NULL:
 * nothing is wrong so far. Else a static text says what is; then the line must not be read on. The outcome
 * does not depend on how the input is cut. */
MUST_USE const char *http_chunk_line_read(struct http_chunk_line *line, const char *input,
					  size_t len, size_t *at);

/* ---- a whole body, without touching it ---- */

enum http_chunk_part {
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_DATA_CR,
	HTTP_CHUNK_DATA_LF,
	HTTP_CHUNK_TRAILER,    /* within a line of a trailer, or at its beginning */
	HTTP_CHUNK_TRAILER_LF, /* behind a CR */
	HTTP_CHUNK_OVER,       /* behind the body: the next request */
};

/* All zero: behind the head. */
struct http_chunks {
	struct http_chunk_line line;
	uint64_t left;     /* bytes of this chunk's data that are still to come */
	uint32_t trailers; /* bytes of all trailers so far */
	uint32_t column;   /* of the trailer's line that is being read */
	bool named;        /* its colon was there */
	uint8_t part;      /* enum http_chunk_part */
};

/* Judges the next bytes of a chunked body, each of which is to be given once. What lies behind the body's
 * end is not looked at. NULL: nothing is wrong so far; else likewise a static text. `trailers_max` bounds the
 * trailers' bytes. */
MUST_USE const char *http_chunks_scan(struct http_chunks *chunks, const char *input, size_t len,
				      size_t trailers_max);

#endif
