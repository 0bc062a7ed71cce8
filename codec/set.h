/* set.h - the codec once for every instruction set, and the entry points that choose one.
 *
 * All of codec/ but base/ and set.c is compiled several times: in plain C, and for the instruction
 * sets of the machine (isa/isa.h). Each such build shows nothing but its table of entry points; inside,
 * calls go straight. So the choice costs one indirect call for a whole body, never one for a string.
 * Codec functions that are called by their own names are plain C.
 *
 * Every work area (json_read.h) has the set that is used with it, from json_work_new or json_work_use. All sets give
 * equal answers to every input. This is the top of codec/: its rooms do not know it. */
#ifndef CODEC_SET_H
#define CODEC_SET_H

#include "codec/api/api_request.h"
#include "codec/dialect/dialect.h"

struct stream;
struct stream_limits;

struct codec_set {
	const char *name; /* "portable", "avx2", "neon" */

	/* As the functions of the same name; the dialects are this set's own. */
	enum err (*sampling_read)(struct slice body, enum revision revision,
				  const struct sampling_limits *limits, struct json_work *work,
				  struct arena *into, struct jsonrpc *rpc,
				  struct sampling_request *request, struct fault *fault);
	bool (*json_valid)(struct slice text, const struct json_limits *limits,
			   struct json_work *work, struct fault *fault);
	enum err (*jsonrpc_read)(struct slice body, struct json_work *work, struct arena *into,
				 struct jsonrpc *out, struct fault *fault);
	enum err (*api_request_read)(enum api api, struct slice body, struct json_work *work,
				     struct arena *into, struct api_request *out,
				     struct fault *fault);
	const struct dialect *(*dialect_get)(enum dialect_id id);
};

/* The sets that this build has and this machine can run, plainest first; NULL behind the last. */
const struct codec_set *codec_set_at(size_t index);

/* The last of these. */
const struct codec_set *codec_set_best(void);

/* By name; NULL when there is none of that name, or the machine cannot run it. */
const struct codec_set *codec_set_find(struct slice name);

/* What is done with `work` from now on is done by `set`, static. */
void json_work_use(struct json_work *work, const struct codec_set *set);
/* The set of `work`; never NULL. */
const struct codec_set *json_work_set(const struct json_work *work);

/* ---- the entry points: each by the set of `work` ---- */

/* sampling_read_here (codec/mcp/sampling.h). */
MUST_USE enum err sampling_read(struct slice body, enum revision revision,
				const struct sampling_limits *limits, struct json_work *work,
				struct arena *into, struct jsonrpc *rpc,
				struct sampling_request *request, struct fault *fault);

/* jsonrpc_read_here (codec/mcp/jsonrpc.h). */
MUST_USE enum err jsonrpc_read(struct slice body, struct json_work *work, struct arena *into,
			       struct jsonrpc *out, struct fault *fault);

/* api_request_read_here (codec/api/api_request.h). */
MUST_USE enum err api_request_read(enum api api, struct slice body, struct json_work *work,
				   struct arena *into, struct api_request *out,
				   struct fault *fault);

/* encode and decode of `dialect` (codec/dialect/dialect.h), whichever set its row is of. What earlier answers brought
 * and does not fit is left out of the request, all of it, and an adjustment says so. */
MUST_USE enum err dialect_encode(const struct dialect *dialect, const struct encode_in *in,
				 struct json_work *work, struct arena *into, struct encode_out *out,
				 struct fault *fault);
MUST_USE enum err dialect_decode(const struct dialect *dialect,
				 const struct decode_context *context,
				 const struct provider_answer *answer, struct json_work *work,
				 struct arena *into, struct sampling_result *result,
				 struct provider_failure *failure);

/* stream_init (codec/dialect/stream.h) with that set's row of `dialect`. */
void stream_open(struct stream *s, const struct dialect *dialect,
		 const struct decode_context *context, const struct provider_answer *head,
		 const struct stream_limits *limits, struct json_work *work, struct arena *into);
#endif
