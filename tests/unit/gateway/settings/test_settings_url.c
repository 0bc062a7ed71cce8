#include "gateway/settings/settings_url.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_text(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.at, text, s.len);
}

static void assert_maybe(struct slice s, const char *text)
{
	assert_int_equal(slice_absent(s), text == NULL);
	if (text != NULL)
		assert_text(s, text);
}

static void urls_are_taken_apart(void **state)
{
	static const struct {
		const char *url;
		bool tls, ipv6;
		const char *host;
		uint16_t port;
		const char *path;
	} rows[] = {
		{ "https://api.openai.com/v1", true, false, "api.openai.com", 443, "/v1" },
		{ "http://localhost", false, false, "localhost", 80, "" },
		{ "http://localhost/", false, false, "localhost", 80, "" },
		{ "HTTPS://Host:8443/a/b//", true, false, "Host", 8443, "/a/b" },
		{ "http://127.0.0.1:8080/v1/", false, false, "127.0.0.1", 8080, "/v1" },
		{ "http://[2001:db8::1]", false, true, "2001:db8::1", 80, "" },
		{ "https://[::1]:9/x", true, true, "::1", 9, "/x" },
		{ "http://llm_service.ns.svc.cluster.local.:80", false, false,
		  "llm_service.ns.svc.cluster.local.", 80, "" },
		{ "https://h/a%20b/@c:d", true, false, "h", 443, "/a%20b/@c:d" },
	};
	struct url_parts parts;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_null(url_parse(slice_str(rows[i].url), &parts));
		assert_int_equal(parts.tls, rows[i].tls);
		assert_int_equal(parts.ipv6, rows[i].ipv6);
		assert_text(parts.host, rows[i].host);
		assert_int_equal(parts.port, rows[i].port);
		assert_text(parts.path, rows[i].path);
	}
}

static void a_path_to_the_letter_may_have_a_query(void **state)
{
	static const struct {
		const char *url, *host, *path, *query;
	} rows[] = {
		{ "http://h", "h", "", "" },
		{ "http://h/", "h", "/", "" },
		{ "https://h:1/mcp//", "h", "/mcp//", "" },
		{ "http://h/mcp?", "h", "/mcp", "?" },
		{ "http://h?a=/b", "h", "", "?a=/b" },
		{ "http://[::1]/x?a=b?c&d", "::1", "/x", "?a=b?c&d" },
	};
	static const char *const bad[] = {
		"http://h/mcp#x", "http://h/mcp?x#y", "http://h?a b", "http://h/?\"",
		"http://u@h/mcp", "ftp://h/mcp",      "http://?x",
	};
	struct url_parts parts;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_null(url_parse_exact(slice_str(rows[i].url), &parts));
		assert_text(parts.host, rows[i].host);
		assert_text(parts.path, rows[i].path);
		assert_text(parts.query, rows[i].query);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (url_parse_exact(slice_str(bad[i]), &parts) == NULL)
			fail_msg("taken: %s", bad[i]);
}

/* The messages themselves: tests/unit/gateway/broken/10-urls. */
static void what_is_no_url_is_refused_without_repeating_it(void **state)
{
	static const char *const rows[] = {
		"",
		"https",
		"https:",
		"https:/h",
		"https://",
		"//h/",
		"file:///etc/passwd",
		"https://:443",
		"https://h:",
		"https://h:65536",
		"https://h:-1",
		"https://h:1:2",
		"https://u@h",
		"https://u:HUSH@h",
		"https://h?HUSH",
		"https://h/#HUSH",
		"https://h\r\nX: HUSH",
		"https://h/\r\nX: HUSH",
		"https://h/\xc3\xa9",
		"https://\xc3\xa9/",
		"https://a b/",
		"https://.h/",
		"https://h..h/",
		"https://1.2.3/",
		"https://1.2.3.4.5/",
		"https://999.2.3.4/",
		"https://[]/",
		"https://[::1/",
		"https://[::1%25eth0]/",
		"https://[1.2.3.4]/",
		"https://::1/",
		"https://[::1]x/",
		"https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/",
	};
	struct url_parts parts;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *wrong = url_parse(slice_str(rows[i]), &parts);
		if (wrong == NULL)
			print_error("\"%s\"\n", rows[i]);
		assert_non_null(wrong);
		assert_null(strstr(wrong, "HUSH"));
	}
}

static void addresses_are_an_ip_and_a_port(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} rows[] = {
		{ "0.0.0.0:8080", "0.0.0.0", 8080 },
		{ "[::]:1", "::", 1 },
		{ "[2001:db8::1]:65535", "2001:db8::1", 65535 },
		{ "127.0.0.1", NULL, 0 },
		{ "[::1]", NULL, 0 },
		{ "127.0.0.1:0", NULL, 0 },
		{ "127.0.0.1:65536", NULL, 0 },
		{ "127.0.0.1:http", NULL, 0 },
		{ "localhost:80", NULL, 0 },
		{ "127.1:80", NULL, 0 },
		{ ":80", NULL, 0 },
		{ "::1:80", NULL, 0 },
		{ "", NULL, 0 },
	};
	struct slice host;
	uint16_t port;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *wrong = address_parse(slice_str(rows[i].text), &host, &port);
		assert_int_equal(wrong == NULL, rows[i].host != NULL);
		if (wrong != NULL)
			continue;
		assert_text(host, rows[i].host);
		assert_int_equal(port, rows[i].port);
	}
}

static void urls_of_a_redis_are_taken_apart(void **state)
{
	static const struct {
		const char *url;
		bool tls;
		const char *user, *password, *host, *path;
		uint16_t port;
		uint32_t database;
	} rows[] = {
		{ "redis://cache", false, NULL, NULL, "cache", NULL, 6379, 0 },
		{ "rediss://me:p%40w@[::1]:7/3", true, "me", "p%40w", "::1", NULL, 7, 3 },
		{ "redis://:p@w@10.0.0.1/", false, NULL, "p@w", "10.0.0.1", NULL, 6379, 0 },
		{ "unix:///run/redis.sock", false, NULL, NULL, NULL, "/run/redis.sock", 6379, 0 },
		{ "unix://u:p@/r", false, "u", "p", NULL, "/r", 6379, 0 },
	};
	struct redis_url_parts parts;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_null(redis_url_parse(slice_str(rows[i].url), &parts));
		assert_int_equal(parts.tls, rows[i].tls);
		assert_int_equal(parts.port, rows[i].port);
		assert_int_equal(parts.database, rows[i].database);
		assert_maybe(parts.user, rows[i].user);
		assert_maybe(parts.password, rows[i].password);
		assert_maybe(parts.host, rows[i].host);
		assert_maybe(parts.path, rows[i].path);
	}
}

static void what_is_no_redis_is_refused(void **state)
{
	static const char *const rows[] = {
		"",
		"redis",
		"http://h",
		"redis://",
		"redis://h:0",
		"redis://h:65536",
		"redis://h/x",
		"redis://h/65536",
		"redis://user@h",
		"redis://:p@",
		"unix://",
		"unix://relative",
		"redis://1.2.3",
		"redis://h h",
		"redis://[::1",
	};
	struct redis_url_parts parts;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (redis_url_parse(slice_str(rows[i]), &parts) == NULL)
			fail_msg("taken: %s", rows[i]);
}

static void escapes_are_undone_or_refused(void **state)
{
	char out[64];
	(void)state;
	assert_int_equal(url_unescape(SLICE("a%2Fb%25%7e"), out), 5);
	assert_memory_equal(out, "a/b%~", 5);
	assert_int_equal(url_unescape(SLICE(""), out), 0);
	assert_true(url_unescape(SLICE("%"), out) == SIZE_MAX);
	assert_true(url_unescape(SLICE("a%2"), out) == SIZE_MAX);
	assert_true(url_unescape(SLICE("%zz"), out) == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(a_path_to_the_letter_may_have_a_query),
		cmocka_unit_test(what_is_no_url_is_refused_without_repeating_it),
		cmocka_unit_test(addresses_are_an_ip_and_a_port),
		cmocka_unit_test(urls_of_a_redis_are_taken_apart),
		cmocka_unit_test(what_is_no_redis_is_refused),
		cmocka_unit_test(escapes_are_undone_or_refused),
	};
	return cmocka_run_group_tests_name("settings_url", tests, NULL, NULL);
}
