#include "gateway/base/utc_text.h"

#include <stddef.h>

/* `number` with that many digits, then `end` unless it is 0. */
static char *put_part(char *at, uint64_t number, size_t digits, char end)
{
	for (size_t i = digits; i-- > 0; number /= 10)
		at[i] = (char)('0' + number % 10);
	at += digits;
	if (end != 0)
		*at++ = end;
	return at;
}

/* Days to a date after H. Hinnant, days_from_civil. */
void utc_text(uint64_t second, char out[UTC_TEXT])
{
	uint64_t days = second / 86400 + 719468, left = second % 86400;
	uint64_t era = days / 146097, doe = days % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	uint64_t mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;

	char *at = put_part(out, yoe + era * 400 + (month <= 2 ? 1 : 0), 4, '-');
	at = put_part(at, month, 2, '-');
	at = put_part(at, doy - (153 * mp + 2) / 5 + 1, 2, 'T');
	at = put_part(at, left / 3600, 2, ':');
	at = put_part(at, left / 60 % 60, 2, ':');
	(void)put_part(at, left % 60, 2, 0);
}
