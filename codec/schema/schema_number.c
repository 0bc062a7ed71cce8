#include "codec/schema/schema_number.h"

#include "codec/json/json_number.h"

#include <stdio.h>

enum { DIVISOR_DIGITS_MAX = 18 };

/* The next digit, 0 behind the last. */
static int next_digit(const char **at, const char *end)
{
	if (*at < end && **at == '.')
		++*at;
	return *at < end ? *(*at)++ - '0' : 0;
}

/* Regardless of signs; none of them is zero. */
static int order_sizes(const struct json_number *a, const struct json_number *b)
{
	const char *in_a = a->first, *in_b = b->first;

	if (a->exponent != b->exponent)
		return a->exponent < b->exponent ? -1 : 1;
	while (in_a < a->last || in_b < b->last) {
		int difference = next_digit(&in_a, a->last) - next_digit(&in_b, b->last);
		if (difference != 0)
			return difference;
	}
	return 0;
}

static int sign_of(const struct json_number *n)
{
	if (n->count == 0)
		return 0;
	return n->negative ? -1 : 1;
}

int number_order(struct slice a, struct slice b)
{
	const struct json_number left = json_number_of(a), right = json_number_of(b);
	const int sign = sign_of(&left);

	if (sign != sign_of(&right))
		return sign - sign_of(&right);
	return sign == 0 ? 0 : sign * order_sizes(&left, &right);
}

int number_order_count(struct slice a, size_t count)
{
	char text[24];
	const int len = snprintf(text, sizeof(text), "%zu", count);

	return number_order(a, slice_of(text, (size_t)len));
}

bool number_is_whole(struct slice raw)
{
	const struct json_number n = json_number_of(raw);

	return n.count == 0 || n.exponent >= (int64_t)n.count;
}

__extension__ typedef unsigned __int128 wide;

/* 10^power modulo `by`. */
static uint64_t power_of_ten(uint64_t power, uint64_t by)
{
	uint64_t result = 1 % by, base = 10 % by;

	for (; power != 0; power >>= 1) {
		if (power & 1)
			result = (uint64_t)((wide)result * base % by);
		base = (uint64_t)((wide)base * base % by);
	}
	return result;
}

/* Both are whole numbers without a zero at their end, times a power of ten: A x 10^x, B x 10^y. With x below
 * y the first cannot be a multiple of the second: A would have to end in zeros. */
enum number_multiple number_multiple_of(struct slice a, struct slice of)
{
	const struct json_number n = json_number_of(a), by = json_number_of(of);
	const int64_t shift = (n.exponent - (int64_t)n.count) - (by.exponent - (int64_t)by.count);
	uint64_t divisor = 0, rest = 0;
	const char *at = by.first;

	if (by.count == 0 || by.negative || by.count > DIVISOR_DIGITS_MAX)
		return NUMBER_NOT_TOLD;
	if (n.count == 0)
		return NUMBER_MULTIPLE;
	if (shift < 0)
		return NUMBER_NO_MULTIPLE;
	for (size_t i = 0; i < by.count; i++)
		divisor = divisor * 10 + (uint64_t)next_digit(&at, by.last);
	at = n.first;
	for (size_t i = 0; i < n.count; i++)
		rest = (uint64_t)(((wide)rest * 10 + (unsigned)next_digit(&at, n.last)) % divisor);
	rest = (uint64_t)((wide)rest * power_of_ten((uint64_t)shift, divisor) % divisor);
	return rest == 0 ? NUMBER_MULTIPLE : NUMBER_NO_MULTIPLE;
}

uint64_t number_hash(struct slice raw)
{
	const struct json_number n = json_number_of(raw);
	const char *at = n.first;
	uint64_t hash = 0;

	if (n.count == 0)
		return 0;
	for (size_t i = 0; i < n.count; i++)
		hash = hash * 31 + (uint64_t)next_digit(&at, n.last);
	return (hash * 31 + (uint64_t)n.exponent) * 2 + n.negative;
}
