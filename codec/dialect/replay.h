/* replay.h - what a provider wants back of its own answers in a tool loop, and nobody else may see
 * (contract/providers.md 2.1): thinking and its signatures, encrypted reasoning, signatures of calls.
 *
 * The server that runs the loop knows and returns calls and results only. What belongs to a turn beside
 * them is kept as a record under the id of the turn's first call, and comes back into the turn, byte for
 * byte, when a history has it again: for all turns that have a record or for none, and only if provider,
 * model and calls are the same and everything in front of the turn is translated into the same bytes.
 *
 * A record is JSON, {"v":1,"dialect":...,"provider":...,"model":...,"calls":...,"prefix":...,
 * "content":...}: `calls` is a digest of their ids, names and arguments by meaning, `prefix` one of the
 * body in front of the turn (struct encode_marks), `content` what the dialect made of the answer. Without
 * `content` it says that the turn had nothing private. Records come back from a store that others may
 * have written to: what does not have this form counts as not there, and of the rest nothing but valid
 * JSON ever gets into a body.
 *
 * Pure, one thread; nothing here costs anything where no record and nothing private is involved. */
#ifndef CODEC_DIALECT_REPLAY_H
#define CODEC_DIALECT_REPLAY_H

#include "codec/base/sha256.h"
#include "codec/dialect/dialect.h"

enum {
	REPLAY_CONTENT_MAX = 1024 * 1024, /* bytes of what a stream keeps of private parts */
	REPLAY_PREFIX_HEX = 2 * SHA256_BYTES,
	REPLAY_NO_TURN = UINT32_MAX,
};

/* The next message from `message` on that has calls, and in *call the index of its first one in
 * request->blocks; REPLAY_NO_TURN when there is none. In this order encode_in.replay has its records. */
uint32_t replay_next_turn(const struct sampling_request *request, uint32_t message, uint32_t *call);

/* Whether an answer to that request may be kept: not when there was something in it that the next
 * request of the loop will not have again (a turn of ours, synthesised tools, native structured
 * output). */
bool replay_may_keep(const struct encode_out *sent);

/* The record of an answer with calls to what was sent to `provider` (its name in the settings), also where
 * result->replay is absent. Absent: no memory, or the calls cannot be told. */
MUST_USE struct slice replay_write(const struct dialect *dialect, struct slice provider,
				   const struct encode_out *sent,
				   const struct sampling_result *result, struct arena *into);

/* ---- private to codec/ ---- */

/* A record's parts; texts are plain, in the record or in the arena. */
struct replay_record {
	struct slice dialect, provider, model, calls;
	struct slice prefix;  /* REPLAY_PREFIX_HEX digits */
	struct slice content; /* JSON, or absent */
};

/* False: it is none, of another version, or there is no memory. */
MUST_USE bool replay_read(struct slice text, struct json_work *work, struct arena *into,
			  struct replay_record *out);

/* A call as a history or an answer has it; id and name raw, input JSON. */
struct replay_call {
	struct slice id, name, input;
};

/* A digest of calls in their order, begun with 0; false: no memory. */
MUST_USE bool replay_add_call(uint64_t *digest, const struct replay_call *call, struct arena *into);

enum { REPLAY_CALLS_HEX = 16 };
struct slice replay_calls_hex(uint64_t digest, char hex[REPLAY_CALLS_HEX]);

/* Adds the bytes [from, to) of what was written so far to the sum. */
void replay_add_range(struct sha256_sum *sum, const struct gather *body, size_t from, size_t to);

#endif
