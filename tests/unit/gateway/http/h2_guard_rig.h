/* h2_guard_rig.h - a guard, frames, and what h2o would eat of them, for the tests of h2_guard. */
#ifndef TESTS_UNIT_GATEWAY_H2_GUARD_RIG_H
#define TESTS_UNIT_GATEWAY_H2_GUARD_RIG_H

#include "gateway/http/h2_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION };
enum { END_STREAM = 1, END_HEADERS = 4, ACK = 1 };
enum { BODY_MAX = 40000, INPUT_MAX = 1 << 20 };
/* Room for 14 uploads of three frames, and so for 100 of none; a worker has room for five more. */
enum { EACH = 39000, KEPT = EACH + GUARD_UPLOAD_COST + 2 * 9, FIT = 14, MORE = 5 };
enum { CONN_MAX = FIT * KEPT, WORKER_MAX = (FIT + MORE) * KEPT };

#define START (1000 * SEC)
#define PATIENCE (10 * SEC)

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct frame {
	uint8_t type, flags;
	uint32_t stream, len;
};

struct rig {
	struct h2_guard guard;
	struct guard_budget budget;
	char *input;
	size_t len;
	char *sent; /* a frame that comes in pieces */
	uint32_t next_stream;
};

static inline struct rig rig_new(void)
{
	struct rig rig = { .budget = { .body_bytes_max = BODY_MAX,
				       .conn_bytes_max = CONN_MAX,
				       .worker_bytes_max = WORKER_MAX,
				       .large_bytes_max = WORKER_MAX,
				       .patience = PATIENCE },
			   .input = malloc(INPUT_MAX),
			   .sent = malloc(INPUT_MAX),
			   .next_stream = 1 };
	assert_non_null(rig.input);
	assert_non_null(rig.sent);
	h2_guard_init(&rig.guard, &guard_one_caller, START);
	(void)memcpy(rig.input, preface, 24);
	rig.len = 24;
	return rig;
}

/* Of a proxy that is trusted. */
static inline struct rig rig_new_shared(void)
{
	struct rig rig = rig_new();
	h2_guard_init(&rig.guard, &guard_many_callers, START);
	return rig;
}

/* The budget is whole again when the connection goes. */
static inline void rig_free(struct rig *rig)
{
	h2_guard_fini(&rig->guard, &rig->budget);
	assert_int_equal(rig->budget.unfinished_bytes, 0);
	free(rig->input);
	free(rig->sent);
}

/* Returns its length. */
static inline size_t frame_write(struct frame f, char *into)
{
	const uint8_t head[9] = { (uint8_t)(f.len >> 16),
				  (uint8_t)(f.len >> 8),
				  (uint8_t)f.len,
				  f.type,
				  f.flags,
				  (uint8_t)(f.stream >> 24),
				  (uint8_t)(f.stream >> 16),
				  (uint8_t)(f.stream >> 8),
				  (uint8_t)f.stream };
	(void)memcpy(into, head, sizeof(head));
	(void)memset(into + sizeof(head), 'x', f.len);
	return sizeof(head) + f.len;
}

static inline void put(struct rig *rig, struct frame f)
{
	assert_true(rig->len + 9 + f.len <= INPUT_MAX);
	rig->len += frame_write(f, rig->input + rig->len);
}

/* As http_h2o_edge does it: h2o has eaten all whole frames. */
static inline void eat(struct rig *rig)
{
	size_t whole = rig->guard.next <= rig->len ? rig->guard.next : 0;
	if (rig->guard.split)
		whole = rig->guard.block - 9;
	h2_guard_ate(&rig->guard, whole);
	(void)memmove(rig->input, rig->input + whole, rig->len - whole);
	rig->len -= whole;
}

static inline enum guard_verdict scan(struct rig *rig, nsec_t now)
{
	enum guard_verdict verdict =
		h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, now);
	if (verdict == GUARD_PASS)
		eat(rig);
	return verdict;
}

/* What comes in pieces of that size is scanned after each. */
static inline enum guard_verdict feed(struct rig *rig, const char *bytes, size_t len, size_t piece)
{
	enum guard_verdict verdict = GUARD_PASS;
	for (size_t at = 0; at < len && verdict == GUARD_PASS; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		assert_true(rig->len + n <= INPUT_MAX);
		(void)memcpy(rig->input + rig->len, bytes + at, n);
		rig->len += n;
		verdict = h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, START);
	}
	return verdict;
}

static inline enum guard_verdict give(struct rig *rig, struct frame f, nsec_t now)
{
	put(rig, f);
	return scan(rig, now);
}

#endif
