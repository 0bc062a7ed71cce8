/* isa.h - 64 bytes at once: classes of bytes as bit masks; private to codec/.
 *
 * The one place that differs between instruction sets. codec/ is compiled once for each (see
 * codec/set.h); which body is taken here is decided by CODEC_ISA_*, set by codec/CMakeLists.txt.
 * Bit n of a mask stands for byte n. Nothing is read outside the 64 bytes at the address given.
 *
 * Every body has:
 *   struct isa_block          64 bytes
 *   isa_load(at)              from any address
 *   isa_special(b)            quote, backslash, control, non-ASCII: what ends plain string text
 *   isa_equal(b, byte)        that byte
 *   isa_space(b)              the four bytes of JSON white space
 *   isa_line(at, len)         whether the ISA_LINE bytes at the address begin with a line feed and then
 *                             spaces, `len` bytes together and no more
 *   isa_keep(out, at, keep)   behind the bytes of the block at `at` that are in the mask, copied to `out` one
 *                             behind the other; up to ISA_WORD more may be written
 *   isa_keep_quoted(out, at, keep)
 *                             the same, with a backslash in front of each of them that is a quote or a backslash; up to
 *                             2 * ISA_WORD more
 *   isa_plain(at, end)        past whole blocks without a special byte
 *   isa_base64(at, end)       past whole blocks of nothing but base64's alphabet (RFC 4648, 4)
 * and where ISA_WIDE is 1, that is where masks are cheap enough to judge dense text by them:
 *   isa_high(b)               beyond ASCII
 *   isa_low(b)                controls, and beyond ASCII
 *   isa_escape_letters(b)     f n r t and the slash: what mostly follows a backslash, quotes and backslashes apart
 *   isa_hex(b)                the digits of hexadecimal numbers
 *   isa_mark(out, at, marks, mark)
 *                             behind the bytes of the block at `at`, copied to `out` with a mark in front of each that
 *                             is in the mask; up to ISA_WORD more may be written
 *   struct isa_prose, isa_prose(at)
 *                             64 bytes of a string, with three more of the text in front of them; the first of a
 *                             run of backslashes must be one that escapes
 *   isa_prose_goes_on(&p)     all are ASCII, none a control, what stands behind a backslash is one of those letters,
 *                             a backslash or a quote, and a quote stands behind a backslash, but not behind two
 *   isa_prose_not_good(&p)    for which bytes that does not hold
 *   isa_prose_quotes(&p)      quotes with no backslash in front
 *   isa_prose_beyond(at)      all of the 64 bytes there are good, though some are beyond ASCII, and none is a backslash
 *                             behind a backslash; does not see a quote behind two that stand in front of the 64. A
 *                             character that is cut short by their end is good as far as it goes
 *   struct isa_utf8, isa_utf8_start()
 *   isa_utf8_errors(b, utf8)  where UTF-8 is broken (RFC 3629), given the blocks before; a character
 *                             cut short shows at the byte that is not its continuation
 */
#ifndef CODEC_ISA_ISA_H
#define CODEC_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ISA_BLOCK = 64, ISA_LINE = 32, ISA_WORD = 8 };

#if defined(CODEC_ISA_AVX2)
#include "codec/isa/isa_avx2.h"
#elif defined(CODEC_ISA_NEON)
#include "codec/isa/isa_neon.h"
#else
#include "codec/isa/isa_portable.h"
#endif

#ifndef ISA_OWN_LINE
static inline bool isa_line(const char *at, size_t len)
{
	size_t i = at[0] == '\n';

	while (i != 0 && i < ISA_LINE && at[i] == ' ')
		i++;
	return i == len;
}
#endif

#endif
