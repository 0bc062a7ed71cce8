/* isa_utf8.h - the tables of the UTF-8 check by vectors; private to the bodies of isa.h.
 *
 * Keiser and Lemire, "Validating UTF-8 In Less Than One Instruction Per Byte": what may be wrong with
 * two neighbouring bytes is a bit each, and a mistake is what three tables agree on: by the high and by
 * the low nibble of the first byte, and by the high nibble of the second. */
#ifndef CODEC_ISA_ISA_UTF8_H
#define CODEC_ISA_ISA_UTF8_H

enum {
	ISA_SHORT = 1,      /* a lead byte, and no continuation behind it */
	ISA_LONG = 2,       /* ASCII, and a continuation behind it */
	ISA_OVERLONG3 = 4,  /* e0 80..9f */
	ISA_LARGE = 8,      /* f4 90..bf and above */
	ISA_SURROGATE = 16, /* ed a0..bf */
	ISA_OVERLONG2 = 32, /* c0, c1 */
	ISA_LARGE4 = 64,    /* f5 and above with 80..8f */
	ISA_OVERLONG4 = 64, /* f0 80..8f */
	ISA_TWO = 128,      /* two continuations: right only inside a long character */
	ISA_ANY = ISA_SHORT | ISA_LONG | ISA_TWO,
	ISA_FROM_F4 = ISA_ANY | ISA_LARGE | ISA_LARGE4,
	ISA_BEHIND = ISA_LONG | ISA_OVERLONG2 | ISA_TWO, /* the second byte is a continuation */
};

#define ISA_FOUR_TIMES(x) x, x, x, x

/* Initialisers of 16 bytes, by nibble. */
#define ISA_UTF8_FIRST_HIGH                                                                       \
	ISA_FOUR_TIMES(ISA_LONG), ISA_FOUR_TIMES(ISA_LONG), ISA_FOUR_TIMES((signed char)ISA_TWO), \
		ISA_SHORT | ISA_OVERLONG2, ISA_SHORT, ISA_SHORT | ISA_OVERLONG3 | ISA_SURROGATE,  \
		ISA_SHORT | ISA_LARGE | ISA_LARGE4 | ISA_OVERLONG4
#define ISA_UTF8_FIRST_LOW                                                            \
	(signed char)(ISA_ANY | ISA_OVERLONG3 | ISA_OVERLONG2 | ISA_OVERLONG4),       \
		(signed char)(ISA_ANY | ISA_OVERLONG2), (signed char)ISA_ANY,         \
		(signed char)ISA_ANY, (signed char)(ISA_ANY | ISA_LARGE),             \
		ISA_FOUR_TIMES((signed char)ISA_FROM_F4),                             \
		ISA_FOUR_TIMES((signed char)ISA_FROM_F4),                             \
		(signed char)(ISA_FROM_F4 | ISA_SURROGATE), (signed char)ISA_FROM_F4, \
		(signed char)ISA_FROM_F4
#define ISA_UTF8_SECOND_HIGH                                                            \
	ISA_FOUR_TIMES(ISA_SHORT), ISA_FOUR_TIMES(ISA_SHORT),                           \
		(signed char)(ISA_BEHIND | ISA_OVERLONG3 | ISA_LARGE4 | ISA_OVERLONG4), \
		(signed char)(ISA_BEHIND | ISA_OVERLONG3 | ISA_LARGE),                  \
		(signed char)(ISA_BEHIND | ISA_SURROGATE | ISA_LARGE),                  \
		(signed char)(ISA_BEHIND | ISA_SURROGATE | ISA_LARGE), ISA_FOUR_TIMES(ISA_SHORT)

#endif
