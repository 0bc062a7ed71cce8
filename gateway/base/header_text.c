#include "gateway/base/header_text.h"

/* Of 16 bytes at once; the compiler's own vectors. */
enum { PIECE = 16, HALF = PIECE / 2, QUARTER = PIECE / 4 };
typedef unsigned char piece __attribute__((vector_size(PIECE)));
typedef uint64_t halves __attribute__((vector_size(PIECE)));

static piece piece_at(const char *at)
{
	piece bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

/* All bytes of a text of 4 to 15, some of them twice. */
static piece piece_of(struct slice s)
{
	uint32_t first, last;
	halves both;

	if (s.len >= HALF) {
		memcpy(&both, s.at, HALF);
		memcpy((char *)&both + HALF, s.at + s.len - HALF, HALF);
	} else {
		memcpy(&first, s.at, QUARTER);
		memcpy(&last, s.at + s.len - QUARTER, QUARTER);
		both[0] = both[1] = (uint64_t)last << 32 | first;
	}
	return (piece)both;
}

/* All bits of the bytes that are in a class. */
typedef piece class_fn(piece bytes);

static inline __attribute__((always_inline)) bool all_are(class_fn *class, piece bytes)
{
	const halves in = (halves) class(bytes);

	return (in[0] & in[1]) == UINT64_MAX;
}

/* Of a text of 4 bytes or more. */
static inline __attribute__((always_inline)) bool whole_is(class_fn *class, struct slice s)
{
	if (s.len < PIECE)
		return all_are(class, piece_of(s));
	for (size_t i = 0; i + PIECE < s.len; i += PIECE)
		if (!all_are(class, piece_at(s.at + i)))
			return false;
	return all_are(class, piece_at(s.at + s.len - PIECE));
}

static inline piece in_value(piece bytes)
{
	return (piece)(((bytes >= ' ') | (bytes == '\t')) & (bytes != 0x7f));
}

static inline bool is_in_value(char c)
{
	return ((unsigned char)c >= ' ' || c == '\t') && c != 0x7f;
}

bool header_text_is_value(struct slice s)
{
	if (s.len >= QUARTER)
		return whole_is(in_value, s);
	for (size_t i = 0; i < s.len; i++)
		if (!is_in_value(s.at[i]))
			return false;
	return true;
}

/* How many bytes in front of the first that is not all bits. */
static inline size_t first_out(uint64_t in)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (size_t)__builtin_clzll(~in) / 8;
#else
	return (size_t)__builtin_ctzll(~in) / 8;
#endif
}

const char *header_text_end(const char *at, const char *end)
{
	for (; end - at >= PIECE; at += PIECE) {
		const halves in = (halves)in_value(piece_at(at));
		if (in[0] != UINT64_MAX)
			return at + first_out(in[0]);
		if (in[1] != UINT64_MAX)
			return at + HALF + first_out(in[1]);
	}
	while (at < end && is_in_value(*at))
		at++;
	return at;
}

static const bool token_chars[256] = {
	['!'] = true,         ['#'] = true, ['$'] = true, ['%'] = true, ['&'] = true,
	['\''] = true,        ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
	['0' ... '9'] = true, ['^'] = true, ['_'] = true, ['`'] = true, ['A' ... 'Z'] = true,
	['a' ... 'z'] = true, ['|'] = true, ['~'] = true,
};

/* Letters, digits and hyphens, of which nearly all names consist. */
static inline piece in_common_name(piece bytes)
{
	const piece letter = (bytes | 0x20) - 'a', digit = bytes - '0';

	return (piece)((letter < 26) | (digit < 10) | (bytes == '-'));
}

bool header_text_is_name(struct slice s)
{
	if (s.len >= QUARTER && whole_is(in_common_name, s))
		return true;
	for (size_t i = 0; i < s.len; i++)
		if (!token_chars[(unsigned char)s.at[i]])
			return false;
	return s.len != 0;
}
