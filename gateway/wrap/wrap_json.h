/* wrap_json.h - finds members in JSON text without judging the rest of it; pure.
 *
 * codec/json refuses what a gateway has to refuse: duplicate keys, depth over 64, broken UTF-8. A wrapper must
 * see each message that the peer behind it would see, and pass on what it does not understand. So this scan
 * knows strings, brackets and separators only, takes the last of several members of one name as JSON.parse
 * does, and has no bound but the text's length. No recursion, no allocation, linear time.
 *
 * Values are slices of the text: strings with their quotes, without white space around. */
#ifndef GATEWAY_WRAP_WRAP_JSON_H
#define GATEWAY_WRAP_WRAP_JSON_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum wrap_json_kind {
	WRAP_JSON_NONE, /* absent */
	WRAP_JSON_NULL,
	WRAP_JSON_STRING,
	WRAP_JSON_NUMBER,
	WRAP_JSON_OBJECT,
	WRAP_JSON_ARRAY,
	WRAP_JSON_OTHER, /* true, false, and what is no JSON */
};

/* By its first byte. */
enum wrap_json_kind wrap_json_kind(struct slice value);

/* Whether `text` is one value and white space; *value is that value. */
MUST_USE bool wrap_json_whole(struct slice text, struct slice *value);

/* A walk over the members of an object or the items of an array. */
struct wrap_json_walk {
	/* of the member that wrap_json_next has moved to */
	struct slice name; /* with quotes; absent in an array */
	struct slice value;
	struct slice part; /* everything between the two separators, white space too */
	/* private */
	const char *at, *end;
	char close;
	bool over, bad;
};

/* `value` is an object or an array, as cut off by a function of this header; anything else has no members. */
void wrap_json_open(struct wrap_json_walk *walk, struct slice value);

/* Moves to the next member; false at the end, or where the text is not JSON. */
MUST_USE bool wrap_json_next(struct wrap_json_walk *walk);

/* The value of the last member of that name; absent: `object` has none, or is no object, or is not JSON up to its
 * end. `name` is plain ASCII. */
struct slice wrap_json_member(struct slice object, const char *name);

/* Whether a value is a string that means exactly `plain`, which is ASCII. */
bool wrap_json_is(struct slice value, const char *plain);

/* Whether two ids are one: strings by what they mean, numbers by their value. 1 and "1" are two. */
bool wrap_json_same_id(struct slice a, struct slice b);

/* Of a number that is one by JSON's rules; false: it is not. */
MUST_USE bool wrap_json_number(struct slice value, double *out);

#endif
