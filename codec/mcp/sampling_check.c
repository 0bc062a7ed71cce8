/* sampling_check.c - the rules over the whole history (contract/mcp.md 4.2 V14 to V19, 7) and V11.
 *
 * One pass over the messages. The ids of the calls that wait for results are a set on the work area,
 * which is free by then; so are the ids of the results. */
#include "codec/mcp/sampling_decode.h"

#include "codec/base/must.h"
#include "codec/json/json_keys.h"

struct history {
	struct decode *d;
	struct message *messages;
	uint32_t count;
	const struct block *blocks;

	bool pending;           /* calls wait for their results */
	struct json_level uses; /* the set of their ids */
	struct message calls;
	uint32_t calls_index; /* of their message, as sent */
};

struct shape {
	bool any_use, any_result, only_results;
};

static struct shape shape_of(const struct history *h, const struct message *message)
{
	struct shape shape = { .only_results = message->count != 0 };

	for (uint32_t i = message->first; i < message->first + message->count; i++) {
		uint8_t type = h->blocks[i].type;
		shape.any_use |= type == BLOCK_TOOL_USE;
		shape.any_result |= type == BLOCK_TOOL_RESULT;
		shape.only_results &= type == BLOCK_TOOL_RESULT;
	}
	return shape;
}

/* ---- where: the path of a message or of one of its blocks ---- */

static bool at_message(struct history *h, uint32_t index)
{
	(void)decode_in_member(h->d, "content");
	(void)decode_in_item(h->d, index);
	return decode_in_member(h->d, "messages");
}

/* `index` is the message's own or, when several are one, the first of them. */
static bool at_block(struct history *h, uint32_t index, uint32_t block)
{
	while (block >= h->messages[index].first + h->messages[index].count)
		index++;
	if (h->messages[index].count > 1)
		(void)decode_in_item(h->d, block - h->messages[index].first);
	return at_message(h, index);
}

static const struct block *first_of(const struct history *h, const struct message *message,
				    uint8_t type)
{
	const struct block *block = &h->blocks[message->first];

	while (block->type != type)
		block++;
	return block;
}

static struct slice id_of(const struct block *block)
{
	return block->type == BLOCK_TOOL_USE ? block->use.id : block->result.id;
}

/* ---- sets of ids ---- */

/* Adds the id of block `i`; V17. */
static bool add_id(struct history *h, struct json_level *set, uint32_t index, uint32_t i)
{
	struct decode *d = h->d;
	struct slice id = id_of(&h->blocks[i]);
	bool escaped = memchr(id.at, '\\', id.len) != NULL;
	const char *detail = h->blocks[i].type == BLOCK_TOOL_USE
				     ? "Duplicate tool_use id \"%.*s\" in one message"
				     : "Duplicate tool_result for tool_use \"%.*s\"";

	enum json_keys_answer answer =
		json_keys_add(d->work, set, KEYS_SET_MAX, id, escaped, d->body.at + d->body.len);
	if (answer == KEYS_ADDED)
		return true;
	must(answer == KEYS_DUPLICATE); /* blocks_max is below what a set holds */
	(void)decode_refuse_naming(d, ERR_TOOL_ID_DUPLICATE, id, detail);
	return at_block(h, index, i);
}

/* The calls of a message wait from now on. */
static bool begin_calls(struct history *h, const struct message *message, uint32_t index)
{
	h->pending = true;
	h->calls = *message;
	h->calls_index = index;
	json_keys_begin(h->d->work, &h->uses, 0);
	for (uint32_t i = message->first; i < message->first + message->count; i++)
		if (h->blocks[i].type == BLOCK_TOOL_USE && !add_id(h, &h->uses, index, i))
			return false;
	return true;
}

static bool missing(struct history *h, uint32_t call)
{
	(void)decode_refuse_naming(
		h->d, ERR_TOOL_RESULT_MISSING, h->blocks[call].use.id,
		"Tool result missing in request: nothing answers tool_use \"%.*s\"");
	return at_block(h, h->calls_index, call);
}

static bool first_missing(struct history *h)
{
	return missing(h, (uint32_t)(first_of(h, &h->calls, BLOCK_TOOL_USE) - h->blocks));
}

static bool orphan(struct history *h, uint32_t index, uint32_t block)
{
	(void)decode_refuse_naming(h->d, ERR_TOOL_RESULT_ORPHAN, h->blocks[block].result.id,
				   "tool_result \"%.*s\" does not follow a tool_use with that id");
	return at_block(h, index, block);
}

/* The waiting calls are over. */
static bool answered(struct history *h)
{
	json_keys_end(h->d->work, &h->uses);
	h->pending = false;
	return true;
}

/* Whether the results [first, end) answer the waiting calls one for one and in their order. */
static bool in_order(const struct history *h, uint32_t first, uint32_t end)
{
	uint32_t call = h->calls.first, calls_end = call + h->calls.count;

	for (uint32_t i = first;; i++, call++) {
		while (call < calls_end && h->blocks[call].type != BLOCK_TOOL_USE)
			call++;
		if (call == calls_end || i == end)
			return call == calls_end && i == end;
		if (!slice_eq(h->blocks[i].result.id, h->blocks[call].use.id))
			return false;
	}
}

/* The results [first, end) of messages from `index` on answer the waiting calls, each once. */
static bool end_calls(struct history *h, uint32_t index, uint32_t first, uint32_t end)
{
	struct json_work *work = h->d->work;
	const struct json_key *uses_end = work->key_top;
	struct json_level results;

	if (in_order(h, first, end)) /* as they mostly do; the calls' own ids differ */
		return answered(h);
	json_keys_begin(work, &results, 0);
	for (uint32_t i = first; i < end; i++) {
		if (!add_id(h, &results, index, i))
			return false;
		if (!json_keys_has(work, &h->uses, uses_end, h->blocks[i].result.id))
			return orphan(h, index, i);
	}
	for (uint32_t i = h->calls.first; i < h->calls.first + h->calls.count; i++)
		if (h->blocks[i].type == BLOCK_TOOL_USE &&
		    !json_keys_has(work, &results, work->key_top, h->blocks[i].use.id))
			return missing(h, i);
	json_keys_end(work, &results);
	return answered(h);
}

/* ---- the pass ---- */

/* What one message may not be, whatever stands before it. */
static bool check_shape(struct history *h, uint32_t index, struct shape shape)
{
	const struct message *message = &h->messages[index];
	bool misplaced = message->assistant ? shape.any_result : shape.any_use;

	if (misplaced) {
		const struct block *block = first_of(
			h, message, message->assistant ? BLOCK_TOOL_RESULT : BLOCK_TOOL_USE);
		(void)decode_refuse(h->d, ERR_TOOL_BLOCK_ROLE, id_of(block).at, NULL);
		return at_block(h, index, (uint32_t)(block - h->blocks));
	}
	if (shape.any_result && !shape.only_results) {
		(void)decode_refuse(h->d, ERR_TOOL_RESULTS_MIXED,
				    first_of(h, message, BLOCK_TOOL_RESULT)->result.id.at, NULL);
		return at_message(h, index);
	}
	return true;
}

/* The end of the run of user messages from `index` on that hold only tool results. */
static uint32_t results_end(const struct history *h, uint32_t index)
{
	uint32_t end = index + 1;

	while (end < h->count && !h->messages[end].assistant &&
	       shape_of(h, &h->messages[end]).only_results)
		end++;
	return end;
}

/* Checks the message at `index`, or the run of results that begins there; *next is behind it. */
static bool check_message(struct history *h, uint32_t index, uint32_t *next)
{
	const struct message *message = &h->messages[index];
	struct shape shape = shape_of(h, message);

	*next = index + 1;
	if (!check_shape(h, index, shape))
		return false;
	if (shape.only_results) {
		*next = results_end(h, index);
		if (!h->pending)
			return orphan(h, index, message->first);
		const struct message *last = &h->messages[*next - 1];
		h->d->out->tool_rounds++;
		return end_calls(h, index, message->first, last->first + last->count);
	}
	if (h->pending)
		return first_missing(h);
	if (shape.any_use) {
		h->d->out->call_turns++;
		return begin_calls(h, message, index);
	}
	h->d->out->tool_rounds = 0; /* only what trails counts */
	return true;
}

/* The messages [index, next) as one. */
static struct message merged(const struct history *h, uint32_t index, uint32_t next)
{
	struct message message = h->messages[index];
	const struct message *last = &h->messages[next - 1];

	message.count = last->first + last->count - message.first;
	if (next - index > 1)
		h->d->out->adjustments |= ADJUST_BIT(ADJUST_RESULTS_MERGED);
	return message;
}

bool decode_check_history(struct decode *d)
{
	struct history h = { .d = d,
			     .messages = d->messages.at,
			     .count = d->messages.count,
			     .blocks = d->blocks.at };
	uint32_t next, kept = 0;

	json_keys_clear(d->work);
	for (uint32_t i = 0; i < h.count; i = next) {
		if (!check_message(&h, i, &next))
			return false;
		h.messages[kept++] = merged(&h, i, next); /* kept never passes i */
	}
	d->messages.count = kept;
	return !h.pending || first_missing(&h);
}

bool decode_check_tool_names(struct decode *d)
{
	const struct tool *tools = d->tools.at;
	struct json_level names;

	json_keys_clear(d->work);
	json_keys_begin(d->work, &names, 0);
	for (uint32_t i = 0; i < d->tools.count; i++) {
		struct slice name = tools[i].name;
		bool escaped = memchr(name.at, '\\', name.len) != NULL;
		if (!escaped && d->body.at + d->body.len - name.at >= (ptrdiff_t)sizeof(uint64_t) &&
		    json_keys_add_new(d->work, &names, name.at, name.len))
			continue;
		if (json_keys_add(d->work, &names, KEYS_SET_MAX, name, escaped,
				  d->body.at + d->body.len) == KEYS_ADDED)
			continue;
		(void)decode_refuse_naming(d, ERR_TOOL, name, "duplicate tool name \"%.*s\"");
		(void)decode_in_member(d, "name");
		(void)decode_in_item(d, i);
		return decode_in_member(d, "tools");
	}
	return true;
}
