/* load_wire.h - how one connection of bench/load speaks: HTTP/2 with prior knowledge, or HTTP/1.1.
 *
 * load.c owns sockets, schedule and results; a wire turns shots into bytes and bytes into statuses.
 * Everything is on one thread. */
#ifndef BENCH_LOAD_LOAD_WIRE_H
#define BENCH_LOAD_LOAD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/base/attr.h"

/* One request: when it was due, sent and answered, in microseconds since the start. */
struct load_shot {
	uint64_t due_us, sent_us, done_us;
	uint32_t key; /* which of the fields given with --keys */
	int status;   /* 0: not answered */
};

/* Bytes that wait for a socket, or for the rest of an answer. */
struct load_buf {
	char *base;
	size_t len, room;
};

void load_buf_add(struct load_buf *buf, const void *bytes, size_t len);
/* Drops the first `len` bytes. */
void load_buf_drop(struct load_buf *buf, size_t len);
void load_buf_fini(struct load_buf *buf);

/* What every request has: all strings end with a zero and live as long as the program. */
struct load_request {
	const char *authority, *path;
	char **fields; /* "name: value", names in lower case */
	size_t field_count;
	const char *
		keyed; /* name of the field that has a different value, one of the next, in each request */
	char **keys; /* or none */
	size_t key_count;
	const char *body;
	size_t body_len;
};

struct load_conn {
	int fd; /* -1: closed */
	bool connected;
	bool leaving;    /* takes no more requests: the server said so */
	bool want_write; /* as epoll knows it */
	unsigned in_flight;
	struct load_buf out;
	const struct load_request *request;
	struct load_h1 *h1; /* of the one wire that is used */
	struct load_h2 *h2;
	struct load *load;
};

/* A wire; each function is called on connections of its kind alone. False: the connection is over,
 * and what is in flight on it with it. */
struct load_wire {
	bool (*start)(struct load_conn *conn);
	/* How many more requests it takes now. */
	unsigned (*room)(const struct load_conn *conn);
	bool (*send)(struct load_conn *conn, struct load_shot *shot);
	bool (*received)(struct load_conn *conn, const char *bytes, size_t len);
	/* Fills conn->out. */
	bool (*flush)(struct load_conn *conn);
	/* Tells load_ended of everything in flight and frees its own. */
	void (*end)(struct load_conn *conn);
};

extern const struct load_wire load_wire_h1, load_wire_h2;

/* An answer has come whole, or never will (status 0). */
void load_ended(struct load_conn *conn, struct load_shot *shot, int status);
/* The server said that it did not touch this one: it is sent again, and is due as before. */
void load_untouched(struct load_conn *conn, struct load_shot *shot);

#endif
