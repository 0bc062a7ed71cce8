#include "codec/json/json_fields.h"

#include "codec/json/json_names.h"

static inline const char *space(const char *at, const char *end)
{
	return (unsigned char)*at > ' ' ? at : reader_space(at, end);
}

static SCAN_RARE uint32_t fail(struct json_reader *r, const char *at, enum err err)
{
	(void)reader_fail(r, at, err, NULL);
	return FIELD_END;
}

/* The index of what `raw` means; fields->count if it is not in the table. */
static uint32_t find(const struct json_fields *fields, struct slice raw, bool escaped)
{
	for (uint32_t i = 0; i < fields->count; i++) {
		const struct json_name *name = &fields->names[i];
		struct slice plain = slice_of(name->quoted + 1, name->len);
		if (escaped ? json_str_eq(raw, plain) : slice_eq(raw, plain))
			return i;
	}
	return fields->count;
}

/* How many members of the object are not in the table. */
static inline uint32_t others(const struct json_reader *r)
{
	return r->work == NULL ? 0 : (uint32_t)(r->work->key_top - r->levels[r->depth - 1].keys);
}

/* Marks the member whose key is at `quote`. The limit of keys is far above what a table has, unless
 * somebody wants it otherwise. */
static inline uint32_t found(struct json_reader *r, struct json_fields *fields, uint32_t i,
			     const char *quote)
{
	uint32_t bit = (uint32_t)1 << i;

	if ((fields->seen & bit) != 0)
		return fail(r, quote, ERR_DUPLICATE_KEY);
	if (r->limits.keys_max <= FIELDS_MAX &&
	    (uint32_t)__builtin_popcount(fields->seen) + others(r) >= r->limits.keys_max)
		return fail(r, quote, ERR_TOO_MANY_KEYS);
	fields->seen |= bit;
	fields->next = i + 1 < fields->count ? i + 1 : 0;
	return i;
}

/* The general way. */
static SCAN_RARE uint32_t next_general(struct json_reader *r, struct json_fields *fields,
				       struct slice *other)
{
	if (!reader_next_key(r, other))
		return FIELD_END;
	bool escaped = reader_escaped(r, other->at);
	uint32_t i = find(fields, *other, escaped);
	if (i < fields->count)
		return found(r, fields, i, other->at - 1);
	if (r->work == NULL)
		return FIELD_OTHER;
	uint32_t known = (uint32_t)__builtin_popcount(fields->seen);
	uint32_t max = r->limits.keys_max > known ? r->limits.keys_max - known : 0;
	switch (json_keys_add(r->work, &r->levels[r->depth - 1], max, *other, escaped, r->end)) {
	case KEYS_ADDED:
		break;
	case KEYS_DUPLICATE:
		return fail(r, other->at - 1, ERR_DUPLICATE_KEY);
	case KEYS_FULL:
		return fail(r, other->at - 1, ERR_TOO_MANY_KEYS);
	}
	return FIELD_OTHER;
}

/* The index of the name that the text at `at` begins with, from the likeliest on and around;
 * fields->count when it is none of them. FIELD_ROOM bytes are readable. */
static inline uint32_t guess(const struct json_fields *fields, const char *at)
{
	const struct json_name *end = fields->names + fields->count, *name;
	const struct json_name *likely = fields->names + fields->next;
	uint64_t first = scan_load8(at);

	for (name = likely; name < end; name++)
		if (json_name_at(name, at, first))
			return (uint32_t)(name - fields->names);
	for (name = fields->names; name < likely; name++)
		if (json_name_at(name, at, first))
			return (uint32_t)(name - fields->names);
	return fields->count;
}

/* White space, or the general way. */
static SCAN_RARE uint32_t next_unlikely(struct json_reader *r, struct json_fields *fields,
					struct slice *other)
{
	const char *at = space(r->at, r->end);

	if (r->end - at < FIELD_ROOM || (!r->fresh && *at != ','))
		return next_general(r, fields, other);
	if (!r->fresh)
		at = space(at + 1, r->end);
	if (r->end - at < FIELD_ROOM)
		return next_general(r, fields, other);
	uint32_t i = guess(fields, at);
	if (i == fields->count)
		return next_general(r, fields, other);
	const char *colon = at + fields->names[i].len + 2;
	if (*colon != ':')
		return next_general(r, fields, other);
	r->fresh = false;
	r->at = r->due = space(colon + 1, r->end);
	return found(r, fields, i, at);
}

const char *json_guess_spaced_name(const struct json_reader *r, const char *at)
{
	const char *line = reader_line(r, at, r->depth);

	if (line == NULL)
		line = reader_space(at, r->end);
	return line < r->guess_last ? line : NULL;
}

/* Behind the white space that follows a member: mostly the object ends there. */
static SCAN_RARE const char *space_behind(const struct json_reader *r)
{
	const char *line = reader_line(r, r->at, r->depth - 1);

	return line != NULL ? line : reader_space(r->at, r->end);
}

uint32_t json_next_field(struct json_reader *r, struct json_fields *fields, struct slice *other)
{
	const char *at = r->at;

	must(at != r->due || at == r->end); /* the value of the member before was consumed */
	if (at != r->end && (unsigned char)*at <= ' ')
		r->at = at = space_behind(r);
	if (at != r->end && *at == '}') {
		must(r->depth > 0 && (r->objects & 1) != 0);
		reader_leave(r, at);
		return FIELD_END;
	}
	if (r->end - at < FIELD_ROOM || r->limits.keys_max <= FIELDS_MAX)
		return next_general(r, fields, other);
	if (!r->fresh && *at++ != ',')
		return next_unlikely(r, fields, other);
	uint32_t i = guess(fields, at);
	if (i == fields->count && *at == '"') /* none of them, unless it has an escape */
		return next_general(r, fields, other);
	if (i == fields->count || (fields->seen >> i & 1) != 0)
		return next_unlikely(r, fields, other);
	const char *value = at + fields->names[i].len + 3;
	if (value[-1] != ':' || (unsigned char)*value <= ' ')
		return next_unlikely(r, fields, other);
	r->fresh = false;
	r->at = r->due = value;
	fields->seen |= (uint32_t)1 << i;
	fields->next = i + 1 < fields->count ? i + 1 : 0;
	return i;
}
