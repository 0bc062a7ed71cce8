/* json_loose.h - finds members in JSON text without judging the rest of it.
 *
 * json_read.h refuses what a gateway has to refuse: duplicate keys, depth over 64, broken UTF-8. A proxy must see each
 * message as the peer behind it would, and pass on what it does not understand. So this scan knows strings, brackets
 * and separators only, takes the last of several members of one name as JSON.parse does, and has no bound but the
 * text's length. No recursion, no allocation, linear time.
 *
 * Values are slices of the text: strings with their quotes, without white space around. */
#ifndef CODEC_JSON_JSON_LOOSE_H
#define CODEC_JSON_JSON_LOOSE_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum json_loose_kind {
	JSON_LOOSE_NONE, /* absent or empty */
	JSON_LOOSE_NULL,
	JSON_LOOSE_STRING,
	JSON_LOOSE_NUMBER,
	JSON_LOOSE_OBJECT,
	JSON_LOOSE_ARRAY,
	JSON_LOOSE_OTHER, /* true, false, and what is no JSON */
};

/* By its first byte. */
enum json_loose_kind json_loose_kind(struct slice value);

/* Whether `text` is one value and white space; *value is that value. */
MUST_USE bool json_loose_whole(struct slice text, struct slice *value);

/* ---- walks ---- */

/* A walk over the members of an object or the items of an array. */
struct json_loose_walk {
	/* of the member that json_loose_next has moved to */
	struct slice name; /* with quotes; absent in an array */
	struct slice value;
	struct slice part; /* everything between the two separators, white space too */
	/* private, but for `over` (the member was the last one) and `bad` (the text is not JSON) */
	const char *at, *end;
	const char *from; /* of the part under way */
	char close;
	bool over, bad;
};

/* `value` is an object or an array, as cut off by a function of this header; anything else has no members. */
void json_loose_open(struct json_loose_walk *walk, struct slice value);

/* Moves to the next member; false at the end, or where the text is not JSON (then walk->bad). */
MUST_USE bool json_loose_next(struct json_loose_walk *walk);

/* The same in three steps, for a caller that reads values in the same pass: json_loose_name moves to the next member and
 * sets its name. Then walk->at is where its value begins. json_loose_value cuts the value off, or the caller has walked
 * it with json_loose_enter and gives its end to json_loose_step. False: as json_loose_next. */
MUST_USE bool json_loose_name(struct json_loose_walk *walk);
MUST_USE bool json_loose_value(struct json_loose_walk *walk);
/* Opens the object or array that begins at the value of `outer`; false: it is neither. */
MUST_USE bool json_loose_enter(struct json_loose_walk *walk, const struct json_loose_walk *outer);
/* `inner`, opened by json_loose_enter, is over and not bad: its container is the value of `walk`. */
MUST_USE bool json_loose_leave(struct json_loose_walk *walk, const struct json_loose_walk *inner);

/* Whether an object or array has separators and names where they belong, up to its end. */
bool json_loose_sound(struct slice container);

/* The value of the last member of that name; absent: `object` has none, or is no object, or is not JSON up to its
 * end. `name` is plain ASCII. */
struct slice json_loose_member(struct slice object, const char *name);

/* Whether one of the `count` names, plain ASCII, is there twice in an object, compared by what names mean. False for
 * what is no object; in one that is not JSON only what stands before the fault counts. */
bool json_loose_twice(struct slice object, const char *const *names, size_t count);

/* ---- what values mean ---- */

/* Whether a value is a string that means exactly `plain`, which is ASCII. */
bool json_loose_is(struct slice value, const char *plain);

/* Whether two ids are one: strings by what they mean, numbers by their value, exactly. 1 and "1" are two. What is no
 * valid string or number is only itself, byte by byte. */
bool json_loose_same_id(struct slice a, struct slice b);

/* A text of an id, a string or number, that two ids share exactly if json_loose_same_id holds of them: for keys and
 * digests. It is `id` itself, or in `into`; absent: memory is exhausted, or `id` is neither string nor number. */
MUST_USE struct slice json_loose_id_text(struct slice id, struct arena *into);

/* The double that a number is, if it is one by JSON's rules; false: it is not. */
MUST_USE bool json_loose_number(struct slice value, double *out);

/* Whether all of `text` is UTF-8 (RFC 3629). */
bool json_loose_utf8(struct slice text);

#endif
