#include "codec/dialect/replay.h"

#include "codec/base/must.h"
#include "codec/json/json_meaning.h"

static const struct slice nothing = { NULL, 0 };

uint32_t replay_next_turn(const struct sampling_request *request, uint32_t message, uint32_t *call)
{
	for (; message < request->message_count; message++) {
		const struct message *turn = &request->messages[message];
		for (uint32_t i = 0; turn->assistant && i < turn->count; i++) {
			if (request->blocks[turn->first + i].type != BLOCK_TOOL_USE)
				continue;
			*call = turn->first + i;
			return message;
		}
	}
	return REPLAY_NO_TURN;
}

bool replay_may_keep(const struct encode_out *sent)
{
	const adjust_set passing =
		ADJUST_BIT(ADJUST_USER_TURN_APPENDED) | ADJUST_BIT(ADJUST_TOOLS_SYNTHESISED);

	return (sent->adjustments & passing) == 0 && !sent->decode.native_schema;
}

/* ---- digests ---- */

bool replay_add_call(uint64_t *digest, const struct replay_call *call, struct arena *into)
{
	uint64_t id, name, input;

	if (!json_meaning_of_string(call->id, into, &id) ||
	    !json_meaning_of_string(call->name, into, &name) ||
	    !json_meaning(call->input, into, &input))
		return false;
	*digest = json_meaning_join(*digest, id);
	*digest = json_meaning_join(*digest, name);
	*digest = json_meaning_join(*digest, input);
	return true;
}

struct slice replay_calls_hex(uint64_t digest, char hex[REPLAY_CALLS_HEX])
{
	for (int i = 0; i < REPLAY_CALLS_HEX; i++)
		hex[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 15];
	return slice_of(hex, REPLAY_CALLS_HEX);
}

/* Adds what lies between `from` and `to` of a part that begins at offset `at`. */
static void add_part(struct sha256_sum *sum, struct slice part, size_t at, size_t from, size_t to)
{
	const size_t begin = from > at ? from - at : 0,
		     end = to < at + part.len ? to - at : part.len;

	if (to > at && begin < end)
		sha256_add(sum, slice_of(part.at + begin, end - begin));
}

void replay_add_range(struct sha256_sum *sum, const struct gather *body, size_t from, size_t to)
{
	size_t at = 0;

	must(from <= to && to <= gather_offset(body));
	for (uint32_t i = 0; i < body->count && at < to; i++) {
		const struct iovec *v = &body->v[i];
		add_part(sum, slice_of(v->iov_base, v->iov_len), at, from, to);
		at += v->iov_len;
	}
	if (at < to) /* the stage, which is in no entry yet */
		add_part(sum, slice_of(body->from, (size_t)(body->at - body->from)), at, from, to);
}

static struct slice prefix_hex(const struct dialect *dialect, const struct encode_out *sent,
			       char hex[REPLAY_PREFIX_HEX])
{
	const struct encode_marks *marks = &sent->marks;
	const size_t end = gather_offset(&sent->body) - dialect->closing;
	uint8_t digest[SHA256_BYTES];
	struct sha256_sum sum;

	sha256_begin(&sum);
	replay_add_range(&sum, &sent->body, marks->tools, marks->tools_end);
	replay_add_range(&sum, &sent->body, marks->said, end);
	sha256_end(&sum, digest);
	sha256_hex(digest, REPLAY_PREFIX_HEX, hex);
	return slice_of(hex, REPLAY_PREFIX_HEX);
}

/* ---- records ---- */

static bool result_calls(const struct sampling_result *result, struct arena *into, uint64_t *digest)
{
	*digest = 0;
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		const struct replay_call call = { block->id, block->name, block->input };
		if (block->is_tool_use && !replay_add_call(digest, &call, into))
			return false;
	}
	return *digest != 0;
}

struct slice replay_write(const struct dialect *dialect, struct slice provider,
			  const struct encode_out *sent, const struct sampling_result *result,
			  struct arena *into)
{
	char calls[REPLAY_CALLS_HEX], prefix[REPLAY_PREFIX_HEX];
	struct gather g;
	uint64_t digest;

	if (!result_calls(result, into, &digest))
		return nothing;
	gather_init(&g, into);
	gather_lit(&g, "{\"v\":1,\"dialect\":");
	gather_plain(&g, slice_str(dialect->name));
	gather_lit(&g, ",\"provider\":");
	gather_plain(&g, provider);
	gather_lit(&g, ",\"model\":");
	gather_plain(&g, sent->decode.requested_model);
	gather_lit(&g, ",\"calls\":");
	gather_str(&g, replay_calls_hex(digest, calls));
	gather_lit(&g, ",\"prefix\":");
	gather_str(&g, prefix_hex(dialect, sent, prefix));
	if (!slice_absent(result->replay)) {
		gather_lit(&g, ",\"content\":");
		gather_raw(&g, result->replay);
	}
	gather_lit(&g, "}");
	return gather_done(&g) == ERR_OK ? gather_flat(&g, into) : nothing;
}

/* Where in a record the string of that name goes; NULL: nowhere. */
static struct slice *text_of(struct replay_record *record, struct slice key)
{
	if (slice_eq(key, SLICE("dialect")))
		return &record->dialect;
	if (slice_eq(key, SLICE("provider")))
		return &record->provider;
	if (slice_eq(key, SLICE("model")))
		return &record->model;
	if (slice_eq(key, SLICE("calls")))
		return &record->calls;
	return slice_eq(key, SLICE("prefix")) ? &record->prefix : NULL;
}

/* A member whose key was read; false: no memory. */
static bool read_member(struct json_reader *r, struct slice key, struct arena *into,
			struct replay_record *record, struct slice *version)
{
	struct slice *text = text_of(record, key), raw;

	if (slice_eq(key, SLICE("content")))
		return json_skip(r, &record->content);
	if (slice_eq(key, SLICE("v")))
		return json_skip(r, version);
	if (text == NULL)
		return json_skip(r, NULL);
	if (!json_string(r, &raw))
		return false;
	*text = json_str_plain(raw, into);
	return !slice_absent(*text);
}

bool replay_read(struct slice text, struct json_work *work, struct arena *into,
		 struct replay_record *out)
{
	struct replay_record record = { .content = nothing };
	struct slice key, version = nothing;
	struct json_reader r;

	if (text.len > UINT32_MAX) /* more than a reader takes */
		return false;
	json_open(&r, text, NULL, work);
	if (!json_enter_object(&r))
		return false;
	while (json_next_key(&r, &key))
		if (!read_member(&r, key, into, &record, &version))
			return false;
	if (!json_finish(&r) || !slice_eq(version, SLICE("1")))
		return false;
	*out = record;
	return true;
}
