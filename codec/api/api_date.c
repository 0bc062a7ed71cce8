#include "codec/api/api_date.h"

#include "codec/json/json_write.h"

static char *pen_two(char *pen, uint64_t value, char behind)
{
	pen[0] = (char)('0' + value / 10);
	pen[1] = (char)('0' + value % 10);
	pen[2] = behind;
	return pen + 3;
}

/* Four digits at least. */
static char *pen_year(char *pen, uint64_t year)
{
	for (uint64_t least = 1000; year < least && least > 1; least /= 10)
		*pen++ = '0';
	return pen_uint(pen, year);
}

/* Days to dates by eras of 400 years that begin in March (Howard Hinnant's civil_from_days). */
size_t api_date(char out[API_DATE_MAX], uint64_t at_s)
{
	enum { DAY = 86400, ERA_DAYS = 146097, TO_MARCH = 719468 };
	const uint64_t days = at_s / DAY + TO_MARCH, second = at_s % DAY;
	const uint64_t era = days / ERA_DAYS, of_era = days % ERA_DAYS;
	const uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	const uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	const uint64_t from_march = (5 * of_year + 2) / 153;
	const uint64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
	char *pen = pen_year(out, year + era * 400 + (month <= 2));

	*pen++ = '-';
	pen = pen_two(pen, month, '-');
	pen = pen_two(pen, of_year - (153 * from_march + 2) / 5 + 1, 'T');
	pen = pen_two(pen, second / 3600, ':');
	pen = pen_two(pen, second / 60 % 60, ':');
	pen = pen_two(pen, second % 60, 'Z');
	*pen = '\0';
	return (size_t)(pen - out);
}
