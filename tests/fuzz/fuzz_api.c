/* fuzz_api.c - requests, answers and streams of the direct APIs: all instruction sets read the same; what was edited is
 * JSON again, and says what it was edited to; a stream gives the same bytes however it is cut.
 *
 * [0] is the API and what the rest is, [1] what is changed, or the length of reads. */
#include "codec/api/api_answer.h"
#include "codec/api/api_edit.h"
#include "codec/api/api_redact.h"
#include "codec/api/api_stream.h"
#include "codec/api/api_view.h"
#include "codec/base/must.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_work *work;
static struct arena_pool pool = { .keep_max = 64 };

enum { MEMORY = 1 << 26, TOKENS_MAX = 100 };

/* ---- requests ---- */

static enum err read_by(const struct codec_set *set, enum api api, struct slice body,
			struct arena *into, struct api_request *out, struct fault *fault)
{
	json_work_use(work, set);
	return api_request_read(api, body, work, into, out, fault);
}

static void must_agree(const struct api_request *a, const struct api_request *b)
{
	for (size_t i = 0; i < API_FIELDS; i++)
		must(a->at[i].kind == b->at[i].kind && a->at[i].text.at == b->at[i].text.at &&
		     a->at[i].text.len == b->at[i].text.len && a->at[i].count == b->at[i].count);
	must(a->tool_count == b->tool_count && a->server_tools == b->server_tools);
	must(a->urls == b->urls && a->images == b->images && a->blocks == b->blocks);
	must(a->messages == b->messages && a->sealed == b->sealed);
	must(a->documents_by_url == b->documents_by_url && a->tool_rounds == b->tool_rounds);
}

/* ERR_OK: *out is what all sets have read. */
static enum err read_by_all(enum api api, struct slice body, struct arena *into,
			    struct api_request *out)
{
	struct fault fault, other_fault;
	struct api_request other;
	const struct codec_set *set;
	const enum err err = read_by(codec_set_at(0), api, body, into, out, &fault);

	for (size_t i = 1; (set = codec_set_at(i)) != NULL; i++) {
		must(read_by(set, api, body, into, &other, &other_fault) == err);
		if (err == ERR_OK)
			must_agree(out, &other);
		else
			must(slice_eq(fault.path, other_fault.path));
	}
	return err;
}

/* Every member that is read is in the body, and means what it was taken for. */
static void check_places(const struct api_request *q)
{
	for (size_t i = 0; i < API_FIELDS; i++)
		must(q->at[i].kind == JSON_BAD ||
		     (q->at[i].text.at >= q->body.at &&
		      q->at[i].text.at + q->at[i].text.len <= q->body.at + q->body.len &&
		      json_valid(q->at[i].text, NULL, work, NULL)));
	must(json_loose_member(q->object, "model").at == q->at[API_MODEL].text.at);
	must(json_loose_member(q->object, "stream").at == q->at[API_STREAM].text.at);
	must(q->n >= 1);
}

static bool forbids_calls(const struct api_request *q, struct arena *into)
{
	struct sampling_request view;

	must(api_view_make(q, TOKENS_MAX, into, &view) == ERR_OK);
	return view.tool_mode == TOOL_MODE_NONE;
}

/* Every call is the assistant's, and none of the blocks that policy counts. */
static void check_calls(const struct api_request *q, struct arena *into)
{
	struct sampling_request view;
	uint32_t turns = 0, end;

	must(api_view_make(q, TOKENS_MAX, into, &view) == ERR_OK);
	end = view.block_count;
	must(api_view_calls(q, into, &view) == ERR_OK);
	for (uint32_t i = 1; i < view.message_count; i++) {
		const struct message *turn = &view.messages[i];
		if (turn->count == 0)
			continue;
		must(turn->assistant && turn->first == end);
		for (; end < turn->first + turn->count; end++)
			must(view.blocks[end].type == BLOCK_TOOL_USE);
		turns++;
	}
	must(turns == view.call_turns);
}

static void check_edit(const struct api_request *q, uint8_t choice, struct arena *into)
{
	const struct api_changes changes = {
		.model = SLICE("up\"m"),
		.tokens_max = (choice & 1) != 0 ? TOKENS_MAX : 0,
		.completion_tokens = (choice & 2) != 0,
		.usage = (choice & 4) != 0,
		.store_never = (choice & 8) != 0,
		.user_dropped = (choice & 16) != 0,
		.calls_never = (choice & 3) == 3,
		.system_rule = (enum api_system_rule)(choice >> 5 & 3) % 3,
		.system = SLICE("P\\n"),
		.body = (choice & 128) != 0 ? SLICE("\"top_k\":1, \"a b\":[{}]") : SLICE(""),
	};
	struct mcp_edits edits;
	struct api_changed changed;
	struct api_request again;

	mcp_edits_init(&edits, q->body, into);
	must(api_edit_make(&edits, q, &changes, &changed) == ERR_OK);
	const struct slice text = mcp_edits_flat(&edits, into);
	must(!slice_absent(text));
	const enum err err = read_by_all(q->api, text, into, &again);
	if (err == ERR_TOO_MANY_KEYS)
		return;
	must(err == ERR_OK);
	must(json_str_eq(api_string(&again, API_MODEL), changes.model));
	must(changes.tokens_max == 0 || q->api == API_COUNT || again.tokens <= TOKENS_MAX);
	must(changed.tokens == again.tokens);
	must(q->api != API_CHAT || !changes.store_never || again.at[API_STORE].kind == JSON_FALSE);
	must(q->api != API_CHAT || !changes.usage ||
	     again.usage_asked == (q->stream || q->usage_asked));
	must(!changes.user_dropped ||
	     (!api_has(&again, API_USER) && !api_has(&again, API_USER_ID) &&
	      !api_has(&again, API_SAFETY_IDENTIFIER)));
	must(changes.system_rule != API_SYSTEM_FIXED || again.system.kind == JSON_STRING);
	must(again.n == q->n);
	must(!changes.calls_never || !api_has(&again, API_TOOLS) || forbids_calls(&again, into));
	if (changes.system_rule == API_SYSTEM_FIXED) /* what was in the caller's prompt is gone */
		must(again.tool_count <= q->tool_count && again.urls <= q->urls);
	else
		must(again.tool_count == q->tool_count && again.urls == q->urls);
}

static void check_request(enum api api, uint8_t choice, struct slice body, struct arena *into)
{
	struct api_request request;

	if (read_by_all(api, body, into, &request) != ERR_OK)
		return;
	check_places(&request);
	check_calls(&request, into);
	check_edit(&request, choice, into);
}

/* ---- answers ---- */

static void check_answer(enum api api, struct slice body, struct arena *into)
{
	static const struct slice secrets[] = { SLICE_INIT("sk-1") };
	struct mcp_edits edits;
	struct api_answer answer;
	struct api_paid paid = { .uses_said = false };

	api_paid_answer(&paid, api, body);
	must(paid.uses_said || paid.uses == 0);
	if (!json_valid(body, NULL, work, NULL))
		return;
	if (api_answer_read(api, body, &answer)) {
		mcp_edits_init(&edits, body, into);
		api_answer_edit(answer.model, SLICE("\"asked\""), &edits);
		const struct slice text = mcp_edits_flat(&edits, into);
		must(json_valid(text, NULL, work, NULL));
		must(slice_absent(answer.model) ||
		     slice_eq(json_loose_member(text, "model"), SLICE("\"asked\"")) ||
		     text.at[0] != '{');
	}
	const struct slice clean = api_redact(api, body, secrets, 1, work, into);
	must(slice_absent(clean) || !slice_has_nocase(clean, SLICE("sk-1")));
	struct fault fault;
	must(slice_absent(clean) || json_valid(clean, NULL, work, &fault) ||
	     fault.err == ERR_DUPLICATE_KEY); /* two names became one */
}

/* ---- streams ---- */

struct out {
	char *at;
	size_t len, cap;
	enum api_stream_got end;
	struct api_paid paid;
};

static void run(enum api api, struct slice in, size_t step, struct arena *into, struct out *out)
{
	enum api_stream_got got = API_STREAM_NOTHING;
	struct slice piece = { NULL, 0 };
	struct api_stream stream;

	*out = (struct out){ .at = malloc(4 * in.len + 64), .cap = 4 * in.len + 64 };
	must(out->at != NULL);
	api_stream_init(&stream, api, SLICE("\"q\""), (step & 1) == 0, 1 << 20, into);
	stream.paid = &out->paid;
	for (size_t at = 0; at < in.len && !api_stream_is_over(&stream); at += step) {
		const size_t len = in.len - at < step ? in.len - at : step;
		char *bytes = malloc(len); /* gone afterwards: what is kept has to be copied */
		must(bytes != NULL);
		(void)memcpy(bytes, in.at + at, len);
		api_stream_feed(&stream, slice_of(bytes, len));
		while ((got = api_stream_next(&stream, &piece)) == API_STREAM_PIECE ||
		       got == API_STREAM_END) {
			must(piece.len != 0 && out->len + piece.len <= out->cap);
			(void)memcpy(out->at + out->len, piece.at, piece.len);
			out->len += piece.len;
			if (got == API_STREAM_END)
				break;
		}
		free(bytes);
	}
	out->end = got;
}

static void check_stream(enum api api, size_t step, struct slice in, struct arena *into)
{
	struct out whole, cut;

	if (in.len == 0)
		return;
	run(api, in, in.len + 1 + ((in.len + 1 + step) & 1), into, &whole);
	run(api, in, step, into, &cut);
	must(whole.end == cut.end);
	must(whole.len >= cut.len &&
	     whole.len - cut.len <= 1); /* a line feed behind the last event */
	must(memcmp(whole.at, cut.at, cut.len) == 0);
	must(memcmp(&whole.paid, &cut.paid, sizeof(cut.paid)) == 0);
	must(whole.len == cut.len || whole.at[cut.len] == '\n');
	free(whole.at);
	free(cut.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	if (size < 2)
		return 0;
	const enum api api = (enum api)(data[0] % API_ALL);
	const struct slice rest = slice_of((const char *)data + 2, size - 2);
	arena_init(&arena, &pool, MEMORY);
	switch (data[0] / API_ALL % 3) {
	case 0:
		check_request(api, data[1], rest, &arena);
		break;
	case 1:
		check_answer(api, rest, &arena);
		break;
	default:
		check_stream(api, data[1] == 0 ? 1 : data[1], rest, &arena);
		break;
	}
	arena_give(&arena);
	return 0;
}
