#include "gateway/front/mcp/mcp_filter.h"

#include "codec/base/must.h"
#include "codec/json/json_write.h"
#include "codec/mcp/mcp_edit.h"

enum {
	SNIFF_FROM = 16 << 10, /* bytes of an event that is not whole: its names are looked at */
	ARRAY_TAKEN_MAX = 64,  /* samplings of one array; a server that sends more means harm */
	ROOM_KEPT = 64 << 10,  /* bytes of it that is kept between two events */
};

void mcp_filter_init(struct mcp_filter *filter, const struct mcp_filter_events *events,
		     struct arena *arena, bool takes)
{
	arena_give(&filter->room);
	*filter = (struct mcp_filter){ .events = events, .arena = arena, .takes = takes };
	arena_init(&filter->room, arena->pool, 4 * (size_t)MCP_HELD_MAX);
	arena_init(&filter->scratch, arena->pool, MCP_HELD_MAX + (1 << 20));
	sse_cut_init(&filter->cut);
	mcp_sniff_init(&filter->sniff, filter->rounds);
}

/* An event of many megabytes does not keep their room for the rest of a stream that may be open for hours. */
static void give_room(struct mcp_filter *filter)
{
	if (filter->rest.len != 0 || filter->rest.room <= ROOM_KEPT)
		return;
	filter->rest = (struct mcp_buffer){ .len = 0 };
	arena_give(&filter->room);
}

void mcp_filter_free(struct mcp_filter *filter)
{
	filter->rest = (struct mcp_buffer){ .len = 0 };
	arena_give(&filter->room);
}

void mcp_filter_again(struct mcp_filter *filter)
{
	filter->rest.len = 0;
	give_room(filter);
	filter->swallowed = false;
	sse_cut_init(&filter->cut);
	mcp_sniff_init(&filter->sniff, filter->rounds);
}

/* ---- arrays of messages ---- */

static void note_kind(struct slice value, struct mcp_passed *passed)
{
	struct mcp_message message;

	if (json_loose_kind(value) != JSON_LOOSE_OBJECT)
		return;
	mcp_message_read(value, &message);
	passed->asks |= message.kind == MCP_REQUEST;
	passed->answers |= message.kind == MCP_RESPONSE;
}

/* Whether a message that came by itself or in an array stays here. */
static bool is_taken(struct mcp_filter *filter, struct slice value,
		     const struct mcp_message *message)
{
	if (mcp_message_may_sample(message)) {
		filter->events->take(filter, value, message);
		return true;
	}
	const struct slice id = mcp_message_cancels(message);
	return !slice_absent(id) && filter->events->cancel(filter, id);
}

/* The same of a member of an array. */
static bool is_taken_member(struct mcp_filter *filter, struct slice value)
{
	struct mcp_message message;

	if (json_loose_kind(value) != JSON_LOOSE_OBJECT)
		return false;
	mcp_message_read(value, &message);
	return is_taken(filter, value, &message);
}

/* What is left of an array, in `into`: an array, also of one; nothing of none. *taken: how many went; none, and *out is the
 * array. False: no memory. */
static bool cut_array(struct mcp_filter *filter, struct slice array, struct arena *into,
		      struct slice *out, uint32_t *taken, struct mcp_passed *passed)
{
	struct mcp_edits edits;
	struct mcp_cut rest;

	*taken = 0;
	*out = array;
	if (!json_loose_sound(array))
		return true;
	mcp_edits_init(&edits, array, into);
	mcp_cut_begin(&rest, &edits, array);
	while (mcp_cut_next(&rest)) {
		if (*taken == ARRAY_TAKEN_MAX)
			return false;
		if (is_taken_member(filter, rest.walk.value)) {
			mcp_cut_drop(&rest);
			(*taken)++;
		} else {
			note_kind(rest.walk.value, passed);
		}
	}
	if (*taken == 0)
		return true;
	*out = rest.left == 0 ? SLICE("") : mcp_edits_flat(&edits, into);
	return !slice_absent(*out);
}

/* ---- an event ---- */

static bool pass(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	filter->swallowed = false;
	return filter->events->pass(filter, passed);
}

static bool swallow(struct mcp_filter *filter)
{
	filter->swallowed = true;
	return true;
}

static bool is_data_line(const char *at, const char *end)
{
	return end - at >= 4 && memcmp(at, "data", 4) == 0 && (end - at == 4 || at[4] == ':');
}

struct slice mcp_filter_with_data(struct slice raw, struct slice data, struct arena *into)
{
	const char *at = raw.at, *end = at + raw.len;
	struct gather out;

	gather_init(&out, into);
	while (at < end) {
		const char *stop = at;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		const char *next = stop < end ? stop + 1 : stop;
		if (next < end && *stop == '\r' && *next == '\n')
			next++;
		if (stop == at) { /* the blank line: the data stands in front of it */
			gather_lit(&out, "data: ");
			for (size_t i = 0; i < data.len; i++)
				if (data.at[i] != '\n' && data.at[i] != '\r')
					gather_raw(&out, slice_of(data.at + i, 1));
			gather_lit(&out, "\n");
		}
		if (!is_data_line(at, stop))
			gather_raw(&out, slice_of(at, (size_t)(next - at)));
		at = next;
	}
	return gather_done(&out) == ERR_OK ? gather_flat(&out, into) : slice_of(NULL, 0);
}

static bool handle_array(struct mcp_filter *filter, const struct sse_cut_piece *piece,
			 struct slice array, struct mcp_passed *passed)
{
	struct slice left;
	uint32_t taken;

	if (!cut_array(filter, array, &filter->scratch, &left, &taken, passed))
		return false;
	if (taken != 0 && left.len == 0)
		return swallow(filter);
	if (taken != 0) {
		passed->raw = mcp_filter_with_data(piece->raw, left, &filter->scratch);
		if (slice_absent(passed->raw))
			return false;
	}
	return pass(filter, passed);
}

static bool remember_id(struct mcp_filter *filter, const struct sse_cut_piece *piece)
{
	if (piece->retries) {
		filter->retries = true;
		filter->retry_ms = piece->retry_ms;
	}
	if (slice_absent(piece->id) || piece->id.len > MCP_LAST_ID_MAX)
		return true;
	filter->last_id.len = 0;
	return mcp_buffer_add(&filter->last_id, filter->arena, piece->id);
}

static bool handle_event(struct mcp_filter *filter, const struct sse_cut_piece *piece)
{
	struct mcp_passed passed = { .raw = piece->raw,
				     .id = piece->id,
				     .name = piece->name,
				     .data = piece->data,
				     .between = true };
	struct mcp_message message;
	struct slice value;

	if (!remember_id(filter, piece))
		return false;
	if (slice_absent(piece->data))
		return pass(filter, &passed);
	if (!mcp_message_read_text(piece->data, &message, &value)) {
		if (filter->takes && json_loose_whole(piece->data, &value) &&
		    json_loose_kind(value) == JSON_LOOSE_ARRAY)
			return handle_array(filter, piece, value, &passed);
		return pass(filter, &passed);
	}
	if (filter->takes && is_taken(filter, value, &message))
		return swallow(filter);
	passed.message = &message;
	passed.data = value;
	passed.asks = message.kind == MCP_REQUEST;
	passed.answers = message.kind == MCP_RESPONSE;
	return pass(filter, &passed);
}

/* A part of an event that is known not to be a sampling, or the line feed behind one. */
static bool handle_part(struct mcp_filter *filter, const struct sse_cut_piece *piece,
			enum sse_cut_got got)
{
	const struct mcp_passed passed = { .raw = piece->raw,
					   .id = piece->id,
					   .last = got == SSE_CUT_LAST,
					   .between = got != SSE_CUT_PART };

	if (got == SSE_CUT_TAIL && filter->swallowed)
		return true;
	if (got == SSE_CUT_LAST)
		mcp_sniff_init(&filter->sniff, filter->rounds);
	return remember_id(filter, piece) && pass(filter, &passed);
}

/* An event that is not whole yet leaves as soon as its names have decided (mcp-proxy.md 11). */
static bool look_ahead(struct mcp_filter *filter, struct slice kept)
{
	struct slice piece;

	while (sse_cut_peek(&filter->cut, kept, &piece))
		if (mcp_sniff_feed(&filter->sniff, piece) == MCP_SNIFF_PASS) {
			sse_cut_pass(&filter->cut);
			return true;
		}
	return false;
}

/* Hands out what is whole of `kept`; what is left of it stays. */
static bool cut(struct mcp_filter *filter, struct slice *kept)
{
	for (;;) {
		struct sse_cut_piece piece;
		const enum sse_cut_got got =
			sse_cut_next(&filter->cut, *kept, &filter->scratch, &piece);

		if (got == SSE_CUT_FULL)
			return false;
		if (got == SSE_CUT_NOTHING) {
			if (filter->whole || kept->len < SNIFF_FROM || !look_ahead(filter, *kept))
				return true;
			continue;
		}
		if (got == SSE_CUT_EVENT)
			mcp_sniff_init(&filter->sniff, filter->rounds);
		if (got == SSE_CUT_EVENT ? !handle_event(filter, &piece)
					 : !handle_part(filter, &piece, got))
			return false;
		*kept = slice_of(kept->at + piece.raw.len, kept->len - piece.raw.len);
	}
}

static bool feed(struct mcp_filter *filter, struct slice bytes)
{
	const bool joined = filter->rest.len != 0;
	struct slice kept = bytes;

	if (joined) {
		if (!mcp_buffer_add(&filter->rest, &filter->room, bytes))
			return false;
		kept = mcp_buffer_slice(&filter->rest);
	}
	if (!cut(filter, &kept) || kept.len > MCP_HELD_MAX)
		return false;
	if (!joined)
		return mcp_buffer_add(&filter->rest, &filter->room, kept);
	mcp_buffer_drop(&filter->rest, filter->rest.len - kept.len);
	give_room(filter);
	return true;
}

/* The id of a request that is too large to be held, as far as its front tells. */
static struct slice id_in_front(struct slice kept)
{
	const char *at = kept.len == 0 ? NULL : memchr(kept.at, '{', kept.len);
	struct slice id = { NULL, 0 };
	struct json_loose_walk walk;

	if (at == NULL)
		return id;
	json_loose_open(&walk, slice_of(at, kept.len - (size_t)(at - kept.at)));
	while (json_loose_next(&walk)) {
		const enum json_loose_kind kind = json_loose_kind(walk.value);
		if (json_loose_is(walk.name, "id") &&
		    (kind == JSON_LOOSE_STRING || kind == JSON_LOOSE_NUMBER))
			id = walk.value;
	}
	return id;
}

/* The server waits for an answer to what nobody can hold. */
static void give_up(struct mcp_filter *filter)
{
	const struct slice id = id_in_front(mcp_buffer_slice(&filter->rest));

	if (filter->takes && !slice_absent(id))
		filter->events->too_large(filter, id);
}

void mcp_filter_fail(struct mcp_filter *filter)
{
	filter->failed = true;
	give_up(filter);
}

bool mcp_filter_feed(struct mcp_filter *filter, struct slice bytes)
{
	if (filter->failed)
		return false;
	if (filter->raw)
		filter->failed = !pass(filter, &(struct mcp_passed){ .raw = bytes });
	else
		filter->failed = !feed(filter, bytes);
	if (filter->failed && filter->rest.len > MCP_HELD_MAX)
		give_up(filter);
	arena_give(&filter->scratch);
	return !filter->failed;
}

bool mcp_filter_end(struct mcp_filter *filter)
{
	const struct mcp_passed passed = { .raw = mcp_buffer_slice(&filter->rest) };

	if (filter->failed)
		return false;
	if (filter->rest.len != 0)
		filter->failed = !pass(filter, &passed);
	filter->rest.len = 0;
	return !filter->failed;
}

bool mcp_filter_json(struct mcp_filter *filter, struct slice *body)
{
	struct mcp_passed passed = { .asks = false };
	struct mcp_message message;
	struct slice value, left;
	uint32_t taken;

	if (mcp_message_read_text(*body, &message, &value)) {
		if (is_taken(filter, value, &message))
			*body = SLICE("");
		return true;
	}
	if (!json_loose_whole(*body, &value) || json_loose_kind(value) != JSON_LOOSE_ARRAY)
		return true;
	if (!cut_array(filter, value, filter->arena, &left, &taken, &passed))
		return false;
	if (taken != 0)
		*body = left;
	return true;
}
