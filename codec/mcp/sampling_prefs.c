/* sampling_prefs.c - modelPreferences (contract/mcp.md 5). */
#include "codec/mcp/sampling_decode.h"

static bool wrong(struct decode *d, const char *at, const char *detail, const char *member)
{
	(void)decode_refuse(d, ERR_PREFERENCES, at, detail);
	return decode_in_member(d, member);
}

static bool add_hint(struct decode *d, struct list *hints, struct slice name)
{
	struct slice *hint = decode_push(d, hints, sizeof(*hint));

	if (hint == NULL)
		return false;
	*hint = name;
	return true;
}

/* One hint; those without a name say nothing, an empty one would match every model. */
static bool read_hint(struct decode *d, struct list *hints)
{
	static const struct json_name hint_names[] = {
		JSON_NAME("name"),
	};
	struct json_fields fields = JSON_FIELDS(hint_names);
	struct field value;
	uint32_t name;
	struct slice key, found = { NULL, 0 };

	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_PREFERENCES, "a hint must be an object");
	(void)json_begin(d->r);
	while ((name = json_next_field(d->r, &fields, &key)) != FIELD_END &&
	       decode_field(d, &value)) {
		if (name != 0 || value.kind == JSON_BAD)
			continue;
		if (value.kind != JSON_STRING)
			return wrong(d, field_at(&value), "a hint's name must be a string", "name");
		found = value.raw;
	}
	if (!decode_good(d) || found.len == 0)
		return decode_good(d);
	return add_hint(d, hints, found);
}

/* Reads a list of hints that have nothing but names. False: it is another one, nothing happened,
 * or something failed. */
static inline __attribute__((always_inline)) bool guess_hints(struct decode *d)
{
	struct json_reader *const r = d->r;
	const char *bracket = r->at;
	struct list hints = { 0 };
	struct slice name;
	bool fine = json_may_guess(r) && r->depth + 2 <= r->limits.depth_max &&
		    json_guess_string_lit(r, "[{\"name\":\"", &name);

	while (fine && name.len != 0 && add_hint(d, &hints, name)) {
		if (json_guess_lit(r, "}]")) {
			d->out->prefer.hints = hints.at;
			d->out->prefer.hint_count = hints.count;
			return true;
		}
		fine = json_guess_string_lit(r, "},{\"name\":\"", &name);
	}
	if (decode_good(d))
		r->at = bracket;
	return false;
}

static bool read_hints(struct decode *d)
{
	struct list hints = { 0 };
	uint32_t i = 0;

	if (guess_hints(d))
		return true;
	switch (json_here(d->r)) {
	case JSON_NULL:
		return json_null(d->r);
	case JSON_ARRAY:
		break;
	default:
		return decode_refuse_here(d, ERR_PREFERENCES, "hints must be an array of objects");
	}
	(void)json_begin(d->r);
	for (; json_next(d->r); i++)
		if (!read_hint(d, &hints))
			return decode_in_item(d, i);
	d->out->prefer.hints = hints.at;
	d->out->prefer.hint_count = hints.count;
	return decode_good(d);
}

static SCAN_RARE bool read_any_priority(struct decode *d, double *out, const char *member)
{
	struct field value;

	if (!decode_field(d, &value))
		return false;
	if (value.kind == JSON_BAD)
		return true;
	if (value.kind != JSON_NUMBER)
		return wrong(d, field_at(&value), "a priority must be a number from 0 to 1",
			     member);
	double priority = json_to_double(value.raw);
	if (priority < 0 || priority > 1) {
		priority = priority < 0 ? 0 : 1;
		d->out->adjustments |= ADJUST_BIT(ADJUST_PRIORITY_CLAMPED);
	}
	*out = priority;
	return true;
}

static inline bool read_priority(struct decode *d, double *out, const char *member)
{
	struct slice raw;

	return json_guess_fraction(d->r, &raw, out) || read_any_priority(d, out, member);
}

enum { HINTS, COST, SPEED, INTELLIGENCE };
static const struct json_name names[] = {
	[HINTS] = JSON_NAME("hints"),
	[COST] = JSON_NAME("costPriority"),
	[SPEED] = JSON_NAME("speedPriority"),
	[INTELLIGENCE] = JSON_NAME("intelligencePriority"),
};

/* json_next_field of modelPreferences. */
static inline uint32_t next_preference(struct json_reader *r, struct json_fields *fields,
				       struct slice *other)
{
	const char *name = json_guess_name(r);

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('h', 'i', 'n', 't'):
			if (json_guess_member(r, fields, HINTS, name, "hints"))
				return HINTS;
			break;
		case JSON_LETTERS('c', 'o', 's', 't'):
			if (json_guess_member(r, fields, COST, name, "costPriority"))
				return COST;
			break;
		case JSON_LETTERS('s', 'p', 'e', 'e'):
			if (json_guess_member(r, fields, SPEED, name, "speedPriority"))
				return SPEED;
			break;
		case JSON_LETTERS('i', 'n', 't', 'e'):
			if (json_guess_member(r, fields, INTELLIGENCE, name,
					      "intelligencePriority"))
				return INTELLIGENCE;
			break;
		}
	return json_unguessed_field(r, fields, other);
}

/* Reads the members from the brace on that are written as they mostly are, without entering the object:
 * it is known how deep they go. True: that was all. False: it is entered, *seen are the members read,
 * or something has failed. */
static bool guess_members(struct decode *d, uint32_t *seen)
{
	struct model_preferences *prefer = &d->out->prefer;
	struct json_reader *const r = d->r;
	const char *brace = r->at, *behind = brace, *name = brace + 1;
	struct slice raw;

	*seen = 0;
	if (!json_may_guess(r) || r->depth + 3 > r->limits.depth_max)
		return json_begin(r), false;
	while (name < r->guess_last) {
		uint32_t before = *seen;
#define MEMBER(which, text, guess)                                             \
	if ((before >> (which)&1) == 0 &&                                      \
	    memcmp(name, "\"" text "\":", sizeof("\"" text "\":") - 1) == 0) { \
		r->at = name + sizeof("\"" text "\":") - 1;                    \
		if (guess)                                                     \
			*seen = before | (uint32_t)1 << (which);               \
	}                                                                      \
	break
		switch (json_letters(name)) {
		case JSON_LETTERS('h', 'i', 'n', 't'):
			MEMBER(HINTS, "hints", guess_hints(d));
		case JSON_LETTERS('c', 'o', 's', 't'):
			MEMBER(COST, "costPriority", json_guess_fraction(r, &raw, &prefer->cost));
		case JSON_LETTERS('s', 'p', 'e', 'e'):
			MEMBER(SPEED, "speedPriority",
			       json_guess_fraction(r, &raw, &prefer->speed));
		case JSON_LETTERS('i', 'n', 't', 'e'):
			MEMBER(INTELLIGENCE, "intelligencePriority",
			       json_guess_fraction(r, &raw, &prefer->intelligence));
		}
#undef MEMBER
		if (*seen == before)
			break;
		behind = r->at;
		if (behind >= r->guess_last || *behind != ',')
			break;
		name = behind + 1;
	}
	if (!decode_good(d))
		return false;
	r->at = behind;
	if (behind == brace)
		return json_begin(r), false;
	if (behind < r->end && *behind == '}')
		return r->at++, true;
	return json_resume_object(r, brace), false;
}

bool decode_preferences(struct decode *d)
{
	struct json_fields fields = JSON_FIELDS(names);
	struct model_preferences *prefer = &d->out->prefer;
	struct slice key;
	uint32_t name;

	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_PREFERENCES, "modelPreferences must be an object");
	if (guess_members(d, &fields.seen))
		return true;
	while ((name = next_preference(d->r, &fields, &key)) != FIELD_END) {
		bool fine = true;
		switch (name) {
		case HINTS:
			fine = read_hints(d) || decode_in_member(d, "hints");
			break;
		case COST:
			fine = read_priority(d, &prefer->cost, "costPriority");
			break;
		case SPEED:
			fine = read_priority(d, &prefer->speed, "speedPriority");
			break;
		case INTELLIGENCE:
			fine = read_priority(d, &prefer->intelligence, "intelligencePriority");
			break;
		default:
			fine = json_skip(d->r, NULL);
		}
		if (!fine)
			return false;
	}
	return decode_good(d);
}
