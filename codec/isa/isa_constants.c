#include "codec/isa/isa.h"

#ifdef CODEC_ISA_AVX2
#define ISA_TWICE(x) x, x
/* As isa_space32 has them: those of a backslash's letters, and `c` if it shares no row with them. */
#define ISA_LETTERS(c) 100, 100, 'r', 100, 't', 100, 'f', 100, 100, 100, 100, 100, c, 100, 'n', '/'
#define ISA_MARKS 100, 100, '"', 100, 17, 100, 100, 100, 100, 100, 100, 100, '\\', 100, 100, 100
#define ISA_WHOLE(x) ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(x)))))

const struct isa_constants isa_constants = {
	.quote = { ISA_WHOLE('"') },
	.slash = { ISA_WHOLE('\\') },
	.marks = { ISA_TWICE(ISA_MARKS) },
	.space = { ISA_WHOLE(' ') },
	.control = { ISA_WHOLE(0x1f) },
	.letters = { ISA_TWICE(ISA_LETTERS(100)) },
	.letters_slash = { ISA_TWICE(ISA_LETTERS('\\')) },
	.line = "\n                               ",
	.first_high = { ISA_UTF8_FIRST_HIGH, ISA_UTF8_FIRST_HIGH },
	.first_low = { ISA_UTF8_FIRST_LOW, ISA_UTF8_FIRST_LOW },
	.second_high = { ISA_UTF8_SECOND_HIGH, ISA_UTF8_SECOND_HIGH },
};
#endif

#if ISA_WIDE
/* The places of the bits set in `row`, one a byte: from the highest down, each moves those before it up. */
#define HAS(row, bit) ((row) >> (bit)&UINT64_C(1))
#define PLACE(above, row, bit) ((above) * (HAS(row, bit) * 255 + 1) + HAS(row, bit) * (bit))
#define PLACES_4(above, row, bit) \
	PLACE(PLACE(PLACE(PLACE(above, row, (bit) + 3), row, (bit) + 2), row, (bit) + 1), row, bit)
#define PLACES(row) PLACES_4(PLACES_4(UINT64_C(0), row, 4), row, 0)
/* All eight places, and in front of those of the bits set in `row` an ISA_WORD. */
#define FRONT(above, row, bit) \
	(((above)*256 + (bit)) * (HAS(row, bit) * 255 + 1) + HAS(row, bit) * ISA_WORD)
#define FRONTS_4(above, row, bit) \
	FRONT(FRONT(FRONT(FRONT(above, row, (bit) + 3), row, (bit) + 2), row, (bit) + 1), row, bit)
#define FRONTS(row) FRONTS_4(FRONTS_4((isa_wide)0, row, 4), row, 0)
#define ROWS_4(of, row) of(row), of((row) + 1), of((row) + 2), of((row) + 3)
#define ROWS_16(of, row) \
	ROWS_4(of, row), ROWS_4(of, (row) + 4), ROWS_4(of, (row) + 8), ROWS_4(of, (row) + 12)
#define ROWS_64(of, row) \
	ROWS_16(of, row), ROWS_16(of, (row) + 16), ROWS_16(of, (row) + 32), ROWS_16(of, (row) + 48)
#define ROWS(of) ROWS_64(of, 0), ROWS_64(of, 64), ROWS_64(of, 128), ROWS_64(of, 192)

const uint64_t isa_places[256 + 1] = { ROWS(PLACES) };
const isa_wide isa_fronts[256] = { ROWS(FRONTS) };
#endif
