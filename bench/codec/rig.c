#include "bench/codec/rig.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect.h"
#include "codec/dialect/stream.h"
#include "codec/dialects.h"

#include <stdlib.h>

enum {
	ARENA_CAP = 256 * 1024 * 1024,
	CHUNKS_KEPT = 1 << 16, /* all: what is measured is the steady state */
	ANSWER_BYTES_MAX = 16 * 1024 * 1024,
	WALL_S = 1800000000,
};

struct rig {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
	struct profile profiles[DIALECT_COUNT];
	/* of the last run: */
	struct jsonrpc rpc;
	struct sampling_request request;
	struct api_request api_request;
	struct sampling_result result;
	struct encode_out encoded;
	struct stream_slab streams;
	struct stream *stream; /* the only one of these */
	struct gather response;
	const struct gather *output;
	struct fault fault;
};

static const struct {
	const char *name;
	enum dialect_id dialect; /* DIALECT_COUNT: none takes part */
} tasks[TASK_COUNT] = {
	[TASK_REQUEST_ANTHROPIC] = { "request.anthropic", DIALECT_ANTHROPIC },
	[TASK_REQUEST_OPENAI] = { "request.openai", DIALECT_OPENAI },
	[TASK_ANSWER_ANTHROPIC] = { "answer.anthropic", DIALECT_ANTHROPIC },
	[TASK_ANSWER_OPENAI] = { "answer.openai", DIALECT_OPENAI },
	[TASK_STOPPED] = { "stopped.anthropic", DIALECT_ANTHROPIC },
	[TASK_STREAM_ANTHROPIC] = { "stream.anthropic", DIALECT_ANTHROPIC },
	[TASK_STREAM_OPENAI] = { "stream.openai", DIALECT_OPENAI },
	[TASK_DECODE] = { "decode", DIALECT_COUNT },
	[TASK_VALID] = { "valid", DIALECT_COUNT },
	[TASK_API_MESSAGES] = { "api.messages", DIALECT_COUNT },
	[TASK_API_CHAT] = { "api.chat", DIALECT_COUNT },
};

const char *task_name(enum task task)
{
	must(task < TASK_COUNT);
	return tasks[task].name;
}

enum task task_find(struct slice name)
{
	unsigned task = 0;

	while (task < TASK_COUNT && !slice_eq(name, slice_str(tasks[task].name)))
		task++;
	return (enum task)task;
}

struct rig *rig_new(const struct codec_set *set)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	must(rig != NULL);
	rig->work = json_work_new(set != NULL ? set : codec_set_best());
	must(rig->work != NULL && stream_slab_init(&rig->streams, 1));
	rig->stream = stream_take(&rig->streams);
	rig->pool.keep_max = CHUNKS_KEPT;
	arena_init(&rig->arena, &rig->pool, ARENA_CAP);
	for (unsigned i = 0; i < DIALECT_COUNT; i++) {
		profile_defaults(&rig->profiles[i], (enum dialect_id)i, SLICE("2023-06-01"));
		rig->profiles[i].image = true;
	}
	return rig;
}

void rig_free(struct rig *rig)
{
	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	stream_give(&rig->streams, rig->stream);
	stream_slab_fini(&rig->streams);
	free(rig);
}

struct arena *rig_begin(struct rig *rig)
{
	arena_give(&rig->arena);
	rig->output = NULL;
	rig->fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	return &rig->arena;
}

enum err rig_write_request(struct rig *rig, enum task task, const struct sampling_request *request)
{
	enum dialect_id dialect = tasks[task].dialect;
	const struct encode_in in = { .request = request,
				      .profile = &rig->profiles[dialect],
				      .model = SLICE("claude-sonnet-4-6"),
				      .max_tokens = (uint32_t)request->max_tokens };
	enum err err = dialect_encode(dialect_get(dialect), &in, rig->work, &rig->arena,
				      &rig->encoded, &rig->fault);

	if (err == ERR_OK)
		rig->output = &rig->encoded.body;
	return err;
}

enum err rig_write_answer(struct rig *rig, const struct sampling_result *result)
{
	static const struct result_meta meta = { .usd_nano = 117000,
						 .model_id = SLICE_INIT("claude-sonnet"),
						 .provider = SLICE_INIT("anthropic"),
						 .attempts = 1 };

	gather_init(&rig->response, &rig->arena);
	sampling_write_result(&rig->response, SLICE("1"), result, REVISION_2025_11_25, true, &meta);
	rig->output = &rig->response;
	return gather_done(&rig->response);
}

static enum err read_request(struct rig *rig, struct slice in)
{
	enum err err = sampling_read(in, REVISION_2025_11_25, &sampling_limits_default, rig->work,
				     &rig->arena, &rig->rpc, &rig->request, &rig->fault);

	return err == ERR_OK && rig->rpc.method != RPC_CREATE_MESSAGE ? ERR_UNKNOWN_METHOD : err;
}

static struct slice tool_names[] = { SLICE_INIT("tool_3_search_repository") };
static const struct decode_context context = { .revision = REVISION_2025_11_25,
					       .tools_present = true,
					       .requested_model = SLICE_INIT("asked"),
					       .tool_names = tool_names,
					       .tool_count = COUNT_OF(tool_names) };

/* A text of the same letter nearly matches all of them everywhere. */
#define NEARLY "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
static struct slice stops[] = { SLICE_INIT(NEARLY "a"), SLICE_INIT(NEARLY "b"),
				SLICE_INIT(NEARLY "c"), SLICE_INIT(NEARLY "d"),
				SLICE_INIT(NEARLY "f"), SLICE_INIT(NEARLY "g"),
				SLICE_INIT(NEARLY "h"), SLICE_INIT(NEARLY "i") };
static const struct decode_context stopped_context = { .revision = REVISION_2025_11_25,
						       .requested_model = SLICE_INIT("asked"),
						       .emulate_stop = stops,
						       .emulate_stop_count = COUNT_OF(stops) };

static enum err finish_answer(struct rig *rig, enum err err, const struct provider_failure *failure)
{
	if (err == ERR_OK)
		return rig_write_answer(rig, &rig->result);
	rig->fault.detail = failure->detail;
	return err;
}

static enum err run_answer(struct rig *rig, enum task task, struct slice in)
{
	const struct provider_answer answer = { .status = 200, .body = in, .wall_s = WALL_S };
	struct provider_failure failure;
	enum err err = dialect_decode(dialect_get(tasks[task].dialect),
				      task == TASK_STOPPED ? &stopped_context : &context, &answer,
				      rig->work, &rig->arena, &rig->result, &failure);

	return finish_answer(rig, err, &failure);
}

static enum err run_stream(struct rig *rig, enum task task, struct slice in)
{
	static const struct stream_limits limits = { .answer_bytes_max = ANSWER_BYTES_MAX };
	const struct provider_answer head = { .status = 200, .wall_s = WALL_S };
	enum stream_state state = STREAM_OPEN;
	struct provider_failure failure;

	stream_open(rig->stream, dialect_get(tasks[task].dialect), &context, &head, &limits,
		    rig->work, &rig->arena);
	while (in.len != 0 && state == STREAM_OPEN) {
		size_t len = in.len < RIG_READ_BYTES ? in.len : RIG_READ_BYTES;
		state = stream_feed(rig->stream, slice_of(in.at, len));
		in = slice_of(in.at + len, in.len - len);
	}
	enum err err = stream_end(rig->stream, STREAM_ENDED, &rig->result, &failure);
	return finish_answer(rig, err, &failure);
}

enum err rig_run(struct rig *rig, enum task task, struct slice in)
{
	enum err err;

	must(task < TASK_COUNT);
	(void)rig_begin(rig);
	switch (task) {
	case TASK_VALID:
		return json_work_set(rig->work)->json_valid(in, NULL, rig->work, &rig->fault)
			       ? ERR_OK
			       : rig->fault.err;
	case TASK_API_MESSAGES:
	case TASK_API_CHAT:
		return api_request_read(task == TASK_API_CHAT ? API_CHAT : API_MESSAGES, in,
					rig->work, &rig->arena, &rig->api_request, &rig->fault);
	case TASK_ANSWER_ANTHROPIC:
	case TASK_ANSWER_OPENAI:
	case TASK_STOPPED:
		return run_answer(rig, task, in);
	case TASK_STREAM_ANTHROPIC:
	case TASK_STREAM_OPENAI:
		return run_stream(rig, task, in);
	default:
		err = read_request(rig, in);
		return err == ERR_OK && task != TASK_DECODE
			       ? rig_write_request(rig, task, &rig->request)
			       : err;
	}
}

const struct gather *rig_output(const struct rig *rig)
{
	return rig->output;
}

const struct fault *rig_fault(const struct rig *rig)
{
	return &rig->fault;
}

/* ---- what was copied ---- */

static size_t long_bytes(struct slice s)
{
	return s.len > GATHER_COPY_MAX ? s.len : 0;
}

static size_t block_long_bytes(const struct block *block)
{
	switch ((enum block_type)block->type) {
	case BLOCK_TEXT:
		return long_bytes(block->text.text);
	case BLOCK_IMAGE:
	case BLOCK_AUDIO:
		return long_bytes(block->media.data);
	case BLOCK_TOOL_USE:
		return long_bytes(block->use.input);
	default: /* a result's content is among `inner`; links become one text */
		return 0;
	}
}

size_t rig_long_bytes(const struct rig *rig)
{
	const struct sampling_request *q = &rig->request;
	size_t bytes = long_bytes(q->system);

	for (uint32_t i = 0; i < q->block_count; i++)
		bytes += block_long_bytes(&q->blocks[i]);
	for (uint32_t i = 0; i < q->inner_count; i++)
		bytes += block_long_bytes(&q->inner[i]);
	for (uint32_t i = 0; i < q->tool_count; i++)
		bytes += long_bytes(q->tools[i].description) + long_bytes(q->tools[i].schema);
	return bytes;
}

size_t rig_borrowed_bytes(const struct rig *rig, struct slice in)
{
	size_t bytes = 0;

	must(rig->output != NULL);
	for (uint32_t i = 0; i < rig->output->count; i++) {
		struct iovec v = rig->output->v[i];
		uintptr_t offset = (uintptr_t)v.iov_base - (uintptr_t)in.at;
		if (offset < in.len && v.iov_len > GATHER_COPY_MAX)
			bytes += v.iov_len;
	}
	return bytes;
}
