#include "codec/api/api_members.h"

#include "codec/base/must.h"

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

static const struct place {
	const struct api_member *rows;
	size_t count;
} places[API_PLACES] = {
#define PLACE_BEGIN(place) [API_ARG_##place] = { place##_rows, COUNT_OF(place##_rows) },
#define MEMBER(apis, name, act, argument, field, kinds)
#define PLACE_END(place)
#include "codec/api/tbl/members.h"
#undef PLACE_BEGIN
#undef MEMBER
#undef PLACE_END
};

/* As api_name_match, of a plain name: there is nothing to look at where length or first letter differ. */
static enum api_name_match match_plain(struct slice raw, struct slice name)
{
	if (raw.len != name.len || (raw.at[0] | 0x20) != name.at[0])
		return API_NAME_OTHER;
	if (memcmp(raw.at, name.at, name.len) == 0)
		return API_NAME_SAME;
	return slice_eq_nocase(raw, name) ? API_NAME_CASE : API_NAME_OTHER;
}

const struct api_member *api_member_find(enum api_argument place, enum api api, struct slice raw,
					 bool *exact)
{
	must(place > API_ARG_NONE && place < API_PLACES);
	const struct place *rows = &places[place];
	const bool plain = api_name_is_plain(raw);

	for (size_t i = 0; i < rows->count; i++) {
		const struct api_member *row = &rows->rows[i];
		const enum api_name_match match =
			plain ? match_plain(raw, row->name) : api_name_match(raw, row->name);
		if (match == API_NAME_OTHER || (row->apis >> api & 1) == 0)
			continue;
		*exact = match == API_NAME_SAME;
		return row;
	}
	return NULL;
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
