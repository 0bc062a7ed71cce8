/* json_valid, the pull calls and jsonrpc_read must agree about every text; what is valid survives
 * escaping, unescaping and compaction, and no front of it is valid as well. */
#include "codec/base/must.h"
#include "codec/json/json_read.h"
#include "codec/json/json_scan.h"
#include "codec/json/json_write.h"
#include "codec/mcp/jsonrpc.h"
#include "codec/set.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Walks by the public calls alone, with the kinds of the open containers on a stack of its own. */
static bool walk(struct json_reader *r)
{
	bool objects[JSON_DEPTH_MAX];
	uint32_t depth = 0;
	struct slice raw;
	bool flag;

	do {
		bool taken = false;
		switch (json_peek(r)) {
		case JSON_OBJECT:
		case JSON_ARRAY:
			flag = json_peek(r) == JSON_OBJECT;
			taken = flag ? json_enter_object(r) : json_enter_array(r);
			if (taken)
				objects[depth++] = flag;
			break;
		case JSON_STRING:
			taken = json_string(r, &raw);
			break;
		case JSON_NUMBER:
			taken = json_number(r, &raw);
			break;
		case JSON_TRUE:
		case JSON_FALSE:
			taken = json_bool(r, &flag);
			break;
		case JSON_NULL:
			taken = json_null(r);
			break;
		case JSON_BAD:
			break;
		}
		if (!taken)
			return false;
		while (depth > 0 &&
		       !(objects[depth - 1] ? json_next_key(r, &raw) : json_next_item(r))) {
			if (r->fault.err != ERR_OK)
				return false;
			depth--;
		}
	} while (depth > 0);
	return json_finish(r);
}

/* Written into a string and read from there the text is JSON again, and no longer than before. */
static void check_escaping(struct slice text, struct json_work *work, struct arena *arena)
{
	struct gather g;
	struct json_reader r;
	struct slice raw;

	gather_init(&g, arena);
	gather_lit(&g, "\"");
	gather_json_escaped(&g, text);
	gather_lit(&g, "\"");
	json_open(&r, gather_flat(&g, arena), NULL, work);
	must(json_string(&r, &raw) && json_finish(&r));
	struct slice compact = json_str_plain(raw, arena);
	must(compact.len <= text.len && json_valid(compact, NULL, work, NULL));

	gather_init(&g, arena);
	gather_plain(&g, compact);
	json_open(&r, gather_flat(&g, arena), NULL, work);
	must(json_string(&r, &raw) && json_finish(&r));
	must(slice_eq(json_str_plain(raw, arena), compact));
	must(json_str_eq(raw, compact) && json_str_same(raw, raw));
}

/* A container or a string ends where it ends. */
static void check_fronts(struct slice text, struct json_work *work)
{
	const char *at = scan_space(text.at, text.at + text.len);
	size_t len = text.len;

	while (len > 0 && scan_is_space(text.at[len - 1]))
		len--;
	if (*at != '{' && *at != '[' && *at != '"')
		return;
	for (size_t cut = len - 1; cut > 0; cut /= 2)
		must(!json_valid(slice_of(text.at, cut), NULL, work, NULL));
}

static void check_numbers(struct slice text)
{
	struct json_reader r;
	struct slice raw;
	int64_t value;

	json_open(&r, text, NULL, NULL);
	if (json_peek(&r) != JSON_NUMBER || !json_number(&r, &raw) || !json_to_int64(raw, &value))
		return;
	double number = json_to_double(raw);
	must((double)value == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work; /* the fuzzer's own state: made once */
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct json_reader r;
	struct jsonrpc rpc;
	struct fault fault = { .err = ERR_OK }, rpc_fault;
	struct slice text = slice_of((const char *)data, size);

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	arena_init(&arena, &pool, 64 * size + 65536);
	bool valid = json_valid(text, NULL, work, &fault);
	json_open(&r, text, NULL, work);
	must(walk(&r) == valid);
	must(r.fault.err == fault.err);
	must(valid || (r.fault.offset == fault.offset && fault.offset <= size));

	enum err err = jsonrpc_read(text, work, &arena, &rpc, &rpc_fault);
	bool malformed = err == ERR_JSON || err == ERR_DUPLICATE_KEY || err == ERR_TOO_DEEP ||
			 err == ERR_TOO_MANY_KEYS;
	must(malformed == !valid);
	must(valid || (err == fault.err && rpc_fault.offset == fault.offset));
	if (valid) {
		check_escaping(text, work, &arena);
		check_fronts(text, work);
		check_numbers(text);
	}
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
