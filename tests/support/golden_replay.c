#include "tests/support/golden_replay.h"

#include "codec/base/must.h"
#include "codec/dialect/replay.h"
#include "codec/dialects.h"
#include "codec/set.h"

enum { TURNS_MAX = 16 }; /* of a vector, and calls of a turn */

struct past {
	const struct vector *vector;
	struct json_work *work;
	struct arena *arena;
};

/* A string of the vector as plain text; absent when it is not there. */
static struct slice plain_at(const struct past *g, const struct json_tree *tree, const char *path)
{
	const struct json_tree *node = json_tree_get(tree, path);

	if (node == NULL || node->kind != JSON_STRING)
		return (struct slice){ NULL, 0 };
	struct slice plain = json_str_plain(node->text, g->arena);
	must(!slice_absent(plain));
	return plain;
}

/* The calls of a turn: as the remembered answer had them where it has its own, else as the history has
 * them. */
static struct sampling_result calls_of(const struct past *g, const struct json_tree *entry,
				       const struct sampling_request *request,
				       const struct message *turn)
{
	const struct json_tree *content = json_tree_get(entry, "content");
	struct result_block *blocks = arena_zero(g->arena, TURNS_MAX * sizeof(*blocks));
	uint32_t count = 0;

	must(blocks != NULL && turn->count <= TURNS_MAX);
	for (const struct json_tree *item = content == NULL ? NULL : content->first; item != NULL;
	     item = item->next) {
		if (json_tree_get(item, "input") == NULL)
			continue;
		must(count < TURNS_MAX);
		blocks[count++] = (struct result_block){
			.is_tool_use = true,
			.id = json_tree_get(item, "id")->text,
			.name = json_tree_get(item, "name")->text,
			.input = golden_value(g->vector, json_tree_get(item, "input")),
		};
	}
	for (uint32_t i = 0; content == NULL && i < turn->count; i++) {
		const struct block *block = &request->blocks[turn->first + i];
		if (block->type == BLOCK_TOOL_USE)
			blocks[count++] = (struct result_block){ .is_tool_use = true,
								 .id = block->use.id,
								 .name = block->use.name,
								 .input = block->use.input };
	}
	return (struct sampling_result){ .blocks = blocks, .block_count = count };
}

struct slice golden_replay_content(const struct vector *vector, struct arena *arena,
				   const struct json_tree *entry)
{
	const struct json_tree *content = json_tree_get(entry, "content");
	const struct json_tree *reasoning = json_tree_get(entry, "reasoning_content");
	struct gather text;

	if (entry == NULL)
		return vector->dialect == DIALECT_ANTHROPIC
			       ? SLICE("[{\"type\":\"thinking\",\"thinking\":\"lost\"}]")
			       : SLICE("{\"reasoning_content\":\"lost\"}");
	if (content != NULL)
		return golden_value(vector, content);
	must(reasoning != NULL);
	gather_init(&text, arena);
	gather_lit(&text, "{\"reasoning_content\":");
	gather_str(&text, reasoning->text);
	gather_lit(&text, "}");
	return gather_flat(&text, arena);
}

/* The record that the answer at message `m` had left, after the request that ends in front of it, when
 * nothing was lost (in->replay). */
static struct slice record_of(const struct past *g, const struct encode_in *in, uint32_t m,
			      const struct json_tree *entry)
{
	struct sampling_request before = *in->request;
	struct encode_in then = *in;
	struct encode_out sent;
	struct fault fault;

	before.message_count = m;
	then.request = &before;
	must(dialect_encode(dialect_get(g->vector->dialect), &then, g->work, g->arena, &sent,
			    &fault) == ERR_OK);
	if (entry != NULL)
		sent.decode.requested_model = plain_at(g, entry, "model");
	struct sampling_result result = calls_of(g, entry, in->request, &in->request->messages[m]);
	result.replay = golden_replay_content(g->vector, g->arena, entry);
	return replay_write(dialect_get(g->vector->dialect),
			    entry != NULL ? plain_at(g, entry, "provider") : in->provider, &sent,
			    &result, g->arena);
}

void golden_remember(const struct vector *vector, struct json_work *work, struct arena *arena,
		     struct encode_in *in)
{
	const struct past past = { vector, work, arena }, *g = &past;
	const struct json_tree *store = json_tree_get(g->vector->tree, "replay_store");
	struct slice *records = arena_zero(g->arena, TURNS_MAX * sizeof(*records));
	struct slice *then = arena_zero(g->arena, TURNS_MAX * sizeof(*then));
	uint32_t m = 0, call, turn = 0;

	must(records != NULL && then != NULL);
	in->provider = plain_at(g, g->vector->tree, "config.provider");
	if (store == NULL)
		return;
	in->replay = then;
	in->replay_count = TURNS_MAX;
	for (; (m = replay_next_turn(in->request, m, &call)) != REPLAY_NO_TURN; m++) {
		const struct json_tree *entry = store->first;
		while (entry != NULL &&
		       !json_str_same(entry->key, in->request->blocks[call].use.id))
			entry = entry->next;
		must(turn < TURNS_MAX);
		then[turn] = record_of(g, in, m, entry);
		must(!slice_absent(then[turn]));
		if (entry != NULL)
			records[turn] = then[turn];
		turn++;
	}
	in->replay = records;
}
