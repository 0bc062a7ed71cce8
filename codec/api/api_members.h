/* api_members.h - the table of tbl/members.h; private to codec/api. */
#ifndef CODEC_API_API_MEMBERS_H
#define CODEC_API_API_MEMBERS_H

#include "codec/api/api_request.h"

/* The objects whose members are read, and why one is refused: what an ACT may need beside its value. */
enum api_argument {
	API_ARG_NONE,
	API_ARG_TOP,
	API_ARG_STREAM_OPTIONS,
	API_ARG_METADATA,
	API_ARG_THINKING,
	API_ARG_CACHE,
	API_ARG_MESSAGE,
	API_ARG_BLOCK,
	API_ARG_SOURCE,
	API_ARG_CHANGE,
	API_ARG_TOOL,
	API_ARG_BODY,
	API_ARG_FUNCTION,
	API_PLACES,
	API_ARG_ROUTE = API_PLACES,
	API_ARG_ACCOUNT,
	API_ARG_THREAD,
};

enum api_act {
	API_ACT_KEEP,   /* the value is kept */
	API_ACT_ENTER,  /* and its members are read; what is no object or array is passed over */
	API_ACT_REFUSE, /* unless null */
	API_ACT_EXTRA,  /* counts as a server tool of that name, unless null or an empty array */
	API_ACT_KIND,   /* the type, role or media type of the object */
	API_ACT_NAME,   /* of the tool */
	API_ACT_SCHEMA, /* of the tool */
	API_ACT_USES,   /* of the tool */
	API_ACT_TTL,    /* of a cache entry */
	API_ACT_SEALED, /* what only the provider can read, unless null or empty */
	API_ACT_DATA,   /* content itself */
	API_ACT_URL,    /* of content: fetched by the provider, unless it is a data URI */
	API_ACT_DATA_OR_URL, /* a URL where it has a scheme */
	API_ACT_IMAGE,       /* a URL, or an object that has one: of an image */
	API_ACT_DOCUMENT,    /* of a document */
	API_ACT_SOUND,       /* of a sound */
};

/* Bits of enum json_kind. COUNT: a whole number of at least 1; SIZE: of at least 0. */
enum api_member_kinds {
	API_KINDS_STRING = 1 << JSON_STRING,
	API_KINDS_COUNT = 1 << JSON_NUMBER,
	API_KINDS_SIZE = 1 << JSON_NUMBER | 1 << 15,
	API_KINDS_BOOL = 1 << JSON_TRUE | 1 << JSON_FALSE,
	API_KINDS_ARRAY = 1 << JSON_ARRAY,
	API_KINDS_OBJECT = 1 << JSON_OBJECT,
	API_KINDS_TEXT = 1 << JSON_STRING | 1 << JSON_ARRAY,
	API_KINDS_ANY = 0xffff,
};

enum { API_ROWS_MAX = 64 }; /* of one place */

struct api_member {
	struct slice name;
	uint8_t apis;     /* bits of enum api */
	uint8_t act;      /* enum api_act */
	uint8_t argument; /* enum api_argument */
	uint8_t field;    /* enum api_field */
	uint16_t kinds;   /* enum api_member_kinds */
};

struct api_found {
	const struct api_member *row; /* NULL: there is none */
	uint64_t bit;                 /* of those of the place: another one for each row */
	bool exact;                   /* it is written as the row has it; else in another case */
};

/* The row of the member with that raw name. `place` is below API_PLACES. */
struct api_found api_member_find(enum api_argument place, enum api api, struct slice raw);

/* Without escapes, and all of it ASCII: as names mostly are. */
bool api_name_is_plain(struct slice raw);

/* What a value of those kinds has to be: "must be a string". */
const char *api_kinds_text(uint32_t kinds);

#endif
