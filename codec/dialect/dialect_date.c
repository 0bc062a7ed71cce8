/* dialect_date.c - HTTP dates (RFC 9110 5.6.7), for Retry-After. */
#include "codec/dialect/dialect_failure.h"

struct cursor {
	const char *at, *end;
};

static bool skip(struct cursor *c, char expected)
{
	if (c->at == c->end || *c->at != expected)
		return false;
	c->at++;
	return true;
}

/* A number of `digits` digits. */
static bool number(struct cursor *c, int digits, uint32_t *out)
{
	*out = 0;
	for (; digits > 0; digits--, c->at++) {
		if (c->at == c->end || *c->at < '0' || *c->at > '9')
			return false;
		*out = *out * 10 + (uint32_t)(*c->at - '0');
	}
	return true;
}

/* 1 to 12 */
static bool month(struct cursor *c, uint32_t *out)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (*out = 1; *out <= 12; (*out)++)
		if (c->end - c->at >= 3 && memcmp(c->at, names + 3 * (*out - 1), 3) == 0) {
			c->at += 3;
			return true;
		}
	return false;
}

static bool clock_time(struct cursor *c, uint32_t *seconds)
{
	uint32_t h, m, s;

	if (!number(c, 2, &h) || !skip(c, ':') || !number(c, 2, &m) || !skip(c, ':') ||
	    !number(c, 2, &s) || h > 23 || m > 59 || s > 60)
		return false;
	*seconds = h * 3600 + m * 60 + s;
	return true;
}

/* Days from 1970-01-01; the year begins in March here, so that the leap day is its last. */
static uint64_t days(uint32_t year, uint32_t mon, uint32_t day)
{
	uint64_t y = mon <= 2 ? year - 1 : year;
	uint64_t of_year = (153 * (uint64_t)(mon > 2 ? mon - 3 : mon + 9) + 2) / 5 + day - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

/* "21 Nov 2026 20:00:30" behind "Sat, ", or "21-Nov-26 20:00:30" behind "Saturday, ". */
static bool day_first(struct cursor *c, uint32_t *year, uint32_t *mon, uint32_t *day, uint32_t *s)
{
	if (!number(c, 2, day))
		return false;
	if (skip(c, '-')) {
		if (!month(c, mon) || !skip(c, '-') || !number(c, 2, year))
			return false;
		*year += *year < 70 ? 2000 : 1900;
	} else if (!skip(c, ' ') || !month(c, mon) || !skip(c, ' ') || !number(c, 4, year)) {
		return false;
	}
	return skip(c, ' ') && clock_time(c, s) && skip(c, ' ') && skip(c, 'G') && skip(c, 'M') &&
	       skip(c, 'T');
}

/* "Nov 21 20:00:30 2026" behind "Sat "; the day may have a space for its first digit. */
static bool month_first(struct cursor *c, uint32_t *year, uint32_t *mon, uint32_t *day, uint32_t *s)
{
	if (!month(c, mon) || !skip(c, ' '))
		return false;
	if (skip(c, ' ') ? !number(c, 1, day) : !number(c, 2, day))
		return false;
	return skip(c, ' ') && clock_time(c, s) && skip(c, ' ') && number(c, 4, year);
}

bool http_date(struct slice text, uint64_t *epoch_s)
{
	struct slice rest = slice_trim(text);
	uint32_t year, mon, day, s;

	struct slice week_day = slice_cut(&rest, ' ');
	if (slice_absent(rest) || week_day.len < 3)
		return false;
	struct cursor c = { rest.at, rest.at + rest.len };
	bool comma = week_day.at[week_day.len - 1] == ',';
	if (comma ? !day_first(&c, &year, &mon, &day, &s) : !month_first(&c, &year, &mon, &day, &s))
		return false;
	if (c.at != c.end || day < 1 || day > 31 || year < 1970)
		return false;
	*epoch_s = days(year, mon, day) * 86400 + s;
	return true;
}
