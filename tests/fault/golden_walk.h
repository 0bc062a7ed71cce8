/* golden_walk.h - a golden vector as a whole walk: a configuration with its model, the caller's request,
 * the provider's answer. What the vector leaves open is made up so that the walk comes to its end. */
#ifndef TESTS_FAULT_GOLDEN_WALK_H
#define TESTS_FAULT_GOLDEN_WALK_H

#include "codec/base/must.h"
#include "codec/dialects.h"
#include "gateway/http/http.h"
#include "gateway/settings/settings.h"
#include "tests/support/golden_set.h"

#include <stdio.h>
#include <stdlib.h>

#define WALK_KEY "fault-key-0123456789"
enum { WALK_USE_PRICE = 10000000 }; /* nano-USD; of a server tool */
#define WALK_TENANT "acme"

struct walk {
	const struct vector *vector;
	struct config *config;
	char *body, *revision;
	struct http_incoming in;
	struct provider_answer answer;
	char *kept[16]; /* texts that `answer` points to */
	size_t kept_count;
	bool expects_error;
};

/* A string of the vector, decoded; absent when it is not there. Lives as long as the walk. */
static struct slice walk_text(struct walk *walk, const char *path)
{
	struct slice text = json_tree_string(walk->vector->tree, path);

	if (slice_absent(text))
		return text;
	must(walk->kept_count < COUNT_OF(walk->kept));
	walk->kept[walk->kept_count++] = (char *)(uintptr_t)text.at;
	return text;
}

/* The whole value of a member, as it stands in the vector; absent when it is not there. */
static struct slice walk_value(const struct walk *walk, const char *path)
{
	const struct json_tree *node = json_tree_get(walk->vector->tree, path);

	return node == NULL ? (struct slice){ NULL, 0 } : golden_value(walk->vector, node);
}

/* A string, as it stands there. */
static struct slice walk_raw(const struct walk *walk, const char *path)
{
	const struct json_tree *node = json_tree_get(walk->vector->tree, path);

	return node == NULL ? (struct slice){ NULL, 0 } : node->text;
}

/* ---- the configuration ---- */

/* The profile keys of the configuration are those of a vector's caps (DESIGN 4.2). */
static void print_profile(const struct walk *walk, FILE *out)
{
	const struct json_tree *context = json_tree_get(walk->vector->tree, "context");
	struct slice caps = walk_value(walk, "config.caps");

	if (walk->vector->request) {
		(void)fprintf(out, "%.*s", (int)caps.len, caps.at);
		return;
	}
	(void)fprintf(out, "{image: true, structured_output: %s, think_tags: %s, audio: %s%s}",
		      json_tree_true(context, "native_schema") ? "true" : "false",
		      json_tree_true(context, "think_tags") ? "true" : "false",
		      json_tree_get(context, "audio_format") != NULL ? "true" : "false",
		      json_tree_get(context, "emulate_stop") != NULL ? ", max_stop: 0" : "");
}

/* Rule V10 is policy's in the product: tools need the capability that was declared. */
static bool tools_granted(const struct vector *vector)
{
	return json_tree_get(vector->tree, "client_capabilities") == NULL ||
	       json_tree_get(vector->tree, "client_capabilities.sampling.tools") != NULL;
}

static void print_config(const struct walk *walk, FILE *out)
{
	bool request = walk->vector->request;
	struct slice model = walk_raw(walk, request ? "config.model" : "context.requested_model");
	struct slice version = walk_raw(walk, "config.api_version");
	uint8_t digest[SHA256_BYTES];
	char hex[64];

	sha256(SLICE(WALK_KEY), digest);
	sha256_hex(digest, sizeof(hex), hex);
	(void)fprintf(out,
		      "providers:\n"
		      "  p: {dialect: %s, endpoints: [{url: \"http://127.0.0.1:9\"}], keys: [sk-p]",
		      dialect_get(walk->vector->dialect)->name);
	if (!slice_absent(version))
		(void)fprintf(out, ", version: \"%.*s\"", (int)version.len, version.at);
	(void)fprintf(out,
		      "}\n"
		      "models:\n"
		      "  - {id: m, provider: p, name: \"%.*s\", context: 1000000000,"
		      " price: {input: 3, output: 15, server_tool: 0.01}, profile: ",
		      (int)model.len, model.at);
	print_profile(walk, out);
	(void)fprintf(
		out,
		"}\n"
		"plans:\n"
		"  all: {capabilities: {tools: %s, images: true, audio: true},"
		" models: {allow: [m], default: m}, limits: {requests_per_minute: 60000000000,"
		" tokens_per_minute: 60000000000, concurrent: 1, max_tokens: 1000000000,"
		" usd_per_day: 10000000, tool_rounds: 1000}}\n"
		"tenants:\n"
		"  - {id: " WALK_TENANT ", plan: all, keys: [{sha256: %.64s, server: s}]}\n",
		tools_granted(walk->vector) ? "true" : "false", hex);
}

static struct config *load_config(const struct walk *walk)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	must(out != NULL);
	print_config(walk, out);
	must(fclose(out) == 0);
	const struct config_file file = { SLICE("/test/sluice.yaml"), slice_of(text, len) };
	const struct settings_source source = { .path = "/test/sluice.yaml",
						.files = &file,
						.file_count = 1 };
	struct config *config = settings_load(&source, stderr);
	if (config == NULL)
		(void)fprintf(stderr, "%s:\n%s", walk->vector->name, text);
	free(text);
	return config;
}

/* ---- the request ---- */

/* The schema that the vector's answer is structured output of; closed, so that it can be native. */
static void print_schema(const struct walk *walk, FILE *out)
{
	const struct json_tree *content = json_tree_get(walk->vector->tree, "out.content");
	const struct json_tree *input =
		content == NULL ? NULL : json_tree_get(content->first, "input");
	const struct json_tree *first = input == NULL ? NULL : input->first;

	(void)fprintf(out, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
	for (const struct json_tree *at = first; at != NULL; at = at->next)
		(void)fprintf(out, "%s\"%.*s\":{\"type\":\"%s\"}", at == first ? "" : ",",
			      (int)at->key.len, at->key.at,
			      at->kind == JSON_STRING ? "string" : "number");
	(void)fprintf(out, "},\"required\":[");
	for (const struct json_tree *at = first; at != NULL; at = at->next)
		(void)fprintf(out, "%s\"%.*s\"", at == first ? "" : ",", (int)at->key.len,
			      at->key.at);
	(void)fprintf(out, "]}");
}

static void print_tools(const struct walk *walk, const struct json_tree *tools, FILE *out)
{
	const char *before = ",\"tools\":[";

	if (tools == NULL || tools->first == NULL)
		return;
	for (const struct json_tree *at = tools->first; at != NULL; at = at->next) {
		(void)fprintf(out, "%s{\"name\":\"%.*s\",\"inputSchema\":", before,
			      (int)at->text.len, at->text.at);
		print_schema(walk, out);
		(void)fprintf(out, "}");
		before = ",";
	}
	(void)fprintf(out, "]");
}

/* A request that such an answer belongs to. */
static void print_request(const struct walk *walk, FILE *out)
{
	const struct json_tree *context = json_tree_get(walk->vector->tree, "context");
	struct slice stops = walk_value(walk, "context.emulate_stop");

	(void)fprintf(out,
		      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
		      "\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":%s}}],"
		      "\"maxTokens\":1000",
		      json_tree_get(context, "audio_format") == NULL
			      ? "\"text\",\"text\":\"What is the weather?\""
			      : "\"audio\",\"data\":\"UklGRg==\",\"mimeType\":\"audio/wav\"");
	print_tools(walk, json_tree_get(context, "tools"), out);
	if (json_tree_true(context, "native_schema"))
		(void)fprintf(out, ",\"toolChoice\":{\"mode\":\"required\"}");
	if (!slice_absent(stops))
		(void)fprintf(out, ",\"stopSequences\":%.*s", (int)stops.len, stops.at);
	if (walk->vector->streamed) /* the caller is told meanwhile */
		(void)fprintf(out, ",\"_meta\":{\"progressToken\":1}");
	(void)fprintf(out, "}}");
}

static void make_request(struct walk *walk)
{
	bool request = walk->vector->request;
	struct slice in = walk_value(walk, "in");
	size_t len = 0;
	FILE *out = open_memstream(&walk->body, &len);

	must(out != NULL);
	if (request)
		(void)fwrite(in.at, 1, in.len, out);
	else
		print_request(walk, out);
	must(fclose(out) == 0);
	walk->in = (struct http_incoming){ .method = SLICE("POST"),
					   .path = SLICE("/v1/sampling"),
					   .body = slice_of(walk->body, len) };
	walk->in.headers[HTTP_AUTHORIZATION] = SLICE("Bearer " WALK_KEY);
	walk->in.headers[HTTP_CONTENT_TYPE] = SLICE("application/json");
	if (walk->vector->streamed)
		walk->in.headers[HTTP_ACCEPT] = SLICE("application/json, text/event-stream");
	walk->in.headers[HTTP_PROTOCOL_VERSION] =
		walk_raw(walk, request ? "revision" : "context.revision");
}

/* ---- the answer ---- */

static const char *const says[DIALECT_COUNT] = {
	[DIALECT_ANTHROPIC] =
		"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"x\","
		"\"content\":[{\"type\":\"text\",\"text\":\"{}\"}],\"stop_reason\":\"end_turn\","
		"\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}",
	[DIALECT_OPENAI] =
		"{\"id\":\"c-1\",\"object\":\"chat.completion\",\"model\":\"x\",\"choices\":[{"
		"\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\","
		"\"content\":\"{}\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,"
		"\"total_tokens\":14}}",
	[DIALECT_RESPONSES] =
		"{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"model\":"
		"\"x\","
		"\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{"
		"\"type\":\"output_text\",\"text\":\"{}\"}]}],\"usage\":{\"input_tokens\":10,"
		"\"output_tokens\":4,\"total_tokens\":14}}",
};

static void make_answer(struct walk *walk)
{
	const struct json_tree *in = json_tree_get(walk->vector->tree, "in");
	int64_t status;

	if (walk->vector->request) {
		walk->answer = (struct provider_answer){
			.status = 200,
			.body = slice_str(says[walk->vector->dialect]),
		};
		return;
	}
	must(json_to_int64(walk_raw(walk, "http.status"), &status));
	walk->answer = (struct provider_answer){
		.status = (uint16_t)status,
		.headers = { .date = walk_text(walk, "http.headers.date"),
			     .retry_after = walk_text(walk, "http.headers.retry-after"),
			     .retry_after_ms = walk_text(walk, "http.headers.retry-after-ms"),
			     .should_retry = walk_text(walk, "http.headers.x-should-retry"),
			     .request_id = walk_text(walk, "http.headers.request-id"),
			     .content_type = walk_text(walk, "http.headers.content-type") },
		.body = in->kind == JSON_STRING ? walk_text(walk, "in") : walk_value(walk, "in"),
	};
}

/* ---- all of it ---- */

/* Structured output is asked for, which what is made up for requests is not: it is sent back, and refused. */
static bool asks_structured(const struct walk *walk)
{
	const struct json_tree *tools = json_tree_get(walk->vector->tree, "in.params.tools");
	const struct slice mode = walk_raw(walk, "in.params.toolChoice.mode");

	if (!walk->vector->request || tools == NULL || tools->first == NULL ||
	    tools->first->next != NULL || !slice_eq(mode, SLICE("required")))
		return false;
	const struct json_tree *name = json_tree_get(tools->first, "name");
	return name != NULL && slice_eq(name->text, SLICE("__schema__"));
}

static void walk_init(struct walk *walk, const struct vector *vector)
{
	*walk = (struct walk){ .vector = vector };
	walk->config = load_config(walk);
	must(walk->config != NULL);
	make_request(walk);
	make_answer(walk);
	walk->expects_error = json_tree_get(vector->tree, "error") != NULL || asks_structured(walk);
}

static void walk_fini(struct walk *walk)
{
	settings_free(&walk->config);
	free(walk->body);
	for (size_t i = 0; i < walk->kept_count; i++)
		free(walk->kept[i]);
}

#endif
