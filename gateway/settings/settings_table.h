/* settings_table.h - the rows of tbl/settings.h as data: what reads, checks and prints walks these.
 *
 * Private to settings*.c and their tests. */
#ifndef GATEWAY_SETTINGS_SETTINGS_TABLE_H
#define GATEWAY_SETTINGS_SETTINGS_TABLE_H

#include "codec/base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A struct of settings_form.h, and the place in the file that fills it. */
enum settings_scope {
	SCOPE_MAIN,
	SCOPE_LISTEN,
	SCOPE_ISSUER,
	SCOPE_PROVIDER,
	SCOPE_ENDPOINT,
	SCOPE_MODEL,
	SCOPE_PLAN,
	SCOPE_TENANT,
	SCOPE_TENANT_KEY,
	SCOPE_MODEL_LIMITS,
	SCOPE_SERVER,
	SCOPE_ALIAS,
	SCOPE_MCP_SERVER,
	SCOPE_MCP_ENDPOINT,
	SCOPE_COUNT
};

enum setting_form {
	FORM_VALUE,     /* one value */
	FORM_LIST,      /* list of values: struct form_values */
	FORM_VALUE_MAP, /* map of names to values: struct form_pairs */
	FORM_SCOPES,    /* list of scopes: struct form_entries */
	FORM_SCOPE_MAP, /* map of names to scopes: struct form_entries */
	FORM_LATE_LIST, /* list of scopes that are read one by one later: its node */
	FORM_LATE_MAP,  /* the same of a map of names to scopes */
	FORM_LATER      /* not in this version */
};

enum setting_type {
	TYPE_BOOL,       /* uint64_t 0 or 1 */
	TYPE_COUNT,      /* uint64_t */
	TYPE_AUTO_COUNT, /* uint64_t, 0 is auto */
	TYPE_SIZE,       /* uint64_t bytes */
	TYPE_DURATION,   /* uint64_t ns */
	TYPE_USD,        /* uint64_t nano-USD */
	TYPE_PRICE,      /* uint64_t pico-USD a token, written as USD per million */
	TYPE_CHOICE,     /* uint64_t, position in choices */
	TYPE_FRACTION,   /* double */
	TYPE_AWAY_USD,   /* uint64_t nano-USD of {local: USD}; 0: closed */
	TYPE_RANGE,      /* struct form_range */
	TYPE_FACTOR,     /* uint64_t millionths, in maps only */
	TYPE_ID,         /* struct slice, as are all below: visible ASCII, no quote, no backslash */
	TYPE_TEXT,       /* no control characters */
	TYPE_PROMPT,     /* a text with line breaks, taken literally */
	TYPE_DATE,       /* 2026-10-21 */
	TYPE_GLOB,       /* over model ids, or names */
	TYPE_ORIGIN,
	TYPE_ALGORITHM,   /* of a JWT */
	TYPE_FRONT,       /* FRONT_* (tenants/tenant.h) by its name */
	TYPE_HEADER_NAME, /* of a request over HTTP */
	TYPE_PATH,        /* relative to the file that names it */
	TYPE_FILES,
	TYPE_SHA256,
	TYPE_ADDRESS, /* here and below ${NAME} and file:PATH are resolved */
	TYPE_URL,
	TYPE_SECRET,      /* never printed */
	TYPE_HEADER_VALUE /* likewise; of a request over HTTP */
};

struct setting {
	enum settings_scope scope;
	const char *key; /* path inside the scope: "timeouts.connect" */
	enum setting_form form;
	enum setting_type type;
	size_t offset;             /* of the field in the scope's struct */
	enum settings_scope entry; /* scope of entries */
	uint64_t minimum, maximum; /* in base units, of texts the length, of lists the count */
	const char *preset;        /* as in the file, "(words)", or NULL: needed */
	uint64_t preset_raw;       /* the same in base units, where preset is PRESET_RAW */
	const char *choices;       /* "a|b|!c" */
	bool restart;
	const char *meaning;
};

/* Rows of tenants/tbl/limits.h have numbers as defaults. */
#define PRESET_RAW "#"

/* Needed where the group is that its key begins with. */
#define PRESET_WITH_GROUP "+"

extern const struct setting settings_table[];
extern const size_t settings_table_count;

struct settings_scope_info {
	const char *name;            /* "model" */
	const char *path;            /* in the whole file: "models[]" */
	const char *what;            /* "a model" */
	size_t size;                 /* of its struct; the first member is its node */
	enum settings_scope extends; /* its rows may stand here too; SCOPE_MAIN: none */
	size_t extends_at;           /* where that scope's struct is inside this one */
	const char *instead; /* where all keys that are left out come from; NULL: defaults */
};

const struct settings_scope_info *settings_scope_info(enum settings_scope scope);

/* First row of a scope, and how many there are. */
const struct setting *settings_rows(enum settings_scope scope, size_t *count);

/* The row of `key` below `prefix` ("" or "timeouts."), NULL when there is none. *group: no row, but
 * rows below "prefix key." */
const struct setting *settings_row(enum settings_scope scope, struct slice prefix, struct slice key,
				   bool *group);

/* The key under `prefix` most like `key`, absent when none is near. Static memory. */
struct slice settings_nearest(enum settings_scope scope, struct slice prefix, struct slice key);

/* A preset that can be read as a value; else it is words or there is none. */
bool setting_has_value(const struct setting *row);

/* Whether the preset is PRESET_WITH_GROUP; then `group` is what stands before the key's last dot. */
bool setting_needed_with(const struct setting *row, char *group, size_t room);

/* Words for the type and the bounds: "a whole number from 1 to 16". */
void setting_expects(const struct setting *row, char *out, size_t room);

/* The preset as it would stand in the file, or its words in parentheses; "" for lists and entries. */
void setting_preset_text(const struct setting *row, char *out, size_t room);

/* Choice `n` of a row: its text; *later: this version does not have it. Absent past the end. */
struct slice setting_choice(const struct setting *row, size_t n, bool *later);

#endif
