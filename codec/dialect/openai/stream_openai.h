/* stream_openai.h - what the two halves of the Chat Completions stream have in common; private to codec/. */
#ifndef CODEC_DIALECT_OPENAI_STREAM_OPENAI_H
#define CODEC_DIALECT_OPENAI_STREAM_OPENAI_H

#include "codec/dialect/stream_parts.h"

enum {
	CHOICE_LAST = STREAM_CHOICES - 1, /* the choices behind it count as this one */
	CHOICE_CALLS = 128,               /* places for each choice's calls */
};

/* Places in at_index: calls have the indexes of the wire, and what exists once is behind them. */
enum {
	INDEX_CALLS = STREAM_BLOCKS_MAX - 6,
	INDEX_TEXT =
		INDEX_CALLS, /* of choice 0; those of others are in front of it, where calls hardly ever are */
	INDEX_REASONING_CONTENT, /* two spellings of the same, which go back as they came */
	INDEX_REASONING,
	INDEX_REFUSAL,
	INDEX_AUDIO,
	INDEX_OLD_CALL, /* function_call, from before there were several */
};

/* See struct stream_dialect. */
void stream_openai_finish(struct stream *s);
void stream_openai_replay(struct stream *s, const struct sampling_result *result);

#endif
