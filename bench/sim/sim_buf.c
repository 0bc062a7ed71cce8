#include "bench/sim/sim_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/base/must.h"

void sim_buf_room(struct sim_buf *buf, size_t bytes)
{
	size_t cap = buf->cap == 0 ? 4096 : buf->cap;

	if (buf->cap - buf->len >= bytes)
		return;
	while (cap - buf->len < bytes)
		cap *= 2;
	buf->at = realloc(buf->at, cap);
	if (buf->at == NULL) {
		(void)fprintf(stderr, "provider_sim: no memory for %zu bytes\n", cap);
		exit(1);
	}
	buf->cap = cap;
}

void sim_buf_add(struct sim_buf *buf, struct slice s)
{
	if (s.len == 0)
		return;
	sim_buf_room(buf, s.len);
	memcpy(buf->at + buf->len, s.at, s.len);
	buf->len += s.len;
}

static void add_number(struct sim_buf *buf, uint64_t n, unsigned base)
{
	char digits[20]; /* of 2^64 - 1 */
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	sim_buf_add(buf, slice_of(digits + at, sizeof(digits) - at));
}

void sim_buf_decimal(struct sim_buf *buf, uint64_t n)
{
	add_number(buf, n, 10);
}

void sim_buf_hex(struct sim_buf *buf, uint64_t n)
{
	add_number(buf, n, 16);
}

void sim_buf_format(struct sim_buf *buf, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	while (*format != '\0') {
		size_t plain = strcspn(format, "$#");

		sim_buf_add(buf, slice_of(format, plain));
		format += plain;
		if (*format == '$')
			sim_buf_add(buf, va_arg(arguments, struct slice));
		else if (*format == '#')
			sim_buf_decimal(buf, va_arg(arguments, uint64_t));
		else
			break;
		format++;
	}
	va_end(arguments);
}

void sim_buf_date(struct sim_buf *buf, const char *form, nsec_t ahead)
{
	struct timespec wall;
	struct tm parts;
	char text[64];

	must(clock_gettime(CLOCK_REALTIME, &wall) == 0);
	const time_t then = wall.tv_sec + (time_t)((ahead + (nsec_t)wall.tv_nsec + SEC - 1) / SEC);
	must(gmtime_r(&then, &parts) != NULL);
	sim_buf_add(buf, slice_of(text, strftime(text, sizeof(text), form, &parts)));
}

void sim_buf_escaped(struct sim_buf *buf, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];
		char unit[6] = {
			'\\', 'u', '0', '0', "01"[(c >> 4) & 1], "0123456789abcdef"[c & 15]
		};

		if (c == '"' || c == '\\')
			sim_buf_add(buf, slice_of((char[]){ '\\', (char)c }, 2));
		else if (c < ' ')
			sim_buf_add(buf, slice_of(unit, sizeof(unit)));
		else
			sim_buf_add(buf, slice_of(s.at + i, 1));
	}
}

void sim_buf_drop(struct sim_buf *buf, size_t bytes)
{
	must(bytes <= buf->len);
	buf->len -= bytes;
	if (buf->len > 0 && bytes > 0)
		memmove(buf->at, buf->at + bytes, buf->len);
}

void sim_buf_free(struct sim_buf *buf)
{
	free(buf->at);
	*buf = (struct sim_buf){ 0 };
}
