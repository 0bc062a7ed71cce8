/* sampling_read agrees with jsonrpc_read about the envelope; every slice of what it accepts is JSON;
 * the request written out again in the final spelling is accepted and means the same. */
#include "codec/base/must.h"
#include "codec/mcp/sampling.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sampling_limits limits = { .messages_max = 64,
					       .blocks_max = 256,
					       .tools_max = 16,
					       .stop_max = 8,
					       .stop_bytes_max = 64,
					       .json = { 64, 256 } };

/* ---- the request as a body again ---- */

static void write_member(struct gather *g, struct slice name, struct slice raw)
{
	gather_raw(g, name);
	gather_str(g, raw);
}

static void write_block(struct gather *g, const struct sampling_request *q, const struct block *b);

static void write_result(struct gather *g, const struct sampling_request *q, const struct block *b)
{
	write_member(g, SLICE("{\"type\":\"tool_result\",\"toolUseId\":"), b->result.id);
	if (b->is_error)
		gather_lit(g, ",\"isError\":true");
	if (!slice_absent(b->result.structured)) {
		gather_lit(g, ",\"structuredContent\":");
		gather_raw(g, b->result.structured);
	}
	gather_lit(g, ",\"content\":[");
	must(b->result.first + b->result.count <= q->inner_count);
	for (uint32_t i = 0; i < b->result.count; i++) {
		const struct block *inner = &q->inner[b->result.first + i];
		must(inner->type != BLOCK_TOOL_USE && inner->type != BLOCK_TOOL_RESULT);
		if (i != 0)
			gather_lit(g, ",");
		write_block(g, q, inner);
	}
	gather_lit(g, "]}");
}

static void write_resource(struct gather *g, const struct block *b)
{
	write_member(g, SLICE("{\"type\":\"resource\",\"resource\":{\"uri\":"), b->resource.uri);
	if (!slice_absent(b->resource.mime))
		write_member(g, SLICE(",\"mimeType\":"), b->resource.mime);
	must(slice_absent(b->resource.text) != slice_absent(b->resource.blob));
	if (slice_absent(b->resource.text))
		write_member(g, SLICE(",\"blob\":"), b->resource.blob);
	else
		write_member(g, SLICE(",\"text\":"), b->resource.text);
	gather_lit(g, "}}");
}

static void write_block(struct gather *g, const struct sampling_request *q, const struct block *b)
{
	switch (b->type) {
	case BLOCK_TEXT:
		write_member(g, SLICE("{\"type\":\"text\",\"text\":"), b->text.text);
		break;
	case BLOCK_IMAGE:
	case BLOCK_AUDIO:
		gather_raw(g, b->type == BLOCK_IMAGE ? SLICE("{\"type\":\"image\"")
						     : SLICE("{\"type\":\"audio\""));
		write_member(g, SLICE(",\"data\":"), b->media.data);
		write_member(g, SLICE(",\"mimeType\":"), b->media.mime);
		break;
	case BLOCK_TOOL_USE:
		write_member(g, SLICE("{\"type\":\"tool_use\",\"id\":"), b->use.id);
		write_member(g, SLICE(",\"name\":"), b->use.name);
		gather_lit(g, ",\"input\":");
		gather_raw(g, b->use.input);
		break;
	case BLOCK_RESOURCE_LINK:
		write_member(g, SLICE("{\"type\":\"resource_link\",\"uri\":"), b->link.uri);
		write_member(g, SLICE(",\"name\":"), b->link.name);
		if (!slice_absent(b->link.mime))
			write_member(g, SLICE(",\"mimeType\":"), b->link.mime);
		break;
	case BLOCK_RESOURCE:
		write_resource(g, b);
		return;
	default:
		write_result(g, q, b);
		return;
	}
	gather_lit(g, "}");
}

static void write_messages(struct gather *g, const struct sampling_request *q)
{
	for (uint32_t i = 0; i < q->message_count; i++) {
		const struct message *m = &q->messages[i];
		must(m->first + m->count <= q->block_count);
		gather_raw(g, i == 0 ? SLICE("") : SLICE(","));
		gather_raw(g, m->assistant ? SLICE("{\"role\":\"assistant\",\"content\":[")
					   : SLICE("{\"role\":\"user\",\"content\":["));
		for (uint32_t b = 0; b < m->count; b++) {
			gather_raw(g, b == 0 ? SLICE("") : SLICE(","));
			write_block(g, q, &q->blocks[m->first + b]);
		}
		gather_lit(g, "]}");
	}
}

static void write_tools(struct gather *g, const struct sampling_request *q)
{
	gather_lit(g, ",\"tools\":[");
	for (uint32_t i = 0; i < q->tool_count; i++) {
		gather_raw(g, i == 0 ? SLICE("") : SLICE(","));
		write_member(g, SLICE("{\"name\":"), q->tools[i].name);
		if (!slice_absent(q->tools[i].description))
			write_member(g, SLICE(",\"description\":"), q->tools[i].description);
		gather_lit(g, ",\"inputSchema\":");
		gather_raw(g, q->tools[i].schema);
		gather_lit(g, "}");
	}
	gather_lit(g, "]");
}

static struct slice write_request(const struct sampling_request *q, struct slice id,
				  struct arena *arena)
{
	static const struct slice modes[] = { SLICE_INIT(""),
					      SLICE_INIT(",\"toolChoice\":{\"mode\":\"auto\"}"),
					      SLICE_INIT(",\"toolChoice\":{\"mode\":\"required\"}"),
					      SLICE_INIT(",\"toolChoice\":{\"mode\":\"none\"}") };
	struct gather g;

	gather_init(&g, arena);
	gather_lit(&g, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(&g, id);
	gather_lit(&g, ",\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":");
	gather_int(&g, q->max_tokens);
	gather_lit(&g, ",\"messages\":[");
	write_messages(&g, q);
	gather_lit(&g, "]");
	if (q->tools_present)
		write_tools(&g, q);
	gather_raw(&g, modes[q->tool_mode]);
	if (!slice_absent(q->system))
		write_member(&g, SLICE(",\"systemPrompt\":"), q->system);
	if (!slice_absent(q->temperature)) {
		gather_lit(&g, ",\"temperature\":");
		gather_raw(&g, q->temperature);
	}
	if (!slice_absent(q->user_id)) {
		write_member(&g, SLICE(",\"metadata\":{\"user_id\":"), q->user_id);
		gather_lit(&g, "}");
	}
	for (uint32_t i = 0; i < q->stop_count; i++)
		write_member(&g, i == 0 ? SLICE(",\"stopSequences\":[") : SLICE(","), q->stop[i]);
	gather_raw(&g, q->stop_count == 0 ? SLICE("}}") : SLICE("]}}"));
	return gather_flat(&g, arena);
}

static void must_mean_the_same(const struct sampling_request *a, const struct sampling_request *b)
{
	must(a->max_tokens == b->max_tokens && a->tool_mode == b->tool_mode);
	must(a->message_count == b->message_count && a->block_count == b->block_count);
	must(a->inner_count == b->inner_count && a->tool_count == b->tool_count);
	must(a->images == b->images && a->audios == b->audios && a->tool_rounds == b->tool_rounds);
	must(a->stop_count == b->stop_count && slice_eq(a->system, b->system));
	for (uint32_t i = 0; i < a->message_count; i++)
		must(a->messages[i].assistant == b->messages[i].assistant &&
		     a->messages[i].first == b->messages[i].first &&
		     a->messages[i].count == b->messages[i].count);
	for (uint32_t i = 0; i < a->block_count; i++)
		must(a->blocks[i].type == b->blocks[i].type &&
		     a->blocks[i].is_error == b->blocks[i].is_error);
}

/* ---- */

static void must_be_a_good_fault(const struct fault *fault, enum err err, size_t size)
{
	must(fault->err == err);
	must(fault->offset == FAULT_NO_OFFSET || fault->offset <= size);
	must(fault->path.len == 0 || fault->path.at[0] == '$');
}

static void run(struct slice text, enum revision revision, struct json_work *work,
		struct arena *arena)
{
	struct jsonrpc rpc, envelope;
	struct sampling_request first, second;
	struct fault fault, envelope_fault;
	enum err err, envelope_err;

	err = sampling_read(text, revision, &limits, work, arena, &rpc, &first, &fault);
	envelope_err = jsonrpc_read(text, work, arena, &envelope, &envelope_fault);
	if (err != ERR_OK)
		must_be_a_good_fault(&fault, err, text.len);
	if (envelope_err != ERR_OK)
		must(err == envelope_err || err == ERR_TOO_MANY_KEYS); /* our limit is the lower */
	else if (err != ERR_TOO_MANY_KEYS)
		must(rpc.method == envelope.method && slice_eq(rpc.id, envelope.id));
	if (err != ERR_OK || rpc.method != RPC_CREATE_MESSAGE)
		return;
	struct slice body = write_request(&first, rpc.id, arena);
	must(json_valid(body, NULL, work, NULL));
	err = sampling_read(body, REVISION_2025_11_25, &limits, work, arena, &rpc, &second, &fault);
	must(err == ERR_OK);
	must_mean_the_same(&first, &second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work; /* the fuzzer's own state: made once */
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct jsonrpc rpc;
	struct sampling_request request;
	struct fault fault;
	struct slice text = slice_of((const char *)data, size);
	enum revision revision = (enum revision)(size % REVISION_COUNT);

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	arena_init(&arena, &pool, 256 * size + (1 << 20));
	run(text, revision, work, &arena);
	arena_give(&arena);

	arena_init(&arena, &pool, size); /* too little for some of them */
	enum err err = sampling_read(text, revision, &limits, work, &arena, &rpc, &request, &fault);
	if (err != ERR_OK)
		must_be_a_good_fault(&fault, err, size);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
