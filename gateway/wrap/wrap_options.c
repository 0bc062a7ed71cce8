#include "gateway/wrap/wrap_options.h"

#include <errno.h>
#include <stdlib.h>

enum word { MODE, GATEWAY, KEY_FILE, PROVIDER, MODEL, BASE_URL, USD, WORDS };

static const struct {
	const char *name, *value, *does;
} words[WORDS] = {
	[MODE] = { "--sampling", "backfill|force|relay|refuse",
		   "backfill (default): answered here unless the client declares sampling; "
		   "force: answered here, whatever the client declares; relay: nothing is changed; "
		   "refuse: the server is not told of sampling, and what it asks is refused" },
	[GATEWAY] = { "--gateway", "URL", "of the Sluice gateway that answers, http or https" },
	[KEY_FILE] = { "--key-file", "F",
		       "a file that has the tenant key; else SLUICE_KEY has it" },
	[PROVIDER] = { "--provider", "anthropic|openai",
		       "instead of a gateway: one is started here, and ends with this; the "
		       "provider's key is in ANTHROPIC_API_KEY or OPENAI_API_KEY" },
	[MODEL] = { "--model", "NAME", "of that provider (default: its cheapest)" },
	[BASE_URL] = { "--base-url", "URL",
		       "another host that speaks the provider's format: everything before "
		       "/v1/messages or /chat/completions" },
	[USD] = { "--usd-per-day", "USD", "spent at most, while this runs (default: 1)" },
};

static const char *const modes[] = { [WRAP_BACKFILL] = "backfill",
				     [WRAP_FORCE] = "force",
				     [WRAP_RELAY] = "relay",
				     [WRAP_REFUSE] = "refuse" };

/* What programs commonly look for a provider's key in. A server that needs one of its own can be given it by
 * `-- env NAME=VALUE COMMAND`. */
static const char *const secrets[] = {
	"SLUICE_KEY",           "ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY",
	"AZURE_OPENAI_API_KEY", "AZURE_API_KEY",
	"GEMINI_API_KEY",       "MISTRAL_API_KEY",
	"GROQ_API_KEY",         "DEEPSEEK_API_KEY",
	"OPENROUTER_API_KEY",   "TOGETHER_API_KEY",
	"FIREWORKS_API_KEY",    "XAI_API_KEY",
	"COHERE_API_KEY",       "CO_API_KEY",
	"PERPLEXITY_API_KEY",   "CEREBRAS_API_KEY",
	"NVIDIA_API_KEY",       "DASHSCOPE_API_KEY",
	"MOONSHOT_API_KEY",     "AWS_BEARER_TOKEN_BEDROCK",
};

void wrap_options_forget_keys(void)
{
	for (size_t i = 0; i < COUNT_OF(secrets); i++)
		(void)unsetenv(secrets[i]);
}

void wrap_options_help(FILE *out)
{
	(void)fprintf(out,
		      "usage: sluice wrap [OPTION ...] -- COMMAND [ARG ...]\n\n"
		      "Starts COMMAND, an MCP server on standard input and output, and answers "
		      "what it asks a client's model.\n\n");
	for (size_t i = 0; i < WORDS; i++)
		(void)fprintf(out, "  %s %s\n      %s\n", words[i].name, words[i].value,
			      words[i].does);
	(void)fprintf(out, "\nSLUICE_KEY and the keys of providers are taken out of the command's "
			   "environment.\n");
}

/* Which option `arg` is, WORDS if none; *value is what stands behind its "=", NULL without one. */
static enum word find_word(const char *arg, const char **value)
{
	const size_t len = strcspn(arg, "=");
	size_t i = 0;

	*value = arg[len] == '=' ? arg + len + 1 : NULL;
	while (i < WORDS && (strlen(words[i].name) != len || strncmp(words[i].name, arg, len) != 0))
		i++;
	return (enum word)i;
}

static bool read_mode(const char *value, enum wrap_mode *out)
{
	for (size_t i = 0; i < COUNT_OF(modes); i++)
		if (strcmp(modes[i], value) == 0) {
			*out = (enum wrap_mode)i;
			return true;
		}
	return false;
}

/* Visible ASCII only: it goes into a header. */
static bool key_is_good(const char *key)
{
	for (const char *at = key; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	return *key != '\0';
}

static bool read_key_file(const char *path, char *key, char *problem)
{
	FILE *file = fopen(path, "re");

	if (file == NULL) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "--key-file %s: %s", path,
			       strerror(errno));
		return false;
	}
	const size_t len = fread(key, 1, WRAP_KEY_MAX, file);
	key[len] = '\0';
	const size_t end = strcspn(key, "\r\n");
	const int next = fgetc(file);
	const bool longer = end == WRAP_KEY_MAX && next != EOF && next != '\r' && next != '\n';
	key[end] = '\0';
	(void)fclose(file);
	if (key_is_good(key) && !longer)
		return true;
	(void)snprintf(problem, WRAP_PROBLEM_MAX,
		       "--key-file %s: its first line is no key; a key is up to %d visible ASCII "
		       "characters",
		       path, WRAP_KEY_MAX);
	return false;
}

static bool read_key(const char *path, struct wrap_options *out, char *problem)
{
	const char *key = getenv("SLUICE_KEY");

	if (path != NULL)
		return read_key_file(path, out->key, problem);
	if (key != NULL && key_is_good(key) && strlen(key) <= WRAP_KEY_MAX) {
		(void)snprintf(out->key, sizeof(out->key), "%s", key);
		return true;
	}
	(void)snprintf(
		problem, WRAP_PROBLEM_MAX, "%s",
		key == NULL || *key == '\0'
			? "the key is missing: set SLUICE_KEY, or give --key-file FILE"
			: "SLUICE_KEY is no key; a key is up to 256 visible ASCII characters");
	return false;
}

/* Everything in front of the command. The index of its first word, or 0 after a problem. */
static int read_words(int argc, char **argv, const char *values[WORDS], bool *help, char *problem)
{
	int i = 2;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *value;
		if (strcmp(argv[i], "--") == 0)
			return i + 1;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			*help = true;
			continue;
		}
		const enum word word = find_word(argv[i], &value);
		if (word == WORDS) {
			(void)snprintf(problem, WRAP_PROBLEM_MAX,
				       "there is no option %.64s; the server's own options stand "
				       "behind --",
				       argv[i]);
			return 0;
		}
		if (value == NULL && i + 1 < argc)
			value = argv[++i];
		if (value == NULL || *value == '\0' || strcmp(value, "--") == 0) {
			(void)snprintf(problem, WRAP_PROBLEM_MAX, "%s wants a value: %s %s",
				       words[word].name, words[word].name, words[word].value);
			return 0;
		}
		values[word] = value;
	}
	return i;
}

static bool refuse(char *problem, const char *text)
{
	(void)snprintf(problem, WRAP_PROBLEM_MAX, "%s", text);
	return false;
}

/* A plain decimal number, as it goes into the configuration. */
static bool usd_is_good(const char *text)
{
	const size_t whole = strspn(text, "0123456789");
	const size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	const size_t len = text[whole] == '.' ? whole + 1 + part : whole;

	return whole != 0 && (text[whole] != '.' || part != 0) && text[len] == '\0' && len < 20;
}

/* A gateway of its own. */
static bool read_own(const char *const values[WORDS], struct wrap_own_ask *out, char *problem)
{
	const char *usd = values[USD] == NULL ? "1" : values[USD];

	if (values[GATEWAY] != NULL || values[KEY_FILE] != NULL)
		return refuse(problem, "--provider starts a gateway; --gateway and --key-file are "
				       "for one that there is");
	const struct wrap_provider *provider = wrap_provider_find(values[PROVIDER]);
	if (provider == NULL) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "--provider is one of %s, not %.64s",
			       words[PROVIDER].value, values[PROVIDER]);
		return false;
	}
	const char *key = getenv(provider->variable);
	if ((key == NULL || *key == '\0') && values[BASE_URL] == NULL) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "the key of %s is missing: set %s",
			       provider->name, provider->variable);
		return false;
	}
	if (!usd_is_good(usd))
		return refuse(problem, "--usd-per-day wants a number of dollars, such as 0.5");
	*out = (struct wrap_own_ask){ .provider = provider,
				      .model = values[MODEL],
				      .base_url = values[BASE_URL],
				      .usd_per_day = usd };
	return true;
}

static bool read_gateway(const char *const values[WORDS], struct wrap_options *out, char *problem)
{
	if (values[MODEL] != NULL || values[BASE_URL] != NULL || values[USD] != NULL)
		return refuse(problem, "--model, --base-url and --usd-per-day go with --provider");
	if (values[GATEWAY] == NULL)
		return refuse(problem, "--gateway URL or --provider anthropic|openai is missing: "
				       "who is to answer?");
	out->gateway = values[GATEWAY];
	return read_key(values[KEY_FILE], out, problem);
}

bool wrap_options_read(int argc, char **argv, struct wrap_options *out, char *problem)
{
	const char *values[WORDS] = { NULL };

	*out = (struct wrap_options){ .mode = WRAP_BACKFILL };
	const int first = read_words(argc, argv, values, &out->help, problem);
	if (first == 0)
		return false;
	if (out->help)
		return true;
	out->command = argv + first;
	if (values[MODE] != NULL && !read_mode(values[MODE], &out->mode)) {
		(void)snprintf(problem, WRAP_PROBLEM_MAX, "--sampling is one of %s, not %.64s",
			       words[MODE].value, values[MODE]);
		return false;
	}
	if (first >= argc) {
		(void)snprintf(
			problem, WRAP_PROBLEM_MAX,
			"the server's command is missing: sluice wrap ... -- COMMAND ARG ...");
		return false;
	}
	if (out->mode == WRAP_RELAY || out->mode == WRAP_REFUSE) {
		out->gateway = NULL; /* nobody is asked */
		return true;
	}
	if (values[PROVIDER] != NULL)
		return read_own(values, &out->own, problem);
	return read_gateway(values, out, problem);
}
