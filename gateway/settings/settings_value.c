#include "gateway/settings/settings_value.h"

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "tenants/jwt.h"
#include "tenants/tenant.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- decimals ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The exponent behind e; *rest begins after the e. False when there is no number. */
static bool read_exponent(struct slice rest, int64_t *out)
{
	bool negative = rest.len > 0 && rest.at[0] == '-';
	uint64_t value;

	if (rest.len > 0 && (rest.at[0] == '-' || rest.at[0] == '+'))
		rest = slice_of(rest.at + 1, rest.len - 1);
	if (!slice_to_u64(rest, &value) || value > 1000)
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

static enum value_fault scale(uint64_t value, int64_t power, uint64_t *out)
{
	for (; power > 0 && value != 0; power--)
		if (__builtin_mul_overflow(value, 10, &value))
			return VALUE_TOO_LARGE;
	for (; power < 0 && value != 0; power++) {
		if (value % 10 != 0)
			return VALUE_TOO_PRECISE;
		value /= 10;
	}
	*out = value;
	return VALUE_OK;
}

enum value_fault value_decimal(struct slice text, uint32_t places, uint64_t *out)
{
	uint64_t value = 0;
	int64_t power = places, exponent = 0;
	bool point = false;
	size_t i = 0, count = 0;

	for (; i < text.len && (is_digit(text.at[i]) || (text.at[i] == '.' && !point)); i++) {
		if (text.at[i] == '.') {
			point = true;
			continue;
		}
		count++;
		power -= point;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text.at[i] - '0'), &value))
			return VALUE_TOO_LARGE;
	}
	if (count == 0)
		return VALUE_UNREADABLE;
	if (i < text.len) {
		struct slice rest = slice_of(text.at + i + 1, text.len - i - 1);
		if ((text.at[i] != 'e' && text.at[i] != 'E') || !read_exponent(rest, &exponent))
			return VALUE_UNREADABLE;
	}
	return scale(value, power + exponent, out);
}

enum value_fault value_fraction(struct slice text, double *out)
{
	uint64_t billionths;
	enum value_fault fault = value_decimal(text, 9, &billionths);

	if (fault == VALUE_OK)
		*out = (double)billionths / 1e9;
	return fault;
}

/* ---- numbers with a unit ---- */

struct unit {
	const char *name;
	uint64_t factor;
};

/* Rising, so that the largest that divides a value is found from the end; plain bytes as a number. */
static const struct unit size_units[] = {
	{ "B", 1 },
	{ "", 1 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "GiB", UINT64_C(1) << 30 },
};
static const struct unit duration_units[] = {
	{ "ns", 1 },       { "us", USEC },      { "ms", MSEC },       { "s", SEC },
	{ "m", 60 * SEC }, { "h", 3600 * SEC }, { "d", 86400 * SEC },
};

static enum value_fault with_unit(struct slice text, const struct unit *units, size_t count,
				  uint64_t *out)
{
	size_t digits = 0;
	uint64_t value;

	while (digits < text.len && is_digit(text.at[digits]))
		digits++;
	if (digits == 0)
		return VALUE_UNREADABLE;
	if (!slice_to_u64(slice_of(text.at, digits), &value))
		return VALUE_TOO_LARGE;
	struct slice name = slice_of(text.at + digits, text.len - digits);
	for (size_t i = 0; i < count; i++) {
		if (!slice_eq(name, slice_str(units[i].name)))
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return VALUE_TOO_LARGE;
		*out = value;
		return VALUE_OK;
	}
	return VALUE_UNREADABLE;
}

static enum value_fault read_bool(struct slice text, uint64_t *out)
{
	static const char *const words[] = { "false", "true", "False", "True", "FALSE", "TRUE" };

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (slice_eq(text, slice_str(words[i]))) {
			*out = i % 2;
			return VALUE_OK;
		}
	return VALUE_UNREADABLE;
}

enum value_fault value_number(enum setting_type type, struct slice text, uint64_t *out)
{
	switch (type) {
	case TYPE_BOOL:
		return read_bool(text, out);
	case TYPE_AUTO_COUNT:
		if (slice_eq(text, SLICE("auto"))) {
			*out = 0;
			return VALUE_OK;
		}
		return value_decimal(text, 0, out);
	case TYPE_COUNT:
		return value_decimal(text, 0, out);
	case TYPE_SIZE:
		return with_unit(text, size_units, COUNT_OF(size_units), out);
	case TYPE_DURATION:
		return with_unit(text, duration_units, COUNT_OF(duration_units), out);
	case TYPE_USD:
		return value_decimal(text, 9, out);
	case TYPE_PRICE: /* USD a million = 1e-6 USD a token = 1e6 pico-USD a token */
		return value_decimal(text, 6, out);
	default:
		must(type <= TYPE_PRICE);
		return VALUE_UNREADABLE;
	}
}

static void format_unit(const struct unit *units, size_t count, uint64_t value, char *out,
			size_t room)
{
	size_t i = count - 1;

	while (i > 0 && value % units[i].factor != 0)
		i--;
	if (value == 0)
		(void)snprintf(out, room, "%s", units == duration_units ? "0s" : "0");
	else
		(void)snprintf(out, room, "%" PRIu64 "%s", value / units[i].factor, units[i].name);
}

static void format_decimal(uint64_t value, uint32_t places, char *out, size_t room)
{
	uint64_t one = 1;

	for (uint32_t i = 0; i < places; i++)
		one *= 10;
	uint64_t rest = value % one;
	while (rest != 0 && rest % 10 == 0) {
		rest /= 10;
		places--;
	}
	if (rest == 0)
		(void)snprintf(out, room, "%" PRIu64, value / one);
	else
		(void)snprintf(out, room, "%" PRIu64 ".%0*" PRIu64, value / one, (int)places, rest);
}

void value_format(enum setting_type type, uint64_t value, char *out, size_t room)
{
	switch (type) {
	case TYPE_BOOL:
		(void)snprintf(out, room, "%s", value == 0 ? "false" : "true");
		break;
	case TYPE_SIZE:
		format_unit(size_units, COUNT_OF(size_units), value, out, room);
		break;
	case TYPE_DURATION:
		format_unit(duration_units, COUNT_OF(duration_units), value, out, room);
		break;
	case TYPE_USD:
	case TYPE_AWAY_USD:
		format_decimal(value, 9, out, room);
		break;
	case TYPE_PRICE:
		format_decimal(value, 6, out, room);
		break;
	default:
		(void)snprintf(out, room, "%" PRIu64, value);
	}
}

/* ---- texts ---- */

/* All bytes from `low` to `high` and none of `without`. */
static bool only(struct slice text, unsigned char low, unsigned char high, const char *without)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c < low || c > high || c == 0x7f || strchr(without, c) != NULL)
			return false;
	}
	return true;
}

/* Line breaks and tabs are what makes a long text readable. libyaml has seen to UTF-8. */
static bool is_prompt(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool is_date(struct slice text)
{
	static const char form[] = "9999-99-99";

	if (text.len != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (form[i] == '-' ? text.at[i] != '-' : !is_digit(text.at[i]))
			return false;
	return true;
}

static bool is_sha256(struct slice text)
{
	if (text.len != 64)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (!is_digit(text.at[i]) && (text.at[i] < 'a' || text.at[i] > 'f'))
			return false;
	return true;
}

/* scheme "://" host [":" port], as browsers send it, or "null". */
static bool is_origin(struct slice text)
{
	struct slice rest = text;
	struct slice scheme = slice_cut(&rest, ':');

	if (slice_eq(text, SLICE("null")))
		return true;
	if (scheme.len == 0 || slice_absent(rest) || !slice_starts(rest, SLICE("//")))
		return false;
	return rest.len > 2 && memchr(rest.at + 2, '/', rest.len - 2) == NULL &&
	       only(text, 0x21, 0x7e, "\"\\@?#");
}

/* Blanks around a value are no part of it (RFC 9110 5.5): the server would not see them. */
static bool is_header_value(struct slice text)
{
	return header_text_is_value(text) && slice_trim(text).len == text.len;
}

static bool is_algorithm(struct slice text)
{
	enum jwt_alg ignored;

	return jwt_alg_find(text, &ignored);
}

const char *value_text_fault(enum setting_type type, struct slice text)
{
	switch (type) {
	case TYPE_ID:
	case TYPE_GLOB:
		return only(text, 0x21, 0x7e, "\"\\") ? NULL
						      : "has characters that a name may not have";
	case TYPE_PROMPT:
		return is_prompt(text) ? NULL : "has control characters";
	case TYPE_DATE:
		return is_date(text) ? NULL : "is not a date";
	case TYPE_SHA256:
		return is_sha256(text) ? NULL : "is not a SHA-256 in lower-case hex";
	case TYPE_ORIGIN:
		return is_origin(text) ? NULL : "is not an origin";
	case TYPE_ALGORITHM:
		return is_algorithm(text) ? NULL : "is no algorithm that tokens may use here";
	case TYPE_FRONT:
		return front_bit(text) != 0 ? NULL : "is no front";
	case TYPE_HEADER_NAME:
		return header_text_is_name(text)
			       ? NULL
			       : "has characters that a header's name may not have";
	case TYPE_HEADER_VALUE:
		return is_header_value(text) ? NULL : "has control characters, or blanks around it";
	case TYPE_SECRET:
		return only(text, 0x21, 0x7e, "")
			       ? NULL
			       : "has spaces or characters outside visible ASCII";
	default:
		return only(text, 0x20, 0xff, "") ? NULL : "has control characters";
	}
}
