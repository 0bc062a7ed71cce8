#include "tests/unit/gateway/ca_pem.h"
#include "tests/unit/gateway/settings/settings_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static void a_private_ca_is_part_of_an_endpoint_s_identity(void **state)
{
	static const char text[] = "providers:\n"
				   "  main: {dialect: openai, endpoints: [{url: "
				   "\"https://llm.example\"}], ca: ca.crt}\n" RIG_MODELS;
	const struct config_file files[] = {
		{ SLICE("conf/sluice.yaml"), slice_str(text) },
		{ SLICE("conf/ca.crt"), slice_str(test_ca) },
	};
	char expected[128] = "https|llm.example|443|";
	uint8_t digest[SHA256_BYTES];
	struct rig rig;
	(void)state;
	rig_load_files(&rig, files, 2);
	assert_string_equal(rig.problems, "");
	const struct endpoint *e = &rig.config->providers[0].endpoints[0];
	assert_slice(e->ca_path, "conf/ca.crt");
	assert_slice(e->ca_pem, test_ca);
	sha256(slice_str(test_ca), digest);
	sha256_hex(digest, 64, expected + strlen(expected));
	assert_slice(e->identity, expected);
	rig_fini(&rig);
}

static void a_configuration_can_be_loaded_again_from_its_own_files(void **state)
{
	(void)state;
	struct rig first, again;
	rig_load_whole(&first);
	assert_int_equal(first.config->file_count, 4); /* what it did not name is not kept */
	assert_slice(first.config->files[0].path, "conf/sluice.yaml");
	assert_slice(first.config->files[0].text, rig_whole_file);
	rig_load_files(&again, first.config->files, first.config->file_count);
	assert_string_equal(again.problems, "");
	assert_string_equal(again.config->digest, first.config->digest);
	assert_int_equal(again.config->tenants.count, 3);
	assert_slice(again.config->providers[0].keys[2], "key-from-file");
	rig_fini(&first);
	assert_slice(again.config->providers[0].keys[2], "key-from-file");
	rig_fini(&again);
}

static void the_digest_depends_on_every_file(void **state)
{
	(void)state;
	struct rig rig;
	char before[17];
	rig_load_whole(&rig);
	assert_int_equal(strlen(rig.config->digest), 16);
	assert_int_equal(strspn(rig.config->digest, "0123456789abcdef"), 16);
	(void)memcpy(before, rig.config->digest, sizeof(before));
	rig_fini(&rig);
	for (size_t i = 0; i < COUNT_OF(rig_whole_files); i++) {
		struct config_file files[COUNT_OF(rig_whole_files)];
		char text[sizeof(rig_whole_file) + 8];
		(void)memcpy(files, rig_whole_files, sizeof(files));
		int len = snprintf(text, sizeof(text), "%s%s", files[i].text.at,
				   i == 4 ? "" : "# more\n");
		if (i == 4) /* a secret has no comments */
			text[0] = 'K';
		files[i].text = slice_of(text, (size_t)len);
		rig_load_files(&rig, files, COUNT_OF(files));
		assert_non_null(rig.config);
		assert_int_equal(strcmp(rig.config->digest, before) == 0, i == 3 /* unused */);
		rig_fini(&rig);
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void files_of_the_disk_are_found_from_the_file_that_names_them(void **state)
{
	static const char *const made[] = { "sluice.yaml", "key",        "ca.crt",
					    "t.d/b.yaml",  "t.d/a.yaml", "t.d/.hidden.yaml" };
	char directory[] = "/tmp/sluice-settings-[x]XXXXXX", path[128], *problems = NULL;
	size_t len = 0;
	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/t.d", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	const char *const texts[] = {
		"providers: {main: {dialect: openai, endpoints: [{url: \"https://llm.example\"}],"
		" keys: [\"file:key\"], ca: ca.crt}}\n" RIG_MODELS
		"tenants: [{files: t.d/*.yaml}]\n",
		"secret\r\n",
		test_ca,
		"- {id: b}\n",
		"- {id: a}\n",
		"nothing\n"
	};
	for (size_t i = 0; i < COUNT_OF(made); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, made[i]);
		write_file(path, texts[i]);
	}
	(void)snprintf(path, sizeof(path), "%s/sluice.yaml", directory);
	struct settings_source source = { .path = path };
	FILE *out = open_memstream(&problems, &len);
	struct config *config = settings_load(&source, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(problems, "");
	free(problems);
	assert_slice(config->providers[0].keys[0], "secret");
	assert_slice(config->providers[0].endpoints[0].ca_pem, test_ca);
	assert_int_equal(config->tenants.count, 2);
	assert_slice(config->tenants.tenants[0].id, "a");
	assert_int_equal(config->file_count, 5);
	settings_free(&config);
	for (size_t i = 0; i < COUNT_OF(made); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, made[i]);
		assert_int_equal(unlink(path), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/t.d", directory);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

/* The first tenant may come later; but a pattern that never matches is worth a word. */
static void a_pattern_that_matches_no_file_gives_no_tenants_and_a_warning(void **state)
{
	static const char text[] = RIG_PROVIDERS RIG_MODELS "tenants:\n"
							    "  - {id: acme}\n"
							    "  - {files: \"tenants.d/*.yaml\"}\n";
	const struct config_file file = { SLICE("conf/sluice.yaml"), slice_str(text) };
	struct settings_source source = { .path = file.path.at, .files = &file, .file_count = 1 };
	char *said = NULL;
	size_t len = 0;
	(void)state;
	struct config *config = settings_load(&source, stderr);
	assert_non_null(config);
	assert_int_equal(config->tenants.count, 1);
	settings_free(&config);
	source.warnings = open_memstream(&said, &len);
	config = settings_load(&source, stderr);
	assert_non_null(config);
	assert_int_equal(fclose(source.warnings), 0);
	assert_string_equal(said, "conf/sluice.yaml:11: tenants[1].files: matches no file: no "
				  "tenants come from it\n");
	free(said);
	settings_free(&config);
}

static void a_problem_in_a_tenant_file_names_that_file(void **state)
{
	static const char text[] = RIG_PROVIDERS RIG_MODELS
		"plans: {basic: {}}\ntenants:\n  - {id: acme, keys: [{sha256: " RIG_DIGEST_A "}]}\n"
		"  - {files: t.yaml}\n";
	static const char tenants[] =
		"- {id: beta, plan: basic, limits: {concurrent: 0}}\n"
		"- {files: more.yaml}\n"
		"- [x]\n"
		"- {id: acme, plan: [basic]}\n"
		"- {id: gamma, keys: [{sha256: " RIG_DIGEST_A "}, {sha256: 12}]}\n"
		"- {id: delta, id: delta}\n";
	const struct config_file files[] = { { SLICE("conf/sluice.yaml"), slice_str(text) },
					     { SLICE("conf/t.yaml"), slice_str(tenants) } };
	struct rig rig;
	(void)state;
	rig_load_files(&rig, files, 2);
	assert_null(rig.config);
	assert_string_equal(
		rig.problems,
		"conf/t.yaml:1: [0].limits.concurrent: is too small; write a whole number from 1 "
		"to "
		"1000000\n"
		"conf/t.yaml:2: [1].files: stands in a tenant file; write it into the main file\n"
		"conf/t.yaml:3: [2]: is not a tenant; write {id: ..., plan: ..., keys: [...]}\n"
		"conf/t.yaml:4: [3].plan: is a list; write a name: visible ASCII without quotes "
		"and "
		"backslashes\n"
		"conf/t.yaml:5: [4].keys[1].sha256: is a number or a YAML word, not a text: put it "
		"in "
		"quotes; write 64 lower-case hex digits, as `sluice key` prints them\n"
		"conf/t.yaml:6: [5].id: is given twice, first in line 6; remove one\n"
		"conf/t.yaml:4: [3].id: is also the id of the tenant in conf/sluice.yaml:11; write "
		"another\n"
		"conf/t.yaml:5: [4].keys[0].sha256: is also a key in conf/sluice.yaml:11; make "
		"another "
		"with `sluice key`\n");
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_private_ca_is_part_of_an_endpoint_s_identity),
		cmocka_unit_test(a_configuration_can_be_loaded_again_from_its_own_files),
		cmocka_unit_test(the_digest_depends_on_every_file),
		cmocka_unit_test(files_of_the_disk_are_found_from_the_file_that_names_them),
		cmocka_unit_test(a_pattern_that_matches_no_file_gives_no_tenants_and_a_warning),
		cmocka_unit_test(a_problem_in_a_tenant_file_names_that_file),
	};
	return cmocka_run_group_tests_name("settings_file", tests, NULL, NULL);
}
