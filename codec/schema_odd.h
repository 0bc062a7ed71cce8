/* schema_odd.h - what some providers refuse in a tool's schema; private to codec/.
 *
 * Reading a request notes which of these a schema may have: none is missed, and one that is noted may turn out not
 * to be there. Only a schema with one that its provider refuses is looked at again (dialect_mend.h). */
#ifndef CODEC_SCHEMA_ODD_H
#define CODEC_SCHEMA_ODD_H

enum schema_odd {
	SCHEMA_ODD_KEYS = 1,   /* the name of a property is not [a-zA-Z0-9_.-]{1,64} */
	SCHEMA_ODD_ARRAYS = 2, /* an array without "items" */
	SCHEMA_ODD_NULLS = 4,  /* a keyword whose value is null */
	SCHEMA_ODD_ALL = 7,
};

enum { SCHEMA_KEY_MAX = 64 };

#endif
