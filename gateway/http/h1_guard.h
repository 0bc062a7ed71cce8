/* h1_guard.h - judges how an HTTP/1.1 request says where it ends, before libh2o 2.2.5 sees it.
 *
 * Whoever stands in front of us must see the same requests as we do. h2o takes what RFC 9112 has
 * refused: Transfer-Encoding beside Content-Length, either of them twice, folded lines, lines that end
 * in LF alone. One struct h1_guard per request head; pure: no socket, no clock. A chunked body is
 * judged by http_chunk.h. */
#ifndef GATEWAY_HTTP_H1_GUARD_H
#define GATEWAY_HTTP_H1_GUARD_H

#include "codec/base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h1_fault {
	H1_FINE,
	H1_LINE_END,
	H1_FOLDED_LINE,
	H1_LENGTH,
	H1_LENGTH_TWICE,
	H1_ENCODING,
	H1_ENCODING_TWICE,
	H1_LENGTH_AND_ENCODING,
	H1_ENCODING_OLD,
	H1_HOST,
	H1_METHOD,
	H1_FOREIGN, /* a line of three words, of a protocol that is not HTTP */
	H1_CHUNKS,  /* of a body: http_chunk.h, not this scan */
	H1_HEAD_TOO_LARGE,
	H1_BODY_TOO_LARGE,
	H1_NO_ROOM,  /* as is this, of a body that has not come to its end: guard_room.h */
	H1_TOO_SLOW, /* and this, of a head too */
	H1_FAULTS,
	H1_REFUSED = H1_FAULTS /* by the handler, whose answer it gets */
};

/* All zero: nothing seen. */
struct h1_guard {
	size_t line;  /* offset of the line being read */
	size_t seen;  /* no LF in front of it, from `line` on */
	size_t whole; /* length of the head, once its last line was there; 0: not yet */
	bool begun;   /* the request line was there */
	bool old;     /* HTTP/1.0 */
	uint8_t hosts, lengths, encodings; /* 2: or more */
	bool body_too_large;
	bool expects; /* 100 Continue, before its body comes */
};

/* Judges what has come since the last call; `input` begins at the head (an empty line may stand before
 * it) and is as long as at the last call at least. `body_max` bounds Content-Length. H1_FINE: nothing is
 * wrong so far; look at `whole`, after which there is nothing left to do. Other faults are final. What
 * is no HTTP at all passes: h2o refuses that. Blanks behind a length or an encoding, which are legal and which h2o
 * would not take, are moved in front of it. HTTP/1.0 expects nothing (RFC 9110 10.1.1): an Expect there gets a name
 * that nobody knows. */
MUST_USE enum h1_fault h1_guard_scan(struct h1_guard *guard, char *input, size_t len,
				     size_t body_max);

enum { H1_ANSWER_ROOM = 512 };

/* The answer to a faulty request, for either protocol: a JSON-RPC error, as application/json. */
struct h1_answer {
	int status;
	bool retry;                /* with Retry-After: 1 */
	char text[H1_ANSWER_ROOM]; /* over HTTP/1.1: status line, headers, body; ends in NUL */
	size_t len;                /* of it */
	size_t body_at;            /* where its body begins, which goes to its end */
};

/* `fault` is one; `into` is written whole. */
void h1_guard_answer(enum h1_fault fault, struct h1_answer *into);

#endif
