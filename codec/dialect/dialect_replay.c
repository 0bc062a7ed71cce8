#include "codec/dialect/dialect_replay.h"

#include "codec/base/must.h"
#include "codec/dialect/replay.h"

/* One of the assistant's turns with calls. */
struct turn {
	bool known;
	char prefix[REPLAY_PREFIX_HEX];
	struct slice content;
};

struct encoder_replay {
	struct turn *turns;
	uint32_t count, next;
	struct sha256_sum sum; /* of the body so far, up to `summed` */
	size_t summed;         /* 0: nothing yet */
};

/* ---- in advance ---- */

static bool calls_match(struct encoder *e, const struct message *message, struct slice wanted)
{
	char hex[REPLAY_CALLS_HEX];
	uint64_t digest = 0;

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		const struct replay_call call = { block->use.id, block->use.name,
						  block->use.input };
		if (block->type == BLOCK_TOOL_USE && !replay_add_call(&digest, &call, e->into)) {
			e->failed = true;
			return false;
		}
	}
	return slice_eq(replay_calls_hex(digest, hex), wanted);
}

/* Whether the record is one of this turn. */
static bool read_turn(struct encoder *e, struct slice text, const struct message *message,
		      struct turn *turn)
{
	struct replay_record record;

	if (!replay_read(text, e->work, e->into, &record) ||
	    !slice_eq(record.dialect, slice_str(e->rules->dialect)) ||
	    !slice_eq(record.provider, e->in->provider) || !slice_eq(record.model, e->in->model) ||
	    record.prefix.len != REPLAY_PREFIX_HEX || !calls_match(e, message, record.calls))
		return false;
	if (!slice_absent(record.content) &&
	    (record.content.at[0] != e->rules->replay_opens || record.content.len <= 2))
		return false;
	*turn = (struct turn){ .known = true, .content = record.content };
	(void)memcpy(turn->prefix, record.prefix.at, sizeof(turn->prefix));
	return true;
}

/* What a turn without a record had can be told only by the prefix of a later one: it has to be followed
 * by one, and be in front of all that have any. */
static bool read_turns(struct encoder *e, struct turn *turns, uint32_t *count, bool *any)
{
	const struct sampling_request *request = e->request;
	uint32_t message = 0, call;

	for (*count = 0, *any = false;; message++, (*count)++) {
		message = replay_next_turn(request, message, &call);
		if (message == REPLAY_NO_TURN)
			return true;
		const struct slice text = *count < e->in->replay_count ? e->in->replay[*count]
								       : (struct slice){ NULL, 0 };
		turns[*count] = (struct turn){ .known = false };
		if (slice_absent(text)
			    ? *any
			    : !read_turn(e, text, &request->messages[message], &turns[*count]))
			break;
		*any |= !slice_absent(text);
	}
	*any = true;
	return false;
}

static uint32_t count_turns(const struct sampling_request *request)
{
	uint32_t count = 0, message = 0, call;

	while ((message = replay_next_turn(request, message, &call)) != REPLAY_NO_TURN) {
		count++;
		message++;
	}
	return count;
}

void encoder_replay_begin(struct encoder *e)
{
	struct encoder_replay *replay = arena_zero(e->into, sizeof(*replay));
	const uint32_t count = count_turns(e->request);
	struct turn *turns = arena_take(e->into, count * sizeof(*turns));
	bool any;

	if (replay == NULL || turns == NULL) {
		e->failed = true;
		return;
	}
	replay->turns = turns;
	if (!read_turns(e, turns, &replay->count, &any))
		encoder_adjust(e, e->rules->not_replayed);
	else if (any)
		e->replay = replay;
}

/* ---- turn by turn ---- */

/* Whether everything in front of the turn is what it was in front of the answer. */
static bool prefix_holds(struct encoder *e, const struct turn *turn)
{
	const struct encode_marks *marks = &e->out.marks;
	struct encoder_replay *replay = e->replay;
	const size_t now = gather_offset(&e->out.body);
	uint8_t digest[SHA256_BYTES];
	char hex[REPLAY_PREFIX_HEX];

	if (replay->summed == 0) {
		sha256_begin(&replay->sum);
		replay_add_range(&replay->sum, &e->out.body, marks->tools, marks->tools_end);
		replay->summed = marks->said;
	}
	replay_add_range(&replay->sum, &e->out.body, replay->summed, now);
	replay->summed = now;
	struct sha256_sum sum = replay->sum; /* goes on behind this turn */
	sha256_end(&sum, digest);
	sha256_hex(digest, sizeof(hex), hex);
	return memcmp(hex, turn->prefix, sizeof(hex)) == 0;
}

static bool has_calls(const struct encoder *e, const struct message *message)
{
	for (uint32_t i = 0; i < message->count; i++)
		if (e->request->blocks[message->first + i].type == BLOCK_TOOL_USE)
			return true;
	return false;
}

struct slice encoder_replay_take(struct encoder *e, const struct message *message, bool *known)
{
	const struct slice nothing = { NULL, 0 };
	struct encoder_replay *replay = e->replay;

	*known = false;
	if (e->failed || e->out.body.failed || e->out.replay_unfit || !has_calls(e, message))
		return nothing;
	must(replay->next < replay->count);
	const struct turn *turn = &replay->turns[replay->next++];
	if (!turn->known)
		return nothing;
	if (!prefix_holds(e, turn)) {
		e->out.replay_unfit = true;
		return nothing;
	}
	*known = true;
	e->out.replayed |= !slice_absent(turn->content);
	return turn->content;
}

void encoder_replay_use_ids(struct encoder *e, const struct message *message)
{
	for (uint32_t i = 0; i < message->count && !e->failed; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (block->type != BLOCK_TOOL_USE)
			continue;
		struct slice id = call_id_use(&e->ids, block->use.id);
		struct slice name = tool_name_sent(&e->tools, block->use.name);
		if (slice_absent(id) || slice_absent(name))
			e->failed = true;
		else if (!json_str_same(id, block->use.id))
			e->out.replay_unfit = true;
	}
}
