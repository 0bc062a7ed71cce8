#include "codec/json/json_write.h"

#include "codec/base/must.h"
#include "codec/json/json_scan.h"

enum {
	LIST_FIRST = 16,
	STAGE_FIRST = 1008, /* small requests fit one, and four of them one arena chunk */
	STAGE_LEAST = 256,  /* but what the arena has at hand will do, from so much on */
	STAGE_SHARE = 8,    /* a new stage is this part of what is there, so that there are few */
	STAGE_MAX = 256 * 1024, /* enough for a total of 64 MiB in 256 entries */
	ESCAPE_MAX = 6,         /* \u0000 */
};

/* ---- the list ---- */

/* Whether entry `v` belongs into a stage when spans up to `copy_max` do. */
static bool is_small(const struct iovec *v, size_t copy_max)
{
	return v->iov_len <= copy_max;
}

/* The number of entries left when neighbours of up to `copy_max` bytes become one; *bytes is the sum
 * of these. */
static uint32_t merged_count(const struct gather *g, size_t copy_max, size_t *bytes)
{
	uint32_t count = 0;
	bool run = false;

	*bytes = 0;
	for (uint32_t i = 0; i < g->count; i++) {
		bool small = is_small(&g->v[i], copy_max);
		if (small)
			*bytes += g->v[i].iov_len;
		count += !(small && run);
		run = small;
	}
	return count;
}

/* Copies neighbours of up to copy_max bytes together, in place. `stage` has room for all. */
static void merge_small(struct gather *g, char *stage)
{
	uint32_t count = 0;
	bool run = false;

	for (uint32_t i = 0; i < g->count; i++) {
		struct iovec v = g->v[i];
		bool small = is_small(&v, g->copy_max);
		if (small) {
			(void)memcpy(stage, v.iov_base, v.iov_len);
			if (v.iov_len > GATHER_COPY_MAX)
				g->copied += v.iov_len;
			v.iov_base = stage;
			stage += v.iov_len;
		}
		if (small && run)
			g->v[count - 1].iov_len += v.iov_len;
		else
			g->v[count++] = v;
		run = small;
	}
	g->count = count;
}

/* The list is at its limit: raises the threshold until half of it is free again. */
static bool compact(struct gather *g)
{
	size_t bytes, copy_max = g->copy_max;

	do
		copy_max *= 2;
	while (merged_count(g, copy_max, &bytes) > GATHER_IOVEC_MAX / 2);
	char *stage = arena_take(g->into, bytes);
	if (stage == NULL)
		return false;
	g->copy_max = copy_max;
	merge_small(g, stage);
	return true;
}

static bool list_grow(struct gather *g)
{
	uint32_t cap = g->cap == 0 ? LIST_FIRST : 2 * g->cap;

	if (g->cap == GATHER_IOVEC_MAX)
		return compact(g);
	struct iovec *v = arena_take(g->into, cap * sizeof(*v));
	if (v == NULL)
		return false;
	if (g->count != 0)
		(void)memcpy(v, g->v, g->count * sizeof(*v));
	g->v = v;
	g->cap = cap;
	return true;
}

/* No room is left from now on, so that every write comes to gather_stage, which says no. */
static SCAN_RARE bool fail(struct gather *g)
{
	g->failed = true;
	g->from = g->at = g->end = NULL;
	return false;
}

static SCAN_RARE bool list_grow_or_fail(struct gather *g)
{
	return list_grow(g) || fail(g);
}

/* Appends the bytes as an entry, or to the last one when they follow it in memory. */
static inline bool list_add(struct gather *g, const char *at, size_t len)
{
	struct iovec *last = g->count == 0 ? NULL : &g->v[g->count - 1];

	if (last != NULL && (const char *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
		g->total += len;
		return true;
	}
	if (g->count == g->cap && !list_grow_or_fail(g))
		return false;
	g->v[g->count++] = (struct iovec){ (void *)(uintptr_t)at, len };
	g->total += len;
	return true;
}

/* ---- the stage ---- */

/* What was staged becomes an entry. */
static inline bool stage_close(struct gather *g)
{
	char *from = g->from;

	if (g->failed || g->at == from)
		return !g->failed;
	g->from = g->at;
	return list_add(g, from, (size_t)(g->at - from));
}

bool gather_stage(struct gather *g, size_t need)
{
	if (!stage_close(g))
		return false;
	size_t size = g->total / STAGE_SHARE;
	size = size < STAGE_FIRST ? STAGE_FIRST : size > STAGE_MAX ? STAGE_MAX : size;
	size = size < need ? need : size;
	const size_t list = g->cap == 0 ? LIST_FIRST * sizeof(*g->v) : 0;
	const size_t at_hand = arena_at_hand(g->into);
	if (list + size > at_hand && at_hand >= list + need + STAGE_LEAST)
		size = at_hand - list;
	char *stage = arena_take(g->into, list + size);
	if (stage == NULL)
		return fail(g);
	if (list != 0) { /* most lists do with that, and are there with the first stage */
		g->v = (struct iovec *)(void *)stage;
		g->cap = LIST_FIRST;
		stage += list;
	}
	g->from = g->at = stage;
	g->end = stage + size;
	return true;
}

/* ---- texts ---- */

void pen_slice_long(char *pen, struct slice text)
{
	struct piece {
		char bytes[16];
	} first, second, third, last;

	if (text.len > 4 * sizeof(first)) {
		(void)memcpy(pen, text.at, text.len);
		return;
	}
	/* pieces that may overlap */
	const size_t half = sizeof(first), behind = text.len - sizeof(first);
	(void)memcpy(&first, text.at, sizeof(first));
	(void)memcpy(&second, text.at + half, sizeof(first));
	(void)memcpy(&third, text.at + behind - half, sizeof(first));
	(void)memcpy(&last, text.at + behind, sizeof(first));
	(void)memcpy(pen, &first, sizeof(first));
	(void)memcpy(pen + half, &second, sizeof(first));
	(void)memcpy(pen + behind - half, &third, sizeof(first));
	(void)memcpy(pen + behind, &last, sizeof(first));
}

static inline void put(struct gather *g, struct slice text)
{
	char *pen = gather_pen(g, text.len);

	if (pen != NULL)
		g->at = pen_slice(pen, text);
}

void gather_raw_long(struct gather *g, struct slice text)
{
	if (text.len > g->copy_max) {
		if (g->at != g->from && g->cap - g->count >= 2)
			gather_list_both(g, text);
		else if (stage_close(g))
			(void)list_add(g, text.at, text.len);
		return;
	}
	g->copied += text.len;
	put(g, text);
}

void gather_raw(struct gather *g, struct slice text)
{
	if (text.len > GATHER_COPY_MAX)
		gather_raw_long(g, text);
	else
		put(g, text);
}

void gather_image(struct gather *g, struct slice base64)
{
	g->images += base64.len;
	gather_raw(g, base64);
}

void gather_str(struct gather *g, struct slice raw)
{
	if (raw.len > GATHER_COPY_MAX) {
		gather_lit(g, "\"");
		gather_raw_long(g, raw);
		gather_lit(g, "\"");
		return;
	}
	char *pen = gather_pen(g, raw.len + 2);
	if (pen == NULL)
		return;
	pen = pen_lit(pen, "\"");
	pen = pen_slice(pen, raw);
	g->at = pen_lit(pen, "\"");
}

/* The length of the front of [at, end) that needs no escape inside a JSON string. */
static inline size_t clean_run(const char *at, const char *end)
{
	const char *from = at;

	for (; end - at >= 8; at += 8) {
		uint64_t word = scan_load8(at);
		uint64_t special = scan_special8(word) & ~(word & SCAN_ONES * 0x80);
		if (special != 0)
			break; /* exactly where is for the loop below: bits above the first are not */
	}
	while (at < end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - from);
}

/* The escape of one byte that needs one; behind it is returned. */
static char *pen_escape(char *pen, char c)
{
	static const char letters[0x20] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
	};
	static const char hex[] = "0123456789abcdef";
	char letter = (unsigned char)c < 0x20 ? letters[(unsigned char)c] : c;

	*pen++ = '\\';
	if (letter != '\0') {
		*pen++ = letter;
		return pen;
	}
	pen = pen_lit(pen, "u00");
	*pen++ = hex[(unsigned char)c >> 4];
	*pen++ = hex[c & 15];
	return pen;
}

void gather_escaped(struct gather *g, struct slice plain)
{
	const char *at = plain.at, *end = plain.len == 0 ? at : at + plain.len;

	while (at < end && !g->failed) {
		size_t run = clean_run(at, end);
		gather_raw(g, slice_of(at, run));
		at += run;
		char *pen = at == end ? NULL : gather_pen(g, ESCAPE_MAX);
		if (pen != NULL)
			g->at = pen_escape(pen, *at++);
	}
}

/* Whether nothing in a name or the like has to be escaped; false may mean that this was not found out. */
static inline bool surely_clean(struct slice plain)
{
	enum { PIECE = 16 };
	typedef signed char bytes __attribute__((vector_size(PIECE)));
	typedef uint64_t words __attribute__((vector_size(PIECE)));
	const bytes none = { 0 }, quote = none + '"', slash = none + '\\', space = none + ' ';
	bytes front, rear;

	if (plain.len < PIECE || plain.len > 2 * PIECE)
		return false;
	(void)memcpy(&front, plain.at, PIECE);
	(void)memcpy(&rear, plain.at + plain.len - PIECE, PIECE);
	/* signed: below the space are the controls and everything that is not ASCII */
	words special = (words)((front == quote) | (front == slash) | (front < space) |
				(rear == quote) | (rear == slash) | (rear < space));
	return (special[0] | special[1]) == 0;
}

void gather_plain(struct gather *g, struct slice plain)
{
	const char *end = plain.len == 0 ? plain.at : plain.at + plain.len;

	if (surely_clean(plain) || clean_run(plain.at, end) == plain.len) {
		gather_str(g, plain);
		return;
	}
	gather_lit(g, "\"");
	gather_escaped(g, plain);
	gather_lit(g, "\"");
}

/* ---- numbers ---- */

char *pen_uint(char *pen, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	size_t count = value < 10 ? 1 : value < 100 ? 2 : value < 1000 ? 3 : 4;

	for (uint64_t rest = value / 10000; rest != 0; rest /= 10)
		count++;
	char *behind = pen + count, *at = behind;
	for (; value >= 100; value /= 100) {
		at -= 2;
		(void)memcpy(at, pairs + 2 * (value % 100), 2);
	}
	if (value >= 10)
		(void)memcpy(at - 2, pairs + 2 * value, 2);
	else
		at[-1] = (char)('0' + value);
	return behind;
}

void gather_uint(struct gather *g, uint64_t value)
{
	char *pen = gather_pen(g, PEN_UINT_MAX);

	if (pen != NULL)
		g->at = pen_uint(pen, value);
}

void gather_int(struct gather *g, int64_t value)
{
	if (value < 0)
		gather_lit(g, "-");
	gather_uint(g, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* ---- the end ---- */

enum err gather_done(struct gather *g)
{
	return stage_close(g) ? ERR_OK : ERR_BUSY;
}

struct slice gather_flat(const struct gather *g, struct arena *into)
{
	size_t staged = (size_t)(g->at - g->from), total = g->total + staged;
	char *bytes = g->failed ? NULL : arena_take(into, total == 0 ? 1 : total), *out = bytes;

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	for (uint32_t i = 0; i < g->count; i++)
		out = pen_const(out, g->v[i].iov_base, g->v[i].iov_len);
	(void)pen_slice(out, slice_of(g->from, staged));
	return slice_of(bytes, total);
}
