#include "codec/json_write.h"

#include "codec/base/must.h"
#include "codec/json_scan.h"

enum {
	LIST_FIRST = 16,
	STAGE_FIRST = 1008, /* small requests fit one, and four of them one arena chunk */
	STAGE_SHARE = 8,    /* a new stage is this part of what is there, so that there are few */
	STAGE_MAX = 256 * 1024, /* enough for a total of 64 MiB in 256 entries */
	ESCAPE_MAX = 6,         /* \u0000 */
};

void gather_init(struct gather *g, struct arena *into)
{
	*g = (struct gather){ .copy_max = GATHER_COPY_MAX, .into = into };
}

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

static bool fail(struct gather *g)
{
	g->failed = true;
	return false;
}

/* Appends the bytes as an entry, or to the last one when they follow it in memory. */
static inline bool list_add(struct gather *g, const char *at, size_t len)
{
	if (g->count != 0) {
		struct iovec *last = &g->v[g->count - 1];
		if ((const char *)last->iov_base + last->iov_len == at) {
			last->iov_len += len;
			g->total += len;
			return true;
		}
	}
	if (g->count == g->cap && !list_grow(g))
		return fail(g);
	/* iovec is for writing and for reading; this list is only ever read */
	g->v[g->count++] = (struct iovec){ (void *)(uintptr_t)at, len };
	g->total += len;
	return true;
}

/* ---- the stage ---- */

static bool stage_new(struct gather *g, size_t need)
{
	size_t size = g->total / STAGE_SHARE;

	size = size < STAGE_FIRST ? STAGE_FIRST : size > STAGE_MAX ? STAGE_MAX : size;
	size = size < need ? need : size;
	g->stage = arena_take(g->into, size);
	g->stage_end = g->stage == NULL ? NULL : g->stage + size;
	return g->stage != NULL || fail(g);
}

/* Room for `need` bytes in one piece at g->stage; what is written there goes in by stage_commit. */
static inline bool stage_room(struct gather *g, size_t need)
{
	if (g->failed)
		return false;
	return (size_t)(g->stage_end - g->stage) >= need || stage_new(g, need);
}

static inline void stage_commit(struct gather *g, size_t len)
{
	if (len != 0 && list_add(g, g->stage, len))
		g->stage += len;
}

static inline void put(struct gather *g, struct slice text)
{
	if (!stage_room(g, text.len))
		return;
	(void)memcpy(g->stage, text.at, text.len);
	stage_commit(g, text.len);
}

/* ---- texts ---- */

void gather_raw(struct gather *g, struct slice text)
{
	if (text.len == 0 || g->failed)
		return;
	if (text.len > g->copy_max) {
		(void)list_add(g, text.at, text.len);
		return;
	}
	if (text.len > GATHER_COPY_MAX)
		g->copied += text.len;
	put(g, text);
}

void gather_media(struct gather *g, struct slice base64)
{
	g->media += base64.len;
	gather_raw(g, base64);
}

void gather_str(struct gather *g, struct slice raw)
{
	if (raw.len > GATHER_COPY_MAX) {
		gather_lit(g, "\"");
		gather_raw(g, raw);
		gather_lit(g, "\"");
		return;
	}
	if (!stage_room(g, raw.len + 2))
		return;
	g->stage[0] = '"';
	if (raw.len != 0)
		(void)memcpy(g->stage + 1, raw.at, raw.len);
	g->stage[raw.len + 1] = '"';
	stage_commit(g, raw.len + 2);
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

/* The escape of one byte that needs one; its length. */
static size_t escape_byte(char c, char out[ESCAPE_MAX])
{
	static const char letters[0x20] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
	};
	static const char hex[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = (unsigned char)c < 0x20 ? letters[(unsigned char)c] : c;
	if (out[1] != '\0')
		return 2;
	(void)memcpy(out + 1, "u00", 3);
	out[4] = hex[(unsigned char)c >> 4];
	out[5] = hex[c & 15];
	return 6;
}

void gather_escaped(struct gather *g, struct slice plain)
{
	const char *at = plain.at, *end = plain.len == 0 ? at : at + plain.len;

	while (at < end && !g->failed) {
		size_t run = clean_run(at, end);
		gather_raw(g, slice_of(at, run));
		at += run;
		if (at == end)
			break;
		if (!stage_room(g, ESCAPE_MAX))
			return;
		stage_commit(g, escape_byte(*at++, g->stage));
	}
}

void gather_plain(struct gather *g, struct slice plain)
{
	gather_lit(g, "\"");
	gather_escaped(g, plain);
	gather_lit(g, "\"");
}

/* The JSON string that begins at `at` (its quote), escaped once more; behind it is returned. */
static const char *string_escaped(struct gather *g, const char *at, const char *end)
{
	gather_lit(g, "\\\"");
	for (at++; at < end && !g->failed;) {
		size_t run = clean_run(at, end);
		gather_raw(g, slice_of(at, run));
		at += run;
		if (at == end)
			break;
		if (*at == '"') {
			gather_lit(g, "\\\"");
			return at + 1;
		}
		/* an escape: its backslash is doubled; a quote or backslash behind it as well */
		if (!stage_room(g, 4))
			break;
		(void)memcpy(g->stage, "\\\\\\", 3);
		g->stage[3] = at[1];
		bool both = at[1] == '"' || at[1] == '\\';
		stage_commit(g, both ? 4 : 2);
		at += both ? 2 : 1;
	}
	return end;
}

void gather_json_escaped(struct gather *g, struct slice json)
{
	const char *at = json.at, *end = json.len == 0 ? at : at + json.len;

	while (at < end && !g->failed) {
		const char *from = at;
		while (at < end && *at != '"' && !scan_is_space(*at))
			at++;
		gather_raw(g, slice_of(from, (size_t)(at - from)));
		at = scan_space(at, end);
		if (at < end && *at == '"')
			at = string_escaped(g, at, end);
	}
}

/* ---- numbers ---- */

void gather_uint(struct gather *g, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	put(g, slice_of(at, (size_t)(digits + sizeof(digits) - at)));
}

void gather_int(struct gather *g, int64_t value)
{
	if (value < 0)
		gather_lit(g, "-");
	gather_uint(g, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* ---- the end ---- */

enum err gather_done(const struct gather *g)
{
	return g->failed ? ERR_BUSY : ERR_OK;
}

struct slice gather_flat(const struct gather *g, struct arena *into)
{
	char *bytes = g->failed ? NULL : arena_take(into, g->total == 0 ? 1 : g->total),
	     *out = bytes;

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	for (uint32_t i = 0; i < g->count; i++) {
		(void)memcpy(out, g->v[i].iov_base, g->v[i].iov_len);
		out += g->v[i].iov_len;
	}
	return slice_of(bytes, g->total);
}
