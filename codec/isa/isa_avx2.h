/* isa_avx2.h - isa.h by AVX2: two vectors of 32 bytes a block. */
#ifndef CODEC_ISA_ISA_AVX2_H
#define CODEC_ISA_ISA_AVX2_H

#include "codec/isa/isa_utf8.h"

#include <immintrin.h>

#define ISA_NAME "avx2"
#define ISA_WIDE 1

struct isa_block {
	__m256i low, high;
};

static inline __m256i isa_load32(const char *at)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline struct isa_block isa_load(const char *at)
{
	return (struct isa_block){ isa_load32(at), isa_load32(at + 32) };
}

/* The high bit of every byte. */
static inline uint64_t isa_bits(__m256i low, __m256i high)
{
	return (uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
	       (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}

/* Constants of every loop over text. Defined in another file, so that they are operands in memory: known
 * ones are made anew by three instructions each time round. */
extern const struct isa_constants {
	_Alignas(32) char quote[32];
	_Alignas(32) char slash[32];
	_Alignas(32) char marks[32];
	_Alignas(32) char space[32];
	_Alignas(32) char control[32];
	_Alignas(32) char letters[32], letters_slash[32];
	_Alignas(32) char line[32];
	_Alignas(32) signed char first_high[32], first_low[32], second_high[32]; /* isa_utf8.h */
} isa_constants __attribute__((visibility("hidden")));

static inline __m256i isa_constant(const char bytes[32])
{
	return _mm256_load_si256((const __m256i *)(const void *)bytes);
}

static inline __m256i isa_same32(__m256i v, char byte)
{
	if (byte == '"')
		return _mm256_cmpeq_epi8(v, isa_constant(isa_constants.quote));
	if (byte == '\\')
		return _mm256_cmpeq_epi8(v, isa_constant(isa_constants.slash));
	return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(byte));
}

static inline uint64_t isa_equal(struct isa_block b, char byte)
{
	return isa_bits(isa_same32(b.low, byte), isa_same32(b.high, byte));
}

static inline uint64_t isa_high(struct isa_block b)
{
	return isa_bits(b.low, b.high);
}

/* Signed, so that everything that is not ASCII lies below the space as well. */
static inline __m256i isa_low32(__m256i v)
{
	return _mm256_cmpgt_epi8(isa_constant(isa_constants.space), v);
}

static inline uint64_t isa_low(struct isa_block b)
{
	return isa_bits(isa_low32(b.low), isa_low32(b.high));
}

/* Quotes and backslashes, by the low nibble, as isa_space32. */
static inline __m256i isa_marks32(__m256i v)
{
	return _mm256_cmpeq_epi8(_mm256_shuffle_epi8(isa_constant(isa_constants.marks), v), v);
}

static inline __m256i isa_special32(__m256i v)
{
	return _mm256_or_si256(isa_marks32(v), isa_low32(v));
}

static inline uint64_t isa_special(struct isa_block b)
{
	return isa_bits(isa_special32(b.low), isa_special32(b.high));
}

static inline __m256i isa_control32(__m256i v)
{
	return _mm256_cmpeq_epi8(_mm256_min_epu8(v, isa_constant(isa_constants.control)), v);
}

/* A table of 16 rows, looked up by the low nibble of bytes below 0x80; others give 0. */
static inline __m256i isa_lookup(__m128i table, __m256i by)
{
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), by);
}

static inline __m256i isa_high_nibbles(__m256i v)
{
	return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(0x0f));
}

/* Each white space byte is the row of its own low nibble; 0x64 and its like are rows of no byte. */
static inline __m256i isa_space32(__m256i v)
{
	const __m128i own = _mm_setr_epi8(' ', 100, 100, 100, 17, 100, 113, 2, 100, '\t', '\n', 112,
					  100, '\r', 100, 100);

	return _mm256_cmpeq_epi8(isa_lookup(own, v), v);
}

static inline uint64_t isa_space(struct isa_block b)
{
	return isa_bits(isa_space32(b.low), isa_space32(b.high));
}

#define ISA_OWN_LINE
static inline bool isa_line(const char *at, size_t len)
{
	__m256i same = _mm256_cmpeq_epi8(isa_load32(at), isa_constant(isa_constants.line));

	return (size_t)__builtin_ctzll(~(uint64_t)(uint32_t)_mm256_movemask_epi8(same)) == len;
}

/* A class of bytes as rows by low and by high nibble: a byte is in it when the two share a bit. Bytes
 * beyond ASCII have no row. */
static inline __m256i isa_class(__m128i by_low, __m128i by_high, __m256i v)
{
	return _mm256_and_si256(isa_lookup(by_low, v), isa_lookup(by_high, isa_high_nibbles(v)));
}

/* By the low nibble, as isa_space32. */
static inline __m256i isa_letters32(const char letters[32], __m256i v)
{
	return _mm256_cmpeq_epi8(_mm256_shuffle_epi8(isa_constant(letters), v), v);
}

static inline uint64_t isa_escape_letters(struct isa_block b)
{
	return isa_bits(isa_letters32(isa_constants.letters, b.low),
			isa_letters32(isa_constants.letters, b.high));
}

/* All ones where it is none. */
static inline __m256i isa_not_hex32(__m256i v)
{
	const __m128i by_low = _mm_setr_epi8(1, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0);
	const __m128i by_high = _mm_setr_epi8(0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0);

	return _mm256_cmpeq_epi8(isa_class(by_low, by_high, v), _mm256_setzero_si256());
}

static inline uint64_t isa_hex(struct isa_block b)
{
	return ~isa_bits(isa_not_hex32(b.low), isa_not_hex32(b.high));
}

/* Not good: behind a backslash if no letter and no quote, a quote if not behind one or behind two, and what is
 * not plain. */
struct isa_prose {
	__m256i behind[2]; /* of a backslash */
	__m256i quotes[2], not_good[2];
};

static inline void isa_prose32(struct isa_prose *p, int half, const char *at)
{
	const __m256i v = isa_load32(at);
	const __m256i behind = isa_same32(isa_load32(at - 1), '\\'), quotes = isa_same32(v, '"');

	p->behind[half] = behind;
	p->quotes[half] = quotes;
	p->not_good[half] = _mm256_or_si256(
		_mm256_andnot_si256(isa_letters32(isa_constants.letters_slash, v),
				    _mm256_xor_si256(behind, quotes)),
		_mm256_or_si256(isa_low32(v),
				_mm256_and_si256(isa_same32(isa_load32(at - 2), '\\'), quotes)));
}

static inline struct isa_prose isa_prose(const char *at)
{
	struct isa_prose p;

	isa_prose32(&p, 0, at);
	isa_prose32(&p, 1, at + 32);
	return p;
}

static inline bool isa_prose_goes_on(const struct isa_prose *p)
{
	__m256i any = _mm256_or_si256(p->not_good[0], p->not_good[1]);

	return _mm256_testz_si256(any, any);
}

static inline uint64_t isa_prose_not_good(const struct isa_prose *p)
{
	return isa_bits(p->not_good[0], p->not_good[1]);
}

static inline uint64_t isa_prose_quotes(const struct isa_prose *p)
{
	return isa_bits(_mm256_andnot_si256(p->behind[0], p->quotes[0]),
			_mm256_andnot_si256(p->behind[1], p->quotes[1]));
}

/* Zero where the byte is outside. 1: plus and slash, 2: digits, 4: A-O a-o, 8: P-Z p-z. */
static inline __m256i isa_base64_class(__m256i v)
{
	const __m128i by_low = _mm_setr_epi8(2 | 8, 14, 14, 14, 14, 14, 14, 14, 14, 14, 4 | 8,
					     1 | 4, 4, 4, 4, 1 | 4);
	const __m128i by_high = _mm_setr_epi8(0, 0, 1, 2, 4, 8, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);

	return isa_class(by_low, by_high, v);
}

/* Whether every byte of v is something else than zero. */
static inline bool isa_none_zero(__m256i v)
{
	return _mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256())) == 0;
}

static inline const char *isa_base64(const char *at, const char *end)
{
	for (; end - at >= 4 * 32; at += 4 * 32) {
		__m256i a = isa_base64_class(isa_load32(at));
		__m256i b = isa_base64_class(isa_load32(at + 32));
		__m256i c = isa_base64_class(isa_load32(at + 64));
		__m256i d = isa_base64_class(isa_load32(at + 96));
		if (!isa_none_zero(_mm256_min_epu8(_mm256_min_epu8(a, b), _mm256_min_epu8(c, d))))
			break;
	}
	for (; end - at >= 32; at += 32)
		if (!isa_none_zero(isa_base64_class(isa_load32(at))))
			break;
	return at;
}

/* What is low in one of the vectors is so in the least bytes of all. */
static inline const char *isa_plain(const char *at, const char *end)
{
	for (; end - at >= 4 * 32; at += 4 * 32) {
		const __m256i a = isa_load32(at), b = isa_load32(at + 32);
		const __m256i c = isa_load32(at + 64), d = isa_load32(at + 96);
		const __m256i least = _mm256_min_epi8(_mm256_min_epi8(a, b), _mm256_min_epi8(c, d));
		const __m256i marks =
			_mm256_or_si256(_mm256_or_si256(isa_marks32(a), isa_marks32(b)),
					_mm256_or_si256(isa_marks32(c), isa_marks32(d)));
		const __m256i any = _mm256_or_si256(marks, isa_low32(least));
		if (!_mm256_testz_si256(any, any))
			break;
	}
	return at;
}

/* Of each row of eight bits, in its bytes from the lowest: where those are that are set. One more is loaded
 * with every row. */
extern const uint64_t isa_places[256 + 1] __attribute__((visibility("hidden")));

static inline char *isa_keep(char *out, const char *at, uint64_t keep)
{
#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, keep >>= ISA_WORD) {
		const uint64_t row = keep & 0xff;
		const void *from = at + i, *places = &isa_places[row];
		_mm_storel_epi64((void *)out,
				 _mm_shuffle_epi8(_mm_loadl_epi64(from), _mm_loadu_si128(places)));
		out += __builtin_popcountll(row);
	}
	return out;
}

/* Of each row of eight bits: the places of all eight bytes, and in front of those whose bits are set one more, 8. */
__extension__ typedef unsigned __int128 isa_wide;
extern const isa_wide isa_fronts[256] __attribute__((visibility("hidden")));

static inline char *isa_mark(char *out, const char *at, uint64_t marks, char mark)
{
	const __m128i front = _mm_set1_epi8(mark);

#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, marks >>= ISA_WORD) {
		const uint64_t row = marks & 0xff;
		const void *from = at + i, *places = &isa_fronts[row];
		const __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64(from), front);
		_mm_storeu_si128((void *)out, _mm_shuffle_epi8(both, _mm_load_si128(places)));
		out += ISA_WORD + __builtin_popcountll(row);
	}
	return out;
}

/* The bytes of a row that are kept, and then their marks, without leaving the register: what was written by bytes
 * and is read as a vector waits for memory. */
static inline char *isa_keep_quoted(char *out, const char *at, uint64_t keep)
{
	const __m128i slash = _mm_set1_epi8('\\'), quote = _mm_set1_epi8('"');

#pragma GCC unroll 8
	for (size_t i = 0; i < ISA_BLOCK; i += ISA_WORD, keep >>= ISA_WORD) {
		const uint64_t row = keep & 0xff;
		const unsigned count = (unsigned)__builtin_popcountll(row);
		const void *from = at + i, *places = &isa_places[row];
		const __m128i kept =
			_mm_shuffle_epi8(_mm_loadl_epi64(from), _mm_loadu_si128(places));
		const __m128i marks =
			_mm_or_si128(_mm_cmpeq_epi8(kept, slash), _mm_cmpeq_epi8(kept, quote));
		const unsigned marked = (unsigned)_mm_movemask_epi8(marks) & ((1u << count) - 1);
		const void *fronts = &isa_fronts[marked];
		_mm_storeu_si128((void *)out, _mm_shuffle_epi8(_mm_unpacklo_epi64(kept, slash),
							       _mm_load_si128(fronts)));
		out += count + (unsigned)__builtin_popcount(marked);
	}
	return out;
}

/* ---- UTF-8 ---- */

struct isa_utf8 {
	__m256i before; /* the 32 bytes before the next block */
};

static inline struct isa_utf8 isa_utf8_start(void)
{
	return (struct isa_utf8){ _mm256_setzero_si256() };
}

static inline __m256i isa_row(const signed char rows[32], __m256i by)
{
	return _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)(const void *)rows), by);
}

/* The mistakes of every byte of v with the one before it. */
static inline __m256i isa_utf8_pairs(__m256i before, __m256i v)
{
	__m256i low_nibbles = _mm256_and_si256(before, _mm256_set1_epi8(0x0f));

	return _mm256_and_si256(
		_mm256_and_si256(isa_row(isa_constants.first_high, isa_high_nibbles(before)),
				 isa_row(isa_constants.first_low, low_nibbles)),
		isa_row(isa_constants.second_high, isa_high_nibbles(v)));
}

/* Not zero where something is wrong; the others are v begun one, two and three bytes earlier. */
static inline __m256i isa_utf8_judge(__m256i three, __m256i two, __m256i one, __m256i v)
{
	/* the third byte of three, the third and fourth of four: there two continuations are due */
	__m256i due = _mm256_or_si256(_mm256_subs_epu8(two, _mm256_set1_epi8(0xe0 - 0x80)),
				      _mm256_subs_epu8(three, _mm256_set1_epi8(0xf0 - 0x80)));

	return _mm256_xor_si256(_mm256_and_si256(due, _mm256_set1_epi8((char)0x80)),
				isa_utf8_pairs(one, v));
}

/* `before` are the 32 bytes in front of v. */
static inline __m256i isa_utf8_wrong(__m256i before, __m256i v)
{
	__m256i across = _mm256_permute2x128_si256(before, v, 0x21);

	return isa_utf8_judge(_mm256_alignr_epi8(v, across, 13), _mm256_alignr_epi8(v, across, 14),
			      _mm256_alignr_epi8(v, across, 15), v);
}

static inline uint64_t isa_utf8_errors(struct isa_block b, struct isa_utf8 *utf8)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i low = isa_utf8_wrong(utf8->before, b.low), high = isa_utf8_wrong(b.low, b.high);
	__m256i any = _mm256_or_si256(low, high);

	utf8->before = b.high;
	if (_mm256_testz_si256(any, any))
		return 0;
	return ~isa_bits(_mm256_cmpeq_epi8(low, zero), _mm256_cmpeq_epi8(high, zero));
}

static inline __m256i isa_prose_beyond32(const char *at)
{
	const __m256i one = isa_load32(at - 1), v = isa_load32(at);
	const __m256i behind = isa_same32(one, '\\'), quotes = isa_same32(v, '"');
	const __m256i escapes = _mm256_andnot_si256(isa_letters32(isa_constants.letters, v),
						    _mm256_xor_si256(behind, quotes));

	return _mm256_or_si256(_mm256_or_si256(escapes, isa_control32(v)),
			       isa_utf8_judge(isa_load32(at - 3), isa_load32(at - 2), one, v));
}

static inline bool isa_prose_beyond(const char *at)
{
	__m256i any = _mm256_or_si256(isa_prose_beyond32(at), isa_prose_beyond32(at + 32));

	return _mm256_testz_si256(any, any);
}

#endif
