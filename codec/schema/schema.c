#include "codec/schema/schema.h"

#include "codec/base/must.h"
#include "codec/schema/schema_parts.h"

enum { FRAMES_FIRST = 16 };

static bool going(const struct check *c)
{
	return c->steps != 0 && c->looks != 0 && !c->too_deep && !c->failed;
}

static void lower(struct frame *f, enum truth truth)
{
	if (truth < f->truth)
		f->truth = truth;
}

/* ---- the stack ---- */

static void push(struct check *c, struct frame frame)
{
	if (c->count == c->cap) {
		uint32_t cap = c->cap == 0 ? FRAMES_FIRST : 2 * c->cap;
		struct frame *grown = arena_take(c->into, cap * sizeof(*grown));
		c->failed = grown == NULL;
		if (grown == NULL)
			return;
		if (c->count != 0)
			(void)memcpy(grown, c->frames, c->count * sizeof(*grown));
		c->frames = grown;
		c->cap = cap;
	}
	c->frames[c->count++] = frame;
	(void)tree_charge(&c->steps, 1);
}

/* Goes into a subschema of `f`, which the stack may move. */
static void descend(struct check *c, const struct frame *f, enum join join,
		    const struct tree_value *schema, const struct tree_value *value)
{
	const bool deeper = value != f->value;
	const bool referred = f->schema->members[f->keyword].keyword == KEY_REF;
	const uint32_t level = f->level + deeper, refs = deeper ? 0 : f->refs + referred;

	c->too_deep = level > SCHEMA_DEPTH_MAX || refs > SCHEMA_DEPTH_MAX;
	if (c->too_deep)
		return;
	push(c, (struct frame){ .schema = schema,
				.value = value,
				.truth = TRUTH_YES,
				.level = (uint8_t)level,
				.refs = (uint8_t)refs,
				.quiet = f->quiet || join != JOIN_ALL });
}

/* ---- a frame ---- */

/* What came of all subschemas of a keyword. */
static enum truth join_all(const struct frame *f, enum join join)
{
	switch (join) {
	case JOIN_ANY:
		if (f->yes != 0)
			return TRUTH_YES;
		return f->unknown != 0 || f->no == 0 ? TRUTH_UNKNOWN : TRUTH_NO;
	case JOIN_ONE:
		if (f->yes > 1)
			return TRUTH_NO;
		if (f->unknown != 0 || (f->yes == 0 && f->no == 0))
			return TRUTH_UNKNOWN;
		return f->yes == 1 ? TRUTH_YES : TRUTH_NO;
	case JOIN_NONE:
		if (f->yes != 0)
			return TRUTH_NO;
		return f->unknown != 0 ? TRUTH_UNKNOWN : TRUTH_YES;
	case JOIN_ALL:
		break;
	}
	return f->no != 0 ? TRUTH_NO : TRUTH_YES; /* unknown ones have lowered the frame already */
}

/* Whether the rest of the subschemas cannot change it. */
static bool is_settled(const struct frame *f, enum join join)
{
	return (join == JOIN_ALL && f->no != 0) || (join == JOIN_ANY && f->yes != 0) ||
	       (join == JOIN_ONE && f->yes > 1);
}

static void keyword_over(struct check *c, struct frame *f, enum truth truth)
{
	const struct slice nothing = { NULL, 0 };

	if (truth == TRUTH_NO)
		schema_note(c, nothing);
	lower(f, truth);
	f->keyword++;
	f->next = f->near = f->yes = f->no = f->unknown = 0;
	f->beside = NULL;
}

/* One keyword, or the next subschema of one. True when that waits on the stack. */
static bool keyword_go(struct check *c, struct frame *f)
{
	const struct tree_value *keyword = &f->schema->members[f->keyword];
	const struct schema_rule *rule = schema_rule_of(keyword);
	const struct tree_value *schema, *value;
	enum truth truth = TRUTH_YES;

	if (!tree_charge(&c->looks, 1))
		return false;
	if (rule == NULL || (rule->kinds >> f->value->kind & 1) == 0) {
		truth = TRUTH_YES;
	} else if (rule->branch != NULL) {
		if (!is_settled(f, rule->join) && rule->branch(c, f, keyword, &schema, &value)) {
			descend(c, f, rule->join, schema, value);
			return true;
		}
		truth = join_all(f, rule->join);
	} else {
		truth = rule->test == NULL ? TRUTH_UNKNOWN : rule->test(c, keyword, f->value);
	}
	if (going(c))
		keyword_over(c, f, truth);
	return false;
}

/* Goes on with the topmost frame. True when it is over: its truth is known. */
static bool frame_go(struct check *c, struct frame *f)
{
	if (f->schema->kind == JSON_FALSE)
		f->truth = TRUTH_NO;
	else if (f->schema->kind != JSON_OBJECT && f->schema->kind != JSON_TRUE)
		f->truth = TRUTH_UNKNOWN; /* no schema */
	if (f->schema->kind != JSON_OBJECT)
		return true;
	while (going(c) && f->truth != TRUTH_NO && f->keyword < f->schema->count)
		if (keyword_go(c, f))
			return false;
	return true;
}

/* A subschema of `f` has come to its end. One that is `false` says nothing itself. */
static void take_truth(struct check *c, struct frame *f, const struct tree_value *value,
		       enum truth truth)
{
	const struct tree_value *keyword = &f->schema->members[f->keyword];
	const struct slice nothing = { NULL, 0 };

	f->yes += truth == TRUTH_YES;
	f->no += truth == TRUTH_NO;
	f->unknown += truth == TRUTH_UNKNOWN;
	if (schema_rule_of(keyword)->join != JOIN_ALL)
		return;
	if (truth == TRUTH_NO)
		schema_note(c, keyword->keyword == KEY_ADDITIONAL ? value->key : nothing);
	else
		lower(f, truth);
}

static enum truth run(struct check *c)
{
	enum truth truth = TRUTH_UNKNOWN;

	while (going(c) && c->count != 0) {
		struct frame *f = &c->frames[c->count - 1];
		if (!frame_go(c, f) || !going(c))
			continue;
		const struct tree_value *value = f->value;
		truth = f->truth;
		if (--c->count != 0)
			take_truth(c, &c->frames[c->count - 1], value, truth);
	}
	return truth;
}

/* ---- the doors ---- */

enum err schema_read(struct slice text, const struct json_work *work, struct arena *into,
		     struct schema *out)
{
	const struct tree_value *root;
	enum err err = tree_read(text, work, into, true, &root);

	if (err != ERR_OK)
		return err;
	if (root == NULL)
		return ERR_TOOL;
	must(root->kind == JSON_OBJECT);
	*out = (struct schema){ .root = root, .work = work };
	return ERR_OK;
}

static enum schema_verdict verdict_of(enum truth truth)
{
	switch (truth) {
	case TRUTH_NO:
		return SCHEMA_VIOLATED;
	case TRUTH_UNKNOWN:
		return SCHEMA_UNCHECKED;
	case TRUTH_YES:
		break;
	}
	return SCHEMA_HOLDS;
}

enum err schema_check(const struct schema *schema, struct slice value, struct arena *into,
		      struct schema_finding *out)
{
	const struct tree_value *tree;
	struct check c = { .root = schema->root,
			   .into = into,
			   .steps = SCHEMA_STEPS_MAX + 1, /* when none is left, one too many was */
			   .looks = SCHEMA_LOOKS_MAX + 1, /* likewise */
			   .out = out };

	must(schema->root != NULL);
	*out = (struct schema_finding){ .verdict = SCHEMA_TOO_MUCH };
	enum err err = tree_read(value, schema->work, into, false, &tree);
	if (err != ERR_OK || tree == NULL)
		return err;
	push(&c, (struct frame){ .schema = schema->root, .value = tree, .truth = TRUTH_YES });
	const enum truth truth = run(&c);
	if (c.failed)
		return ERR_BUSY;
	out->steps = SCHEMA_STEPS_MAX + 1 - c.steps;
	out->looks = SCHEMA_LOOKS_MAX + 1 - c.looks;
	if (c.found) /* also where the bounds are used up on the way back from there */
		out->verdict = SCHEMA_VIOLATED;
	else if (going(&c))
		out->verdict = verdict_of(truth);
	return ERR_OK;
}
