/* replay.c - runs a fuzz target over kept inputs, without libFuzzer, as one of ctest's tests.
 *
 * replay PATH...    each a file, or a directory whose files are taken in the order of their names.
 * No input at all is a failure: a corpus that moved away must not look like one that passed. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Noreturn void give_up(const char *path)
{
	perror(path);
	exit(1);
}

/* The input has a block of exactly its size, so that ASan sees a byte read too far. */
static void run_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size == 0 ? 1 : size);

	if (file == NULL || data == NULL || fread(data, 1, size, file) != size)
		give_up(path);
	(void)fclose(file);
	if (LLVMFuzzerTestOneInput(data, size) != 0) {
		(void)fprintf(stderr, "%s: the target returned an error\n", path);
		exit(1);
	}
	free(data);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Returns the number of inputs run; directories inside a directory are left alone. */
static unsigned run_path(const char *path, bool nested);

static unsigned run_directory(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, visible, alphasort);
	unsigned done = 0;

	if (count < 0)
		give_up(path);
	for (int i = 0; i < count; i++) {
		char *inside;

		if (asprintf(&inside, "%s/%s", path, entries[i]->d_name) < 0)
			give_up(path);
		done += run_path(inside, true);
		free(inside);
		free(entries[i]);
	}
	free(entries);
	return done;
}

static unsigned run_path(const char *path, bool nested)
{
	struct stat info;

	if (stat(path, &info) != 0)
		give_up(path);
	if (S_ISDIR(info.st_mode))
		return nested ? 0 : run_directory(path);
	run_file(path, (size_t)info.st_size);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned done = 0;

	for (int i = 1; i < argc; i++)
		done += run_path(argv[i], false);
	(void)printf("%u inputs\n", done);
	return done == 0;
}
