/* direct_copy.c - requests that are not made twice: what is kept of the answer to the first of a key, and the answer that a
 * copy gets of that.
 *
 * What is kept is the answer's body byte for byte, behind its length, and then what its copies share of its head:
 *
 *   "result":{"bytes":N,"body":BODY,"status":200,"id":"the first's","head":{"sluice-model":"..."}}
 *
 * Another gateway may have written it: it is read as what anybody could have written. */
#include "gateway/front/api/direct.h"

#include "codec/json/json_loose.h"
#include "codec/json/json_write.h"
#include "gateway/front/front_once.h"

static const struct slice absent = { NULL, 0 };
static const struct slice front_text = SLICE_INIT("\"result\":{\"bytes\":");
static const struct slice body_text = SLICE_INIT(",\"body\":");

/* The fields of an answer that are true of its copies, too. Limits are not, nor is what it has cost. */
static const struct slice shared_fields[] = {
	SLICE_INIT("sluice-model"),
	SLICE_INIT("sluice-adjustments"),
	SLICE_INIT("sluice-provider-request-id"),
	SLICE_INIT("retry-after"),
	SLICE_INIT("retry-after-ms"),
	SLICE_INIT("x-should-retry"),
};

/* ---- the request ---- */

static struct slice name_of(const struct direct_call *call)
{
	return api_is_anthropic(call->api) ? SLICE("messages") : SLICE("chat");
}

/* A key is its front's: what two of them are asked under the same one has nothing to do with each other. No key has a
 * blank. */
bool direct_read_once(struct direct_call *call)
{
	const struct slice key = call->in->headers[HTTP_IDEMPOTENCY_KEY];
	struct gather scoped;

	if (slice_absent(key))
		return true;
	if (!front_key_is_good(key))
		return direct_refuse_err(call, ERR_IDEMPOTENCY_KEY);
	gather_init(&scoped, &call->arena);
	gather_raw(&scoped, name_of(call));
	gather_lit(&scoped, " ");
	gather_raw(&scoped, key);
	call->ask.idempotency_key =
		gather_done(&scoped) == ERR_OK ? gather_flat(&scoped, &call->arena) : absent;
	return !slice_absent(call->ask.idempotency_key) || direct_refuse_err(call, ERR_BUSY);
}

static void add_part(struct sha256_sum *sum, struct slice part)
{
	if (!slice_absent(part))
		sha256_add(sum, part);
	sha256_add(sum, SLICE("\n"));
}

void direct_digest(void *owner, struct sha256_sum *sum)
{
	const struct direct_call *call = owner;
	const struct sampling_raw *raw = &call->asked->raw;

	add_part(sum, name_of(call));
	add_part(sum, raw->version);
	add_part(sum, raw->headers);
	add_part(sum, http_find_header(call->in, SLICE("sluice-preferences")));
	add_part(sum, direct_preferences(call));
	sha256_add(sum, call->in->body);
}

/* ---- what is kept ---- */

static void put_head(struct gather *g, const struct direct_answer *answer)
{
	const char *before = "";

	gather_lit(g, "\"head\":{");
	for (size_t i = 0; i < answer->field_count; i++)
		for (size_t n = 0; n < COUNT_OF(shared_fields); n++) {
			if (!slice_eq(answer->fields[i].name, shared_fields[n]))
				continue;
			gather_raw(g, slice_str(before));
			gather_plain(g, shared_fields[n]);
			gather_lit(g, ":");
			gather_plain(g, answer->fields[i].value);
			before = ",";
		}
	gather_lit(g, "}");
}

struct slice direct_keep(void *owner, const struct sampling_outcome *outcome)
{
	struct direct_call *call = owner;
	const struct direct_answer *answer = &call->answer;
	struct gather g;

	direct_write(call, outcome);
	call->kept = true;
	const struct slice body = gather_flat(&answer->body, &call->arena);
	if (slice_absent(body) || body.len == 0 || call->wrote != ERR_OK)
		return absent;
	gather_init(&g, &call->arena);
	gather_raw(&g, front_text);
	gather_uint(&g, body.len);
	gather_raw(&g, body_text);
	gather_raw(&g, body);
	gather_lit(&g, ",\"status\":");
	gather_uint(&g, (uint64_t)answer->status);
	gather_lit(&g, ",\"id\":");
	gather_plain(&g, slice_of(call->ids.request_id, REQUEST_ID_HEX));
	gather_lit(&g, ",");
	put_head(&g, answer);
	gather_lit(&g, "}");
	return gather_done(&g) == ERR_OK ? gather_flat(&g, &call->arena) : absent;
}

/* ---- a copy's answer ---- */

/* What was kept, taken apart. */
struct kept {
	struct slice body, id, head;
	uint64_t status;
};

/* The number that `text` begins with, at most four billion; *text is what follows. */
static bool take_number(struct slice *text, uint64_t *number)
{
	size_t digits = 0;

	while (digits < text->len && digits < 10 && text->at[digits] >= '0' &&
	       text->at[digits] <= '9')
		digits++;
	if (!slice_to_u64(slice_of(text->at, digits), number))
		return false;
	*text = slice_of(text->at + digits, text->len - digits);
	return true;
}

static bool skip(struct slice *text, struct slice front)
{
	if (!slice_starts(*text, front))
		return false;
	*text = slice_of(text->at + front.len, text->len - front.len);
	return true;
}

/* A string of the record without its quotes and escapes; absent: none, no memory, or what may not stand in a header. */
static struct slice text_of(struct slice value, struct arena *into)
{
	if (json_loose_kind(value) != JSON_LOOSE_STRING || value.len < 2)
		return absent;
	const struct slice text = json_str_plain(slice_of(value.at + 1, value.len - 2), into);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
			return absent;
	return text;
}

static bool read_rest(struct slice rest, struct arena *into, struct kept *out)
{
	struct json_loose_walk walk;

	/* what stands behind the body, as an object: `rest` begins with a comma, in whose place it has a bracket */
	char *object = arena_take(into, rest.len);
	if (object == NULL)
		return false;
	(void)memcpy(object, rest.at, rest.len);
	object[0] = '{';
	struct slice whole;
	if (!json_loose_whole(slice_of(object, rest.len), &whole))
		return false;
	json_loose_open(&walk, whole);
	while (json_loose_next(&walk)) {
		if (json_loose_is(walk.name, "status") && !slice_to_u64(walk.value, &out->status))
			return false;
		if (json_loose_is(walk.name, "id"))
			out->id = text_of(walk.value, into);
		if (json_loose_is(walk.name, "head"))
			out->head = walk.value;
	}
	return !walk.bad && out->status >= 200 && out->status < 600;
}

static bool read_kept(struct slice text, struct arena *into, struct kept *out)
{
	uint64_t bytes = 0;

	*out = (struct kept){ .status = 0 };
	if (!skip(&text, front_text) || !take_number(&text, &bytes) || !skip(&text, body_text) ||
	    bytes >= text.len || text.at[bytes] != ',')
		return false;
	out->body = slice_of(text.at, (size_t)bytes);
	return read_rest(slice_of(text.at + bytes, text.len - (size_t)bytes), into, out);
}

static void add_head(struct direct_call *call, struct slice head)
{
	struct json_loose_walk walk;

	if (json_loose_kind(head) != JSON_LOOSE_OBJECT)
		return;
	json_loose_open(&walk, head);
	for (size_t left = COUNT_OF(shared_fields); left != 0 && json_loose_next(&walk); left--)
		for (size_t i = 0; i < COUNT_OF(shared_fields); i++)
			if (json_loose_is(walk.name, shared_fields[i].at))
				direct_add_field(call, shared_fields[i],
						 text_of(walk.value, &call->arena));
}

/* Errors of ours have the id of the request in their body: a copy has its own. */
static struct slice with_own_id(struct direct_call *call, const struct kept *kept)
{
	struct slice own = absent;

	if (kept->id.len != REQUEST_ID_HEX)
		return kept->body;
	const char *at = memmem(kept->body.at, kept->body.len, kept->id.at, kept->id.len);
	if (at != NULL)
		own = arena_copy(&call->arena, kept->body);
	if (slice_absent(own))
		return kept->body;
	(void)memcpy((char *)(uintptr_t)own.at + (at - kept->body.at), call->ids.request_id,
		     REQUEST_ID_HEX);
	return own;
}

void direct_write_copy(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const bool good = outcome->fault.err == ERR_OK;
	struct kept kept;

	if (!read_kept(outcome->copy, &call->arena, &kept)) {
		(void)direct_refuse_err(call, ERR_DUPLICATE_DONE);
		return;
	}
	direct_begin_answer(call, (int)kept.status, SLICE("application/json"));
	add_head(call, kept.head);
	if (good) /* the first has paid */
		direct_add_field(call, SLICE("sluice-usd"), SLICE("0.000000000"));
	gather_raw(&call->answer.body, good ? kept.body : with_own_id(call, &kept));
	if (gather_done(&call->answer.body) != ERR_OK)
		(void)direct_refuse_err(call, ERR_BUSY);
}
