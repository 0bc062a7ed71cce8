/* schema.h - whether a value is what a JSON Schema says: for the answers of structured output (DESIGN 4.3,
 * `__schema__`).
 *
 * Checked: type, enum, const, properties, required, additionalProperties, items (also draft 7's list, with
 * additionalItems), prefixItems, all bounds (minimum to multipleOf, lengths, counts, uniqueItems), anyOf,
 * oneOf, allOf, not, and $ref by JSON pointer within the schema. Numbers are compared as they are written,
 * not as doubles; strings by their meaning, their length in code points.
 *
 * Not checked: pattern, format, a $ref that leads out of the schema, patternProperties, if, contains and
 * their like, and keywords whose value is not what it should be. Where the verdict hangs on one of them
 * it is SCHEMA_UNCHECKED; where it does not (another branch of anyOf holds anyway), it stays what it is.
 *
 * Bounded: SCHEMA_DEPTH_MAX levels of the value, as many references in a row, and SCHEMA_STEPS_MAX steps: a
 * step is a subschema applied at a place of the value, and nothing else, so a row of four members is five. How
 * long a step is, is bounded by SCHEMA_LOOKS_MAX for all of them: a look is a keyword, a name in required,
 * a member looked for, two values compared, and every 64 keys or entries of an enum, 32 digits (4, to be
 * divided) or 256 bytes of a text that were read for it. A look is 100 ns at most, a check some 30 ms beside
 * reading the value. They are twenty a step, where common schemas take seven.
 * When one of these is used up nothing is known, and SCHEMA_TOO_MUCH must not be taken for "it holds". No
 * recursion over input, no heap: everything lies in the arena. Pure. */
#ifndef CODEC_SCHEMA_SCHEMA_H
#define CODEC_SCHEMA_SCHEMA_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/json/json_read.h"

enum {
	SCHEMA_DEPTH_MAX = 16,
	SCHEMA_STEPS_MAX = 10000,
	SCHEMA_LOOKS_MAX = 200000,
	SCHEMA_PATH_MAX = 512
};

struct tree_value;

/* A schema that was read. It points into its text and its arena. */
struct schema {
	const struct tree_value *root;
	const struct json_work *work;
};

enum schema_verdict {
	SCHEMA_HOLDS,
	SCHEMA_UNCHECKED, /* as far as it can be checked */
	SCHEMA_VIOLATED,
	SCHEMA_TOO_MUCH, /* not known: the bounds are used up, or the value is too large to be read */
};

/* What was found. Of VIOLATED the first thing that is wrong; its texts live as long as the arena. Where a
 * fault is inside a branch of anyOf, oneOf or not, it is that keyword that is wrong. */
struct schema_finding {
	enum schema_verdict verdict;
	const char *keyword; /* "minimum"; static */
	struct slice path; /* of the value: "$.lines[2].price"; a key that the schema does not name
				      is "*" */
	struct slice
		schema_path;   /* of the keyword, by the way taken: "#/properties/a/$ref/minimum" */
	struct slice wanted;   /* the keyword's value: of a string what it means, else JSON */
	struct slice member;   /* plain: the name that required misses, or that additionalProperties
				      forbids, which is the value's own; else absent */
	uint32_t steps, looks; /* taken */
};

/* Reads a schema once for several checks: `text` is the validated text of an object. `work` gives a seed
 * only, and must outlive *out. ERR_TOOL when it is too large to be checked against (TREE_VALUES_MAX), ERR_BUSY
 * when memory is exhausted. */
MUST_USE enum err schema_read(struct slice text, const struct json_work *work, struct arena *into,
			      struct schema *out);

/* Checks `value`, validated JSON text. ERR_BUSY when memory is exhausted, else *out is written. */
MUST_USE enum err schema_check(const struct schema *schema, struct slice value, struct arena *into,
			       struct schema_finding *out);

#endif
