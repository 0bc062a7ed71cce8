#include "codec/stream_parts.h"

/* Why a match may stand for reading the event: the remembered event was valid JSON, and all that it did
 * was to add its string to a block, or things that are the same when they are done again (an index, an
 * id that is known). One that has the same bytes around another valid string is therefore valid and
 * adds that string; and nothing else happened in between, because every event that does not match is
 * read, and remembered or not in its turn. */

/* Bytes of `data` from `begin` to `end`. */
static struct slice between(const char *begin, const char *end)
{
	return slice_of(begin, (size_t)(end - begin));
}

static uint32_t shape_put(struct stream_shape *shape, uint32_t at, struct slice part)
{
	(void)memcpy(shape->bytes + at, part.at, part.len);
	return (uint32_t)part.len;
}

void stream_shape_learn(struct stream *s)
{
	const struct stream_now *now = &s->now;
	struct stream_shape *shape = &s->shape;
	const char *end = now->data.at + now->data.len;

	if (now->fragments != 1 || now->fixed || s->answer.err != ERR_OK)
		return;
	struct slice front = between(now->data.at, now->fragment.at);
	struct slice middle = between(now->fragment.at + now->fragment.len, end);
	struct slice back = slice_of(end, 0);
	shape->padded = !slice_absent(now->padding) && now->padding.at > middle.at;
	if (shape->padded) {
		middle.len = (size_t)(now->padding.at - middle.at);
		back = between(now->padding.at + now->padding.len, end);
	}
	if (front.len + middle.len + back.len > sizeof(shape->bytes))
		return;
	shape->front = shape_put(shape, 0, front);
	shape->middle = shape_put(shape, shape->front, middle);
	shape->back = shape_put(shape, shape->front + shape->middle, back);
	shape->block = now->block;
	shape->set = true;
}

/* Whether *rest goes on with those bytes of the shape; if so, it is behind them. */
static bool go_on(const struct stream_shape *shape, uint32_t at, uint32_t len, struct slice *rest)
{
	if (rest->len < len || memcmp(rest->at, shape->bytes + at, len) != 0)
		return false;
	*rest = slice_of(rest->at + len, rest->len - len);
	return true;
}

/* Whether *rest goes on with a string, whose opening quote was passed already; if so, *rest begins with
 * its closing quote. */
static bool string_goes_on(struct slice *rest, struct slice *string)
{
	struct json_reader r;

	json_open(&r, slice_of(rest->at - 1, rest->len + 1), NULL, NULL);
	if (!json_string(&r, string))
		return false;
	*rest = slice_of(rest->at + string->len, rest->len - string->len);
	return true;
}

bool stream_shape_match(struct stream *s, struct slice data, struct slice *fragment)
{
	const struct stream_shape *shape = &s->shape;
	struct slice rest = data, padding;

	if (!shape->set || !go_on(shape, 0, shape->front, &rest) ||
	    !string_goes_on(&rest, fragment) || !go_on(shape, shape->front, shape->middle, &rest))
		return false;
	if (shape->padded && (!string_goes_on(&rest, &padding) ||
			      !go_on(shape, shape->front + shape->middle, shape->back, &rest)))
		return false;
	return rest.len == 0;
}
