#include "codec/base/must.h"
#include "codec/dialect/dialect_text.h"
#include "codec/dialect/stream_parts.h"
#include "codec/json/json_escape.h"

/* A piece and what the arena puts before it fit its chunk, so that none is allocated but by a pool. */
enum {
	PIECE_FIRST = STREAM_TEXT_LEAST - sizeof(struct stream_piece),
	PIECE_NEXT = ARENA_CHUNK_BYTES - 64 - sizeof(struct stream_piece),
};

static bool text_grow(struct stream *s, struct stream_text *text)
{
	uint32_t room = text->first == NULL ? PIECE_FIRST : PIECE_NEXT;
	struct stream_piece *piece = arena_take(s->answer.into, sizeof(*piece) + room);

	if (piece == NULL) {
		answer_no_memory(&s->answer);
		return false;
	}
	*piece = (struct stream_piece){ .room = room };
	if (text->first == NULL)
		text->first = piece;
	else
		text->last->next = piece;
	text->last = piece;
	text->end = piece->bytes;
	text->room = room;
	return true;
}

static struct slice piece_bytes(const struct stream_text *text, const struct stream_piece *piece)
{
	return slice_of(piece->bytes, piece->room - (piece == text->last ? text->room : 0));
}

bool stream_text_put(struct stream *s, struct stream_text *text, struct slice bytes)
{
	while (bytes.len != 0) {
		if (text->room == 0 && !text_grow(s, text))
			return false;
		size_t len = bytes.len < text->room ? bytes.len : text->room;
		(void)memcpy(text->end, bytes.at, len);
		text->end += len;
		text->room -= (uint32_t)len;
		text->len += len;
		bytes = slice_of(bytes.at + len, bytes.len - len);
	}
	return true;
}

void stream_text_drop_half(struct stream_text *text)
{
	size_t cut = STREAM_HALF;

	if (!text->half)
		return;
	text->half = false;
	must(text->len >= cut);
	text->len -= cut;
	const size_t there = piece_bytes(text, text->last).len;
	if (there < cut) { /* it lies across two pieces */
		struct stream_piece *before = text->first;
		while (before->next != text->last)
			before = before->next;
		cut -= there;
		before->next = NULL;
		text->last = before;
		text->end = before->bytes + before->room;
		text->room = 0;
	}
	text->end -= cut;
	text->room += (uint32_t)cut;
}

struct slice stream_text_whole(struct stream *s, struct stream_text *text)
{
	if (text->len == 0)
		return (struct slice){ NULL, 0 };
	if (text->first == text->last)
		return slice_of(text->first->bytes, text->len);
	char *all = arena_take(s->answer.into, text->len), *out = all;
	if (all == NULL) {
		answer_no_memory(&s->answer);
		return (struct slice){ NULL, 0 };
	}
	for (const struct stream_piece *piece = text->first; piece != NULL; piece = piece->next) {
		const struct slice part = piece_bytes(text, piece);
		(void)memcpy(out, part.at, part.len);
		out += part.len;
	}
	must(out == all + text->len);
	return slice_of(all, text->len);
}

bool stream_text_blank(struct stream *s, struct stream_text *text)
{
	/* nearly every text begins with a letter: then its pieces need not be joined */
	return text->len == 0 ||
	       (text_may_be_blank(text->first->bytes[0]) && text_blank(stream_text_whole(s, text)));
}

bool stream_text_means_object(struct stream *s, const struct stream_text *text)
{
	const struct arena *into = s->answer.into;
	struct slice raw = { NULL, 0 }, plain = { NULL, 0 };
	struct arena scratch;
	struct json_reader r;
	struct gather g;
	bool whole = false;

	if (text->half)
		return false;
	arena_init(&scratch, into->pool, into->cap - into->used);
	gather_init(&g, &scratch);
	stream_text_write(&g, text);
	if (gather_done(&g) == ERR_OK)
		raw = gather_flat(&g, &scratch);
	if (!slice_absent(raw))
		plain = json_unescape(slice_of(raw.at + 1, raw.len - 1), &scratch);
	if (slice_absent(plain)) {
		answer_no_memory(&s->answer);
	} else { /* whether keys are there twice is for the end to judge */
		json_open(&r, plain, &answer_args_json, NULL);
		whole = json_peek(&r) == JSON_OBJECT && json_skip(&r, NULL) && json_finish(&r);
	}
	arena_give(&scratch);
	return whole;
}

bool stream_text_ends_with(const struct stream_text *text, struct slice bytes)
{
	size_t skip = text->len - bytes.len; /* not of the end */

	if (bytes.len > text->len)
		return false;
	for (const struct stream_piece *piece = text->first; piece != NULL; piece = piece->next) {
		struct slice part = piece_bytes(text, piece);
		const size_t before = skip < part.len ? skip : part.len;
		skip -= before;
		part = slice_of(part.at + before, part.len - before);
		if (!slice_starts(bytes, part))
			return false;
		bytes = slice_of(bytes.at + part.len, bytes.len - part.len);
	}
	return true;
}

void stream_text_blocks(struct stream *s, struct stream_text *text)
{
	for (const struct stream_piece *piece = text->first; piece != NULL; piece = piece->next)
		answer_add(&s->answer, (struct answer_block){ .kind = ANSWER_TEXT,
							      .text = piece_bytes(text, piece) });
}

void stream_text_write(struct gather *g, const struct stream_text *text)
{
	for (const struct stream_piece *piece = text->first; piece != NULL; piece = piece->next)
		gather_raw(g, piece_bytes(text, piece));
}
