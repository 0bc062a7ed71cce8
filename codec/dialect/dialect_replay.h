/* dialect_replay.h - records of earlier turns (replay.h) on their way into a body; private to codec/.
 *
 * encoder_replay_begin reads the records and decides whether they fit what can be known in advance:
 * provider, model, calls. Whether the bytes in front of a turn are what they were shows when the turn is
 * written; where they are not, e->out.replay_unfit makes dialect_encode begin anew without records. */
#ifndef CODEC_DIALECT_DIALECT_REPLAY_H
#define CODEC_DIALECT_DIALECT_REPLAY_H

#include "codec/dialect/dialect_request.h"

/* Part of encoder_begin, where in->replay is there. e->replay stays NULL when nothing is to be put back;
 * that something was there is reported then. */
void encoder_replay_begin(struct encoder *e);

/* To be called with each of the assistant's messages in front of its first byte, its comma and bracket too;
 * only where e->replay is not NULL. What its record has beside its calls; absent: nothing.
 * *known is set if it has a record, if only one that says so. */
struct slice encoder_replay_take(struct encoder *e, const struct message *message, bool *known);

/* For dialects whose content has the calls in it: uses the message's ids, which must be sent as they are
 * there. Else what was taken does not fit. */
void encoder_replay_use_ids(struct encoder *e, const struct message *message);

/* The items of a JSON array, as text; an array or object that is empty gives an empty text. */
static inline struct slice encoder_replay_items(struct slice array)
{
	return slice_of(array.at + 1, array.len - 2);
}

#endif
