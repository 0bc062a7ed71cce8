#include "codec/json_last.h"

#include "codec/json_keys.h"

/* An open array or object. */
struct level {
	bool object;
	uint32_t keys; /* its first one in the walk's */
};

struct walk {
	struct json_reader r;
	struct json_work *work;
	char *text; /* a copy: what is left out becomes NULs, which no JSON has */
	struct slice *keys;
	uint32_t key_count, depth;
	struct level levels[JSON_DEPTH_MAX];
};

/* The innermost container has ended. Of its members that have the same key the last one stays: so they are
 * looked at from the last one on. False: there are too many keys. */
static bool leave(struct walk *w)
{
	const uint32_t first = w->levels[--w->depth].keys;
	struct json_level set = json_keys_begin(w->work), top = set;
	enum json_keys_answer answer = KEYS_ADDED;

	set.filter = json_keys_filter(w->r.limits.keys_max);
	for (uint32_t i = w->key_count; i-- > first && answer != KEYS_FULL;) {
		const struct slice key = w->keys[i];
		answer = json_keys_add(w->work, &set, w->r.limits.keys_max, key, true,
				       key.at + key.len + 1);
		if (answer == KEYS_DUPLICATE) /* so there is a member behind it */
			(void)memset(w->text + (key.at - 1 - w->text), '\0',
				     (size_t)(w->keys[i + 1].at - key.at));
	}
	json_keys_end(w->work, top);
	w->key_count = first;
	return answer != KEYS_FULL;
}

static bool enter(struct walk *w, bool object)
{
	if (!(object ? json_enter_object(&w->r) : json_enter_array(&w->r)))
		return false;
	w->levels[w->depth++] = (struct level){ object, w->key_count };
	return true;
}

/* Whether the innermost container goes on, with the value that is next then. */
static bool goes_on(struct walk *w)
{
	if (!w->levels[w->depth - 1].object)
		return json_next_item(&w->r);
	if (!json_next_key(&w->r, &w->keys[w->key_count]))
		return false;
	w->key_count++;
	return true;
}

static bool walk(struct walk *w)
{
	do {
		const enum json_kind kind = json_peek(&w->r);
		const bool object = kind == JSON_OBJECT;
		if (!(object || kind == JSON_ARRAY ? enter(w, object) : json_skip(&w->r, NULL)))
			return false;
		while (w->depth != 0) {
			if (w->key_count == w->r.limits.keys_max)
				return false;
			if (goes_on(w))
				break;
			if (w->r.fault.err != ERR_OK || !leave(w))
				return false;
		}
	} while (w->depth != 0);
	return json_finish(&w->r);
}

struct slice json_last(struct slice text, const struct json_limits *limits, struct json_work *work,
		       struct arena *into, bool *starved)
{
	enum { MEMBER_LEAST = 4 }; /* bytes: "":1 */
	const size_t keys_max = text.len / MEMBER_LEAST + 1;
	struct json_limits fits = *limits;
	struct walk w = { .work = work };
	char *out;

	if (keys_max < fits.keys_max)
		fits.keys_max = (uint32_t)keys_max;
	w.text = arena_take(into, text.len);
	w.keys = arena_take(into, fits.keys_max * sizeof(*w.keys));
	*starved = w.text == NULL || w.keys == NULL;
	if (*starved)
		return (struct slice){ NULL, 0 };
	(void)memcpy(w.text, text.at, text.len);
	/* without a work area: keys that come twice are no fault */
	json_open(&w.r, slice_of(w.text, text.len), &fits, NULL);
	if (!walk(&w))
		return (struct slice){ NULL, 0 };
	out = w.text;
	for (size_t i = 0; i < text.len; i++) {
		*out = w.text[i];
		out += *out != '\0';
	}
	return slice_of(w.text, (size_t)(out - w.text));
}
