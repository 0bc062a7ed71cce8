/* direct_client.c - what clients of the direct APIs say of themselves: how long they wait, and for the log. */
#include "gateway/front/api/direct.h"

#include "codec/json/json_scan.h"

/* ---- how long it waits ---- */

/* Seconds, perhaps with a fraction, as ns; 0: it says none. */
static nsec_t seconds(struct slice text)
{
	enum { SECONDS_MAX = 1000000000 };
	struct slice rest = slice_trim(text);
	struct slice whole = slice_cut(&rest, '.');
	nsec_t unit = SEC / 10, fraction = 0;
	uint64_t value;

	if (!slice_to_u64(whole, &value) || value > SECONDS_MAX)
		return 0;
	for (size_t i = 0; i < rest.len; i++, unit /= 10) {
		if (!scan_is_digit(rest.at[i]))
			return 0;
		fraction += (nsec_t)(rest.at[i] - '0') * unit;
	}
	return value * SEC + fraction;
}

/* Sluice-Timeout, in milliseconds, only lowers the plan's deadline. */
bool direct_set_deadline(struct direct_call *call)
{
	const struct slice text = call->in->headers[HTTP_TIMEOUT];
	nsec_t allowed = call->caller.plan->limits.deadline_progress;
	uint64_t ms = 0;

	if (!slice_absent(text) && (!slice_to_u64(slice_trim(text), &ms) || ms == 0))
		return direct_refuse_err(call, ERR_TIMEOUT_HEADER);
	if (!slice_absent(text) && ms < allowed / MSEC)
		allowed = ms * MSEC;
	call->ask.deadline = call->begun_deadline = call->ask.started + allowed;
	return true;
}

/* SDKs say how long they wait for a byte of the answer. Of a stream that has begun that says nothing. */
static void shorten(struct direct_call *call, struct slice text)
{
	const nsec_t wanted = seconds(text);

	if (wanted != 0 && wanted < call->ask.deadline - call->ask.started)
		call->ask.deadline = call->ask.started + wanted;
}

/* ---- the walk through its header lines ---- */

/* Whoever says more than an id has is not worth a longer line. */
static struct slice front_of(struct slice text)
{
	enum { SHOWN_MAX = 128 };

	return text.len <= SHOWN_MAX ? text : slice_of(text.at, SHOWN_MAX);
}

void direct_note_header(struct direct_call *call, const struct http_field *field)
{
	struct log_agent *agent = &call->agent;
	const struct {
		struct slice name;
		struct slice *value;
	} rows[] = {
		{ SLICE("x-stainless-retry-count"), &agent->retry },
		{ SLICE("x-claude-code-session-id"), &agent->session },
		{ SLICE("x-claude-code-agent-id"), &agent->agent },
		{ SLICE("x-claude-code-parent-agent-id"), &agent->parent },
	};

	if (!slice_starts(field->name, SLICE("x-")))
		return;
	if (slice_eq(field->name, SLICE("x-stainless-timeout")) ||
	    slice_eq(field->name, SLICE("x-stainless-read-timeout")))
		shorten(call, field->value);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (slice_eq(field->name, rows[i].name))
			*rows[i].value = front_of(field->value);
}
