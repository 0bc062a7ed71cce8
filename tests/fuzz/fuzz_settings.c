/* Every text is a configuration or is refused with problems, each in one line that names a file; what
 * loads, loads again from the files that it keeps. A line of %%% begins the file of tenants. */
#include "codec/base/must.h"
#include "gateway/settings/settings.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config *load(const struct config_file *files, uint32_t count, struct slice *said)
{
	const struct settings_source source = { .path = "c/sluice.yaml",
						.files = files,
						.file_count = count };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	must(out != NULL);
	struct config *config = settings_load(&source, out);
	must(fclose(out) == 0);
	*said = slice_of(text, len);
	return config;
}

/* Of a secret that the configuration does not spell itself, as somebody's name perhaps. */
static void check_problems(struct slice said, bool spelt)
{
	uint32_t lines = 0;

	must(said.len > 0 && said.at[said.len - 1] == '\n');
	said.len--;
	while (!slice_absent(said)) {
		struct slice line = slice_cut(&said, '\n');
		must(slice_starts(line, SLICE("c/")));
		must(spelt || !slice_has_nocase(line, SLICE("a-secret")));
		lines++;
	}
	must(lines <= 51); /* 50, and one that says so */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char mark[] = "\n%%%\n";
	struct config_file files[] = {
		{ SLICE("c/sluice.yaml"), { (const char *)data, size } },
		{ SLICE("c/tenants.yaml"), SLICE("[]") },
		{ SLICE("c/key"), SLICE("a-secret\n") },
		{ SLICE("c/ca"), SLICE("-----BEGIN CERTIFICATE-----\n") },
	};
	const char *cut = size == 0 ? NULL : memmem(data, size, mark, sizeof(mark) - 1);
	struct slice said;

	if (cut != NULL) {
		const char *rest = cut + sizeof(mark) - 1;
		files[0].text.len = (size_t)(cut + 1 - files[0].text.at);
		files[1].text = slice_of(rest, size - (size_t)(rest - files[0].text.at));
	}
	must(setenv("KEY", "a-secret", 1) == 0);
	struct config *config = load(files, 4, &said);
	if (config == NULL) {
		check_problems(said, slice_has_nocase(slice_of((const char *)data, size),
						      SLICE("a-secret")));
	} else {
		must(said.len == 0);
		free((void *)(uintptr_t)said.at);
		struct config *again = load(config->files, config->file_count, &said);
		uint32_t line;
		must(again != NULL && said.len == 0);
		must(memcmp(again->digest, config->digest, sizeof(config->digest)) == 0);
		must(settings_needs_restart(config, again, &line) == NULL);
		settings_free(&again);
	}
	free((void *)(uintptr_t)said.at);
	settings_free(&config);
	return 0;
}
