/* net_bytes.h - bytes on their way in and out of a connection, for net_conn.c: input that outlives the
 * callback that it was read for, and what is left of a list that was not sent at once. */
#ifndef GATEWAY_NET_NET_BYTES_H
#define GATEWAY_NET_NET_BYTES_H

#include "gateway/net/net.h"

/* ---- input ---- */

struct net_buffer {
	size_t begin, end, room;
	char bytes[];
};

/* Makes room for `more` bytes behind those of *buffer, which may be NULL; it may move. What was consumed
 * makes room first. False: no memory. */
MUST_USE bool net_buffer_reserve(struct net_buffer **buffer, size_t more);
/* A buffer of exactly these bytes; NULL: no memory. */
struct net_buffer *net_buffer_of(const char *bytes, size_t len);

/* ---- output ---- */

/* Zeroed: nothing. */
struct net_output {
	struct iovec *v;      /* the caller's, and not written to, unless it is `own` */
	size_t count, offset; /* offset: bytes of v[0] that have left */
	struct iovec *own;
	bool busy;
};

/* `sent` more bytes have left. */
void net_output_advance(struct net_output *out, size_t sent);
/* From now on the list may go; and its offset is 0. False: no memory. */
MUST_USE bool net_output_own(struct net_output *out);
/* Moves up to `room` bytes into `to`; how many. */
size_t net_output_flatten(struct net_output *out, char *to, size_t room);
/* Frees what it owns and forgets the rest. */
void net_output_done(struct net_output *out);

#endif
