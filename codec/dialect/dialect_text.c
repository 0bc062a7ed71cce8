#include "codec/dialect/dialect_text.h"

#include "codec/base/must.h"
#include "codec/json/json_scan.h"
#include "codec/json/json_write.h"

/* One character: the bytes it takes in the raw string and in its meaning, and its code point. */
struct character {
	size_t raw, plain;
	uint32_t code;
};

static uint32_t utf8_code(const char *at, size_t len)
{
	static const unsigned char lead[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = (unsigned char)at[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)at[i] & 0x3f);
	return code;
}

static size_t utf8_len(char lead)
{
	unsigned char c = (unsigned char)lead;

	return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The character at `at`, in front of the end of a valid raw string. */
static struct character next_character(const char *at)
{
	if (*at == '\\') {
		char out[4];
		const char *behind = at;
		size_t plain = scan_unescape(&behind, out);
		return (struct character){ (size_t)(behind - at), plain, utf8_code(out, plain) };
	}
	size_t len = utf8_len(*at);
	return (struct character){ len, len, utf8_code(at, len) };
}

static bool is_space(uint32_t code)
{
	if (code < 0x80)
		return code == ' ' || (code >= 0x09 && code <= 0x0d) ||
		       (code >= 0x1c && code <= 0x1f);
	return code == 0x85 || code == 0xa0 || code == 0x1680 ||
	       (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
	       code == 0x202f || code == 0x205f || code == 0x3000;
}

bool text_blank(struct slice raw)
{
	/* nearly every text begins with a letter */
	if (raw.len != 0 && !text_may_be_blank(raw.at[0]))
		return false;
	for (size_t i = 0; i < raw.len;) {
		struct character c = next_character(raw.at + i);
		if (!is_space(c.code))
			return false;
		i += c.raw;
	}
	return true;
}

struct slice text_trim_end(struct slice raw)
{
	size_t kept = 0;

	for (size_t i = 0; i < raw.len;) {
		struct character c = next_character(raw.at + i);
		i += c.raw;
		if (!is_space(c.code))
			kept = i;
	}
	return slice_of(raw.at, kept);
}

size_t text_raw_len(struct slice raw, size_t plain_len)
{
	size_t at = 0;

	while (plain_len > 0) {
		must(at < raw.len);
		struct character c = next_character(raw.at + at);
		must(c.plain <= plain_len);
		plain_len -= c.plain;
		at += c.raw;
	}
	return at;
}

struct slice text_trim_json(struct slice plain)
{
	while (plain.len > 0 && scan_is_space(plain.at[0])) {
		plain.at++;
		plain.len--;
	}
	while (plain.len > 0 && scan_is_space(plain.at[plain.len - 1]))
		plain.len--;
	return plain;
}

bool text_json_same(struct slice a, struct slice b)
{
	const char *p = a.at, *p_end = a.at + a.len, *q = b.at, *q_end = b.at + b.len;
	bool inside = false; /* a string, where white space counts */

	for (;;) {
		if (!inside) {
			p = scan_space(p, p_end);
			q = scan_space(q, q_end);
		}
		if (p == p_end || q == q_end)
			return p == p_end && q == q_end;
		if (*p != *q)
			return false;
		if (inside && *p == '\\') { /* what follows is no end of the string */
			if (p[1] != q[1])
				return false;
			p++;
			q++;
		} else if (*p == '"') {
			inside = !inside;
		}
		p++;
		q++;
	}
}

struct slice text_join(struct arena *into, struct slice a, struct slice b)
{
	char *bytes = arena_take(into, a.len + b.len + 1);

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	if (a.len != 0)
		(void)memcpy(bytes, a.at, a.len);
	if (b.len != 0)
		(void)memcpy(bytes + a.len, b.at, b.len);
	return slice_of(bytes, a.len + b.len);
}

struct slice text_raw_of(struct slice plain, struct arena *into)
{
	size_t i = 0;
	struct gather g;

	while (i < plain.len && (unsigned char)plain.at[i] >= 0x20 && plain.at[i] != '"' &&
	       plain.at[i] != '\\')
		i++;
	if (i == plain.len)
		return plain;
	gather_init(&g, into);
	gather_escaped(&g, plain);
	return gather_flat(&g, into);
}
