#include "gateway/http/h2_guard.h"

#include "codec/base/must.h"
#include "gateway/http/h2_guard_block.h"
#include "gateway/http/h2_guard_parts.h"

#include <stdlib.h>
#include <string.h>

enum { PREFACE_LEN = 24 };

#define FORBIDDEN (-1)

static const int32_t frame_costs[FRAME_TYPES] = {
	[FRAME_DATA] = 0,
	[FRAME_HEADERS] = 3,  /* made good by the answer; streams over the limit of 100 have none */
	[FRAME_PRIORITY] = 1, /* moves nodes in h2o's tree */
	[FRAME_RST_STREAM] = 5,
	[FRAME_SETTINGS] = 50,            /* walks all streams, and is answered */
	[FRAME_PUSH_PROMISE] = FORBIDDEN, /* from a client: RFC 9113 8.4 */
	[FRAME_PING] = 5,                 /* is answered */
	[FRAME_GOAWAY] = 5,
	[FRAME_WINDOW_UPDATE] = 0, /* honest clients send one per few kilobytes: SMALL_PER_S */
	[FRAME_CONTINUATION] = FORBIDDEN, /* where no block is open: h2_guard_split.c */
};
enum { COST_UNKNOWN = 50 }; /* h2o prints a line for each */
/* An upload ends early because its connection has too much: who goes on like that is closed. */
enum { COST_TOO_MANY_BYTES = 200 };

/* WINDOW_UPDATE, and DATA hardly larger than its frame header: a client that takes or sends a gigabyte
 * a second needs no more, one that fills its line with them sends millions. */
enum { SMALL_PER_S = 100000, SMALL_DATA = 64 };

static const char *const verdict_names[GUARD_CAUSES] = {
	[GUARD_FORBIDDEN_FRAME] = "forbidden_frame",
	[GUARD_FLOOD] = "flood",
	[GUARD_UPLOADS] = "uploads",
	[GUARD_UNFINISHED_BYTES] = "unfinished_bytes",
	[GUARD_BODY_TOO_LARGE] = "body_too_large",
	[GUARD_SLOW] = "slow",
	[GUARD_STALLED] = "stalled",
	[GUARD_ABORTED] = "aborted_requests",
	[GUARD_BAD_HEAD] = "bad_head",
	[GUARD_EVICTED] = "evicted",
};

static struct frame frame_read(char *at)
{
	const uint8_t *p = (const uint8_t *)at;
	return (struct frame){
		.at = at,
		.len = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
		.type = p[3],
		.flags = p[FLAGS_AT],
		.stream =
			((uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 8 | p[8]) &
			0x7fffffff,
	};
}

const char *guard_verdict_name(enum guard_verdict verdict)
{
	return (size_t)verdict < GUARD_CAUSES ? verdict_names[verdict] : NULL;
}

void h2_guard_init(struct h2_guard *guard, const struct guard_bounds *bounds, nsec_t now)
{
	*guard = (struct h2_guard){
		.bounds = bounds, .began = now, .tokens = bounds->tokens_max, .tokens_at = now
	};
}

static struct guard_upload *uploads_of(struct h2_guard *guard)
{
	return guard->many != NULL ? guard->many : guard->few;
}

void h2_guard_fini(struct h2_guard *guard, struct guard_budget *budget)
{
	while (guard->upload_count != 0)
		guard_body_end(budget, &uploads_of(guard)[--guard->upload_count].body);
	guard_let_go(budget, &guard->holder, guard->holder.bytes); /* requests that are held */
	free(guard->many);
	guard->many = NULL;
	guard_ends_fini(&guard->ends);
}

/* ---- tokens ---- */
static void tokens_refill(struct h2_guard *guard, nsec_t now)
{
	nsec_t got = (now - guard->tokens_at) / guard->bounds->token_every;
	guard->tokens_at += got * guard->bounds->token_every;
	nsec_t room = (nsec_t)(guard->bounds->tokens_max - guard->tokens);
	guard->tokens += (int32_t)(got < room ? got : room);
}

static int32_t frame_cost(const struct frame *frame)
{
	if (frame->type >= FRAME_TYPES)
		return COST_UNKNOWN;
	if (frame->type == FRAME_DATA && frame->len == 0 && (frame->flags & FLAG_END_STREAM) == 0)
		return COST_EMPTY;
	return frame_costs[frame->type];
}

bool guard_tokens_pay(struct h2_guard *guard, int32_t cost, nsec_t now)
{
	if (cost == 0)
		return true;
	tokens_refill(guard, now);
	guard->tokens -= cost;
	return guard->tokens >= 0;
}

static bool small_pays(struct h2_guard *guard, const struct frame *frame, nsec_t now)
{
	if (frame->type != FRAME_WINDOW_UPDATE &&
	    (frame->type != FRAME_DATA || frame->len >= SMALL_DATA))
		return true;
	if (now - guard->small_at >= SEC) {
		guard->small_at = now;
		guard->small = 0;
	}
	return ++guard->small <= SMALL_PER_S;
}

/* ---- bodies that have not ended: h2o keeps them all and tells nobody until the last byte ---- */
static struct guard_upload *upload_find(struct h2_guard *guard, uint32_t stream)
{
	struct guard_upload *uploads = uploads_of(guard);
	for (uint32_t i = 0; i < guard->upload_count; i++)
		if (uploads[i].body.stream == stream)
			return &uploads[i];
	return NULL;
}

static void upload_move(struct guard_budget *budget, struct guard_upload *to,
			const struct guard_upload *from)
{
	to->cost = from->cost;
	to->too_large = from->too_large;
	guard_body_move(budget, &to->body, &from->body);
}

static void upload_end(struct h2_guard *guard, struct guard_budget *budget,
		       struct guard_upload *upload)
{
	struct guard_upload *last = &uploads_of(guard)[--guard->upload_count];

	guard_body_end(budget, &upload->body);
	if (upload != last)
		upload_move(budget, upload, last);
}

static bool uploads_grow(struct h2_guard *guard, struct guard_budget *budget)
{
	guard->many = malloc(GUARD_UPLOADS_MAX * sizeof(*guard->many));
	if (guard->many == NULL)
		return false;
	for (uint32_t i = 0; i < guard->upload_count; i++)
		upload_move(budget, &guard->many[i], &guard->few[i]);
	return true;
}

/* A connection that has more than its share: of its bodies that do not grow the heaviest one ends early, and if all grow,
 * `asker`. */
static enum guard_verdict make_fit(struct h2_guard *guard, struct guard_budget *budget,
				   struct guard_upload *asker, nsec_t now)
{
	struct guard_upload *uploads = uploads_of(guard);
	const size_t bytes_max = h2_guard_bytes_max(guard, budget);

	while (guard->holder.bytes > bytes_max && asker->body.over == GUARD_GOES_ON) {
		struct guard_upload *found = asker;
		uint64_t most = 0;
		for (uint32_t i = 0; i < guard->upload_count; i++) {
			const struct guard_body *body = &uploads[i].body;
			const uint64_t weight = guard_body_weight(budget, body, now);
			if (body->over == GUARD_GOES_ON && weight > most) {
				most = weight;
				found = &uploads[i];
			}
		}
		guard_body_end_early(budget, &found->body, GUARD_NO_ROOM);
		if (!guard_tokens_pay(guard, COST_TOO_MANY_BYTES, now))
			return GUARD_UNFINISHED_BYTES;
	}
	return GUARD_PASS;
}

static inline enum guard_verdict fit_connection(struct h2_guard *guard, struct guard_budget *budget,
						struct guard_upload *asker, nsec_t now)
{
	return guard->holder.bytes > h2_guard_bytes_max(guard, budget)
		       ? make_fit(guard, budget, asker, now)
		       : GUARD_PASS;
}

static bool upload_has_slot(struct h2_guard *guard, struct guard_budget *budget)
{
	if (guard->upload_count == GUARD_UPLOADS_MAX)
		return false;
	return guard->upload_count != GUARD_UPLOADS_INLINE || guard->many != NULL ||
	       uploads_grow(guard, budget);
}

/* ---- bodies that are too large, or one too many ----
 *
 * h2o would reset such a stream as "safe to try again", and once more for each frame that follows. So it
 * is told that the request ends where the limit is passed, and answers it as any other; what the client
 * still sends of it never gets to h2o. Its stream is not reset: curl 7.88 would not show the answer. The connection's
 * window is opened again for what was dropped, the stream's is not. Where a content-length is spelled out that is too large,
 * the request ends with the first DATA. */
static void drop(struct h2_guard *guard, uint32_t len)
{
	guard->dropping = len;
	guard->dropped += len;
}

/* DATA of a stream that was ended, so many bytes. */
static enum guard_verdict drop_data(struct h2_guard *guard, const struct guard_budget *budget,
				    struct guard_ended *ended, uint32_t len, nsec_t now)
{
	guard->unopened += len;
	ended->dropped += len;
	if (ended->asked && guard_ended_late(ended, budget->patience, now))
		return GUARD_SLOW;
	return ended->dropped > GUARD_DROPPED_MAX ? GUARD_BODY_TOO_LARGE : GUARD_PASS;
}

/* NULL: h2o would take the request for whole. */
static struct guard_ended *note_refused(struct h2_guard *guard, uint32_t stream, nsec_t now)
{
	struct guard_ended *ended = guard_ends_add(&guard->ends, stream);

	if (ended != NULL) {
		ended->refused = true;
		ended->since = now;
	}
	return ended;
}

/* `frame`, of DATA, is the last of its request that h2o sees, and without its payload. */
static enum guard_verdict refuse(struct h2_guard *guard, struct guard_budget *budget,
				 struct guard_upload *upload, const struct frame *frame, nsec_t now)
{
	upload_end(guard, budget, upload);
	(void)memset(frame->at, 0, LENGTH_LEN);
	frame->at[FLAGS_AT] = FLAG_END_STREAM;
	drop(guard, frame->len);
	guard->unopened += frame->len;
	return note_refused(guard, frame->stream, now) == NULL ? GUARD_BODY_TOO_LARGE : GUARD_PASS;
}

/* `frame`, of HEADERS, is all of its request that h2o sees: there is one body too many. */
static enum guard_verdict refuse_head(struct h2_guard *guard, const struct frame *frame, nsec_t now)
{
	struct guard_ended *ended = note_refused(guard, frame->stream, now);

	if (ended == NULL)
		return GUARD_UPLOADS;
	ended->no_room = true;
	frame->at[FLAGS_AT] |= FLAG_END_STREAM;
	return GUARD_PASS;
}

static enum guard_verdict upload_begin(struct h2_guard *guard, struct guard_budget *budget,
				       const struct frame *frame, nsec_t now)
{
	if (!upload_has_slot(guard, budget))
		return refuse_head(guard, frame, now);
	/* Unpacked, texts take up to 8/5 of their room in the frame (RFC 7541 appendix B). */
	uint32_t cost = GUARD_UPLOAD_COST + 2 * frame->len;
	struct guard_upload *upload = &uploads_of(guard)[guard->upload_count++];
	upload->cost = cost;
	upload->too_large = false;
	guard_body_begin(budget, &upload->body, &guard->holder, frame->stream, cost, now);
	return fit_connection(guard, budget, upload, now);
}

/* So many bytes more of its head. */
static enum guard_verdict upload_head(struct h2_guard *guard, struct guard_budget *budget,
				      struct guard_upload *upload, uint32_t len, nsec_t now)
{
	if (upload->body.over != GUARD_GOES_ON)
		return GUARD_PASS;
	upload->cost += 2 * len;
	guard_body_keep(budget, &upload->body, (size_t)upload->body.bytes + 2 * len, now);
	return fit_connection(guard, budget, upload, now);
}

/* A frame of a stream that was ended, or NULL; takes notice if nothing more will come. */
static struct guard_ended *ended_of(struct h2_guard *guard, const struct frame *frame)
{
	struct guard_ended *ended = guard_ends_find(&guard->ends, frame->stream);

	if (ended == NULL || ended->over)
		return NULL;
	ended->over = frame->type == FRAME_RST_STREAM ||
		      (frame->type <= FRAME_HEADERS && (frame->flags & FLAG_END_STREAM) != 0);
	return ended;
}

/* Where there is no room for another one, h2o answers each frame that still comes with STREAM_CLOSED. `since`: as
 * struct guard_ended has it. */
static void note_ended(struct h2_guard *guard, uint32_t stream, nsec_t since)
{
	struct guard_ended *ended = guard_ends_add(&guard->ends, stream);

	if (ended == NULL)
		return;
	ended->since = since;
	ended->asked = since == 0;
}

void h2_guard_reset(struct h2_guard *guard, struct guard_budget *budget, uint32_t stream)
{
	struct guard_upload *upload = upload_find(guard, stream);

	if (upload != NULL)
		upload_end(guard, budget, upload);
	note_ended(guard, stream, 0);
}

/* ---- what a frame does to bodies ---- */
static enum guard_verdict upload_data(struct h2_guard *guard, struct guard_budget *budget,
				      struct guard_upload *upload, const struct frame *frame,
				      nsec_t now)
{
	if (upload->body.over != GUARD_GOES_ON) /* h2o takes it, and then none of it any more */
		return GUARD_PASS;
	const size_t bytes = (size_t)upload->body.bytes + frame->len;
	if (upload->too_large || bytes - upload->cost > budget->body_bytes_max)
		return refuse(guard, budget, upload, frame, now);
	guard_body_keep(budget, &upload->body, bytes, now);
	return fit_connection(guard, budget, upload, now);
}

/* Never of the whole connection (RFC 9113 6.1, 6.2, 6.4). */
static bool is_of_a_stream(const struct frame *frame)
{
	return frame->type == FRAME_DATA || frame->type == FRAME_HEADERS ||
	       frame->type == FRAME_RST_STREAM;
}

/* A stream that is not known begins with HEADERS whatever its number: PRIORITY can open streams
 * that take their HEADERS later, below the highest number. The type is looked at before the flags:
 * bit 1 of PRIORITY or WINDOW_UPDATE means nothing. */
static enum guard_verdict account_body(struct h2_guard *guard, struct guard_budget *budget,
				       const struct frame *frame, nsec_t now)
{
	if (!is_of_a_stream(frame))
		return GUARD_PASS;
	bool ends = frame->type == FRAME_RST_STREAM || (frame->flags & FLAG_END_STREAM) != 0;
	struct guard_upload *upload = upload_find(guard, frame->stream);
	if (upload == NULL && frame->type == FRAME_HEADERS && !ends)
		return upload_begin(guard, budget, frame, now);
	if (upload == NULL)
		return GUARD_PASS;
	if (frame->type == FRAME_DATA && !ends)
		return upload_data(guard, budget, upload, frame, now);
	if (ends)
		upload_end(guard, budget, upload);
	return GUARD_PASS;
}

/* ---- header blocks ----
 *
 * One byte may stand for a field of 4 KiB that was sent before. h2o does not copy it, but makes some
 * hundred bytes of each: 16 KiB become megabytes. So fields are counted, which needs no table. */

/* The one whose frame header was judged already, once it is whole. */
static enum guard_verdict judge_waiting_block(struct h2_guard *guard, struct guard_budget *budget,
					      char *input, size_t len)
{
	if (guard->block_len == 0 || len < guard->block + guard->block_len)
		return GUARD_PASS;
	struct frame frame = frame_read(input + guard->block - HEADER_LEN);
	struct guard_block block = guard_block_read(frame.at + HEADER_LEN, frame.len, frame.flags);
	guard->block_len = 0;
	if (block.fields > GUARD_FIELDS_MAX)
		return GUARD_FORBIDDEN_FRAME;
	struct guard_upload *upload = upload_find(guard, frame.stream);
	if (upload != NULL && block.content_length > budget->body_bytes_max)
		upload->too_large = true;
	return GUARD_PASS;
}

/* ---- frames ---- */
static enum guard_verdict judge(struct h2_guard *guard, struct guard_budget *budget,
				const struct frame *frame, nsec_t now)
{
	int32_t cost = frame_cost(frame);
	guard->oversize = frame->len > GUARD_FRAME_MAX;
	if (cost == FORBIDDEN || guard->oversize || (frame->stream == 0 && is_of_a_stream(frame)))
		return GUARD_FORBIDDEN_FRAME;
	if (!guard_tokens_pay(guard, cost, now) || !small_pays(guard, frame, now))
		return GUARD_FLOOD;
	return account_body(guard, budget, frame, now);
}

/* ---- the input ---- */
void guard_pass_keep(struct pass *pass, size_t len)
{
	size_t there = pass->len - pass->from < len ? pass->len - pass->from : len;
	if (pass->to != pass->from)
		(void)memmove(pass->input + pass->to, pass->input + pass->from, there);
	pass->from += there;
	pass->to += there;
}

static void pass_drop(struct pass *pass, struct h2_guard *guard)
{
	size_t left = pass->len - pass->from;
	size_t there = left < guard->dropping ? left : guard->dropping;
	pass->from += there;
	guard->dropping -= (uint32_t)there;
}

/* A frame while a header block is open. */
static __attribute__((noinline)) enum guard_verdict pass_continuation(struct pass *pass,
								      struct h2_guard *guard,
								      struct guard_budget *budget,
								      const struct frame *frame,
								      nsec_t now)
{
	enum guard_verdict verdict = guard_split_go_on(guard, pass, frame, now);
	struct guard_upload *upload = upload_find(guard, frame->stream);

	if (verdict == GUARD_PASS && upload != NULL)
		verdict = upload_head(guard, budget, upload, frame->len, now);
	return verdict == GUARD_PASS ? judge_waiting_block(guard, budget, pass->input, pass->to)
				     : verdict;
}

static enum guard_verdict pass_frame(struct pass *pass, struct h2_guard *guard,
				     struct guard_budget *budget, nsec_t now)
{
	struct frame frame = frame_read(pass->input + pass->from);
	if (guard->split)
		return pass_continuation(pass, guard, budget, &frame, now);
	struct guard_ended *ended = guard->ends.count != 0 ? ended_of(guard, &frame) : NULL;
	enum guard_verdict verdict = judge(guard, budget, &frame, now);
	if (verdict != GUARD_PASS)
		return verdict;
	if (ended != NULL && frame.type == FRAME_DATA) {
		drop(guard, HEADER_LEN + frame.len);
		pass_drop(pass, guard);
		return drop_data(guard, budget, ended, frame.len, now);
	}
	if (frame.type == FRAME_HEADERS) {
		guard->block = guard->next + HEADER_LEN;
		guard->block_len = frame.len;
		guard->block_stream = frame.stream;
		if ((frame.flags & FLAG_END_HEADERS) == 0)
			verdict = guard_split_begin(guard, &frame, now);
	}
	uint32_t kept = HEADER_LEN + frame.len - guard->dropping; /* its payload may have to go */
	guard->next += kept;
	guard_pass_keep(pass, kept);
	pass_drop(pass, guard);
	return verdict == GUARD_PASS ? judge_waiting_block(guard, budget, pass->input, pass->to)
				     : verdict;
}

enum guard_verdict h2_guard_scan(struct h2_guard *guard, struct guard_budget *budget, char *input,
				 size_t *len, nsec_t now)
{
	bool moved = false;
	enum guard_verdict verdict = judge_waiting_block(guard, budget, input, *len);
	if (!guard->preface && *len >= PREFACE_LEN) {
		guard->preface = moved = true;
		guard->next = PREFACE_LEN;
	}
	size_t known = guard->next < *len ? guard->next : *len;
	struct pass pass = { .input = input, .len = *len, .from = known, .to = known };
	pass_drop(&pass, guard);
	while (verdict == GUARD_PASS && guard->preface && pass.to == guard->next &&
	       pass.len - pass.from >= HEADER_LEN) {
		verdict = pass_frame(&pass, guard, budget, now);
		moved = true;
	}
	if (verdict != GUARD_PASS)
		return verdict;
	guard_pass_keep(&pass, pass.len - pass.from);
	*len = pass.to;
	/* The clock of a frame that is not complete starts anew with each frame, but not within a header block. */
	if (guard->split)
		return GUARD_PASS;
	if (guard->next == *len && guard->dropping == 0)
		guard->partial_since = 0;
	else if (moved || guard->partial_since == 0)
		guard->partial_since = now;
	return GUARD_PASS;
}

void h2_guard_ate(struct h2_guard *guard, size_t len)
{
	const bool waits =
		guard->block_len != 0 || guard->split; /* for the end of a header block */

	must(guard->next >= len && (!waits || guard->block >= len));
	guard->next -= len;
	guard->block -= len; /* means nothing where there is none */
	if (guard->ends.count != 0)
		guard_ends_ate(&guard->ends, waits ? guard->block_stream : 0);
}

/* ---- pace ---- */
enum guard_verdict h2_guard_check_pace(struct h2_guard *guard, struct guard_budget *budget,
				       nsec_t now)
{
	h2_guard_forgive(guard);
	if (guard->partial_since != 0 && guard_too_slow(budget, guard->partial_since, now))
		return GUARD_SLOW;
	for (uint32_t i = 0; i < guard->upload_count; i++)
		guard_body_check(budget, &uploads_of(guard)[i].body, now);
	if (guard->upload_count == 0) {
		free(guard->many);
		guard->many = NULL;
	}
	return GUARD_PASS;
}

/* ---- uploads that have ended early ---- */
const struct guard_body *h2_guard_over(struct h2_guard *guard, uint32_t *at)
{
	const struct guard_upload *uploads = uploads_of(guard);
	for (; *at < guard->upload_count; ++*at)
		if (uploads[*at].body.over != GUARD_GOES_ON)
			return &uploads[*at].body;
	return NULL;
}

void h2_guard_forget(struct h2_guard *guard, struct guard_budget *budget, uint32_t at, nsec_t now)
{
	must(at < guard->upload_count);
	struct guard_upload *upload = &uploads_of(guard)[at];
	const uint32_t stream = upload->body.stream;

	upload_end(guard, budget, upload);
	note_ended(guard, stream, now);
}
