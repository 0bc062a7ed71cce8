/* sampling_read.c - the body in one pass: envelope, params, and then the rules over all of it. */
#include "codec/sampling_decode.h"

#include "codec/base/must.h"
#include "codec/jsonrpc_envelope.h"
#include "codec/set.h"

#include <math.h>

/* Decodes params into a fresh request. */
static bool read_params(struct decode *d)
{
	*d->out = (struct sampling_request){
		.revision = d->revision,
		.prefer = { .cost = NAN, .speed = NAN, .intelligence = NAN },
	};
	return decode_params(d);
}

/* Everything that needs the whole of params, after the last byte was found to be JSON. */
static bool finish_params(struct decode *d)
{
	struct sampling_request *out = d->out;

	if (!decode_check_tool_names(d) || !decode_check_history(d))
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

/* Reads the envelope; params are decoded in passing if the method is known by then. *decoded: they
 * were. False when anything failed. */
static bool read_envelope(struct decode *d, struct envelope *e, bool *decoded)
{
	uint32_t member;

	if (json_peek(d->r) != JSON_OBJECT)
		return false;
	(void)json_begin(d->r);
	while ((member = envelope_next(e, d->r)) != FIELD_END) {
		if (member == ENVELOPE_PARAMS && e->create_message) {
			const char *at = d->r->at;
			if (!read_params(d))
				return false;
			e->params = slice_of(at, (size_t)(d->r->at - at));
			*decoded = true;
		} else if (!envelope_member(e, d->r, member)) {
			return false;
		}
	}
	return json_finish(d->r);
}

/* Params that stood before the method, or are missing. */
static bool read_params_late(struct decode *d, struct slice params)
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
static enum err failed(struct decode *d, struct jsonrpc *rpc, struct fault *fault)
{
	enum err err = envelope_read(d->body, &d->limits->json, d->work, d->into, rpc, fault);

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
	d.messages = d.blocks = d.inner = d.tools = (struct list){ NULL, 0, 0 };

	envelope_init(&e);
	*rpc = (struct jsonrpc){ .method = RPC_UNKNOWN };
	json_open(&reader, body, &d.limits->json, work);
	if (!read_envelope(&d, &e, &decoded) || envelope_judge(&e, rpc, fault) != ERR_OK)
		return failed(&d, rpc, fault);
	if (rpc->method != RPC_CREATE_MESSAGE)
		return ERR_OK;
	if (slice_absent(rpc->id) || (!decoded && !read_params_late(&d, e.params)) ||
	    !finish_params(&d))
		return failed(&d, rpc, fault);
	return ERR_OK;
}
