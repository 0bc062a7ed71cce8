/* fuzz_mcp_message.c - one pass over a message finds what a walk for each member finds; the sniff never contradicts it;
 * edits make of valid JSON valid JSON, with the change and no other.
 *
 * [0] is the length of reads for the sniff. */
#include "codec/base/must.h"
#include "codec/json/json_read.h"
#include "codec/mcp/mcp_edit.h"
#include "codec/mcp/mcp_sniff.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define META "io.modelcontextprotocol/"

static void must_be(struct slice found, struct slice object, const char *name)
{
	const struct slice expected = json_loose_member(object, name);

	must(found.at == expected.at && found.len == expected.len);
}

static void check_declaration(const struct mcp_declaration *client, struct slice capabilities)
{
	must(client->capabilities.at == capabilities.at);
	must_be(client->sampling, capabilities, "sampling");
	must_be(client->tools, client->sampling, "tools");
}

static void check_members(const struct mcp_message *message, struct slice object)
{
	const struct mcp_params *params = &message->in_params;
	const struct mcp_result *result = &message->in_result;
	const struct mcp_meta *meta = &params->meta;

	must_be(message->method, object, "method");
	must_be(message->params, object, "params");
	must_be(message->result, object, "result");
	must_be(message->error, object, "error");
	must_be(message->error_code, message->error, "code");
	must_be(params->name, message->params, "name");
	must_be(params->uri, message->params, "uri");
	must_be(params->protocol_version, message->params, "protocolVersion");
	must_be(params->request_id, message->params, "requestId");
	must_be(params->progress_token, message->params, "progressToken");
	must_be(params->progress, message->params, "progress");
	must_be(params->input_responses, message->params, "inputResponses");
	must_be(params->request_state, message->params, "requestState");
	must_be(params->meta_text, message->params, "_meta");
	check_declaration(&params->client, json_loose_member(message->params, "capabilities"));
	must_be(meta->progress_token, params->meta_text, "progressToken");
	must_be(meta->protocol_version, params->meta_text, META "protocolVersion");
	must_be(meta->log_level, params->meta_text, META "logLevel");
	check_declaration(&meta->client,
			  json_loose_member(params->meta_text, META "clientCapabilities"));
	must_be(result->protocol_version, message->result, "protocolVersion");
	must_be(result->result_type, message->result, "resultType");
	must_be(result->input_requests, message->result, "inputRequests");
	must_be(result->request_state, message->result, "requestState");
}

/* ---- the sniff ---- */

static enum mcp_sniffed sniff(struct slice text, size_t step, bool rounds)
{
	enum mcp_sniffed got = MCP_SNIFF_UNDECIDED;
	struct mcp_sniff sniff;

	mcp_sniff_init(&sniff, rounds);
	for (size_t at = 0; at < text.len; at += step)
		got = mcp_sniff_feed(&sniff, slice_of(text.at + at,
						      text.len - at < step ? text.len - at : step));
	return got;
}

static void check_sniff(struct slice text, size_t step, const struct mcp_message *message)
{
	for (int rounds = 0; rounds < 2; rounds++) {
		const enum mcp_sniffed got = sniff(text, text.len, rounds);
		must(sniff(text, step, rounds) == got && sniff(text, 1, rounds) == got);
		if (got != MCP_SNIFF_PASS)
			continue;
		must(!mcp_message_samples(message));
		must(!rounds || !mcp_message_asks(message) || message->twice);
	}
}

/* ---- edits ---- */

struct edited {
	struct arena_pool pool;
	struct arena arena;
	struct mcp_edits edits;
	struct slice text, object; /* afterwards */
	struct mcp_message message;
};

static void edit_begin(struct edited *e, struct slice text)
{
	*e = (struct edited){ .pool = { .keep_max = 0 } };
	arena_init(&e->arena, &e->pool, SIZE_MAX);
	mcp_edits_init(&e->edits, text, &e->arena);
}

static void edit_make(struct edited *e, bool valid, struct json_work *work)
{
	struct gather g;

	e->text = mcp_edits_flat(&e->edits, &e->arena);
	must(!slice_absent(e->text) && e->text.len == mcp_edits_len(&e->edits));
	gather_init(&g, &e->arena);
	must(mcp_edits_write(&e->edits, &g) == ERR_OK && gather_done(&g) == ERR_OK);
	must(slice_eq(gather_flat(&g, &e->arena), e->text));
	must(!valid || json_valid(e->text, NULL, work, NULL));
	if (json_loose_whole(e->text, &e->object))
		mcp_message_read(e->object, &e->message);
	else
		must(!valid);
}

static void edit_end(struct edited *e)
{
	arena_give(&e->arena);
	arena_pool_fini(&e->pool);
}

static void check_declare(struct slice text, const struct mcp_declaration *client, bool meta,
			  bool valid, struct json_work *work)
{
	struct edited e;

	edit_begin(&e, text);
	const bool done = mcp_edits_declare(&e.edits, client, SLICE("{\"tools\":{}}"));
	edit_make(&e, valid, work);
	const struct mcp_declaration *now =
		meta ? &e.message.in_params.meta.client : &e.message.in_params.client;
	must(!valid || !done || slice_eq(now->sampling, SLICE("{\"tools\":{}}")));
	must(done || slice_eq(e.text, text));
	edit_end(&e);
	edit_begin(&e, text);
	mcp_edits_undeclare(&e.edits, client);
	edit_make(&e, valid, work);
	must(!valid || slice_absent(now->sampling));
	edit_end(&e);
}

static void check_round(struct slice text, const struct mcp_message *message, bool valid,
			struct json_work *work)
{
	const struct slice answers[] = { SLICE("\"a\":{"), SLICE("}") };
	struct edited e;

	if (json_loose_kind(message->params) != JSON_LOOSE_OBJECT || slice_absent(message->id))
		return;
	edit_begin(&e, text);
	mcp_edits_round(&e.edits, message->params, answers, COUNT_OF(answers), SLICE("\"s\""));
	mcp_edits_put(&e.edits, message->id, SLICE("\"new\""));
	edit_make(&e, valid, work);
	if (valid) {
		must(slice_eq(e.message.id, SLICE("\"new\"")));
		must(slice_eq(e.message.in_params.input_responses, SLICE("{\"a\":{}}")));
		must(slice_eq(e.message.in_params.request_state, SLICE("\"s\"")));
		must(slice_eq(e.message.in_params.meta_text, message->in_params.meta_text));
	}
	edit_end(&e);
}

static void check_ask(struct slice text, const struct mcp_message *message, bool valid,
		      struct json_work *work)
{
	const struct mcp_result *result = &message->in_result;
	struct edited e;

	if (json_loose_kind(result->input_requests) != JSON_LOOSE_OBJECT)
		return;
	const struct mcp_entries entries = mcp_entries_count(result->input_requests);
	edit_begin(&e, text);
	must(mcp_edits_unsample(&e.edits, result->input_requests) == entries.others);
	mcp_edits_member(&e.edits, message->result, "requestState", result->request_state,
			 SLICE("\"s\""));
	edit_make(&e, valid, work);
	if (valid) {
		const struct mcp_entries now =
			mcp_entries_count(e.message.in_result.input_requests);
		must(now.samplings == 0 && now.others == entries.others);
		must(slice_eq(e.message.in_result.request_state, SLICE("\"s\"")));
	}
	edit_end(&e);
}

/* Every second member goes out. */
static void check_cut(struct slice text, struct slice container, bool valid, struct json_work *work)
{
	struct mcp_cut cut;
	struct edited e;
	uint32_t count = 0;

	edit_begin(&e, text);
	mcp_cut_begin(&cut, &e.edits, container);
	while (mcp_cut_next(&cut))
		if (count++ % 2 == text.len % 2)
			mcp_cut_drop(&cut);
	must(cut.left == (text.len % 2 == 0 ? count / 2 : (count + 1) / 2));
	edit_make(&e, valid, work);
	if (valid) {
		struct json_loose_walk walk;
		uint32_t left = 0;
		json_loose_open(&walk, e.object);
		while (json_loose_next(&walk))
			left++;
		must(left == cut.left);
	}
	edit_end(&e);
}

/* One scan of a text, against a scan for its object and one for the object's members. */
static void check_text(struct slice text)
{
	struct mcp_message once, twice;
	struct slice object = { NULL, 0 }, found = { NULL, 0 };

	const bool whole = json_loose_whole(text, &object) &&
			   json_loose_kind(object) == JSON_LOOSE_OBJECT && json_loose_sound(object);
	must(mcp_message_read_text(text, &once, &found) == whole);
	if (!whole) {
		must(once.kind == MCP_ODD && slice_absent(once.id));
		return;
	}
	must(found.at == object.at && found.len == object.len);
	mcp_message_read(object, &twice);
	must(once.kind == twice.kind && once.id.at == twice.id.at &&
	     once.in_params.meta_text.at == twice.in_params.meta_text.at &&
	     once.in_result.result_type.at == twice.in_result.result_type.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work;
	struct mcp_message message;
	struct slice object;

	if (size < 2)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	const struct slice text = slice_of((const char *)data + 1, size - 1);
	check_text(text);
	if (!json_loose_whole(text, &object)) {
		mcp_message_read(SLICE("{}"), &message);
		check_sniff(text, data[0] + 1u, &message);
		return 0;
	}
	/* an edit adds a level at most; a text at the bound of keys is left out */
	const struct json_limits limits = { .depth_max = 60, .keys_max = 4000 };
	const bool valid = json_valid(text, &limits, work, NULL);
	mcp_message_read(object, &message);
	check_sniff(text, data[0] + 1u, &message);
	if (json_loose_kind(object) == JSON_LOOSE_OBJECT && json_loose_sound(object))
		check_members(&message, object);
	check_declare(text, &message.in_params.client, false, valid, work);
	check_declare(text, &message.in_params.meta.client, true, valid, work);
	check_round(text, &message, valid, work);
	check_ask(text, &message, valid, work);
	check_cut(text, object, valid, work);
	return 0;
}
