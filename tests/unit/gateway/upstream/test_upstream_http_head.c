/* The headers of a provider's answer: which are kept, and where. How lines are cut is test_upstream_http.c's. */
#include "gateway/upstream/upstream_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "HTTP/1.1 200 OK\r\n"

static const struct upstream_http_limits small = { .head_max = 512, .body_max = 64 };

static void the_headers_that_matter_are_collected_and_the_first_of_each_counts(void **state)
{
	(void)state;
	struct slice input = SLICE("HTTP/1.1 429 Slow down\r\n"
				   "DATE: Mon, 01 Jan 2026 00:00:00 GMT\r\n"
				   "retry-after: 7\r\n"
				   "Retry-After-Ms: 6500\r\n"
				   "x-should-retry: true\r\n"
				   "x-request-id: req_1\r\n"
				   "Request-Id: req_2\r\n"
				   "retry-after: 8\r\n"
				   "Content-Length: 0\r\n\r\n");
	struct upstream_http http;
	struct provider_answer answer = { .wall_s = 5 };
	char bytes[512];
	(void)memcpy(bytes, input.at, input.len);
	upstream_http_init(&http, &small);
	assert_int_equal(upstream_http_read(&http, bytes, input.len), UPSTREAM_HTTP_DONE);
	upstream_http_answer(&http, bytes, &answer);
	assert_true(slice_eq(answer.headers.date, SLICE("Mon, 01 Jan 2026 00:00:00 GMT")));
	assert_true(slice_eq(answer.headers.retry_after, SLICE("7")));
	assert_true(slice_eq(answer.headers.retry_after_ms, SLICE("6500")));
	assert_true(slice_eq(answer.headers.should_retry, SLICE("true")));
	assert_true(slice_eq(answer.headers.request_id, SLICE("req_1")));
	assert_int_equal(answer.status, 429);
	assert_int_equal(answer.wall_s, 5);
}

static void rates_are_collected_where_there_is_room_for_them(void **state)
{
	(void)state;
	char bytes[] = HEAD "anthropic-ratelimit-tokens-limit: 100\r\n"
			    "ANTHROPIC-RATELIMIT-TOKENS-REMAINING: 7\r\n"
			    "Content-Length: 0\r\n\r\n";
	char others[] = HEAD "Content-Length: 0\r\n\r\n";
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;
	struct upstream_http http;

	arena_init(&arena, &pool, 1024);
	upstream_http_init(&http, &small);
	assert_int_equal(upstream_http_read(&http, bytes, sizeof(bytes) - 1), UPSTREAM_HTTP_DONE);
	const struct rate_header *rates = upstream_http_rates(&http, bytes, &arena);
	assert_non_null(rates);
	assert_true(slice_eq(rates[RATE_TOKENS].limit, SLICE("100")));
	assert_true(slice_eq(rates[RATE_TOKENS].remaining, SLICE("7")));
	assert_true(slice_absent(rates[RATE_TOKENS].reset));
	assert_true(slice_absent(rates[RATE_REQUESTS].limit));
	assert_null(upstream_http_rates(&http, bytes, NULL));
	upstream_http_init(&http, &small);
	assert_int_equal(upstream_http_read(&http, others, sizeof(others) - 1), UPSTREAM_HTTP_DONE);
	assert_null(upstream_http_rates(&http, others, &arena));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

/* The value of a header by that name as a rate, and which one; absent: it is none. */
static struct slice rate_of(const char *name, uint32_t *kind, uint32_t *field)
{
	static const char value[] = ": 17\r\ncontent-length: 0\r\n\r\n";
	static char bytes[256];
	struct upstream_http http;
	const int len = snprintf(bytes, sizeof(bytes), "%s%s%s", HEAD, name, value);

	upstream_http_init(&http, &small);
	assert_int_equal(upstream_http_read(&http, bytes, (size_t)len), UPSTREAM_HTTP_DONE);
	for (*kind = 0; *kind < RATE_KINDS; ++*kind)
		for (*field = 0; *field < RATE_FIELDS; ++*field)
			if (http.rates[*kind][*field].at != 0) {
				assert_true(http.rates_sent);
				return slice_of(bytes + http.rates[*kind][*field].at,
						http.rates[*kind][*field].len);
			}
	assert_false(http.rates_sent);
	return (struct slice){ NULL, 0 };
}

static void every_rate_has_its_place(void **state)
{
	static const char *const kinds[RATE_KINDS] = { "requests", "tokens", "input-tokens",
						       "output-tokens" };
	static const char *const fields[RATE_FIELDS] = { "limit", "remaining", "reset" };
	char name[80];
	uint32_t kind, field;

	(void)state;
	for (uint32_t k = 0; k < RATE_KINDS; k++)
		for (uint32_t f = 0; f < RATE_FIELDS; f++) {
			(void)snprintf(name, sizeof(name), "Anthropic-RateLimit-%s-%s", kinds[k],
				       fields[f]);
			assert_true(slice_eq(rate_of(name, &kind, &field), SLICE("17")));
			assert_true(kind == k && field == f);
			(void)snprintf(name, sizeof(name), "x-ratelimit-%s-%s", fields[f],
				       kinds[k]);
			const struct slice value = rate_of(name, &kind, &field);
			assert_int_equal(slice_absent(value),
					 k != RATE_REQUESTS && k != RATE_TOKENS);
			assert_true(slice_absent(value) || (kind == k && field == f));
		}
}

static void hosts_call_the_same_rates_otherwise(void **state)
{
	static const struct {
		const char *behind; /* the field */
		uint32_t kind;
	} rows[] = {
		{ "", RATE_REQUESTS },
		{ "-requests-day", RATE_REQUESTS },
		{ "-tokens-minute", RATE_TOKENS },
	};
	static const char *const fields[RATE_FIELDS] = { "limit", "remaining", "reset" };
	char name[80];
	uint32_t kind, field;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (uint32_t f = 0; f < RATE_FIELDS; f++) {
			(void)snprintf(name, sizeof(name), "x-ratelimit-%s%s", fields[f],
				       rows[i].behind);
			assert_true(slice_eq(rate_of(name, &kind, &field), SLICE("17")));
			assert_true(kind == rows[i].kind && field == f);
		}
}

static void what_is_nearly_a_rate_is_none(void **state)
{
	static const char *const names[] = { "anthropic-ratelimit-tokens-limits",
					     "anthropic-ratelimit-tokens-limi",
					     "anthropic-ratelimit-tokens_limit",
					     "anthropic-ratelimit-images-limit",
					     "anthropic-ratelimit-output-tokens-remaining-",
					     "x-ratelimit-limit-request",
					     "y-ratelimit-limit-requests",
					     "x-ratelimit-requests-limit" };
	uint32_t kind, field;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		assert_true(slice_absent(rate_of(names[i], &kind, &field)));
}

static void headers_that_were_not_sent_are_absent_and_empty_ones_are_empty(void **state)
{
	(void)state;
	struct upstream_http http;
	struct provider_answer answer = { .wall_s = 0 };
	char bytes[] = HEAD "request-id:\r\nContent-Length: 0\r\n\r\n";
	upstream_http_init(&http, &small);
	assert_int_equal(upstream_http_read(&http, bytes, sizeof(bytes) - 1), UPSTREAM_HTTP_DONE);
	upstream_http_answer(&http, bytes, &answer);
	assert_true(slice_absent(answer.headers.date));
	assert_true(slice_absent(answer.headers.retry_after));
	assert_false(slice_absent(answer.headers.request_id));
	assert_int_equal(answer.headers.request_id.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_headers_that_matter_are_collected_and_the_first_of_each_counts),
		cmocka_unit_test(rates_are_collected_where_there_is_room_for_them),
		cmocka_unit_test(every_rate_has_its_place),
		cmocka_unit_test(hosts_call_the_same_rates_otherwise),
		cmocka_unit_test(what_is_nearly_a_rate_is_none),
		cmocka_unit_test(headers_that_were_not_sent_are_absent_and_empty_ones_are_empty),
	};
	return cmocka_run_group_tests_name("upstream_http_head", tests, NULL, NULL);
}
