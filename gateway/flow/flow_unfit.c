/* flow_unfit.c - there is no model for a request: why each candidate was refused, and what it is that none of them
 * takes. */
#include "gateway/flow/flow_steps.h"

#include "codec/json/json_path.h"

#include <stdio.h>

enum { TEXT_MAX = 256, PATH_MAX_LEN = 64 };

/* ---- where ---- */

/* The offset of a text in the caller's body; FAULT_NO_OFFSET: it is a copy. */
static uint32_t offset_of(const struct flow *flow, struct slice text)
{
	const struct slice body = flow->ask->body;
	const uintptr_t offset = (uintptr_t)text.at - (uintptr_t)body.at;

	return offset < body.len ? (uint32_t)offset : FAULT_NO_OFFSET;
}

/* The place in the history as it was read, which is another one than the caller's where messages were merged:
 * absent then. */
static struct slice counted_path(struct flow *flow, const struct block *block, uint32_t message)
{
	const struct sampling_request *request = flow->ask->request;
	const struct message *m = &request->messages[message];
	const struct slice at = flow->ask->at;
	char *path = arena_take(flow->arena, PATH_MAX_LEN);
	int len;

	if (path == NULL || (request->adjustments & ADJUST_BIT(ADJUST_RESULTS_MERGED)) != 0)
		return slice_of(NULL, 0);
	if (m->count == 1)
		len = snprintf(path, PATH_MAX_LEN, "%.*s.messages[%u].content", (int)at.len, at.at,
			       message);
	else
		len = snprintf(path, PATH_MAX_LEN, "%.*s.messages[%u].content[%u]", (int)at.len,
			       at.at, message, (uint32_t)(block - request->blocks) - m->first);
	return slice_of(path, (size_t)len);
}

/* Where a block with media stands, "$.params.messages[2].content[1]"; absent: not known. */
static struct slice path_of(struct flow *flow, const struct block *block, uint32_t message)
{
	uint32_t offset = offset_of(flow, block->media.data);

	if (offset == FAULT_NO_OFFSET)
		offset = offset_of(flow, block->media.mime);
	if (offset == FAULT_NO_OFFSET)
		return counted_path(flow, block, message);
	struct slice path = json_path(flow->ask->body, offset, flow->arena);
	while (path.len != 0 && path.at[path.len - 1] != '.') /* without the block's member */
		path.len--;
	if (path.len <= flow->ask->at.len + 1 || !slice_starts(path, flow->ask->at))
		return slice_of(NULL, 0);
	return slice_of(path.at, path.len - 1);
}

/* ---- what ---- */

/* The capability that the candidates lack. */
struct lack {
	bool image, audio;
	uint32_t tools_most; /* the most tools that one of them takes */
};

static struct lack lack_of(const struct catalog *catalog, const struct route_query *query,
			   const struct route_candidate *trace)
{
	struct lack lack = { .tools_most = 0 };

	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct profile *profile = &catalog->models[i].profile;
		if (trace[i].reason == ROUTE_NOT_PERMITTED || trace[i].reason == ROUTE_DISABLED)
			continue;
		lack.image |= query->image && !profile->image;
		lack.audio |= query->audio && !profile->audio;
		if (profile->max_tools > lack.tools_most)
			lack.tools_most = profile->max_tools;
	}
	return lack;
}

/* Its message in the fault, and its members of data. */
struct words {
	char *text; /* of TEXT_MAX bytes */
	size_t len;
	struct gather *data;
	struct fault *fault;
};

static void name_block(struct flow *flow, struct words *words, enum block_type type,
		       const char *kind)
{
	const struct slice none = { NULL, 0 };
	const size_t at = flow->ask->at.len + 1; /* and the dot */
	uint32_t message;
	const struct block *block = flow_shown(flow->ask->request, type, &message);
	const struct slice path = block == NULL ? none : path_of(flow, block, message);
	const bool first = words->fault->detail == NULL;
	const char *joint = first ? ": " : ", ";

	if (slice_absent(path))
		words->len += (size_t)snprintf(words->text + words->len, TEXT_MAX - words->len,
					       "%s%s", joint, kind);
	else
		words->len += (size_t)snprintf(words->text + words->len, TEXT_MAX - words->len,
					       "%s%s in %.*s", joint, kind, (int)(path.len - at),
					       path.at + at);
	if (first) {
		words->fault->path = path;
		words->fault->detail = words->text;
		gather_lit(words->data, "\"kind\":");
		gather_plain(words->data, slice_str(kind));
		gather_lit(words->data, ",");
	}
}

static void name_content(struct flow *flow, const struct lack *lack, struct words *words)
{
	words->len = (size_t)snprintf(words->text, TEXT_MAX, "%s",
				      err_info(ERR_CONTENT_UNSUPPORTED)->text);
	if (lack->image)
		name_block(flow, words, BLOCK_IMAGE, "image");
	if (lack->audio)
		name_block(flow, words, BLOCK_AUDIO, "audio");
}

/* Absent: no memory. */
static struct slice tools_path(struct flow *flow)
{
	struct gather path;

	gather_init(&path, flow->arena);
	gather_raw(&path, flow->ask->at);
	gather_lit(&path, ".tools");
	return gather_done(&path) == ERR_OK ? gather_flat(&path, flow->arena) : slice_of(NULL, 0);
}

static void name_tools(struct flow *flow, const struct lack *lack, struct words *words)
{
	(void)snprintf(words->text, TEXT_MAX,
		       "The request has %u tools, and the permitted models take at most %u",
		       flow->ask->request->tool_count, lack->tools_most);
	words->fault->path = tools_path(flow);
	words->fault->detail = words->text;
	gather_lit(words->data, "\"kind\":\"tools\",");
}

/* ---- the refusal ---- */

static void put_candidates(struct gather *g, const struct catalog *catalog,
			   const struct route_candidate *trace)
{
	bool first = true;

	gather_lit(g, "\"candidates\":[");
	for (uint32_t i = 0; i < catalog->count; i++) {
		if (trace[i].reason == ROUTE_NOT_PERMITTED)
			continue;
		gather_raw(g, first ? SLICE("{\"model\":") : SLICE(",{\"model\":"));
		gather_plain(g, catalog->models[i].id);
		gather_lit(g, ",\"reason\":\"");
		gather_raw(g, slice_str(route_reason_name(trace[i].reason)));
		gather_lit(g, "\"}");
		first = false;
	}
	gather_lit(g, "]");
}

enum flow_move flow_refuse_route(struct flow *flow, const struct flow_env *env, enum err err,
				 nsec_t wait)
{
	struct route_query query = flow_route_query(flow, flow->caller.plan);
	const struct catalog *catalog = &env->config->catalog;
	struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };
	struct error_data data = error_data_none;
	struct route_candidate *trace = arena_take(flow->arena, catalog->count * sizeof(*trace));
	struct gather list;
	struct bitset named;
	struct words words = { .text = arena_take(flow->arena, TEXT_MAX),
			       .data = &list,
			       .fault = &fault };

	if (trace == NULL || words.text == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	if (flow_raw_models(flow, env->config, &named))
		query.permitted = &named;
	query.down =
		health_down(env->health, health_tenant(flow->ask->caller->limit_key), env->now);
	flow->made->route = route_pick(catalog, &query, trace); /* for the log line, too */
	(void)memcpy(flow->walk.config_digest, env->config->digest,
		     sizeof(flow->walk.config_digest));
	gather_init(&list, flow->arena);
	const struct lack lack = lack_of(catalog, &query, trace);
	if (err == ERR_CONTENT_UNSUPPORTED)
		name_content(flow, &lack, &words);
	else if (err == ERR_TOOLS_TOO_MANY)
		name_tools(flow, &lack, &words);
	put_candidates(&list, catalog, trace);
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, flow->arena);
	if (err ==
	    ERR_PROVIDER_NO_ATTEMPT) /* as -32011 says after attempts (contract/providers.md 7) */
		data.retryable = 1;
	if (wait != NSEC_NEVER)
		data.retry_after_ms = (int64_t)((wait + MSEC - 1) / MSEC);
	return flow_refuse(flow, &fault, &data);
}
