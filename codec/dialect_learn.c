#include "codec/dialect_learn.h"

/* A 400 that names one parameter: by `param`, or by a text that says it is not supported. */
static const struct learn_row {
	struct slice param, word; /* word: has to be in the message too; empty: nothing */
	enum learn learn;
} learn_rows[] = {
	{ SLICE_INIT("max_tokens"), SLICE_INIT("max_completion_tokens"), LEARN_COMPLETION_TOKENS },
	{ SLICE_INIT("temperature"), SLICE_INIT(""), LEARN_NO_TEMPERATURE },
	{ SLICE_INIT("stop"), SLICE_INIT(""), LEARN_NO_STOP },
	{ SLICE_INIT("reasoning_effort"), SLICE_INIT(""), LEARN_EFFORT_NONE },
	{ SLICE_INIT("reasoning.effort"), SLICE_INIT(""), LEARN_EFFORT_NONE },
	{ SLICE_INIT("tool_choice"), SLICE_INIT(""), LEARN_NO_FORCED_TOOL },
};

static bool says_unsupported(struct slice message)
{
	return slice_has_nocase(message, SLICE("not support")) ||
	       slice_has_nocase(message, SLICE("unsupported")) ||
	       slice_has_nocase(message, SLICE("not permitted")) ||
	       slice_has_nocase(message, SLICE("deprecated"));
}

/* Anthropic's texts begin with the parameter: "tool_choice: ..."; others put it into quotes. */
static bool names_param(const struct error_body *body, struct slice param)
{
	struct slice message = body->message;

	if (!slice_absent(body->param))
		return json_str_eq(body->param, param);
	if (!slice_starts(message, param)) {
		const char *found = memmem(message.at, message.len, param.at, param.len);
		return found != NULL && found > message.at &&
		       (found[-1] == '\'' || found[-1] == '`') &&
		       found + param.len < message.at + message.len &&
		       found[param.len] == found[-1];
	}
	return message.len > param.len &&
	       (message.at[param.len] == ':' || message.at[param.len] == ' ');
}

/* Private blocks that do not belong where they stand (contract/providers.md 2.1), and what other hosts, and
 * the same ones before, say of blocks that they cannot read: another account's, another model's. */
static bool refuses_blocks(const struct error_body *body)
{
	static const struct slice words[] = {
		SLICE_INIT("bound to a different conversation"),
		SLICE_INIT("invalid `signature` in `thinking` block"),
		SLICE_INIT("invalid signature in thinking block"),
		SLICE_INIT("corrupted thought signature"),
		SLICE_INIT("thought signature is not valid"),
	};

	if (json_str_eq(body->code, SLICE("invalid_encrypted_content")))
		return true;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (slice_has_nocase(body->message, words[i]))
			return true;
	return false;
}

enum learn learn_from(const struct error_body *body, int status)
{
	if (status != 400 || slice_absent(body->message))
		return LEARN_NOTHING;
	if (refuses_blocks(body))
		return LEARN_UNBIND_THINKING;
	if (!says_unsupported(body->message))
		return LEARN_NOTHING;
	for (size_t i = 0; i < COUNT_OF(learn_rows); i++)
		if (names_param(body, learn_rows[i].param) &&
		    slice_has_nocase(body->message, learn_rows[i].word))
			return learn_rows[i].learn;
	return LEARN_NOTHING;
}
