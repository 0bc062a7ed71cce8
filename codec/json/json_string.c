/* json_string.c - the inside of strings: escapes, UTF-8, and the window over plain text. */
#include "codec/json/json_mask.h"
#include "codec/json/json_reader.h"

/* ---- the window ---- */

/* isa_special of a text that is shorter than a block. */
static SCAN_RARE uint64_t short_special(const char *text, size_t len)
{
	char copy[ISA_BLOCK] = { 0 };

	(void)memcpy(copy, text, len);
	return isa_special(isa_load(copy)) & ((UINT64_C(1) << len) - 1);
}

/* The window over the last bytes of the text; the next special byte from `at` on, or the end. */
static SCAN_RARE const char *tail_special(struct json_reader *r, const char *at)
{
	size_t len = (size_t)(r->end - r->begin);
	const char *base = len < ISA_BLOCK ? r->begin : r->end - ISA_BLOCK;

	if (at == r->end)
		return at;
	r->window = (uintptr_t)base;
	r->specials = len < ISA_BLOCK ? short_special(base, len) : isa_special(isa_load(base));
	uint64_t specials = r->specials >> (at - base);
	return specials == 0 ? r->end : at + __builtin_ctzll(specials);
}

/* The next special byte at or behind `at`, from where the window shows none; or the end. */
static inline const char *far_special(struct json_reader *r, const char *at)
{
	uintptr_t offset = (uintptr_t)at - r->window;

	if (offset < ISA_BLOCK) { /* the rest of the window is plain */
		if ((size_t)(r->end - at) <= ISA_BLOCK - offset)
			return r->end;
		at += ISA_BLOCK - offset;
	}
	if (r->end - at < ISA_BLOCK)
		return tail_special(r, at);
	for (unsigned blocks = 1;; blocks++) {
		uint64_t specials = isa_special(isa_load(at));
		if (specials != 0) {
			r->window = (uintptr_t)at;
			r->specials = specials;
			return at + __builtin_ctzll(specials);
		}
		at += ISA_BLOCK;
		if (blocks > 2) /* long and plain */
			at = isa_plain(at, r->end);
		if (r->end - at < ISA_BLOCK)
			return tail_special(r, at);
	}
}

static inline const char *next_special(struct json_reader *r, const char *at)
{
	uintptr_t offset = (uintptr_t)at - r->window;
	uint64_t specials = offset < ISA_BLOCK ? r->specials >> offset : 0;

	return specials != 0 ? at + __builtin_ctzll(specials) : far_special(r, at);
}

SCAN_RARE const char *reader_space(const char *at, const char *end)
{
	if (end - at >= 2 && scan_is_space(*at) && (unsigned char)at[1] > ' ')
		return at + 1;
	while (end - at >= ISA_BLOCK) {
		uint64_t others = ~isa_space(isa_load(at));
		if (others != 0)
			return at + __builtin_ctzll(others);
		at += ISA_BLOCK;
	}
	return scan_space(at, end);
}

/* ---- one by one ---- */

/* Past one UTF-8 character of two to four bytes, or NULL when there is none (RFC 3629). */
static inline const char *utf8_char(const char *text, const char *end)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = (size_t)(end - text);

	if (at[0] < 0xc2)
		return NULL;
	if (at[0] < 0xe0)
		return left >= 2 && (at[1] & 0xc0) == 0x80 ? text + 2 : NULL;
	if (at[0] < 0xf0) {
		if (left < 3 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80)
			return NULL;
		if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0))
			return NULL; /* overlong; surrogate */
		return text + 3;
	}
	if (at[0] > 0xf4 || left < 4 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80 ||
	    (at[3] & 0xc0) != 0x80)
		return NULL;
	if ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
		return NULL; /* overlong; beyond U+10FFFF */
	return text + 4;
}

/* Of a character of three bytes whose lead and continuation bytes are known: overlong or a surrogate, by the low
 * half of the first byte and the bit of the second that tells A0 to BF. */
static inline bool is_overlong_or_surrogate(uint64_t word)
{
	const uint64_t bits = word & 0x200f;

	return bits == 0 || bits == 0x200d;
}

/* Past pairs of characters of three bytes, as long as all is well. */
static inline const char *utf8_threes(const char *at, const char *end)
{
	for (; end - at >= 8; at += 6) {
		const uint64_t word = scan_load8(at);
		if ((word & 0xc0c0f0c0c0f0) != 0x8080e08080e0 || is_overlong_or_surrogate(word) ||
		    is_overlong_or_surrogate(word >> 24))
			break;
	}
	return at;
}

/* Whether an escape with that letter is two characters long. */
static inline bool is_simple(char letter)
{
	return scan_meanings[(unsigned char)letter] != '\0';
}

/* Past the run of characters beyond ASCII at `at`, and of escapes of two characters amid them; NULL after failing. */
static inline const char *utf8_run(struct json_reader *r, const char *at)
{
	do {
		const char *next = utf8_char(at, r->end);
		if (next == NULL) {
			reader_fail_json(r, at,
					 (unsigned char)*at < 0x20 ? "control character in a string"
								   : "invalid UTF-8");
			return NULL;
		}
		at = next - at == 3 ? utf8_threes(next, r->end) : next;
		if (r->end - at >= 2 && *at == '\\' && is_simple(at[1]))
			at += 2;
	} while (at < r->end && (unsigned char)*at >= 0x80);
	return at;
}

/* Past the \u escape at `at`, or two of them; NULL after failing. */
static SCAN_RARE const char *unicode_escape(struct json_reader *r, const char *at)
{
	size_t left = (size_t)(r->end - at);
	int32_t code = left < 6 ? -1 : scan_hex4(at + 2);

	if (code < 0) {
		reader_fail_json(r, at, "\\u needs four hex digits");
		return NULL;
	}
	if (code < 0xd800 || code > 0xdfff)
		return at + 6;
	int32_t low = left < 12 || at[6] != '\\' || at[7] != 'u' ? -1 : scan_hex4(at + 8);
	if (code >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
		reader_fail_json(r, at, "lone surrogate in a string");
		return NULL;
	}
	return at + 12;
}

/* Past the escape that begins with the backslash at `at`; NULL after failing. */
static SCAN_RARE const char *escape(struct json_reader *r, const char *at)
{
	if (r->end - at >= 2 && is_simple(at[1]))
		return at + 2;
	if (r->end - at >= 2 && at[1] == 'u')
		return unicode_escape(r, at);
	if (r->end - at < 2)
		reader_fail_json(r, r->end, "");
	else
		reader_fail_json(r, at, "unknown escape in a string");
	return NULL;
}

/* ---- by blocks, where there is much that is not plain ---- */

#if ISA_WIDE
enum {
	DENSE_RUN = 16 * ISA_BLOCK,     /* no more is read again when something is wrong */
	DENSE_ROOM = ISA_BLOCK + 2 * 6, /* a block, and what a \u in its last byte looks at */
};

/* What one block hands to the next. */
struct dense {
	struct isa_utf8 utf8;     /* if utf8_open; else it begins anew */
	uint64_t utf8_open;       /* not 0: the block before ended in something beyond ASCII */
	uint64_t escape_open;     /* 1: it ended in a backslash that escapes */
	const char *low_expected; /* the u of a low surrogate that has been seen already */
	uint64_t specials;        /* of the block: isa_special */
	uint64_t hard;            /* 0: behind the block it is prose, perhaps */
};

static inline struct dense dense_begin(void)
{
	return (struct dense){ .utf8_open = 0, .escape_open = 0, .low_expected = NULL };
}

/* Whether the letter at `at`, behind a backslash, is a b or begins a good escape with a u. */
static inline bool dense_letter(struct dense *d, const char *at)
{
	if (*at == 'b')
		return true;
	int32_t code = *at == 'u' ? scan_hex4(at + 1) : -1;
	if (code < 0xd800 || code > 0xdfff)
		return code >= 0;
	if (code >= 0xdc00)
		return at == d->low_expected;
	int32_t low = at[5] == '\\' && at[6] == 'u' ? scan_hex4(at + 7) : -1;
	d->low_expected = at + 6;
	return low >= 0xdc00 && low <= 0xdfff;
}

/* The letters u in front of four hex digits in the block that are no half of a pair: those begin with a D, as some
 * that are left out do. */
static inline uint64_t dense_characters(struct isa_block b)
{
	const uint64_t hex = isa_hex(b), d = isa_equal(b, 'd') | isa_equal(b, 'D');

	return isa_equal(b, 'u') & (hex & ~d) >> 1 & hex >> 2 & hex >> 3 & hex >> 4;
}

/* Whether what is not plain text in front of the bit `close`, and neither a quote nor a backslash, is
 * characters beyond ASCII, all of them good; `others` are those bytes. A character cut short shows at
 * the quote. */
static inline bool dense_beyond(struct dense *d, struct isa_block b, uint64_t others,
				uint64_t close)
{
	uint64_t high = isa_high(b);

	if ((others & ~high) != 0) /* a control character */
		return false;
	if (d->utf8_open == 0)
		d->utf8 = isa_utf8_start();
	d->utf8_open = high >> 61;
	return (isa_utf8_errors(b, &d->utf8) & (close | (close - 1))) == 0;
}

/* Of a block. */
struct dense_masks {
	uint64_t slashes, marks, escaped;
	uint64_t close;  /* the bit of the closing quote, 0 when it is not in there */
	uint64_t inside; /* what stands in front of that: all when there is none */
};

/* Whether what stands in front of the closing quote is good but for escapes. Whether a block of prose has an
 * escape or a quote cannot be foretold: what would be left out in a block that has none costs less than the
 * wrong guesses. */
static inline __attribute__((always_inline)) bool dense_look(struct dense *d, struct isa_block b,
							     struct dense_masks *m)
{
	const uint64_t slashes = isa_equal(b, '\\'), marks = isa_equal(b, '"');
	const uint64_t low = isa_low(b), escaped = mask_escaped(slashes, &d->escape_open);
	const uint64_t quotes = marks & ~escaped, close = quotes & (0 - quotes), inside = close - 1;

	d->specials = slashes | marks | low;
	d->hard = slashes & escaped;
	*m = (struct dense_masks){ slashes, marks, escaped, close, inside };
	return ((low & inside) | d->utf8_open) == 0 || dense_beyond(d, b, low & inside, close);
}

/* Whether what stands in front of the closing quote in the block at `at` is good; *close as of the masks. */
static inline __attribute__((always_inline)) bool dense_block(struct dense *d, const char *at,
							      uint64_t *close)
{
	const struct isa_block b = isa_load(at);
	struct dense_masks m;

	if (!dense_look(d, b, &m))
		return false;
	*close = m.close;
	uint64_t left = m.escaped & m.inside & ~(m.marks | m.slashes) & ~isa_escape_letters(b);
	/* told to be rare, so that it takes no register of the common way */
	if (__builtin_expect(left != 0, 0)) {
		d->hard = 1;
		for (left &= ~dense_characters(b); left != 0; left &= left - 1)
			if (!dense_letter(d, at + __builtin_ctzll(left)))
				return false;
	}
	return true;
}

/* The same of a string that is unescaped on the way: behind what it means at `out`, where ISA_WORD more may be
 * written. NULL when it is not good, or has a \u. */
static inline char *dense_unescape(struct dense *d, const char *at, char *out, uint64_t *close)
{
	const struct isa_block b = isa_load(at);
	struct dense_masks m;

	if (!dense_look(d, b, &m))
		return NULL;
	*close = m.close;
	const uint64_t keep = m.inside & ~(m.slashes & ~m.escaped);
	char *stop = isa_keep(out, at, keep);
	for (uint64_t left = m.escaped & m.inside & ~(m.slashes | m.marks); left != 0;
	     left &= left - 1) {
		const unsigned place = (unsigned)__builtin_ctzll(left);
		const char meaning = scan_meanings[(unsigned char)at[place]];
		if (meaning == '\0')
			return NULL;
		out[__builtin_popcountll(keep & ((UINT64_C(1) << place) - 1))] = meaning;
	}
	return stop;
}

/* Where the character beyond ASCII begins that ends, whole or not, in front of `at`; `at` if there is none. */
static inline const char *whole_characters(const char *at)
{
	if ((unsigned char)at[-1] >= 0x80)
		do
			at--;
		while (((unsigned char)*at & 0xc0) == 0x80);
	return at;
}

/* Where the last of the escapes begins that `at` may be amid: the run of backslashes in front of it, the first of
 * which escapes. */
static inline const char *whole_escapes(const struct json_reader *r, const char *at)
{
	const char *from = at;

	while (from - r->begin >= 8 && scan_load8(from - 8) == UINT64_C(0x5c5c5c5c5c5c5c5c))
		from -= 8;
	while (from[-1] == '\\')
		from--;
	return at - ((at - from) & 1);
}

/* The last place between two characters, escapes counted as such and pairs of them too, in front of the
 * block at `at` or at its beginning. */
static inline const char *dense_resume(const struct dense *d, const char *at)
{
	if (d->low_expected != NULL && d->low_expected >= at)
		return d->low_expected - 7;
	if (d->escape_open != 0)
		return at - 1;
	return whole_characters(at);
}

/* The closing quote in the block at `at`, whose special bytes are given: the window is there now. */
static inline const char *string_closed(struct json_reader *r, const char *at, uint64_t close,
					uint64_t specials)
{
	r->window = (uintptr_t)at;
	r->specials = specials;
	return at + __builtin_ctzll(close);
}

/* From `at`, inside a string and between two characters, on to a place like that: the closing quote,
 * or where the text is simple again or ends. NULL when something is wrong, which is for others to
 * name. */
static SCAN_RARE const char *dense_run(struct json_reader *r, const char *at)
{
	struct dense d = dense_begin();
	const ptrdiff_t left = r->end - at;
	uint64_t close;

	if (left < DENSE_ROOM)
		return at;
	const char *last = left > DENSE_RUN + DENSE_ROOM ? at + DENSE_RUN : r->end - DENSE_ROOM;
	while (at <= last) {
		if (!dense_block(&d, at, &close))
			return NULL;
		if (close != 0)
			return string_closed(r, at, close, d.specials);
		at += ISA_BLOCK;
		if (d.hard == 0)
			break;
	}
	return dense_resume(&d, at);
}

/* From `at` past the blocks of prose with characters beyond ASCII, up to one that ends in ASCII; the place is
 * between two characters, and nothing else in its block is not good. Out of line, because its vectors and
 * tables would take the registers of prose_run. */
static SCAN_RARE const char *beyond_run(const char *at, const char *last)
{
	while (at <= last) {
		if (!isa_prose_beyond(at))
			break;
		at += ISA_BLOCK;
		if ((unsigned char)at[-1] < 0x80)
			break;
		at = whole_characters(at);
	}
	return at;
}

/* As dense_run, for text that is escaped by two characters and mostly ASCII: on to the closing quote, or to
 * where there is something else, or less than a block. */
static inline const char *prose_run(struct json_reader *r, const char *at)
{
	if (at - r->begin < 3 || r->end - at < ISA_BLOCK || at[-1] == '\\' || at[1] == 'u')
		return at; /* a backslash in front would escape nothing; a \u is not for here */
	for (const char *last = r->end - ISA_BLOCK; at <= last; at += ISA_BLOCK) {
		const struct isa_prose p = isa_prose(at);
		if (isa_prose_goes_on(&p))
			continue;
		const uint64_t quotes = isa_prose_quotes(&p), close = quotes & (0 - quotes);
		const uint64_t wrong = isa_prose_not_good(&p) & (close - 1);
		if (wrong == 0)
			return string_closed(r, at, close, isa_special(isa_load(at)));
		if ((wrong & ~isa_high(isa_load(at))) != 0)
			break;
		const char *behind = beyond_run(at, last);
		if (behind == at)
			break;
		at = behind - ISA_BLOCK;
	}
	return whole_escapes(r, at);
}

/* From where dense_run gave NULL on to where the block begins that is not good, more or less. */
static SCAN_RARE const char *dense_good(const char *at)
{
	struct dense before, d = dense_begin();
	const char *from = at;
	uint64_t close;

	for (;; at += ISA_BLOCK) {
		before = d;
		if (!dense_block(&d, at, &close))
			return at == from ? at : dense_resume(&before, at);
	}
}

const char *reader_unescape(struct json_reader *r, const char *at, char **out, const char *room_end)
{
	struct dense d = dense_begin();
	uint64_t close, open = 0; /* escape_open in front of the block */
	char *pen = *out, *behind;

	for (; r->end - at >= ISA_BLOCK && room_end - pen >= ISA_BLOCK + ISA_WORD;
	     at += ISA_BLOCK) {
		behind = dense_unescape(&d, at, pen, &close);
		if (behind == NULL)
			break;
		pen = behind;
		open = d.escape_open;
		if (close != 0) {
			*out = pen;
			return string_closed(r, at, close, d.specials);
		}
	}
	d.escape_open = open;
	const char *stop = dense_resume(&d, at);
	*out = open != 0 ? pen : pen - (at - stop); /* the open backslash was left out */
	return stop;
}
#else
static inline const char *dense_run(struct json_reader *r, const char *at)
{
	(void)r;
	return at;
}

static inline const char *prose_run(struct json_reader *r, const char *at)
{
	(void)r;
	return at;
}

const char *reader_unescape(struct json_reader *r, const char *at, char **out, const char *room_end)
{
	(void)r;
	(void)out;
	(void)room_end;
	return at;
}

static inline const char *dense_good(const char *at)
{
	return at;
}
#endif

/* ---- both ---- */

/* From the backslash at `at`, in the window, past simple escapes and the plain text behind each: to the
 * next special byte that the window has, which may begin another kind of escape; or, with *more, to
 * where the window ends or the text behind it is. */
static inline const char *simple_escapes(struct json_reader *r, const char *at, bool *more)
{
	uint64_t specials = r->specials >> ((uintptr_t)at - r->window);

	*more = false;
	while (*at == '\\' && r->end - at >= 2 && is_simple(at[1])) {
		at += 2;
		specials >>= 2;
		if (specials == 0) {
			*more = true;
			break;
		}
		at += __builtin_ctzll(specials);
		specials >>= __builtin_ctzll(specials);
	}
	return at;
}

/* Past what cannot be plain text at `at`, which is no quote, one by one; NULL after failing. */
static inline const char *one_by_one(struct json_reader *r, const char *at)
{
	return *at == '\\' ? escape(r, at) : utf8_run(r, at);
}

/* reader_string_rest without blocks: which mistake it is, and where, is found one by one. */
static SCAN_RARE const char *string_slowly(struct json_reader *r, const char *found)
{
	bool more;

	while (found != r->end && *found != '"') {
		const char *at = simple_escapes(r, found, &more);
		if (!more && at != found) {
			found = at;
			continue;
		}
		if (!more && (at = one_by_one(r, found)) == NULL)
			return NULL;
		found = next_special(r, at);
	}
	if (found != r->end)
		return found;
	reader_fail_json(r, found, "");
	return NULL;
}

/* Blocks only ever say that all is well. */
SCAN_RARE const char *reader_string_rest(struct json_reader *r, const char *found)
{
	r->escape_last = found; /* perhaps: it holds for all of the string */
	while (found != r->end && *found != '"') {
		const char *at = prose_run(r, found);
		if (at == found)
			at = dense_run(r, found);
		if (at == found)
			return string_slowly(r, next_special(r, found));
		if (at == NULL)
			return string_slowly(r, next_special(r, dense_good(found)));
		found = at;
	}
	return found != r->end ? found : string_slowly(r, found);
}

static SCAN_RARE const char *string_farther(struct json_reader *r, const char *at)
{
	const char *found = far_special(r, at);

	return found < r->end && *found == '"' ? found : reader_string_rest(r, found);
}

/* Mostly the string ends in the 64 bytes behind the window. */
SCAN_RARE const char *reader_string_far(struct json_reader *r, const char *at)
{
	uintptr_t offset = (uintptr_t)at - r->window;
	size_t plain = offset < ISA_BLOCK ? ISA_BLOCK - offset : 0;

	if ((size_t)(r->end - at) < plain + ISA_BLOCK)
		return string_farther(r, at);
	at += plain;
	uint64_t specials = isa_special(isa_load(at));
	r->window = (uintptr_t)at;
	r->specials = specials;
	if (specials == 0) {
		at += ISA_BLOCK; /* perhaps in the next 64 */
		if (r->end - at < ISA_BLOCK)
			return string_farther(r, at);
		specials = isa_special(isa_load(at));
		r->window = (uintptr_t)at;
		r->specials = specials;
		if (specials == 0)
			return string_farther(r, at);
	}
	at += __builtin_ctzll(specials);
	return *at == '"' ? at : reader_string_rest(r, at);
}
