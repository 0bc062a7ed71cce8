#include "codec/dialect/stream_parts.h"
#include "codec/isa/isa.h"

/* Why a match may stand for reading the event: the remembered event was valid JSON, and all that it did
 * was to add its string to a block, or things that are the same when they are done again (an index, an
 * id that is known). One that has the same bytes around another valid string is therefore valid and
 * adds that string; its usage is read each time. And nothing else happened in between, because every
 * event that does not match is read, and remembered or not in its turn. A JSON string has no line end
 * in it, so that the lines in front of the data and behind it may be compared with it. */

/* An event that is longer is left to the splitter, which knows whether it may be. */
enum { AHEAD_MAX = STREAM_EVENT_ROOM / 2 };

/* Bytes of a text from `begin` to `end`. */
static struct slice between(const char *begin, const char *end)
{
	return slice_of(begin, (size_t)(end - begin));
}

/* What else will differ in the next event, behind the string; *part is as it was if nothing will. */
static enum stream_part other_part(const struct stream_now *now, const char *behind,
				   struct slice *part)
{
	if (!slice_absent(now->usage) && now->usage.at > behind) {
		*part = now->usage;
		return STREAM_PART_USAGE;
	}
	if (!slice_absent(now->padding) && now->padding.at > behind) {
		*part = now->padding;
		return STREAM_PART_PADDING;
	}
	return STREAM_PART_NONE;
}

void stream_shape_learn(struct stream *s, struct slice written)
{
	const struct stream_now *now = &s->now;
	struct stream_shape *shape = &s->shape;
	const char *data = now->data.at, *data_end = data + now->data.len;

	if (now->fragments != 1 || now->fixed || s->answer.err != ERR_OK)
		return;
	shape->written = !slice_absent(written);
	if (!shape->written)
		written = now->data;
	const char *behind = now->fragment.at + now->fragment.len, *end = written.at + written.len;
	struct slice other = slice_of(data_end, 0);
	shape->part = other_part(now, behind, &other);
	const char *back = other.at + other.len;
	const struct slice front = between(written.at, now->fragment.at);
	const struct slice middle = between(behind, other.at), rest = between(back, end);
	if (front.len + middle.len + rest.len > sizeof(s->shape_bytes))
		return;
	(void)memcpy(s->shape_bytes, front.at, front.len);
	(void)memcpy(s->shape_bytes + front.len, middle.at, middle.len);
	(void)memcpy(s->shape_bytes + front.len + middle.len, rest.at, rest.len);
	shape->lead = (uint32_t)(data - written.at);
	shape->front = (uint32_t)front.len - shape->lead;
	shape->middle = (uint32_t)middle.len;
	shape->back = (uint32_t)(data_end - back);
	shape->tail = (uint32_t)(end - data_end);
	shape->block = now->block;
	shape->set = true;
}

/* Whether *rest goes on with those bytes; if so, it is behind them. */
static bool go_on(struct slice *rest, const char *bytes, size_t len)
{
	if (rest->len < len || memcmp(rest->at, bytes, len) != 0)
		return false;
	*rest = slice_of(rest->at + len, rest->len - len);
	return true;
}

/* The string in front of `rest` up to its closing quote, when it is short and holds nothing but plain
 * text; absent: ask the reader. */
static inline struct slice plain_string(struct slice rest)
{
	if (rest.len < ISA_BLOCK)
		return (struct slice){ NULL, 0 };
	uint64_t special = isa_special(isa_load(rest.at));
	const size_t len = special == 0 ? 0 : (size_t)__builtin_ctzll(special);
	return slice_of(rest.at[len] == '"' ? rest.at : NULL, len);
}

/* Whether *rest goes on with a string, whose opening quote was passed already; if so, *rest begins with
 * its closing quote. */
static inline bool string_goes_on(struct slice *rest, struct slice *string)
{
	struct json_reader r;

	*string = plain_string(*rest);
	if (slice_absent(*string)) {
		json_open(&r, slice_of(rest->at - 1, rest->len + 1), NULL, NULL);
		if (!json_string(&r, string))
			return false;
	}
	*rest = slice_of(rest->at + string->len, rest->len - string->len);
	return true;
}

/* Whether *rest goes on with a usage object; if so it was read, and *rest is behind it. */
static bool usage_goes_on(struct stream *s, struct slice *rest)
{
	/* it is inside an object of the event */
	static const struct json_limits limits = { ANSWER_DEPTH_MAX - 1, JSON_KEYS_MAX };
	struct json_reader r;

	json_open(&r, *rest, &limits, s->answer.work);
	s->dialect->stream->usage(&s->answer, &r);
	if (r.fault.err != ERR_OK || s->answer.err != ERR_OK)
		return false;
	*rest = slice_of(rest->at + json_offset(&r), rest->len - json_offset(&r));
	return true;
}

static bool part_goes_on(struct stream *s, struct slice *rest)
{
	struct slice padding;

	switch (s->shape.part) {
	case STREAM_PART_PADDING:
		return string_goes_on(rest, &padding);
	case STREAM_PART_USAGE:
		return usage_goes_on(s, rest);
	case STREAM_PART_NONE:
		break;
	}
	return true;
}

/* Takes an event off the front of *rest: its data, with `lead` and `tail` bytes around it. */
static bool take(struct stream *s, size_t lead, size_t tail, struct slice *rest,
		 struct slice *fragment)
{
	const struct stream_shape *shape = &s->shape;
	const char *front = s->shape_bytes + shape->lead, *middle = front + shape->front;

	if (!go_on(rest, front - lead, lead + shape->front) || !string_goes_on(rest, fragment))
		return false;
	if (shape->part == STREAM_PART_NONE)
		return go_on(rest, middle, shape->middle + tail);
	return go_on(rest, middle, shape->middle) && part_goes_on(s, rest) &&
	       go_on(rest, middle + shape->middle, shape->back + tail);
}

bool stream_shape_match(struct stream *s, struct slice data, struct slice *fragment)
{
	return s->shape.set && take(s, 0, 0, &data, fragment) && data.len == 0;
}

size_t stream_shape_ahead(struct stream *s, struct slice ahead, struct slice *fragment)
{
	const struct stream_shape *shape = &s->shape;
	struct slice rest = ahead;

	if (!shape->set || !shape->written || !take(s, shape->lead, shape->tail, &rest, fragment))
		return 0;
	const size_t len = ahead.len - rest.len;
	return len <= AHEAD_MAX ? len : 0;
}
