#include "codec/base/slice.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Most names come in the case that they are looked for in. Others differ in the bit of the case, and in letters alone. */
static inline __attribute__((always_inline)) bool same_words(uint64_t a, uint64_t b)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones << 7, bits = ones << 5;
	const uint64_t differ = a ^ b;

	if (differ == 0 || (differ & ~bits) != 0)
		return differ == 0;
	/* The high bit of a byte says: at least 'a', and: above 'z'. Carries stay within the byte. */
	uint64_t seven = (a | bits) & ~high;
	uint64_t from_a = seven + ones * (0x80 - 'a'), above_z = seven + ones * (0x7f - 'z');
	return ((differ << 2) & ~(from_a & ~above_z & ~a)) == 0;
}

static uint64_t eight_at(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* The first four bytes of `len`, 4 to 8, and the last ones. */
static uint64_t fours_at(const char *at, size_t len)
{
	uint32_t first, last;

	memcpy(&first, at, sizeof(first));
	memcpy(&last, at + len - sizeof(last), sizeof(last));
	return (uint64_t)last << 32 | first;
}

static bool same_few(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

/* Some bytes are looked at twice. The last ones first: names of one length that are compared often begin alike. */
static bool same_nocase(const char *a, const char *b, size_t len)
{
	if (len < 8)
		return len < 4 ? same_few(a, b, len)
			       : same_words(fours_at(a, len), fours_at(b, len));
	if (!same_words(eight_at(a + len - 8), eight_at(b + len - 8)))
		return false;
	for (size_t i = 0; i + 8 < len; i += 8)
		if (!same_words(eight_at(a + i), eight_at(b + i)))
			return false;
	return true;
}

bool slice_eq_nocase(struct slice a, struct slice b)
{
	return a.len == b.len && same_nocase(a.at, b.at, a.len);
}

bool slice_has_nocase(struct slice whole, struct slice part)
{
	enum { CASE_BIT = 0x20 };

	if (part.len > whole.len || part.len == 0)
		return part.len == 0;
	for (size_t i = 0; i + part.len <= whole.len; i++)
		if (((whole.at[i] ^ part.at[0]) & ~CASE_BIT) == 0 && /* few are as far as that */
		    same_nocase(whole.at + i, part.at, part.len))
			return true;
	return false;
}

bool slice_starts(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len && memcmp(s.at, prefix.at, prefix.len) == 0;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice slice_trim_blank(struct slice s)
{
	while (s.len > 0 && blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

struct slice slice_cut(struct slice *rest, char separator)
{
	struct slice part = *rest;
	const char *end = part.len == 0 ? NULL : memchr(part.at, separator, part.len);

	if (end == NULL) {
		*rest = (struct slice){ NULL, 0 };
		return part;
	}
	part.len = (size_t)(end - part.at);
	*rest = slice_of(end + 1, rest->len - part.len - 1);
	return part;
}

bool slice_to_u64(struct slice s, uint64_t *out)
{
	enum { SAFE_DIGITS = 19 };
	uint64_t value = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		const unsigned digit = (unsigned char)s.at[i] - (unsigned)'0';
		if (digit > 9)
			return false;
		if (i >= SAFE_DIGITS && value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return true;
}

bool slice_glob(struct slice pattern, struct slice s)
{
	size_t p = 0, i = 0, star = SIZE_MAX, resume = 0;

	while (i < s.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star = p++;
			resume = i;
		} else if (p < pattern.len && (pattern.at[p] == '?' || pattern.at[p] == s.at[i])) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++resume;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t slice_edits(struct slice a, struct slice b)
{
	size_t row[SLICE_EDITS_MAX +
		   1]; /* from the first i bytes of `a` to each beginning of `b` */

	if (a.len > SLICE_EDITS_MAX || b.len > SLICE_EDITS_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			const size_t above = row[j];
			row[j] = least(least(above, row[j - 1]) + 1,
				       corner + (a.at[i - 1] != b.at[j - 1]));
			corner = above;
		}
	}
	return row[b.len];
}
