#include "tests/support/golden_set.h"

#include "codec/base/must.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 2 * GOLDEN_NAME_MAX };

static const struct direction {
	const char *path; /* below tests/golden */
	enum dialect_id dialect;
	bool request, streamed, own;
} directions[] = {
	{ "mcp_to_anthropic", DIALECT_ANTHROPIC, true, false, false },
	{ "mcp_to_openai", DIALECT_OPENAI, true, false, false },
	{ "anthropic_to_mcp", DIALECT_ANTHROPIC, false, false, false },
	{ "openai_to_mcp", DIALECT_OPENAI, false, false, false },
	{ "anthropic_sse", DIALECT_ANTHROPIC, false, true, false },
	{ "openai_sse", DIALECT_OPENAI, false, true, false },
	{ "responses/mcp_to_responses", DIALECT_RESPONSES, true, false, true },
	{ "responses/responses_to_mcp", DIALECT_RESPONSES, false, false, true },
	{ "responses/responses_sse", DIALECT_RESPONSES, false, true, true },
};

/* ---- files ---- */

/* The project's folder, and where the reference vectors are; NULL when they are not at hand. */
static const char *source_dir(void)
{
	const char *dir = getenv("SLUICE_SOURCE");

	return dir == NULL ? "." : dir;
}

const char *golden_shared(void)
{
	static char path[PATH_SIZE];
	const char *shared = getenv("SLUICE_SHARED");

	if (shared == NULL)
		(void)snprintf(path, sizeof(path), "%s/../shared/vectors", source_dir());
	else
		(void)snprintf(path, sizeof(path), "%s/vectors", shared);
	DIR *dir = opendir(path);
	if (dir == NULL)
		return NULL;
	(void)closedir(dir);
	return path;
}

/* The whole file, malloc'ed; absent when it cannot be read. */
struct slice golden_read(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *bytes = NULL;
	size_t len = 0, cap = 0;

	if (file == NULL)
		return (struct slice){ NULL, 0 };
	for (;;) {
		if (len == cap) {
			cap = cap == 0 ? 4096 : 2 * cap;
			bytes = realloc(bytes, cap);
			must(bytes != NULL);
		}
		size_t got = fread(bytes + len, 1, cap - len, file);
		if (got == 0)
			break;
		len += got;
	}
	(void)fclose(file);
	return slice_of(bytes, len);
}

static void free_slice(struct slice s)
{
	free((void *)(uintptr_t)s.at);
}

struct slice golden_value(const struct vector *vector, const struct json_tree *member)
{
	const char *end = vector->text.at + vector->text.len;
	const char *key_end = member->key.at + member->key.len;
	const char *colon = memchr(key_end, ':', (size_t)(end - key_end));
	struct json_reader r;
	struct slice text;

	must(colon != NULL);
	json_open(&r, slice_of(colon + 1, (size_t)(end - colon - 1)), NULL, NULL);
	must(json_skip(&r, &text));
	return text;
}

/* ---- the sets ---- */

int golden_is_json(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static void load_vector(struct golden_set *sets, const struct direction *direction,
			const char *file)
{
	struct vector *vector = &sets->vectors[sets->count++];
	char path[PATH_SIZE];

	must(sets->count <= GOLDEN_COUNT + GOLDEN_OWN_MAX);
	(void)snprintf(vector->name, sizeof(vector->name), "%s/%s", direction->path, file);
	(void)snprintf(path, sizeof(path), "%s/tests/golden/%s", source_dir(), vector->name);
	vector->text = golden_read(path);
	vector->tree = json_tree_parse(vector->text);
	vector->own = direction->own;
	vector->request = direction->request;
	vector->streamed = direction->streamed;
	vector->dialect = direction->dialect;
	sets->own_count += direction->own;
	if (vector->tree == NULL) {
		(void)fprintf(stderr, "%s is not readable\n", path);
		exit(1);
	}
}

static void load_direction(struct golden_set *sets, const struct direction *direction)
{
	struct dirent **entries;
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "%s/tests/golden/%s", source_dir(), direction->path);
	int count = scandir(path, &entries, golden_is_json, alphasort);
	if (count < 0) {
		(void)fprintf(stderr, "%s is not there; run from the project's folder\n", path);
		exit(1);
	}
	for (int i = 0; i < count; i++) {
		load_vector(sets, direction, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

/* Whether a line of pending.txt begins with the name and a space. */
bool golden_is_pending(const struct golden_set *sets, const char *name)
{
	struct slice rest = sets->pending;

	while (!slice_absent(rest)) {
		struct slice line = slice_cut(&rest, '\n');
		if (slice_eq(slice_cut(&line, ' '), slice_str(name)) && line.len > 0)
			return true;
	}
	return false;
}

void golden_load(struct golden_set *sets)
{
	char path[PATH_SIZE];

	*sets = (struct golden_set){ .vectors = calloc(GOLDEN_COUNT + GOLDEN_OWN_MAX + 1,
						       sizeof(*sets->vectors)) };
	must(sets->vectors != NULL);
	for (size_t i = 0; i < COUNT_OF(directions); i++)
		load_direction(sets, &directions[i]);
	(void)snprintf(path, sizeof(path), "%s/tests/golden/pending.txt", source_dir());
	sets->pending = golden_read(path);
	struct slice rest = sets->pending;
	while (!slice_absent(rest)) {
		struct slice line = slice_cut(&rest, '\n');
		sets->pending_count += line.len != 0 && line.at[0] != '#';
	}
}

void golden_free(struct golden_set *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		json_tree_free(sets->vectors[i].tree);
		free_slice(sets->vectors[i].text);
	}
	free(sets->vectors);
	free_slice(sets->pending);
}
