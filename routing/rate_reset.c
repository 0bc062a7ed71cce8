/* rate_reset.c - the forms in which providers say when a limit is renewed (contract/providers.md 2, 3). */
#include "routing/rate_reset.h"

__extension__ typedef unsigned __int128 wide; /* products of two 64-bit numbers */

/* Numbers from here on are times since the epoch: nobody waits for thirty years. */
static const uint64_t epoch_s = 1000000000, epoch_ms = 1000000000000;
static const uint64_t longest_s = 1000000000;
static const nsec_t wait_most = 30 * 86400 * SEC; /* nobody is asked to wait longer */

/* "12" or "12.5" at the front of *text, in 1/1e9; the digits are cut off. */
static bool take_number(struct slice *text, uint64_t *billionths)
{
	uint64_t value = 0, unit = 1000000000;
	size_t i = 0, digits = 0;

	for (; i < text->len && text->at[i] >= '0' && text->at[i] <= '9'; i++, digits++) {
		if (value > UINT64_MAX / 10 / unit / 10)
			return false;
		value = value * 10 + (uint64_t)(text->at[i] - '0');
	}
	value *= unit;
	if (i < text->len && text->at[i] == '.')
		for (i++; i < text->len && text->at[i] >= '0' && text->at[i] <= '9'; i++, digits++)
			value += (uint64_t)(text->at[i] - '0') * (unit /= 10);
	*text = slice_of(text->at + i, text->len - i);
	*billionths = value;
	return digits != 0;
}

/* The unit at the front of *text, in nanoseconds; 0: none. The longer names first. */
static uint64_t take_unit(struct slice *text)
{
	static const struct {
		struct slice name;
		uint64_t ns;
	} units[] = {
		{ SLICE_INIT("ms"), 1000000 },
		{ SLICE_INIT("us"), 1000 },
		{ SLICE_INIT("\xc2\xb5s"), 1000 },
		{ SLICE_INIT("\xce\xbcs"), 1000 },
		{ SLICE_INIT("ns"), 1 },
		{ SLICE_INIT("s"), 1000000000 },
		{ SLICE_INIT("m"), 60000000000 },
		{ SLICE_INIT("h"), 3600000000000 },
		{ SLICE_INIT("d"), 86400000000000 },
	};

	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (slice_starts(*text, units[i].name)) {
			*text = slice_of(text->at + units[i].name.len,
					 text->len - units[i].name.len);
			return units[i].ns;
		}
	return 0;
}

/* Go's time.Duration: numbers with units, one behind the other. */
static bool go_duration(struct slice text, nsec_t *in)
{
	uint64_t sum = 0;

	while (text.len != 0) {
		uint64_t number;
		if (!take_number(&text, &number))
			return false;
		const uint64_t unit = take_unit(&text);
		const wide ns = (wide)number * unit / 1000000000;
		if (unit == 0 || ns > longest_s * SEC || sum > longest_s * SEC)
			return false;
		sum += (uint64_t)ns;
	}
	*in = sum;
	return true;
}

/* `count` digits at offset `at`, which are there. */
static bool digits(struct slice text, size_t at, size_t count, uint64_t *out)
{
	*out = 0;
	for (size_t i = at; i < at + count; i++) {
		const unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
		if (digit > 9)
			return false;
		*out = *out * 10 + digit;
	}
	return true;
}

/* Days since 1970-01-01; March comes first, so that a leap day is the last of its year. */
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
	const uint64_t y = month <= 2 ? year - 1 : year;
	const uint64_t m = month <= 2 ? month + 9 : month - 3;

	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* "Z" or "+02:00" behind the time, after a fraction that is left out; *off in seconds, east positive. */
static bool zone(struct slice text, size_t at, int64_t *off)
{
	uint64_t hours, minutes;

	if (at < text.len && text.at[at] == '.')
		for (at++; at < text.len && text.at[at] >= '0' && text.at[at] <= '9';)
			at++;
	*off = 0;
	if (at + 1 == text.len && (text.at[at] == 'Z' || text.at[at] == 'z'))
		return true;
	if (at + 6 != text.len || (text.at[at] != '+' && text.at[at] != '-') ||
	    text.at[at + 3] != ':' || !digits(text, at + 1, 2, &hours) ||
	    !digits(text, at + 4, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*off = (int64_t)(hours * 3600 + minutes * 60) * (text.at[at] == '-' ? -1 : 1);
	return true;
}

/* As seconds since the epoch. */
static bool rfc3339(struct slice text, int64_t *out)
{
	uint64_t year, month, day, hour, minute, second;
	int64_t off;

	if (text.len < 20 || text.at[4] != '-' || text.at[7] != '-' ||
	    (text.at[10] != 'T' && text.at[10] != 't' && text.at[10] != ' ') ||
	    text.at[13] != ':' || text.at[16] != ':' || !digits(text, 0, 4, &year) ||
	    !digits(text, 5, 2, &month) || !digits(text, 8, 2, &day) ||
	    !digits(text, 11, 2, &hour) || !digits(text, 14, 2, &minute) ||
	    !digits(text, 17, 2, &second) || !zone(text, 19, &off))
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
	    minute > 59 || second > 60)
		return false;
	*out = (int64_t)(days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second) -
	       off;
	return true;
}

/* From now until then; 0 when that is over. */
static nsec_t until(uint64_t then_s, uint64_t wall_ns)
{
	const uint64_t now_s = wall_ns / SEC;

	if (then_s <= now_s)
		return 0;
	return (then_s - now_s < longest_s ? then_s - now_s : longest_s) * SEC;
}

static bool plain_number(struct slice text, uint64_t wall_ns, nsec_t *in)
{
	uint64_t whole;
	struct slice rest = text;

	if (slice_to_u64(text, &whole) && whole >= epoch_s) {
		*in = until(whole >= epoch_ms ? whole / 1000 : whole, wall_ns);
		return true;
	}
	return take_number(&rest, in) && rest.len == 0; /* seconds in 1/1e9 are nanoseconds */
}

bool rate_reset(struct slice text, uint64_t wall_ns, nsec_t *in)
{
	int64_t then;

	if (text.len == 0)
		return false;
	if (rfc3339(text, &then)) {
		*in = then <= 0 ? 0 : until((uint64_t)then, wall_ns);
		return true;
	}
	return plain_number(text, wall_ns, in) || go_duration(text, in);
}

nsec_t rate_reset_wait(const struct rate_header rates[RATE_KINDS], uint64_t wall_ns)
{
	nsec_t used_up = 0, first = 0;

	for (uint32_t i = 0; rates != NULL && i < RATE_KINDS; i++) {
		uint64_t left;
		nsec_t in;
		if (!rate_reset(slice_trim(rates[i].reset), wall_ns, &in) || in == 0)
			continue;
		if (slice_to_u64(slice_trim(rates[i].remaining), &left) && left == 0)
			used_up = in > used_up ? in : used_up;
		first = first == 0 || in < first ? in : first;
	}
	const nsec_t wait = used_up != 0 ? used_up : first;
	return wait < wait_most ? wait : wait_most;
}
