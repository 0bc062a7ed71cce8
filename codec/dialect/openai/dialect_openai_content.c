/* dialect_openai_content.c - what a Chat Completions message says as text. */
#include "codec/dialect/openai/dialect_openai.h"

static void add_text(struct answer *a, struct slice raw)
{
	answer_add(a, (struct answer_block){ .kind = ANSWER_TEXT, .text = raw });
}

void openai_read_part(struct answer *a, struct json_reader *r)
{
	enum { TYPE, TEXT };
	static const struct json_name names[] = {
		[TYPE] = JSON_NAME("type"), [TEXT] = JSON_NAME("text")
	};
	struct json_fields fields = JSON_FIELDS(names);
	struct slice type = { NULL, 0 }, text = { NULL, 0 };
	uint32_t member;

	if (!json_enter_object(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == TYPE)
			answer_take_string(r, &type);
		else if (member == TEXT)
			answer_take_string(r, &text);
		else
			answer_skip(r);
	if (json_str_eq(type, SLICE("text")) || json_str_eq(type, SLICE("output_text"))) {
		if (slice_absent(text))
			answer_odd(a,
				   "A text part of the provider's answer has no text: malformed");
		add_text(a, text);
	} else if (!json_str_eq(type, SLICE("thinking"))) {
		answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
	}
}

/* A string, null, or a list of chunks (Mistral). */
void openai_read_content(struct answer *a, struct json_reader *r)
{
	struct slice raw;

	switch (json_peek(r)) {
	case JSON_STRING:
		if (json_take_string(r, &raw))
			add_text(a, raw);
		break;
	case JSON_ARRAY:
		if (json_enter_array(r))
			while (json_next_item(r))
				openai_read_part(a, r);
		break;
	case JSON_NULL:
		(void)json_null(r);
		break;
	default:
		answer_odd(a, "The content of the provider's answer is neither text nor parts: "
			      "malformed");
		(void)json_skip(r, NULL);
	}
}
