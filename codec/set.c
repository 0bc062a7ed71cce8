#include "codec/set.h"

#include "codec/base/must.h"
#include "codec/dialect/stream.h"
#include "codec/json/json_keys.h"

extern const struct codec_set codec_set_portable, codec_set_avx2, codec_set_neon;

static bool always(void)
{
	return true;
}

#ifdef CODEC_HAS_AVX2
static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
#endif

/* Plainest first; CMakeLists.txt says which ones were built. */
static const struct set_row {
	const struct codec_set *set;
	bool (*runs)(void);
} rows[] = {
	{ &codec_set_portable, always },
#ifdef CODEC_HAS_NEON
	{ &codec_set_neon, always }, /* aarch64 is never without */
#endif
#ifdef CODEC_HAS_AVX2
	{ &codec_set_avx2, has_avx2 },
#endif
};

const struct codec_set *codec_set_at(size_t index)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].runs() && index-- == 0)
			return rows[i].set;
	return NULL;
}

const struct codec_set *codec_set_best(void)
{
	const struct codec_set *best = NULL, *set;

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++)
		best = set;
	return best;
}

const struct codec_set *codec_set_find(struct slice name)
{
	const struct codec_set *set;

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++)
		if (slice_eq(slice_str(set->name), name))
			return set;
	return NULL;
}

void json_work_use(struct json_work *work, const struct codec_set *set)
{
	must(set != NULL);
	work->set = set;
}

const struct codec_set *json_work_set(const struct json_work *work)
{
	return work->set;
}

/* ---- the entry points ---- */

enum err sampling_read(struct slice body, enum revision revision,
		       const struct sampling_limits *limits, struct json_work *work,
		       struct arena *into, struct jsonrpc *rpc, struct sampling_request *request,
		       struct fault *fault)
{
	return work->set->sampling_read(body, revision, limits, work, into, rpc, request, fault);
}

/* What earlier answers brought does not fit: all turns or none (contract/providers.md 2.1). */
static SCAN_RARE enum err encode_without(const struct dialect *row, const struct encode_in *in,
					 struct json_work *work, struct arena *into,
					 struct encode_out *out, struct fault *fault)
{
	struct encode_in without = *in;

	without.replay = NULL;
	without.replay_unfit = true;
	return row->encode(&without, work, into, out, fault);
}

enum err dialect_encode(const struct dialect *dialect, const struct encode_in *in,
			struct json_work *work, struct arena *into, struct encode_out *out,
			struct fault *fault)
{
	const struct dialect *row = work->set->dialect_get(dialect->id);
	enum err err = row->encode(in, work, into, out, fault);

	if (err != ERR_OK || !out->replay_unfit)
		return err;
	return encode_without(row, in, work, into, out, fault);
}

enum err dialect_decode(const struct dialect *dialect, const struct decode_context *context,
			const struct provider_answer *answer, struct json_work *work,
			struct arena *into, struct sampling_result *result,
			struct provider_failure *failure)
{
	return work->set->dialect_get(dialect->id)
		->decode(context, answer, work, into, result, failure);
}

enum err jsonrpc_read(struct slice body, struct json_work *work, struct arena *into,
		      struct jsonrpc *out, struct fault *fault)
{
	return work->set->jsonrpc_read(body, work, into, out, fault);
}

enum err api_request_read(enum api api, struct slice body, struct json_work *work,
			  struct arena *into, struct api_request *out, struct fault *fault)
{
	return work->set->api_request_read(api, body, work, into, out, fault);
}

void stream_open(struct stream *s, const struct dialect *dialect,
		 const struct decode_context *context, const struct provider_answer *head,
		 const struct stream_limits *limits, struct json_work *work, struct arena *into)
{
	stream_init(s, work->set->dialect_get(dialect->id), context, head, limits, work, into);
}
