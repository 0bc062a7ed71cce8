/* dialect_openai_turns.c - the messages as hosts want them that are particular about whose turn it is. */
#include "codec/dialect/openai/dialect_openai.h"

static bool is_empty_turn(const struct encoder *e, const struct message *message)
{
	for (uint32_t i = 0; i < message->count; i++)
		if (!encoder_drops_block(e, &e->request->blocks[message->first + i]))
			return false;
	return message->assistant;
}

/* Adds a message to those that are arranged. */
static void keep(struct sampling_request *out, const struct message *message)
{
	out->messages[out->message_count++] = *message;
}

/* Mistral refuses a turn of its own that has neither content nor calls. */
static void leave_out_empty_turns(struct encoder *e, struct sampling_request *out)
{
	const struct sampling_request *request = e->request;

	for (uint32_t i = 0; i < request->message_count; i++)
		if (!is_empty_turn(e, &request->messages[i]))
			keep(out, &request->messages[i]);
	if (out->message_count != request->message_count)
		encoder_adjust(e, ADJUST_EMPTY_TURN_REMOVED);
}

/* Whether a message is one with the message before it. Results have messages of their own. */
static bool goes_on(const struct encoder *e, const struct message *before,
		    const struct message *message)
{
	return before->assistant == message->assistant && !encoder_holds_results(e, before) &&
	       !encoder_holds_results(e, message);
}

/* One message for neighbours of one role. Their blocks stand behind each other already, but for turns that
 * were left out, and these have nothing that is written. */
static void merge_neighbours(const struct encoder *e, struct sampling_request *out)
{
	const uint32_t count = out->message_count;

	out->message_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct message message = out->messages[i];
		struct message *last = &out->messages[out->message_count - (i != 0)];
		if (i == 0 || !goes_on(e, last, &message))
			keep(out, &message);
		else
			last->count = message.first + message.count - last->first;
	}
}

void openai_arrange(struct encoder *e, struct sampling_request *out)
{
	const struct sampling_request *request = e->request;

	*out = *request;
	out->messages = arena_take(e->into, request->message_count * sizeof(*out->messages));
	if (out->messages == NULL) {
		e->failed = true;
		return;
	}
	out->message_count = 0;
	if (e->profile->id_rule == ID_RULE_MISTRAL9)
		leave_out_empty_turns(e, out);
	else
		for (uint32_t i = 0; i < request->message_count; i++)
			keep(out, &request->messages[i]);
	if (e->profile->merge_same_role)
		merge_neighbours(e, out);
	e->counted_anew = out->message_count != request->message_count;
	e->request = out;
}
