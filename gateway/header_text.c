#include "gateway/header_text.h"

/* Whether one of eight bytes is below a blank, or DEL. */
static bool is_controlled(uint64_t eight)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
	const uint64_t low = (eight - ones * 0x20) & ~eight, del = eight ^ ones * 0x7f;
	return ((low | ((del - ones) & ~del)) & high) != 0;
}

static bool has_control(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return is_controlled(eight);
}

/* The same of 4 to 7 bytes: the first four and the last ones. */
static bool few_have_control(const char *at, size_t len)
{
	uint32_t first, last;

	memcpy(&first, at, sizeof(first));
	memcpy(&last, at + len - sizeof(last), sizeof(last));
	return is_controlled((uint64_t)last << 32 | first);
}

bool header_text_is_value(struct slice s)
{
	size_t i = 0;

	if (s.len >= 4 && s.len < 8 && !few_have_control(s.at, s.len))
		return true;
	while (i + 8 < s.len && !has_control(s.at + i))
		i += 8;
	if (i + 8 >= s.len && s.len >= 8 && !has_control(s.at + s.len - 8))
		return true;     /* some were looked at twice */
	for (; i < s.len; i++) { /* the rest, or from a tab on, which does no harm */
		const unsigned char c = (unsigned char)s.at[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static const bool token_chars[256] = {
	['!'] = true,         ['#'] = true, ['$'] = true, ['%'] = true, ['&'] = true,
	['\''] = true,        ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
	['0' ... '9'] = true, ['^'] = true, ['_'] = true, ['`'] = true, ['A' ... 'Z'] = true,
	['a' ... 'z'] = true, ['|'] = true, ['~'] = true,
};

bool header_text_is_name(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!token_chars[(unsigned char)s.at[i]])
			return false;
	return s.len != 0;
}
