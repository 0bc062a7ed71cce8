#include "gateway/telemetry/trace_context.h"

#include <stdbool.h>
#include <string.h>

/* version "-" trace-id "-" parent-id "-" flags */
enum {
	TRACE_AT = 3,
	TRACE_DIGITS = 32,
	PARENT_AT = TRACE_AT + TRACE_DIGITS + 1,
	PARENT_DIGITS = 16,
	FLAGS_AT = PARENT_AT + PARENT_DIGITS + 1,
};
_Static_assert(FLAGS_AT + 2 == (int)TRACEPARENT_LEN, "the fields make the header");
_Static_assert(PARENT_DIGITS <= (int)REQUEST_ID_HEX, "a request's id has digits enough");

/* Upper case is not valid (3.2.2.3). */
static bool all_hex(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(at[i] >= '0' && at[i] <= '9') && !(at[i] >= 'a' && at[i] <= 'f'))
			return false;
	return true;
}

/* An id of zeros is none. */
static bool is_id(const char *at, size_t digits)
{
	return all_hex(at, digits) && strspn(at, "0") < digits;
}

static bool is_valid(struct slice s)
{
	if (s.len < TRACEPARENT_LEN || !all_hex(s.at, 2) || memcmp(s.at, "ff", 2) == 0)
		return false;
	if (s.len > TRACEPARENT_LEN && (memcmp(s.at, "00", 2) == 0 || s.at[TRACEPARENT_LEN] != '-'))
		return false;
	return s.at[TRACE_AT - 1] == '-' && is_id(s.at + TRACE_AT, TRACE_DIGITS) &&
	       s.at[PARENT_AT - 1] == '-' && is_id(s.at + PARENT_AT, PARENT_DIGITS) &&
	       s.at[FLAGS_AT - 1] == '-' && all_hex(s.at + FLAGS_AT, 2);
}

void trace_context_read(struct slice header, char out[TRACEPARENT_LEN + 1])
{
	out[0] = '\0';
	if (!is_valid(header))
		return;
	(void)memcpy(out, header.at, TRACEPARENT_LEN);
	(void)memcpy(out, "00", 2);
	out[TRACEPARENT_LEN] = '\0';
}

void trace_context_continue(const char caller[TRACEPARENT_LEN + 1],
			    const char request_id[REQUEST_ID_HEX + 1],
			    char out[TRACEPARENT_LEN + 1])
{
	(void)memmove(out, caller, TRACEPARENT_LEN + 1);
	if (out[0] != '\0')
		(void)memcpy(out + PARENT_AT, request_id, PARENT_DIGITS);
}
