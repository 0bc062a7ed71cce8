#include "codec/dialect/stream_skim.h"

#include "codec/base/attr.h"

/* Of an event; the members of `item` and `response` are thinned in their turn. */
static const struct slice first_names[] = {
	SLICE_INIT("type"), SLICE_INIT("output_index"), SLICE_INIT("delta"),
	SLICE_INIT("text"), SLICE_INIT("refusal"),      SLICE_INIT("arguments"),
	SLICE_INIT("item"), SLICE_INIT("response"),     SLICE_INIT("error"),
	SLICE_INIT("code"), SLICE_INIT("message"),      SLICE_INIT("param"),
};

static const struct slice second_names[] = {
	SLICE_INIT("id"),
	SLICE_INIT("status"),
	SLICE_INIT("error"),
	SLICE_INIT("incomplete_details"),
	SLICE_INIT("model"),
	SLICE_INIT("usage"),
	SLICE_INIT("type"),
	SLICE_INIT("call_id"),
	SLICE_INIT("name"),
	SLICE_INIT("arguments"),
	/* these go back as they are (replay.h) */
	SLICE_INIT("summary"),
	SLICE_INIT("encrypted_content"),
};

static bool is_one_of(struct slice name, const struct slice *names, size_t count)
{
	for (; count > 0; count--, names++)
		if (slice_eq(name, *names))
			return true;
	return false;
}

/* ---- JSON ---- */

/* Whether the member may be the only time that something is said: of an item without deltas, of a response
 * whose items did not end one by one, either. */
static bool is_first_time(const struct stream_skim *skim, struct slice name)
{
	if (skim->delta_seen)
		return false;
	return slice_eq(name, SLICE("content")) ||
	       (!skim->ended && slice_eq(name, SLICE("output")));
}

/* How much of a string passes that is, or is in, the member of that name, of an event or an item. */
static uint32_t string_max(const struct stream_skim *skim, struct slice name)
{
	bool again = true; /* it was said before, or nobody needs the whole of it */

	if (slice_eq(name, SLICE("delta")) || slice_eq(name, SLICE("content")))
		again = false; /* a content that was said before does not pass */
	else if (slice_eq(name, SLICE("text")) || slice_eq(name, SLICE("refusal")))
		again = skim->text_seen;
	else if (slice_eq(name, SLICE("arguments")))
		again = skim->args_heard;
	return again ? SKIM_STRING_MAX : UINT32_MAX;
}

/* A colon behind a name of the upper two levels: whether the value is left out. */
static bool is_unwanted(struct stream_skim *skim)
{
	struct slice name = slice_of(skim->name, skim->name_len);

	if (skim->depth == 1) {
		skim->back = skim->in_output = skim->after_type = false;
		skim->string_max = string_max(skim, name);
		skim->second_is_response = slice_eq(name, SLICE("response"));
		skim->second_is_thinned = skim->second_is_response || slice_eq(name, SLICE("item"));
		return !is_one_of(name, first_names, COUNT_OF(first_names));
	}
	if (skim->depth != 2 || !skim->second_is_object || !skim->second_is_thinned)
		return false;
	skim->back = slice_eq(name, SLICE("summary")) || slice_eq(name, SLICE("encrypted_content"));
	skim->in_output = skim->second_is_response && slice_eq(name, SLICE("output"));
	skim->string_max = skim->in_output ? UINT32_MAX : string_max(skim, name);
	skim->calls = skim->in_output ? 0 : skim->calls;
	return !is_one_of(name, second_names, COUNT_OF(second_names)) && !is_first_time(skim, name);
}

/* A string begins. One that goes back gets what others have left; names inside it always pass. */
static void open_string(struct stream_skim *skim)
{
	const uint32_t left = SKIM_BACK_MAX - skim->back_len;

	skim->in_string = true;
	skim->in_key = skim->key_next;
	skim->string_len = 0;
	skim->string_tail = 0;
	if (skim->in_key)
		skim->name_len = 0;
	else if (skim->back)
		skim->string_max = left < SKIM_NAME_MAX ? SKIM_NAME_MAX : left;
	skim->key_next = false;
}

static void open_bracket(struct stream_skim *skim, bool object)
{
	skim->depth++;
	if (skim->depth == 2)
		skim->second_is_object = object;
	skim->key_next = object && skim->depth <= 2;
}

/* One byte outside of strings. */
static void structure_byte(struct stream_skim *skim, char c)
{
	switch (c) {
	case '"':
		open_string(skim);
		break;
	case '{':
	case '[':
		open_bracket(skim, c == '{');
		break;
	case '}':
	case ']':
		skim->depth -= skim->depth != 0;
		skim->key_next = false;
		break;
	case ',':
		skim->key_next = skim->depth == 1 || (skim->depth == 2 && skim->second_is_object);
		break;
	case ':':
		if (skim->depth <= 2 && is_unwanted(skim)) {
			skim->skip = SKIM_VALUE;
			skim->value_depth = skim->depth;
			skim->owed = true;
		}
		break;
	default:
		break;
	}
}

/* A delta of a type that begins so has passed: of a text or a refusal (neither reasoning nor arguments are what
 * an item's content says), of arguments, or of none of these. `front` has SKIM_FRONT_MAX bytes. */
static void hear(struct stream_skim *skim, const char *front)
{
	static const char text[] = "response.output_", refusal[] = "response.refusal";
	static const char args[] = "response.functio";

	_Static_assert(sizeof(text) - 1 == SKIM_FRONT_MAX && sizeof(refusal) == sizeof(text) &&
			       sizeof(args) == sizeof(text),
		       "the whole front of each");
	if (memcmp(front, text, SKIM_FRONT_MAX) == 0 || memcmp(front, refusal, SKIM_FRONT_MAX) == 0)
		skim->delta_seen = skim->text_seen = true;
	else if (memcmp(front, args, SKIM_FRONT_MAX) == 0)
		skim->args_heard = true;
}

/* A string is over: whether it is the type of a delta. */
static bool is_delta(const struct stream_skim *skim)
{
	const uint64_t tail = ((uint64_t)'.' << 40) | ((uint64_t)'d' << 32) |
			      ((uint64_t)'e' << 24) | 'l' << 16 | 't' << 8 | 'a';

	return skim->depth == 1 && !skim->in_key && (skim->string_tail & 0xffffffffffff) == tail &&
	       slice_eq(slice_of(skim->name, skim->name_len), SLICE("type"));
}

/* Likewise, of the end of an item or of a part of one: "response.output_item.done" and its kin. */
static bool is_end(const struct stream_skim *skim)
{
	const uint64_t tail = ((uint64_t)'.' << 32) | 'd' << 24 | 'o' << 16 | 'n' << 8 | 'e';

	return skim->depth == 1 && !skim->in_key && (skim->string_tail & 0xffffffffff) == tail &&
	       slice_eq(slice_of(skim->name, skim->name_len), SLICE("type"));
}

/* Whether the end is an item's: "response.output_item.done". */
static bool is_item_end(const struct stream_skim *skim)
{
	const uint64_t tail = ((uint64_t)'t' << 56) | ((uint64_t)'e' << 48) |
			      ((uint64_t)'m' << 40) | ((uint64_t)'.' << 32) | 'd' << 24 |
			      'o' << 16 | 'n' << 8 | 'e';

	return skim->string_tail == tail;
}

/* A string of what goes back is over, a name or not. */
static void close_back(struct stream_skim *skim)
{
	enum { AROUND = 4 }; /* quotes, and as many brackets, colons and commas */
	const uint32_t left = SKIM_BACK_MAX - skim->back_len, len = skim->string_len + AROUND;

	skim->back_len += len < left ? len : left;
}

/* One byte inside a string. */
static void string_byte(struct stream_skim *skim, char c)
{
	if (skim->escape != 0) {
		skim->escape = skim->escape == 5 ? (c == 'u' ? 4 : 0) : (uint8_t)(skim->escape - 1);
	} else if (c == '\\') {
		skim->escape = 5; /* what it is will be known with the next byte */
	} else if (c == '"') {
		skim->in_string = false;
		if (skim->back)
			close_back(skim);
		if (is_delta(skim)) {
			skim->passes = true;
			hear(skim, skim->string_front);
			skim->place = SKIM_OTHER;
		}
		if (is_end(skim)) {
			skim->ended = true;
			skim->item_over |= is_item_end(skim);
		}
		return;
	}
	if (skim->string_len < SKIM_FRONT_MAX)
		skim->string_front[skim->string_len] = c;
	skim->string_len++;
	skim->string_tail = skim->string_tail << 8 | (unsigned char)c;
	if (skim->in_key && skim->name_len < SKIM_NAME_MAX)
		skim->name[skim->name_len++] = c;
}

/* Whether the string may be cut in front of `c`: between two characters. */
static bool is_too_long(const struct stream_skim *skim, char c)
{
	return skim->string_len >= skim->string_max && !skim->in_key && skim->escape == 0 &&
	       ((unsigned char)c & 0xc0) != 0x80;
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

/* Bytes that pass; stops in front of those that do not, and of a line's end. */
static const char *pass_json(struct stream_skim *skim, const char *at, const char *end)
{
	for (; at < end && !is_line_end(*at); at++) {
		if (!skim->in_string) {
			structure_byte(skim, *at);
			if (skim->skip != SKIM_NOTHING)
				return at + 1;
			continue;
		}
		if (is_too_long(skim, *at) && *at != '"') {
			skim->skip = SKIM_STRING;
			skim->lost |= skim->back;
			skim->cut |= !skim->back;
			return at;
		}
		string_byte(skim, *at);
		if (skim->place != SKIM_JSON)
			return at + 1;
	}
	return at;
}

/* The rest of a string that is too long: up to its quote. */
static const char *skip_string(struct stream_skim *skim, const char *at, const char *end)
{
	for (; at < end && !is_line_end(*at); at++) {
		if (skim->escape == 0 && *at == '"') {
			skim->skip = SKIM_NOTHING;
			return at;
		}
		string_byte(skim, *at);
	}
	return at;
}

/* A string is over that is left out: whether it is the type of an item that is a call. */
static void count_call(struct stream_skim *skim)
{
	static const struct slice type = SLICE_INIT("type"), call = SLICE_INIT("function_call");
	const struct slice string = slice_of(skim->string_front, skim->string_len);

	if (!skim->in_output || skim->depth != skim->value_depth + 2)
		return;
	skim->calls += skim->after_type && slice_eq(string, call);
	skim->after_type = slice_eq(string, type);
}

/* A value: up to the comma or bracket behind it. Its strings are no keys, whatever they are. */
static const char *skip_value(struct stream_skim *skim, const char *at, const char *end)
{
	for (; at < end && !is_line_end(*at); at++) {
		if (skim->in_string) {
			string_byte(skim, *at);
			if (!skim->in_string)
				count_call(skim);
			continue;
		}
		if (skim->depth == skim->value_depth && (*at == ',' || *at == '}' || *at == ']')) {
			skim->skip = SKIM_NOTHING;
			return at;
		}
		skim->in_string = *at == '"';
		if (skim->in_string)
			skim->string_len = 0;
		skim->depth += *at == '{' || *at == '[';
		skim->depth -= *at == '}' || *at == ']';
	}
	return at;
}

/* ---- lines ---- */

static void forget_json(struct stream_skim *skim)
{
	*skim = (struct stream_skim){ .place = SKIM_LINE,
				      .after_cr = skim->after_cr,
				      .delta_seen = skim->delta_seen,
				      .ended = skim->ended,
				      .text_seen = skim->text_seen && !skim->item_over,
				      .args_heard = skim->args_heard && !skim->item_over,
				      .cut = skim->cut,
				      .calls = skim->calls,
				      .lost = skim->lost };
}

/* At the beginning of a line. */
static void line_byte(struct stream_skim *skim, char c)
{
	static const char field[] = "data:";

	if (is_line_end(c)) {
		if (skim->matched == 0 && !(c == '\n' && skim->after_cr))
			forget_json(skim); /* the event is over */
		skim->matched = 0;
		skim->after_cr = c == '\r';
		return;
	}
	skim->after_cr = false;
	if (c != field[skim->matched]) {
		skim->place = SKIM_OTHER;
	} else if (++skim->matched == sizeof(field) - 1) {
		skim->place = skim->passes ? SKIM_OTHER : skim->depth == 0 ? SKIM_DATA : SKIM_JSON;
	}
}

/* Whether the text that begins with `at` is to be seen as a delta at once: most are. What is not will be
 * known by its type all the same (is_delta). */
static bool begins_delta(const char *at, const char *end)
{
	static const struct slice front = SLICE_INIT("{\"type\":\"response.");
	static const struct slice back = SLICE_INIT(".delta");
	enum { TYPE_MAX = 60 };

	if (end - at < TYPE_MAX || memcmp(at, front.at, front.len) != 0)
		return false;
	const char *quote = memchr(at + front.len, '"', TYPE_MAX - front.len);
	return quote != NULL && (size_t)(quote - at) > front.len + back.len &&
	       memcmp(quote - back.len, back.at, back.len) == 0;
}

/* Behind "data:", until the JSON begins. */
static void begin_data(struct stream_skim *skim, const char *at, const char *end)
{
	if (*at == ' ' || *at == '\t')
		return;
	skim->passes = begins_delta(at, end);
	skim->string_max = SKIM_STRING_MAX;
	if (skim->passes)
		hear(skim, at + sizeof("{\"type\":\"") - 1);
	skim->place = *at != '{' || skim->passes ? SKIM_OTHER : SKIM_JSON;
}

static const char *pass_line(const char *at, const char *end)
{
	const char *lf = memchr(at, '\n', (size_t)(end - at));
	const char *cr = memchr(at, '\r', (size_t)((lf == NULL ? end : lf) - at));

	return cr != NULL ? cr : lf != NULL ? lf : end;
}

/* At a line's end, or behind the last byte. */
static void leave_line(struct stream_skim *skim, const char *at, const char *end)
{
	if (at == end)
		return;
	skim->place = SKIM_LINE;
	skim->matched = 1; /* it was not blank: what ends here is a line, not an event */
}

/* ---- the whole ---- */

/* What is left out may go on in the next line, whose front passes. */
static bool is_skipping(const struct stream_skim *skim)
{
	return skim->skip != SKIM_NOTHING && skim->place == SKIM_JSON;
}

static const char *pass(struct stream_skim *skim, const char *at, const char *end)
{
	while (at < end && !is_skipping(skim))
		switch (skim->place) {
		case SKIM_LINE:
			line_byte(skim, *at++);
			break;
		case SKIM_DATA:
			begin_data(skim, at, end);
			at += skim->place == SKIM_DATA;
			break;
		case SKIM_JSON:
			at = pass_json(skim, at, end);
			if (skim->skip == SKIM_NOTHING && skim->place == SKIM_JSON)
				leave_line(skim, at, end);
			break;
		case SKIM_OTHER:
			at = pass_line(at, end);
			leave_line(skim, at, end);
			break;
		}
	return at;
}

static const char *skip(struct stream_skim *skim, const char *at, const char *end)
{
	at = skim->skip == SKIM_VALUE ? skip_value(skim, at, end) : skip_string(skim, at, end);
	if (skim->skip != SKIM_NOTHING)
		leave_line(skim, at, end);
	return at;
}

bool stream_skim_next(struct stream_skim *skim, struct slice *bytes, struct slice *out)
{
	const char *end = bytes->at + bytes->len;

	while (skim->owed || bytes->len != 0) {
		const char *at = bytes->at;
		if (skim->owed) {
			skim->owed = false;
			*out = SLICE("null");
			return true;
		}
		bool skips = is_skipping(skim);
		const char *behind = skips ? skip(skim, at, end) : pass(skim, at, end);
		*out = slice_of(at, (size_t)(behind - at));
		*bytes = slice_of(behind, (size_t)(end - behind));
		if (!skips && out->len != 0)
			return true;
	}
	return false;
}
