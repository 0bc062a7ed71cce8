/* schema_parts.h - what the files of the check share (schema.h); private to codec/.
 *
 * A subschema at a place of the value is a frame, frames that wait for another one are a stack. What came
 * of one is a truth of three values, as keywords that cannot be checked are neither kept nor broken. */
#ifndef CODEC_SCHEMA_SCHEMA_PARTS_H
#define CODEC_SCHEMA_SCHEMA_PARTS_H

#include "codec/schema/schema.h"
#include "codec/schema/schema_tree.h"
#include "codec/schema/schema_walk.h"

/* In this order: of several that must all hold the least counts. */
enum truth { TRUTH_NO, TRUTH_UNKNOWN, TRUTH_YES };

struct frame {
	const struct tree_value *schema, *value;
	enum truth truth; /* of the keywords so far */
	uint32_t keyword; /* index of the schema's member at hand */
	uint32_t next;    /* of the subschemas that it has, or of the values that they are for */
	uint32_t near;    /* of the member found last */
	uint32_t yes, unknown, no;       /* what came of these */
	const struct tree_value *beside; /* another keyword that it goes by */
	bool patterns;                   /* the schema has patternProperties */
	uint8_t level, refs;             /* of the value; in a row */
	bool quiet;                      /* what is wrong here need not be wrong as a whole */
};

struct check {
	const struct tree_value *root; /* of the schema */
	struct arena *into;
	struct frame *frames;
	uint32_t count, cap;
	uint32_t steps, looks; /* left; 0: nothing is known */
	bool too_deep;         /* likewise */
	bool failed;           /* memory */
	bool found;            /* *out says what is wrong */
	struct schema_finding *out;
};

/* How truths of subschemas become that of their keyword. */
enum join { JOIN_ALL, JOIN_ANY, JOIN_ONE, JOIN_NONE };

/* What a keyword says of values of these kinds. One of the two is there; neither: it cannot be checked. */
struct schema_rule {
	uint16_t kinds; /* 1 << enum json_kind; of others it says nothing */
	enum join join;
	/* Of the value alone. `keyword` is the schema's member. */
	enum truth (*test)(struct check *c, const struct tree_value *keyword,
			   const struct tree_value *value);
	/* The next subschema that has to hold, and for which value; false: there is none. What cannot be
	 * checked lowers f->truth. */
	bool (*branch)(struct check *c, struct frame *f, const struct tree_value *keyword,
		       const struct tree_value **schema, const struct tree_value **value);
};

/* ---- schema_rules.c ---- */

/* NULL: the keyword says nothing that has to be checked. */
const struct schema_rule *schema_rule_of(const struct tree_value *keyword);

/* ---- schema_branch.c ---- */

/* The branch functions of schema_rules.c's table. */
typedef bool schema_branch_fn(struct check *c, struct frame *f, const struct tree_value *keyword,
			      const struct tree_value **schema, const struct tree_value **value);
schema_branch_fn branch_properties, branch_additional, branch_items, branch_additional_items,
	branch_prefix_items, branch_list, branch_itself, branch_ref;

/* ---- schema_place.c ---- */

/* Writes what is wrong into *c->out: the keyword at hand of the topmost frame. `member`: see there. Once;
 * whatever comes later is not the first thing. */
void schema_note(struct check *c, struct slice member);

#endif
