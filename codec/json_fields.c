#include "codec/json_fields.h"

#include "codec/json_names.h"

enum { ROOM = 8 + FIELD_NAME_MAX + 2 }; /* a comma, a name, a colon, and a value's first byte */

static inline const char *space(const char *at, const char *end)
{
	return (unsigned char)*at > ' ' ? at : scan_space(at, end);
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

/* Marks the member whose key is at `quote`. */
static inline uint32_t found(struct json_reader *r, struct json_fields *fields, uint32_t i,
			     const char *quote)
{
	uint32_t bit = (uint32_t)1 << i;

	if ((fields->seen & bit) != 0)
		return fail(r, quote, ERR_DUPLICATE_KEY);
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

uint32_t json_next_field(struct json_reader *r, struct json_fields *fields, struct slice *other)
{
	const char *at = r->at;

	if (r->end - at < ROOM)
		return next_general(r, fields, other);
	must(at != r->due); /* the value of the member before was consumed */
	if (!r->fresh) {
		if (*at != ',')
			return next_general(r, fields, other);
		at++;
	}
	at = space(at, r->end);
	if (r->end - at < ROOM)
		return next_general(r, fields, other);
	uint64_t first = scan_load8(at);
	for (uint32_t i = fields->next, left = fields->count; left != 0; left--) {
		const struct json_name *name = &fields->names[i];
		const char *colon = at + name->len + 2;
		if (json_name_at(name, at, first) && *colon == ':') {
			r->fresh = false;
			r->at = r->due = space(colon + 1, r->end);
			return found(r, fields, i, at);
		}
		i = i + 1 < fields->count ? i + 1 : 0;
	}
	return next_general(r, fields, other);
}
