#include "codec/json/json_mend.h"

#include "codec/base/must.h"
#include "codec/json/json_keys.h"
#include "codec/json/json_reader.h"

enum { ESCAPE = 6 }; /* \ud83d */

/* ---- strings ---- */

static bool is_high(int32_t code)
{
	return code >= 0xd800 && code < 0xdc00;
}

static bool is_low(int32_t code)
{
	return code >= 0xdc00 && code < 0xe000;
}

/* The code of the \u escape at `at`; negative: there is none. */
static int32_t escape_code(const char *at, const char *end)
{
	return end - at >= ESCAPE && at[0] == '\\' && at[1] == 'u' ? scan_hex4(at + 2) : -1;
}

/* Bytes of the whole character or escape at `at`; 0: it is broken. */
static size_t whole_len(const char *at, const char *end)
{
	if (*at != '\\')
		return scan_utf8_len(at, end);
	if (end - at < 2)
		return 0;
	if (at[1] != 'u')
		return 2; /* the reader knows whether there is such an escape */
	const int32_t code = escape_code(at, end);
	if (is_high(code))
		return is_low(escape_code(at + ESCAPE, end)) ? 2 * (size_t)ESCAPE : 0;
	return code < 0 || is_low(code) ? 0 : ESCAPE;
}

/* Bytes of the broken one at `at`. */
static size_t broken_len(const char *at, const char *end)
{
	if (*at != '\\')
		return 1;
	if (escape_code(at, end) >= 0)
		return ESCAPE;
	size_t len = 2;
	while (len < ESCAPE && at + len < end && scan_hex_values[(unsigned char)at[len]] != 0)
		len++;
	return len;
}

/* Mends what is broken from `at` to `stop`, inside a string that goes on. An escape that ends too early there stays:
 * nobody can say what it was. */
static void replace(char *at, const char *stop, const char *end)
{
	for (size_t len; at < stop; at += len) {
		len = broken_len(at, end);
		if (len == ESCAPE)
			(void)memcpy(at, "\\ufffd", ESCAPE);
		else if (len == 1)
			*at = '?';
	}
}

/* Mends all that is broken at `at`, inside a string. Behind it; *ended: so is the string. */
static char *mend_broken(char *at, char *end, bool *ended)
{
	char *stop = at;

	while (stop < end && *stop != '"' && whole_len(stop, end) == 0)
		stop += broken_len(stop, end);
	if (stop > end) /* a backslash is the last byte */
		stop = end;
	*ended = stop < end && *stop == '"';
	if (!*ended) {
		replace(at, stop, end);
		return stop;
	}
	(void)memset(at, ' ', (size_t)(stop + 1 - at));
	*at = '"';
	return stop + 1;
}

static void mend_strings(char *at, char *end)
{
	bool inside = false, ended;

	while (at < end) {
		if (*at == '"') {
			inside = !inside;
			at++;
			continue;
		}
		const size_t len = inside ? whole_len(at, end) : 1;
		if (len != 0) {
			at += len;
			continue;
		}
		at = mend_broken(at, end, &ended);
		inside = !ended;
	}
}

/* ---- members ---- */

struct walk {
	struct json_reader r;
	char *text;
	struct json_work *work;
	struct json_mend *out;
	struct json_key *first[JSON_DEPTH_MAX]; /* of each open object, in the work area */
};

/* Removes the member of `key`, up to the one behind it. */
static void remove_member(struct walk *w, const struct json_key *key)
{
	const size_t from = (size_t)(key[0].at - 1 - w->text),
		     to = (size_t)(key[1].at - 1 - w->text);

	(void)memset(w->text + from, ' ', to - from);
	if (w->out->removed < JSON_MEND_PLACES)
		w->out->places[w->out->removed] = (uint32_t)from;
	w->out->removed++;
}

static bool too_many(struct walk *w)
{
	return json_fail(&w->r, ERR_TOO_MANY_KEYS, NULL);
}

/* The object whose keys begin at `first` has ended: from its last member to its first one, each whose name was
 * there is removed. */
static bool settle(struct walk *w, struct json_key *first)
{
	struct json_key *const end = w->work->key_top, *key = end;
	struct json_level set;
	bool fits = true;

	json_keys_begin(w->work, &set, json_keys_filter(w->r.limits.keys_max));
	while (fits && key > first) {
		key--;
		const struct slice raw = slice_of(key->at, key->len);
		const bool escaped = raw.len != 0 && memchr(raw.at, '\\', raw.len) != NULL;
		switch (json_keys_add(w->work, &set, w->r.limits.keys_max, raw, escaped,
				      w->r.end)) {
		case KEYS_ADDED:
			break;
		case KEYS_DUPLICATE:
			remove_member(w, key);
			break;
		case KEYS_FULL:
			fits = false;
		}
	}
	json_keys_end(w->work, &set);
	w->work->key_top = first;
	return fits || too_many(w);
}

static bool push(struct walk *w, struct slice key)
{
	struct json_work *work = w->work;

	if (work->key_top >= work->keys + KEYS_OPEN_MAX)
		return too_many(w);
	*work->key_top++ = (struct json_key){ key.at, (uint32_t)key.len, 0 };
	return true;
}

/* Whether the innermost container goes on, with the value that is next then; else it was left, or the reader has
 * failed. */
static bool goes_on(struct walk *w)
{
	const uint32_t depth = w->r.depth;
	struct slice key;

	if ((w->r.objects & 1) == 0)
		return json_next_item(&w->r);
	if (json_next_key(&w->r, &key))
		return push(w, key);
	if (w->r.fault.err == ERR_OK)
		(void)settle(w, w->first[depth - 1]);
	return false;
}

static bool take_value(struct walk *w)
{
	struct json_reader *r = &w->r;

	switch (json_peek(r)) {
	case JSON_OBJECT:
		if (!json_enter_object(r))
			return false;
		w->first[r->depth - 1] = w->work->key_top;
		return true;
	case JSON_ARRAY:
		return json_enter_array(r);
	default:
		return json_skip(r, NULL);
	}
}

bool json_mend(char *text, size_t len, const struct json_limits *limits, struct json_work *work,
	       struct json_mend *out)
{
	static const struct slice mark = SLICE_INIT("\xef\xbb\xbf");
	struct walk w;

	must(work != NULL); /* the names have to be compared */
	out->removed = 0;
	if (slice_starts(slice_of(text, len), mark))
		(void)memset(text, ' ', mark.len);
	mend_strings(text, text + len);
	w.text = text;
	w.work = work;
	w.out = out;
	json_keys_clear(work);
	json_open(&w.r, slice_of(text, len), limits, NULL); /* this walk keeps the keys itself */
	do {
		if (!take_value(&w))
			break;
		while (w.r.depth != 0 && w.r.fault.err == ERR_OK && !goes_on(&w))
			;
	} while (w.r.depth != 0 && w.r.fault.err == ERR_OK);
	json_keys_clear(work);
	return json_finish(&w.r);
}

bool json_mend_within(const struct json_mend *mend, size_t from, size_t to)
{
	if (mend->removed > JSON_MEND_PLACES)
		return true;
	for (uint32_t i = 0; i < mend->removed; i++)
		if (mend->places[i] >= from && mend->places[i] < to)
			return true;
	return false;
}

struct slice json_tight(struct slice json, struct arena *into)
{
	char *bytes = arena_take(into, json.len), *pen = bytes;
	bool inside = false;

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	for (size_t i = 0; i < json.len; i++) {
		const char c = json.at[i];
		if (!inside && scan_is_space(c))
			continue;
		*pen++ = c;
		if (c == '"')
			inside = !inside;
		else if (c == '\\' &&
			 i + 1 < json.len) /* inside: what follows is no quote of ours */
			*pen++ = json.at[++i];
	}
	return slice_of(bytes, (size_t)(pen - bytes));
}
