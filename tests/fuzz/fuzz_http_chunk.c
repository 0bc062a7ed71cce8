/* A chunked body ends or fails the same however its bytes arrive, and ends where a provider's answer with
 * the same body would. */
#include "codec/base/must.h"
#include "gateway/base/http_chunk.h"
#include "gateway/upstream/upstream_http.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TRAILERS_MAX = 256 };

/* In pieces of `step` bytes, each in a block of its own, so that ASan sees a byte read too far. */
static const char *scan(struct http_chunks *chunks, const uint8_t *data, size_t size, size_t step)
{
	const char *problem = NULL;

	*chunks = (struct http_chunks){ 0 };
	for (size_t at = 0; at < size && problem == NULL; at += step) {
		const size_t len = step < size - at ? step : size - at;
		char *piece = malloc(len);
		must(piece != NULL);
		(void)memcpy(piece, data + at, len);
		problem = http_chunks_scan(chunks, piece, len, TRAILERS_MAX);
		free(piece);
	}
	return problem;
}

/* The reader of answers is stricter about trailers' bounds and sizes, never about where a body ends. */
static void same_as_answer(const struct http_chunks *chunks, const char *problem,
			   const uint8_t *data, size_t size)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	const struct upstream_http_limits limits = { .head_max = 4096, .body_max = 1 << 20 };
	const size_t head_len = sizeof(head) - 1;
	char *text = malloc(head_len + size);
	struct upstream_http http;

	must(text != NULL);
	(void)memcpy(text, head, head_len);
	if (size != 0)
		(void)memcpy(text + head_len, data, size);
	upstream_http_init(&http, &limits);
	const enum upstream_http_verdict verdict = upstream_http_read(&http, text, head_len + size);
	if (verdict == UPSTREAM_HTTP_DONE)
		must((problem == NULL && chunks->part == HTTP_CHUNK_OVER) ||
		     chunks->trailers > TRAILERS_MAX);
	if (problem == NULL && chunks->part == HTTP_CHUNK_OVER)
		must(verdict != UPSTREAM_HTTP_MORE);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_chunks whole, cut;
	const char *problem = scan(&whole, data, size, size == 0 ? 1 : size);

	for (size_t step = 1; step < size && step < 8; step++) {
		must(scan(&cut, data, size, step) == problem);
		must(cut.part == whole.part && cut.left == whole.left);
	}
	same_as_answer(&whole, problem, data, size);
	return 0;
}
