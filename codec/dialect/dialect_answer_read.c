/* dialect_answer_read.c - members of an answer, of whatever type they come. */
#include "codec/dialect/dialect_answer.h"

#include "codec/json/json_escape.h"

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

/* A fraction: some hosts count tokens so. False: no int64_t holds it. */
static bool round_up(struct slice number, int64_t *out)
{
	const double value = json_to_double(number);

	if (json_is_integer(number) || value < 0 || value >= 0x1p53)
		return false;
	*out = (int64_t)value;
	*out += (double)*out < value;
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
	if (!json_number(r, &number))
		return false;
	if (!json_to_int64(number, &value) && !round_up(number, &value))
		return false;
	if (value < 0)
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

/* ---- counters ---- */

/* Each counter is below 2^63, so that two of them cannot overflow. */
void answer_add_rest(struct usage *usage, uint64_t total)
{
	const uint64_t said = usage->input + usage->output;
	const uint64_t read = usage->cache_read, written = usage->cache_write;

	if (total <= said)
		return;
	const uint64_t rest = total - said;
	if (rest == read || rest == written || rest == read + written ||
	    usage->input < read + written) {
		usage->input += rest;
		return;
	}
	usage->output += rest;
	usage->reasoning = usage->reasoning > rest ? usage->reasoning : rest;
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
	return value < max ? value : max;
}

void answer_set_usage(struct answer *a, struct usage usage)
{
	usage.cache_read = at_most(usage.cache_read, usage.input);
	usage.cache_write = at_most(usage.cache_write, usage.input - usage.cache_read);
	usage.cache_write_1h = at_most(usage.cache_write_1h, usage.cache_write);
	usage.reasoning = at_most(usage.reasoning, usage.output);
	a->usage = usage;
}
