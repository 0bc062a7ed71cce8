/* fuzz_responses.c - arbitrary requests and answers through that dialect; see dialect_drive.h. */
#include "tests/support/dialect_drive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	dialect_drive(DIALECT_RESPONSES, data, size);
	return 0;
}
