#include "codec/isa/isa.h"

#ifdef CODEC_ISA_AVX2
#define ISA_TWICE(x) x, x
#define ISA_LETTERS 100, 100, 'r', 100, 't', 100, 'f', 100, 100, 100, 100, 100, '\\', 100, 'n', '/'
#define ISA_WHOLE(x) ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(x)))))

const struct isa_constants isa_constants = {
	.quote = { ISA_WHOLE('"') },
	.slash = { ISA_WHOLE('\\') },
	.space = { ISA_WHOLE(' ') },
	.control = { ISA_WHOLE(0x1f) },
	.letters = { ISA_LETTERS, ISA_LETTERS },
	.line = "\n                               ",
};
#endif

#if ISA_WIDE
/* The lowest bit of m, and m without it; and so on. */
#define PLACE(m) (uint8_t)((m) == 0 ? 0 : __builtin_ctz(m))
#define LESS(m) ((m) & ((m)-1u))
#define LESS_2(m) LESS(LESS(m))
#define LESS_4(m) LESS_2(LESS_2(m))
#define PLACES(m)                                                                           \
	{                                                                                   \
		PLACE(m), PLACE(LESS(m)), PLACE(LESS_2(m)), PLACE(LESS(LESS_2(m))),         \
			PLACE(LESS_4(m)), PLACE(LESS(LESS_4(m))), PLACE(LESS_2(LESS_4(m))), \
			PLACE(LESS(LESS_2(LESS_4(m))))                                      \
	}
#define ROWS_4(m) PLACES(m), PLACES((m) + 1u), PLACES((m) + 2u), PLACES((m) + 3u)
#define ROWS_16(m) ROWS_4(m), ROWS_4((m) + 4u), ROWS_4((m) + 8u), ROWS_4((m) + 12u)
#define ROWS_64(m) ROWS_16(m), ROWS_16((m) + 16u), ROWS_16((m) + 32u), ROWS_16((m) + 48u)

const isa_places isa_places_set = { ROWS_64(0u), ROWS_64(64u), ROWS_64(128u), ROWS_64(192u) };
#endif
