#include "codec/mcp/sampling_decode.h"

#include "codec/base/must.h"

#include <stdio.h>

bool decode_refuse(struct decode *d, enum err err, const char *at, const char *detail)
{
	bool inside = at != NULL && at >= d->body.at && at <= d->body.at + d->body.len;

	if (d->fault.err == ERR_OK)
		d->fault = (struct fault){
			.err = err,
			.offset = inside ? (uint32_t)(at - d->body.at) : FAULT_NO_OFFSET,
			.detail = detail,
		};
	return json_fail(d->r, err, detail);
}

bool decode_refuse_here(struct decode *d, enum err err, const char *detail)
{
	return decode_refuse(d, err, d->r->at, detail);
}

/* The front of `raw` that fits an error text and does not end inside a character. */
static struct slice excerpt(struct slice raw)
{
	enum { EXCERPT_MAX = 64 };

	if (raw.len <= EXCERPT_MAX)
		return raw;
	size_t len = EXCERPT_MAX;
	while (len > 0 && ((unsigned char)raw.at[len] & 0xc0) == 0x80)
		len--;
	return slice_of(raw.at, len);
}

bool decode_refuse_naming(struct decode *d, enum err err, struct slice raw, const char *format)
{
	struct slice name = excerpt(raw);
	char text[192];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	int len = snprintf(text, sizeof(text), format, (int)name.len, name.at);
#pragma GCC diagnostic pop
	must(len > 0 && (size_t)len < sizeof(text));
	struct slice copy = arena_copy(d->into, slice_of(text, (size_t)len));
	return decode_refuse(d, err, raw.at, copy.at);
}

bool decode_busy(struct decode *d)
{
	return decode_refuse(d, ERR_BUSY, NULL,
			     "The request needs more memory than one request may have");
}

static bool add_step(struct decode *d, struct path_step step)
{
	must(d->path_count < PATH_STEPS_MAX);
	d->path[d->path_count++] = step;
	return false;
}

bool decode_in_member(struct decode *d, const char *member)
{
	return add_step(d, (struct path_step){ .member = member });
}

bool decode_in_item(struct decode *d, uint32_t index)
{
	return add_step(d, (struct path_step){ .index = index });
}

struct slice decode_path(struct decode *d)
{
	char text[PATH_STEPS_MAX * 32];
	size_t len = 1;

	text[0] = '$';
	for (uint32_t i = d->path_count; i-- > 0;) {
		const struct path_step *step = &d->path[i];
		int more = step->member != NULL
				   ? snprintf(text + len, sizeof(text) - len, ".%s", step->member)
				   : snprintf(text + len, sizeof(text) - len, "[%u]", step->index);
		must(more > 0 && (size_t)more < sizeof(text) - len);
		len += (size_t)more;
	}
	return arena_copy(d->into, slice_of(text, len));
}

bool decode_grow(struct decode *d, struct list *list, size_t size)
{
	enum { LIST_GROWTH = 4 };
	uint32_t cap = list->cap == 0 ? LIST_FIRST : LIST_GROWTH * list->cap;
	void *at = arena_take(d->into, cap * size);

	if (at == NULL)
		return decode_busy(d);
	if (list->count != 0)
		(void)memcpy(at, list->at, list->count * size);
	list->at = at;
	list->cap = cap;
	return true;
}

bool decode_field_other(struct decode *d, struct field *field)
{
	field->kind = json_here(d->r);
	switch (field->kind) {
	case JSON_STRING:
		return json_take_string(d->r, &field->raw);
	case JSON_NULL:
		field->kind = JSON_BAD;
		return json_null(d->r);
	default:
		return json_skip(d->r, &field->raw);
	}
}

struct json_reader *decode_sub_open(struct decode *d, struct json_reader *sub, struct slice json)
{
	struct json_reader *outer = d->r;

	json_open(sub, json, &d->limits->json, NULL);
	d->r = sub;
	return outer;
}

void decode_sub_close(struct decode *d, struct json_reader *outer)
{
	d->r = outer;
	if (d->fault.err != ERR_OK)
		(void)json_fail(outer, d->fault.err, NULL);
}
