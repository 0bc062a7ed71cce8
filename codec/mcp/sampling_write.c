/* sampling_write.c - the result as MCP servers can read it (contract/mcp.md 2.5, 3.2). */
#include "codec/mcp/sampling_exchange.h"

#include "codec/base/must.h"

/* What `content` becomes. */
enum shape {
	SHAPE_TEXT,  /* one text block, the texts joined */
	SHAPE_BLOCK, /* one block as an object */
	SHAPE_ARRAY,
};

static bool is_text(const struct result_block *block)
{
	return !block->is_tool_use && slice_absent(block->data);
}

static const struct result_block *first_call(const struct sampling_result *result)
{
	for (uint32_t i = 0; i < result->block_count; i++)
		if (result->blocks[i].is_tool_use)
			return &result->blocks[i];
	return NULL;
}

static const struct result_block *first_media(const struct sampling_result *result)
{
	for (uint32_t i = 0; i < result->block_count; i++)
		if (!result->blocks[i].is_tool_use && !slice_absent(result->blocks[i].data))
			return &result->blocks[i];
	return NULL;
}

/* An answer to a request without tools is read with a schema that knows no array and no call, so a
 * text is always one object. Before 2025-11-25 an array is the last resort; the draft has none, and
 * in it a call matters more than the words around it. *one is the block of SHAPE_BLOCK. */
static enum shape shape_of(const struct sampling_result *result, enum revision revision,
			   bool tools_present, const struct result_block **one)
{
	const struct result_block *call = tools_present ? first_call(result) : NULL;
	const struct result_block *media = first_media(result);

	*one = call != NULL ? call : media;
	if (!tools_present || revision == REVISION_SEP_1577_DRAFT)
		return *one != NULL ? SHAPE_BLOCK : SHAPE_TEXT;
	if (revision < REVISION_2025_11_25) {
		if (*one == NULL)
			return SHAPE_TEXT;
		return result->block_count == 1 ? SHAPE_BLOCK : SHAPE_ARRAY;
	}
	*one = result->blocks;
	return result->block_count == 1 && call == NULL ? SHAPE_BLOCK : SHAPE_ARRAY;
}

static void write_call(struct gather *g, const struct result_block *block)
{
	gather_lit(g, "{\"type\":\"tool_use\",\"id\":");
	gather_str(g, block->id);
	gather_lit(g, ",\"name\":");
	gather_str(g, block->name);
	gather_lit(g, ",\"input\":");
	gather_raw(g, block->input);
	gather_lit(g, "}");
}

static void write_audio(struct gather *g, const struct result_block *block)
{
	gather_lit(g, "{\"type\":\"audio\",\"data\":");
	gather_str(g, block->data);
	gather_lit(g, ",\"mimeType\":");
	gather_str(g, block->mime);
	gather_lit(g, "}");
}

static void write_block(struct gather *g, const struct result_block *block)
{
	if (block->is_tool_use) {
		write_call(g, block);
	} else if (!is_text(block)) {
		write_audio(g, block);
	} else {
		gather_lit(g, "{\"type\":\"text\",\"text\":\"");
		gather_raw(g, block->text);
		gather_lit(g, "\"}");
	}
}

/* Raw strings hold whole escapes, so that one after the other they are one string again. */
static void write_texts(struct gather *g, const struct sampling_result *result)
{
	gather_lit(g, "{\"type\":\"text\",\"text\":\"");
	for (uint32_t i = 0; i < result->block_count; i++)
		if (is_text(&result->blocks[i]))
			gather_raw(g, result->blocks[i].text);
	gather_lit(g, "\"}");
}

void sampling_write_content(struct gather *g, const struct sampling_result *result,
			    enum revision revision, bool tools_present,
			    const struct result_block **one)
{
	switch (shape_of(result, revision, tools_present, one)) {
	case SHAPE_TEXT:
		write_texts(g, result);
		return;
	case SHAPE_BLOCK:
		write_block(g, *one);
		return;
	case SHAPE_ARRAY:
		break;
	}
	for (uint32_t i = 0; i < result->block_count; i++) {
		gather_raw(g, i == 0 ? SLICE("[") : SLICE(","));
		write_block(g, &result->blocks[i]);
	}
	gather_lit(g, "]");
	*one = NULL;
}

/* ---- _meta and usage (DESIGN 4.3) ---- */

/* More than what the fixed words and numbers of _meta and usage take together. */
enum { META_MAX = 512 };

/* Nano-dollars as a decimal number without trailing zeros. */
static char *pen_usd(char *pen, uint64_t nano)
{
	enum { PLACES = 9 };
	uint64_t rest = nano % 1000000000;
	size_t len = PLACES;

	pen = pen_uint(pen, nano / 1000000000);
	if (rest == 0)
		return pen;
	*pen++ = '.';
	for (size_t i = PLACES; i-- > 0; rest /= 10)
		pen[i] = (char)('0' + rest % 10);
	while (pen[len - 1] == '0')
		len--;
	return pen + len;
}

static char *pen_usage(char *pen, const struct usage *usage, uint64_t usd_nano)
{
	pen = pen_lit(pen, "\"sluice/usage\":{\"input_tokens\":");
	pen = pen_uint(pen, usage->input);
	pen = pen_lit(pen, ",\"output_tokens\":");
	pen = pen_uint(pen, usage->output);
	pen = pen_lit(pen, ",\"cache_read_tokens\":");
	pen = pen_uint(pen, usage->cache_read);
	pen = pen_lit(pen, ",\"cache_write_tokens\":");
	pen = pen_uint(pen, usage->cache_write);
	pen = pen_lit(pen, ",\"reasoning_tokens\":");
	pen = pen_uint(pen, usage->reasoning);
	pen = pen_lit(pen, ",\"usd\":");
	pen = pen_usd(pen, usd_nano);
	return pen_lit(pen, "},");
}

static void write_adjustments(struct gather *g, adjust_set set)
{
	gather_lit(g, "\"sluice/adjustments\":[");
	for (adjust_set left = set; left != 0; left &= left - 1) {
		if (left != set)
			gather_lit(g, ",");
		gather_str(g, slice_str(adjustment_code((enum adjustment)__builtin_ctzll(left))));
	}
	gather_lit(g, "]");
}

static void write_meta(struct gather *g, const struct sampling_result *result,
		       enum revision revision, bool tools_present, const struct result_meta *meta)
{
	char *pen = gather_pen(g, META_MAX);

	if (pen == NULL)
		return;
	pen = pen_lit(pen, ",\"_meta\":{");
	if (result->usage.known)
		pen = pen_usage(pen, &result->usage, meta->usd_nano);
	pen = pen_lit(pen, "\"sluice/route\":{\"model\":");
	gather_pen_end(g, pen);
	gather_plain(g, meta->model_id);
	gather_lit(g, ",\"provider\":");
	gather_plain(g, meta->provider);
	gather_lit(g, ",\"attempts\":");
	gather_uint(g, meta->attempts);
	gather_lit(g, "},");
	write_adjustments(g, result->adjustments);
	if (meta->exchange != NULL) {
		gather_lit(g, ",\"sluice/exchange\":");
		exchange_write(g, meta->exchange, result, revision, tools_present);
	}
	gather_lit(g, "}");
}

static void write_plain_usage(struct gather *g, const struct usage *usage)
{
	char *pen = gather_pen(g, META_MAX);

	if (pen == NULL)
		return;
	pen = pen_lit(pen, ",\"usage\":{\"inputTokens\":");
	pen = pen_uint(pen, usage->input);
	pen = pen_lit(pen, ",\"outputTokens\":");
	pen = pen_uint(pen, usage->output);
	gather_pen_end(g, pen_lit(pen, "}"));
}

/* ---- */

void sampling_write_bare(struct gather *g, const struct sampling_result *result,
			 enum revision revision, bool tools_present, const struct result_meta *meta)
{
	const struct result_block *one;

	must(result->block_count != 0);
	gather_lit(g, "{\"role\":\"assistant\",\"content\":");
	sampling_write_content(g, result, revision, tools_present, &one);
	gather_lit(g, ",\"model\":");
	gather_str(g, result->model);
	gather_lit(g, ",\"stopReason\":");
	gather_str(g, slice_str(stop_reason_name(result->stop)));
	if (meta != NULL)
		write_meta(g, result, revision, tools_present, meta);
	if (meta != NULL && result->usage.known)
		write_plain_usage(g, &result->usage);
	gather_lit(g, "}");
}

void sampling_write_result(struct gather *g, struct slice id, const struct sampling_result *result,
			   enum revision revision, bool tools_present,
			   const struct result_meta *meta)
{
	gather_lit(g, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(g, id);
	gather_lit(g, ",\"result\":");
	sampling_write_bare(g, result, revision, tools_present, meta);
	gather_lit(g, "}");
}
