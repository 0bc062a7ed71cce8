/* isa_portable.h - isa.h in plain C, eight bytes at a time. */
#ifndef CODEC_ISA_ISA_PORTABLE_H
#define CODEC_ISA_ISA_PORTABLE_H

#define ISA_NAME "portable"
#define ISA_WIDE 0

enum { ISA_WORDS = ISA_BLOCK / 8 };

struct isa_block {
	uint64_t word[ISA_WORDS];
};

/* The same byte eight times. */
#define ISA_EACH(byte) (UINT64_C(0x0101010101010101) * (unsigned char)(byte))

static inline struct isa_block isa_load(const char *at)
{
	struct isa_block b;

	(void)memcpy(&b, at, sizeof(b));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	for (int i = 0; i < ISA_WORDS; i++)
		b.word[i] = __builtin_bswap64(b.word[i]);
#endif
	return b;
}

/* The high bits of eight bytes as the lowest eight bits. */
static inline uint64_t isa_squeeze(uint64_t high)
{
	return ((high & ISA_EACH(0x80)) * UINT64_C(0x0002040810204081)) >> 56;
}

/* High bits of the bytes equal to `byte`; exact, nothing carries from byte to byte. */
static inline uint64_t isa_same8(uint64_t word, char byte)
{
	uint64_t differ = word ^ ISA_EACH(byte);

	return ~(((differ & ISA_EACH(0x7f)) + ISA_EACH(0x7f)) | differ);
}

/* High bits of the ASCII bytes below the space. */
static inline uint64_t isa_control8(uint64_t word)
{
	return ~(((word & ISA_EACH(0x7f)) + ISA_EACH(0x80 - 0x20)) | word);
}

static inline uint64_t isa_equal(struct isa_block b, char byte)
{
	uint64_t mask = 0;

	for (int i = 0; i < ISA_WORDS; i++)
		mask |= isa_squeeze(isa_same8(b.word[i], byte)) << (8 * i);
	return mask;
}

static inline uint64_t isa_special8(uint64_t word)
{
	return isa_same8(word, '"') | isa_same8(word, '\\') | isa_control8(word) | word;
}

static inline uint64_t isa_special(struct isa_block b)
{
	uint64_t mask = 0;

	for (int i = 0; i < ISA_WORDS; i++)
		mask |= isa_squeeze(isa_special8(b.word[i])) << (8 * i);
	return mask;
}

static inline uint64_t isa_space(struct isa_block b)
{
	uint64_t mask = 0;

	for (int i = 0; i < ISA_WORDS; i++)
		mask |= isa_squeeze(isa_same8(b.word[i], ' ') | isa_same8(b.word[i], '\n') |
				    isa_same8(b.word[i], '\r') | isa_same8(b.word[i], '\t'))
			<< (8 * i);
	return mask;
}

static inline const char *isa_plain(const char *at, const char *end)
{
	for (; end - at >= ISA_BLOCK; at += ISA_BLOCK) {
		struct isa_block b = isa_load(at);
		uint64_t found = 0;
		for (int i = 0; i < ISA_WORDS; i++)
			found |= isa_special8(b.word[i]) & ISA_EACH(0x80);
		if (found != 0)
			break;
	}
	return at;
}

static inline char *isa_keep(char *out, const char *at, uint64_t keep)
{
	for (size_t i = 0; i < ISA_BLOCK; i++, keep >>= 1) {
		*out = at[i];
		out += keep & 1;
	}
	return out;
}

static inline char *isa_keep_quoted(char *out, const char *at, uint64_t keep)
{
	for (size_t i = 0; i < ISA_BLOCK; i++, keep >>= 1) {
		const bool marked = at[i] == '"' || at[i] == '\\';
		*out = '\\';
		out += keep & marked;
		*out = at[i];
		out += keep & 1;
	}
	return out;
}

/* High bits of the bytes of `word` within lo..hi; its bytes are ASCII. */
static inline uint64_t isa_within8(uint64_t word, unsigned lo, unsigned hi)
{
	return (word + ISA_EACH(0x80 - lo)) & ~(word + ISA_EACH(0x7f - hi));
}

static inline bool isa_base64_word(uint64_t word)
{
	uint64_t low = word & ISA_EACH(0x7f);
	uint64_t good = isa_within8(low | ISA_EACH(0x20), 'a', 'z') | isa_within8(low, '/', '9') |
			isa_same8(low, '+');

	return ((~good | word) & ISA_EACH(0x80)) == 0;
}

static inline const char *isa_base64(const char *at, const char *end)
{
	for (; end - at >= ISA_BLOCK; at += ISA_BLOCK) {
		struct isa_block b = isa_load(at);
		bool good = true;
		for (int i = 0; i < ISA_WORDS; i++)
			good &= isa_base64_word(b.word[i]);
		if (!good)
			break;
	}
	return at;
}

#endif
