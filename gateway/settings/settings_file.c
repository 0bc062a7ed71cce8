/* settings_file.c - where the texts of a configuration come from: files, globs, the environment. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "gateway/settings/settings_seen.h"
#include "gateway/settings/settings_value.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

static void file_problem(struct loader *l, const struct node *node, struct slice path,
			 const char *what)
{
	if (node == NULL)
		problem_in(&l->problems, l->source->path, 1, "(file)",
			   "cannot be read (%s); name a configuration file", what);
	else
		problem_at(&l->problems, node,
			   "%.*s cannot be read (%s); name a file that this process may read",
			   (int)path.len, path.at, what);
}

/* FNV-1a, with its best bits in front. */
static uint64_t path_hash(struct slice path)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < path.len; i++)
		hash = (hash ^ (uint8_t)path.at[i]) * UINT64_C(1099511628211);
	return hash ^ hash << 32;
}

/* Where that path is in the tree, or where it belongs. There may be 100,000 files. */
static struct loaded_file **place_of(struct loader *l, struct slice path)
{
	struct loaded_file **at = &l->by_path;

	for (uint64_t hash = path_hash(path); *at != NULL && !slice_eq((*at)->file.path, path);
	     hash <<= 2)
		at = &(*at)->below[hash >> 62];
	return at;
}

/* Both are copied. */
static bool record(struct loader *l, struct slice path, struct slice text, struct slice *kept)
{
	struct loaded_file *entry = loader_zero(l, &l->config->arena, 1, sizeof(*entry));

	if (entry == NULL)
		return false;
	entry->file.path = loader_keep(l, path);
	entry->file.text = loader_keep(l, text);
	if (slice_absent(entry->file.path) || slice_absent(entry->file.text))
		return false;
	*place_of(l, path) = entry;
	*l->files_end = entry;
	l->files_end = &entry->next;
	l->file_count++;
	*kept = entry->file.text;
	return true;
}

struct bytes {
	char *at;
	size_t len, room;
};

/* realloc would leave a copy of a secret behind. */
static bool grow(struct bytes *bytes)
{
	size_t room = bytes->room == 0 ? 16384 : bytes->room * 2;
	char *at = malloc(room);

	if (at == NULL)
		return false;
	if (bytes->len > 0)
		(void)memcpy(at, bytes->at, bytes->len);
	if (bytes->at != NULL)
		explicit_bzero(bytes->at, bytes->len);
	free(bytes->at);
	bytes->at = at;
	bytes->room = room;
	return true;
}

/* NULL, or what went wrong. Reads one byte more than `bytes_max` to see whether there is more. */
static const char *slurp(FILE *file, size_t bytes_max, struct bytes *bytes)
{
	for (;;) {
		if (bytes->len == bytes->room && !grow(bytes))
			return "memory is exhausted";
		size_t n = fread(bytes->at + bytes->len, 1, bytes->room - bytes->len, file);
		bytes->len += n;
		if (bytes->len > bytes_max)
			return "it is too large";
		if (n == 0)
			return ferror(file) ? strerror(errno) : NULL;
	}
}

static bool from_disk(struct loader *l, const struct node *node, struct slice path,
		      size_t bytes_max, struct slice *text)
{
	struct bytes bytes = { 0 };
	const char *wrong;
	bool fine = false;
	FILE *file = fopen(path.at, "rbe");

	if (file == NULL) {
		file_problem(l, node, path, strerror(errno));
		settings_seen_file(l->source->seen, path, bytes_max, (struct slice){ NULL, 0 });
		return false;
	}
	(void)setvbuf(file, NULL, _IONBF, 0); /* stdio keeps no copy */
	wrong = slurp(file, bytes_max, &bytes);
	if (wrong != NULL)
		file_problem(l, node, path, wrong);
	else
		fine = record(l, path, slice_of(bytes.at, bytes.len), text);
	settings_seen_file(l->source->seen, path, bytes_max,
			   slice_of(wrong != NULL ? NULL : bytes.at, bytes.len));
	if (bytes.at != NULL)
		explicit_bzero(bytes.at, bytes.len);
	free(bytes.at);
	(void)fclose(file);
	return fine;
}

/* They are asked for in the order in which they were recorded, unless somebody else has made the list. */
static const struct config_file *find_kept(struct loader *l, struct slice path)
{
	const struct settings_source *source = l->source;

	for (uint32_t n = 0; n < source->file_count; n++) {
		const uint32_t i = (l->kept_next + n) % source->file_count;
		if (!slice_eq(source->files[i].path, path))
			continue;
		l->kept_next = i + 1;
		return &source->files[i];
	}
	return NULL;
}

bool loader_file(struct loader *l, const struct node *node, struct slice path, size_t bytes_max,
		 struct slice *text)
{
	const struct loaded_file *loaded = *place_of(l, path);

	if (loaded != NULL) {
		*text = loaded->file.text;
		return true;
	}
	if (l->source->files == NULL)
		return from_disk(l, node, path, bytes_max, text);
	const struct config_file *kept = find_kept(l, path);
	if (kept != NULL)
		return record(l, path, kept->text, text);
	file_problem(l, node, path, "it is not part of the kept configuration");
	return false;
}

/* ---- paths ---- */

static size_t directory_len(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash == NULL ? 0 : (size_t)(slash - file) + 1;
}

struct slice loader_path(struct loader *l, const struct node *node, struct slice path)
{
	size_t front = path.len > 0 && path.at[0] == '/' ? 0 : directory_len(node->file);
	char *joined = loader_zero(l, &l->config->arena, front + path.len + 1, 1);

	if (joined == NULL)
		return (struct slice){ NULL, 0 };
	(void)memcpy(joined, node->file, front);
	(void)memcpy(joined + front, path.at, path.len);
	return slice_of(joined, front + path.len);
}

/* The same for a pattern: what the directory's name has of special characters stands for itself. */
static char *glob_pattern(struct loader *l, const struct node *node, struct slice pattern)
{
	size_t front = pattern.len > 0 && pattern.at[0] == '/' ? 0 : directory_len(node->file);
	char *joined = loader_zero(l, &l->scratch, 2 * front + pattern.len + 1, 1);
	size_t n = 0;

	if (joined == NULL)
		return NULL;
	for (size_t i = 0; i < front; i++) {
		if (strchr("*?[]\\", node->file[i]) != NULL)
			joined[n++] = '\\';
		joined[n++] = node->file[i];
	}
	(void)memcpy(joined + n, pattern.at, pattern.len);
	return joined;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(((const struct slice *)a)->at, ((const struct slice *)b)->at);
}

static bool glob_kept(struct loader *l, const char *pattern, struct slice **paths, size_t *count)
{
	const struct settings_source *source = l->source;
	struct slice *found =
		loader_zero(l, &l->scratch, source->file_count + (size_t)1, sizeof(*found));

	if (found == NULL)
		return false;
	for (uint32_t i = 0; i < source->file_count; i++) {
		struct slice path = arena_copy(&l->scratch, source->files[i].path);
		if (slice_absent(path)) {
			loader_out_of_memory(l);
			return false;
		}
		if (fnmatch(pattern, path.at, FNM_PATHNAME | FNM_PERIOD) == 0)
			found[(*count)++] = path;
	}
	*paths = found;
	return true;
}

/* A folder that is not there has no files; one that cannot be read is a problem, or all that is in it would be gone. */
static bool glob_disk(struct loader *l, const struct node *node, const char *pattern,
		      struct slice **paths, size_t *count)
{
	glob_t found = { 0 };
	struct slice *out = NULL;
	struct unread_folder unread;
	int error = settings_glob(pattern, 0, &found, &unread);

	if (error == GLOB_NOSPACE) {
		loader_out_of_memory(l);
		return false;
	}
	if (error == GLOB_ABORTED) {
		problem_at(&l->problems, node,
			   "%s, a folder of it, cannot be read (%s); let this process read it, or "
			   "name fewer",
			   unread.path, strerror(unread.error));
		globfree(&found);
		settings_seen_unread(l->source->seen, pattern);
		return false;
	}
	if (error == 0)
		out = loader_zero(l, &l->scratch, found.gl_pathc, sizeof(*out));
	for (size_t i = 0; out != NULL && i < found.gl_pathc; i++) {
		out[i] = arena_copy(&l->scratch, slice_str(found.gl_pathv[i]));
		if (slice_absent(out[i]))
			loader_out_of_memory(l);
	}
	if (out != NULL)
		*count = found.gl_pathc;
	*paths = out;
	globfree(&found);
	return !l->failed;
}

bool loader_glob(struct loader *l, const struct node *node, struct slice pattern,
		 struct slice **paths, size_t *count)
{
	char *joined = glob_pattern(l, node, pattern);

	*count = 0;
	if (joined == NULL)
		return false;
	if (l->source->files != NULL ? !glob_kept(l, joined, paths, count)
				     : !glob_disk(l, node, joined, paths, count))
		return false;
	if (*count > 0)
		qsort(*paths, *count, sizeof(**paths), by_bytes);
	settings_seen_glob(l->source->seen, joined, *paths, *count);
	return true;
}

/* ---- ${NAME} and file:PATH ---- */

static struct slice without_newline(struct slice text)
{
	if (text.len > 0 && text.at[text.len - 1] == '\n')
		text.len--;
	if (text.len > 0 && text.at[text.len - 1] == '\r')
		text.len--;
	return text;
}

static bool expand_file(struct loader *l, const struct node *node, struct slice name,
			struct slice *out)
{
	struct slice path, text;

	if (name.len == 0 || value_text_fault(TYPE_PATH, name) != NULL) {
		problem_at(&l->problems, node, "names no file; write file:PATH");
		return false;
	}
	path = loader_path(l, node, name);
	if (slice_absent(path) || !loader_file(l, node, path, FILE_SECRET_MAX, &text))
		return false;
	*out = loader_keep(l, without_newline(text));
	if (!slice_absent(*out) && out->len == 0) {
		problem_at(&l->problems, node, "%.*s is empty; put the value into it",
			   (int)path.len, path.at);
		return false;
	}
	return !slice_absent(*out);
}

static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.at[i];
		bool letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.len > 0 && name.len < 128;
}

/* Cuts the next piece off *rest: literal text, or a variable's value. False after a problem. */
static bool next_piece(struct loader *l, const struct node *node, struct slice *rest,
		       struct slice *piece)
{
	const char *mark = memmem(rest->at, rest->len, "${", 2);
	char name[128];

	if (mark != rest->at) {
		size_t len = mark == NULL ? rest->len : (size_t)(mark - rest->at);
		*piece = slice_of(rest->at, len);
		*rest = slice_of(rest->at + len, rest->len - len);
		return true;
	}
	struct slice inner = slice_of(rest->at + 2, rest->len - 2);
	struct slice word = slice_cut(&inner, '}');
	if (slice_absent(inner) || !is_name(word)) {
		problem_at(&l->problems, node,
			   "has a \"${\" without a variable's name and \"}\"; write ${NAME}");
		return false;
	}
	(void)memcpy(name, word.at, word.len);
	name[word.len] = '\0';
	*piece = slice_str(getenv(name));
	*rest = inner;
	if (piece->len == 0) {
		problem_at(&l->problems, node,
			   "the environment variable %s is %s; set it, or write file:PATH", name,
			   slice_absent(*piece) ? "not set" : "empty");
		return false;
	}
	return true;
}

bool loader_expand(struct loader *l, const struct node *node, struct slice raw, struct slice *out)
{
	struct slice rest = raw, piece;
	size_t len = 0;

	if (slice_starts(raw, SLICE("file:")))
		return expand_file(l, node, slice_of(raw.at + 5, raw.len - 5), out);
	while (rest.len > 0) {
		if (!next_piece(l, node, &rest, &piece))
			return false;
		len += piece.len;
	}
	char *joined = loader_zero(l, &l->config->arena, len + 1, 1);
	if (joined == NULL)
		return false;
	*out = slice_of(joined, len);
	for (rest = raw; rest.len > 0; joined += piece.len) {
		bool again = next_piece(l, node, &rest, &piece);
		must(again); /* it was fine above, and nobody changes the environment */
		(void)memcpy(joined, piece.at, piece.len);
	}
	return true;
}
