#include "codec/api/api_count.h"

#include "codec/json/json_loose.h"

/* A whole number above 0, without a sign, a point or an exponent. */
static bool is_number(struct slice text)
{
	bool any = false;

	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		any = any || text.at[i] != '0';
	}
	return any;
}

static bool has_number(struct slice body)
{
	struct slice value;

	return json_loose_whole(body, &value) &&
	       is_number(json_loose_member(value, "input_tokens"));
}

static bool is_missing(uint16_t status)
{
	return status == 404 || status == 405 || status == 501;
}

enum api_counted api_count_judge(uint16_t status, struct slice body, struct slice model)
{
	if (status / 100 == 2)
		return has_number(body) ? API_COUNTED : API_COUNT_FAILED;
	if (is_missing(status) && !slice_has_nocase(body, model))
		return API_COUNT_MISSING;
	return API_COUNT_FAILED;
}
