#include "gateway/http/h2_guard_block.h"

#include "codec/base/slice.h"
#include "gateway/http/h2_guard_parts.h"
#include "gateway/http/hpack.h"

enum { NAME_CONTENT_LENGTH = 28 }; /* RFC 7541 appendix A */
enum { PACKED_MAX = 11 };          /* bytes: 14 digits or more, as no body has */

static uint64_t number_in(const struct hpack_text *text)
{
	char unpacked[PACKED_MAX * 8 / 5];
	struct slice digits = text->bytes;
	uint64_t number = 0;

	if (text->packed && text->bytes.len > PACKED_MAX)
		return 0;
	if (text->packed)
		digits = slice_of(unpacked, hpack_unpack(text->bytes, unpacked));
	if (digits.len == SIZE_MAX)
		return 0;
	return slice_to_u64(digits, &number) ? number : 0;
}

/* ---- fields ---- */
/* A field, or a change of the table's size. False: malformed. */
static bool read_field(struct hpack_reader *reader, struct guard_block *block)
{
	const uint8_t first = *reader->at;
	struct hpack_text text;
	if ((first & 0x80) != 0) /* indexed */
		return hpack_read_int(reader, 7) != SIZE_MAX;
	if ((first & 0xe0) == 0x20)
		return hpack_read_int(reader, 5) != SIZE_MAX;
	size_t name = hpack_read_int(reader, (first & 0x40) != 0 ? 6 : 4);
	if (name == SIZE_MAX || (name == 0 && !hpack_read_text(reader, &text)) ||
	    !hpack_read_text(reader, &text))
		return false;
	if (name == NAME_CONTENT_LENGTH)
		block->content_length = number_in(&text);
	return true;
}

struct guard_block guard_block_read(const char *bytes, size_t len, uint8_t flags)
{
	struct hpack_reader reader = { (const uint8_t *)bytes, (const uint8_t *)bytes + len };
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
