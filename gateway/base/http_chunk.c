#include "gateway/base/http_chunk.h"

#include "gateway/base/header_text.h"

enum { DIGITS_MAX = 15 }; /* of a size: 60 bits */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(char c)
{
	return header_text_is_value(slice_of(&c, 1));
}

/* A byte behind the digits. */
static const char *take_rest(struct http_chunk_line *line, char c)
{
	if (line->step == HTTP_CHUNK_LF) {
		if (c != '\n')
			return "a control character in a line";
		line->step = HTTP_CHUNK_WHOLE;
		return NULL;
	}
	if (c == '\r') {
		line->step = HTTP_CHUNK_LF;
		return NULL;
	}
	if (!is_text(c))
		return c == '\n' ? "a line does not end in CR LF" : "a control character in a line";
	if (line->step == HTTP_CHUNK_EXTENSION)
		return NULL;
	if (c == ';')
		line->step = HTTP_CHUNK_EXTENSION;
	else if (c != ' ' && c != '\t')
		return "a chunk size is malformed";
	return NULL;
}

static const char *take(struct http_chunk_line *line, char c)
{
	const int value = hex_value(c);

	if (line->step != HTTP_CHUNK_DIGITS)
		return take_rest(line, c);
	if (value >= 0) {
		if (line->digits == DIGITS_MAX)
			return "a chunk size has too many digits";
		line->digits++;
		line->size = line->size << 4 | (uint64_t)value;
		return NULL;
	}
	if (line->digits == 0)
		return c == '\n' ? "a line does not end in CR LF" : "a chunk size is malformed";
	line->step = HTTP_CHUNK_BLANKS;
	return take_rest(line, c);
}

const char *http_chunk_line_read(struct http_chunk_line *line, const char *input, size_t len,
				 size_t *at)
{
	const char *problem = NULL;

	while (*at < len && line->step != HTTP_CHUNK_WHOLE && problem == NULL) {
		if (line->len == HTTP_CHUNK_LINE_MAX)
			return "a chunk's size line is too long";
		line->len++;
		problem = take(line, input[(*at)++]);
	}
	return problem;
}

/* ---- a whole body ---- */

static const char *scan_size(struct http_chunks *chunks, const char *input, size_t len, size_t *at)
{
	const char *problem = http_chunk_line_read(&chunks->line, input, len, at);

	if (problem != NULL || chunks->line.step != HTTP_CHUNK_WHOLE)
		return problem;
	chunks->left = chunks->line.size;
	chunks->line = (struct http_chunk_line){ 0 };
	chunks->part = chunks->left == 0 ? HTTP_CHUNK_TRAILER : HTTP_CHUNK_DATA;
	return NULL;
}

static void scan_data(struct http_chunks *chunks, size_t len, size_t *at)
{
	const size_t there = len - *at;
	const size_t taken = there < chunks->left ? there : (size_t)chunks->left;

	*at += taken;
	chunks->left -= taken;
	if (chunks->left == 0)
		chunks->part = HTTP_CHUNK_DATA_CR;
}

static const char *scan_trailer(struct http_chunks *chunks, char c, size_t trailers_max)
{
	if (++chunks->trailers > trailers_max)
		return "the trailers are too large";
	if (chunks->part == HTTP_CHUNK_TRAILER_LF) {
		if (c != '\n')
			return "a control character in a line";
		if (chunks->column != 0 && !chunks->named)
			return "a trailer has no proper name";
		chunks->part = chunks->column == 0 ? HTTP_CHUNK_OVER : HTTP_CHUNK_TRAILER;
		chunks->column = 0;
		return NULL;
	}
	if (c == '\r') {
		chunks->part = HTTP_CHUNK_TRAILER_LF;
		return NULL;
	}
	if (!is_text(c))
		return c == '\n' ? "a line does not end in CR LF" : "a control character in a line";
	if (chunks->column++ == 0) {
		chunks->named = false;
		if (c == ' ' || c == '\t')
			return "a trailer's line is folded";
	}
	if (chunks->named)
		return NULL;
	chunks->named = c == ':' && chunks->column > 1;
	return chunks->named || header_text_is_name(slice_of(&c, 1))
		       ? NULL
		       : "a trailer has no proper name";
}

const char *http_chunks_scan(struct http_chunks *chunks, const char *input, size_t len,
			     size_t trailers_max)
{
	const char *problem = NULL;
	size_t at = 0;

	while (at < len && problem == NULL && chunks->part != HTTP_CHUNK_OVER)
		switch ((enum http_chunk_part)chunks->part) {
		case HTTP_CHUNK_SIZE:
			problem = scan_size(chunks, input, len, &at);
			break;
		case HTTP_CHUNK_DATA:
			scan_data(chunks, len, &at);
			break;
		case HTTP_CHUNK_DATA_CR:
			if (input[at++] != '\r')
				problem = "a chunk does not end in CR LF";
			chunks->part = HTTP_CHUNK_DATA_LF;
			break;
		case HTTP_CHUNK_DATA_LF:
			if (input[at++] != '\n')
				problem = "a chunk does not end in CR LF";
			chunks->part = HTTP_CHUNK_SIZE;
			break;
		case HTTP_CHUNK_TRAILER:
		case HTTP_CHUNK_TRAILER_LF:
			problem = scan_trailer(chunks, input[at++], trailers_max);
			break;
		case HTTP_CHUNK_OVER:
			break;
		}
	return problem;
}
