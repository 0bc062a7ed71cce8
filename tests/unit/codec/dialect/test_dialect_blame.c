/* The blame for an error answer, by the words that hosts were seen to use. */
#include "codec/dialect/dialect_blame.h"

#include "tests/support/dialect_case.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int begin(void **state)
{
	static struct dialect_case c;

	case_init(&c, DIALECT_OPENAI);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

/* As most bodies look. */
#define SAYS(message) "{\"error\":{\"message\":\"" message "\"}}"
#define CODE(code, message) "{\"error\":{\"message\":\"" message "\",\"code\":" code "}}"
#define TYPE(type, message) "{\"error\":{\"message\":\"" message "\",\"type\":\"" type "\"}}"

struct row {
	const char *name;
	uint16_t status;
	const char *body;
};

static enum err decode(struct dialect_case *c, const struct row *row)
{
	case_reset(c);
	c->answer.status = row->status;
	return case_decode(c, row->body);
}

static void content_that_a_host_refuses_is_a_refusal(void **state)
{
	static const struct row rows[] = {
		{ "xAI", 403,
		  "{\"code\":\"permission-denied\",\"error\":\"Content violates usage guidelines. "
		  "\"}" },
		{ "xAI, with what was found", 403,
		  "{\"code\":\"The caller does not have permission to execute the specified "
		  "operation\",\"error\":\"Content violates usage guidelines. Failed check: "
		  "SAFETY_CHECK_TYPE_CSAM\"}" },
		{ "OpenRouter's moderation", 403,
		  "{\"error\":{\"message\":\"openai/o3 requires moderation on OpenAI. Your input "
		  "was "
		  "flagged for \\\"violence\\\"\",\"code\":403,\"metadata\":{\"reasons\":["
		  "\"violence\"],\"flagged_input\":\"how to\",\"provider_name\":\"OpenAI\"}}}" },
		{ "its metadata alone", 403,
		  "{\"error\":{\"message\":\"Forbidden\",\"code\":403,\"metadata\":{\"reasons\":[]}"
		  "}}" },
		{ "the same in a 200", 200,
		  "{\"error\":{\"message\":\"Forbidden\",\"code\":403,\"metadata\":{"
		  "\"flagged_input\":\"You\"}}}" },
		{ "OpenRouter, what is behind it", 403,
		  "{\"error\":{\"message\":\"Provider returned error\",\"code\":403,\"metadata\":{"
		  "\"raw\":\"{\\\"code\\\":\\\"permission-denied\\\",\\\"error\\\":\\\"Content "
		  "violates usage guidelines.\\\"}\",\"provider_name\":\"xAI\"}}}" },
		{ "the same as text", 400,
		  "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{"
		  "\"raw\":\"Output data may contain inappropriate content.\"}}}" },
		{ "DashScope", 400,
		  CODE("\"data_inspection_failed\"",
		       "Output data may contain inappropriate content.") },
		{ "DashScope's own format", 400,
		  "{\"code\":\"DataInspectionFailed\",\"message\":\"Input data may contain "
		  "inappropriate content.\",\"request_id\":\"r\"}" },
		{ "DashScope, by its text", 400,
		  TYPE("invalid_request_error",
		       "<400> InternalError.Algo.DataInspectionFailed: Input data may contain "
		       "inappropriate content.") },
		{ "Azure", 400,
		  "{\"error\":{\"message\":\"The response was filtered due to the prompt "
		  "triggering "
		  "Azure OpenAI's content management policy.\",\"type\":null,\"param\":\"prompt\","
		  "\"code\":\"content_filter\",\"status\":400,\"innererror\":{\"code\":"
		  "\"ResponsibleAIPolicyViolation\",\"content_filter_result\":{}}}}" },
		{ "Azure, by its inner error", 400,
		  "{\"error\":{\"message\":\"x\",\"code\":\"BadRequest\",\"innererror\":{\"code\":"
		  "\"ResponsibleAIPolicyViolation\"}}}" },
		{ "Moonshot", 400,
		  TYPE("content_filter",
		       "The request was rejected because it was considered high risk") },
		{ "z.ai", 400,
		  "{\"contentFilter\":[{\"level\":1,\"role\":\"user\"}],\"error\":{\"code\":"
		  "\"1301\","
		  "\"message\":\"System detected potentially unsafe or sensitive content in input "
		  "or "
		  "generation.\"}}" },
		{ "z.ai, as a number", 400, CODE("1301", "x") },
		{ "Volcengine", 400,
		  CODE("\"InputTextSensitiveContentDetected\"",
		       "The request failed because the input text may contain sensitive "
		       "information.") },
		{ "Volcengine, a kind of it", 400,
		  CODE("\"SensitiveContentDetected.SevereViolation\"", "x") },
		{ "Volcengine's other check", 400, CODE("\"OutputImageRiskDetection\"", "x") },
		{ "DeepSeek", 400, TYPE("invalid_request_error", "Content Exists Risk") },
		{ "OpenAI's policy", 400,
		  CODE("\"invalid_prompt\"",
		       "Invalid prompt: your prompt was flagged as potentially violating our usage "
		       "policy.") },
		{ "OpenAI's images", 400,
		  CODE("\"moderation_blocked\"",
		       "Your request was rejected as a result of our safety system.") },
		{ "OpenAI, a reason of its own", 400, CODE("\"cyber_policy_violation\"", "x") },
		{ "Anthropic", 400,
		  TYPE("invalid_request_error", "Output blocked by content filtering policy") },
		{ "MiniMax", 200,
		  "{\"id\":\"r\",\"choices\":null,\"model\":\"\",\"usage\":null,"
		  "\"input_sensitive\":true,\"base_resp\":{\"status_code\":1026,\"status_msg\":"
		  "\"input new_sensitive\"}}" },
		{ "DashScope, flat in a 200", 200,
		  "{\"code\":\"DataInspectionFailed\",\"message\":\"x\",\"request_id\":\"r\"}" },
		{ "StepFun", 451,
		  TYPE("censorship_blocked",
		       "The content you provided or machine outputted is blocked.") },
		{ "Cloudflare", 400, SAYS("Prompt blocked due to security configurations") },
		{ "Gemini", 400,
		  "{\"error\":{\"status\":\"PROHIBITED_CONTENT\",\"message\":\"x\"}}" },
		{ "Bedrock", 400, TYPE("guardrail_intervened", "x") },
		{ "Bedrock, by its text", 422, SAYS("Guardrail intervened on the input") },
		{ "Mistral's guardrail", 403,
		  "{\"message\":\"The request was blocked by the guardrail\",\"type\":\"x\"}" },
		{ "LiteLLM, which wraps it", 400,
		  SAYS("litellm.BadRequestError: XaiException - {'error': {'message': 'Content "
		       "violates usage guidelines'}}") },
		{ "new-api", 500, CODE("\"sensitive_words_detected\"", "x") },
		{ "an error object in a 200", 200, SAYS("Content violates usage guidelines") },
		{ "a quotation of the prompt's key", 403,
		  SAYS("Content violates usage guidelines: 'Your API key has been disabled'") },
		{ "a request, not its account", 403,
		  SAYS("Your input was flagged for 'API key not valid'") },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (decode(c, &rows[i]) != ERR_OK)
			fail_msg("%s: %s", rows[i].name, case_failure_text(c));
		assert_int_equal(c->result.stop, STOP_REFUSAL);
	}
}

static void only_what_is_about_the_account_blames_a_key(void **state)
{
	static const struct {
		struct row row;
		enum err err;
	} rows[] = {
		{ { "401, whatever it says", 401, SAYS("Content violates usage guidelines") },
		  ERR_PROVIDER_OPERATOR },
		{ { "by its type", 403, TYPE("permission_error", "no access") },
		  ERR_PROVIDER_OPERATOR },
		{ { "by its type, with a quotation", 403,
		    TYPE("permission_error", "No access to 'content violates usage guidelines'") },
		  ERR_PROVIDER_OPERATOR },
		{ { "by its code", 403, CODE("\"invalid_api_key\"", "content violates") },
		  ERR_PROVIDER_OPERATOR },
		{ { "by its beginning", 403,
		    SAYS("Your API key does not have permission to use the specified resource") },
		  ERR_PROVIDER_OPERATOR },
		{ { "another beginning", 403, SAYS("API key is blocked") }, ERR_PROVIDER_OPERATOR },
		{ { "You", 403,
		    SAYS("You have insufficient permissions for this operation. Missing scopes: "
			 "x") },
		  ERR_PROVIDER_OPERATOR },
		{ { "an account that was flagged", 403,
		    SAYS("Your account has been flagged for violating our usage policies") },
		  ERR_PROVIDER_OPERATOR },
		{ { "a key error that quotes the prompt", 403,
		    SAYS("Your API key may not say 'content violates usage guidelines'") },
		  ERR_PROVIDER_OPERATOR },
		{ { "xAI: no credits", 403,
		    "{\"code\":\"permission-denied\",\"error\":\"Your newly created team doesn't "
		    "have "
		    "any credits yet.\"}" },
		  ERR_PROVIDER_BILLING },
		{ { "xAI: a wrong key as 400", 400,
		    "{\"code\":\"Client specified an invalid argument\",\"error\":\"Incorrect API "
		    "key "
		    "provided: xa***.\"}" },
		  ERR_PROVIDER_OPERATOR },
		{ { "OpenRouter: the key's limit", 403,
		    CODE("403", "Key limit exceeded (total limit). Manage it at x") },
		  ERR_PROVIDER_BILLING },
		{ { "Google: a key that has expired", 400,
		    "[{\"error\":{\"code\":400,\"message\":\"API key expired. Please renew the API "
		    "key.\",\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"reason\":"
		    "\"API_KEY_INVALID\"}]}}]" },
		  ERR_PROVIDER_OPERATOR },
		{ { "Google: a suspended consumer", 403,
		    "[{\"error\":{\"code\":403,\"message\":\"Permission denied: Consumer 'x' has "
		    "been "
		    "suspended.\",\"details\":[{\"reason\":\"CONSUMER_SUSPENDED\"}]}}]" },
		  ERR_PROVIDER_OPERATOR },
		{ { "DashScope: arrears", 400,
		    "{\"code\":\"Arrearage\",\"message\":\"Access denied, please make sure your "
		    "account "
		    "is in good standing.\"}" },
		  ERR_PROVIDER_BILLING },
		{ { "z.ai: no balance", 429, CODE("\"1113\"", "Insufficient balance") },
		  ERR_PROVIDER_BILLING },
		{ { "Volcengine: overdue", 403, CODE("\"AccountOverdueError\"", "x") },
		  ERR_PROVIDER_BILLING },
		{ { "SiliconFlow: no balance", 403,
		    "{\"code\":30001,\"message\":\"Sorry, your account balance is "
		    "insufficient\"}" },
		  ERR_PROVIDER_BILLING },
		{ { "MiniMax: a wrong key", 200,
		    "{\"choices\":null,\"base_resp\":{\"status_code\":1004,\"status_msg\":\"login "
		    "fail\"}}" },
		  ERR_PROVIDER_OPERATOR },
		{ { "in a 200", 200, TYPE("permission_error", "x") }, ERR_PROVIDER_OPERATOR },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum err err = decode(c, &rows[i].row);
		if (err != rows[i].err || c->failure.blame != BLAME_KEY ||
		    c->failure.retry != RETRY_ELSEWHERE)
			fail_msg("%s: %s, blame %d", rows[i].row.name, err_info(err)->reason,
				 c->failure.blame);
	}
}

/* Another model may do it, but no other key: and nothing cools. */
static void whatever_else_is_forbidden_is_the_requests(void **state)
{
	static const struct row rows[] = {
		{ "nothing", 403, "" },
		{ "a page", 403, "<html><title>403 Forbidden</title></html>" },
		{ "a firewall", 403, SAYS("Your request was blocked.") },
		{ "xAI's code", 403, "{\"code\":\"permission-denied\",\"error\":\"x\"}" },
		{ "a region", 403,
		  CODE("\"unsupported_country_region_territory\"",
		       "Country, region, or territory not supported") },
		{ "a text that speaks of keys further on", 403,
		  SAYS("The function says: API key not valid") },
		{ "a text that quotes one who does", 403,
		  SAYS("'Your API key is blocked' is not permitted here") },
		{ "permission for what the caller named", 403,
		  SAYS("Access to the file Your API key is denied") },
		{ "OpenRouter: no endpoint for tools", 404,
		  CODE("404", "No endpoints found that support tool use. To learn more, visit x") },
		{ "for images", 404, CODE("404", "No endpoints found that support image input") },
		{ "for its parameters", 404,
		  CODE("404", "No endpoints found that can handle the requested parameters.") },
		{ "the same in a 200", 200,
		  CODE("404", "No endpoints found that support tool use") },
		{ "Ollama", 400, SAYS("registry.ollama.ai/library/x does not support tools") },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (decode(c, &rows[i]) != ERR_PROVIDER_REJECTED ||
		    c->failure.blame != BLAME_MODEL || c->failure.retry != RETRY_ELSEWHERE)
			fail_msg("%s: %s, blame %d", rows[i].name, case_failure_text(c),
				 c->failure.blame);
}

static void a_prompt_that_does_not_fit_is_told_in_every_hosts_words(void **state)
{
	static const struct row rows[] = {
		{ "Copilot", 400,
		  CODE("\"model_max_prompt_tokens_exceeded\"",
		       "prompt token count of 138392 exceeds the limit of 128000") },
		{ "Copilot, without the code", 400,
		  SAYS("prompt token count of 138392 exceeds the limit of 128000") },
		{ "Moonshot", 400,
		  TYPE("invalid_request_error", "Invalid request: Your request exceeded model "
						"token limit: 262144 (requested: "
						"300001)") },
		{ "SGLang", 400,
		  "{\"object\":\"error\",\"message\":\"Input length (70000 tokens) exceeds the "
		  "maximum "
		  "allowed length (32763 tokens). Use a shorter input or enable "
		  "--allow-auto-truncate.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":"
		  "400}" },
		{ "SGLang, before", 400,
		  "{\"object\":\"error\",\"message\":\"The input (70000 tokens) is longer than the "
		  "model's context length (32768 tokens).\",\"type\":\"BadRequestError\"}" },
		{ "SGLang, with the output", 400,
		  SAYS("Requested token count exceeds the model's maximum context length of 4096 "
		       "tokens. You requested a total of 5000 tokens") },
		{ "SGLang, in a stream", 200,
		  CODE("400", "Input length (70000 tokens) exceeds the maximum allowed length") },
		{ "TGI", 422,
		  "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be "
		  "<= "
		  "4097. Given: 5000 `inputs` tokens and 500 "
		  "`max_new_tokens`\",\"error_type\":\"validation\"}" },
		{ "Together", 422,
		  "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + "
		  "`max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 500 "
		  "`max_new_tokens`\",\"type\":\"invalid_request_error\",\"param\":\"max_tokens\","
		  "\"code\":null}}" },
		{ "TGI, the prompt alone", 422,
		  SAYS("Input validation error: `inputs` must have less than 4096 tokens. Given: "
		       "5000") },
		{ "z.ai", 400, CODE("\"1261\"", "Prompt exceeds max length") },
		{ "z.ai, as a number", 400, CODE("1261", "x") },
		{ "z.ai, by its text", 400, SAYS("Prompt exceeds max length") },
		{ "DashScope", 400,
		  CODE("\"invalid_parameter_error\"", "<400> InternalError.Algo.InvalidParameter: "
						      "Range of input length should be [1, "
						      "129024]") },
		{ "Cohere", 400,
		  "{\"message\":\"too many tokens: total number of tokens in the prompt cannot "
		  "exceed "
		  "4081 - received 4292.\"}" },
		{ "Cohere, by its size", 400,
		  "{\"message\":\"too many tokens: size limit exceeded by 4326 tokens.\"}" },
		{ "Bedrock", 400, "{\"message\":\"Input is too long for requested model.\"}" },
		{ "Bedrock, as AWS writes it", 400,
		  "{\"Message\":\"Too many input tokens. Max input tokens: 8192, request input "
		  "token "
		  "count: 9000\"}" },
		{ "Bedrock, of characters", 400,
		  "{\"message\":\"Malformed input request: expected maxLength: 42000, actual: "
		  "50000, "
		  "please reformat your input and try again.\"}" },
		{ "Bedrock, behind a gateway", 500,
		  SAYS("Input is too long for requested model.") },
		{ "Bedrock, wrapped", 400,
		  SAYS("BedrockException - {\\\"message\\\":\\\"Input is too long for requested "
		       "model.\\\"}") },
		{ "Perplexity", 400,
		  TYPE("invalid_message", "Prompt is too long for this model: 130000 tokens") },
		{ "Mistral", 400,
		  "{\"object\":\"error\",\"message\":\"Prompt contains 40000 tokens and 0 draft "
		  "tokens, "
		  "too large for model with 32768 maximum context "
		  "length\",\"type\":\"invalid_request_error\",\"code\":\"3051\"}" },
		{ "llama.cpp", 400,
		  "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available "
		  "context "
		  "size, try increasing it\",\"type\":\"exceed_context_size_error\"}}" },
		{ "llama.cpp, before", 500,
		  "{\"error\":{\"code\":500,\"message\":\"the request exceeds the available "
		  "context "
		  "size. try increasing the context size\",\"type\":\"server_error\"}}" },
		{ "LM Studio", 500, SAYS("Context size has been exceeded.") },
		{ "LM Studio, another", 400,
		  "{\"error\":\"Trying to keep the first 5000 tokens when context the overflows. "
		  "However, the model is loaded with context length of only 4096 tokens\"}" },
		{ "Ollama", 400,
		  SAYS("prompt too long; exceeded max context length by 123 tokens") },
		{ "Fireworks", 400,
		  SAYS("The prompt is too long: 140000, model maximum context length: 131071") },
		{ "Groq", 400,
		  CODE("\"context_length_exceeded\"",
		       "Please reduce the length of the messages or completion.") },
		{ "Cerebras, by its text", 400,
		  SAYS("Please reduce the length of the messages or completion. Current length is "
		       "9000 "
		       "while limit is 8192") },
		{ "DeepSeek", 400,
		  SAYS("This model's maximum context length is 131072 tokens. However, you "
		       "requested "
		       "140000") },
		{ "AI21", 422, "{\"detail\":\"Prompt has too many tokens\"}" },
		{ "vLLM", 400,
		  SAYS("You passed 40000 input tokens and requested 0 output tokens. However, the "
		       "model's context length is only 32768 tokens") },
		{ "vLLM, what is left", 400, SAYS("max_tokens must be at least 1, got -3000.") },
		{ "Vertex", 400,
		  SAYS("Unable to submit request because the input token count is 33000 but model "
		       "only "
		       "supports up to 32768.") },
		{ "GitHub Models", 413,
		  CODE("\"tokens_limit_reached\"",
		       "Request body too large for gpt-4o model. Max size: 8000 tokens.") },
		{ "SambaNova", 400,
		  SAYS("Requested generation length 1 is not possible! The provided prompt is 9000 "
		       "tokens long, so generating 1 tokens requires a sequence length of 9001, "
		       "but the "
		       "maximum supported sequence length is just 8192!") },
		{ "TensorRT-LLM", 500,
		  SAYS("Prompt length (5000) exceeds maximum input length (4096)") },
		{ "watsonx", 400,
		  SAYS("the number of input tokens 9000 cannot exceed the total tokens limit 8192 "
		       "for "
		       "this model") },
		{ "Volcengine", 400,
		  SAYS("Total tokens of image and text exceed max message tokens. Request id: x") },
		{ "Workers AI", 413,
		  SAYS("The estimated number of input and maximum output tokens (9000) exceeded "
		       "this "
		       "model context window limit (7968).") },
		{ "OpenRouter, what is behind it", 400,
		  "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{"
		  "\"raw\":\"{\\\"error\\\":{\\\"message\\\":\\\"Range of input length should be "
		  "[1, "
		  "6000]\\\"}}\"}}}" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (decode(c, &rows[i]) != ERR_CONTEXT_WINDOW || c->failure.retry != RETRY_NEVER ||
		    c->failure.blame != BLAME_REQUEST)
			fail_msg("%s: %s", rows[i].name, case_failure_text(c));
}

/* What is said of the content or the window means nothing where the caller may have said it, or where the
 * status speaks of something else. */
static void what_a_text_quotes_is_not_what_it_says(void **state)
{
	static const struct {
		struct row row;
		enum err err;
	} rows[] = {
		{ { "a tool's name", 400,
		    SAYS("Invalid schema for function 'content violates usage guidelines'") },
		  ERR_PROVIDER_REJECTED },
		{ { "in other quotes", 400, SAYS("\\\"context length\\\" is not a valid name") },
		  ERR_PROVIDER_REJECTED },
		{ { "in quotes that stay open", 400,
		    SAYS("'type' must be one of: `x`, is 'your prompt exceeds") },
		  ERR_PROVIDER_REJECTED },
		{ { "a model that is not known", 404,
		    SAYS("The model content filter does not exist") },
		  ERR_PROVIDER_OPERATOR },
		{ { "a rate limit", 429, SAYS("Rate limit of the content filter reached") },
		  ERR_PROVIDER_RATE },
		{ { "a rate limit by name", 429, CODE("\"content_filter\"", "x") },
		  ERR_PROVIDER_RATE },
		{ { "a failure that speaks of content", 500, SAYS("content filter unavailable") },
		  ERR_PROVIDER_DOWN },
		{ { "a failure that speaks of the window", 500, SAYS("the context window is ...") },
		  ERR_PROVIDER_DOWN },
		{ { "what is missing at TGI", 422,
		    SAYS("Input validation error: `inputs` cannot be empty") },
		  ERR_PROVIDER_REJECTED },
		{ { "too much output", 400,
		    SAYS("max_tokens: 100000 > 8192, which is the maximum allowed number of output "
			 "tokens") },
		  ERR_PROVIDER_REJECTED },
		{ { "another provider's key", 400,
		    "{\"error\":{\"message\":\"Provider returned "
		    "error\",\"code\":400,\"metadata\":{"
		    "\"raw\":\"{\\\"error\\\":{\\\"code\\\":\\\"invalid_api_key\\\"}}\"}}}" },
		  ERR_PROVIDER_REJECTED },
		{ { "metadata of another kind", 400,
		    "{\"error\":{\"message\":\"x\",\"code\":400,\"metadata\":{\"reasons\":null,"
		    "\"raw\":[1]}}}" },
		  ERR_PROVIDER_REJECTED },
		{ { "no error of MiniMax, and no answer", 200,
		    "{\"choices\":null,\"base_resp\":{\"status_code\":0,\"status_msg\":\"success\"}"
		    "}" },
		  ERR_PROVIDER_ANSWER },
		{ { "a base_resp of another type", 200, "{\"choices\":null,\"base_resp\":[7]}" },
		  ERR_PROVIDER_ANSWER },
		{ { "members of other types", 400,
		    "{\"error\":{\"message\":\"x\",\"metadata\":7,\"innererror\":[],\"code\":null}"
		    "}" },
		  ERR_PROVIDER_REJECTED },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum err err = decode(c, &rows[i].row);
		if (err != rows[i].err)
			fail_msg("%s: %s", rows[i].row.name, err_info(err)->reason);
	}
}

#define SAID "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"par\"}}]}\n\n"
#define DATA(json) "data: " json "\n\n"

/* In a stream an error has no status: as an object, or flat as some hosts send it. */
static void an_error_in_a_stream_is_judged_likewise(void **state)
{
	static const struct {
		const char *name, *body, *expect;
	} rows[] = {
		{ "content, by its code", DATA(CODE("\"data_inspection_failed\"", "x")),
		  "refusal | \"\"" },
		{ "content, behind some text", SAID DATA(SAYS("Content violates usage guidelines")),
		  "refusal | \"\"" },
		{ "OpenRouter's moderation",
		  SAID DATA(
			  "{\"id\":\"r\",\"choices\":[],\"error\":{\"code\":403,\"message\":\"x\","
			  "\"metadata\":{\"reasons\":[\"x\"]}}}"),
		  "refusal | \"\"" },
		{ "DashScope, flat",
		  SAID DATA("{\"code\":\"DataInspectionFailed\",\"message\":\"x\"}"),
		  "refusal | \"\"" },
		{ "SGLang, flat",
		  DATA("{\"object\":\"error\",\"message\":\"Input length (70000 tokens) exceeds "
		       "the "
		       "maximum allowed length\",\"type\":\"BadRequestError\",\"code\":400}"),
		  "-32014 The request does not fit the model's context window" },
		{ "a key", DATA(CODE("\"invalid_api_key\"", "content violates")),
		  "-32012 Provider authentication failed; the operator of this gateway has to look "
		  "at "
		  "it" },
		{ "a message beside choices is none",
		  DATA("{\"message\":\"x\",\"choices\":[{\"delta\":{\"content\":\"a\"},"
		       "\"finish_reason\":\"stop\"}]}"),
		  "endTurn | \"a\"" },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *why = stream_case_differs(&c, rows[i].body, rows[i].expect);
		if (why != NULL)
			fail_msg("%s: %s", rows[i].name, why);
	}
	stream_case_fini(&c);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(content_that_a_host_refuses_is_a_refusal),
		TEST(only_what_is_about_the_account_blames_a_key),
		TEST(whatever_else_is_forbidden_is_the_requests),
		TEST(a_prompt_that_does_not_fit_is_told_in_every_hosts_words),
		TEST(what_a_text_quotes_is_not_what_it_says),
		TEST(an_error_in_a_stream_is_judged_likewise),
	};
	return cmocka_run_group_tests_name("dialect_blame", tests, NULL, NULL);
}
