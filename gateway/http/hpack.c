#include "gateway/http/hpack.h"

#include <endian.h>
#include <string.h>

#include "gateway/http/huffman.h"

/* ---- integers and strings ---- */
size_t hpack_read_rest(struct hpack_reader *reader, size_t value)
{
	for (unsigned shift = 0; shift <= 21 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;
		value += (size_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return value;
	}
	return SIZE_MAX;
}

bool hpack_read_text(struct hpack_reader *reader, struct hpack_text *out)
{
	const bool packed = reader->at < reader->end && (*reader->at & 0x80) != 0;
	const size_t len = hpack_read_int(reader, 7);

	if (len > (size_t)(reader->end - reader->at))
		return false;
	*out = (struct hpack_text){ slice_of((const char *)reader->at, len), packed };
	reader->at += len;
	return true;
}

uint8_t *hpack_put_int(uint8_t *to, uint8_t first, unsigned bits, size_t value)
{
	const size_t most = (1U << bits) - 1;

	if (value < most) {
		*to++ = (uint8_t)(first | value);
		return to;
	}
	*to++ = (uint8_t)(first | most);
	for (value -= most; value >= 0x80; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

uint8_t *hpack_put_text(uint8_t *to, struct slice text)
{
	to = hpack_put_int(to, 0, 7, text.len);
	if (text.len != 0)
		(void)memcpy(to, text.at, text.len);
	return to + text.len;
}

/* ---- Huffman's code ----
 *
 * A code of at most 8 bits is looked up by the next byte. The longer ones are canonical: those of one
 * length are consecutive numbers, and greater than the beginning of any shorter one. */
struct code {
	uint8_t symbol, bits;
};

enum { LONGEST_CODE = 30 };

/* By the next 8 bits; .bits is 0 where they begin a longer code. */
static const struct code short_codes[256] = {
#define ROW(symbol, code, bits) \
	[(code) << (8 - (bits))...(((code) + 1) << (8 - (bits))) - 1] = { symbol, bits },
	HUFFMAN_SHORT(ROW)
#undef ROW
};

static const uint8_t long_symbols[] = {
#define ROW(symbol, code, bits) symbol,
	HUFFMAN_LONG(ROW)
#undef ROW
};

static const struct {
	uint32_t first, count;
	uint8_t bits;
} lengths[] = {
#define ROW(bits, first, count) { first, count, bits },
	HUFFMAN_LENGTHS(ROW)
#undef ROW
};

/* The code with which `next`, 32 bits, begins; .bits is 0 for EOS. */
__attribute__((noinline)) static struct code long_code(uint32_t next)
{
	uint32_t before = 0;

	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		const uint32_t nth = (next >> (32 - lengths[i].bits)) - lengths[i].first;
		if (nth < lengths[i].count)
			return (struct code){ long_symbols[before + nth], lengths[i].bits };
		before += lengths[i].count;
	}
	return (struct code){ 0, 0 };
}

/* What is still to be read: the first `count` bits of `window`, behind which are zeros, then the bytes. */
struct bits {
	uint64_t window;
	size_t count;
	const uint8_t *at, *begin, *end;
};

/* The next eight bytes, the first one highest; behind the end are zeros. */
static inline uint64_t next_eight(const struct bits *bits)
{
	const size_t left = (size_t)(bits->end - bits->at);
	uint64_t eight = 0;

	if (left >= sizeof(eight)) {
		(void)memcpy(&eight, bits->at, sizeof(eight));
		return be64toh(eight);
	}
	if (left == 0)
		return 0;
	if ((size_t)(bits->end - bits->begin) >= sizeof(eight)) {
		(void)memcpy(&eight, bits->end - sizeof(eight), sizeof(eight));
		return be64toh(eight) << (64 - 8 * left);
	}
	for (size_t i = 0; i < left; i++)
		eight |= (uint64_t)bits->at[i] << (56 - 8 * i);
	return eight;
}

/* As many whole bytes as fit: then there are at least 56 bits, or all. */
static inline struct bits bits_fill(struct bits bits)
{
	const size_t left = (size_t)(bits.end - bits.at), fit = (63 - bits.count) / 8;
	const size_t more = left < fit ? left : fit;

	if (more == 0)
		return bits;
	bits.window |= (next_eight(&bits) & ~(UINT64_MAX >> (8 * more))) >> bits.count;
	bits.count += 8 * more;
	bits.at += more;
	return bits;
}

/* Behind the last code are ones, fewer than 8 (5.2). */
static bool is_padding(struct bits bits)
{
	return bits.count < 8 && bits.window == ~(UINT64_MAX >> bits.count);
}

size_t hpack_unpack(struct slice text, char *into)
{
	const uint8_t *at = (const uint8_t *)text.at;
	struct bits bits = { .at = at, .begin = at, .end = at + text.len };
	struct code code;
	char *to = into;

	for (;;) {
		bits = bits_fill(bits);
		while (code = short_codes[bits.window >> 56], bits.count >= 8 && code.bits != 0) {
			*to++ = (char)code.symbol;
			bits.window <<= code.bits;
			bits.count -= code.bits;
		}
		if (bits.count < LONGEST_CODE && bits.at < bits.end)
			continue;
		if (code.bits == 0)
			code = long_code((uint32_t)(bits.window >> 32));
		if (code.bits == 0 || code.bits > bits.count)
			return is_padding(bits) ? (size_t)(to - into) : SIZE_MAX;
		*to++ = (char)code.symbol;
		bits.window <<= code.bits;
		bits.count -= code.bits;
	}
}
