/* fuzz_codec_oracle.c - simdjson as the judge of what is JSON, and of what its strings mean.
 *
 * Where it is as strict as we are. We refuse more: a key twice, more than 64 levels, more than 4,096
 * keys. It cannot hold every number, and says so; and the half of a surrogate pair that comes second, alone,
 * passes in Debian's 3.0.1. */
#include "codec/base/must.h"
#include "codec/set.h"
#include "tests/support/json_oracle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 64 * 1024, ARENA_CAP = 1024 * 1024 };

static void add(uint64_t *sum, struct slice raw, struct arena *into)
{
	struct slice plain = json_str_plain(raw, into);

	must(!slice_absent(plain));
	*sum = json_oracle_add(*sum, plain.at, plain.len);
}

/* All strings of a valid text, keys too, as the oracle adds them. */
static uint64_t sum_strings(struct slice text, struct arena *into)
{
	uint64_t objects = 0, sum = 0; /* a bit for each open container: is it an object? */
	uint32_t depth = 0;
	struct json_reader r;
	struct slice raw;

	json_open(&r, text, NULL, NULL);
	do {
		switch (json_peek(&r)) {
		case JSON_OBJECT:
			must(json_enter_object(&r));
			objects = objects << 1 | 1;
			depth++;
			break;
		case JSON_ARRAY:
			must(json_enter_array(&r));
			objects <<= 1;
			depth++;
			break;
		case JSON_STRING:
			must(json_string(&r, &raw));
			add(&sum, raw, into);
			break;
		default:
			must(json_skip(&r, NULL));
		}
		while (depth > 0) {
			if (objects & 1 ? json_next_key(&r, &raw) : json_next_item(&r)) {
				if (objects & 1)
					add(&sum, raw, into);
				break;
			}
			objects >>= 1;
			depth--;
		}
	} while (depth > 0);
	must(json_finish(&r));
	return sum;
}

static bool is_ours_alone(const struct fault *fault)
{
	return fault->err == ERR_DUPLICATE_KEY || fault->err == ERR_TOO_DEEP ||
	       fault->err == ERR_TOO_MANY_KEYS ||
	       slice_has_nocase(slice_str(fault->detail), SLICE("surrogate"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work; /* the fuzzer's own state: made once */
	struct arena_pool pool = { .keep_max = 64 };
	struct slice text = slice_of((const char *)data, size);
	struct fault fault = { .err = ERR_OK };
	struct arena arena;
	uint64_t strings = 0;

	if (size > TEXT_MAX)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	bool valid = json_work_set(work)->json_valid(text, NULL, work, &fault);
	enum json_verdict verdict = json_oracle(text.at, text.len, &strings);
	if (verdict == JSON_VERDICT_UNKNOWN || (!valid && is_ours_alone(&fault)))
		return 0;
	must(valid == (verdict == JSON_VERDICT_VALID));
	if (!valid)
		return 0;
	arena_init(&arena, &pool, ARENA_CAP);
	must(sum_strings(text, &arena) == strings);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
