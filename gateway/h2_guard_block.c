#include "gateway/h2_guard_block.h"

#include "codec/base/must.h"
#include "codec/base/slice.h"

enum { FLAG_PADDED = 8, FLAG_PRIORITY = 0x20, PRIORITY_LEN = 5 };
enum { NAME_CONTENT_LENGTH = 28 }; /* RFC 7541 appendix A */
enum { DIGITS_MAX = 20 };          /* of 2^64 */
enum { PACKED_MAX = 11 };          /* bytes: as many zeros are no more digits than h2o reads, 18 */

struct reader {
	const uint8_t *begin, *at, *end;
};

/* An integer whose first byte has `bits` bits of it; SIZE_MAX when it is cut off or absurd. */
static size_t read_int(struct reader *reader, unsigned bits)
{
	const size_t most = (1U << bits) - 1;
	if (reader->at == reader->end)
		return SIZE_MAX;
	size_t value = *reader->at++ & most;
	if (value < most)
		return value;
	for (unsigned shift = 0; shift <= 21 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;
		value += (size_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return value;
	}
	return SIZE_MAX;
}

struct text {
	const uint8_t *bytes;
	size_t len;
	bool packed;
};

static bool read_text(struct reader *reader, struct text *out)
{
	bool packed = reader->at < reader->end && (*reader->at & 0x80) != 0;
	size_t len = read_int(reader, 7);
	if (len > (size_t)(reader->end - reader->at))
		return false;
	*out = (struct text){ reader->at, len, packed };
	reader->at += len;
	return true;
}

/* ---- numbers ----
 *
 * Packed digits have codes of their own length (RFC 7541 appendix B): 5 bits for 0 to 2, 6 bits for 3 to
 * 9. So a number can be told without the whole table. */
enum { CODE_3 = 0x19, CODE_9 = 0x1f };

struct bits {
	const uint8_t *at, *end;
	uint32_t value, count; /* the lowest `count` bits of `value` are still to be read */
};

/* The next `count` bits, at most 6; UINT32_MAX when there are fewer. */
static uint32_t bits_peek(struct bits *bits, uint32_t count)
{
	for (; bits->count < count && bits->at < bits->end; bits->count += 8)
		bits->value = bits->value << 8 | *bits->at++;
	if (bits->count < count)
		return UINT32_MAX;
	return bits->value >> (bits->count - count) & ((1U << count) - 1);
}

/* Behind the last code are ones, fewer than 8. */
static bool is_padding(const struct bits *bits)
{
	const uint32_t ones = (1U << bits->count) - 1;
	return bits->at == bits->end && bits->count < 8 && (bits->value & ones) == ones;
}

/* How many digits there are; 0 when it is no number. */
static size_t unpack_digits(const struct text *text, char into[DIGITS_MAX])
{
	struct bits bits = { .at = text->bytes, .end = text->bytes + text->len };
	for (size_t digits = 0;; digits++) {
		uint32_t five = bits_peek(&bits, 5), six = bits_peek(&bits, 6), digit;
		if (five <= 2) {
			digit = five;
			bits.count -= 5;
		} else if (six >= CODE_3 && six <= CODE_9) {
			digit = 3 + six - CODE_3;
			bits.count -= 6;
		} else {
			return is_padding(&bits) ? digits : 0;
		}
		if (digits == DIGITS_MAX)
			return 0;
		into[digits] = (char)('0' + digit);
	}
}

static uint64_t number_in(const struct text *text)
{
	char unpacked[DIGITS_MAX];
	struct slice digits = slice_of((const char *)text->bytes, text->len);
	uint64_t number = 0;
	if (text->packed && text->len > PACKED_MAX)
		return 0;
	if (text->packed)
		digits = slice_of(unpacked, unpack_digits(text, unpacked));
	return slice_to_u64(digits, &number) ? number : 0;
}

/* ---- fields ---- */
/* A field, or a change of the table's size. False: malformed. */
static bool read_field(struct reader *reader, struct guard_block *block)
{
	const uint8_t first = *reader->at;
	struct text text;
	if ((first & 0x80) != 0) /* indexed */
		return read_int(reader, 7) != SIZE_MAX;
	if ((first & 0xe0) == 0x20)
		return read_int(reader, 5) != SIZE_MAX;
	size_t name = read_int(reader, (first & 0x40) != 0 ? 6 : 4);
	if (name == SIZE_MAX || (name == 0 && !read_text(reader, &text)) ||
	    !read_text(reader, &text))
		return false;
	if (name == NAME_CONTENT_LENGTH) {
		block->content_length = number_in(&text);
		block->length_at = (size_t)(text.bytes - reader->begin);
		block->length_len = text.len;
		block->length_packed = text.packed;
	}
	return true;
}

struct guard_block guard_block_read(const char *bytes, size_t len, uint8_t flags)
{
	const uint8_t *begin = (const uint8_t *)bytes;
	struct reader reader = { begin, begin, begin + len };
	struct guard_block block = { .fields = 0 };
	size_t padding = 0, before = 0;
	if ((flags & FLAG_PADDED) != 0 && len > 0) {
		padding = *reader.at;
		before = 1;
	}
	if ((flags & FLAG_PRIORITY) != 0)
		before += PRIORITY_LEN;
	if (before + padding > len)
		return block;
	reader.at += before;
	reader.end -= padding;
	while (reader.at < reader.end && block.fields <= GUARD_FIELDS_MAX &&
	       read_field(&reader, &block))
		block.fields++;
	return block;
}

/* In Huffman's code a zero is five zeros, and what is left of the last byte is ones. */
void guard_block_clear_length(const struct guard_block *block, char *bytes)
{
	must(block->content_length != 0);
	char *digits = bytes + block->length_at;
	(void)memset(digits, block->length_packed ? 0 : '0', block->length_len);
	if (block->length_packed)
		digits[block->length_len - 1] = (char)((1 << 8 * block->length_len % 5) - 1);
}
