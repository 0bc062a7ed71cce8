/* upstream_http_parts.h - what upstream_http.c and upstream_http_head.c have of each other. */
#ifndef GATEWAY_UPSTREAM_HTTP_PARTS_H
#define GATEWAY_UPSTREAM_HTTP_PARTS_H

#include "gateway/upstream_http.h"

/* ---- steps ------------------------------------------------------------------------------------
 * Each reads what it can. It changes http->step when it is through with its part, and leaves it
 * when it wants more bytes. */

void upstream_http_status(struct upstream_http *http, char *bytes, size_t len);
void upstream_http_headers(struct upstream_http *http, char *bytes, size_t len);
/* They are checked and dropped. */
void upstream_http_trailers(struct upstream_http *http, char *bytes, size_t len);

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

/* Of any line, the head's and the chunks'. */
extern const char upstream_http_bare_lf[];

static inline bool upstream_http_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif
