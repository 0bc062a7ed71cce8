#include "codec/mcp/mcp_edit.h"

#include "codec/base/must.h"

void mcp_edits_init(struct mcp_edits *edits, struct slice text, struct arena *into)
{
	edits->text = text;
	edits->list = edits->few;
	edits->count = 0;
	edits->cap = COUNT_OF(edits->few);
	edits->into = into;
	edits->failed = false;
}

static bool has_room(struct mcp_edits *edits)
{
	if (edits->failed || edits->count < edits->cap)
		return !edits->failed;
	struct mcp_edit *list =
		arena_take(edits->into, (size_t)edits->cap * 2 * sizeof(*edits->list));
	edits->failed = list == NULL;
	if (edits->failed)
		return false;
	(void)memcpy(list, edits->list, edits->count * sizeof(*list));
	edits->list = list;
	edits->cap *= 2;
	return true;
}

static const char *end_of(struct slice at)
{
	return at.at + at.len;
}

/* Whether an edit comes behind one at `at`, which was added later. */
static bool is_behind(const struct mcp_edit *edit, struct slice at)
{
	if (edit->at.at != at.at)
		return edit->at.at > at.at;
	return at.len == 0 && edit->at.len != 0;
}

void mcp_edits_put(struct mcp_edits *edits, struct slice at, struct slice put)
{
	must(at.at >= edits->text.at && end_of(at) <= end_of(edits->text));
	struct mcp_edit *last = edits->count == 0 ? NULL : &edits->list[edits->count - 1];
	if (last != NULL && last->put.len == 0 && put.len == 0 && end_of(last->at) == at.at) {
		last->at.len += at.len;
		return;
	}
	if (!has_room(edits))
		return;
	uint32_t to = edits->count++;
	for (; to > 0 && is_behind(&edits->list[to - 1], at); to--)
		edits->list[to] = edits->list[to - 1];
	edits->list[to] = (struct mcp_edit){ .at = at, .put = put };
}

void mcp_edits_member(struct mcp_edits *edits, struct slice object, const char *name,
		      struct slice there, struct slice value)
{
	const struct slice front = slice_of(object.at + 1, 0);
	struct json_loose_walk walk;

	must(json_loose_kind(object) == JSON_LOOSE_OBJECT);
	if (!slice_absent(there)) {
		mcp_edits_put(edits, there, value);
		return;
	}
	mcp_edits_put(edits, front, SLICE("\""));
	mcp_edits_put(edits, front, slice_str(name));
	mcp_edits_put(edits, front, SLICE("\":"));
	mcp_edits_put(edits, front, value);
	json_loose_open(&walk, object);
	if (json_loose_next(&walk))
		mcp_edits_put(edits, front, SLICE(","));
}

/* ---- the edited text ------------------------------------------------------------------------- */

size_t mcp_edits_len(const struct mcp_edits *edits)
{
	size_t len = edits->text.len;

	must(!edits->failed);
	for (uint32_t i = 0; i < edits->count; i++)
		len = len - edits->list[i].at.len + edits->list[i].put.len;
	return len;
}

/* The text between two edits. */
static struct slice between(const struct mcp_edits *edits, size_t i)
{
	const char *from = i == 0 ? edits->text.at : end_of(edits->list[i - 1].at);
	const char *to = i == edits->count ? end_of(edits->text) : edits->list[i].at.at;

	must(to >= from);
	return slice_of(from, (size_t)(to - from));
}

bool mcp_edits_next(const struct mcp_edits *edits, size_t *at, struct slice *piece)
{
	must(!edits->failed);
	while (*at <= 2 * (size_t)edits->count) {
		const size_t i = (*at)++;
		*piece = i % 2 == 0 ? between(edits, i / 2) : edits->list[i / 2].put;
		if (piece->len != 0)
			return true;
	}
	return false;
}

enum err mcp_edits_write(const struct mcp_edits *edits, struct gather *out)
{
	if (edits->failed)
		return ERR_BUSY;
	for (uint32_t i = 0; i < edits->count; i++) {
		gather_raw(out, between(edits, i));
		gather_raw(out, edits->list[i].put);
	}
	gather_raw(out, between(edits, edits->count));
	return out->failed ? ERR_BUSY : ERR_OK;
}

struct slice mcp_edits_flat(const struct mcp_edits *edits, struct arena *into)
{
	struct slice piece;
	char *text = edits->failed ? NULL : arena_take(into, mcp_edits_len(edits)), *to = text;

	if (text == NULL)
		return slice_of(NULL, 0);
	for (size_t at = 0; mcp_edits_next(edits, &at, &piece); to += piece.len)
		(void)memcpy(to, piece.at, piece.len);
	return slice_of(text, (size_t)(to - text));
}

/* ---- taking members out ---------------------------------------------------------------------- */

void mcp_cut_begin(struct mcp_cut *cut, struct mcp_edits *edits, struct slice container)
{
	cut->edits = edits;
	cut->left = 0;
	cut->moved = false;
	json_loose_open(&cut->walk, container);
}

bool mcp_cut_next(struct mcp_cut *cut)
{
	cut->left += cut->moved;
	cut->moved = json_loose_next(&cut->walk);
	return cut->moved;
}

void mcp_cut_drop(struct mcp_cut *cut)
{
	struct slice at = cut->walk.part;

	must(cut->moved);
	cut->moved = false;
	if (cut->left != 0) {
		at.at--; /* the comma in front */
		at.len++;
	} else if (!cut->walk.over) {
		at.len++; /* the one behind */
	}
	mcp_edits_put(cut->edits, at, SLICE(""));
}

/* ---- what a proxy does ----------------------------------------------------------------------- */

bool mcp_edits_declare(struct mcp_edits *edits, const struct mcp_declaration *declaration,
		       struct slice value)
{
	if (json_loose_kind(declaration->capabilities) != JSON_LOOSE_OBJECT)
		return false;
	mcp_edits_member(edits, declaration->capabilities, "sampling", declaration->sampling,
			 value);
	return true;
}

void mcp_edits_undeclare(struct mcp_edits *edits, const struct mcp_declaration *declaration)
{
	struct mcp_cut cut;

	if (slice_absent(declaration->sampling))
		return;
	mcp_cut_begin(&cut, edits, declaration->capabilities);
	while (mcp_cut_next(&cut))
		if (json_loose_is(cut.walk.name, "sampling"))
			mcp_cut_drop(&cut);
}

static bool is_of_round(struct slice name)
{
	return json_loose_is(name, "inputResponses") || json_loose_is(name, "requestState");
}

void mcp_edits_round(struct mcp_edits *edits, struct slice params, const struct slice *answers,
		     size_t count, struct slice state)
{
	const struct slice rear = slice_of(params.at + params.len - 1, 0);
	struct mcp_cut cut;

	must(json_loose_kind(params) == JSON_LOOSE_OBJECT);
	mcp_cut_begin(&cut, edits, params);
	while (mcp_cut_next(&cut))
		if (is_of_round(cut.walk.name))
			mcp_cut_drop(&cut);
	mcp_edits_put(edits, rear,
		      cut.left == 0 ? SLICE("\"inputResponses\":{")
				    : SLICE(",\"inputResponses\":{"));
	for (size_t i = 0; i < count; i++)
		mcp_edits_put(edits, rear, answers[i]);
	mcp_edits_put(edits, rear, SLICE("}"));
	if (slice_absent(state))
		return;
	mcp_edits_put(edits, rear, SLICE(",\"requestState\":"));
	mcp_edits_put(edits, rear, state);
}

uint32_t mcp_edits_unsample(struct mcp_edits *edits, struct slice input_requests)
{
	struct mcp_cut cut;

	must(json_loose_kind(input_requests) == JSON_LOOSE_OBJECT);
	mcp_cut_begin(&cut, edits, input_requests);
	while (mcp_cut_next(&cut))
		if (mcp_entry_samples(cut.walk.value))
			mcp_cut_drop(&cut);
	return cut.left;
}
