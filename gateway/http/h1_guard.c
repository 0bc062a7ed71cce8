#include "gateway/http/h1_guard.h"

#include "codec/base/err.h"
#include "codec/base/must.h"
#include "gateway/base/bounds.h"
#include "gateway/base/header_text.h"

#include <stdio.h>
#include <string.h>

/* ---- header lines ---- */
static void count(uint8_t *counter)
{
	if (*counter < 2)
		++*counter;
}

/* RFC 9112 5: blanks around a value mean nothing, but libh2o 2.2.5 takes those behind it for a part of it.
 * So they move in front of it, where it skips them. */
static struct slice trim_in_place(struct slice value)
{
	const struct slice trimmed = slice_trim(value);
	char *at = (char *)(uintptr_t)value.at; /* the input's, which h1_guard_scan may write to */

	if (trimmed.len == 0 || trimmed.at + trimmed.len == value.at + value.len)
		return trimmed;
	(void)memmove(at + value.len - trimmed.len, trimmed.at, trimmed.len);
	(void)memset(at, ' ', value.len - trimmed.len);
	return slice_of(at + value.len - trimmed.len, trimmed.len);
}

static enum h1_fault judge_length(struct h1_guard *guard, struct slice value, size_t body_max)
{
	uint64_t length;

	count(&guard->lengths);
	if (!slice_to_u64(value, &length)) /* a list of equal values is refused too */
		return H1_LENGTH;
	guard->body_too_large = length > body_max;
	return guard->lengths == 1 ? H1_FINE : H1_LENGTH_TWICE;
}

static enum h1_fault judge_encoding(struct h1_guard *guard, struct slice value)
{
	count(&guard->encodings);
	if (guard->encodings > 1)
		return H1_ENCODING_TWICE;
	return slice_eq_nocase(value, SLICE("chunked")) ? H1_FINE : H1_ENCODING;
}

/* Libh2o sends 100 Continue to whoever asks. Another expectation it refuses. */
static void judge_expectation(struct h1_guard *guard, struct slice name, struct slice value)
{
	if (guard->old)
		(void)memset((char *)(uintptr_t)name.at, 'x', name.len);
	else if (slice_eq_nocase(slice_trim(value), SLICE("100-continue")))
		guard->expects = true;
}

static enum h1_fault judge_header(struct h1_guard *guard, struct slice line, size_t body_max)
{
	if (line.at[0] == ' ' || line.at[0] == '\t')
		return H1_FOLDED_LINE;
	struct slice value = line;
	struct slice name = slice_cut(&value, ':');
	switch (name.len) { /* by length first: most lines are none of these */
	case sizeof("host") - 1:
		if (slice_eq_nocase(name, SLICE("host")))
			count(&guard->hosts);
		break;
	case sizeof("expect") - 1:
		if ((name.at[0] | 0x20) == 'e' && slice_eq_nocase(name, SLICE("expect")))
			judge_expectation(guard, name, value);
		break;
	case sizeof("content-length") - 1:
		if (slice_eq_nocase(name, SLICE("content-length")))
			return judge_length(guard, trim_in_place(value), body_max);
		break;
	case sizeof("transfer-encoding") - 1:
		if (slice_eq_nocase(name, SLICE("transfer-encoding")))
			return judge_encoding(guard, trim_in_place(value));
		break;
	}
	return H1_FINE;
}

/* RFC 9112 3.2, 6.1 and 6.3. */
static enum h1_fault judge_whole(const struct h1_guard *guard)
{
	if (guard->lengths != 0 && guard->encodings != 0)
		return H1_LENGTH_AND_ENCODING;
	if (guard->encodings != 0 && guard->old)
		return H1_ENCODING_OLD;
	if (guard->hosts > 1 || (guard->hosts == 0 && !guard->old))
		return H1_HOST;
	return guard->body_too_large ? H1_BODY_TOO_LARGE : H1_FINE;
}

/* A token (RFC 9110 9.1), which libh2o does not check. */
static bool has_method(struct slice line)
{
	return slice_starts(line, SLICE("POST ")) || header_text_is_name(slice_cut(&line, ' '));
}

/* Of a client that speaks another protocol, or means HTTP/2 with a preface that is none (RFC 9113 3.4). */
static bool is_foreign(struct slice line)
{
	const struct slice http = SLICE("http/");

	(void)slice_cut(&line, ' ');
	(void)slice_cut(&line, ' ');
	return !slice_absent(line) &&
	       !(line.len >= http.len && slice_eq_nocase(slice_of(line.at, http.len), http));
}

/* RFC 9112 2.2: an empty line before it is skipped. */
static enum h1_fault judge_request_line(struct h1_guard *guard, struct slice line)
{
	const struct slice usual = SLICE(" HTTP/1.");

	guard->begun = line.len != 0;
	guard->old = line.len != 0 && line.at[line.len - 1] == '0';
	if (line.len > usual.len &&
	    memcmp(line.at + line.len - usual.len - 1, usual.at, usual.len) == 0)
		return has_method(line) ? H1_FINE : H1_METHOD;
	return is_foreign(line) ? H1_FOREIGN : H1_FINE;
}

/* Without its CRLF. */
static enum h1_fault judge_line(struct h1_guard *guard, struct slice line, size_t end,
				size_t body_max)
{
	if (!guard->begun)
		return judge_request_line(guard, line);
	if (line.len != 0)
		return judge_header(guard, line, body_max);
	guard->whole = end;
	return judge_whole(guard);
}

enum h1_fault h1_guard_scan(struct h1_guard *guard, char *input, size_t len, size_t body_max)
{
	enum h1_fault fault = H1_FINE;

	while (fault == H1_FINE && guard->whole == 0) {
		must(len >= guard->seen);
		const char *found = memchr(input + guard->seen, '\n', len - guard->seen);
		size_t lf = found == NULL ? len : (size_t)(found - input);
		if (lf >= HTTP1_HEAD_MAX)
			return H1_HEAD_TOO_LARGE;
		guard->seen = lf;
		if (found == NULL)
			return H1_FINE;
		if (lf == guard->line || input[lf - 1] != '\r')
			return H1_LINE_END;
		struct slice line = slice_of(input + guard->line, lf - 1 - guard->line);
		fault = judge_line(guard, line, lf + 1, body_max);
		guard->line = guard->seen = lf + 1;
	}
	return fault;
}

/* ---- the answer ---- */
static const struct {
	int status;
	const char *reason, *text; /* no text: the error's own */
	enum err err;
} answers[H1_FAULTS] = {
	[H1_LINE_END] = { 400, "Bad Request", "A header line must end in CR LF", ERR_REQUEST },
	[H1_FOLDED_LINE] = { 400, "Bad Request", "A header line must not be folded", ERR_REQUEST },
	[H1_LENGTH] = { 400, "Bad Request", "Content-Length must be one number", ERR_REQUEST },
	[H1_LENGTH_TWICE] = { 400, "Bad Request", "Content-Length was sent twice", ERR_REQUEST },
	[H1_ENCODING] = { 501, "Not Implemented", "Transfer-Encoding must be chunked",
			  ERR_REQUEST },
	[H1_ENCODING_TWICE] = { 400, "Bad Request", "Transfer-Encoding was sent twice",
				ERR_REQUEST },
	[H1_LENGTH_AND_ENCODING] = { 400, "Bad Request",
				     "Transfer-Encoding was sent beside Content-Length",
				     ERR_REQUEST },
	[H1_ENCODING_OLD] = { 400, "Bad Request", "HTTP/1.0 has no Transfer-Encoding",
			      ERR_REQUEST },
	[H1_METHOD] = { 400, "Bad Request", "The method must be a token", ERR_REQUEST },
	[H1_FOREIGN] = { 400, "Bad Request", "The request line names another protocol",
			 ERR_REQUEST },
	[H1_CHUNKS] = { 400, "Bad Request", "A chunk of the body is malformed", ERR_REQUEST },
	[H1_HOST] = { 400, "Bad Request", "HTTP/1.1 needs one Host header", ERR_REQUEST },
	[H1_HEAD_TOO_LARGE] = { 431, "Request Header Fields Too Large",
				"The request's headers are too large", ERR_REQUEST },
	[H1_BODY_TOO_LARGE] = { 413, "Content Too Large", NULL, ERR_BODY_TOO_LARGE },
	[H1_NO_ROOM] = { 503, "Service Unavailable", NULL, ERR_BUSY },
	[H1_TOO_SLOW] = { 408, "Request Timeout", "The request came too slowly", ERR_REQUEST },
};

void h1_guard_answer(enum h1_fault fault, struct h1_answer *into)
{
	char body[H1_ANSWER_ROOM];

	must(fault > H1_FINE && fault < H1_FAULTS);
	const struct err_info *info = err_info(answers[fault].err);
	const bool retry = fault == H1_NO_ROOM;
	const int body_len = snprintf(
		body, sizeof(body),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":\"%s\","
		"\"data\":{\"reason\":\"%s\"}}}",
		info->code, answers[fault].text != NULL ? answers[fault].text : info->text,
		info->reason);
	const int len = snprintf(
		into->text, sizeof(into->text),
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
		"%sConnection: close\r\n\r\n%s",
		answers[fault].status, answers[fault].reason, body_len,
		retry ? "Retry-After: 1\r\n" : "", body);
	must(body_len > 0 && len > body_len && len < H1_ANSWER_ROOM);
	into->status = answers[fault].status;
	into->retry = retry;
	into->len = (size_t)len;
	into->body_at = (size_t)(len - body_len);
}
