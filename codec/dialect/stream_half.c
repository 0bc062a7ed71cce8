#include "codec/dialect/stream_parts.h"
#include "codec/json/json_scan.h"

enum half { HALF_NONE, HALF_HIGH, HALF_LOW };

/* What begins at `at`. */
static enum half half_at(const char *at, const char *end)
{
	if (end - at < STREAM_HALF || at[0] != '\\' || at[1] != 'u')
		return HALF_NONE;
	switch (scan_hex4(at + 2) >> 10) {
	case 0xd800 >> 10:
		return HALF_HIGH;
	case 0xdc00 >> 10:
		return HALF_LOW;
	default:
		return HALF_NONE;
	}
}

static void mask(struct stream *s, char *at, bool low)
{
	if (s->half_count == STREAM_HALVES_MAX)
		return; /* then it is no JSON */
	struct stream_half *half = &s->room->halves[s->half_count++];
	half->at = at;
	half->low = low;
	(void)memcpy(half->digits, at + 2, sizeof(half->digits));
	(void)memset(at, 'x', STREAM_HALF);
}

/* The bytes of the escape at `at`, a whole pair of halves as one, and in *lone whether it is a half at
 * the edge of its string. `first`: the string begins with it. */
static size_t escape_at(const char *at, const char *end, bool first, enum half *lone)
{
	*lone = HALF_NONE;
	switch (half_at(at, end)) {
	case HALF_HIGH:
		if (half_at(at + STREAM_HALF, end) == HALF_LOW)
			return 2 * (size_t)STREAM_HALF;
		if (end - at > STREAM_HALF && at[STREAM_HALF] == '"')
			*lone = HALF_HIGH;
		return STREAM_HALF;
	case HALF_LOW:
		if (first)
			*lone = HALF_LOW;
		return STREAM_HALF;
	case HALF_NONE:
		break;
	}
	return end - at < 2 ? 1 : 2;
}

/* The next backslash of `data` from `at` on, mostly the next byte in a text that has many; its length
 * when there is none. */
static size_t next_escape(struct slice data, size_t at)
{
	if (at == data.len || data.at[at] == '\\')
		return at;
	const char *found = memchr(data.at + at, '\\', data.len - at);
	return found == NULL ? data.len : (size_t)(found - data.at);
}

/* A backslash outside of strings is no JSON, masked or not, so only escapes are looked at: a quote in
 * front of one that is not itself an escape's opens the string. */
struct slice stream_halves_mask(struct stream *s, struct sse_event *event)
{
	struct slice data = event->data;
	char *writable = NULL; /* the same bytes, once there is something to mask */
	enum half lone;

	s->half_count = 0;
	for (size_t at = next_escape(data, 0), behind = 0; at < data.len;) {
		bool first = at > behind && data.at[at - 1] == '"';
		behind = at + escape_at(data.at + at, data.at + data.len, first, &lone);
		if (lone != HALF_NONE) {
			if (writable == NULL)
				writable = sse_writable(&s->sse, event);
			data = event->data;
			mask(s, writable + at, lone == HALF_LOW);
		}
		at = next_escape(data, behind);
	}
	return data;
}

void stream_halves_take(struct stream *s, struct slice raw, bool *front, bool *back)
{
	for (uint32_t i = 0; i < s->half_count; i++) {
		struct stream_half *half = &s->room->halves[i];
		if (half->low ? half->at != raw.at : half->at + STREAM_HALF != raw.at + raw.len)
			continue;
		half->at[0] = '\\';
		half->at[1] = 'u';
		(void)memcpy(half->at + 2, half->digits, sizeof(half->digits));
		*(half->low ? front : back) = true;
	}
}

static bool is_inside(const struct stream_half *half, struct slice raw)
{
	return half->at >= raw.at && half->at < raw.at + raw.len;
}

void stream_halves_replace(struct stream *s, struct slice raw)
{
	for (uint32_t i = 0; i < s->half_count; i++)
		if (is_inside(&s->room->halves[i], raw))
			(void)memcpy(s->room->halves[i].at, "\\ufffd", STREAM_HALF);
}

bool stream_halves_inside(const struct stream *s, struct slice raw)
{
	for (uint32_t i = 0; i < s->half_count; i++)
		if (is_inside(&s->room->halves[i], raw))
			return true;
	return false;
}
