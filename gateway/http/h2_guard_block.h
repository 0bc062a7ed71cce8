/* h2_guard_block.h - what the guard learns from a header block (RFC 7541 6) without unpacking it.
 *
 * No table is kept, so references to fields sent before remain closed. What is malformed is read as far
 * as it goes; h2o refuses it. Pure. */
#ifndef GATEWAY_HTTP_H2_GUARD_BLOCK_H
#define GATEWAY_HTTP_H2_GUARD_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Header fields of one request; over HTTP/1.1 h2o takes 100. */
enum { GUARD_FIELDS_MAX = 128 };

struct guard_block {
	unsigned fields; /* and changes of the table's size; not counted beyond one too many */
	/* if it is spelled out: the last one, which all must be like (override_hpack_parse.c); else 0 */
	uint64_t content_length;
};

/* `bytes` is the payload of a HEADERS frame with END_HEADERS and these `flags`. */
struct guard_block guard_block_read(const char *bytes, size_t len, uint8_t flags);

#endif
