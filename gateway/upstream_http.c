#include "gateway/upstream_http.h"

#include "codec/base/must.h"
#include "gateway/header_text.h"

/* ---- outcomes -------------------------------------------------------------------------------- */

static void refuse(struct upstream_http *http, const char *problem)
{
	http->problem = problem;
	http->keep = false;
	http->verdict = UPSTREAM_HTTP_REFUSED;
	http->step = UPSTREAM_HTTP_OVER;
}

static void done(struct upstream_http *http)
{
	http->verdict = UPSTREAM_HTTP_DONE;
	http->step = UPSTREAM_HTTP_OVER;
}

void upstream_http_init(struct upstream_http *http, const struct upstream_http_limits *limits)
{
	must(limits->head_max <= UINT32_MAX);
	*http = (struct upstream_http){ .limits = *limits };
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes the next line, without its CRLF. False when it is not complete yet. */
static bool take_line(struct upstream_http *http, const char *bytes, size_t len, struct slice *line)
{
	must(http->scanned >= http->at && len >= http->scanned);
	const char *end = memchr(bytes + http->scanned, '\n', len - http->scanned);
	if (end == NULL) {
		http->scanned = len;
		return false;
	}
	*line = slice_of(bytes + http->at, (size_t)(end - bytes) - http->at);
	http->at = http->scanned = (size_t)(end - bytes) + 1;
	return true;
}

/* Cuts the CR off a line; false when there is none (a bare LF is not a line end here). */
static bool cut_cr(struct slice *line)
{
	if (line->len == 0 || line->at[line->len - 1] != '\r')
		return false;
	line->len--;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ---- status line ----------------------------------------------------------------------------- */

static const struct slice version = SLICE_INIT("HTTP/1.");

/* Judged byte by byte, so that a peer that speaks something else is not waited for. */
static bool may_be_http(const char *bytes, size_t len)
{
	return memcmp(bytes, version.at, len < version.len ? len : version.len) == 0;
}

/* "HTTP/1.1 200 OK"; the reason may be empty, and its space be missing. */
static const char *parse_status(struct upstream_http *http, struct slice line)
{
	const char *at = line.at;

	if (line.len < 12 || (at[7] != '0' && at[7] != '1') || at[8] != ' ')
		return "the status line is malformed or not of HTTP/1.0 or HTTP/1.1";
	if (!is_digit(at[9]) || !is_digit(at[10]) || !is_digit(at[11]) ||
	    (line.len > 12 && at[12] != ' '))
		return "the status is not three digits";
	if (!header_text_is_value(slice_of(at + 12, line.len - 12)))
		return "a control character in the status line";
	http->minor = (uint8_t)(at[7] - '0');
	http->status = (uint16_t)((at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0'));
	if (http->status < 100 || http->status > 599)
		return "the status is not from 100 to 599";
	if (http->status == 101)
		return "the protocol was switched unasked";
	return NULL;
}

/* ---- headers --------------------------------------------------------------------------------- */

typedef const char *header_fn(struct upstream_http *http, struct slice value);

/* A second content-length is refused even when it says the same: nobody honest sends it. */
static const char *on_content_length(struct upstream_http *http, struct slice value)
{
	uint64_t length;

	if (http->length_sent)
		return "content-length was sent twice";
	if (!slice_to_u64(value, &length))
		return "content-length is not a number";
	http->length_sent = true;
	http->left = length;
	return NULL;
}

static const char *on_transfer_encoding(struct upstream_http *http, struct slice value)
{
	if (http->chunked)
		return "transfer-encoding was sent twice";
	if (!slice_eq_nocase(value, SLICE("chunked")))
		return "the transfer-encoding is not chunked";
	http->chunked = true;
	return NULL;
}

static const char *on_connection(struct upstream_http *http, struct slice value)
{
	while (!slice_absent(value)) {
		struct slice option = slice_trim(slice_cut(&value, ','));
		if (slice_eq_nocase(option, SLICE("close")))
			http->close = true;
		else if (slice_eq_nocase(option, SLICE("keep-alive")))
			http->keep_alive = true;
	}
	return NULL;
}

static const char *on_content_encoding(struct upstream_http *http, struct slice value)
{
	while (!slice_absent(value)) {
		struct slice coding = slice_trim(slice_cut(&value, ','));
		if (coding.len != 0 && !slice_eq_nocase(coding, SLICE("identity")))
			http->coded = true;
	}
	return http->coded && http->status / 100 == 2
		       ? "the body has a content-encoding that was not asked for"
		       : NULL;
}

/* The headers that matter: framing goes through a function, the rest is remembered. */
static const struct header_row {
	struct slice name;
	header_fn *read;
	size_t span;
} header_rows[] = {
	{ SLICE_INIT("content-length"), on_content_length, 0 },
	{ SLICE_INIT("transfer-encoding"), on_transfer_encoding, 0 },
	{ SLICE_INIT("connection"), on_connection, 0 },
	{ SLICE_INIT("date"), NULL, offsetof(struct upstream_http, date) },
	{ SLICE_INIT("retry-after"), NULL, offsetof(struct upstream_http, retry_after) },
	{ SLICE_INIT("retry-after-ms"), NULL, offsetof(struct upstream_http, retry_after_ms) },
	{ SLICE_INIT("x-should-retry"), NULL, offsetof(struct upstream_http, should_retry) },
	{ SLICE_INIT("request-id"), NULL, offsetof(struct upstream_http, request_id) },
	{ SLICE_INIT("x-request-id"), NULL, offsetof(struct upstream_http, request_id) },
	{ SLICE_INIT("content-type"), NULL, offsetof(struct upstream_http, content_type) },
	{ SLICE_INIT("content-encoding"), on_content_encoding, 0 },
};

/* Sent twice, the first counts. */
static void keep_span(struct upstream_http_span *span, const char *bytes, struct slice value)
{
	if (span->at == 0)
		*span = (struct upstream_http_span){ (uint32_t)(value.at - bytes),
						     (uint32_t)value.len };
}

static void keep_rate(struct upstream_http *http, struct slice name, const char *bytes,
		      struct slice value)
{
	enum rate_field field;
	uint32_t kind;

	if (!rate_name_find(name, &kind, &field))
		return;
	http->rates_sent = true;
	keep_span(&http->rates[kind][field], bytes, value);
}

static const char *keep_header(struct upstream_http *http, const struct header_row *row,
			       const char *bytes, struct slice value)
{
	if (row->read != NULL)
		return row->read(http, value);
	keep_span((void *)((char *)http + row->span), bytes, value);
	return NULL;
}

static const char bad_name[] = "a header line has no proper name";

/* Splits "name: value" and checks the value; the answer is what is wrong, or NULL. */
static const char *split_header(struct slice line, struct slice *name, struct slice *value)
{
	if (line.at[0] == ' ' || line.at[0] == '\t')
		return "a header line is folded";
	const char *colon = memchr(line.at, ':', line.len);
	if (colon == NULL)
		return bad_name;
	*name = slice_of(line.at, (size_t)(colon - line.at));
	*value = slice_trim(slice_of(colon + 1, (size_t)(line.at + line.len - colon) - 1));
	return header_text_is_value(*value) ? NULL : "a control character in a header";
}

/* NULL: it is none of those that matter. */
static const struct header_row *find_row(struct slice name)
{
	for (size_t i = 0; i < COUNT_OF(header_rows); i++) {
		const struct header_row *row = &header_rows[i];
		if (name.len == row->name.len && (name.at[0] | 0x20) == row->name.at[0] &&
		    slice_eq_nocase(name, row->name))
			return row;
	}
	return NULL;
}

static const char *parse_header(struct upstream_http *http, const char *bytes, struct slice line)
{
	struct slice name, value;
	const char *problem = split_header(line, &name, &value);

	if (problem != NULL)
		return problem;
	const struct header_row *row = find_row(name);
	if (row != NULL)
		return keep_header(http, row, bytes, value);
	if (!header_text_is_name(name))
		return bad_name;
	keep_rate(http, name, bytes, value);
	return NULL;
}

/* Takes one line of a head, or of trailers, that began at `from`. False when it is not there yet, or
 * was refused. */
static inline bool take_head_line(struct upstream_http *http, const char *bytes, size_t len,
				  size_t from, struct slice *line)
{
	bool there = take_line(http, bytes, len, line);

	if ((there ? http->at : len) - from > http->limits.head_max)
		refuse(http, "the head or the trailers are too large");
	else if (there && !cut_cr(line))
		refuse(http, "a line does not end in CR LF");
	else if (there && line->len != 0 && ++http->lines > UPSTREAM_HTTP_HEADERS_MAX)
		refuse(http, "too many header lines");
	return there && http->step != UPSTREAM_HTTP_OVER;
}

/* ---- the head as a whole --------------------------------------------------------------------- */

/* A 1xx answer is over with its head; the final one follows (RFC 9110 15.2). */
static void skip_interim(struct upstream_http *http)
{
	struct upstream_http fresh = { .limits = http->limits,
				       .lines = http->lines,
				       .ask = http->ask };

	if (http->chunked || http->length_sent) {
		refuse(http, "a 1xx answer announces a body");
		return;
	}
	fresh.start = fresh.at = fresh.scanned = http->at;
	*http = fresh;
}

/* Why the final head cannot be trusted to delimit its body, or NULL. */
static const char *framing_problem(const struct upstream_http *http)
{
	if (http->chunked && http->length_sent)
		return "both content-length and transfer-encoding";
	if (http->chunked && http->minor == 0)
		return "transfer-encoding in HTTP/1.0";
	return NULL;
}

/* An error says what it is by its status: all of its text is not needed for that. */
static void refuse_body(struct upstream_http *http)
{
	http->error_stands = http->status >= 400;
	refuse(http, "the body is too large");
}

static void check_length(struct upstream_http *http)
{
	if (http->length_sent && http->left > http->limits.body_max)
		refuse_body(http);
}

/* How the body is delimited: RFC 9112 6.3, without its leniencies. */
static void end_head(struct upstream_http *http)
{
	const char *problem = framing_problem(http);

	if (http->status < 200) {
		skip_interim(http);
		return;
	}
	if (problem != NULL) {
		refuse(http, problem);
		return;
	}
	http->head = true;
	http->body = http->at;
	http->keep = !http->close && (http->minor == 1 || http->keep_alive);
	if (http->status == 204 || http->status == 304) {
		if (http->chunked || http->left != 0) /* who announces a body may send it */
			http->keep = false;
		done(http);
		return;
	}
	http->waits = http->ask;
	if (http->chunked) {
		http->step = UPSTREAM_HTTP_CHUNK_LINE;
	} else if (http->length_sent) {
		http->step = UPSTREAM_HTTP_LENGTH;
	} else {
		http->keep = false;
		http->step = UPSTREAM_HTTP_UNTIL_CLOSE;
	}
	if (!http->waits)
		check_length(http);
}

void upstream_http_ask(struct upstream_http *http)
{
	must(http->step == UPSTREAM_HTTP_STATUS && http->at == 0);
	http->ask = true;
}

void upstream_http_go_on(struct upstream_http *http, bool pieces)
{
	must(http->waits);
	http->waits = false;
	if (pieces)
		http->limits.body_max = SIZE_MAX / 2; /* sums with it do not overflow */
	check_length(http);
}

/* ---- steps ------------------------------------------------------------------------------------
 * Each reads what it can. It changes http->step when it is through with its part, and leaves it
 * when it wants more bytes. */

typedef void step_fn(struct upstream_http *http, char *bytes, size_t len);

static void read_status(struct upstream_http *http, char *bytes, size_t len)
{
	struct slice line;

	if (!may_be_http(bytes + http->at, len - http->at)) {
		refuse(http, "the answer is not HTTP/1");
		return;
	}
	if (!take_head_line(http, bytes, len, 0, &line))
		return;
	const char *problem = parse_status(http, line);
	if (problem != NULL)
		refuse(http, problem);
	else
		http->step = UPSTREAM_HTTP_HEADERS;
}

static void read_headers(struct upstream_http *http, char *bytes, size_t len)
{
	const char *problem = NULL;
	struct slice line;

	while (problem == NULL && take_head_line(http, bytes, len, 0, &line)) {
		if (line.len == 0) {
			end_head(http);
			return;
		}
		problem = parse_header(http, bytes, line);
	}
	if (problem != NULL)
		refuse(http, problem);
}

/* The bytes that are there of the `left` that are due. */
static size_t take_due(struct upstream_http *http, size_t len)
{
	size_t there = len - http->at;
	size_t take = there < http->left ? there : http->left;

	http->at += take;
	http->size += take;
	http->left -= take;
	return take;
}

static void read_length(struct upstream_http *http, char *bytes, size_t len)
{
	(void)bytes;
	(void)take_due(http, len);
	if (http->left == 0)
		done(http);
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1a2b;name=value"; blanks may stand before the extension or the line's end. */
static const char *parse_chunk_line(struct slice line, size_t *out)
{
	size_t size = 0, i = 0;

	for (; i < line.len && hex_value(line.at[i]) >= 0; i++) {
		if (i == 15)
			return "a chunk size has too many digits";
		size = size << 4 | (size_t)hex_value(line.at[i]);
	}
	struct slice rest = slice_of(line.at + i, line.len - i);
	if (i == 0 || !header_text_is_value(rest))
		return "a chunk size is malformed";
	rest = slice_trim(rest);
	if (rest.len != 0 && rest.at[0] != ';')
		return "a chunk size is malformed";
	*out = size;
	return NULL;
}

/* A complete size line of `size` bytes: sets the step, or says what is wrong. */
static const char *start_chunk(struct upstream_http *http, struct slice line, size_t size)
{
	if (!cut_cr(&line))
		return "a line does not end in CR LF";
	const char *problem = parse_chunk_line(line, &http->left);
	if (problem != NULL)
		return problem;
	if (http->left > http->limits.body_max - http->size) {
		refuse_body(http);
		return NULL;
	}
	http->framing += size + 2; /* with the CRLF behind the data */
	if (http->framing > http->limits.body_max + http->limits.head_max)
		return "too much chunk framing";
	http->trailers = http->at;
	http->step = http->left == 0 ? UPSTREAM_HTTP_TRAILERS : UPSTREAM_HTTP_CHUNK_DATA;
	return NULL;
}

static void read_chunk_line(struct upstream_http *http, char *bytes, size_t len)
{
	struct slice line;
	size_t from = http->at;
	bool there = take_line(http, bytes, len, &line);
	size_t size = (there ? http->at : len) - from;
	const char *problem = NULL;

	if (size > UPSTREAM_HTTP_CHUNK_LINE_MAX)
		problem = "a chunk's size line is too long";
	else if (there)
		problem = start_chunk(http, line, size);
	if (problem != NULL)
		refuse(http, problem);
}

static void read_chunk_data(struct upstream_http *http, char *bytes, size_t len)
{
	if (http->size == 0) /* what comes first may stay where it is */
		http->body = http->at;
	char *to = bytes + http->body + http->size;
	const char *from = bytes + http->at;
	const size_t taken = take_due(http, len);

	if (to != from)
		(void)memmove(to, from, taken);
	if (http->left == 0)
		http->step = UPSTREAM_HTTP_CHUNK_END;
}

static void read_chunk_end(struct upstream_http *http, char *bytes, size_t len)
{
	size_t there = len - http->at < 2 ? len - http->at : 2;

	if (memcmp(bytes + http->at, "\r\n", there) != 0) {
		refuse(http, "a chunk does not end in CR LF");
	} else if (there == 2) {
		http->at += 2;
		http->scanned = http->at;
		http->step = UPSTREAM_HTTP_CHUNK_LINE;
	}
}

/* Trailers are checked and dropped. */
static void read_trailers(struct upstream_http *http, char *bytes, size_t len)
{
	struct slice line, name, value;
	const char *problem = NULL;

	while (problem == NULL && take_head_line(http, bytes, len, http->trailers, &line)) {
		if (line.len == 0) {
			done(http);
			return;
		}
		problem = split_header(line, &name, &value);
		if (problem == NULL && !header_text_is_name(name))
			problem = bad_name;
	}
	if (problem != NULL)
		refuse(http, problem);
}

static void read_until_close(struct upstream_http *http, char *bytes, size_t len)
{
	(void)bytes;
	http->size += len - http->at;
	http->at = len;
	if (http->size > http->limits.body_max)
		refuse_body(http);
}

static step_fn *const steps[] = {
	[UPSTREAM_HTTP_STATUS] = read_status,
	[UPSTREAM_HTTP_HEADERS] = read_headers,
	[UPSTREAM_HTTP_LENGTH] = read_length,
	[UPSTREAM_HTTP_CHUNK_LINE] = read_chunk_line,
	[UPSTREAM_HTTP_CHUNK_DATA] = read_chunk_data,
	[UPSTREAM_HTTP_CHUNK_END] = read_chunk_end,
	[UPSTREAM_HTTP_TRAILERS] = read_trailers,
	[UPSTREAM_HTTP_UNTIL_CLOSE] = read_until_close,
};

enum upstream_http_verdict upstream_http_read(struct upstream_http *http, char *bytes, size_t len)
{
	enum upstream_http_step step;

	must(len >= http->at);
	do {
		step = http->step;
		if (step == UPSTREAM_HTTP_OVER || http->waits)
			break;
		steps[step](http, bytes, len);
	} while (http->step != step);
	return http->verdict;
}

enum upstream_http_verdict upstream_http_end(struct upstream_http *http)
{
	if (http->step == UPSTREAM_HTTP_UNTIL_CLOSE)
		done(http);
	return http->verdict;
}

size_t upstream_http_take(struct upstream_http *http, const char *bytes, struct slice *piece)
{
	/* Trailers stay until they are whole: their bound counts from where they begin. */
	size_t used = http->step == UPSTREAM_HTTP_TRAILERS ? http->trailers : http->at;

	must(http->head && !http->waits);
	*piece = slice_of(bytes + http->body, http->size);
	http->at -= used;
	http->scanned = http->scanned > used ? http->scanned - used : 0;
	http->start = http->body = http->size = http->framing = http->trailers = 0;
	return used;
}

static struct slice span_slice(struct upstream_http_span span, const char *bytes)
{
	return span.at == 0 ? slice_of(NULL, 0) : slice_of(bytes + span.at, span.len);
}

const struct rate_header *upstream_http_rates(const struct upstream_http *http, const char *bytes,
					      struct arena *into)
{
	if (!http->rates_sent || into == NULL)
		return NULL;
	struct rate_header *rates = arena_take(into, RATE_KINDS * sizeof(*rates));
	for (uint32_t i = 0; i < RATE_KINDS && rates != NULL; i++)
		rates[i] = (struct rate_header){
			.limit = span_slice(http->rates[i][RATE_LIMIT], bytes),
			.remaining = span_slice(http->rates[i][RATE_REMAINING], bytes),
			.reset = span_slice(http->rates[i][RATE_RESET], bytes),
		};
	return rates;
}

void upstream_http_answer(const struct upstream_http *http, const char *bytes,
			  struct provider_answer *answer)
{
	must(http->verdict == UPSTREAM_HTTP_DONE || http->waits || http->error_stands);
	answer->status = http->status;
	answer->headers = (struct provider_headers){
		.date = span_slice(http->date, bytes),
		.retry_after = span_slice(http->retry_after, bytes),
		.retry_after_ms = span_slice(http->retry_after_ms, bytes),
		.should_retry = span_slice(http->should_retry, bytes),
		.request_id = span_slice(http->request_id, bytes),
		.content_type = span_slice(http->content_type, bytes),
	};
	answer->body = slice_of(bytes + http->body, http->coded ? 0 : http->size);
}
