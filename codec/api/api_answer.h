/* api_answer.h - a provider's JSON answer in the caller's own format: what the gateway looks at, and its one change.
 *
 * Loose as codec/json/json_loose.h: the bytes pass, whatever they are. What the answer costs, and whether it is one, is
 * read by the format's own reader (codec/dialect), as for every other caller. */
#ifndef CODEC_API_API_ANSWER_H
#define CODEC_API_API_ANSWER_H

#include "codec/api/api.h"
#include "codec/mcp/mcp_edit.h"

/* Values are slices of the body, strings with their quotes; absent: there is no such member. */
struct api_answer {
	struct slice object; /* all of it, without white space around */
	struct slice id, model, usage;
	struct slice stop; /* stop_reason, or finish_reason of the last choice */
	struct slice error;
	struct slice input_tokens; /* of count_tokens */
	uint32_t choices;          /* of Chat */
};

/* False: the body is no JSON object, and *out is empty. */
bool api_answer_read(enum api api, struct slice body, struct api_answer *out);

/* The value of `model` in the body of an answer. `told`: the inside of that value, where the format's reader has found it, so
 * that nothing is looked for; a part of anything but the body says nothing. Absent: there is none. */
struct slice api_answer_model(enum api api, struct slice body, struct slice told);

/* `model`, JSON text of a string, stands in place of `there`, the provider's; where that is absent, none is put in. */
void api_answer_edit(struct slice there, struct slice model, struct mcp_edits *edits);

/* The answer to count_tokens where it is an estimate of ours: at least 1, because callers believe what they get. */
void api_count_write(struct gather *g, uint64_t tokens);

#endif
