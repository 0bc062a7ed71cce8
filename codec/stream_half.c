#include "codec/stream_parts.h"

#include <ctype.h>

enum { ESCAPE = 6 }; /* \ud83d */

enum half { HALF_NONE, HALF_HIGH, HALF_LOW };

/* What the backslash at `at` begins. */
static enum half half_at(const char *at, const char *end)
{
	if (end - at < ESCAPE || at[1] != 'u' || (at[2] | 0x20) != 'd' ||
	    !isxdigit((unsigned char)at[3]) || !isxdigit((unsigned char)at[4]) ||
	    !isxdigit((unsigned char)at[5]))
		return HALF_NONE;
	char digit = at[3];
	if (digit < '8')
		return HALF_NONE;
	return digit <= '9' || (digit | 0x20) <= 'b' ? HALF_HIGH : HALF_LOW;
}

static void mask(struct stream *s, char *at, bool low)
{
	if (s->half_count == STREAM_HALVES_MAX)
		return; /* then it is no JSON */
	struct stream_half *half = &s->halves[s->half_count++];
	half->at = at;
	half->low = low;
	(void)memcpy(half->digits, at + 2, sizeof(half->digits));
	(void)memset(at, 'x', ESCAPE);
}

/* Past the escape at `at`, in a string that begins at `begin`. */
static char *past_escape(struct stream *s, char *begin, char *at, const char *end)
{
	switch (half_at(at, end)) {
	case HALF_HIGH:
		if (half_at(at + ESCAPE, end) == HALF_LOW && at[ESCAPE] == '\\')
			return at + 2 * ESCAPE;
		if (end - at > ESCAPE && at[ESCAPE] == '"')
			mask(s, at, false);
		return at + ESCAPE;
	case HALF_LOW:
		if (at == begin)
			mask(s, at, true);
		return at + ESCAPE;
	case HALF_NONE:
		break;
	}
	return end - at < 2 ? at + 1 : at + 2;
}

struct slice stream_halves_mask(struct stream *s, struct sse_event *event)
{
	struct slice data = event->data;
	char *begin = NULL; /* of the string that we are in */

	s->half_count = 0;
	if (memchr(data.at, '\\', data.len) == NULL || memmem(data.at, data.len, "\\u", 2) == NULL)
		return data;
	char *at = sse_writable(&s->sse, event);
	for (const char *end = at + data.len; at < end;) {
		if (*at == '"') {
			begin = begin == NULL ? at + 1 : NULL;
			at++;
		} else if (*at == '\\' && begin != NULL) {
			at = past_escape(s, begin, at, end);
		} else {
			at++;
		}
	}
	return event->data;
}

void stream_halves_take(struct stream *s, struct slice raw, bool *front, bool *back)
{
	for (uint32_t i = 0; i < s->half_count; i++) {
		struct stream_half *half = &s->halves[i];
		if (half->low ? half->at != raw.at : half->at + ESCAPE != raw.at + raw.len)
			continue;
		half->at[0] = '\\';
		half->at[1] = 'u';
		(void)memcpy(half->at + 2, half->digits, sizeof(half->digits));
		*(half->low ? front : back) = true;
	}
}

bool stream_halves_inside(const struct stream *s, struct slice raw)
{
	for (uint32_t i = 0; i < s->half_count; i++)
		if (s->halves[i].at >= raw.at && s->halves[i].at < raw.at + raw.len)
			return true;
	return false;
}
