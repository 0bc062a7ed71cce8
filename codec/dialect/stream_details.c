/* stream_details.c - reasoning_details of a Chat Completions stream (OpenRouter), put together again for their way
 * back (replay.h; contract/providers.md 5).
 *
 * A delta brings fragments of a list. A text or a summary comes in many, its signature with or behind the
 * last one; the host wants it back as the one detail that a whole answer has. Nothing says where a detail
 * ends: the fragments' `index` is that of the list at some upstreams and always 0 at others. So a fragment
 * goes on with the one before it unless something speaks against that: another type, id, format or index, or a
 * signature, which is always the end. Details of other types, encrypted ones for example, come whole. */
#include "codec/base/must.h"
#include "codec/dialect/stream_parts.h"

struct stream_detail {
	struct stream_detail *next;
	struct slice whole;             /* its JSON; absent: it is put together of what follows */
	struct slice rest;              /* members that are not named here, each behind a comma */
	struct slice type;              /* raw */
	struct slice key;               /* "text" or "summary" */
	struct slice signature;         /* raw; absent: not yet */
	struct slice id, format, index; /* JSON; absent: none, or null */
	struct stream_text text;        /* raw */
	bool has_text;
};

/* What a delta says of a detail, in the event's data. */
struct fragment {
	struct slice type, text, summary, signature; /* raw strings */
	struct slice id, format, index;              /* JSON */
};

static const struct stream_member fragment_members[] = {
	STREAM_STRING(fragment, type, "type"),
	STREAM_STRING(fragment, text, "text"),
	STREAM_STRING(fragment, summary, "summary"),
	STREAM_STRING(fragment, signature, "signature"),
	STREAM_WHOLE(fragment, id, "id"),
	STREAM_WHOLE(fragment, format, "format"),
	STREAM_WHOLE(fragment, index, "index"),
};

static struct slice unless_null(struct slice json)
{
	return slice_eq(json, SLICE("null")) ? (struct slice){ NULL, 0 } : json;
}

/* The member that a detail of that type is put together of; absent: it comes whole. */
static struct slice key_of(struct slice type)
{
	if (json_str_eq(type, SLICE("reasoning.text")))
		return SLICE("text");
	if (json_str_eq(type, SLICE("reasoning.summary")))
		return SLICE("summary");
	return (struct slice){ NULL, 0 };
}

static struct slice text_of(const struct fragment *f, struct slice key)
{
	return slice_eq(key, SLICE("text")) ? f->text : f->summary;
}

/* ---- one detail ---- */

/* Members that a detail has places for are not part of the rest: `own` is that of its text. */
static bool is_named(struct slice key, struct slice own)
{
	static const struct slice names[] = { SLICE_INIT("type"), SLICE_INIT("signature"),
					      SLICE_INIT("id"), SLICE_INIT("format"),
					      SLICE_INIT("index") };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (json_str_eq(key, names[i]))
			return true;
	return json_str_eq(key, own);
}

static char *put(char *at, struct slice text)
{
	return text.len == 0 ? at : (char *)memcpy(at, text.at, text.len) + text.len;
}

/* No more than the object has bytes: what stands between the members there stands in front of them here. */
static struct slice copy_rest(struct stream *s, struct slice object, struct slice own)
{
	char *text = stream_private_take(s, object.len, 0), *at = text;
	struct json_reader r;
	struct slice key, value;

	if (text == NULL)
		return (struct slice){ NULL, 0 };
	json_open(&r, object, NULL, NULL);
	must(json_enter_object(&r));
	while (json_next_key(&r, &key)) {
		if (!json_skip(&r, &value) || is_named(key, own))
			continue;
		s->private_lost |= stream_halves_inside(s, key) || stream_halves_inside(s, value);
		at = put(put(at, SLICE(",\"")), key);
		at = put(put(at, SLICE("\":")), value);
	}
	must((size_t)(at - text) <= object.len);
	return slice_of(text, (size_t)(at - text));
}

static struct stream_detail *detail_new(struct stream *s)
{
	/* With what the first bytes of its text take: fragments may all be of details of their own. */
	struct stream_detail *detail = stream_private_take(s, sizeof(*detail), STREAM_TEXT_LEAST);

	if (detail == NULL)
		return NULL;
	*detail = (struct stream_detail){ .next = NULL };
	if (s->details == NULL)
		s->details = detail;
	else
		s->last_detail->next = detail;
	s->last_detail = detail;
	return detail;
}

/* A later fragment may say what the first one did not. */
static void keep(struct stream *s, struct slice from, struct slice *to)
{
	if (!slice_absent(from) && slice_absent(*to))
		stream_private_copy(s, from, to);
}

static void add(struct stream *s, struct stream_detail *detail, const struct fragment *f)
{
	const struct slice text = text_of(f, detail->key);

	if (!slice_absent(text)) {
		detail->has_text = true;
		(void)stream_private_add(s, &detail->text, text);
	}
	if (f->signature.len != 0)
		keep(s, f->signature, &detail->signature);
	keep(s, f->id, &detail->id);
	keep(s, f->format, &detail->format);
	keep(s, f->index, &detail->index);
}

static bool differ(struct slice a, struct slice b)
{
	return !slice_absent(a) && !slice_absent(b) && !slice_eq(a, b);
}

static bool goes_on(const struct stream_detail *last, const struct fragment *f)
{
	return last != NULL && slice_absent(last->whole) && slice_absent(last->signature) &&
	       json_str_same(last->type, f->type) && !differ(last->id, f->id) &&
	       !differ(last->format, f->format) && !differ(last->index, f->index);
}

static void begin(struct stream *s, struct slice object, const struct fragment *f)
{
	const struct slice key = key_of(f->type);
	struct stream_detail *detail = detail_new(s);

	if (detail == NULL)
		return;
	if (slice_absent(key)) {
		stream_private_copy(s, object, &detail->whole);
		return;
	}
	detail->key = key;
	stream_private_copy(s, f->type, &detail->type);
	detail->rest = copy_rest(s, object, key);
	add(s, detail, f);
}

/* ---- the list ---- */

void stream_details_take(struct stream *s, struct slice object)
{
	struct fragment f = { .type = { NULL, 0 } };

	s->private_lost |= object.at[0] != '{';
	if (s->private_lost)
		return;
	stream_read_members(s, object, fragment_members, COUNT_OF(fragment_members), &f);
	f.id = unless_null(f.id);
	f.format = unless_null(f.format);
	f.index = unless_null(f.index);
	if (goes_on(s->last_detail, &f))
		add(s, s->last_detail, &f);
	else
		begin(s, object, &f);
}

bool stream_details_have_half(const struct stream *s)
{
	for (const struct stream_detail *d = s->details; d != NULL; d = d->next)
		if (d->text.half)
			return true;
	return false;
}

static void put_json(struct gather *g, struct slice key, struct slice json)
{
	if (slice_absent(json))
		return;
	gather_raw(g, key);
	gather_raw(g, json);
}

static void put_detail(struct gather *g, const struct stream_detail *d)
{
	if (!slice_absent(d->whole)) {
		gather_raw(g, d->whole);
		return;
	}
	gather_lit(g, "{\"type\":\"");
	gather_raw(g, d->type);
	gather_lit(g, "\"");
	if (d->has_text) {
		gather_lit(g, ",\"");
		gather_raw(g, d->key);
		gather_lit(g, "\":\"");
		stream_text_write(g, &d->text);
		gather_lit(g, "\"");
	}
	if (!slice_absent(d->signature)) {
		gather_lit(g, ",\"signature\":\"");
		gather_raw(g, d->signature);
		gather_lit(g, "\"");
	}
	put_json(g, SLICE(",\"id\":"), d->id);
	put_json(g, SLICE(",\"format\":"), d->format);
	put_json(g, SLICE(",\"index\":"), d->index);
	gather_raw(g, d->rest);
	gather_lit(g, "}");
}

struct slice stream_details_whole(struct stream *s)
{
	struct gather g;

	if (s->details == NULL)
		return (struct slice){ NULL, 0 };
	gather_init(&g, s->answer.into);
	for (const struct stream_detail *d = s->details; d != NULL; d = d->next) {
		gather_raw(&g, d == s->details ? SLICE("[") : SLICE(","));
		put_detail(&g, d);
	}
	gather_lit(&g, "]");
	if (gather_done(&g) == ERR_OK)
		return gather_flat(&g, s->answer.into);
	answer_no_memory(&s->answer);
	return (struct slice){ NULL, 0 };
}
