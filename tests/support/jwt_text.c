#include "tests/support/jwt_text.h"

#include "codec/base/must.h"

#include <stdio.h>
#include <stdlib.h>

char *jwt_text_base64url(struct slice bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char *text = malloc(bytes.len / 3 * 4 + 5);
	size_t len = 0;
	uint32_t bits = 0, count = 0;

	must(text != NULL);
	for (size_t i = 0; i < bytes.len; i++) {
		bits = bits << 8 | (uint8_t)bytes.at[i];
		for (count += 8; count >= 6; count -= 6)
			text[len++] = digits[bits >> (count - 6) & 63];
	}
	if (count != 0)
		text[len++] = digits[bits << (6 - count) & 63];
	text[len] = '\0';
	return text;
}

char *jwt_text_input(const char *header, const char *claims)
{
	char *first = jwt_text_base64url(slice_str(header));
	char *second = jwt_text_base64url(slice_str(claims)), *text;

	must(asprintf(&text, "%s.%s", first, second) > 0);
	free(first);
	free(second);
	return text;
}

char *jwt_text_join(const char *input, struct slice signature)
{
	char *last = jwt_text_base64url(signature), *text;

	must(asprintf(&text, "%s.%s", input, last) > 0);
	free(last);
	return text;
}
