/* rig.h - what a worker of the gateway does with a body between its sockets, for measuring.
 *
 * A rig owns everything that a worker has for the codec: work area, chunks, a model's profile. It
 * is not for servers: it aborts when memory runs out. One thread. */
#ifndef BENCH_CODEC_RIG_H
#define BENCH_CODEC_RIG_H

#include "codec/mcp/sampling.h"
#include "codec/set.h"

enum task {
	TASK_REQUEST_ANTHROPIC, /* a createMessage body: read, judged, written for a provider */
	TASK_REQUEST_OPENAI,
	TASK_ANSWER_ANTHROPIC, /* a provider's answer: read, written as the JSON-RPC response */
	TASK_ANSWER_OPENAI,
	TASK_STOPPED, /* Anthropic's answer, searched for stop sequences that the provider was not given */
	TASK_STREAM_ANTHROPIC, /* the same, off an event stream that comes in reads of RIG_READ_BYTES */
	TASK_STREAM_OPENAI,
	TASK_DECODE,       /* a createMessage body, only read */
	TASK_VALID,        /* any JSON text, only judged */
	TASK_API_MESSAGES, /* a request in a provider's own format, only read */
	TASK_API_CHAT,
	TASK_COUNT
};

enum { RIG_READ_BYTES = 1400 };

/* Static: "request.anthropic" and so on. */
const char *task_name(enum task task);

/* TASK_COUNT when there is none of that name. */
enum task task_find(struct slice name);

struct rig;

/* Works with that instruction set; NULL: the best one here. */
struct rig *rig_new(const struct codec_set *set);
void rig_free(struct rig *rig);

/* Gives back what the run before took and does `task` with `in`, which must live until the next run
 * and is not written to. What the codec said of it. */
enum err rig_run(struct rig *rig, enum task task, struct slice in);

/* The two halves of a request task, for other readers than ours: begin gives back what the run
 * before took and returns the arena for the request's lists; write is the translation. `id` is the
 * raw JSON-RPC id, `request` lives until the next run. */
struct arena *rig_begin(struct rig *rig);
enum err rig_write_request(struct rig *rig, enum task task, const struct sampling_request *request);
enum err rig_write_answer(struct rig *rig, const struct sampling_result *result);

/* The gather list of the last run; NULL after TASK_DECODE, TASK_VALID, TASK_API_* and failures. */
const struct gather *rig_output(const struct rig *rig);

/* Why the last run failed: offset, path and rule. */
const struct fault *rig_fault(const struct rig *rig);

/* After TASK_REQUEST_*: how many bytes the request has in spans over GATHER_COPY_MAX that go to the
 * provider, and how many of the output's are borrowed from `in` in pieces of over GATHER_COPY_MAX. */
size_t rig_long_bytes(const struct rig *rig);
size_t rig_borrowed_bytes(const struct rig *rig, struct slice in);

#endif
