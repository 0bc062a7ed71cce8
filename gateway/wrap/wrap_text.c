#include "gateway/wrap/wrap_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM_FIRST = 256 };

_Noreturn void wrap_no_memory(void)
{
	(void)fputs("sluice wrap: there is no memory left\n", stderr);
	_exit(1);
}

void *wrap_alloc(size_t bytes)
{
	void *fresh = calloc(1, bytes);

	if (fresh == NULL)
		wrap_no_memory();
	return fresh;
}

void *wrap_realloc(void *old, size_t bytes)
{
	void *fresh = realloc(old, bytes);

	if (fresh == NULL)
		wrap_no_memory();
	return fresh;
}

char *wrap_text_room(struct wrap_text *text, size_t bytes)
{
	size_t room = text->room == 0 ? ROOM_FIRST : text->room;

	while (room - text->len < bytes)
		room *= 2;
	if (room != text->room)
		text->at = wrap_realloc(text->at, room);
	text->room = room;
	return text->at + text->len;
}

void wrap_text_add(struct wrap_text *text, struct slice bytes)
{
	if (bytes.len == 0)
		return;
	(void)memcpy(wrap_text_room(text, bytes.len), bytes.at, bytes.len);
	text->len += bytes.len;
}

void wrap_text_put(struct wrap_text *text, const char *literal)
{
	wrap_text_add(text, slice_str(literal));
}

void wrap_text_print(struct wrap_text *text, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	const int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len > 0) {
		(void)vsnprintf(wrap_text_room(text, (size_t)len + 1), (size_t)len + 1, format,
				again);
		text->len += (size_t)len;
	}
	va_end(again);
}

void wrap_text_add_json(struct wrap_text *text, struct slice json)
{
	char *to = wrap_text_room(text, json.len == 0 ? 1 : json.len);

	for (size_t i = 0; i < json.len; i++)
		to[i] = json.at[i] == '\n' || json.at[i] == '\r' ? ' ' : json.at[i];
	text->len += json.len;
}

void wrap_text_add_string(struct wrap_text *text, const char *plain)
{
	wrap_text_put(text, "\"");
	for (; *plain != '\0'; plain++) {
		const char c = (unsigned char)*plain < ' ' ? ' ' : *plain;
		if (c == '"' || c == '\\')
			wrap_text_put(text, "\\");
		wrap_text_add(text, slice_of(&c, 1));
	}
	wrap_text_put(text, "\"");
}

void wrap_text_set(struct wrap_text *text, struct slice bytes)
{
	text->len = 0;
	wrap_text_add(text, bytes);
}

struct slice wrap_text_slice(const struct wrap_text *text)
{
	return slice_of(text->at == NULL ? "" : text->at, text->len);
}

void wrap_text_free(struct wrap_text *text)
{
	free(text->at);
	*text = (struct wrap_text){ 0 };
}
