/* json_write.h - fills a gather list: short texts copied, long ones borrowed, total length known.
 *
 * Spans of up to GATHER_COPY_MAX bytes are copied into the staging area, larger ones are borrowed
 * and must outlive the gather list; the threshold doubles whenever the list would pass
 * GATHER_IOVEC_MAX entries (the kernel's limit is 1,024). Output is compact and deterministic.
 * Failure (memory) is sticky and reported by gather_done. */
#ifndef CODEC_JSON_WRITE_H
#define CODEC_JSON_WRITE_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/base/slice.h"

#include <sys/uio.h>

enum { GATHER_COPY_MAX = 256, GATHER_IOVEC_MAX = 512 };

struct gather {
	struct iovec *v;
	uint32_t count, cap;
	size_t total;    /* bytes of all entries */
	size_t media;    /* of these, base64 of images and audio (see gather_media) */
	size_t copied;   /* content bytes copied, for the exact gates */
	size_t copy_max; /* present threshold */
	struct arena *into;
	bool failed;
	/* private: the open staging chunk */
	char *stage, *stage_end;
};

void gather_init(struct gather *g, struct arena *into);

/* JSON text, or a part of one, exactly as it is. */
void gather_raw(struct gather *g, struct slice text);
#define gather_lit(g, literal) gather_raw((g), SLICE(literal))

/* The same, counted as media: base64 is left out of token estimates (DESIGN 5). */
void gather_media(struct gather *g, struct slice base64);

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

/* ERR_OK, or ERR_BUSY when memory ran out on the way. */
MUST_USE enum err gather_done(const struct gather *g);

/* All entries as one slice in `into` (absent when memory is exhausted). For tests, TLS and logs. */
MUST_USE struct slice gather_flat(const struct gather *g, struct arena *into);

#endif
