#include "codec/json/json_digest.h"

#include "codec/base/must.h"

/* A member of an object, or an item of an array. */
struct item {
	uint8_t at[SHA256_BYTES];
};

/* What each digest begins with, so that what means one thing is never another. */
static const struct slice of_value = SLICE_INIT("v"), of_member = SLICE_INIT("m"),
			  of_object = SLICE_INIT("o"), of_array = SLICE_INIT("a"),
			  of_odd = SLICE_INIT("x"), of_large = SLICE_INIT("l");

struct level {
	struct json_loose_walk walk;
	size_t first; /* of its items */
};

struct digest {
	struct arena *into;
	struct item *items; /* of all open levels */
	size_t count, room;
	size_t looked; /* members and items so far */
	uint32_t depth;
	struct level levels[JSON_DIGEST_DEPTH];
};

/* ---- order: members count in any ------------------------------------------------------------- */

static bool is_less(const struct item *a, const struct item *b)
{
	return memcmp(a->at, b->at, sizeof(a->at)) < 0;
}

static void swap(struct item *a, struct item *b)
{
	const struct item kept = *a;

	*a = *b;
	*b = kept;
}

/* Below `root` the items are a heap, but for the root's own place. */
static void sift(struct item *items, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && is_less(&items[child], &items[child + 1]))
			child++;
		if (!is_less(&items[root], &items[child]))
			return;
		swap(&items[root], &items[child]);
	}
}

/* In place: qsort may ask for memory. */
static void sort(struct item *items, size_t count)
{
	for (size_t i = count / 2; i > 0; i--)
		sift(items, i - 1, count);
	for (size_t i = count; i > 1; i--) {
		swap(&items[0], &items[i - 1]);
		sift(items, 0, i - 1);
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static void of_two(struct slice kind, struct slice first, struct slice second, struct item *out)
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add(&sum, kind);
	sha256_add(&sum, first);
	sha256_add(&sum, second);
	sha256_end(&sum, out->at);
}

static struct slice bytes_of(const struct item *items, size_t count)
{
	return slice_of((const char *)items, count * sizeof(*items));
}

/* Strings and numbers by what they mean; all else by its bytes. False: no memory. */
static bool leaf(struct digest *digest, struct slice value, struct item *out)
{
	const enum json_loose_kind kind = json_loose_kind(value);
	struct slice text = value;

	if (kind == JSON_LOOSE_STRING || kind == JSON_LOOSE_NUMBER)
		text = json_loose_id_text(value, digest->into);
	if (slice_absent(text))
		return false;
	of_two(of_value, text, SLICE(""), out);
	return true;
}

/* The member or item that the innermost level has moved to. */
static bool add(struct digest *digest, const struct item *value)
{
	const struct level *level = &digest->levels[digest->depth - 1];
	struct item name;

	if (digest->count == digest->room) {
		const size_t room = digest->room == 0 ? 32 : 2 * digest->room;
		struct item *items = arena_take(digest->into, room * sizeof(*items));
		if (items == NULL)
			return false;
		if (digest->count != 0)
			(void)memcpy(items, digest->items, digest->count * sizeof(*items));
		digest->items = items;
		digest->room = room;
	}
	struct item *to = &digest->items[digest->count];
	if (level->walk.close == ']')
		*to = *value;
	else if (!leaf(digest, level->walk.name, &name))
		return false;
	else
		of_two(of_member, bytes_of(&name, 1), bytes_of(value, 1), to);
	digest->count++;
	return true;
}

/* The innermost level is over. */
static void close_level(struct digest *digest, struct item *out)
{
	const struct level *level = &digest->levels[--digest->depth];
	const size_t count = digest->count - level->first;
	struct item *items = count == 0 ? NULL : digest->items + level->first;
	const bool object = level->walk.close == '}';

	if (object)
		sort(items, count);
	of_two(object ? of_object : of_array, bytes_of(items, count), SLICE(""), out);
	digest->count = level->first;
}

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (json_loose_is(name, names[i]))
			return true;
	return false;
}

/* ---- the walk -------------------------------------------------------------------------------- */

enum moved { MOVED, CLOSED, ODD, LARGE, NO_MEMORY };

/* The innermost level's next member: it is added, or becomes the innermost level. */
static enum moved move(struct digest *digest, const char *const *without, size_t count)
{
	struct level *level = &digest->levels[digest->depth - 1];
	struct item value;

	if (!json_loose_name(&level->walk))
		return level->walk.bad ? ODD : CLOSED;
	if (++digest->looked > JSON_DIGEST_ITEMS)
		return LARGE;
	const bool left_out = digest->depth == 1 && level->walk.close == '}' &&
			      is_one_of(level->walk.name, without, count);
	if (!left_out && digest->depth < JSON_DIGEST_DEPTH &&
	    json_loose_enter(&level[1].walk, &level->walk)) {
		level[1].first = digest->count;
		digest->depth++;
		return MOVED;
	}
	if (!json_loose_value(&level->walk))
		return ODD;
	if (left_out)
		return MOVED;
	return leaf(digest, level->walk.value, &value) && add(digest, &value) ? MOVED : NO_MEMORY;
}

/* The innermost level is over: it is a member of the one around it. */
static enum moved leave(struct digest *digest, struct item *value)
{
	struct level *level = &digest->levels[digest->depth - 1];

	close_level(digest, value);
	if (digest->depth == 0)
		return MOVED;
	if (!json_loose_leave(&level[-1].walk, &level->walk))
		return ODD;
	return add(digest, value) ? MOVED : NO_MEMORY;
}

/* Names and values byte by byte, in the order in which they stand. */
static void of_members(struct slice value, const char *const *without, size_t count,
		       struct item *out)
{
	const bool object = json_loose_kind(value) == JSON_LOOSE_OBJECT;
	struct json_loose_walk walk;
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add(&sum, of_large);
	json_loose_open(&walk, value);
	while (json_loose_next(&walk)) {
		if (object && is_one_of(walk.name, without, count))
			continue;
		sha256_add(&sum, walk.name);
		sha256_add(&sum, walk.value);
		sha256_add(&sum, SLICE(","));
	}
	sha256_end(&sum, out->at);
	if (walk.bad)
		of_two(of_odd, value, SLICE(""), out);
}

bool json_digest(struct slice value, const char *const *without, size_t count, struct arena *into,
		 uint8_t out[SHA256_BYTES])
{
	const enum json_loose_kind kind = json_loose_kind(value);
	struct digest digest;
	struct item sum;
	enum moved moved = MOVED;

	digest.into = into;
	digest.items = NULL;
	digest.count = digest.room = digest.looked = 0;
	digest.depth = kind == JSON_LOOSE_OBJECT || kind == JSON_LOOSE_ARRAY ? 1 : 0;
	json_loose_open(&digest.levels[0].walk, value);
	digest.levels[0].first = 0;
	if (digest.depth == 0 && !leaf(&digest, value, &sum))
		return false;
	while (digest.depth != 0 && moved == MOVED) {
		moved = move(&digest, without, count);
		if (moved == CLOSED)
			moved = leave(&digest, &sum);
	}
	if (moved == ODD)
		of_two(of_odd, value, SLICE(""), &sum);
	if (moved == LARGE)
		of_members(value, without, count, &sum);
	(void)memcpy(out, sum.at, sizeof(sum.at));
	return moved != NO_MEMORY;
}
