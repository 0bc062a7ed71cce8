/* wrap_message.h - one JSON-RPC message on a line, and the edits that a wrapper makes in it: by bytes, so that
 * everything else stays as its author wrote it. Pure. */
#ifndef GATEWAY_WRAP_WRAP_MESSAGE_H
#define GATEWAY_WRAP_WRAP_MESSAGE_H

#include "gateway/wrap/wrap_json.h"
#include "gateway/wrap/wrap_text.h"

enum wrap_message_kind {
	WRAP_REQUEST,
	WRAP_NOTIFICATION,
	WRAP_RESPONSE,
	WRAP_ODD, /* an object that is none of them: it is passed on */
};

/* Slices of the line; absent where there is no such member. */
struct wrap_message {
	enum wrap_message_kind kind;
	struct slice id; /* a string or a number; absent: neither */
	struct slice method, params, result, error;
};

/* `object` is an object. */
void wrap_message_read(struct slice object, struct wrap_message *out);

/* A request to sample: the one kind that is answered here. */
bool wrap_message_samples(const struct wrap_message *message);

/* The id that notifications/cancelled is about; absent: it is another message, or names none. */
struct slice wrap_message_cancels(const struct wrap_message *message);

/* ---- edits ---- */

/* `at` is a part of the text, perhaps empty, in whose place `put` is written. */
struct wrap_edit {
	struct slice at, put;
};

enum { WRAP_EDITS_MAX = 4 };

/* Adds `text` with the edits made, WRAP_EDITS_MAX at most, which do not overlap and may come in any order. */
void wrap_edit(struct wrap_text *out, struct slice text, const struct wrap_edit *edits,
	       size_t count);

/* Adds `text` with `value` as member `name` of `object`, an object in it: replaced where it is there, else put in
 * front. */
void wrap_edit_member(struct wrap_text *out, struct slice text, struct slice object,
		      const char *name, struct slice value);

typedef bool wrap_drops_fn(void *arg, const struct wrap_json_walk *member);

/* Adds an object or array without the members that `drops` is true of; returns how many are left. The others stay as
 * they are, white space too. */
size_t wrap_edit_without(struct wrap_text *out, struct slice container, wrap_drops_fn *drops,
			 void *arg);

/* A drops function: whether the member has the name `arg`, a NUL-terminated text. */
bool wrap_drops_name(void *arg, const struct wrap_json_walk *member);

/* ---- answers ---- */

/* Adds a response and its line feed. `good`: `json` is the result, else the error. */
void wrap_message_answer(struct wrap_text *out, struct slice id, bool good, struct slice json);

/* Adds an error object. `more` NULL, or further members of `data` as JSON text. */
void wrap_message_error(struct wrap_text *out, int code, const char *text, const char *reason,
			const char *more);

#endif
