#include "codec/api/api_members.h"

#include "codec/base/must.h"
#include "codec/isa/isa.h"

enum { M = 1 << API_MESSAGES | 1 << API_COUNT, C = 1 << API_CHAT, MC = M | C };

#define PLACE_BEGIN(place) static const struct api_member place##_rows[] = {
#define MEMBER(apis, name, act, argument, field, kinds)            \
	{                                                          \
		SLICE_INIT(name),   apis,        API_ACT_##act,    \
		API_ARG_##argument, API_##field, API_KINDS_##kinds \
	},
#define PLACE_END(place) \
	}                \
	;
#include "codec/api/tbl/members.h"
#undef PLACE_BEGIN
#undef MEMBER
#undef PLACE_END

/* A byte for each row, so that all are looked at together: of names that are the same but for case it is the same. Of
 * constants, it is one. */
#define SIGN(len, first, last) \
	((uint8_t)((unsigned)(len)*9 ^ ((uint8_t)(first) | 0x20u) * 5 ^ ((uint8_t)(last) | 0x20u)))
#define PLACE_BEGIN(place)                                          \
	_Static_assert(COUNT_OF(place##_rows) <= API_ROWS_MAX, ""); \
	static const uint8_t place##_signs[API_ROWS_MAX] = {
#define MEMBER(apis, name, act, argument, field, kinds) \
	SIGN(sizeof(name) - 1, (name)[0], (name)[sizeof(name) - 2]),
#define PLACE_END(place) \
	}                \
	;
#include "codec/api/tbl/members.h"
#undef PLACE_BEGIN
#undef MEMBER
#undef PLACE_END

static const struct place {
	const struct api_member *rows;
	size_t count;
	const uint8_t *signs;
} places[API_PLACES] = {
#define PLACE_BEGIN(place) \
	[API_ARG_##place] = { place##_rows, COUNT_OF(place##_rows), place##_signs },
#define MEMBER(apis, name, act, argument, field, kinds)
#define PLACE_END(place)
#include "codec/api/tbl/members.h"
#undef PLACE_BEGIN
#undef MEMBER
#undef PLACE_END
};

/* Row `i`, where the place has one, and it is the API's; else NULL. */
static const struct api_member *at_row(const struct place *rows, size_t i, enum api api)
{
	return i < rows->count && (rows->rows[i].apis >> api & 1) != 0 ? &rows->rows[i] : NULL;
}

static const struct api_member *find_any(const struct place *rows, enum api api, struct slice raw,
					 bool *exact)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct api_member *row = at_row(rows, i, api);
		const enum api_name_match match =
			row == NULL ? API_NAME_OTHER : api_name_match(raw, row->name);
		if (match == API_NAME_OTHER)
			continue;
		*exact = match == API_NAME_SAME;
		return row;
	}
	return NULL;
}

/* The same of a name that is plain. */
static const struct api_member *find_plain(const struct place *rows, enum api api, struct slice raw,
					   bool *exact)
{
	const uint8_t sign = SIGN(raw.len, raw.at[0], raw.at[raw.len - 1]);
	const struct isa_block signs = isa_load((const char *)rows->signs);

	for (uint64_t found = isa_equal(signs, (char)sign); found != 0; found &= found - 1) {
		const struct api_member *row = at_row(rows, (size_t)__builtin_ctzll(found), api);
		if (row == NULL)
			continue;
		*exact = slice_eq(raw, row->name);
		if (*exact || slice_eq_nocase(raw, row->name))
			return row;
	}
	return NULL;
}

const struct api_member *api_member_find(enum api_argument place, enum api api, struct slice raw,
					 bool *exact)
{
	must(place > API_ARG_NONE && place < API_PLACES);
	if (raw.len == 0)
		return NULL;
	return api_name_is_plain(raw) ? find_plain(&places[place], api, raw, exact)
				      : find_any(&places[place], api, raw, exact);
}

uint64_t api_member_bit(enum api_argument place, const struct api_member *row)
{
	return (uint64_t)1 << (row - places[place].rows);
}

const char *api_kinds_text(uint32_t kinds)
{
	switch (kinds) {
	case API_KINDS_STRING:
		return "must be a string";
	case API_KINDS_COUNT:
		return "must be a whole number of at least 1";
	case API_KINDS_SIZE:
		return "must be a whole number of at least 0";
	case API_KINDS_BOOL:
		return "must be true or false";
	case API_KINDS_ARRAY:
		return "must be an array";
	case API_KINDS_OBJECT:
		return "must be an object";
	case API_KINDS_TEXT:
		return "must be a string or an array";
	default:
		return "has the wrong type";
	}
}
