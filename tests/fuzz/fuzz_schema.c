/* fuzz_schema.c - any schema against any value: it ends within its steps, says the same each time, and names what
 * is wrong where something is.
 *
 * The input is two JSON texts with a NUL between them; what is not JSON is not looked at, as the callers
 * promise. A byte in front says which take of memory fails, '0' none. */
#include "codec/base/must.h"
#include "codec/schema/schema.h"
#include "codec/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_CAP = 32 << 20 };

static void must_be_text(struct slice text)
{
	must(!slice_absent(text) && text.len != 0 && text.len <= SCHEMA_PATH_MAX);
}

static void check_finding(const struct schema_finding *found)
{
	must(found->steps <= SCHEMA_STEPS_MAX + 1 && found->looks <= SCHEMA_LOOKS_MAX + 1);
	must((found->keyword != NULL) == (found->verdict == SCHEMA_VIOLATED));
	if (found->verdict != SCHEMA_VIOLATED)
		return;
	must_be_text(found->path);
	must_be_text(found->schema_path);
	must(found->path.at[0] == '$' && found->schema_path.at[0] == '#');
}

static enum err check(struct slice schema_text, struct slice value, struct json_work *work,
		      struct arena *arena, struct schema_finding *found)
{
	struct schema schema;
	enum err err = schema_read(schema_text, work, arena, &schema);

	must(err == ERR_OK || err == ERR_BUSY || err == ERR_TOOL);
	if (err == ERR_OK)
		err = schema_check(&schema, value, arena, found);
	if (err == ERR_OK)
		check_finding(found);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work; /* kept */
	struct arena_pool pool = { .fail_next = 0 };
	struct schema_finding first, second;
	struct arena arena;

	if (size < 2)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	struct slice rest = slice_of((const char *)data + 1, size - 1);
	const struct slice schema = slice_cut(&rest, '\0');
	if (slice_absent(rest) || schema.len == 0 || schema.at[0] != '{' ||
	    !json_valid(schema, NULL, work, NULL) || !json_valid(rest, NULL, work, NULL))
		return 0;
	arena_init(&arena, &pool, ARENA_CAP);
	pool.fail_next = data[0] == '0' ? 0 : data[0];
	const enum err err = check(schema, rest, work, &arena, &first);
	pool.fail_next = 0;
	const enum err again = check(schema, rest, work, &arena, &second);
	if (err == ERR_OK && again == ERR_OK) {
		must(first.verdict == second.verdict && first.steps == second.steps &&
		     first.looks == second.looks);
		must(slice_eq(first.path, second.path));
	}
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
