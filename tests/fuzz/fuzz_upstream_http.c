/* One answer however its bytes arrive: whole, byte by byte, or in two pieces. Every piece comes in
 * a new block of exactly its size, so that ASan sees a pointer kept or a byte read too far. */
#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "gateway/upstream/upstream.h"
#include "gateway/upstream/upstream_http.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct upstream_http_limits limits = { .head_max = 1024, .body_max = 256 };

struct outcome {
	struct upstream_http http;
	enum upstream_http_verdict verdict;
	struct provider_answer answer;
	struct slice fields;
	char *held; /* what the slices point into */
};

/* The first piece has `first` bytes, each further one `step`; then the peer closes. */
static struct outcome read_pieces(const uint8_t *data, size_t size, size_t first, size_t step)
{
	struct outcome out = { .verdict = UPSTREAM_HTTP_MORE };
	size_t len = 0, next = first;

	upstream_http_init(&out.http, &limits);
	do {
		next = next > size ? size : next;
		char *moved = malloc(next == 0 ? 1 : next);
		must(moved != NULL);
		if (len != 0)
			(void)memcpy(moved, out.held, len);
		if (next > len)
			(void)memcpy(moved + len, data + len, next - len);
		free(out.held);
		out.held = moved;
		len = next;
		next = step > size ? size : len + step;
		out.verdict = upstream_http_read(&out.http, out.held, len);
	} while (out.verdict == UPSTREAM_HTTP_MORE && len < size);
	if (out.verdict == UPSTREAM_HTTP_MORE)
		out.verdict = upstream_http_end(&out.http);
	if (out.verdict == UPSTREAM_HTTP_DONE) {
		upstream_http_answer(&out.http, out.held, &out.answer);
		out.fields = upstream_http_fields(&out.http, out.held);
	}
	return out;
}

static void same_slice(struct slice a, struct slice b)
{
	must(slice_absent(a) == slice_absent(b) && slice_eq(a, b));
}

/* All of it are proper lines. */
static void walk(struct slice fields)
{
	struct slice name, value;
	size_t left = fields.len;

	while (upstream_next_field(&fields, &name, &value)) {
		must(header_text_is_name(name) && header_text_is_value(value));
		must(fields.len < left && name.len + value.len < left - fields.len);
		left = fields.len;
	}
	must(left == 0);
}

static void same(const struct outcome *a, const struct outcome *b)
{
	const struct provider_headers *x = &a->answer.headers, *y = &b->answer.headers;

	must(a->verdict == b->verdict);
	must(a->http.problem == b->http.problem); /* the very same constant */
	must((a->verdict == UPSTREAM_HTTP_REFUSED) == (a->http.problem != NULL));
	if (a->verdict != UPSTREAM_HTTP_DONE)
		return;
	must(a->answer.status == b->answer.status && a->answer.status >= 200);
	must(a->http.keep == b->http.keep && a->http.at == b->http.at);
	must(a->http.rates_sent == b->http.rates_sent);
	must(memcmp(a->http.rates, b->http.rates, sizeof(a->http.rates)) == 0);
	must(a->answer.body.len <= limits.body_max && a->http.body <= limits.head_max);
	same_slice(a->answer.body, b->answer.body);
	same_slice(a->fields, b->fields);
	same_slice(x->date, y->date);
	same_slice(x->retry_after, y->retry_after);
	same_slice(x->retry_after_ms, y->retry_after_ms);
	same_slice(x->should_retry, y->should_retry);
	same_slice(x->request_id, y->request_id);
	same_slice(x->content_type, y->content_type);
}

/* The same with a body that is taken in pieces, `step` bytes a read: what was done with is gone. */
static void same_taken(const struct outcome *whole, const uint8_t *data, size_t size, size_t step)
{
	enum upstream_http_verdict verdict = UPSTREAM_HTTP_MORE;
	char *held = malloc(size + 1), *body = malloc(size + 1);
	size_t len = 0, fed = 0, taken = 0;
	struct upstream_http http;
	struct slice piece;

	must(held != NULL && body != NULL);
	walk(whole->fields);
	upstream_http_init(&http, &limits);
	upstream_http_ask(&http);
	while (verdict == UPSTREAM_HTTP_MORE && fed < size) {
		size_t more = step < size - fed ? step : size - fed;
		(void)memcpy(held + len, data + fed, more);
		len += more;
		fed += more;
		verdict = upstream_http_read(&http, held, len);
		if (http.waits) {
			if (whole->verdict == UPSTREAM_HTTP_DONE)
				must(slice_eq(upstream_http_fields(&http, held), whole->fields));
			upstream_http_go_on(&http, true);
			verdict = upstream_http_read(&http, held, len);
		}
		if (!http.head)
			continue;
		size_t used = upstream_http_take(&http, held, &piece);
		must(used <= len && taken + piece.len <= size);
		(void)memcpy(body + taken, piece.at, piece.len);
		taken += piece.len;
		(void)memmove(held, held + used, len - used);
		len -= used;
		must(len <= limits.head_max + HTTP_CHUNK_LINE_MAX + step);
	}
	if (verdict == UPSTREAM_HTTP_MORE)
		verdict = upstream_http_end(&http);
	if (whole->verdict ==
	    UPSTREAM_HTTP_DONE) { /* else it may be that only the limit is passed */
		must(verdict == UPSTREAM_HTTP_DONE);
		must(http.status == whole->http.status && http.keep == whole->http.keep);
		must(slice_eq(slice_of(body, taken), whole->answer.body));
		must(size - fed + len == size - whole->http.at);
	}
	free(held);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = read_pieces(data, size, size, 1);
	size_t cuts = size < 64 ? size : 64; /* spread over the input */

	struct outcome bytes = read_pieces(data, size, 0, 1);
	same(&whole, &bytes);
	free(bytes.held);
	same_taken(&whole, data, size, size + 1);
	same_taken(&whole, data, size, 1);
	same_taken(&whole, data, size, 7);
	for (size_t i = 1; i < cuts; i++) {
		struct outcome two = read_pieces(data, size, size * i / cuts, SIZE_MAX);
		same(&whole, &two);
		free(two.held);
	}
	free(whole.held);
	return 0;
}
