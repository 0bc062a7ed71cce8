#include "tests/unit/gateway/settings/settings_rig.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- refusals ---- */

static int is_yaml(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

/* tests/unit/gateway/broken: NN-name.yaml, and in NN-name.expect all that is said about it. */
static void every_broken_file_is_refused_with_its_messages(void **state)
{
	const char *root = getenv("SLUICE_SOURCE");
	char directory[1024], path[1400];
	struct dirent **entries = NULL;
	(void)state;
	(void)snprintf(directory, sizeof(directory), "%s/tests/unit/gateway/broken",
		       root == NULL ? "." : root);
	int count = scandir(directory, &entries, is_yaml, alphasort);
	assert_true(count >= 25);
	char *home = get_current_dir_name();
	assert_int_equal(chdir(directory), 0); /* messages begin with the bare name */
	for (int i = 0; i < count; i++) {
		char *said = NULL;
		size_t len = 0;
		struct settings_source source = { .path = entries[i]->d_name };
		FILE *out = open_memstream(&said, &len);
		assert_null(settings_load(&source, out));
		assert_int_equal(fclose(out), 0);
		(void)snprintf(path, sizeof(path), "%.*s.expect",
			       (int)strlen(entries[i]->d_name) - 5, entries[i]->d_name);
		char *expected = rig_slurp(path);
		assert_string_equal(said, expected);
		free(expected);
		free(said);
		free(entries[i]);
	}
	assert_int_equal(chdir(home), 0);
	free(home);
	free(entries);
}

static void a_missing_file_is_a_problem_of_line_one(void **state)
{
	char *said = NULL;
	size_t len = 0;
	struct settings_source source = { .path = "/nonexistent/sluice.yaml" };
	FILE *out = open_memstream(&said, &len);
	(void)state;
	assert_null(settings_load(&source, out));
	assert_int_equal(fclose(out), 0);
	assert_string_equal(said,
			    "/nonexistent/sluice.yaml:1: (file): cannot be read (No such file or "
			    "directory); name a configuration file\n");
	free(said);
}

/* Wherever a secret stands, and whatever is wrong around it, no message repeats it. */
static void secrets_are_never_printed(void **state)
{
#define AROUND(keys)                                                                             \
	"providers:\n  main:\n    dialect: openai\n    endpoints: [{url: \"https://h/\"}]\n    " \
	"keys: " keys "\n" RIG_MODELS
#define MCP(text) RIG_PROVIDERS RIG_MODELS "mcp_servers: {a: {" text "}}\n"
	static const char *const texts[] = {
		AROUND("[\"HUSH HUSH\"]"),
		AROUND("HUSH"),
		AROUND("[[HUSH]]"),
		AROUND("[{HUSH: HUSH}]"),
		AROUND("{a: HUSH}"),
		AROUND("[HUSH, \"${SLUICE_TEST_SPACED}\"]"),
		AROUND("[\"file:spaced\"]"),
		AROUND("[\"HUSH${\"]"),
		AROUND("[\"HUSH\\u00e9\"]"),
		AROUND("[!!str HUSH]"),
		AROUND("[&a HUSH]"),
		AROUND("[HUSH"),
		AROUND("[\"HUSH"),
		AROUND("[HUSH]\n    drain: 1s"),
		"providers: {main: {dialect: openai, endpoints: [{url: "
		"\"https://u:HUSH@llm.example\"}]}}\n" RIG_MODELS,
		"providers: {main: {dialect: openai, endpoints: [{url: "
		"\"https://llm.example/?key=HUSH\"}]}}\n" RIG_MODELS,
		"providers: {main: {dialect: openai, endpoints: [{url: HUSH}]}}\n" RIG_MODELS,
		"listen: [{address: HUSH}]\n" RIG_PROVIDERS RIG_MODELS,
		RIG_PROVIDERS RIG_MODELS "tenants: [{id: a, keys: [{sha256: sk-slu-HUSH}]}]\n",
		RIG_PROVIDERS RIG_MODELS "tenants: [{id: a, keys: [sk-slu-HUSH]}]\n",
		MCP("url: \"http://h?k=HUSH HUSH\""),
		MCP("url: \"http://h?k=HUSH#x\""),
		MCP("url: \"http://u:HUSH@h\""),
		MCP("url: \"http://h\", authorization: \"HUSH\\n\""),
		MCP("url: \"http://h\", authorization: [HUSH]"),
		MCP("url: \"http://h\", auth: client, authorization: HUSH"),
		MCP("url: \"http://h\", headers: {X-A: \" HUSH\"}"),
		MCP("url: \"http://h\", headers: {X-A: [HUSH]}"),
		MCP("url: \"http://h\", headers: {Host: HUSH}"),
		MCP("url: \"http://h\", headers: HUSH"),
		"seal_keys: [HUSH]\n" RIG_PROVIDERS RIG_MODELS,
		"seal_keys: HUSH\n" RIG_PROVIDERS RIG_MODELS,
		"public_url: \"https://u:HUSH@h\"\n" RIG_PROVIDERS RIG_MODELS,
	};
	(void)state;
	assert_int_equal(setenv("SLUICE_TEST_SPACED", "HUSH HUSH", 1), 0);
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		const struct config_file files[] = {
			{ SLICE("conf/sluice.yaml"), slice_str(texts[i]) },
			{ SLICE("conf/spaced"), SLICE("HUSH HUSH\n") },
		};
		struct rig rig;
		rig_load_files(&rig, files, 2);
		assert_null(rig.config);
		assert_true(strlen(rig.problems) > 0);
		assert_null(strstr(rig.problems, "HUSH"));
		rig_fini(&rig);
	}
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	struct rig rig = { 0 };
	size_t n = 0;
	rig_load_whole(&rig);
	do {
		rig_fini(&rig);
		rig_load_failing(&rig, rig_whole_files, COUNT_OF(rig_whole_files), ++n);
		assert_int_equal(rig.config == NULL, strlen(rig.problems) > 0);
		if (rig.config == NULL) {
			assert_non_null(strstr(rig.problems, "memory"));
			assert_ptr_equal(strchr(rig.problems, '\n') + 1,
					 rig.problems + strlen(rig.problems));
		}
		assert_true(n < 1000);
	} while (rig.config == NULL);
	assert_true(n > 3); /* it did fail a few times */
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_broken_file_is_refused_with_its_messages),
		cmocka_unit_test(a_missing_file_is_a_problem_of_line_one),
		cmocka_unit_test(secrets_are_never_printed),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests_name("settings_refusal", tests, NULL, NULL);
}
