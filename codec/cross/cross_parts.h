/* cross_parts.h - what the parts of cross_request_make share; private to codec/cross. */
#ifndef CODEC_CROSS_CROSS_PARTS_H
#define CODEC_CROSS_CROSS_PARTS_H

#include "codec/cross/cross.h"
#include "codec/json/json_loose.h"

struct cross {
	const struct api_request *q;
	uint32_t tokens;
	struct json_work *work;
	struct arena *into;
	struct fault *fault;
	struct gather g;
	adjust_set adjustments;
	bool schema;
	bool comma; /* in front of the next message */
};

/* Where something stands in the body: messages.0.content.1, and for Chat messages[0].content[1]. */
struct cross_at {
	const char *list;
	uint32_t item;     /* CROSS_NO_ITEM: the list alone */
	const char *inner; /* NULL: nothing inside of it */
	uint32_t inner_item;
};
enum { CROSS_NO_ITEM = UINT32_MAX };

/* Notes the first fault, ERR_FIELD, unless one is there. False. */
bool cross_refuse(struct cross *c, const struct cross_at *at, const char *detail);
/* Likewise ERR_BUSY. False. */
bool cross_busy(struct cross *c);

/* Opens a value that has to be an array; a null, and a member that is not there, are empty ones. False: refused. */
bool cross_open(struct cross *c, struct json_loose_walk *walk, struct slice array,
		const struct cross_at *at);

/* Values of the members with these names, plain ASCII; absent: there is none, or it is null. One walk. */
void cross_members(struct slice object, const char *const *names, size_t count, struct slice *out);

static inline bool cross_is(struct slice value, enum json_loose_kind kind)
{
	return json_loose_kind(value) == kind;
}

/* The inside of a string's value. */
static inline struct slice cross_inside(struct slice string)
{
	return slice_of(string.at + 1, string.len - 2);
}

/* ---- writing ---- */

void cross_open_message(struct cross *c, bool assistant);
void cross_close_message(struct cross *c);
/* A content block; *first: none stands in front of it yet. `string`: JSON text of a string. */
void cross_put_text(struct cross *c, bool *first, struct slice string);
/* `data`: JSON text of a string, base64 or a data URI; `mime`: the inside of a string. `type`: image or audio. */
void cross_put_media(struct cross *c, bool *first, const char *type, struct slice data,
		     struct slice mime);
/* `id`, `name`: JSON text of strings; `input`: of an object. */
void cross_put_use(struct cross *c, bool *first, struct slice id, struct slice name,
		   struct slice input);
void cross_open_result(struct cross *c, bool *first, struct slice id);
void cross_close_result(struct cross *c, bool is_error);

/* ---- cross_chat.c, cross_messages.c ---- */

/* Pieces of the system prompt, each by `put` (the inside of a string). False: refused. */
bool cross_chat_system(struct cross *c, void (*put)(struct cross *c, struct slice inside));
bool cross_messages_system(struct cross *c, void (*put)(struct cross *c, struct slice inside));

/* All messages but those. False: refused. */
bool cross_chat_history(struct cross *c);
bool cross_messages_history(struct cross *c);

/* ---- cross_tools.c ---- */

/* The members tools and toolChoice, each with a comma in front. `schema`: of the answer that is asked for; absent: none. */
bool cross_tools(struct cross *c, struct slice tools, struct slice choice, struct slice parallel,
		 struct slice schema);

#endif
