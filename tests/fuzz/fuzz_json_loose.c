/* fuzz_json_loose.c - the loose scan against the reader that judges, and against itself.
 *
 * The input is a text; split at its first line feed it is two ids as well. */
#include "codec/base/must.h"
#include "codec/json/json_loose.h"
#include "codec/json/json_read.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ids(struct slice a, struct slice b)
{
	struct arena_pool pool = { .keep_max = 0 };
	struct arena arena;

	arena_init(&arena, &pool, SIZE_MAX);
	const struct slice x = json_loose_id_text(a, &arena), y = json_loose_id_text(b, &arena);
	must(json_loose_same_id(a, b) == (!slice_absent(x) && slice_eq(x, y)));
	must(json_loose_same_id(b, a) == json_loose_same_id(a, b));
	must(slice_absent(x) || json_loose_same_id(a, a));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static bool is_within(struct slice part, struct slice whole)
{
	return part.at >= whole.at && part.at + part.len <= whole.at + whole.len;
}

/* Whether each value of a container is one for itself, and walked as a container gives the same end. */
static void check_walk(struct slice container)
{
	struct json_loose_walk walk, stepped, inner;
	struct slice value;

	json_loose_open(&walk, container);
	json_loose_open(&stepped, container);
	while (json_loose_next(&walk)) {
		must(is_within(walk.part, container) && is_within(walk.value, walk.part));
		must(json_loose_whole(walk.value, &value) && slice_eq(value, walk.value));
		must(json_loose_name(&stepped));
		bool walked = json_loose_enter(&inner, &stepped);
		while (walked && json_loose_next(&inner))
			continue;
		walked = walked && !inner.bad;
		must(walked ? json_loose_leave(&stepped, &inner) : json_loose_value(&stepped));
		must(stepped.value.at == walk.value.at && stepped.value.len == walk.value.len);
		must(slice_eq(stepped.part, walk.part));
	}
	must(json_loose_sound(container) == !walk.bad);
}

/* What the reader finds good, the scan finds sound, and its members are the same. */
static void check_reader(struct slice text, struct slice object, struct json_work *work)
{
	struct json_loose_walk walk;
	struct json_reader r;
	struct slice key, raw;

	if (!json_valid(text, NULL, work, NULL))
		return;
	must(!slice_absent(object) && json_loose_utf8(text));
	if (json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return;
	json_open(&r, text, NULL, NULL);
	must(json_enter_object(&r));
	json_loose_open(&walk, object);
	while (json_next_key(&r, &key)) {
		must(json_skip(&r, &raw));
		must(json_loose_next(&walk));
		must(walk.name.at + 1 == key.at && walk.name.len == key.len + 2);
		must(walk.value.at == raw.at && walk.value.len == raw.len);
	}
	must(!json_loose_next(&walk) && !walk.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "id", "method" };
	static struct json_work *work;
	const struct slice text = slice_of((const char *)data, size);
	struct slice value = { NULL, 0 }, rest = text;

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	const struct slice first = size == 0 ? text : slice_cut(&rest, '\n');
	if (!slice_absent(rest))
		check_ids(first, rest);
	if (size != 0 && json_loose_whole(text, &value)) {
		check_walk(value);
		must(json_loose_twice(value, names, 1) <= json_loose_twice(value, names, 2));
	}
	if (size != 0)
		check_reader(text, value, work);
	return 0;
}
