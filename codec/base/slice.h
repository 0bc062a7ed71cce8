/* slice.h - borrowed bytes.
 *
 * A slice never owns and is never freed; whoever made the bytes says how long they live. A slice
 * with `at` NULL is absent, which is not the same as empty. Slices of JSON strings hold the text
 * between the quotes, still escaped (see json_read.h). */
#ifndef CODEC_BASE_SLICE_H
#define CODEC_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
	const char *at;
	size_t len;
};

/* A slice of a string literal. SLICE_INIT is the same as a constant initialiser. */
#define SLICE_INIT(literal)                     \
	{                                       \
		"" literal, sizeof(literal) - 1 \
	}
#define SLICE(literal) ((struct slice)SLICE_INIT(literal))

static inline struct slice slice_of(const char *at, size_t len)
{
	return (struct slice){ at, len };
}

/* `text` NUL-terminated; NULL gives the absent slice. */
static inline struct slice slice_str(const char *text)
{
	return (struct slice){ text, text == NULL ? 0 : strlen(text) };
}

static inline bool slice_absent(struct slice s)
{
	return s.at == NULL;
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Less than, equal to or greater than 0, as memcmp; a prefix comes before what it begins. */
static inline int slice_order(struct slice a, struct slice b)
{
	const size_t len = a.len < b.len ? a.len : b.len;
	const int order = len == 0 ? 0 : memcmp(a.at, b.at, len);

	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

enum { SLICE_SHORT = 32 };

/* Copies `s`, of SLICE_SHORT bytes at most, to `to`: in two pieces that may overlap. */
static inline void slice_put_short(char *to, struct slice s)
{
	struct piece {
		char bytes[SLICE_SHORT / 2];
	} first, last;
	uint64_t front, rear;

	if (s.len >= sizeof(first)) {
		(void)memcpy(&first, s.at, sizeof(first));
		(void)memcpy(&last, s.at + s.len - sizeof(last), sizeof(last));
		(void)memcpy(to, &first, sizeof(first));
		(void)memcpy(to + s.len - sizeof(last), &last, sizeof(last));
	} else if (s.len >= sizeof(front)) {
		(void)memcpy(&front, s.at, sizeof(front));
		(void)memcpy(&rear, s.at + s.len - sizeof(rear), sizeof(rear));
		(void)memcpy(to, &front, sizeof(front));
		(void)memcpy(to + s.len - sizeof(rear), &rear, sizeof(rear));
	} else {
		for (size_t i = 0; i < s.len; i++)
			to[i] = s.at[i];
	}
}

/* ASCII case is ignored. */
bool slice_eq_nocase(struct slice a, struct slice b);

/* Whether `part` occurs in `whole`, ASCII case ignored; an empty part occurs everywhere. */
bool slice_has_nocase(struct slice whole, struct slice part);

bool slice_starts(struct slice s, struct slice prefix);

/* Private: slice_trim where there may be something to trim. */
struct slice slice_trim_blank(struct slice s);

/* Without leading and trailing spaces and tabs. */
static inline struct slice slice_trim(struct slice s)
{
	const bool perhaps = s.len != 0 && (s.at[0] <= ' ' || s.at[s.len - 1] <= ' ');

	return perhaps ? slice_trim_blank(s) : s;
}

/* Cuts the text before the next `separator` off the front of *rest and returns it; the separator is
 * dropped. Without one it returns all and leaves *rest absent. An absent *rest gives absent. */
struct slice slice_cut(struct slice *rest, char separator);

/* Decimal digits only, no sign, no spaces. False when empty, not a number or over UINT64_MAX. */
bool slice_to_u64(struct slice s, uint64_t *out);

/* Glob over plain bytes: '*' any run, '?' one byte, everything else itself. Linear in |s| x
 * |stars|. */
bool slice_glob(struct slice pattern, struct slice s);

enum { SLICE_EDITS_MAX = 64 };

/* How many bytes must be put in, taken out or changed to make `b` of `a`, for messages that guess what
 * was meant. SIZE_MAX when one of them is longer than SLICE_EDITS_MAX. */
size_t slice_edits(struct slice a, struct slice b);

#endif
