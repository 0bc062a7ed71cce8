/* direct_heads.c - the header lines of answers (contract/direct.md 1 and 4). */
#include "gateway/front/api/direct.h"

#include "codec/base/must.h"
#include "codec/json/json_write.h"

void direct_add_field(struct direct_call *call, struct slice name, struct slice value)
{
	struct direct_answer *answer = &call->answer;

	must(answer->field_count < COUNT_OF(answer->fields));
	if (!slice_absent(value))
		answer->fields[answer->field_count++] = (struct http_field){ name, value };
}

static void add_all(struct direct_call *call, const struct api_header *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		direct_add_field(call, headers[i].name, headers[i].value);
}

/* ---- the caller's limits ---- */

/* As of now: it was found some time ago. */
static struct api_rate rate_of(const struct limit_room *room, nsec_t passed)
{
	const nsec_t left = room->full_in > passed ? room->full_in - passed : 0;

	return (struct api_rate){ .known = room->known,
				  .limit = room->limit,
				  .remaining = room->remaining,
				  .reset_ms = (left + MSEC - 1) / MSEC };
}

/* What the claim has found: none before there was one. */
static void add_rates(struct direct_call *call)
{
	const struct limit_left *left = call->asked == NULL ? NULL : &call->asked->raw.left;
	struct api_header headers[API_RATE_HEADERS];

	if (left == NULL || left->at == 0)
		return;
	struct net_loop *loop = call->host->loop;
	const nsec_t passed = net_now(loop) - left->at;
	const struct api_rate requests = rate_of(&left->requests, passed);
	const struct api_rate tokens = rate_of(&left->tokens, passed);
	add_all(call, headers,
		api_rate_headers(&requests, &tokens, net_wall_ns(loop) / SEC, &call->arena,
				 headers));
}

/* ---- every answer ---- */

/* Both names of the id: each SDK reads one. */
void direct_begin_answer(struct direct_call *call, int status, struct slice content_type)
{
	const struct slice id = slice_of(call->ids.request_id, REQUEST_ID_HEX);

	call->answer.status = status;
	call->answer.field_count = 0;
	gather_init(&call->answer.body, &call->arena);
	direct_add_field(call, SLICE("content-type"), content_type);
	direct_add_field(call, SLICE("request-id"), id);
	direct_add_field(call, SLICE("x-request-id"), id);
	add_rates(call);
}

void direct_add_retry(struct direct_call *call, int64_t wait_ms, bool never)
{
	struct api_header headers[API_RETRY_HEADERS];

	add_all(call, headers, api_retry_headers(wait_ms, never, &call->arena, headers));
}

/* ---- whoever has answered ---- */

/* "a, b"; absent: none, or no memory. */
static struct slice adjustments_of(const struct direct_call *call, struct arena *into)
{
	const struct direct_asked *asked = call->asked;
	struct gather list;

	if (asked->adjustments == 0 && !asked->store_disabled)
		return slice_of(NULL, 0);
	gather_init(&list, into);
	for (adjust_set left = asked->adjustments; left != 0; left &= left - 1) {
		if (gather_offset(&list) != 0)
			gather_lit(&list, ", ");
		gather_raw(&list,
			   slice_str(adjustment_code((enum adjustment)__builtin_ctzll(left))));
	}
	if (asked->store_disabled) {
		if (gather_offset(&list) != 0)
			gather_lit(&list, ", ");
		gather_lit(&list, "store_disabled");
	}
	return gather_done(&list) == ERR_OK ? gather_flat(&list, into) : slice_of(NULL, 0);
}

void direct_add_target(struct direct_call *call, struct slice model_id,
		       struct slice provider_request_id)
{
	direct_add_field(call, SLICE("sluice-model"), model_id);
	direct_add_field(call, SLICE("sluice-adjustments"), adjustments_of(call, &call->arena));
	direct_add_field(call, SLICE("sluice-provider-request-id"), provider_request_id);
}

/* Exactly: nine digits behind the point. */
void direct_add_usd(struct direct_call *call, uint64_t nano)
{
	enum { PLACES = 9, NANO = 1000000000 };
	char *text = arena_take(&call->arena, PEN_UINT_MAX + 1 + PLACES);
	uint64_t rest = nano % NANO;

	if (text == NULL)
		return;
	char *point = pen_uint(text, nano / NANO);
	*point = '.';
	for (size_t i = PLACES; i > 0; i--, rest /= 10)
		point[i] = (char)('0' + rest % 10);
	direct_add_field(call, SLICE("sluice-usd"),
			 slice_of(text, (size_t)(point - text) + 1 + PLACES));
}
