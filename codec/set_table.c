/* set_table.c - the one thing that a build of the codec for an instruction set shows. */
#include "codec/set.h"

#include "codec/dialects.h"
#include "codec/isa/isa.h"

extern const struct codec_set CODEC_SET_SYMBOL;

const struct codec_set CODEC_SET_SYMBOL = {
	.name = ISA_NAME,
	.sampling_read = sampling_read_here,
	.json_valid = json_valid,
	.jsonrpc_read = jsonrpc_read_here,
	.api_request_read = api_request_read_here,
	.dialect_get = dialect_get,
};
