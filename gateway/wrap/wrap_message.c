#include "gateway/wrap/wrap_message.h"

#include "codec/base/must.h"

static struct slice id_of(struct slice value)
{
	const enum wrap_json_kind kind = wrap_json_kind(value);

	return kind == WRAP_JSON_STRING || kind == WRAP_JSON_NUMBER ? value : slice_of(NULL, 0);
}

void wrap_message_read(struct slice object, struct wrap_message *out)
{
	static const struct {
		const char *name;
		size_t at;
	} members[] = {
		{ "id", offsetof(struct wrap_message, id) },
		{ "method", offsetof(struct wrap_message, method) },
		{ "params", offsetof(struct wrap_message, params) },
		{ "result", offsetof(struct wrap_message, result) },
		{ "error", offsetof(struct wrap_message, error) },
	};
	struct wrap_json_walk walk;

	*out = (struct wrap_message){ .kind = WRAP_ODD };
	wrap_json_open(&walk, object);
	while (wrap_json_next(&walk))
		for (size_t i = 0; i < COUNT_OF(members); i++)
			if (wrap_json_is(walk.name, members[i].name))
				*(struct slice *)(void *)((char *)out + members[i].at) = walk.value;
	if (walk.bad) {
		*out = (struct wrap_message){ .kind = WRAP_ODD };
		return;
	}
	const enum wrap_json_kind id = wrap_json_kind(out->id);
	out->id = id_of(out->id);
	if (wrap_json_kind(out->method) == WRAP_JSON_STRING)
		out->kind = !slice_absent(out->id) ? WRAP_REQUEST
			    : id == WRAP_JSON_NONE ? WRAP_NOTIFICATION
						   : WRAP_ODD;
	else if (slice_absent(out->method) && !slice_absent(out->id) &&
		 (!slice_absent(out->result) || !slice_absent(out->error)))
		out->kind = WRAP_RESPONSE;
}

bool wrap_message_samples(const struct wrap_message *message)
{
	return message->kind == WRAP_REQUEST &&
	       wrap_json_is(message->method, "sampling/createMessage");
}

struct slice wrap_message_cancels(const struct wrap_message *message)
{
	if (message->kind != WRAP_NOTIFICATION ||
	    !wrap_json_is(message->method, "notifications/cancelled"))
		return slice_of(NULL, 0);
	return id_of(wrap_json_member(message->params, "requestId"));
}

/* ---- edits ----------------------------------------------------------------------------------- */

void wrap_edit(struct wrap_text *out, struct slice text, const struct wrap_edit *edits,
	       size_t count)
{
	struct wrap_edit sorted[WRAP_EDITS_MAX];
	const char *at = text.at;

	must(count <= WRAP_EDITS_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t to = i;
		for (; to > 0 && sorted[to - 1].at.at > edits[i].at.at; to--)
			sorted[to] = sorted[to - 1];
		sorted[to] = edits[i];
	}
	for (size_t i = 0; i < count; i++) {
		must(sorted[i].at.at >= at);
		wrap_text_add(out, slice_of(at, (size_t)(sorted[i].at.at - at)));
		wrap_text_add(out, sorted[i].put);
		at = sorted[i].at.at + sorted[i].at.len;
	}
	wrap_text_add(out, slice_of(at, (size_t)(text.at + text.len - at)));
}

void wrap_edit_member(struct wrap_text *out, struct slice text, struct slice object,
		      const char *name, struct slice value)
{
	const struct slice there = wrap_json_member(object, name);
	struct wrap_json_walk walk;
	struct wrap_text fresh = { 0 };
	struct wrap_edit edit = { .at = there, .put = value };

	must(wrap_json_kind(object) == WRAP_JSON_OBJECT);
	if (slice_absent(there)) {
		wrap_json_open(&walk, object);
		wrap_text_print(&fresh, "\"%s\":", name);
		wrap_text_add(&fresh, value);
		wrap_text_put(&fresh, wrap_json_next(&walk) ? "," : "");
		edit = (struct wrap_edit){ .at = slice_of(object.at + 1, 0),
					   .put = wrap_text_slice(&fresh) };
	}
	wrap_edit(out, text, &edit, 1);
	wrap_text_free(&fresh);
}

size_t wrap_edit_without(struct wrap_text *out, struct slice container, wrap_drops_fn *drops,
			 void *arg)
{
	struct wrap_json_walk walk;
	size_t left = 0;

	wrap_text_add(out, slice_of(container.at, 1));
	wrap_json_open(&walk, container);
	while (wrap_json_next(&walk)) {
		if (drops(arg, &walk))
			continue;
		if (left++ != 0)
			wrap_text_put(out, ",");
		wrap_text_add(out, walk.part);
	}
	wrap_text_add(out, slice_of(container.at + container.len - 1, 1));
	return left;
}

bool wrap_drops_name(void *arg, const struct wrap_json_walk *member)
{
	return wrap_json_is(member->name, arg);
}

/* ---- answers --------------------------------------------------------------------------------- */

void wrap_message_answer(struct wrap_text *out, struct slice id, bool good, struct slice json)
{
	wrap_text_put(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	wrap_text_add(out, id);
	wrap_text_put(out, good ? ",\"result\":" : ",\"error\":");
	wrap_text_add_json(out, json);
	wrap_text_put(out, "}\n");
}

void wrap_message_error(struct wrap_text *out, int code, const char *text, const char *reason,
			const char *more)
{
	wrap_text_print(out, "{\"code\":%d,\"message\":", code);
	wrap_text_add_string(out, text);
	wrap_text_put(out, ",\"data\":{\"reason\":");
	wrap_text_add_string(out, reason);
	if (more != NULL) {
		wrap_text_put(out, ",");
		wrap_text_put(out, more);
	}
	wrap_text_put(out, "}}");
}
