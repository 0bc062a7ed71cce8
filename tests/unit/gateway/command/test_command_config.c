#include "gateway/command/command_config.h"

#include "codec/base/attr.h"
#include "codec/base/sha256.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

typedef int command_fn(int argc, char **argv);

struct run {
	int code;
	char out[65536], err[4096]; /* cut there */
};

static void collect(int fd, char *out, size_t room)
{
	ssize_t len = pread(fd, out, room - 1, 0);

	assert_true(len >= 0);
	out[len] = '\0';
	assert_int_equal(close(fd), 0);
}

/* Runs `command` with `count` words after the program's name, its streams caught. */
static void run(struct run *r, command_fn *command, char **words, int count)
{
	char *argv[8] = { (char *)"sluice" };
	int kept[2] = { dup(1), dup(2) };
	int caught[2] = { memfd_create("out", 0), memfd_create("err", 0) };

	assert_true(kept[0] >= 0 && kept[1] >= 0 && caught[0] >= 0 && caught[1] >= 0);
	for (int i = 0; i < count; i++)
		argv[i + 1] = words[i];
	(void)fflush(NULL);
	assert_true(dup2(caught[0], 1) == 1 && dup2(caught[1], 2) == 2);
	r->code = command(count + 1, argv);
	(void)fflush(NULL);
	assert_true(dup2(kept[0], 1) == 1 && dup2(kept[1], 2) == 2);
	assert_true(close(kept[0]) == 0 && close(kept[1]) == 0);
	collect(caught[0], r->out, sizeof(r->out));
	collect(caught[1], r->err, sizeof(r->err));
}

static void source_path(char *out, size_t room, const char *name)
{
	const char *source = getenv("SLUICE_SOURCE");

	(void)snprintf(out, room, "%s/%s", source == NULL ? "." : source, name);
}

static void check_says_what_a_good_file_holds(void **state)
{
	struct run r;
	char path[1024], expected[1200];
	char *words[] = { (char *)"check", path };
	(void)state;
	assert_int_equal(setenv("ANTHROPIC_API_KEY", "a", 1), 0);
	assert_int_equal(setenv("OPENAI_API_KEY", "b", 1), 0);
	source_path(path, sizeof(path), "deploy/sluice.yaml.example");
	run(&r, command_check, words, 2);
	(void)snprintf(expected, sizeof(expected),
		       "%s: ok (2 providers, 2 models, 1 MCP servers, 1 tenants)\n", path);
	assert_string_equal(r.out, expected);
	assert_string_equal(r.err, "");
	assert_int_equal(r.code, 0);
}

static void check_prints_problems_and_exits_with_one(void **state)
{
	struct run r;
	char path[1024], expected[1200];
	char *words[] = { (char *)"check", path };
	(void)state;
	source_path(path, sizeof(path), "tests/unit/gateway/broken/15-empty.yaml");
	run(&r, command_check, words, 2);
	(void)snprintf(
		expected, sizeof(expected),
		"%s:1: (file): is empty; deploy/sluice.yaml.example shows what belongs here\n",
		path);
	assert_string_equal(r.out, expected);
	assert_int_equal(r.code, 1);
}

static void wrong_usage_exits_with_two(void **state)
{
	static const struct {
		command_fn *command;
		const char *words[3];
		int count;
	} rows[] = {
		{ command_check, { "check" }, 1 },
		{ command_check, { "check", "a", "b" }, 3 },
		{ command_settings, { "settings", "a" }, 2 },
		{ command_schema, { "schema", "a" }, 2 },
		{ command_key, { "key", "a" }, 2 },
	};
	struct run r;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char usage[64];
		run(&r, rows[i].command, (char **)(uintptr_t)rows[i].words, rows[i].count);
		assert_int_equal(r.code, 2);
		assert_string_equal(r.out, "");
		(void)snprintf(usage, sizeof(usage), "usage: sluice %s", rows[i].words[0]);
		assert_memory_equal(r.err, usage, strlen(usage));
	}
}

static void settings_and_schema_are_printed(void **state)
{
	struct run r;
	char *settings[] = { (char *)"settings" }, *schema[] = { (char *)"schema" };
	(void)state;
	run(&r, command_settings, settings, 1);
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.out, "\nlimits.body_bytes\n"));
	run(&r, command_schema, schema, 1);
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out[0], '{');
}

static void a_key_fits_its_digest_and_is_new_each_time(void **state)
{
	struct run first, second;
	char *words[] = { (char *)"key" };
	char key[64], hex[65], expected[65] = "";
	uint8_t digest[SHA256_BYTES];
	(void)state;
	run(&first, command_key, words, 1);
	run(&second, command_key, words, 1);
	assert_int_equal(first.code, 0);
	assert_int_equal(sscanf(first.out, "key:    %63s\nsha256: %64s\n", key, hex), 2);
	assert_int_equal(strlen(key), 7 + 43);
	assert_memory_equal(key, "sk-slu-", 7);
	assert_int_equal(strspn(key + 7, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789-_"),
			 43);
	sha256(slice_str(key), digest);
	sha256_hex(digest, 64, expected);
	assert_string_equal(hex, expected);
	assert_string_not_equal(first.out, second.out);
}

static void output_that_cannot_be_written_is_no_success(void **state)
{
	char *argv[] = { (char *)"sluice", (char *)"settings", NULL };
	int kept[2] = { dup(1), dup(2) }, full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)state;
	assert_true(kept[0] >= 0 && kept[1] >= 0 && full >= 0 && null >= 0);
	(void)fflush(NULL);
	assert_true(dup2(full, 1) == 1 && dup2(null, 2) == 2);
	int code = command_settings(2, argv);
	(void)fflush(stdout);
	clearerr(stdout);
	assert_true(dup2(kept[0], 1) == 1 && dup2(kept[1], 2) == 2);
	assert_true(close(kept[0]) == 0 && close(kept[1]) == 0 && close(full) == 0 &&
		    close(null) == 0);
	assert_int_equal(code, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_says_what_a_good_file_holds),
		cmocka_unit_test(check_prints_problems_and_exits_with_one),
		cmocka_unit_test(wrong_usage_exits_with_two),
		cmocka_unit_test(settings_and_schema_are_printed),
		cmocka_unit_test(a_key_fits_its_digest_and_is_new_each_time),
		cmocka_unit_test(output_that_cannot_be_written_is_no_success),
	};
	return cmocka_run_group_tests_name("command_config", tests, NULL, NULL);
}
