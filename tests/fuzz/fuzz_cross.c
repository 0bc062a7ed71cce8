/* fuzz_cross.c - requests of the direct APIs for a provider of another format: what was made of one is JSON that the core's
 * reader takes, or it is refused with a place.
 *
 * [0] is the API. */
#include "codec/base/must.h"
#include "codec/cross/cross.h"
#include "codec/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_work *work;
static struct arena_pool pool = { .keep_max = 64 };

enum { MEMORY = 1 << 26, TOKENS = 100 };

static void check(enum api api, struct slice body, struct arena *into)
{
	struct api_request request;
	struct cross_request made;
	struct sampling_request read;
	struct jsonrpc rpc;
	struct fault fault;

	if (api_request_read(api, body, work, into, &request, &fault) != ERR_OK)
		return;
	if (cross_request_make(&request, TOKENS, work, into, &made, &fault) != ERR_OK) {
		must(fault.err == ERR_FIELD && fault.path.len != 0 && fault.detail != NULL);
		return;
	}
	const enum err err = sampling_read(made.body, REVISION_2025_11_25, NULL, work, into, &rpc,
					   &read, &fault);
	must(err != ERR_JSON && err != ERR_DUPLICATE_KEY && err != ERR_REQUEST);
	if (err != ERR_OK)
		return;
	must(read.max_tokens == (int64_t)(request.tokens == 0 ? TOKENS : request.tokens));
	must(made.schema == (read.tool_count == 1 &&
			     json_str_eq(read.tools[0].name, SLICE(SCHEMA_TOOL_NAME))) ||
	     !made.schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;

	if (size == 0)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	arena_init(&arena, &pool, MEMORY);
	check((data[0] & 1) != 0 ? API_CHAT : API_MESSAGES,
	      slice_of((const char *)data + 1, size - 1), &arena);
	arena_give(&arena);
	return 0;
}
