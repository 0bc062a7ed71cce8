#include "codec/isa/isa.h"

#ifdef CODEC_ISA_AVX2
#define ISA_TWICE(x) x, x
#define ISA_WHOLE(x) ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(ISA_TWICE(x)))))

const struct isa_constants isa_constants = {
	.quote = { ISA_WHOLE('"') },
	.slash = { ISA_WHOLE('\\') },
	.space = { ISA_WHOLE(' ') },
	.control = { ISA_WHOLE(0x1f) },
};
#endif
