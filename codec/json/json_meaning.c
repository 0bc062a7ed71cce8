#include "codec/json/json_meaning.h"

#include "codec/json/json_read.h"
#include "codec/json/json_scan.h"

/* What kinds begin with, so that "1" is not 1 and [] is not {}. */
enum { SEED_STRING = 1, SEED_INTEGER, SEED_NUMBER, SEED_ARRAY, SEED_OBJECT, SEED_WORD };

uint64_t json_meaning_join(uint64_t first, uint64_t second)
{
	uint64_t z = first * UINT64_C(0x9e3779b97f4a7c15) + second; /* splitmix64 */

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t of_bytes(uint64_t seed, struct slice bytes)
{
	uint64_t sum = json_meaning_join(seed, bytes.len);

	for (; bytes.len >= 8; bytes = slice_of(bytes.at + 8, bytes.len - 8))
		sum = json_meaning_join(sum, scan_load8(bytes.at));
	for (size_t i = 0; i < bytes.len; i++)
		sum = json_meaning_join(sum, (unsigned char)bytes.at[i]);
	return sum;
}

bool json_meaning_of_string(struct slice raw, struct arena *into, uint64_t *out)
{
	struct slice plain = json_str_plain(raw, into);

	if (slice_absent(plain))
		return false;
	*out = of_bytes(SEED_STRING, plain);
	return true;
}

/* 100, 100.0 and 1e2 are the same; so is what a double cannot tell apart. */
static uint64_t of_number(struct slice raw)
{
	int64_t integer;
	double number;
	uint64_t bits;

	if (json_to_int64(raw, &integer))
		return json_meaning_join(SEED_INTEGER, (uint64_t)integer);
	number = json_to_double(raw);
	(void)memcpy(&bits, &number, sizeof(bits));
	return json_meaning_join(SEED_NUMBER, bits);
}

/* An open array or object. */
struct level {
	bool object;
	uint64_t key; /* of the member that is read */
	uint64_t sum;
};

struct walk {
	struct json_reader r;
	struct arena *into;
	bool failed;
	uint32_t depth;
	struct level levels[JSON_DEPTH_MAX];
};

/* A value without others in it. */
static uint64_t read_scalar(struct walk *w)
{
	struct slice raw = { NULL, 0 };
	uint64_t sum = 0;

	switch (json_peek(&w->r)) {
	case JSON_STRING:
		w->failed |=
			!json_string(&w->r, &raw) || !json_meaning_of_string(raw, w->into, &sum);
		return sum;
	case JSON_NUMBER:
		w->failed |= !json_number(&w->r, &raw);
		return w->failed ? 0 : of_number(raw);
	default: /* null, true, false */
		w->failed |= !json_skip(&w->r, &raw);
		return of_bytes(SEED_WORD, raw);
	}
}

/* Enters the array or object that is next. */
static void enter(struct walk *w, bool object)
{
	const uint64_t sum = object ? SEED_OBJECT : SEED_ARRAY;

	if (w->depth == JSON_DEPTH_MAX ||
	    !(object ? json_enter_object(&w->r) : json_enter_array(&w->r)))
		w->failed = true;
	else
		w->levels[w->depth++] = (struct level){ .object = object, .sum = sum };
}

/* Members count in any order, items in theirs. */
static void add(struct level *level, uint64_t value)
{
	if (level->object)
		level->sum += json_meaning_join(level->key, value);
	else
		level->sum = json_meaning_join(level->sum, value);
}

/* Whether the innermost container goes on, with the value that is next then. */
static bool goes_on(struct walk *w)
{
	struct level *level = &w->levels[w->depth - 1];
	struct slice key;

	if (!level->object)
		return json_next_item(&w->r);
	if (!json_next_key(&w->r, &key))
		return false;
	w->failed |= !json_meaning_of_string(key, w->into, &level->key);
	return true;
}

bool json_meaning(struct slice json, struct arena *into, uint64_t *out)
{
	struct walk w;

	w.into = into;
	w.failed = false;
	w.depth = 0;
	json_open(&w.r, json, NULL, NULL);
	for (*out = 0; !w.failed;) {
		const enum json_kind kind = json_peek(&w.r);
		if (kind == JSON_ARRAY || kind == JSON_OBJECT)
			enter(&w, kind == JSON_OBJECT);
		else if (w.depth == 0)
			*out = read_scalar(&w);
		else
			add(&w.levels[w.depth - 1], read_scalar(&w));
		while (!w.failed && w.depth != 0 && !goes_on(&w)) {
			*out = w.levels[--w.depth].sum;
			if (w.depth != 0)
				add(&w.levels[w.depth - 1], *out);
		}
		if (w.depth == 0)
			break;
	}
	return !w.failed && w.r.fault.err == ERR_OK;
}
