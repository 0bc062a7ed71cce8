/* hpack.h - integers and strings of header compression (RFC 7541 5), read and written.
 *
 * What the guard looks at, and what heads are made of and read from; tables and fields are theirs. Pure,
 * for bytes that a peer chose. */
#ifndef GATEWAY_HTTP_HPACK_H
#define GATEWAY_HTTP_HPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/base/attr.h"
#include "codec/base/slice.h"

struct hpack_reader {
	const uint8_t *at, *end;
};

/* What follows the first byte of an integer, which says `value` or more. */
size_t hpack_read_rest(struct hpack_reader *reader, size_t value);

/* An integer (5.1) whose first byte has `bits` bits of it. SIZE_MAX when it is cut off, or longer than four
 * more bytes, which no index, size or length needs. */
static inline size_t hpack_read_int(struct hpack_reader *reader, unsigned bits)
{
	const size_t most = (1U << bits) - 1;

	if (reader->at == reader->end)
		return SIZE_MAX;
	const size_t value = *reader->at++ & most;
	return value < most ? value : hpack_read_rest(reader, value);
}

/* A string (5.2) as it is in the block. */
struct hpack_text {
	struct slice bytes;
	bool packed; /* in Huffman's code */
};

/* False when it is cut off. */
MUST_USE bool hpack_read_text(struct hpack_reader *reader, struct hpack_text *out);

/* The most bytes that a packed string of so many is unpacked to: no code has less than five bits. */
static inline size_t hpack_unpacked_max(size_t packed)
{
	return packed * 8 / 5;
}

/* Writes what the packed `text` means, at most hpack_unpacked_max() bytes, and returns how many; SIZE_MAX
 * for what is no such code (5.2: EOS, or padding that is not ones, or is a byte or more). */
size_t hpack_unpack(struct slice text, char *into);

/* At least what hpack_put_int() writes for any 32 bits. */
enum { HPACK_INT_MAX = 6 };

/* Both return where the next byte goes. `first` has the bits of the first byte that are not the integer's. */
uint8_t *hpack_put_int(uint8_t *to, uint8_t first, unsigned bits, size_t value);
uint8_t *hpack_put_text(uint8_t *to, struct slice text); /* not packed */

#endif
