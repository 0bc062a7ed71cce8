/* sampling_prefs.c - modelPreferences (contract/mcp.md 5). */
#include "codec/sampling_decode.h"

#include "codec/json_names.h"

static bool wrong(struct decode *d, const char *at, const char *detail, const char *member)
{
	(void)decode_refuse(d, ERR_PREFERENCES, at, detail);
	return decode_in_member(d, member);
}

/* One hint; those without a name say nothing, an empty one would match every model. */
static bool read_hint(struct decode *d, struct list *hints)
{
	static const struct slice name = SLICE_INIT("name");
	struct field value;
	struct slice key, found = { NULL, 0 };

	if (json_peek(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_PREFERENCES, "a hint must be an object");
	(void)json_enter_object(d->r);
	while (json_next_key(d->r, &key) && decode_field(d, &value)) {
		if (names_find(&name, 1, key) != 0 || value.kind == JSON_BAD)
			continue;
		if (value.kind != JSON_STRING)
			return wrong(d, field_at(&value), "a hint's name must be a string", "name");
		found = value.raw;
	}
	if (!decode_good(d) || found.len == 0)
		return decode_good(d);
	struct slice *hint = decode_push(d, hints, sizeof(*hint));
	if (hint == NULL)
		return false;
	*hint = found;
	return true;
}

static bool read_hints(struct decode *d)
{
	struct list hints = { 0 };
	uint32_t i = 0;

	switch (json_peek(d->r)) {
	case JSON_NULL:
		return json_null(d->r);
	case JSON_ARRAY:
		break;
	default:
		return decode_refuse_here(d, ERR_PREFERENCES, "hints must be an array of objects");
	}
	(void)json_enter_array(d->r);
	for (; json_next_item(d->r); i++)
		if (!read_hint(d, &hints))
			return decode_in_item(d, i);
	d->out->prefer.hints = hints.at;
	d->out->prefer.hint_count = hints.count;
	return decode_good(d);
}

static bool read_priority(struct decode *d, double *out, const char *member)
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

bool decode_preferences(struct decode *d)
{
	enum { COST, SPEED, INTELLIGENCE, HINTS };
	static const struct slice names[] = {
		[COST] = SLICE_INIT("costPriority"),
		[SPEED] = SLICE_INIT("speedPriority"),
		[INTELLIGENCE] = SLICE_INIT("intelligencePriority"),
		[HINTS] = SLICE_INIT("hints"),
	};
	struct model_preferences *prefer = &d->out->prefer;
	double *const priorities[] = { &prefer->cost, &prefer->speed, &prefer->intelligence };
	struct slice key;

	if (json_peek(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_PREFERENCES, "modelPreferences must be an object");
	(void)json_enter_object(d->r);
	while (json_next_key(d->r, &key)) {
		size_t name = names_find(names, COUNT_OF(names), key);
		bool fine = true;
		if (name < HINTS)
			fine = read_priority(d, priorities[name], names[name].at);
		else if (name == HINTS)
			fine = read_hints(d) || decode_in_member(d, "hints");
		else
			fine = json_skip(d->r, NULL);
		if (!fine)
			return false;
	}
	return decode_good(d);
}
