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
