/* json_write.h - fills a gather list: short texts copied, long ones borrowed, total length known.
 *
 * Spans of up to GATHER_COPY_MAX bytes are copied into the staging area, larger ones are borrowed
 * and must outlive the gather list; the threshold doubles whenever the list would pass
 * GATHER_IOVEC_MAX entries (the kernel's limit is 1,024). Output is compact and deterministic.
 * Failure (memory) is sticky and reported by gather_done, which also brings the list to its end:
 * entries, their count and their total are those of what was written before it. */
#ifndef CODEC_JSON_JSON_WRITE_H
#define CODEC_JSON_JSON_WRITE_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/base/slice.h"

#include <sys/uio.h>

enum { GATHER_COPY_MAX = 256, GATHER_IOVEC_MAX = 512 };

struct gather {
	struct iovec *v; /* only ever read, though iovec is for writing, too */
	uint32_t count, cap;
	size_t total;    /* bytes of all entries */
	size_t images;   /* of these, base64 of images (see gather_image) */
	size_t copied;   /* content bytes copied, for the exact gates */
	size_t copy_max; /* present threshold */
	struct arena *into;
	bool failed;
	/* private: the stage. [from, at) is written and not in the list yet, [at, end) is free; all
	 * three NULL before the first write and after a failure */
	char *from, *at, *end;
};

static inline void gather_init(struct gather *g, struct arena *into)
{
	*g = (struct gather){ .copy_max = GATHER_COPY_MAX, .into = into };
}

/* JSON text, or a part of one, exactly as it is. */
void gather_raw(struct gather *g, struct slice text);

/* Our own words: never borrowed, and free of any test but the one for room. */
static inline __attribute__((always_inline)) void gather_const(struct gather *g, const char *text,
							       size_t len);
#define gather_lit(g, literal) gather_const((g), "" literal, sizeof(literal) - 1)

/* The same, counted as an image's base64, which is left out of token estimates (DESIGN 5). */
void gather_image(struct gather *g, struct slice base64);

/* A raw string (json_read.h) as a JSON string: quotes added, escapes kept. */
void gather_str(struct gather *g, struct slice raw);

/* Plain bytes, valid UTF-8, as a JSON string: quoted and escaped. */
void gather_plain(struct gather *g, struct slice plain);

/* The inside of a JSON string only, escaped, without quotes. */
void gather_escaped(struct gather *g, struct slice plain);

/* JSON text as the inside of a JSON string (function.arguments): compacted and escaped, no quotes.
 */
void gather_json_escaped(struct gather *g, struct slice json);

void gather_int(struct gather *g, int64_t value);
void gather_uint(struct gather *g, uint64_t value);

/* ---- the pen: several short pieces after one look for room ----
 *
 *	char *pen = gather_pen(g, most);
 *	if (pen == NULL)
 *		return;
 *	pen = pen_lit(pen, "\"attempts\":");
 *	pen = pen_uint(pen, attempts);
 *	gather_pen_end(g, pen);
 */

/* Room for at least `most` bytes in one piece; NULL when memory is exhausted. Nothing else may be
 * done with `g` before gather_pen_end, which gets the place behind the last byte. */
static inline char *gather_pen(struct gather *g, size_t most);
static inline void gather_pen_end(struct gather *g, char *pen);

/* The same with `text` behind it, exactly as it is: where it is not longer than GATHER_COPY_MAX, the pen must
 * have had the room for it, too (gather_room), and something must have been written with the pen. */
static inline void gather_pen_end_raw(struct gather *g, char *pen, struct slice text);

/* The room that a pen needs for `text` behind it. */
static inline size_t gather_room(struct slice text)
{
	return text.len > GATHER_COPY_MAX ? 0 : text.len;
}

enum { PEN_UINT_MAX = 20 };

/* Each writes at `pen` and returns the place behind: at most PEN_UINT_MAX bytes, text.len bytes. */
char *pen_uint(char *pen, uint64_t value);
static inline char *pen_slice(char *pen, struct slice text);
#define pen_lit(pen, literal) pen_const((pen), "" literal, sizeof(literal) - 1)

/* ---- the end ---- */

/* How many bytes were written so far; may be asked at any time. */
static inline size_t gather_offset(const struct gather *g);

/* Closes the list: ERR_OK, or ERR_BUSY when memory ran out on the way. Writing may go on behind it. */
MUST_USE enum err gather_done(struct gather *g);

/* After gather_done: what the last stage has left goes back to the arena, if it was taken last. */
static inline void gather_trim(struct gather *g)
{
	if (g->at == NULL)
		return;
	arena_give_end(g->into, g->at, g->end);
	g->end = g->at;
}

/* All that was written as one slice in `into` (absent when memory is exhausted). For tests, TLS and
 * logs. */
MUST_USE struct slice gather_flat(const struct gather *g, struct arena *into);

/* ---- private ---- */

/* A new stage with room for `need` bytes; false when memory is exhausted. */
bool gather_stage(struct gather *g, size_t need);

/* pen_slice of more than SLICE_SHORT bytes. */
void pen_slice_long(char *pen, struct slice text);

/* gather_raw of more than GATHER_COPY_MAX bytes. */
void gather_raw_long(struct gather *g, struct slice text);

static inline size_t gather_offset(const struct gather *g)
{
	return g->total + (size_t)(g->at - g->from);
}

static inline char *gather_pen(struct gather *g, size_t most)
{
	if ((size_t)(g->end - g->at) < most)
		return gather_stage(g, most) ? g->at : NULL;
	if (most != 0 && g->at == NULL)
		__builtin_unreachable(); /* there is no room at NULL; the compiler cannot know that */
	return g->at;
}

static inline void gather_pen_end(struct gather *g, char *pen)
{
	g->at = pen;
}

/* What was staged and the text behind it become entries. Something must be staged, and two entries be free. */
static inline void gather_list_both(struct gather *g, struct slice text)
{
	const size_t staged = (size_t)(g->at - g->from);
	struct iovec *v = g->v + g->count;

	v[0] = (struct iovec){ g->from, staged };
	v[1] = (struct iovec){ (void *)(uintptr_t)text.at, text.len };
	g->count += 2;
	g->total += staged + text.len;
	g->from = g->at;
}

static inline char *pen_const(char *pen, const char *text, size_t len)
{
	(void)memcpy(pen, text, len);
	return pen + len;
}

static inline char *pen_slice(char *pen, struct slice text)
{
	if (text.len > SLICE_SHORT)
		pen_slice_long(pen, text);
	else
		slice_put_short(pen, text);
	return pen + text.len;
}

static inline void gather_pen_end_raw(struct gather *g, char *pen, struct slice text)
{
	if (text.len <= GATHER_COPY_MAX) {
		g->at = pen_slice(pen, text);
		return;
	}
	g->at = pen;
	if (text.len > g->copy_max && g->cap - g->count >= 2)
		gather_list_both(g, text);
	else
		gather_raw_long(g, text);
}

static inline void gather_const(struct gather *g, const char *text, size_t len)
{
	char *pen = gather_pen(g, len);

	if (pen != NULL)
		g->at = pen_const(pen, text, len);
}

#endif
