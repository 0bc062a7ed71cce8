#include "gateway/header_text.h"

/* Whether one of eight bytes is below a blank, or DEL. */
static bool has_control(const char *at)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	const uint64_t low = (eight - ones * 0x20) & ~eight, del = eight ^ ones * 0x7f;
	return ((low | ((del - ones) & ~del)) & high) != 0;
}

bool header_text_is_value(struct slice s)
{
	size_t i = 0;

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
