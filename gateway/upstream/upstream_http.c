#include "gateway/upstream/upstream_http.h"

#include "codec/base/must.h"
#include "gateway/upstream/upstream_http_parts.h"

void upstream_http_init(struct upstream_http *http, const struct upstream_http_limits *limits)
{
	must(limits->head_max <= UINT32_MAX);
	*http = (struct upstream_http){ .limits = *limits };
}

/* ---- steps ------------------------------------------------------------------------------------ */

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
		upstream_http_done(http);
}

/* A complete size line: sets the step, or says what is wrong. */
static const char *start_chunk(struct upstream_http *http)
{
	http->left = http->line.size;
	http->framing += http->line.len + 2U; /* with the CRLF behind the data */
	http->line = (struct http_chunk_line){ 0 };
	if (http->left > http->limits.body_max - http->size) {
		upstream_http_refuse_body(http);
		return NULL;
	}
	if (http->framing > http->limits.body_max + http->limits.head_max)
		return "too much chunk framing";
	http->trailers = http->at;
	http->step = http->left == 0 ? UPSTREAM_HTTP_TRAILERS : UPSTREAM_HTTP_CHUNK_DATA;
	return NULL;
}

static void read_chunk_line(struct upstream_http *http, char *bytes, size_t len)
{
	const char *problem = http_chunk_line_read(&http->line, bytes, len, &http->at);

	http->scanned = http->at;
	if (problem == NULL && http->line.step == HTTP_CHUNK_WHOLE)
		problem = start_chunk(http);
	if (problem != NULL)
		upstream_http_refuse(http, problem);
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
		upstream_http_refuse(http, "a chunk does not end in CR LF");
	} else if (there == 2) {
		http->at += 2;
		http->scanned = http->at;
		http->step = UPSTREAM_HTTP_CHUNK_LINE;
	}
}

static void read_until_close(struct upstream_http *http, char *bytes, size_t len)
{
	(void)bytes;
	http->size += len - http->at;
	http->at = len;
	if (http->size > http->limits.body_max)
		upstream_http_refuse_body(http);
}

typedef void step_fn(struct upstream_http *http, char *bytes, size_t len);

static step_fn *const steps[] = {
	[UPSTREAM_HTTP_STATUS] = upstream_http_status,
	[UPSTREAM_HTTP_HEADERS] = upstream_http_headers,
	[UPSTREAM_HTTP_LENGTH] = read_length,
	[UPSTREAM_HTTP_CHUNK_LINE] = read_chunk_line,
	[UPSTREAM_HTTP_CHUNK_DATA] = read_chunk_data,
	[UPSTREAM_HTTP_CHUNK_END] = read_chunk_end,
	[UPSTREAM_HTTP_TRAILERS] = upstream_http_trailers,
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
		upstream_http_done(http);
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

/* The reader has found these line ends, and let no other CR pass. */
struct slice upstream_http_fields(const struct upstream_http *http, const char *bytes)
{
	const char *head = bytes + http->start;
	const size_t len = http->at - http->start;
	const char *first = memmem(head, len, "\r\n", 2), *last = memmem(head, len, "\r\n\r\n", 4);

	must(http->head && first != NULL && last != NULL);
	return slice_of(first + 2, (size_t)(last - first));
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
