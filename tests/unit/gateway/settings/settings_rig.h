/* settings_rig.h - configurations from texts in memory, and what was said about them. */
#ifndef TESTS_UNIT_GATEWAY_SETTINGS_RIG_H
#define TESTS_UNIT_GATEWAY_SETTINGS_RIG_H

#include "gateway/settings/settings.h"
#include "gateway/settings/settings_loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define RIG_PROVIDERS           \
	"providers:\n"          \
	"  main:\n"             \
	"    dialect: openai\n" \
	"    endpoints: [{url: \"https://llm.example/v1\"}]\n"
#define RIG_MODELS                                                                       \
	"models:\n"                                                                      \
	"  - {id: small, provider: main, context: 8000, price: {input: 1, output: 2}}\n" \
	"  - {id: large, provider: main, context: 8000, price: {input: 1, output: 2}}\n" \
	"  - {id: gpt, provider: main, context: 8000, price: {input: 1, output: 2}}\n"

#define RIG_DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RIG_DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct rig {
	struct config *config; /* NULL: refused */
	char *problems;        /* all that was printed */
};

static inline void rig_load_failing(struct rig *rig, const struct config_file *files,
				    uint32_t count, size_t fail_next)
{
	size_t len = 0;
	struct settings_source source = { .path = files[0].path.at,
					  .files = files,
					  .file_count = count };
	*rig = (struct rig){ 0 };
	FILE *out = open_memstream(&rig->problems, &len);

	assert_non_null(out);
	rig->config = settings_load_failing(&source, out, fail_next);
	assert_int_equal(fclose(out), 0);
}

static inline void rig_load_files(struct rig *rig, const struct config_file *files, uint32_t count)
{
	rig_load_failing(rig, files, count, 0);
}

static inline void rig_load(struct rig *rig, const char *text)
{
	const struct config_file file = { SLICE("conf/sluice.yaml"), slice_str(text) };

	rig_load_files(rig, &file, 1);
}

/* Loads what must be right. */
static inline void rig_load_good(struct rig *rig, const char *text)
{
	rig_load(rig, text);
	assert_string_equal(rig->problems, "");
	assert_non_null(rig->config);
}

static inline void rig_fini(struct rig *rig)
{
	settings_free(&rig->config);
	free(rig->problems);
	rig->problems = NULL;
}

/* Loads a text that is right with each of its requests for memory failing. */
static inline void rig_load_without_memory(const char *text)
{
	const struct config_file file = { SLICE("conf/sluice.yaml"), slice_str(text) };
	struct rig rig;
	bool failed = true;

	for (size_t n = 1; failed; n++) {
		rig_load_failing(&rig, &file, 1, n);
		failed = rig.config == NULL;
		if (failed && strstr(rig.problems, "memory") == NULL)
			fail_msg("at %zu: %s", n, rig.problems);
		rig_fini(&rig);
	}
}

static inline void assert_slice(struct slice s, const char *text)
{
	assert_non_null(s.at);
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.at, text, s.len);
}

/* The file of DESIGN 4.2, without what this version does not have. */
static const char rig_whole_file[] =
	"listen:\n"
	"  - {address: \"0.0.0.0:8080\"}\n"
	"  - {address: \"[::]:8081\", trusted_proxy: true}\n"
	"admin: {address: \"127.0.0.1:9090\", socket: admin.sock}\n"
	"workers: 3\n"
	"limits: {body_bytes: 8MiB, connections: 500}\n"
	"drain: 10s\n"
	"store: {kind: memory}\n"
	"identity: {origins: [\"https://app.example\"]}\n"
	"metrics: {tenants: 7}\n"
	"providers:\n"
	"  anthropic:\n"
	"    dialect: anthropic\n"
	"    version: \"2023-06-01\"\n"
	"    endpoints: [{url: \"https://API.anthropic.com/\", weight: 3},"
	" {url: \"http://[2001:db8::1]:8000/base/\"}]\n"
	"    keys: [literal-key, \"${SLUICE_TEST_KEY}\", \"file:secrets/key\"]\n"
	"    timeouts: {connect: 1s, first_byte: 2s, idle: 3s, total: 4m}\n"
	"  openai:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://${SLUICE_TEST_HOST}/v1\"}]\n"
	"models:\n"
	"  - id: claude-sonnet\n"
	"    provider: anthropic\n"
	"    name: claude-sonnet-4-6\n"
	"    aliases: [sonnet, s]\n"
	"    context: 1000000\n"
	"    price: {input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75}\n"
	"    speed: 0.6\n"
	"    intelligence: 0.85\n"
	"    profile: {max_output: 64000, image: true, structured_output: true, max_stop: 8}\n"
	"  - id: claude-new\n"
	"    provider: anthropic\n"
	"    context: 200000\n"
	"    price: {input: 0.000001, output: 0}\n"
	"    profile: {version: \"2026-10-21\"}\n"
	"  - id: gpt\n"
	"    provider: openai\n"
	"    context: 128000\n"
	"    price: {input: 2, output: 8}\n"
	"    enabled: false\n"
	"plans:\n"
	"  standard:\n"
	"    capabilities: {tools: true, context: true, images: true}\n"
	"    models: {allow: [\"claude-*\", \"gpt-*\"], deny: [\"*-new\"], default: "
	"claude-sonnet}\n"
	"    limits: {requests_per_minute: 600, requests_burst: 70, tokens_per_minute: 200000,\n"
	"             tokens_burst: 300000, concurrent: 64, max_tokens: 5000,\n"
	"             max_tokens_mode: refuse, tool_rounds: 11, tool_rounds_action: refuse,\n"
	"             loop_tokens: 12345, loop_usd: 0.25, usd_per_day: 50, usd_per_month: 1000.5, "
	"deadline: 56s}\n"
	"    unknown_tool_calls: refuse\n"
	"tenants:\n"
	"  - {id: acme, plan: standard, keys: [{sha256: \"" RIG_DIGEST_A "\", server: billing}],"
	" disabled: true}\n"
	"  - {files: \"tenants.d/*.yaml\"}\n";

__attribute__((unused)) static const struct config_file rig_whole_files[] = {
	{ SLICE_INIT("conf/sluice.yaml"), { rig_whole_file, sizeof(rig_whole_file) - 1 } },
	{ SLICE_INIT("conf/tenants.d/b.yaml"), SLICE_INIT("- {id: beta, plan: standard}\n") },
	{ SLICE_INIT("conf/tenants.d/a.yaml"),
	  SLICE_INIT("- id: alpha\n  keys:\n    - sha256: " RIG_DIGEST_B "\n") },
	{ SLICE_INIT("conf/tenants.d/deeper/x.yaml"), SLICE_INIT("not a list\n") },
	{ SLICE_INIT("conf/secrets/key"), SLICE_INIT("key-from-file\n") },
};

static inline void rig_load_whole(struct rig *rig)
{
	assert_int_equal(setenv("SLUICE_TEST_KEY", "key-from-environment", 1), 0);
	assert_int_equal(setenv("SLUICE_TEST_HOST", "api.openai.com", 1), 0);
	rig_load_files(rig, rig_whole_files, COUNT_OF(rig_whole_files));
	assert_string_equal(rig->problems, "");
	assert_non_null(rig->config);
}

/* The whole of a file; the caller's. */
static inline char *rig_slurp(const char *path)
{
	char *text = NULL;
	size_t room = 0;
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	ssize_t len = getdelim(&text, &room, EOF, file); /* EOF is no byte of a text */
	assert_true(len >= 0 || feof(file));
	assert_int_equal(fclose(file), 0);
	if (len < 0 && text != NULL)
		text[0] = '\0';
	return text;
}

#endif
