#include "bench/sim/sim_spec.h"

#include <string.h>

#include "codec/base/must.h"

const struct sim_spec sim_spec_default = {
	.retry_after = NSEC_NEVER,
	.retry_ms = NSEC_NEVER,
	.retry_date = NSEC_NEVER,
	.should_retry = UINT64_MAX,
	.size = 256,
	.chunk = 16,
	.calls = 1,
	.input = UINT64_MAX,
	.output = UINT64_MAX,
	.window = 60 * SEC,
};

enum argument { NONE, NUMBER, TIME, TEXT };

/* A word sets the member at `offset` to its argument, or to 1; and the fault, if it names one. */
static const struct word {
	const char *name;
	enum argument argument;
	size_t offset;
	uint64_t min, max;
	enum sim_fault fault;
	const char *meaning;
} words_table[] = {
#define MEMBER(name) offsetof(struct sim_spec, name)
	{ "latency", TIME, MEMBER(latency), 0, 3600 * SEC, 0,
	  "time before the first byte of the answer" },
	{ "pace", TIME, MEMBER(pace), 0, 3600 * SEC, 0, "time between two events of a stream" },
	{ "dribble", TIME, MEMBER(dribble), 1, 3600 * SEC, 0,
	  "time between two bytes of the answer" },
	{ "size", NUMBER, MEMBER(size), 0, SIM_SPEC_SIZE_MAX, 0, "bytes of text" },
	{ "chunk", NUMBER, MEMBER(chunk), 1, SIM_SPEC_SIZE_MAX, 0, "bytes of text in an event" },
	{ "stamp", NONE, MEMBER(stamp), 0, 1, 0,
	  "the text of an event is when it was written: microseconds of CLOCK_MONOTONIC in 16 "
	  "digits, as <0000000000000000>" },
	{ "calls", NUMBER, MEMBER(calls), 1, 64, 0, "tool calls in one answer" },
	{ "loop", NONE, MEMBER(loop), 0, 1, 0, "calls tools again after their results" },
	{ "length", NONE, MEMBER(length), 0, 1, 0, "ends for the token limit" },
	{ "refusal", NONE, MEMBER(refusal), 0, 1, 0, "ends as refused" },
	{ "obey", NONE, MEMBER(obey), 0, 1, 0, "cuts the text at the request's token limit" },
	{ "input", NUMBER, MEMBER(input), 0, UINT32_MAX, 0, "reported input tokens" },
	{ "output", NUMBER, MEMBER(output), 0, UINT32_MAX, 0, "reported output tokens" },
	{ "nousage", NONE, MEMBER(nousage), 0, 1, 0, "reports no usage" },
	{ "chunked", NONE, MEMBER(chunked), 0, 1, 0, "a plain answer without Content-Length" },
	{ "lines", NONE, MEMBER(lines), 0, 1, 0,
	  "a good answer has as many header lines as a real one" },
	{ "once", NONE, MEMBER(once), 0, 1, 0, "closes the connection after the answer" },
	{ "error", NUMBER, MEMBER(status), 400, 599, SIM_FAULT_ERROR, "answers this status" },
	{ "retry", TIME, MEMBER(retry_after), 0, 86400 * SEC, 0,
	  "Retry-After of an error; a bare number is seconds" },
	{ "retryms", TIME, MEMBER(retry_ms), 0, 86400 * SEC, 0, "retry-after-ms of an error" },
	{ "retrydate", TIME, MEMBER(retry_date), 0, 86400 * SEC, 0,
	  "Retry-After of an error, as a date so far ahead" },
	{ "shouldretry", NUMBER, MEMBER(should_retry), 0, 1, 0, "x-should-retry of an error" },
	{ "code", TEXT, MEMBER(code), 0, 0, 0, "error code in the body" },
	{ "context", NONE, MEMBER(context), 0, 1, 0, "the error is that of a full context window" },
	{ "hang", NONE, SIZE_MAX, 0, 1, SIM_FAULT_HANG, "never answers" },
	{ "close", NONE, SIZE_MAX, 0, 1, SIM_FAULT_CLOSE, "closes before the answer" },
	{ "reset", NONE, SIZE_MAX, 0, 1, SIM_FAULT_RESET, "resets before the answer" },
	{ "cut", NONE, SIZE_MAX, 0, 1, SIM_FAULT_CUT,
	  "closes in the middle of the body or stream" },
	{ "cuthead", NONE, SIZE_MAX, 0, 1, SIM_FAULT_CUTHEAD,
	  "closes in the middle of the headers" },
	{ "badjson", NONE, SIZE_MAX, 0, 1, SIM_FAULT_BADJSON,
	  "a body, or event, that is not JSON" },
	{ "empty", NONE, SIZE_MAX, 0, 1, SIM_FAULT_EMPTY, "no body, or a stream without events" },
	{ "html", NONE, SIZE_MAX, 0, 1, SIM_FAULT_HTML, "the error page of a proxy, 502" },
	{ "garbage", NONE, SIZE_MAX, 0, 1, SIM_FAULT_GARBAGE, "bytes that are not HTTP" },
	{ "midway", NONE, SIZE_MAX, 0, 1, SIM_FAULT_MIDWAY,
	  "an error event in the middle of a stream" },
	{ "stall", NONE, SIZE_MAX, 0, 1, SIM_FAULT_STALL,
	  "stops in the middle of the body or stream, and stays connected" },
	{ "every", NUMBER, MEMBER(every), 1, UINT32_MAX, 0,
	  "the fault hits each n-th request only" },
	{ "first", NUMBER, MEMBER(first_only), 1, UINT32_MAX, 0,
	  "the fault hits the first n requests only" },
	{ "conns", NUMBER, MEMBER(every_connection), 1, UINT32_MAX, 0,
	  "the fault hits each n-th connection only" },
	{ "key", TEXT, MEMBER(key), 0, 0, 0, "the fault hits keys only that end in this word" },
	{ "after", TIME, MEMBER(after), 0, 86400 * SEC, 0,
	  "the fault begins so long after it became the default" },
	{ "for", TIME, MEMBER(lasts), 1, 86400 * SEC, 0, "and lasts so long" },
	{ "uses", NUMBER, MEMBER(uses), 1, UINT32_MAX, 0,
	  "closes each connection after its n-th answer" },
	{ "quota", NUMBER, MEMBER(quota), 1, UINT32_MAX, 0,
	  "requests of each key in a window; then 429" },
	{ "tokenquota", NUMBER, MEMBER(token_quota), 1, UINT32_MAX, 0,
	  "tokens of each key in a window; then 429" },
	{ "window", TIME, MEMBER(window), 1, 86400 * SEC, 0, "length of it, 60s" },
	{ "sick", NONE, MEMBER(sick), 0, 1, 0, "GET /health fails though all is well" },
	{ "well", NONE, MEMBER(well), 0, 1, 0, "GET /health is 200 though nothing is well" },
#undef MEMBER
};

static const char *const fault_names[SIM_FAULT_COUNT] = {
	"ok",      "error", "hang", "close",   "reset",  "cut",   "cuthead",
	"badjson", "empty", "html", "garbage", "midway", "stall",
};

const char *sim_spec_fault_name(enum sim_fault fault)
{
	must((unsigned)fault < SIM_FAULT_COUNT);
	return fault_names[fault];
}

/* "20", "20ms", "150us", "2s"; a bare number counts in `unit`. */
static bool read_time(struct slice s, nsec_t unit, nsec_t *out)
{
	static const struct {
		struct slice suffix;
		nsec_t unit;
	} units[] = { { SLICE_INIT("us"), USEC },
		      { SLICE_INIT("ms"), MSEC },
		      { SLICE_INIT("s"), SEC } };
	uint64_t count;

	for (size_t i = 0; i < COUNT_OF(units); i++) {
		struct slice suffix = units[i].suffix;

		if (s.len > suffix.len &&
		    slice_eq(slice_of(s.at + s.len - suffix.len, suffix.len), suffix)) {
			s.len -= suffix.len;
			unit = units[i].unit;
			break;
		}
	}
	return slice_to_u64(s, &count) && !__builtin_mul_overflow(count, unit, out);
}

static bool set_text(char into[SIM_SPEC_CODE_MAX], struct slice text)
{
	if (text.len == 0 || text.len >= SIM_SPEC_CODE_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) /* it goes into a JSON string as it is */
		if (text.at[i] < ' ' || text.at[i] == '"' || text.at[i] == '\\')
			return false;
	memcpy(into, text.at, text.len);
	into[text.len] = '\0';
	return true;
}

/* Takes the word's argument, if it has one, off the front of *rest. */
static bool apply(struct sim_spec *spec, const struct word *word, struct slice *rest)
{
	uint64_t value = 1;

	if (word->argument != NONE) {
		struct slice argument = slice_cut(rest, '-');

		if (slice_absent(argument))
			return false;
		if (word->argument == TEXT)
			return set_text((char *)spec + word->offset, argument);
		if (word->argument == TIME &&
		    !read_time(argument, strcmp(word->name, "retry") == 0 ? SEC : MSEC, &value))
			return false;
		if (word->argument == NUMBER && !slice_to_u64(argument, &value))
			return false;
		if (value < word->min || value > word->max)
			return false;
	}
	if (word->offset != SIZE_MAX)
		memcpy((char *)spec + word->offset, &value, sizeof(value));
	if (word->fault != SIM_FAULT_NONE)
		spec->fault = (uint64_t)word->fault;
	return true;
}

static const struct word *find(struct slice name)
{
	for (size_t i = 0; i < COUNT_OF(words_table); i++)
		if (slice_eq(name, slice_str(words_table[i].name)))
			return &words_table[i];
	return NULL;
}

bool sim_spec_parse(struct sim_spec *spec, struct slice words, struct slice *wrong)
{
	struct sim_spec fresh = *spec;

	while (words.len > 0) {
		struct slice name = slice_cut(&words, '-');
		const struct word *word = find(name);

		*wrong = name;
		if (word == NULL || !apply(&fresh, word, &words))
			return false;
	}
	*spec = fresh;
	return true;
}

void sim_spec_print(FILE *out)
{
	static const char *const arguments[] = { "", "-N", "-TIME", "-WORD" };

	for (size_t i = 0; i < COUNT_OF(words_table); i++) {
		const struct word *word = &words_table[i];
		int width = (int)(16 - strlen(word->name));

		(void)fprintf(out, "  %s%-*s %s\n", word->name, width, arguments[word->argument],
			      word->meaning);
	}
}
