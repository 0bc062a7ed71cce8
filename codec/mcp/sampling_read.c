/* sampling_read.c - the body in one pass: envelope, params, and then the rules over all of it. */
#include "codec/mcp/sampling_decode.h"

#include "codec/base/must.h"
#include "codec/mcp/jsonrpc_envelope.h"

#include <math.h>

/* Every request has messages and blocks, often more than others' lists; exhausted memory shows when there are
 * some. */
static inline void begin_lists(struct decode *d)
{
	enum { TURNS_FIRST = 2 * LIST_FIRST };
	const size_t messages = TURNS_FIRST * sizeof(struct message);
	char *at = arena_take(d->into, messages + TURNS_FIRST * sizeof(struct block));

	list_init(&d->messages);
	list_init(&d->blocks);
	if (at == NULL)
		return;
	d->messages.at = at;
	d->blocks.at = at + messages;
	d->messages.cap = d->blocks.cap = TURNS_FIRST;
}

/* Decodes params into a fresh request. */
static inline bool read_params(struct decode *d)
{
	*d->out = (struct sampling_request){
		.revision = d->revision,
		.prefer = { .cost = NAN, .speed = NAN, .intelligence = NAN },
	};
	begin_lists(d);
	return decode_params(d);
}

/* Everything that needs the whole of params, after the last byte was found to be JSON. */
static bool finish_params(struct decode *d)
{
	const uint32_t paired = 1u << BLOCK_TOOL_USE | 1u << BLOCK_TOOL_RESULT;
	struct sampling_request *out = d->out;

	if (d->tools.count != 0 && !decode_check_tool_names(d))
		return false;
	if ((d->types & paired) != 0 && !decode_check_history(d))
		return false;
	out->messages = d->messages.at;
	out->message_count = d->messages.count;
	out->blocks = d->blocks.at;
	out->block_count = d->blocks.count;
	out->inner = d->inner.at;
	out->inner_count = d->inner.count;
	out->tools = d->tools.at;
	out->tool_count = d->tools.count;
	return true;
}

/* Steps over the usual front of a request, {"jsonrpc":"2.0","id":…,"method":"sampling/createMessage",
 * "params": or without the first two, and enters it. False: it is another one, nothing happened, or
 * the reader has failed. */
static bool guess_front(struct envelope *e, struct json_reader *r)
{
	const char *brace = r->at, *id = NULL, *id_end = NULL;
	struct slice text;
	uint64_t number;

	if (!json_may_guess(r))
		return false;
	if (json_guess_lit(r, "{\"jsonrpc\":\"2.0\",\"id\":")) {
		id = r->at;
		if (!json_guess_uint(r, &number) &&
		    (r->at == r->end || *r->at != '"' || !json_take_string(r, &text)))
			goto other;
		id_end = r->at;
		if (!json_guess_lit(r, ",\"method\":\"sampling/createMessage\",\"params\":"))
			goto other;
		e->id = slice_of(id, (size_t)(id_end - id));
		e->version_ok = true;
		e->fields.seen = 1u << ENVELOPE_JSONRPC | 1u << ENVELOPE_ID;
	} else if (!json_guess_lit(r, "{\"method\":\"sampling/createMessage\",\"params\":")) {
		return false;
	}
	e->method = SLICE("sampling/createMessage");
	e->create_message = true;
	e->fields.seen |= 1u << ENVELOPE_METHOD | 1u << ENVELOPE_PARAMS;
	return json_resume_object(r, brace);
other:
	if (r->fault.err == ERR_OK)
		r->at = brace;
	return false;
}

/* Decodes params in passing. */
static bool read_params_here(struct decode *d, struct envelope *e)
{
	const char *at = d->r->at;

	if (!read_params(d))
		return false;
	e->params = slice_of(at, (size_t)(d->r->at - at));
	return true;
}

/* Reads the envelope; params are decoded in passing if the method is known by then. *decoded: they
 * were. False when anything failed. */
static bool read_envelope(struct decode *d, struct envelope *e, bool *decoded)
{
	uint32_t member;

	if (guess_front(e, d->r)) {
		if (!read_params_here(d, e))
			return false;
		*decoded = true;
		if (json_guess_end(d->r))
			return json_finish(d->r);
	} else {
		if (json_peek(d->r) != JSON_OBJECT)
			return false;
		(void)json_begin(d->r);
	}
	while ((member = envelope_next(e, d->r)) != FIELD_END) {
		if (member == ENVELOPE_PARAMS && e->create_message) {
			if (!read_params_here(d, e))
				return false;
			*decoded = true;
		} else if (!envelope_member(e, d->r, member)) {
			return false;
		}
	}
	return json_finish(d->r);
}

/* Params that stood before the method, or are missing. */
static SCAN_RARE bool read_params_late(struct decode *d, struct slice params)
{
	struct json_reader sub;

	if (slice_absent(params))
		return decode_refuse(d, ERR_PARAMS, NULL, "params is missing");
	struct json_reader *outer = decode_sub_open(d, &sub, params);
	bool fine = read_params(d);
	decode_sub_close(d, outer);
	return fine;
}

/* Something failed. What is not JSON or not JSON-RPC comes first, wherever it stands; the violation
 * that stopped the decoder is the error of a text that is otherwise sound. */
static enum err failed(struct decode *d, const struct envelope *e, struct jsonrpc *rpc,
		       struct fault *fault)
{
	enum err err;

	if (d->fault.err == ERR_OK && d->r->fault.err != ERR_OK)
		return envelope_malformed(e, d->r, d->body, d->into, rpc, fault);
	err = envelope_read(d->body, &d->limits->json, d->work, d->into, rpc, fault);
	if (err != ERR_OK)
		return err;
	if (rpc->method == RPC_CREATE_MESSAGE && slice_absent(rpc->id)) {
		*fault = (struct fault){ .err = ERR_ID_MISSING, .offset = FAULT_NO_OFFSET };
		return ERR_ID_MISSING;
	}
	must(d->fault.err != ERR_OK);
	*fault = d->fault;
	(void)decode_in_member(d, "params");
	fault->path = decode_path(d);
	return fault->err;
}

enum err sampling_read_here(struct slice body, enum revision revision,
			    const struct sampling_limits *limits, struct json_work *work,
			    struct arena *into, struct jsonrpc *rpc,
			    struct sampling_request *request, struct fault *fault)
{
	struct json_reader reader;
	struct envelope e;
	bool decoded = false;
	/* not initialised as a whole: the path's steps are many */
	struct decode d;

	d.r = &reader;
	d.work = work;
	d.into = into;
	d.limits = limits == NULL ? &sampling_limits_default : limits;
	must(d.limits->blocks_max < UINT16_MAX && d.limits->tools_max < UINT16_MAX);
	d.out = request;
	d.revision = revision;
	d.body = body;
	d.fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	d.path_count = 0;
	d.types = 0;
	list_init(&d.inner);
	list_init(&d.tools);

	envelope_init(&e);
	*rpc = (struct jsonrpc){ .method = RPC_UNKNOWN };
	json_open(&reader, body, &d.limits->json, work);
	if (!read_envelope(&d, &e, &decoded) || envelope_judge(&e, rpc, fault) != ERR_OK)
		return failed(&d, &e, rpc, fault);
	if (rpc->method != RPC_CREATE_MESSAGE)
		return ERR_OK;
	if (slice_absent(rpc->id) || (!decoded && !read_params_late(&d, e.params)) ||
	    !finish_params(&d))
		return failed(&d, &e, rpc, fault);
	return ERR_OK;
}
