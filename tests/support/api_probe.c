/* api_probe.c - what the gateway reads of requests of the direct APIs, for scripts: each line of stdin is "messages",
 * "count" or "chat", a tab and the body in hexadecimal digits. Each line of stdout has, behind tabs, the reason ("ok" or of
 * the refusal), its path, and of what was read: model, stream, store, service_tier and include_usage as JSON text ("" for
 * none), tokens, n, how many contents are URLs, and the types of the tools with commas between. */
#include "codec/base/must.h"
#include "codec/set.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_CAP = 64 << 20 };

static enum api api_of(struct slice name)
{
	if (slice_eq(name, SLICE("messages")))
		return API_MESSAGES;
	must(slice_eq(name, SLICE("count")) || slice_eq(name, SLICE("chat")));
	return slice_eq(name, SLICE("count")) ? API_COUNT : API_CHAT;
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* In place: the bytes are never more than the digits. */
static struct slice unhex(char *text, size_t len)
{
	for (size_t i = 0; i < len / 2; i++)
		text[i] = (char)(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
	return slice_of(text, len / 2);
}

static void put(struct slice text)
{
	(void)printf("\t%.*s", (int)text.len, text.at == NULL ? "" : text.at);
}

static void print(const struct api_request *q)
{
	static const enum api_field fields[] = { API_MODEL, API_STREAM, API_STORE, API_SERVICE_TIER,
						 API_INCLUDE_USAGE };

	for (size_t i = 0; i < COUNT_OF(fields); i++)
		put(q->at[fields[i]].text);
	(void)printf("\t%llu\t%llu\t%u\t", (unsigned long long)q->tokens, (unsigned long long)q->n,
		     q->urls);
	for (uint32_t i = 0; i < q->tool_count; i++)
		(void)printf("%s%.*s", i == 0 ? "" : ",", (int)q->tools[i].type.len,
			     q->tools[i].type.at == NULL ? "" : q->tools[i].type.at);
}

int main(void)
{
	struct json_work *work = json_work_new(codec_set_best());
	struct arena_pool pool = { .keep_max = 1024 };
	struct arena arena;
	char *line = NULL;
	size_t room = 0;

	must(work != NULL);
	for (ssize_t len; (len = getline(&line, &room, stdin)) > 0; arena_give(&arena)) {
		char *tab = memchr(line, '\t', (size_t)len);
		struct api_request request;
		struct fault fault;
		must(tab != NULL);
		const enum api api = api_of(slice_of(line, (size_t)(tab - line)));
		const struct slice body = unhex(tab + 1, (size_t)(line + len - 1 - (tab + 1)));
		arena_init(&arena, &pool, ARENA_CAP);
		const enum err err = api_request_read(api, body, work, &arena, &request, &fault);
		(void)printf("%s", err_info(err)->reason);
		put(err == ERR_OK ? slice_of(NULL, 0) : fault.path);
		if (err == ERR_OK)
			print(&request);
		(void)printf("\n");
	}
	free(line);
	arena_pool_fini(&pool);
	json_work_free(work);
	return 0;
}
