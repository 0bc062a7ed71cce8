/* sim_buf.h - a growing byte buffer for the simulator.
 *
 * Owns its bytes; {0} is an empty one. Running out of memory ends the program: a simulator that
 * answers less than it was told to would be worse than none. */
#ifndef BENCH_SIM_SIM_BUF_H
#define BENCH_SIM_SIM_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "codec/base/clock.h"
#include "codec/base/slice.h"

struct sim_buf {
	char *at;
	size_t len, cap;
};

/* Afterwards at least `bytes` fit behind `len`. May move the bytes. */
void sim_buf_room(struct sim_buf *buf, size_t bytes);

void sim_buf_add(struct sim_buf *buf, struct slice s);

/* `text` NUL-terminated. */
static inline void sim_buf_text(struct sim_buf *buf, const char *text)
{
	sim_buf_add(buf, slice_str(text));
}

void sim_buf_decimal(struct sim_buf *buf, uint64_t n);
void sim_buf_hex(struct sim_buf *buf, uint64_t n);

/* `format` with each '$' replaced by the next argument, a struct slice, and each '#' by the next
 * argument, a uint64_t, in decimal. Several times faster than printf. */
void sim_buf_format(struct sim_buf *buf, const char *format, ...);

/* The time so far ahead, UTC, rounded up to the second, in the form that strftime makes of `form`. */
void sim_buf_date(struct sim_buf *buf, const char *form, nsec_t ahead);

/* The inside of a JSON string, without its quotes. Bytes above 0x7f pass as they are. */
void sim_buf_escaped(struct sim_buf *buf, struct slice s);

/* Takes the first `bytes` away; the rest moves to the front. */
void sim_buf_drop(struct sim_buf *buf, size_t bytes);

/* Leaves {0}. */
void sim_buf_free(struct sim_buf *buf);

#endif
