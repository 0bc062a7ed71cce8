/* sampling_media.c - base64 and media types as servers really send them, made clean. */
#include "codec/mcp/sampling_decode.h"

#include "codec/json/json_escape.h"
#include "codec/json/json_scan.h"

/* High bits of the bytes of `word` within lo..hi; its bytes are ASCII. */
static inline uint64_t within8(uint64_t word, unsigned lo, unsigned hi)
{
	return (word + SCAN_ONES * (0x80 - lo)) & ~(word + SCAN_ONES * (0x7f - hi));
}

/* High bits of the bytes that are outside base64's alphabet (RFC 4648, 4). */
static inline uint64_t outside8(uint64_t word)
{
	uint64_t plus = word ^ SCAN_ONES * '+';

	return (~(within8(word | SCAN_ONES * 0x20, 'a', 'z') | /* letters of both cases */
		  within8(word, '/', '9') |                    /* the slash and the digits */
		  ~(plus + SCAN_ONES * 0x7f)) |                /* a zero byte: the plus */
		word) &
	       SCAN_ONES * 0x80;
}

/* `clean`: the alphabet is known to hold up to there; or NULL. */
static bool is_base64(struct slice s, const char *clean)
{
	uint64_t bad = 0;

	if (s.len % 4 != 0)
		return false;
	if (s.len == 0)
		return true;
	const char *at = clean == NULL ? s.at : clean, *end = s.at + s.len;
	end -= end[-1] == '=';
	end -= end[-1] == '=';
	at = isa_base64(at, end);
	for (; end - at >= 8; at += 8)
		bad |= outside8(scan_load8(at));
	for (; at < end; at++)
		bad |= outside8((unsigned char)*at | SCAN_ONES * 'A' << 8);
	return bad == 0;
}

/* Without "data:image/png;base64,". False when it is a data URI of another kind. */
static bool without_prefix(struct slice *text)
{
	static const struct slice scheme = SLICE_INIT("data:"), coding = SLICE_INIT(";base64");
	struct slice rest = *text;

	if (rest.len < scheme.len || !slice_eq_nocase(slice_of(rest.at, scheme.len), scheme))
		return true;
	struct slice head = slice_cut(&rest, ',');
	if (slice_absent(rest) || head.len < coding.len)
		return false;
	*text = rest;
	return slice_eq_nocase(slice_of(head.at + head.len - coding.len, coding.len), coding);
}

/* The line breaks among `len` bytes, at most a block of them. */
static inline uint64_t breaks_of(const char *at, size_t len)
{
	uint64_t breaks = 0;

	if (len == ISA_BLOCK) {
		struct isa_block block = isa_load(at);
		return isa_equal(block, '\n') | isa_equal(block, '\r');
	}
	for (size_t i = 0; i < len; i++)
		breaks |= (uint64_t)(at[i] == '\n' || at[i] == '\r') << i;
	return breaks;
}

/* Drops line breaks, in a copy that is the arena's already. */
static struct slice without_breaks(struct slice s)
{
	char *bytes = (char *)(uintptr_t)s.at, *out = bytes;
	const char *from = s.at, *end = s.at + s.len;

	for (const char *at = s.at; at < end; at += ISA_BLOCK) {
		size_t len = end - at < ISA_BLOCK ? (size_t)(end - at) : ISA_BLOCK;
		for (uint64_t left = breaks_of(at, len); left != 0; left &= left - 1) {
			const char *stop = at + __builtin_ctzll(left);
			(void)memmove(out, from, (size_t)(stop - from));
			out += stop - from;
			from = stop + 1;
		}
		(void)memmove(out, from, (size_t)(at + len - from));
		out += at + len - from;
		from = at + len;
	}
	return slice_of(bytes, (size_t)(out - bytes));
}

/* Most of an image is looked at once: what is base64 is plain text, too. */
bool decode_base64_string(struct decode *d, struct slice *raw, const char **clean)
{
	const char *from = d->r->at + 1;

	*clean = isa_base64(from, d->r->end);
	const char *at = reader_string_end(d->r, *clean);
	if (at == NULL)
		return false;
	*raw = slice_of(from, (size_t)(at - from));
	d->r->at = at + 1;
	return true;
}

bool decode_base64(struct decode *d, struct slice raw, const char *clean, struct slice *out)
{
	const char *rest = clean == NULL ? raw.at : clean;
	size_t rest_len = (size_t)(raw.at + raw.len - rest);
	struct slice text = raw;

	if (rest_len != 0 && memchr(rest, '\\', rest_len) != NULL) {
		text = json_unescape(raw, d->into); /* a break is an escape */
		if (slice_absent(text))
			return decode_busy(d);
		text = without_breaks(text);
		clean = NULL;
	}
	if (!without_prefix(&text) || !is_base64(text, text.at == raw.at ? clean : NULL))
		return false;
	*out = text;
	return true;
}

static bool is_type_char(char c)
{
	return (c >= 'a' && c <= 'z') || scan_is_digit(c) ||
	       (c != '\0' && strchr("!#$&^_.+-", c) != NULL);
}

/* type "/" subtype (RFC 6838, 4.2), lower case. */
static bool is_type(struct slice s)
{
	size_t slash = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] == '/' && slash == 0)
			slash = i;
		else if (!is_type_char(s.at[i]))
			return false;
	}
	return slash != 0 && slash + 1 < s.len;
}

static bool has_upper(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] >= 'A' && s.at[i] <= 'Z')
			return true;
	return false;
}

static struct slice lower_copy(struct slice s, struct arena *into)
{
	char *bytes = arena_take(into, s.len);

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	for (size_t i = 0; i < s.len; i++)
		bytes[i] = (char)(s.at[i] >= 'A' && s.at[i] <= 'Z' ? s.at[i] | 0x20 : s.at[i]);
	return slice_of(bytes, s.len);
}

bool decode_media_type(struct decode *d, struct slice raw, struct slice *out)
{
	struct slice rest = json_str_plain(raw, d->into);

	if (slice_absent(rest))
		return decode_busy(d);
	struct slice type = slice_trim(slice_cut(&rest, ';')); /* without parameters */
	if (has_upper(type)) {
		type = lower_copy(type, d->into);
		if (slice_absent(type))
			return decode_busy(d);
	}
	if (!is_type(type))
		return false;
	*out = slice_eq(type, SLICE("image/jpg")) ? SLICE("image/jpeg") : type;
	return true;
}

/* Whether `base64` is of a WebP file: "RIFF", four bytes of length, "WEBP". */
static bool is_webp(struct slice base64)
{
	static const struct slice riff = SLICE_INIT("UklGR"), webp = SLICE_INIT("XRUJQ");
	enum {
		AT = 11,
		TOP = 'v',
		LEAST = 'g'
	}; /* "F" leaves two bits to the digit behind "UklGR" */

	return slice_starts(base64, riff) && base64.len >= AT + webp.len &&
	       base64.at[riff.len] >= LEAST && base64.at[riff.len] <= TOP &&
	       memcmp(base64.at + AT, webp.at, webp.len) == 0;
}

bool decode_image_type(struct slice base64, struct slice *mime)
{
	static const struct {
		struct slice front, mime;
	} types[] = {
		{ SLICE_INIT("/9j/"), SLICE_INIT("image/jpeg") },
		{ SLICE_INIT("iVBORw0KGg"), SLICE_INIT("image/png") },
		{ SLICE_INIT("R0lGODlh"), SLICE_INIT("image/gif") },
		{ SLICE_INIT("R0lGODdh"), SLICE_INIT("image/gif") },
	};
	struct slice type = { NULL, 0 };

	for (size_t i = 0; i < COUNT_OF(types) && slice_absent(type); i++)
		if (slice_starts(base64, types[i].front))
			type = types[i].mime;
	if (slice_absent(type) && is_webp(base64))
		type = SLICE("image/webp");
	if (slice_absent(type) || slice_eq(type, *mime))
		return false;
	*mime = type;
	return true;
}
