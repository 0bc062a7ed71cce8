/* upstream_http_head.c - the head of a provider's answer: status, headers, and how the body is delimited. */
#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "gateway/upstream/upstream.h"
#include "gateway/upstream/upstream_http_parts.h"

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes one line of a head, or of trailers, that began at `from`, without its CR LF. False when it is not there
 * yet, or was refused. */
static inline bool take_head_line(struct upstream_http *http, const char *bytes, size_t len,
				  size_t from, struct slice *line)
{
	const char *problem = NULL;
	size_t behind;
	const char *end = upstream_http_line_end(http, bytes, len, &behind, &problem);

	if (behind - from > http->limits.head_max)
		problem = "the head or the trailers are too large";
	if (end != NULL) {
		*line = slice_of(bytes + http->at, (size_t)(end - bytes) - http->at);
		http->at = http->scanned = behind;
		if (problem == NULL && line->len != 0 && ++http->lines > UPSTREAM_HTTP_HEADERS_MAX)
			problem = "too many header lines";
	}
	if (problem != NULL)
		upstream_http_refuse(http, problem);
	return end != NULL && problem == NULL;
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
	if (!upstream_http_is_digit(at[9]) || !upstream_http_is_digit(at[10]) ||
	    !upstream_http_is_digit(at[11]) || (line.len > 12 && at[12] != ' '))
		return "the status is not three digits";
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
		       ? "The provider's answer is compressed (content-encoding), though identity "
			 "was asked for"
		       : NULL;
}

/* The headers that matter, by the length of their names: framing goes through a function, the rest is remembered.
 * The last are the rates by which providers tell what a key may still use (contract/providers.md 2, 3). */
enum { ROW_LEN_MAX = sizeof("anthropic-ratelimit-output-tokens-remaining") - 1, ROWS_OF_LEN = 3 };
#define SPAN(text, member)                                                               \
	{                                                                                \
		.name = SLICE_INIT(text), .span = offsetof(struct upstream_http, member) \
	}
#define RATE(text, kind, field)                                                          \
	{                                                                                \
		.name = SLICE_INIT(text), .rate = true,                                  \
		.span = offsetof(struct upstream_http, rates[RATE_##kind][RATE_##field]) \
	}
static const struct header_row {
	struct slice name; /* absent: no more of that length */
	header_fn *read;
	uint32_t span;
	bool rate;
} header_rows[ROW_LEN_MAX + 1][ROWS_OF_LEN] = {
	[4] = { SPAN("date", date) },
	[10] = { { SLICE_INIT("connection"), on_connection, 0, false },
		 SPAN("request-id", request_id) },
	[11] = { SPAN("retry-after", retry_after) },
	[12] = { SPAN("content-type", content_type), SPAN("x-request-id", request_id) },
	[14] = { { SLICE_INIT("content-length"), on_content_length, 0, false },
		 SPAN("retry-after-ms", retry_after_ms),
		 SPAN("x-should-retry", should_retry) },
	[16] = { { SLICE_INIT("content-encoding"), on_content_encoding, 0, false } },
	[17] = { { SLICE_INIT("transfer-encoding"), on_transfer_encoding, 0, false },
		 RATE("x-ratelimit-limit", REQUESTS, LIMIT), /* OpenRouter */
		 RATE("x-ratelimit-reset", REQUESTS, RESET) },
	[21] = { RATE("x-ratelimit-remaining", REQUESTS, REMAINING) },
	[24] = { RATE("x-ratelimit-limit-tokens", TOKENS, LIMIT),
		 RATE("x-ratelimit-reset-tokens", TOKENS, RESET) },
	[26] = { RATE("x-ratelimit-limit-requests", REQUESTS, LIMIT),
		 RATE("x-ratelimit-reset-requests", REQUESTS, RESET) },
	[28] = { RATE("x-ratelimit-remaining-tokens", TOKENS, REMAINING) },
	[30] = { RATE("x-ratelimit-remaining-requests", REQUESTS, REMAINING),
		 RATE("x-ratelimit-limit-requests-day", REQUESTS, LIMIT), /* Cerebras */
		 RATE("x-ratelimit-reset-requests-day", REQUESTS, RESET) },
	[31] = { RATE("x-ratelimit-limit-tokens-minute", TOKENS, LIMIT),
		 RATE("x-ratelimit-reset-tokens-minute", TOKENS, RESET) },
	[32] = { RATE("anthropic-ratelimit-tokens-limit", TOKENS, LIMIT),
		 RATE("anthropic-ratelimit-tokens-reset", TOKENS, RESET) },
	[34] = { RATE("anthropic-ratelimit-requests-limit", REQUESTS, LIMIT),
		 RATE("anthropic-ratelimit-requests-reset", REQUESTS, RESET),
		 RATE("x-ratelimit-remaining-requests-day", REQUESTS, REMAINING) },
	[35] = { RATE("x-ratelimit-remaining-tokens-minute", TOKENS, REMAINING) },
	[36] = { RATE("anthropic-ratelimit-tokens-remaining", TOKENS, REMAINING) },
	[38] = { RATE("anthropic-ratelimit-requests-remaining", REQUESTS, REMAINING),
		 RATE("anthropic-ratelimit-input-tokens-limit", INPUT_TOKENS, LIMIT),
		 RATE("anthropic-ratelimit-input-tokens-reset", INPUT_TOKENS, RESET) },
	[39] = { RATE("anthropic-ratelimit-output-tokens-limit", OUTPUT_TOKENS, LIMIT),
		 RATE("anthropic-ratelimit-output-tokens-reset", OUTPUT_TOKENS, RESET) },
	[42] = { RATE("anthropic-ratelimit-input-tokens-remaining", INPUT_TOKENS, REMAINING) },
	[43] = { RATE("anthropic-ratelimit-output-tokens-remaining", OUTPUT_TOKENS, REMAINING) },
};
#undef SPAN
#undef RATE

/* Sent twice, the first counts. */
static void keep_span(struct upstream_http_span *span, const char *bytes, struct slice value)
{
	if (span->at == 0)
		*span = (struct upstream_http_span){ (uint32_t)(value.at - bytes),
						     (uint32_t)value.len };
}

static const char *keep_header(struct upstream_http *http, const struct header_row *row,
			       const char *bytes, struct slice value)
{
	if (row->read != NULL)
		return row->read(http, value);
	keep_span((void *)((char *)http + row->span), bytes, value);
	http->rates_sent |= row->rate;
	return NULL;
}

static const char bad_name[] = "a header line has no proper name";

/* Splits "name: value", of proper text; the answer is what is wrong, or NULL. */
static inline const char *split_header(struct slice line, struct slice *name, struct slice *value)
{
	if (line.at[0] == ' ' || line.at[0] == '\t')
		return "a header line is folded";
	const char *colon = memchr(line.at, ':', line.len);
	if (colon == NULL)
		return bad_name;
	*name = slice_of(line.at, (size_t)(colon - line.at));
	const char *from = colon + 1, *end = line.at + line.len;
	from += from < end && *from == ' '; /* mostly that is all there is to trim */
	*value = slice_trim(slice_of(from, (size_t)(end - from)));
	return NULL;
}

/* NULL: it is none of those that matter. */
static const struct header_row *find_row(struct slice name)
{
	const struct header_row *rows = header_rows[name.len > ROW_LEN_MAX ? 0 : name.len];

	for (size_t i = 0; i < ROWS_OF_LEN && !slice_absent(rows[i].name); i++)
		if (slice_eq_nocase(name, rows[i].name))
			return &rows[i];
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
	return header_text_is_name(name) ? NULL : bad_name;
}

/* ---- the head as a whole --------------------------------------------------------------------- */

/* A 1xx answer is over with its head; the final one follows (RFC 9110 15.2). */
static void skip_interim(struct upstream_http *http)
{
	struct upstream_http fresh = { .limits = http->limits,
				       .lines = http->lines,
				       .ask = http->ask };

	if (http->chunked || http->length_sent) {
		upstream_http_refuse(http, "a 1xx answer announces a body");
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

static void check_length(struct upstream_http *http)
{
	if (http->length_sent && http->left > http->limits.body_max)
		upstream_http_refuse_body(http);
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
		upstream_http_refuse(http, problem);
		return;
	}
	http->head = true;
	http->body = http->at;
	http->keep = !http->close && (http->minor == 1 || http->keep_alive);
	if (http->status == 204 || http->status == 304) {
		if (http->chunked || http->left != 0) /* who announces a body may send it */
			http->keep = false;
		upstream_http_done(http);
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

void upstream_http_skip_body(struct upstream_http *http)
{
	must(http->waits);
	http->waits = false;
	upstream_http_done(http);
}

/* ---- the lines of a head that was read -------------------------------------------------------- */

bool upstream_next_field(struct slice *fields, struct slice *name, struct slice *value)
{
	if (fields->len == 0)
		return false;
	const char *end = memchr(fields->at, '\r', fields->len);
	must(end != NULL);
	const size_t len = (size_t)(end - fields->at);
	must(split_header(slice_of(fields->at, len), name, value) == NULL);
	*fields = slice_of(end + 2, fields->len - len - 2);
	return true;
}

/* ---- steps ------------------------------------------------------------------------------------ */

void upstream_http_status(struct upstream_http *http, char *bytes, size_t len)
{
	struct slice line;

	if (!may_be_http(bytes + http->at, len - http->at)) {
		upstream_http_refuse(http, "the answer is not HTTP/1");
		return;
	}
	if (!take_head_line(http, bytes, len, 0, &line))
		return;
	const char *problem = parse_status(http, line);
	if (problem != NULL)
		upstream_http_refuse(http, problem);
	else
		http->step = UPSTREAM_HTTP_HEADERS;
}

void upstream_http_headers(struct upstream_http *http, char *bytes, size_t len)
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
		upstream_http_refuse(http, problem);
}

void upstream_http_trailers(struct upstream_http *http, char *bytes, size_t len)
{
	struct slice line, name, value;
	const char *problem = NULL;

	while (problem == NULL && take_head_line(http, bytes, len, http->trailers, &line)) {
		if (line.len == 0) {
			upstream_http_done(http);
			return;
		}
		problem = split_header(line, &name, &value);
		if (problem == NULL && !header_text_is_name(name))
			problem = bad_name;
	}
	if (problem != NULL)
		upstream_http_refuse(http, problem);
}
