/* 100,000 tenants that only name their plan: what loading them costs (DESIGN 6), from one file and from one each.
 *
 * ctest: serial once */
#include "gateway/settings/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum {
	TENANTS = 100000,
	BYTES_PER_TENANT_MAX = 256, /* beside the text itself */
	SECONDS_MAX = 2,            /* of CPU; DESIGN's floor */
	FILES_SECONDS_MAX = 12,     /* a look at every file for each file takes longer by far */
};

static const char main_text[] =
	"providers: {main: {dialect: openai, endpoints: [{url: \"https://llm.example/v1\"}]}}\n"
	"models: [{id: m, provider: main, context: 8000, price: {input: 1, output: 2}}]\n"
	"plans: {standard: {models: {allow: [\"*\"], default: m}}}\n"
	"tenants: [{files: t.yaml}]\n";

/* The caller's. */
static char *tenants_text(size_t *len)
{
	char *text = NULL, hex[65] = "";
	FILE *out = open_memstream(&text, len);

	assert_non_null(out);
	for (int i = 0; i < TENANTS; i++) {
		char key[32];
		uint8_t digest[SHA256_BYTES];
		(void)snprintf(key, sizeof(key), "key-%d", i);
		sha256(slice_str(key), digest);
		sha256_hex(digest, 64, hex);
		(void)fprintf(out,
			      "- {id: tenant-%06d, plan: standard, keys: [{sha256: \"%s\"}]}\n", i,
			      hex);
	}
	assert_int_equal(fclose(out), 0);
	return text;
}

static void many_tenants_load_quickly_and_share_their_plan(void **state)
{
	size_t len = 0;
	char *text = tenants_text(&len);
	const struct config_file files[] = { { SLICE("sluice.yaml"), slice_str(main_text) },
					     { SLICE("t.yaml"), slice_of(text, len) } };
	const struct settings_source source = { .path = "sluice.yaml",
						.files = files,
						.file_count = 2 };
	(void)state;
	clock_t start = clock();
	struct config *config = settings_load(&source, stderr);
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	assert_non_null(config);
	assert_int_equal(config->tenants.count, TENANTS);
	assert_int_equal(config->tenants.key_count, TENANTS);
	for (size_t i = 0; i < TENANTS; i++)
		assert_ptr_equal(config->tenants.tenants[i].plan, config->tenants.tenants[0].plan);
	size_t bytes = (config->arena.used - len) / TENANTS;
	print_message("%d tenants: %.2f s of CPU, %zu bytes each\n", TENANTS, seconds, bytes);
	assert_true(bytes <= BYTES_PER_TENANT_MAX);
	assert_true(seconds <= SECONDS_MAX);
	settings_free(&config);
	free(text);
}

/* As in a server that begins with what the one before it has loaded. */
static void as_many_files_cost_no_look_at_each_other(void **state)
{
	static struct config_file files[1 + TENANTS];
	static char paths[TENANTS][24], texts[TENANTS][64];
	struct settings_source source = { .path = "sluice.yaml",
					  .files = files,
					  .file_count = COUNT_OF(files) };
	static const char globs[] =
		"plans: {standard: {models: {allow: [\"*\"], default: m}}}\n"
		"providers: {main: {dialect: openai, endpoints: [{url: "
		"\"https://llm.example\"}]}}\n"
		"models: [{id: m, provider: main, context: 8000, price: {input: 1, output: 2}}]\n"
		"tenants: [{files: t/*.yaml}]\n";

	(void)state;
	files[0] = (struct config_file){ SLICE("sluice.yaml"), slice_str(globs) };
	for (int i = 0; i < TENANTS; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "t/%06d.yaml", i);
		(void)snprintf(texts[i], sizeof(texts[i]), "- {id: t-%06d, plan: standard}\n", i);
		files[1 + i] = (struct config_file){ slice_str(paths[i]), slice_str(texts[i]) };
	}
	clock_t start = clock();
	struct config *config = settings_load(&source, stderr);
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	assert_non_null(config);
	assert_int_equal(config->tenants.count, TENANTS);
	assert_int_equal(config->file_count, 1 + TENANTS);
	print_message("%d files of one tenant each: %.2f s of CPU\n", TENANTS, seconds);
	assert_true(seconds <= FILES_SECONDS_MAX);
	settings_free(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_tenants_load_quickly_and_share_their_plan),
		cmocka_unit_test(as_many_files_cost_no_look_at_each_other),
	};
	return cmocka_run_group_tests_name("tenants_load", tests, NULL, NULL);
}
