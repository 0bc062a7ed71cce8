/* upstream_http_parts.h - what upstream_http.c and upstream_http_head.c have of each other. */
#ifndef GATEWAY_UPSTREAM_UPSTREAM_HTTP_PARTS_H
#define GATEWAY_UPSTREAM_UPSTREAM_HTTP_PARTS_H

#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "gateway/upstream/upstream_http.h"

/* ---- steps ------------------------------------------------------------------------------------
 * Each reads what it can. It changes http->step when it is through with its part, and leaves it
 * when it wants more bytes. */

void upstream_http_status(struct upstream_http *http, char *bytes, size_t len);
void upstream_http_headers(struct upstream_http *http, char *bytes, size_t len);
/* They are checked and dropped. */
void upstream_http_trailers(struct upstream_http *http, char *bytes, size_t len);

/* Finds the end of the line at http->at, the head's or a chunk's: its CR LF, where *behind then is. NULL when it is not
 * there yet, and *behind is `len`; or when *problem, which is static, says what is wrong in front of *behind. Nothing but
 * proper text stands in front of an end that is found (RFC 9110 5.5). */
static inline const char *upstream_http_line_end(struct upstream_http *http, const char *bytes,
						 size_t len, size_t *behind, const char **problem)
{
	must(http->scanned >= http->at && len >= http->scanned);
	const char *end = bytes + len, *stop = header_text_end(bytes + http->scanned, end);

	http->scanned = (size_t)(stop - bytes);
	*behind = len;
	if (stop == end || (*stop == '\r' && stop + 1 == end))
		return NULL;
	*behind = http->scanned + 1 + (*stop == '\r');
	if (*stop == '\r' && stop[1] == '\n')
		return stop;
	*problem = *stop == '\n' ? "a line does not end in CR LF" : "a control character in a line";
	return NULL;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static inline void upstream_http_done(struct upstream_http *http)
{
	http->verdict = UPSTREAM_HTTP_DONE;
	http->step = UPSTREAM_HTTP_OVER;
}

/* `problem` is static. */
static inline void upstream_http_refuse(struct upstream_http *http, const char *problem)
{
	http->problem = problem;
	http->keep = false;
	http->verdict = UPSTREAM_HTTP_REFUSED;
	http->step = UPSTREAM_HTTP_OVER;
}

/* An error says what it is by its status: all of its text is not needed for that. */
static inline void upstream_http_refuse_body(struct upstream_http *http)
{
	http->error_stands = http->status >= 400;
	upstream_http_refuse(http, "the body is too large");
}

static inline bool upstream_http_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif
