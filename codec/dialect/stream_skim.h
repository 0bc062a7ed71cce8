/* stream_skim.h - leaves out of an event stream what its events repeat; private to codec/.
 *
 * A Responses stream says everything several times: after the deltas each text, part and item as a whole,
 * and in the first and last events the whole response, with the request's tools and instructions in it.
 * Such an event may be large, and nobody reads most of it. So the bytes come through here before they are
 * split into events: members of the upper two levels that are not wanted become null, and strings that repeat
 * what deltas of the same item said, or that nobody needs whole, end after SKIM_STRING_MAX bytes. Those of an
 * item that go back to the provider (replay.h) may have SKIM_BACK_MAX in an event; if they have more, they end
 * there and are lost, but the answer is not.
 * Behind a `type` that ends in ".delta" everything passes, and so does a `delta`. Until there was one of a
 * text or refusal, so does the `content` of an item, and until something was said to be done, too, the
 * `output` of a response: that may be the only time they are said. For the same reason a text or arguments
 * pass whole where no delta of their kind came since the last item's end.
 * Of an output that does not pass the calls are counted. What passes does not depend on how the bytes are cut.
 *
 * What is left out is not validated, only stepped over by its quotes and brackets; what passes is JSON if
 * the event was. No memory but the struct's; {0} is the beginning of a stream. */
#ifndef CODEC_DIALECT_STREAM_SKIM_H
#define CODEC_DIALECT_STREAM_SKIM_H

#include "codec/base/slice.h"
#include "codec/dialect/replay.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SKIM_STRING_MAX = 16 * 1024, /* a string is cut behind so many bytes */
	SKIM_CUT_MAX = 5, /* and so many more, where an escape or a character is across */
	SKIM_BACK_MAX = REPLAY_CONTENT_MAX,
	SKIM_NAME_MAX = 20,  /* bytes of a member's name, and one more, that matter */
	SKIM_FRONT_MAX = 16, /* bytes of a type that tell whether it is about what is said */
};

struct stream_skim {
	/* private: where in the stream, in a line's JSON, and in its string the next byte is */
	enum skim_place { SKIM_LINE, SKIM_DATA, SKIM_JSON, SKIM_OTHER } place;
	enum skim_skip { SKIM_NOTHING, SKIM_VALUE, SKIM_STRING } skip;
	uint8_t matched;             /* bytes of "data:" */
	bool after_cr, owed, passes; /* passes: the rest of the event */
	bool delta_seen; /* a delta of a text or refusal has passed, in this event or one before */
	bool ended;      /* likewise the end of an item, or of a part of one */
	bool text_seen,
		args_heard; /* a delta of a text or refusal, or of arguments, since an item's end */
	bool item_over;     /* the event is an item's end */
	bool cut;           /* a string that may have been needed was, some time */
	bool in_string, in_key, key_next;
	uint8_t escape; /* bytes of an escape that are still to come */
	bool second_is_object, second_is_thinned,
		second_is_response;  /* of the first level's member */
	bool back;                   /* the member's strings go back to the provider */
	bool in_output, after_type;  /* of a response; the last string of it left out was "type" */
	uint32_t calls;              /* in the last output that was left out */
	bool lost;                   /* one of them, in this event or one before, ended early */
	uint32_t depth, value_depth; /* open brackets; those around the value that is left out */
	uint32_t string_len, string_max;
	uint32_t back_len;    /* of the event's strings that go back, with what is around them */
	uint64_t string_tail; /* its last eight bytes */
	char string_front[SKIM_FRONT_MAX];
	uint8_t name_len;
	char name[SKIM_NAME_MAX];
};

/* The next bytes of *bytes that pass, which are taken off it, or what stands for some that do not; false
 * when *bytes is used up. */
bool stream_skim_next(struct stream_skim *skim, struct slice *bytes, struct slice *out);

/* Whether that string, which has passed, may be only the front of what was sent. */
static inline bool stream_skim_may_have_cut(const struct stream_skim *skim, struct slice string)
{
	return skim->cut && string.len >= SKIM_STRING_MAX &&
	       string.len <= SKIM_STRING_MAX + SKIM_CUT_MAX;
}

#endif
