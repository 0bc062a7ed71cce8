/* set.h - the codec once for every instruction set, and who takes which.
 *
 * All of codec/ but base/ and set.c is compiled several times: in plain C, and for the instruction
 * sets of the machine (isa/isa.h). Each such build shows nothing but its table of entry points; inside,
 * calls go straight. So the choice costs one indirect call for a whole body, never one for a string.
 * Plain C also serves whoever calls codec functions by their own names.
 *
 * Every work area (json_read.h) says which set is to be used with it: json_work_new takes the best one
 * of this machine, json_work_use another. All sets give equal answers to every input. */
#ifndef CODEC_SET_H
#define CODEC_SET_H

#include "codec/dialect/dialect.h"

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
	const struct dialect *(*dialect_get)(enum dialect_id id);
};

/* The sets that this build has and this machine can run, plainest first; NULL behind the last. */
const struct codec_set *codec_set_at(size_t index);

/* The last of these. */
const struct codec_set *codec_set_best(void);

/* By name; NULL when there is none of that name, or the machine cannot run it. */
const struct codec_set *codec_set_find(struct slice name);

/* What is done with `work` from now on is done by `set`. */
void json_work_use(struct json_work *work, const struct codec_set *set);
const struct codec_set *json_work_set(const struct json_work *work);

/* private: the functions without _here, of the set that the file is compiled for. */
MUST_USE enum err sampling_read_here(struct slice body, enum revision revision,
				     const struct sampling_limits *limits, struct json_work *work,
				     struct arena *into, struct jsonrpc *rpc,
				     struct sampling_request *request, struct fault *fault);
MUST_USE enum err jsonrpc_read_here(struct slice body, struct json_work *work, struct arena *into,
				    struct jsonrpc *out, struct fault *fault);
#endif
