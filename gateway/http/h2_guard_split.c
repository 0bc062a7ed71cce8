/* h2_guard_split.c - a header block in HEADERS and CONTINUATION frames, which libh2o sees as one HEADERS frame.
 *
 * libh2o 2.2.5 spins for ever on a CONTINUATION behind the second GOAWAY of a shutdown, and copies the first part before it
 * knows how much will come. So the frames are put together where they lie, in the input: the headers of CONTINUATION frames
 * are taken out, and so is the padding of the first frame, which would be in the middle. Until the last one has come the
 * HEADERS frame has a length that no input reaches, so that libh2o waits for its end (override_frames.c takes any length).
 * A block has as many bytes as a head over HTTP/1.1, no more than the buffer that a connection reads into. */
#include "gateway/http/h2_guard_parts.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"

#include <string.h>

enum { LENGTH_OPEN = 0xffffff };

_Static_assert((int)GUARD_BLOCK_MAX == (int)HTTP1_HEAD_MAX, "the same for both protocols");
_Static_assert(LENGTH_OPEN > GUARD_BLOCK_MAX + 2 * (HEADER_LEN + GUARD_FRAME_MAX),
	       "no input is as long");

static void write_length(char *header, uint32_t len)
{
	header[0] = (char)(len >> 16);
	header[1] = (char)(len >> 8);
	header[2] = (char)len;
}

enum guard_verdict guard_split_begin(struct h2_guard *guard, const struct frame *frame, nsec_t now)
{
	const bool padded = (frame->flags & FLAG_PADDED) != 0;
	const bool priority = (frame->flags & FLAG_PRIORITY) != 0;

	if (frame->len < (padded ? 1U : 0) + (priority ? PRIORITY_LEN : 0U))
		return GUARD_FORBIDDEN_FRAME;
	guard->split = true;
	guard->split_len = frame->len;
	guard->block_len = 0; /* nothing of it is judged yet */
	guard->partial_since = now;
	write_length(frame->at, LENGTH_OPEN);
	frame->at[FLAGS_AT] |= FLAG_END_HEADERS;
	return GUARD_PASS;
}

/* The first frame is there as a whole: takes its padding out. False: there is more of it than there may be. */
static bool take_padding(struct h2_guard *guard, struct pass *pass)
{
	char *payload = pass->input + guard->block;
	char *flags = payload - HEADER_LEN + FLAGS_AT;
	const uint32_t before = (*flags & FLAG_PRIORITY) != 0 ? PRIORITY_LEN : 0;
	const uint32_t padding = 1 + (uint8_t)payload[0];

	if ((*flags & FLAG_PADDED) == 0)
		return true;
	if (padding + before > guard->split_len)
		return false;
	must(pass->to == guard->next && guard->next == guard->block + guard->split_len);
	guard->split_len -= padding;
	(void)memmove(payload, payload + 1, guard->split_len);
	*flags = (char)(*flags & ~FLAG_PADDED);
	guard->next -= padding;
	pass->to -= padding;
	return true;
}

enum guard_verdict guard_split_go_on(struct h2_guard *guard, struct pass *pass,
				     const struct frame *frame, nsec_t now)
{
	enum { COST = 1 };
	const bool ends = (frame->flags & FLAG_END_HEADERS) != 0;

	guard->oversize = frame->len > GUARD_FRAME_MAX;
	if (frame->type != FRAME_CONTINUATION || frame->stream != guard->block_stream ||
	    guard->oversize || !take_padding(guard, pass))
		return GUARD_FORBIDDEN_FRAME;
	guard->split_len += frame->len;
	if (guard->split_len > GUARD_BLOCK_MAX ||
	    !guard_tokens_pay(guard, frame->len == 0 && !ends ? COST_EMPTY : COST, now))
		return GUARD_FLOOD;
	if (ends) {
		guard->split = false;
		guard->block_len = guard->split_len;
		write_length(pass->input + guard->block - HEADER_LEN, guard->split_len);
	}
	pass->from += HEADER_LEN;
	guard->next += frame->len;
	guard_pass_keep(pass, frame->len);
	return GUARD_PASS;
}
