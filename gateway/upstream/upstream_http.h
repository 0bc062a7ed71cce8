/* upstream_http.h - reads one HTTP/1.1 answer of a provider; pure (RFC 9112).
 *
 * Stricter than the RFC's licence to be lenient: what is ambiguous is refused, because the bytes
 * come from outside and the next request shares the connection. The reader is given all bytes
 * received so far, again and again, and goes on where it stopped; it keeps offsets, so that the
 * buffer may move between calls. Chunked bodies are decoded in place: framing is squeezed out, and
 * the body becomes one run of bytes. Splitting the input differently never changes the outcome.
 *
 * No coding is ever asked for: a body that has one (Content-Encoding) is refused, but that of an error, which
 * says by its status what it is; its body is as good as empty.
 *
 * A body may also be taken in pieces, whatever its length: then the bytes that were read are given
 * back with each piece, and the offsets begin anew. */
#ifndef GATEWAY_UPSTREAM_UPSTREAM_HTTP_H
#define GATEWAY_UPSTREAM_UPSTREAM_HTTP_H

#include "codec/base/attr.h"
#include "codec/dialect/dialect.h"
#include "gateway/base/http_chunk.h"

enum {
	UPSTREAM_HTTP_HEADERS_MAX = 100, /* lines: headers, trailers, and those of 1xx answers */
};

struct upstream_http_limits {
	size_t head_max; /* bytes of status line and headers, 1xx answers before it included; and of
			    trailers; below 4 GiB */
	size_t body_max; /* bytes of the body; its chunk framing may take body_max + head_max more
			  */
};

enum upstream_http_verdict {
	UPSTREAM_HTTP_MORE,    /* no complete answer yet */
	UPSTREAM_HTTP_DONE,    /* complete; bytes behind `at` do not belong to it */
	UPSTREAM_HTTP_REFUSED, /* not HTTP/1.x, ambiguous or too large; `problem` says what */
};

enum upstream_http_step {
	UPSTREAM_HTTP_STATUS,
	UPSTREAM_HTTP_HEADERS,
	UPSTREAM_HTTP_LENGTH, /* a body of known length */
	UPSTREAM_HTTP_CHUNK_LINE,
	UPSTREAM_HTTP_CHUNK_DATA,
	UPSTREAM_HTTP_CHUNK_END,
	UPSTREAM_HTTP_TRAILERS,
	UPSTREAM_HTTP_UNTIL_CLOSE,
	UPSTREAM_HTTP_OVER, /* done or refused: the verdict stands */
};

/* A header's value as offsets, which limits.head_max bounds; `at` 0: not sent. */
struct upstream_http_span {
	uint32_t at, len;
};

enum rate_field { RATE_LIMIT, RATE_REMAINING, RATE_RESET, RATE_FIELDS };

/* What each piece of a body touches comes first: there are many readers, and the cache is small. */
struct upstream_http {
	struct upstream_http_limits limits;
	/* private */
	enum upstream_http_step step;
	enum upstream_http_verdict verdict;
	/* the outcome */
	size_t at;         /* offset of the first byte not read yet */
	size_t body, size; /* offset and length of the (decoded) body so far */
	size_t start;      /* offset of the answer itself, behind 1xx answers */
	/* private */
	size_t scanned; /* no line end before this offset */
	size_t framing; /* bytes squeezed out of the body */
	size_t left;    /* bytes of the body or chunk still to come */
	struct http_chunk_line line;
	size_t trailers;
	/* the outcome */
	bool waits; /* behind the head, for upstream_http_go_on */
	bool head;  /* the final head is complete; status and headers are valid */
	bool keep;  /* the peer allows another request on this connection */
	/* private */
	uint8_t minor; /* HTTP/1.minor */
	uint32_t lines;
	bool length_sent, chunked, close, keep_alive;
	bool ask;   /* stop behind the head */
	bool coded; /* the body is not the answer itself, but compressed or the like */
	/* the outcome */
	bool error_stands; /* refused for its body's size alone, and its status is an error's */
	uint16_t status;
	const char *problem; /* static; NULL unless refused */
	struct upstream_http_span date, retry_after, retry_after_ms, should_retry, request_id,
		content_type;
	bool rates_sent;
	struct upstream_http_span rates[RATE_KINDS][RATE_FIELDS];
};

/* Ready for the first byte; `limits` is copied. */
void upstream_http_init(struct upstream_http *http, const struct upstream_http_limits *limits);

/* Makes the reader wait behind the head of an answer that has a body. Before the first read. */
void upstream_http_ask(struct upstream_http *http);

/* It waits: goes on with the next read. `pieces`: the body is taken piece by piece, so limits.body_max
 * does not bound it. */
void upstream_http_go_on(struct upstream_http *http, bool pieces);

/* It waits: the answer has no body, whatever its head says, because the request was a HEAD. The next read finds it
 * complete. */
void upstream_http_skip_body(struct upstream_http *http);

/* Reads on. `bytes` are all bytes since upstream_http_init, `len` never less than before; decoding
 * in place moves bytes behind the head. Once done or refused the verdict stays. */
enum upstream_http_verdict upstream_http_read(struct upstream_http *http, char *bytes, size_t len);

/* A body in pieces: what has been decoded of it since the last time, a slice of `bytes` (perhaps empty),
 * and how many of the bytes are done with: the caller removes these from the front before it reads on.
 * The spans of the headers are not valid any more. */
size_t upstream_http_take(struct upstream_http *http, const char *bytes, struct slice *piece);

/* The peer closed its side orderly: DONE ends a body that runs until then; MORE means that the
 * answer was cut short. */
enum upstream_http_verdict upstream_http_end(struct upstream_http *http);

/* The answer's status, headers and body as slices of `bytes`: after DONE; while it waits, then with an
 * empty body; and where error_stands, then with what there is of its body. wall_s is left alone, and
 * there are no rates. */
void upstream_http_answer(const struct upstream_http *http, const char *bytes,
			  struct provider_answer *answer);

/* The header lines of that answer, each with its CR LF, as a slice of `bytes`: while it waits, and after DONE unless its
 * body was taken in pieces. Empty: there are none.
 * upstream_next_field walks them. */
struct slice upstream_http_fields(const struct upstream_http *http, const char *bytes);

/* The rates of that answer, for its headers: they are seldom sent, and large. In `into`; NULL where none
 * was sent, there is no memory, or `into` is NULL. */
const struct rate_header *upstream_http_rates(const struct upstream_http *http, const char *bytes,
					      struct arena *into);

#endif
