/* api_walk.h - a request while it is read: the objects and arrays that are open; private to codec/api. */
#ifndef CODEC_API_API_WALK_H
#define CODEC_API_API_WALK_H

#include "codec/api/api_members.h"

/* What a block is; of several answers the highest counts. */
enum api_media { API_MEDIA_NONE, API_MEDIA_DOCUMENT, API_MEDIA_SOUND, API_MEDIA_IMAGE };

/* An open object, or array of such. */
struct api_frame {
	const struct api_member
		*row;  /* the member under way; NULL: none, or one that is passed over */
	uint8_t place; /* enum api_argument; of an array: of its items */
	uint8_t field; /* enum api_field: what keeps the container */
	uint8_t media; /* enum api_media, as far as members say it */
	bool array;
	bool results;      /* of a message: it has results of tools */
	uint32_t begin;    /* offset of its bracket */
	uint32_t index;    /* of the item under way, in an array */
	uint64_t seen;     /* of an object: api_member_bit of the members that were there */
	struct slice kind; /* type, role or media type: raw; absent: not said, or no string */
	uint64_t bytes;    /* content inside */
	uint32_t urls;     /* contents inside that the provider would fetch */
};

struct api_walk {
	struct json_reader r;
	struct api_request *out;
	struct arena *into;
	struct fault *fault;
	struct api_frame frames[JSON_DEPTH_MAX];
	uint32_t depth;
};

static inline struct api_frame *api_top(struct api_walk *w)
{
	return &w->frames[w->depth - 1];
}

/* The member or item under way as text: "messages.0.content", or "messages[0].content"; absent: no memory. */
MUST_USE struct slice api_walk_path(const struct api_walk *w);

/* Ends the walk with that error at the member under way; false. `detail` static. */
bool api_walk_fail(struct api_walk *w, enum err err, const char *detail);

/* The error of a value that cannot be of that field (enum api_field). */
enum err api_field_error(uint8_t field);

/* ---- what members and containers mean (api_acts.c) ---- */

/* The value of top's row is next and of that kind. False: failed. */
bool api_walk_act(struct api_walk *w, enum json_kind kind);

/* Opens the object or array that is next and of that kind: an array's items, or the object itself, are of that place. */
bool api_walk_enter(struct api_walk *w, enum json_kind kind, enum api_argument place,
		    uint8_t field);

/* The object on top is over: *w has left it. */
void api_walk_end_object(struct api_walk *w, const struct api_frame *object);

#endif
