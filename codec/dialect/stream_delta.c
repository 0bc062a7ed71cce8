#include "codec/dialect/stream_delta.h"

#include "codec/dialect/stream_parts.h"

#include <string.h>

/* Of one block. */
struct stream_told {
	const struct stream_piece *piece; /* NULL: nothing of its text */
	size_t at;                        /* bytes of the piece */
	size_t told;                      /* of the text */
	bool begun, valued;
};

bool stream_deltas_are_whole(const struct decode_context *context)
{
	return !context->schema_wanted && !context->think_tags &&
	       context->emulate_stop_count == 0 && context->alias_count == 0 &&
	       context->keys == NULL;
}

/* Room for all blocks that there are. */
static bool reach(struct stream_cursor *cursor, uint32_t count, struct arena *into)
{
	uint32_t cap = cursor->cap == 0 ? STREAM_BLOCKS_FIRST : cursor->cap;

	if (count <= cursor->cap)
		return true;
	while (cap < count)
		cap *= 2;
	struct stream_told *blocks = arena_zero(into, cap * sizeof(*blocks));
	if (blocks == NULL) {
		cursor->failed = true;
		return false;
	}
	if (cursor->cap != 0)
		(void)memcpy(blocks, cursor->blocks, cursor->cap * sizeof(*blocks));
	cursor->blocks = blocks;
	cursor->cap = cap;
	return true;
}

/* Half of a character may still be taken back (stream_text_drop_half). */
static size_t there(const struct stream_text *text)
{
	return text->half ? text->len - STREAM_HALF : text->len;
}

/* As much of the text as lies in one piece. */
static struct slice take(struct stream_told *told, const struct stream_text *text)
{
	const size_t left = there(text) - told->told;

	if (told->piece == NULL)
		told->piece = text->first;
	else if (told->at == told->piece->room) {
		told->piece = told->piece->next;
		told->at = 0;
	}
	const size_t here = told->piece->room - told->at;
	const struct slice out = slice_of(told->piece->bytes + told->at, left < here ? left : here);
	told->at += out.len;
	told->told += out.len;
	return out;
}

/* Pieces that may still come would count instead. */
static bool has_value(const struct stream_block *block)
{
	return !slice_absent(block->args) && !stream_has_arguments(block);
}

static bool next_of_call(struct stream_told *told, const struct stream_block *block, bool ended,
			 struct stream_delta *out)
{
	if (!told->begun && block->name.len != 0) {
		told->begun = true;
		out->kind = STREAM_DELTA_CALL;
		out->id = block->id;
		out->name = block->name;
		return true;
	}
	if (told->begun && told->told == 0) /* the opening quote */
		(void)take(told, &(struct stream_text){ .first = block->text.first, .len = 1 });
	if (told->begun && ended && !told->valued && has_value(block)) {
		told->valued = true;
		out->kind = STREAM_DELTA_VALUE;
		out->text = block->args;
		return true;
	}
	if (!told->begun || there(&block->text) <= told->told)
		return false;
	out->kind = STREAM_DELTA_ARGS;
	out->text = take(told, &block->text);
	return true;
}

/* Calls that nobody has offered are no part of the answer. */
static bool next_of(const struct stream *s, struct stream_told *told,
		    const struct stream_block *block, bool ended, struct stream_delta *out)
{
	if (block->kind == STREAM_CALL)
		return !s->answer.context->calls_forbidden && next_of_call(told, block, ended, out);
	if (block->kind != STREAM_TEXT || there(&block->text) <= told->told)
		return false;
	out->kind = STREAM_DELTA_TEXT;
	out->text = take(told, &block->text);
	return true;
}

bool stream_next_delta(const struct stream *s, struct stream_cursor *cursor, struct arena *into,
		       struct stream_delta *out)
{
	if (cursor->failed || !reach(cursor, s->block_count, into))
		return false;
	for (; cursor->next < s->block_count; cursor->next++) {
		*out = (struct stream_delta){ .block = cursor->next };
		if (next_of(s, &cursor->blocks[cursor->next], &s->blocks[cursor->next],
			    cursor->ended, out))
			return true;
	}
	cursor->next = 0;
	return false;
}
