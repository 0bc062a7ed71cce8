#include "codec/dialect/dialect_words.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool words_same(struct slice raw, struct slice word)
{
	size_t at = 0;

	for (size_t i = 0; i < raw.len; i++) {
		const char c = raw.at[i];
		if (c == '_' || c == '-' || c == '.' || c == ' ')
			continue;
		if (at == word.len || lower(c) != word.at[at])
			return false;
		at++;
	}
	return at == word.len && word.len != 0;
}

/* ---- quotes ---- */

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

/* A quote that opens has no letter before it: that would be an apostrophe. */
static bool opens(struct slice text, size_t i)
{
	if (!is_quote(text.at[i]))
		return false;
	return i == 0 || !is_alnum(text.at[i - 1]);
}

/* Behind the quote that closes the one at `i`, which has no letter behind it. */
static size_t behind_quoted(struct slice text, size_t i)
{
	const char quote = text.at[i++];

	for (; i < text.len; i++)
		if (text.at[i] == quote && (i + 1 == text.len || !is_alnum(text.at[i + 1])))
			return i + 1;
	return text.len;
}

bool words_next_unquoted(struct slice *rest, struct slice *piece)
{
	size_t i = 0;

	if (rest->len == 0)
		return false;
	while (i < rest->len && !opens(*rest, i))
		i++;
	*piece = slice_of(rest->at, i);
	const size_t next = i < rest->len ? behind_quoted(*rest, i) : i;
	*rest = slice_of(rest->at + next, rest->len - next);
	return true;
}

bool words_say(struct slice raw, struct slice phrase)
{
	struct slice piece;

	while (words_next_unquoted(&raw, &piece))
		if (slice_has_nocase(piece, phrase))
			return true;
	return false;
}
