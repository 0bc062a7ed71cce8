#include "codec/json/json_escape.h"

#include "codec/isa/isa.h"
#include "codec/json/json_mask.h"
#include "codec/json/json_reader.h"
#include "codec/json/json_write.h"

enum {
	CHUNK = 16,    /* short runs are copied so many bytes at a time, past their end */
	MARKS_FEW = 8, /* in a block: one by one they cost less than all bytes of it */
};

/* The block at `at`; near the end, where nothing may be read behind the text, a copy in `room` with
 * harmless letters behind it. */
static inline const char *block_at(const char *at, const char *end, char room[ISA_BLOCK + CHUNK])
{
	size_t left = (size_t)(end - at);

	if (left >= ISA_BLOCK + CHUNK)
		return at;
	(void)memset(room, 'x', ISA_BLOCK + CHUNK);
	(void)memcpy(room, at, left < ISA_BLOCK ? left : ISA_BLOCK);
	return room;
}

/* Copies `len` bytes; up to CHUNK - 1 more are read and written behind them. */
static inline char *copy_past(char *out, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i += CHUNK)
		(void)memcpy(out + i, from + i, CHUNK);
	return out + len;
}

/* ---- in ---- */

/* Where the next run begins, and what the blocks before say about this one. */
struct escaping {
	const char *from;
	uint64_t escaped; /* 1: the first character stands behind a backslash */
	uint64_t inside;  /* all ones: within a string */
};

/* What one block may take: what was left before it, itself, a backslash for each of its bytes. */
enum { BLOCK_ROOM = GATHER_COPY_MAX + 2 * ISA_BLOCK + CHUNK };

/* Ends the run in front of `to`, at a pen with BLOCK_ROOM: short ones are copied, long ones borrowed.
 * `past`: CHUNK bytes behind the run are the text's, too. NULL when memory is exhausted. */
static inline char *end_run(struct gather *g, char *pen, const char *from, const char *to,
			    bool past)
{
	size_t len = (size_t)(to - from);

	if (len > GATHER_COPY_MAX) {
		gather_pen_end(g, pen);
		gather_raw(g, slice_of(from, len));
		return gather_pen(g, BLOCK_ROOM);
	}
	return past ? copy_past(pen, from, len) : pen_slice(pen, slice_of(from, len));
}

/* How many bits from the lowest on are set. */
static inline unsigned ones(uint64_t mask)
{
	return ~mask == 0 ? 64 : (unsigned)__builtin_ctzll(~mask);
}

/* What is from *from on up to the last of `marks` in the block at `at`, which begins there or behind it, with a
 * backslash in front of each of them; nothing if there is none. *from is at that one then: it has not been copied.
 * CHUNK bytes behind the block are readable. */
static inline char *put_marks(char *pen, const char **from, const char *at, uint64_t marks)
{
#if ISA_WIDE
	const int count = __builtin_popcountll(marks);
	if (count > MARKS_FEW) {
		const int last = ISA_BLOCK - 1 - __builtin_clzll(marks);
		pen = copy_past(pen, *from, (size_t)(at - *from));
		(void)isa_mark(pen, at, marks, '\\');
		*from = at + last;
		return pen + last + count;
	}
#endif
	for (; marks != 0; marks &= marks - 1) {
		const char *stop = at + __builtin_ctzll(marks);
		pen = copy_past(pen, *from, (size_t)(stop - *from));
		*pen++ = '\\';
		*from = stop;
	}
	return pen;
}

/* The same, but without the bytes of `drops`, of which there are some, and to behind the last of both. */
static inline char *put_without(char *pen, const char **from, const char *at, uint64_t marks,
				uint64_t drops)
{
	const int beyond = __builtin_clzll(marks | drops);

	pen = copy_past(pen, *from, (size_t)(at - *from));
	*from = at + ISA_BLOCK - beyond;
	return isa_keep_quoted(pen, at, ~drops & UINT64_MAX >> beyond);
}

/* Quotes and backslashes get one more backslash, white space between tokens goes. */
static inline void escape_block(struct gather *g, struct escaping *s, const char *at,
				const char *block)
{
	struct isa_block b = isa_load(block);
	uint64_t quotes = isa_equal(b, '"'), backslashes = isa_equal(b, '\\');
	uint64_t marks = quotes | backslashes;
	uint64_t ends = quotes & ~mask_escaped(backslashes, &s->escaped), drops = isa_space(b);
	char *pen = gather_pen(g, BLOCK_ROOM);

	if (drops != 0)
		drops &= ~(mask_parity(ends) ^ s->inside);
	if (__builtin_parityll(ends))
		s->inside = ~s->inside;
	uint64_t stops = marks | drops;
	if (block == at && pen != NULL && (size_t)(at - s->from) <= GATHER_COPY_MAX - ISA_BLOCK) {
		pen = drops == 0 ? put_marks(pen, &s->from, at, marks)
				 : put_without(pen, &s->from, at, marks, drops);
		stops = 0;
	}
	while (stops != 0 && pen != NULL) {
		unsigned first = (unsigned)__builtin_ctzll(stops);
		pen = end_run(g, pen, s->from, at + first, block == at);
		stops &= stops - 1;
		s->from = at + first;
		if ((drops >> first & 1) != 0) {
			unsigned behind = first + ones(drops >> first);
			s->from = at + behind;
			stops = behind == ISA_BLOCK ? 0 : stops & UINT64_MAX << behind;
		} else if (pen != NULL) {
			*pen++ = '\\';
		}
	}
	if (pen != NULL)
		gather_pen_end(g, pen);
}

void gather_json_escaped(struct gather *g, struct slice json)
{
	char room[ISA_BLOCK + CHUNK];
	struct escaping s = { .from = json.at };
	const char *end = json.len == 0 ? json.at : json.at + json.len;

	for (const char *at = json.at; at < end && !g->failed;
	     at = end - at > ISA_BLOCK ? at + ISA_BLOCK : end)
		escape_block(g, &s, at, block_at(at, end, room));
	gather_raw(g, slice_of(s.from, (size_t)(end - s.from)));
}

/* ---- out ---- */

/* The \u at *at and those right behind it, but nothing from `end` on. */
static SCAN_RARE char *put_characters(char *out, const char **at, const char *end)
{
	do {
		char bytes[4];
		size_t count = scan_unescape(at, bytes);
		(void)memcpy(out, bytes, sizeof(bytes));
		out += count;
	} while (end - *at > 2 && memcmp(*at, "\\u", 2) == 0);
	return out;
}

#if ISA_WIDE
/* The bytes from *at on of the block that begins `skip` bytes before; *escaped: 1 when the first of them stands
 * behind a backslash. It ends early behind the first \u in it and those that follow that; *at is there then. */
static inline __attribute__((always_inline)) char *unescape_block(char *out, const char **at,
								  const char *end, size_t skip,
								  uint64_t *escaped)
{
	const char *begin = *at;
	const struct isa_block b = isa_load(begin - skip);
	const uint64_t slashes = isa_equal(b, '\\') >> skip;

	if ((slashes | *escaped | skip) == 0) { /* long texts have none, or some in every block */
		(void)memcpy(out, begin, ISA_BLOCK);
		*at = begin + ISA_BLOCK;
		return out + ISA_BLOCK;
	}
	const uint64_t quotes = isa_equal(b, '"') >> skip, behind = mask_escaped(slashes, escaped);
	const uint64_t keep = (UINT64_MAX >> skip) & ~(slashes & ~behind);
	char *stop = isa_keep(out, begin - skip, keep << skip);

	for (uint64_t letters = behind & ~(slashes | quotes); letters != 0;
	     letters &= letters - 1) {
		const unsigned place = (unsigned)__builtin_ctzll(letters);
		char *to = out + __builtin_popcountll(keep & ((UINT64_C(1) << place) - 1));
		*to = scan_meanings[(unsigned char)begin[place]];
		if (*to == '\0') {
			*escaped = 0;
			*at = begin + place - 1;
			return put_characters(to, at, end);
		}
	}
	*at = begin + ISA_BLOCK - skip;
	return stop;
}

/* Behind what `raw` means, at `out`, where nothing becomes longer and a word may be written past the end. */
static char *unescape(char *out, struct slice raw)
{
	const char *at = raw.at, *end = at + raw.len;
	uint64_t escaped = 0;

	while (end - at >= ISA_BLOCK)
		out = unescape_block(out, &at, end, 0, &escaped);
	/* the last block is that before the end: nothing is read behind that */
	char room[ISA_BLOCK];
	if (raw.len < ISA_BLOCK) {
		(void)memset(room, 0, sizeof(room));
		at = memcpy(room + ISA_BLOCK - raw.len, at, raw.len);
		end = room + ISA_BLOCK;
	}
	while (at < end)
		out = unescape_block(out, &at, end, ISA_BLOCK - (size_t)(end - at), &escaped);
	return out;
}
#else
/* The escape at *at and what follows it as far as put_characters. */
static inline char *put_escape(char *out, const char **at, const char *end)
{
	*out = scan_meanings[(unsigned char)(*at)[1]];
	if (*out == '\0')
		return put_characters(out, at, end);
	*at += 2;
	return out + 1;
}

/* Likewise. Masks would cost plain C more than they save here. */
static char *unescape(char *out, struct slice raw)
{
	const char *at = raw.at, *end = at + raw.len;

	while (end - at >= ISA_WORD) {
		const uint64_t differ = scan_load8(at) ^ SCAN_ONES * '\\';
		const uint64_t slashes =
			(differ - SCAN_ONES) & ~differ & SCAN_ONES * 0x80; /* the lowest is exact */
		const size_t plain = slashes == 0 ? ISA_WORD : scan_first(slashes);
		(void)memcpy(out, at, ISA_WORD);
		out += plain;
		at += plain;
		if (slashes != 0)
			out = put_escape(out, &at, end);
	}
	while (at < end) {
		if (*at == '\\')
			out = put_escape(out, &at, end);
		else
			*out++ = *at++;
	}
	return out;
}
#endif

struct slice json_unescape(struct slice raw, struct arena *into)
{
	if (raw.len == 0 || memchr(raw.at, '\\', raw.len) == NULL)
		return raw;
	char *bytes = arena_take(into, raw.len + ISA_WORD);
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	return slice_of(bytes, (size_t)(unescape(bytes, raw) - bytes));
}

/* What `raw` means behind the `len` bytes at `begin`, as one; absent when memory is exhausted. */
static struct slice join_unescaped(const char *begin, size_t len, struct slice raw,
				   struct arena *into)
{
	char *bytes = arena_take(into, len + raw.len + ISA_WORD);

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	(void)memcpy(bytes, begin, len);
	return slice_of(bytes, (size_t)(unescape(bytes + len, raw) - bytes));
}

bool json_take_unescaped(struct json_reader *r, struct arena *into, struct slice *out)
{
	enum { ROOM = 2048 }; /* for what goes in one walk */
	const char *at = r->at + 1;
	char *bytes = arena_take(into, ROOM), *pen = bytes;

	if (bytes != NULL) {
		at = reader_unescape(r, at, &pen, bytes + ROOM);
		arena_give_end(into, pen, bytes + ROOM);
	}
	const char *quote = reader_string_end(r, at);
	if (quote == NULL)
		return false;
	const struct slice rest = slice_of(at, (size_t)(quote - at));
	r->at = quote + 1;
	if (pen == bytes)
		*out = json_unescape(rest, into);
	else if (rest.len == 0)
		*out = slice_of(bytes, (size_t)(pen - bytes));
	else
		*out = join_unescaped(bytes, (size_t)(pen - bytes), rest, into);
	return true;
}
