/* settings_node.c - looking at a tree and talking about it: paths, plain values, problems. */
#include "gateway/settings/settings_tree.h"

#include <stdarg.h>
#include <string.h>

/* ---- problems ---- */

static void report(struct problems *problems, const char *file, uint32_t line, const char *where,
		   const char *format, va_list args)
{
	problems->count++;
	if (problems->count > PROBLEMS_MAX)
		return;
	(void)fprintf(problems->out, "%s:%u: %s: ", file, line, where);
	(void)vfprintf(problems->out, format, args);
	(void)fputc('\n', problems->out);
	if (problems->count == PROBLEMS_MAX)
		(void)fprintf(problems->out,
			      "%s:%u: (file): there are %d problems, what follows is not shown; "
			      "correct these first\n",
			      file, line, PROBLEMS_MAX);
}

void problem_in(struct problems *problems, const char *file, uint32_t line, const char *where,
		const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(problems, file, line, where, format, args);
	va_end(args);
}

void problem_at(struct problems *problems, const struct node *node, const char *format, ...)
{
	char path[PROBLEM_PATH_MAX];
	va_list args;

	node_path(node, path, sizeof(path));
	va_start(args, format);
	report(problems, node->file, node->line, path, format, args);
	va_end(args);
}

void problem_below(struct problems *problems, const struct node *node, const char *key,
		   const char *format, ...)
{
	char path[PROBLEM_PATH_MAX];
	va_list args;
	struct slice rest = slice_str(key);
	uint32_t line = node->line;

	node_path(node, path, sizeof(path));
	size_t len = node->parent == NULL ? 0 : strlen(path);
	(void)snprintf(path + len, sizeof(path) - len, "%s%s", len == 0 ? "" : ".", key);
	for (const struct node *at = node; at != NULL && !slice_absent(rest);) {
		char part[PROBLEM_PATH_MAX];
		struct slice cut = slice_cut(&rest, '.');
		(void)snprintf(part, sizeof(part), "%.*s", (int)cut.len, cut.at);
		at = node_find(at, part);
		if (at != NULL)
			line = at->line;
	}
	va_start(args, format);
	report(problems, node->file, line, path, format, args);
	va_end(args);
}

/* ---- paths ---- */

static size_t put_clean(char *out, size_t room, struct slice text)
{
	size_t n = 0;

	for (; n < text.len && n < room && n < 64; n++)
		out[n] = (unsigned char)text.at[n] < 0x20 || text.at[n] == 0x7f ? '?' : text.at[n];
	return n;
}

void node_path(const struct node *node, char *out, size_t room)
{
	const struct node *chain[TREE_DEPTH_MAX + 2];
	size_t depth = 0, n = 0;

	for (const struct node *at = node;
	     at->parent != NULL && at->parent->kind != NODE_SCALAR && depth < TREE_DEPTH_MAX + 2;
	     at = at->parent)
		chain[depth++] = at;
	while (depth > 0 && n + 80 < room) {
		const struct node *at = chain[--depth];
		if (slice_absent(at->key)) {
			n += (size_t)snprintf(out + n, room - n, "[%u]", at->index);
			continue;
		}
		if (n > 0)
			out[n++] = '.';
		n += put_clean(out + n, room - n - 1, at->key);
	}
	out[n] = '\0';
	if (n == 0)
		(void)snprintf(out, room, "(file)");
}

const struct node *node_find(const struct node *node, const char *key)
{
	struct slice rest = slice_str(key);

	while (node != NULL && !slice_absent(rest)) {
		struct slice part = slice_cut(&rest, '.');
		const struct node *child = node->kind == NODE_MAP ? node->first : NULL;
		while (child != NULL && !slice_eq(child->key, part))
			child = child->next;
		node = child;
	}
	return node;
}

/* ---- plain scalars: YAML 1.2 core schema ---- */

static bool one_of(struct slice text, const char *const words[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_eq(text, slice_str(words[i])))
			return true;
	return false;
}

bool node_is_null(const struct node *node)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };

	return node->kind == NODE_SCALAR && node->plain &&
	       one_of(node->text, words, COUNT_OF(words));
}

static size_t digits(struct slice *s)
{
	size_t n = 0;

	for (; n < s->len && s->at[n] >= '0' && s->at[n] <= '9'; n++)
		;
	*s = slice_of(s->at + n, s->len - n);
	return n;
}

static bool skip(struct slice *s, const char *set)
{
	if (s->len == 0 || strchr(set, s->at[0]) == NULL || s->at[0] == '\0')
		return false;
	*s = slice_of(s->at + 1, s->len - 1);
	return true;
}

static bool is_number(struct slice s)
{
	if (slice_starts(s, SLICE("0x")) || slice_starts(s, SLICE("0o")))
		return s.len > 2 && strspn(s.at + 2, "0123456789abcdefABCDEF") == s.len - 2;
	(void)skip(&s, "+-");
	size_t before = digits(&s);
	size_t after = skip(&s, ".") ? digits(&s) : 0;
	if (before + after == 0)
		return false;
	if (skip(&s, "eE")) {
		(void)skip(&s, "+-");
		if (digits(&s) == 0)
			return false;
	}
	return s.len == 0;
}

bool node_is_untext(const struct node *node)
{
	static const char *const words[] = { "true",  "True", "TRUE", "false", "False",
					     "FALSE", ".inf", ".Inf", ".INF",  "+.inf",
					     "-.inf", ".nan", ".NaN", ".NAN" };

	if (node->kind != NODE_SCALAR || !node->plain)
		return false;
	return node_is_null(node) || one_of(node->text, words, COUNT_OF(words)) ||
	       is_number(node->text);
}
