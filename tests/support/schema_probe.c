/* schema_probe.c - codec/schema for scripts: each line of stdin is a schema, a tab and a value, each line of stdout
 * what was found: "holds", "unchecked", "too much", or "violated" with keyword, path and schema path behind
 * tabs; "refused" for a schema that is too large. */
#include "codec/base/must.h"
#include "codec/schema/schema.h"
#include "codec/set.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_CAP = 64 << 20 };

static void print(const struct schema_finding *found)
{
	static const char *const names[] = { "holds", "unchecked", "violated", "too much" };

	(void)printf("%s", names[found->verdict]);
	if (found->verdict == SCHEMA_VIOLATED)
		(void)printf("\t%s\t%.*s\t%.*s", found->keyword, (int)found->path.len,
			     found->path.at, (int)found->schema_path.len, found->schema_path.at);
	(void)printf("\n");
}

static void check(struct slice line, struct json_work *work, struct arena *arena)
{
	const struct slice schema_text = slice_cut(&line, '\t');
	struct schema schema;
	struct schema_finding found;

	must(json_valid(schema_text, NULL, work, NULL) && json_valid(line, NULL, work, NULL));
	const enum err err = schema_read(schema_text, work, arena, &schema);
	must(err != ERR_BUSY);
	if (err != ERR_OK) {
		(void)printf("refused\n");
		return;
	}
	must(schema_check(&schema, line, arena, &found) == ERR_OK);
	print(&found);
}

int main(void)
{
	struct json_work *work = json_work_new(codec_set_best());
	struct arena_pool pool = { .keep_max = 1024 };
	struct arena arena;
	char *line = NULL;
	size_t room = 0;

	must(work != NULL);
	for (ssize_t len; (len = getline(&line, &room, stdin)) > 0; arena_give(&arena)) {
		arena_init(&arena, &pool, ARENA_CAP);
		check(slice_of(line, (size_t)len - 1), work, &arena);
	}
	free(line);
	arena_pool_fini(&pool);
	json_work_free(work);
	return 0;
}
