/* isa_neon.h - isa.h by NEON (aarch64): four vectors of 16 bytes a block. */
#ifndef CODEC_ISA_ISA_NEON_H
#define CODEC_ISA_ISA_NEON_H

#include "codec/isa/isa_utf8.h"

#include <arm_neon.h>

#define ISA_NAME "neon"
#define ISA_WIDE 1

enum { ISA_VECTORS = 4 };

struct isa_block {
	uint8x16_t v[ISA_VECTORS];
};

static inline uint8x16_t isa_load16(const char *at)
{
	return vld1q_u8((const uint8_t *)at);
}

static inline struct isa_block isa_load(const char *at)
{
	return (struct isa_block){ { isa_load16(at), isa_load16(at + 16), isa_load16(at + 32),
				     isa_load16(at + 48) } };
}

/* One bit for every byte, which is 0 or 0xff. */
static inline uint64_t isa_bits(struct isa_block b)
{
	const uint8x16_t own = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint8x16_t low = vpaddq_u8(vandq_u8(b.v[0], own), vandq_u8(b.v[1], own));
	uint8x16_t high = vpaddq_u8(vandq_u8(b.v[2], own), vandq_u8(b.v[3], own));
	uint8x16_t all = vpaddq_u8(low, high);

	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static inline uint64_t isa_equal(struct isa_block b, char byte)
{
	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = vceqq_u8(b.v[i], vdupq_n_u8((uint8_t)byte));
	return isa_bits(b);
}

static inline uint64_t isa_high(struct isa_block b)
{
	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = vcgeq_u8(b.v[i], vdupq_n_u8(0x80));
	return isa_bits(b);
}

static inline uint8x16_t isa_marks16(uint8x16_t v)
{
	return vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));
}

/* Signed, so that everything that is not ASCII lies below the space as well. */
static inline uint8x16_t isa_low16(uint8x16_t v)
{
	return vcltq_s8(vreinterpretq_s8_u8(v), vdupq_n_s8(0x20));
}

static inline uint64_t isa_low(struct isa_block b)
{
	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = isa_low16(b.v[i]);
	return isa_bits(b);
}

static inline uint8x16_t isa_special16(uint8x16_t v)
{
	return vorrq_u8(isa_marks16(v), isa_low16(v));
}

static inline uint64_t isa_special(struct isa_block b)
{
	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = isa_special16(b.v[i]);
	return isa_bits(b);
}

static inline uint8x16_t isa_low_nibbles(uint8x16_t v)
{
	return vandq_u8(v, vdupq_n_u8(0x0f));
}

/* Each white space byte is the row of its own low nibble; the others are rows of no byte. */
static inline uint64_t isa_space(struct isa_block b)
{
	const uint8x16_t own = { ' ', 100,  100,  100, 17,  100,  113, 2,
				 100, '\t', '\n', 112, 100, '\r', 100, 100 };

	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = vceqq_u8(vqtbl1q_u8(own, isa_low_nibbles(b.v[i])), b.v[i]);
	return isa_bits(b);
}

/* A class of bytes as rows by low and by high nibble: a byte is in it when the two share a bit. */
static inline uint8x16_t isa_class(uint8x16_t by_low, uint8x16_t by_high, uint8x16_t v)
{
	return vandq_u8(vqtbl1q_u8(by_low, isa_low_nibbles(v)),
			vqtbl1q_u8(by_high, vshrq_n_u8(v, 4)));
}

/* By the low nibble, as isa_space; and `more`, if it shares no row with them. */
static inline uint8x16_t isa_letters16(uint8x16_t v, uint8_t more)
{
	const uint8x16_t own = { 100, 100, 'r', 100, 't',  100, 'f', 100,
				 100, 100, 100, 100, more, 100, 'n', '/' };

	return vceqq_u8(vqtbl1q_u8(own, isa_low_nibbles(v)), v);
}

static inline uint64_t isa_escape_letters(struct isa_block b)
{
	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = isa_letters16(b.v[i], 100);
	return isa_bits(b);
}

static inline uint64_t isa_hex(struct isa_block b)
{
	const uint8x16_t by_low = { 1, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0 };
	const uint8x16_t by_high = { 0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

	for (int i = 0; i < ISA_VECTORS; i++)
		b.v[i] = vcgtq_u8(isa_class(by_low, by_high, b.v[i]), vdupq_n_u8(0));
	return isa_bits(b);
}

/* Not good as in isa_avx2.h. */
struct isa_prose {
	struct isa_block behind; /* of a backslash */
	struct isa_block quotes, not_good;
};

static inline struct isa_prose isa_prose(const char *at)
{
	const struct isa_block b = isa_load(at), before = isa_load(at - 1), two = isa_load(at - 2);
	struct isa_prose p;

	for (int i = 0; i < ISA_VECTORS; i++) {
		p.behind.v[i] = vceqq_u8(before.v[i], vdupq_n_u8('\\'));
		p.quotes.v[i] = vceqq_u8(b.v[i], vdupq_n_u8('"'));
		p.not_good.v[i] = vorrq_u8(
			vbicq_u8(veorq_u8(p.behind.v[i], p.quotes.v[i]),
				 isa_letters16(b.v[i], '\\')),
			vorrq_u8(isa_low16(b.v[i]),
				 vandq_u8(vceqq_u8(two.v[i], vdupq_n_u8('\\')), p.quotes.v[i])));
	}
	return p;
}

static inline bool isa_prose_goes_on(const struct isa_prose *p)
{
	uint8x16_t low = vorrq_u8(p->not_good.v[0], p->not_good.v[1]);
	uint8x16_t high = vorrq_u8(p->not_good.v[2], p->not_good.v[3]);

	return vmaxvq_u8(vorrq_u8(low, high)) == 0;
}

static inline uint64_t isa_prose_not_good(const struct isa_prose *p)
{
	return isa_bits(p->not_good);
}

static inline uint64_t isa_prose_quotes(const struct isa_prose *p)
{
	struct isa_block found;

	for (int i = 0; i < ISA_VECTORS; i++)
		found.v[i] = vbicq_u8(p->quotes.v[i], p->behind.v[i]);
	return isa_bits(found);
}

/* Zero where the byte is outside. 1: plus and slash, 2: digits, 4: A-O a-o, 8: P-Z p-z. */
static inline uint8x16_t isa_base64_class(uint8x16_t v)
{
	const uint8x16_t by_low = { 2 | 8, 14, 14,    14,    14, 14, 14, 14,
				    14,    14, 4 | 8, 1 | 4, 4,  4,  4,  1 | 4 };
	const uint8x16_t by_high = { 0, 0, 1, 2, 4, 8, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0 };

	return isa_class(by_low, by_high, v);
}

static inline const char *isa_base64(const char *at, const char *end)
{
	for (; end - at >= ISA_BLOCK; at += ISA_BLOCK) {
		struct isa_block b = isa_load(at);
		uint8x16_t low = vminq_u8(isa_base64_class(b.v[0]), isa_base64_class(b.v[1]));
		uint8x16_t high = vminq_u8(isa_base64_class(b.v[2]), isa_base64_class(b.v[3]));
		if (vminvq_u8(vminq_u8(low, high)) == 0)
			break;
	}
	return at;
}

/* Of each row of eight bits, in its bytes from the lowest: where those are that are set. (Another body loads
 * one more with every row.) */
extern const uint64_t isa_places[256 + 1] __attribute__((visibility("hidden")));

static inline char *isa_keep(char *out, const char *at, uint64_t keep)
{
#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, keep >>= ISA_WORD) {
		const uint64_t row = keep & 0xff;
		vst1_u8((uint8_t *)out,
			vtbl1_u8(vld1_u8((const uint8_t *)at + i), vcreate_u8(isa_places[row])));
		out += __builtin_popcountll(row);
	}
	return out;
}

/* Of each row of eight bits: the places of all eight bytes, and in front of those whose bits are set one more, 8. */
__extension__ typedef unsigned __int128 isa_wide;
extern const isa_wide isa_fronts[256] __attribute__((visibility("hidden")));

static inline char *isa_mark(char *out, const char *at, uint64_t marks, char mark)
{
	const uint8x8_t front = vdup_n_u8((uint8_t)mark);

#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, marks >>= ISA_WORD) {
		const uint64_t row = marks & 0xff;
		const uint8x16_t both = vcombine_u8(vld1_u8((const uint8_t *)at + i), front);
		vst1q_u8((uint8_t *)out,
			 vqtbl1q_u8(both, vld1q_u8((const uint8_t *)&isa_fronts[row])));
		out += ISA_WORD + __builtin_popcountll(row);
	}
	return out;
}

static inline char *isa_keep_quoted(char *out, const char *at, uint64_t keep)
{
	const uint8x8_t slash = vdup_n_u8('\\'), quote = vdup_n_u8('"');
	const uint8x8_t bits = vcreate_u8(UINT64_C(0x8040201008040201));

#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, keep >>= ISA_WORD) {
		const uint64_t row = keep & 0xff;
		const unsigned count = (unsigned)__builtin_popcountll(row);
		const uint8x8_t kept =
			vtbl1_u8(vld1_u8((const uint8_t *)at + i), vcreate_u8(isa_places[row]));
		const uint8x8_t marks = vorr_u8(vceq_u8(kept, slash), vceq_u8(kept, quote));
		const unsigned marked = vaddv_u8(vand_u8(marks, bits)) & ((1u << count) - 1);
		vst1q_u8((uint8_t *)out,
			 vqtbl1q_u8(vcombine_u8(kept, slash),
				    vld1q_u8((const uint8_t *)&isa_fronts[marked])));
		out += count + (unsigned)__builtin_popcount(marked);
	}
	return out;
}

static inline const char *isa_plain(const char *at, const char *end)
{
	for (; end - at >= ISA_BLOCK; at += ISA_BLOCK) {
		struct isa_block b = isa_load(at);
		uint8x16_t low = vorrq_u8(isa_special16(b.v[0]), isa_special16(b.v[1]));
		uint8x16_t high = vorrq_u8(isa_special16(b.v[2]), isa_special16(b.v[3]));
		if (vmaxvq_u8(vorrq_u8(low, high)) != 0)
			break;
	}
	return at;
}

/* ---- UTF-8 ---- */

struct isa_utf8 {
	uint8x16_t before; /* the 16 bytes before the next block */
};

static inline struct isa_utf8 isa_utf8_start(void)
{
	return (struct isa_utf8){ vdupq_n_u8(0) };
}

/* The mistakes of every byte of v with the one before it. */
static inline uint8x16_t isa_utf8_pairs(uint8x16_t before, uint8x16_t v)
{
	const int8x16_t first_high = { ISA_UTF8_FIRST_HIGH };
	const int8x16_t first_low = { ISA_UTF8_FIRST_LOW };
	const int8x16_t second_high = { ISA_UTF8_SECOND_HIGH };
	uint8x16_t first =
		vandq_u8(vqtbl1q_u8(vreinterpretq_u8_s8(first_high), vshrq_n_u8(before, 4)),
			 vqtbl1q_u8(vreinterpretq_u8_s8(first_low), isa_low_nibbles(before)));

	return vandq_u8(first, vqtbl1q_u8(vreinterpretq_u8_s8(second_high), vshrq_n_u8(v, 4)));
}

/* Not zero where something is wrong; the others are v begun one, two and three bytes earlier. */
static inline uint8x16_t isa_utf8_judge(uint8x16_t three, uint8x16_t two, uint8x16_t one,
					uint8x16_t v)
{
	/* the third byte of three, the third and fourth of four: there two continuations are due */
	uint8x16_t due = vorrq_u8(vqsubq_u8(two, vdupq_n_u8(0xe0 - 0x80)),
				  vqsubq_u8(three, vdupq_n_u8(0xf0 - 0x80)));

	return veorq_u8(vandq_u8(due, vdupq_n_u8(0x80)), isa_utf8_pairs(one, v));
}

/* `before` are the 16 bytes in front of v. */
static inline uint8x16_t isa_utf8_wrong(uint8x16_t before, uint8x16_t v)
{
	return isa_utf8_judge(vextq_u8(before, v, 13), vextq_u8(before, v, 14),
			      vextq_u8(before, v, 15), v);
}

static inline uint64_t isa_utf8_errors(struct isa_block b, struct isa_utf8 *utf8)
{
	struct isa_block wrong;

	for (int i = 0; i < ISA_VECTORS; i++) {
		uint8x16_t found = isa_utf8_wrong(i == 0 ? utf8->before : b.v[i - 1], b.v[i]);
		wrong.v[i] = vtstq_u8(found, found);
	}
	utf8->before = b.v[ISA_VECTORS - 1];
	return isa_bits(wrong);
}

static inline bool isa_prose_beyond(const char *at)
{
	const struct isa_block b = isa_load(at), one = isa_load(at - 1), two = isa_load(at - 2);
	const struct isa_block three = isa_load(at - 3);
	uint8x16_t any = vdupq_n_u8(0);

	for (int i = 0; i < ISA_VECTORS; i++) {
		uint8x16_t behind = vceqq_u8(one.v[i], vdupq_n_u8('\\'));
		uint8x16_t quotes = vceqq_u8(b.v[i], vdupq_n_u8('"'));
		any = vorrq_u8(any, vbicq_u8(veorq_u8(behind, quotes), isa_letters16(b.v[i], 100)));
		any = vorrq_u8(any, vcltq_u8(b.v[i], vdupq_n_u8(0x20)));
		any = vorrq_u8(any, isa_utf8_judge(three.v[i], two.v[i], one.v[i], b.v[i]));
	}
	return vmaxvq_u8(any) == 0;
}

#endif
