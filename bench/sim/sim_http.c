#include "bench/sim/sim_http.h"

static enum sim_http_step bad(struct sim_http *http, unsigned status, const char *problem)
{
	http->status = status;
	http->problem = problem;
	return SIM_HTTP_BAD;
}

/* Takes one line without its CRLF off the front of *rest. */
static bool cut_line(struct slice *rest, struct slice *line)
{
	*line = slice_cut(rest, '\n');
	if (line->len == 0 || line->at[line->len - 1] != '\r')
		return false;
	line->len--;
	return memchr(line->at, '\r', line->len) == NULL;
}

static bool request_line(struct sim_http *http, struct slice line)
{
	http->method = slice_cut(&line, ' ');
	http->target = slice_cut(&line, ' ');
	if (http->method.len == 0 || http->target.len == 0 || http->target.at[0] != '/')
		return false;
	http->keep_alive = slice_eq(line, SLICE("HTTP/1.1"));
	return http->keep_alive || slice_eq(line, SLICE("HTTP/1.0"));
}

/* What the connection itself needs to know of a header. */
static bool note(struct sim_http *http, struct slice name, struct slice value)
{
	uint64_t length;

	if (slice_eq_nocase(name, SLICE("content-length"))) {
		if (http->has_length || !slice_to_u64(value, &length) || length > SIZE_MAX / 2)
			return false;
		http->has_length = true;
		http->body_len = (size_t)length;
	} else if (slice_eq_nocase(name, SLICE("transfer-encoding"))) {
		if (http->chunked || !slice_eq_nocase(value, SLICE("chunked")))
			return false;
		http->chunked = true;
	} else if (slice_eq_nocase(name, SLICE("connection"))) {
		if (slice_has_nocase(value, SLICE("close")))
			http->keep_alive = false;
		else if (slice_has_nocase(value, SLICE("keep-alive")))
			http->keep_alive = true;
	} else if (slice_eq_nocase(name, SLICE("expect"))) {
		http->wants_continue = slice_eq_nocase(value, SLICE("100-continue"));
	}
	return !(http->has_length && http->chunked);
}

/* Reads request line and headers; `note` sees each header only the first time. */
static enum sim_http_step head(struct sim_http *http, const char *at, bool first_time)
{
	struct slice rest = slice_of(at, http->head_len - 2), line;

	if (!cut_line(&rest, &line) || (first_time && !request_line(http, line)))
		return bad(http, 400, "request line");
	if (!first_time) {
		http->method = slice_cut(&line, ' ');
		http->target = slice_cut(&line, ' ');
	}
	http->header_count = 0;
	while (rest.len > 0) {
		if (!cut_line(&rest, &line))
			return bad(http, 400, "line end in a header");
		struct slice name = slice_cut(&line, ':');

		if (name.len == 0 || slice_absent(line) || slice_trim(name).len != name.len)
			return bad(http, 400, "header");
		if (http->header_count == SIM_HTTP_HEADERS_MAX)
			return bad(http, 431, "too many headers");
		struct sim_http_header *header = &http->headers[http->header_count++];

		*header = (struct sim_http_header){ name, slice_trim(line) };
		if (first_time && !note(http, name, header->value))
			return bad(http, 400, "length, transfer encoding or their combination");
	}
	return SIM_HTTP_DONE;
}

static enum sim_http_step find_head(struct sim_http *http, const char *at, size_t len)
{
	size_t from = http->scanned < 3 ? 0 : http->scanned - 3;
	const char *end = memmem(at + from, len - from, "\r\n\r\n", 4);

	http->scanned = len;
	if (end == NULL)
		return len > SIM_HTTP_HEAD_MAX ? bad(http, 431, "headers too large")
					       : SIM_HTTP_MORE;
	http->head_len = (size_t)(end - at) + 4;
	http->raw_at = http->head_len;
	return head(http, at, true);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1a", perhaps with an extension after ';'. */
static bool chunk_size(struct slice line, size_t *out)
{
	struct slice digits = slice_cut(&line, ';');

	*out = 0;
	for (size_t i = 0; i < digits.len; i++) {
		int digit = hex_digit(digits.at[i]);

		if (digit < 0 || *out > SIM_HTTP_BODY_MAX)
			return false;
		*out = *out * 16 + (size_t)digit;
	}
	return digits.len > 0;
}

/* Moves each chunk that is there as a whole behind the body so far. Trailers are refused. */
static enum sim_http_step decode(struct sim_http *http, char *at, size_t len)
{
	for (;;) {
		struct slice rest = slice_of(at + http->raw_at, len - http->raw_at), line;
		size_t size;

		if (rest.len == 0 || memchr(rest.at, '\n', rest.len) == NULL)
			return rest.len > 256 ? bad(http, 400, "chunk size") : SIM_HTTP_MORE;
		if (!cut_line(&rest, &line) || !chunk_size(line, &size))
			return bad(http, 400, "chunk size");
		if (http->body_len + size > SIM_HTTP_BODY_MAX)
			return bad(http, 413, "body too large");
		if (rest.len < size + 2)
			return SIM_HTTP_MORE;
		if (memcmp(rest.at + size, "\r\n", 2) != 0)
			return bad(http, 400, "end of a chunk");
		memmove(at + http->head_len + http->body_len, rest.at, size);
		http->body_len += size;
		http->raw_at = (size_t)(rest.at - at) + size + 2;
		if (size == 0)
			return SIM_HTTP_DONE;
	}
}

enum sim_http_step sim_http_read(struct sim_http *http, char *at, size_t len)
{
	enum sim_http_step step = SIM_HTTP_DONE;
	bool fresh = http->head_len == 0;

	if (fresh)
		step = find_head(http, at, len);
	if (step != SIM_HTTP_DONE)
		return step;
	if (http->body_len > SIM_HTTP_BODY_MAX)
		return bad(http, 413, "body too large");
	if (http->chunked) {
		step = decode(http, at, len);
		if (step != SIM_HTTP_DONE)
			return step;
	} else {
		if (len - http->head_len < http->body_len)
			return SIM_HTTP_MORE;
		http->raw_at = http->head_len + http->body_len;
	}
	http->body = slice_of(at + http->head_len, http->body_len);
	return fresh ? SIM_HTTP_DONE : head(http, at, false);
}

struct slice sim_http_header(const struct sim_http *http, struct slice name)
{
	for (size_t i = 0; i < http->header_count; i++)
		if (slice_eq_nocase(http->headers[i].name, name))
			return http->headers[i].value;
	return (struct slice){ NULL, 0 };
}

const char *sim_http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 202, "Accepted" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 402, "Payment Required" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 413, "Content Too Large" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 529, "Site is overloaded" },
	};

	for (size_t i = 0; i < COUNT_OF(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}
