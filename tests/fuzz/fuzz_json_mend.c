/* What json_mend makes of a text is strict JSON of the same length; strict JSON stays as it is, and what was mended
 * once needs no more of it. */
#include "codec/base/must.h"
#include "codec/json/json_mend.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tight(struct slice text, struct json_work *work)
{
	struct arena_pool pool = { .keep_max = 0 };
	struct arena arena;

	arena_init(&arena, &pool, 2 * text.len + 64);
	const struct slice tight = json_tight(text, &arena);
	must(!slice_absent(tight) && tight.len <= text.len);
	must(json_valid(tight, NULL, work, NULL));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work;
	struct json_mend mend;
	char *text;

	if (work == NULL)
		work = json_work_new(codec_set_best());
	text = malloc(size == 0 ? 1 : size);
	must(work != NULL && text != NULL);
	if (size != 0)
		(void)memcpy(text, data, size);
	const struct slice same = slice_of(text, size);
	const bool strict = json_valid(same, NULL, work, NULL);
	const bool made = json_mend(text, size, NULL, work, &mend);
	must(!strict || (made && mend.removed == 0 && memcmp(text, data, size) == 0));
	if (made) {
		must(json_valid(same, NULL, work, NULL));
		check_tight(same, work);
		must(json_mend(text, size, NULL, work, &mend) && mend.removed == 0);
	}
	free(text);
	return 0;
}
