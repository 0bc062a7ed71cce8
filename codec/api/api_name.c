/* api_name.c - names of members, compared as the strictest and the loosest reader do. */
#include "codec/api/api_members.h"
#include "codec/json/json_scan.h"

enum { FOLDED_MAX = 3 }; /* bytes of a letter that folds into ASCII */

/* Eight bytes without a backslash, and all of them ASCII. */
static bool is_plain8(uint64_t word)
{
	const uint64_t slash = word ^ SCAN_ONES * '\\';

	return ((((slash - SCAN_ONES) & ~slash) | word) & SCAN_ONES * 0x80) == 0;
}

/* As scan_load8, of fewer bytes. */
static uint64_t load_few(const char *at, size_t len)
{
	uint32_t front, rear;
	uint64_t word = 0;

	if (len < sizeof(front)) {
		for (size_t i = 0; i < len; i++)
			word = word << 8 | (unsigned char)at[i];
		return word;
	}
	(void)memcpy(&front, at, sizeof(front));
	(void)memcpy(&rear, at + len - sizeof(rear), sizeof(rear));
	return (uint64_t)front << 32 | rear;
}

bool api_name_is_plain(struct slice raw)
{
	const char *at = raw.at, *end = raw.at + raw.len;

	if (raw.len < 8)
		return is_plain8(load_few(at, raw.len));
	for (; end - at > 8; at += 8)
		if (!is_plain8(scan_load8(at)))
			return false;
	return is_plain8(scan_load8(end - 8));
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* The letter at *at in lower case, and *at behind it; 0: one that no ASCII name has. */
static char fold(const char **at, const char *end)
{
	const char *from = *at;

	if ((unsigned char)*from < 0x80) {
		*at = from + 1;
		return lower(*from);
	}
	if (end - from >= 2 && memcmp(from, "\xc5\xbf", 2) == 0) { /* U+017F */
		*at = from + 2;
		return 's';
	}
	if (end - from >= 3 && memcmp(from, "\xe2\x84\xaa", 3) == 0) { /* U+212A */
		*at = from + 3;
		return 'k';
	}
	*at = end;
	return '\0';
}

static bool folds_to(struct slice name, struct slice plain)
{
	const char *at = name.at, *end = name.at + name.len;

	for (size_t i = 0; i < plain.len; i++)
		if (at == end || fold(&at, end) != lower(plain.at[i]))
			return false;
	return at == end;
}

enum api_name_match api_name_match(struct slice raw, struct slice plain)
{
	char buffer[API_NAME_MAX * FOLDED_MAX];

	if (raw.len < plain.len || raw.len > 6 * plain.len) /* \u0041 */
		return API_NAME_OTHER;
	if (raw.len == plain.len && memcmp(raw.at, plain.at, plain.len) == 0)
		return API_NAME_SAME;
	if (api_name_is_plain(raw))
		return raw.len == plain.len && slice_eq_nocase(raw, plain) ? API_NAME_CASE
									   : API_NAME_OTHER;
	const struct slice name = json_str_fit(raw, buffer, sizeof(buffer));
	if (slice_absent(name))
		return API_NAME_OTHER;
	if (slice_eq(name, plain))
		return API_NAME_SAME;
	return folds_to(name, plain) ? API_NAME_CASE : API_NAME_OTHER;
}
