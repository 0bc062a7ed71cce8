/* dialect_answer_read.c - members of an answer, of whatever type they come. */
#include "codec/dialect_answer.h"

#include "codec/json_escape.h"

/* Digits that an int64_t holds whatever they are, in front of what ends a member. */
static bool take_digits(struct json_reader *r, uint64_t *out)
{
	enum { DIGITS_MAX = 18 };
	const char *at = r->at;
	uint64_t value = 0;

	if (r->end - at <= DIGITS_MAX)
		return false;
	for (; scan_is_digit(*at) && at - r->at < DIGITS_MAX; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == r->at || (*r->at == '0' && at - r->at > 1) || (*at != ',' && *at != '}'))
		return false;
	r->at = at;
	*out = value;
	return true;
}

bool answer_take_count(struct json_reader *r, uint64_t *out)
{
	struct slice number;
	int64_t value;

	if (take_digits(r, out))
		return true;
	if (json_peek(r) != JSON_NUMBER) {
		(void)json_skip(r, NULL);
		return false;
	}
	if (!json_number(r, &number) || !json_to_int64(number, &value) || value < 0)
		return false;
	*out = (uint64_t)value;
	return true;
}

void answer_take_count_of(struct json_reader *r, const struct json_name *name, uint64_t *out)
{
	struct json_fields fields = { .names = name, .count = 1 };
	uint32_t member;

	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == 0)
			(void)answer_take_count(r, out);
		else
			answer_skip(r);
}

void answer_take_string_of(struct json_reader *r, const struct json_name *name, struct slice *out)
{
	struct json_fields fields = { .names = name, .count = 1 };
	uint32_t member;

	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == 0)
			answer_take_string(r, out);
		else
			answer_skip(r);
}

void answer_take_args(struct answer *a, struct json_reader *r, struct answer_block *call)
{
	if (!answer_is_at(r, '"') && json_peek(r) != JSON_STRING) {
		(void)json_skip(r, &call->args);
		return;
	}
	const char *from = r->at;
	if (from != a->args_last.at) {
		if (!json_take_unescaped(r, a->into, &a->args_plain))
			return;
		a->args_last = slice_of(from, (size_t)(r->at - from));
		if (slice_absent(a->args_plain))
			answer_no_memory(a);
	}
	r->at = from + a->args_last.len;
	call->args = a->args_plain;
	call->args_unescaped = true;
}
