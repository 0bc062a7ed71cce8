#include "codec/dialect/dialect_blame.h"

#include "codec/base/attr.h"
#include "codec/dialect/dialect_words.h"

struct named_class {
	struct slice name; /* words_same */
	enum failure_class class;
};

/* A row of these is said where both are; `also` may be empty. */
struct told_class {
	struct slice phrase, also;
	enum failure_class class;
};

#define NAMED(name, class)               \
	{                                \
		SLICE_INIT(name), class, \
	}
#define TOLD(phrase, also, class)                            \
	{                                                    \
		SLICE_INIT(phrase), SLICE_INIT(also), class, \
	}

/* ---- what an error says ---- */

static bool is_named(const struct error_body *body, struct slice name)
{
	return words_same(body->code, name) || words_same(body->type, name) ||
	       words_same(body->detail_code, name) || words_same(body->inner_code, name);
}

static enum failure_class class_by_name(const struct named_class *row, size_t count,
					const struct error_body *body)
{
	for (; count > 0; count--, row++)
		if (is_named(body, row->name))
			return row->class;
	return CLASS_NONE;
}

static bool starts(struct slice text, struct slice prefix)
{
	return text.len >= prefix.len && slice_eq_nocase(slice_of(text.at, prefix.len), prefix);
}

/* Whether the message holds the text of another error: that stands in quotes, and is nobody's quotation. */
static bool wraps_error(struct slice message)
{
	return slice_has_nocase(message, SLICE("message\\\":")) ||
	       slice_has_nocase(message, SLICE("message':"));
}

static bool says(struct slice message, struct slice phrase)
{
	return words_say(message, phrase) ||
	       (slice_has_nocase(message, phrase) && wraps_error(message));
}

static enum failure_class class_by_text(const struct told_class *row, size_t count,
					struct slice message)
{
	for (; count > 0; count--, row++)
		if (says(message, row->phrase) && (row->also.len == 0 || says(message, row->also)))
			return row->class;
	return CLASS_NONE;
}

/* ---- content ---- */

/* Names by which hosts refuse a prompt or what was written: codes, types, reasons. */
static const struct named_class content_names[] = {
	NAMED("contentfilter", CLASS_REFUSAL), /* Azure, Moonshot */
	NAMED("contentfiltered", CLASS_REFUSAL),
	NAMED("contentpolicy", CLASS_REFUSAL),
	NAMED("contentpolicyviolation", CLASS_REFUSAL), /* OpenAI */
	NAMED("contentpolicyviolationerror", CLASS_REFUSAL),
	NAMED("imagecontentpolicyviolation", CLASS_REFUSAL),
	NAMED("contentmoderation", CLASS_REFUSAL),
	NAMED("contentblocked", CLASS_REFUSAL),
	NAMED("contentviolation", CLASS_REFUSAL),
	NAMED("moderationblocked", CLASS_REFUSAL),
	NAMED("responsibleaipolicyviolation", CLASS_REFUSAL), /* Azure */
	NAMED("cyberpolicy", CLASS_REFUSAL),
	NAMED("cyberpolicyviolation", CLASS_REFUSAL),
	NAMED("policyviolation", CLASS_REFUSAL),
	NAMED("usagepolicyviolation", CLASS_REFUSAL),
	NAMED("promptblocked", CLASS_REFUSAL),
	NAMED("datainspectionfailed", CLASS_REFUSAL),     /* DashScope */
	NAMED("sensitivecontentdetected", CLASS_REFUSAL), /* Volcengine */
	NAMED("sensitivewordsdetected", CLASS_REFUSAL),   /* new-api */
	NAMED("1301", CLASS_REFUSAL),                     /* z.ai */
	NAMED("1026", CLASS_REFUSAL),                     /* MiniMax: of the input */
	NAMED("1027", CLASS_REFUSAL),                     /* MiniMax: of the output */
	NAMED("censorshipblocked", CLASS_REFUSAL),        /* StepFun */
	NAMED("guardrailintervened", CLASS_REFUSAL),      /* Bedrock */
	NAMED("guardrailblocked", CLASS_REFUSAL),
	NAMED("guardrailviolation", CLASS_REFUSAL),
	NAMED("safety", CLASS_REFUSAL), /* Gemini, from here on */
	NAMED("prohibitedcontent", CLASS_REFUSAL),
	NAMED("blocklist", CLASS_REFUSAL),
	NAMED("recitation", CLASS_REFUSAL),
	NAMED("spii", CLASS_REFUSAL),
	NAMED("imagesafety", CLASS_REFUSAL),
};

/* Parts of such names, where a status leaves it open who is to blame. */
static const struct slice content_marks[] = {
	SLICE_INIT("SensitiveContent"), /* Volcengine: InputTextSensitiveContentDetected.PolicyViolation */
	SLICE_INIT("sensitive_content"), SLICE_INIT("RiskDetection"),  SLICE_INIT("content_filter"),
	SLICE_INIT("ContentFilter"),     SLICE_INIT("content_policy"), SLICE_INIT("ContentPolicy"),
	SLICE_INIT("data_inspection"),   SLICE_INIT("DataInspection"), SLICE_INIT("moderation"),
	SLICE_INIT("guardrail"),         SLICE_INIT("censorship"),     SLICE_INIT("unsafe"),
	SLICE_INIT("inappropriate"),
};

#define CONTENT(phrase) TOLD(phrase, "", CLASS_REFUSAL)

static const struct told_class content_texts[] = {
	CONTENT("content violates"), /* xAI */
	CONTENT("usage guideline"),
	CONTENT("usage polic"), /* OpenAI */
	CONTENT("acceptable use"),
	CONTENT("community guideline"),
	CONTENT("safety guideline"),
	CONTENT("safety polic"),
	CONTENT("safety system"),
	CONTENT("safety filter"),
	CONTENT("safety reasons"),
	CONTENT("content polic"),
	CONTENT("content management polic"), /* Azure */
	CONTENT("content filter"), /* Anthropic: Output blocked by content filtering policy */
	CONTENT("content safety"),
	CONTENT("content moderation"),
	CONTENT("content exists risk"), /* DeepSeek */
	CONTENT("inappropriate content"),
	CONTENT("sensitive content"),
	CONTENT("sensitive information"),
	CONTENT("sensitive word"),
	CONTENT("unsafe content"),
	CONTENT("harmful content"),
	CONTENT("prohibited content"),
	CONTENT("offensive content"),
	CONTENT("considered high risk"), /* Moonshot */
	CONTENT("was flagged"),          /* OpenRouter */
	CONTENT("were flagged"),
	CONTENT("been flagged"),
	CONTENT("flagged as"),
	CONTENT("flagged for"),
	CONTENT("flagged by"),
	CONTENT("requires moderation"),
	CONTENT("by moderation"),
	CONTENT("failed moderation"),
	CONTENT("moderation polic"),
	CONTENT("guardrail intervened"),
	CONTENT("guardrails intervened"),
	TOLD("blocked", "guardrail", CLASS_REFUSAL),
	TOLD("violat", "guardrail", CLASS_REFUSAL),
	CONTENT("outputted is blocked"), /* StepFun */
	CONTENT("content is blocked"),
	CONTENT("content was blocked"),
	CONTENT("content blocked"),
	CONTENT("prompt was blocked"),
	CONTENT("prompt is blocked"),
	CONTENT("prompt blocked"), /* Cloudflare */
	CONTENT("prompt has been blocked"),
	CONTENT("response blocked"),
	CONTENT("response was blocked"),
	CONTENT("responsible ai"),
	CONTENT("\xe6\x95\x8f\xe6\x84\x9f"), /* "sensitive" */
	CONTENT("\xe8\xbf\x9d\xe8\xa7\x84"), /* "against the rules" */
};

/* Whether a status may be about content as well as about anything else. */
static bool may_mean_content(int status)
{
	switch (status) {
	case 401:
	case 402:
	case 404:
	case 405:
	case 408:
	case 409:
	case 413:
	case 429:
	case 498:
		return false;
	default:
		return status == 200 || status / 100 == 4;
	}
}

static bool has_mark(const struct error_body *body)
{
	const struct slice names[] = { body->code, body->type, body->detail_code,
				       body->inner_code };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		for (size_t j = 0; j < COUNT_OF(content_marks); j++)
			if (slice_has_nocase(names[i], content_marks[j]))
				return true;
	return false;
}

/* Whether it says by its members that the content was refused. */
static bool names_content(const struct error_body *body, int status)
{
	if (status == 401 || status == 402 || status == 429)
		return false;
	return class_by_name(content_names, COUNT_OF(content_names), body) != CLASS_NONE ||
	       (may_mean_content(status) && (body->moderated || has_mark(body)));
}

/* ---- keys ---- */

/* A text may quote the request, which may say anything; one that blames a key is believed only if it
 * speaks to the key's owner: otherwise a caller could take the key from all others. */
static bool speaks_of_account(struct slice message)
{
	static const struct slice fronts[] = {
		SLICE_INIT("API key"),           SLICE_INIT("API token"),
		SLICE_INIT("Your API"),          SLICE_INIT("Your key"),
		SLICE_INIT("Your account"),      SLICE_INIT("Your organization"),
		SLICE_INIT("Your organisation"), SLICE_INIT("Your team"),
		SLICE_INIT("Your newly"),        SLICE_INIT("Your project"),
		SLICE_INIT("Your workspace"),    SLICE_INIT("Your subscription"),
		SLICE_INIT("Your plan"),         SLICE_INIT("Your access"),
		SLICE_INIT("Your token"),        SLICE_INIT("Your credit"),
	};

	for (size_t i = 0; i < COUNT_OF(fronts); i++)
		if (starts(message, fronts[i]))
			return true;
	return false;
}

/* Whether it is about what the owner sent. */
static bool speaks_of_request(struct slice message)
{
	static const struct slice fronts[] = {
		SLICE_INIT("Your request"), SLICE_INIT("Your prompt"),
		SLICE_INIT("Your input"),   SLICE_INIT("Your message"),
		SLICE_INIT("Your content"), SLICE_INIT("Your image"),
		SLICE_INIT("Your query"),   SLICE_INIT("Your conversation"),
		SLICE_INIT("Your text"),    SLICE_INIT("Your tool"),
	};

	for (size_t i = 0; i < COUNT_OF(fronts); i++)
		if (starts(message, fronts[i]))
			return true;
	return false;
}

static bool is_credible(struct slice message)
{
	return speaks_of_account(message) ||
	       (slice_starts(message, SLICE("You")) && !speaks_of_request(message));
}

/* Phrases of such a text, under the statuses that refuse a request. */
static const struct told_class owner_texts[] = {
	TOLD("credit balance", "", CLASS_BILLING),  TOLD("spend limit", "", CLASS_BILLING),
	TOLD("spending limit", "", CLASS_BILLING),  TOLD("usage limits", "", CLASS_BILLING),
	TOLD("api key not valid", "", CLASS_KEY),   TOLD("api key is not valid", "", CLASS_KEY),
	TOLD("api key is invalid", "", CLASS_KEY),  TOLD("api key expired", "", CLASS_KEY),
	TOLD("api key has expired", "", CLASS_KEY), TOLD("api key was reported", "", CLASS_KEY),
	TOLD("api key has been", "", CLASS_KEY),
};

/* Its phrases under 403. */
static const struct told_class owner_forbidden[] = {
	TOLD("credits", "", CLASS_BILLING),       TOLD("billing", "", CLASS_BILLING),
	TOLD("balance", "", CLASS_BILLING),       TOLD("permission", "", CLASS_PERMISSION),
	TOLD("authorized", "", CLASS_PERMISSION), TOLD("have access", "", CLASS_PERMISSION),
	TOLD("scope", "", CLASS_PERMISSION),      TOLD("suspended", "", CLASS_PERMISSION),
	TOLD("disabled", "", CLASS_PERMISSION),
};

static enum failure_class class_of_owner(struct slice message, int status)
{
	enum failure_class class;

	if (!is_credible(message))
		return CLASS_NONE;
	class = class_by_text(owner_texts, COUNT_OF(owner_texts), message);
	if (class != CLASS_NONE || status != 403)
		return class;
	class = class_by_text(owner_forbidden, COUNT_OF(owner_forbidden), message);
	return class == CLASS_NONE && speaks_of_account(message) ? CLASS_PERMISSION : class;
}

/* ---- names ---- */

/* Names that decide whatever the status is: type, code or details.error_code. */
static const struct named_class named_classes[] = {
	NAMED("contextlengthexceeded", CLASS_CONTEXT),
	NAMED("contextwindowexceeded", CLASS_CONTEXT),
	NAMED("contextwindowexceedederror", CLASS_CONTEXT),
	NAMED("modelcontextwindowexceeded", CLASS_CONTEXT),
	NAMED("exceedcontextsizeerror", CLASS_CONTEXT),       /* llama.cpp */
	NAMED("modelmaxprompttokensexceeded", CLASS_CONTEXT), /* Copilot */
	NAMED("tokenslimitreached", CLASS_CONTEXT),           /* GitHub Models */
	NAMED("prompttoolong", CLASS_CONTEXT),
	NAMED("inputtoolong", CLASS_CONTEXT),
	NAMED("prompttokenstoolong", CLASS_CONTEXT),
	NAMED("tokenstoolong", CLASS_CONTEXT),
	NAMED("1261", CLASS_CONTEXT), /* z.ai */
	NAMED("insufficientquota", CLASS_BILLING),
	NAMED("creditbalanceexhausted", CLASS_BILLING),
	NAMED("organizationspendlimitexceeded", CLASS_BILLING),
	NAMED("organizationusagelimitexceeded", CLASS_BILLING),
	NAMED("projectspendlimitexceeded", CLASS_BILLING),
	NAMED("billinghardlimitreached", CLASS_BILLING),
	NAMED("billingnotactive", CLASS_BILLING),
	NAMED("billingerror", CLASS_BILLING),
	NAMED("billingdisabled", CLASS_BILLING), /* Google */
	NAMED("enforcedspendlimitreached", CLASS_BILLING),
	NAMED("contractspendlimitreached", CLASS_BILLING),
	NAMED("exceededcurrentquotaerror", CLASS_BILLING), /* Moonshot */
	NAMED("accountoverdueerror", CLASS_BILLING),       /* Volcengine */
	NAMED("insufficientbalance", CLASS_BILLING),
	NAMED("insufficientcredits", CLASS_BILLING),
	NAMED("budgetexceeded", CLASS_BILLING), /* LiteLLM */
	NAMED("arrearage", CLASS_BILLING),      /* DashScope */
	NAMED("30001", CLASS_BILLING),          /* SiliconFlow */
	NAMED("1113", CLASS_BILLING),           /* z.ai */
	NAMED("1008", CLASS_BILLING),           /* MiniMax */
	NAMED("invalidapikey", CLASS_KEY),
	NAMED("authenticationerror", CLASS_KEY),
	NAMED("apikeyinvalid", CLASS_KEY),          /* Google */
	NAMED("apikeyserviceblocked", CLASS_KEY),   /* Google */
	NAMED("consumersuspended", CLASS_KEY),      /* Google */
	NAMED("organizationrestricted", CLASS_KEY), /* Groq */
	NAMED("accountdeactivated", CLASS_KEY),
	NAMED("accountsuspended", CLASS_KEY),
	NAMED("1004", CLASS_KEY), /* MiniMax */
	NAMED("permissionerror", CLASS_PERMISSION),
	NAMED("insufficientpermissions", CLASS_PERMISSION),
	NAMED("modelnotfound", CLASS_MODEL),
	NAMED("keymodelaccessdenied", CLASS_MODEL), /* LiteLLM */
	NAMED("teammodelaccessdenied", CLASS_MODEL),
	NAMED("deploymentnotfound", CLASS_MODEL),
	NAMED("toolusefailed", CLASS_BAD_CALL),
	NAMED("malformedfunctioncall", CLASS_BAD_CALL),
	NAMED("requesttoolarge", CLASS_TOO_LARGE),
};

/* Names that decide only where no status does: an error object in a 200 body. */
static const struct named_class statusless_classes[] = {
	NAMED("invalidrequesterror", CLASS_REJECTED),
	NAMED("notfounderror", CLASS_MODEL),
	NAMED("ratelimiterror", CLASS_RATE),
	NAMED("ratelimitexceeded", CLASS_RATE),
	NAMED("slowdown", CLASS_RATE),
	NAMED("resourceexhausted", CLASS_RATE),
	NAMED("1002", CLASS_RATE), /* MiniMax */
	NAMED("1039", CLASS_RATE), /* MiniMax */
	/* of a response that failed */
	NAMED("invalidprompt", CLASS_REJECTED),
	NAMED("invalidimage", CLASS_REJECTED),
	NAMED("invalidimageformat", CLASS_REJECTED),
	NAMED("invalidbase64image", CLASS_REJECTED),
	NAMED("imagetoolarge", CLASS_REJECTED),
	NAMED("imagetoosmall", CLASS_REJECTED),
	NAMED("imageparseerror", CLASS_REJECTED),
	NAMED("imagefiletoolarge", CLASS_REJECTED),
	NAMED("unsupportedimagemediatype", CLASS_REJECTED),
	NAMED("emptyimagefile", CLASS_REJECTED),
};

/* ---- texts ---- */

/* Texts that, at the beginning of a message, decide whatever else is said: what this one request asks
 * for is too much there, though its status speaks of the key. Behind a beginning a text may quote. */
static const struct told_class begun_classes[] = {
	TOLD("This request requires more credits, or fewer max_tokens", "", CLASS_CREDIT),
	TOLD("Prompt tokens limit exceeded", "", CLASS_CREDIT),
	TOLD("Request too large for", "", CLASS_MINUTE),
	TOLD("Key limit exceeded", "", CLASS_BILLING),             /* OpenRouter */
	TOLD("Incorrect API key provided", "", CLASS_KEY),         /* xAI, as 400 */
	TOLD("No endpoints found that support", "", CLASS_UNABLE), /* OpenRouter */
	TOLD("No endpoints found that can handle", "", CLASS_UNABLE),
	/* TGI puts the names of its parameters into quotes */
	TOLD("Input validation error: `inputs`", "must be <=", CLASS_CONTEXT),
	TOLD("Input validation error: `inputs`", "must have less than", CLASS_CONTEXT),
	/* some hosts say so as 500 */
	TOLD("Context size has been exceeded", "", CLASS_CONTEXT),
	TOLD("The request exceeds the available context size", "", CLASS_CONTEXT),
	TOLD("Input is too long for requested model", "", CLASS_CONTEXT),
	TOLD("Prompt length (", "exceed", CLASS_CONTEXT),
	TOLD("Input length (", "exceed", CLASS_CONTEXT),
};

#define CONTEXT(phrase) TOLD(phrase, "", CLASS_CONTEXT)

/* Phrases that count under the statuses that refuse a request. */
static const struct told_class told_classes[] = {
	CONTEXT("context length"),
	CONTEXT("context window"),
	CONTEXT("context size"),
	CONTEXT("context limit"),
	CONTEXT("prompt is too long"), /* Anthropic */
	CONTEXT("prompt too long"),
	CONTEXT("input is too long"), /* Bedrock */
	CONTEXT("input too long"),
	CONTEXT("inputs are too long"),
	CONTEXT("messages are too long"),
	CONTEXT("conversation is too long"),
	CONTEXT("maximum model length"),  /* vLLM */
	CONTEXT("maximum prompt length"), /* xAI */
	CONTEXT("maximum input length"),
	CONTEXT("maximum sequence length"),
	CONTEXT("maximum supported sequence length"),            /* SambaNova */
	CONTEXT("exceeds the maximum number of tokens allowed"), /* Gemini */
	CONTEXT("model token limit"),                            /* Moonshot */
	CONTEXT("range of input length"),                        /* DashScope */
	CONTEXT("prompt exceeds"),                               /* z.ai */
	CONTEXT("too many tokens"),                              /* Cohere, AI21 */
	CONTEXT("too many input tokens"),                        /* Bedrock */
	CONTEXT("too many prompt tokens"),
	CONTEXT("expected maxlength"),        /* Bedrock */
	CONTEXT("max message tokens"),        /* Volcengine */
	CONTEXT("max_input_len"),             /* TensorRT-LLM */
	CONTEXT("max_prefill_tokens"),        /* SGLang */
	CONTEXT("must be at least 1, got -"), /* vLLM: what the prompt leaves of the window */
	CONTEXT("length of the messages"),    /* Groq, Cerebras: please reduce */
	TOLD("input length", "exceed", CLASS_CONTEXT), /* SGLang */
	TOLD("input token", "exceed", CLASS_CONTEXT),
	TOLD("input token count", "only supports", CLASS_CONTEXT), /* Vertex */
	TOLD("prompt token", "exceed", CLASS_CONTEXT),             /* Copilot */
	TOLD("prompt length", "exceed", CLASS_CONTEXT),
	TOLD("tokens in the prompt", "exceed", CLASS_CONTEXT), /* Cohere */
	TOLD("token count", "exceeds the model", CLASS_CONTEXT),
	/* this model cannot */
	TOLD("does not support tools", "", CLASS_UNABLE), /* Ollama */
	TOLD("does not support image", "", CLASS_UNABLE),
	TOLD("not a multimodal model", "", CLASS_UNABLE), /* vLLM */
	TOLD("0 image(s) may be provided", "", CLASS_UNABLE),
};

static enum failure_class class_by_beginning(struct slice message)
{
	for (size_t i = 0; i < COUNT_OF(begun_classes); i++)
		if (starts(message, begun_classes[i].phrase) &&
		    (begun_classes[i].also.len == 0 || says(message, begun_classes[i].also)))
			return begun_classes[i].class;
	return CLASS_NONE;
}

/* ---- the whole ---- */

static enum failure_class class_by_status(int status)
{
	switch (status) {
	case 401:
		return CLASS_KEY;
	case 402:
		return CLASS_BILLING;
	case 403:
		return CLASS_FORBIDDEN;
	case 404:
		return CLASS_MODEL;
	case 413:
		return CLASS_TOO_LARGE;
	case 429:
		return CLASS_RATE;
	case 408: /* took too long to send */
	case 409: /* conflict: the SDKs retry it */
	case 498: /* Groq's flex capacity */
		return CLASS_DOWN;
	default:
		return status >= 500 ? CLASS_DOWN : status < 400 ? CLASS_REDIRECT : CLASS_REJECTED;
	}
}

/* The class by the phrases of a text, where neither a name nor a beginning gave one. */
static enum failure_class class_told(struct slice message, int status)
{
	enum failure_class class = CLASS_NONE;

	if (status == 400 || status == 403 || status == 413 || status == 422 || status == 200)
		class = class_of_owner(message, status);
	if (class == CLASS_NONE &&
	    (status == 400 || status == 413 || status == 422 || status == 200))
		class = class_by_text(told_classes, COUNT_OF(told_classes), message);
	return class;
}

/* Of what decides by itself: content before keys. */
static enum failure_class class_said(const struct error_body *body, int status)
{
	const struct slice message = body->message;

	if (names_content(body, status))
		return CLASS_REFUSAL;
	enum failure_class class = class_by_beginning(message);
	if (class == CLASS_NONE)
		class = class_by_name(named_classes, COUNT_OF(named_classes), body);
	if ((class == CLASS_NONE || class == CLASS_PERMISSION) && may_mean_content(status) &&
	    !speaks_of_account(message) &&
	    class_by_text(content_texts, COUNT_OF(content_texts), message) != CLASS_NONE)
		return CLASS_REFUSAL;
	return class == CLASS_NONE ? class_told(message, status) : class;
}

enum failure_class blame_class(const struct error_body *body, int status, bool *open)
{
	enum failure_class class = class_said(body, status);

	*open = (status == 400 || status == 404 || status == 422) &&
		(class == CLASS_NONE || class == CLASS_UNABLE);
	if (class != CLASS_NONE)
		return class;
	if (status == 429 && body->day)
		return CLASS_DAY;
	if (status != 200)
		return class_by_status(status);
	class = class_by_name(statusless_classes, COUNT_OF(statusless_classes), body);
	return class == CLASS_NONE ? CLASS_DOWN : class;
}

enum failure_class blame_class_wrapped(const struct error_body *wrapped, int status)
{
	const enum failure_class class = class_said(wrapped, status);

	return class == CLASS_CONTEXT || class == CLASS_REFUSAL ? class : CLASS_NONE;
}
