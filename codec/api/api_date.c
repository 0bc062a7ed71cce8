#include "codec/api/api_date.h"

#include <stdio.h>

/* Days to dates by eras of 400 years that begin in March (Howard Hinnant's civil_from_days). */
void api_date(char out[API_DATE_MAX], uint64_t at_s)
{
	enum { DAY = 86400, ERA_DAYS = 146097, TO_MARCH = 719468 };
	const unsigned long long days = at_s / DAY + TO_MARCH, second = at_s % DAY;
	const unsigned long long era = days / ERA_DAYS, of_era = days % ERA_DAYS;
	const unsigned long long year =
		(of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	const unsigned long long of_year = of_era - (365 * year + year / 4 - year / 100);
	const unsigned long long from_march = (5 * of_year + 2) / 153;
	const unsigned long long day = of_year - (153 * from_march + 2) / 5 + 1;
	const unsigned long long month = from_march < 10 ? from_march + 3 : from_march - 9;

	(void)snprintf(out, API_DATE_MAX, "%04llu-%02llu-%02lluT%02llu:%02llu:%02lluZ",
		       year + era * 400 + (month <= 2), month, day, second / 3600, second / 60 % 60,
		       second % 60);
}
