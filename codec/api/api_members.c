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

static bool is_of(const struct api_member *row, enum api api)
{
	return (row->apis >> api & 1) != 0;
}

static struct api_found found(const struct place *rows, size_t i, bool exact)
{
	return (struct api_found){ &rows->rows[i], (uint64_t)1 << i, exact };
}

/* The same of a name that is not plain. */
static struct api_found find_other(const struct place *rows, enum api api, struct slice raw)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct api_member *row = &rows->rows[i];
		const enum api_name_match match =
			is_of(row, api) ? api_name_match(raw, row->name) : API_NAME_OTHER;
		if (match != API_NAME_OTHER)
			return found(rows, i, match == API_NAME_SAME);
	}
	return (struct api_found){ .row = NULL };
}

/* As slice_eq, of texts of one length, which is not 0: without a call where it is that of a name. */
static bool is_same(const char *a, const char *b, size_t len)
{
	uint32_t differ = 0, x, y;

	if (len > 16 || len < sizeof(x))
		return memcmp(a, b, len) == 0;
	for (size_t at = 0; at + sizeof(x) < len; at += sizeof(x)) {
		(void)memcpy(&x, a + at, sizeof(x));
		(void)memcpy(&y, b + at, sizeof(y));
		differ |= x ^ y;
	}
	(void)memcpy(&x, a + len - sizeof(x), sizeof(x));
	(void)memcpy(&y, b + len - sizeof(y), sizeof(y));
	return (differ | (x ^ y)) == 0;
}

struct api_found api_member_find(enum api_argument place, enum api api, struct slice raw)
{
	must(place > API_ARG_NONE && place < API_PLACES);
	if (raw.len == 0)
		return (struct api_found){ .row = NULL };
	const struct place *rows = &places[place];
	const uint8_t sign = SIGN(raw.len, raw.at[0], raw.at[raw.len - 1]);
	uint64_t alike = isa_equal(isa_load((const char *)rows->signs), (char)sign);
	for (; alike != 0; alike &= alike - 1) {
		const size_t i = (size_t)__builtin_ctzll(alike);
		if (i >= rows->count)
			break;
		const struct api_member *row = &rows->rows[i];
		if (row->name.len != raw.len || !is_of(row, api))
			continue;
		const bool exact = is_same(raw.at, row->name.at, raw.len);
		if (exact || slice_eq_nocase(raw, row->name))
			return found(rows, i, exact);
	}
	return api_name_is_plain(raw) ? (struct api_found){ .row = NULL }
				      : find_other(rows, api, raw);
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
