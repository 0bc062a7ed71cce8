/* models.h - the models that this version knows: what `models:` entries have that only name one.
 *
 * MODEL(name, vendor, context, max_output, input, output, cache_read, cache_write, speed, intelligence,
 *       flags, source)
 *
 * `name` is what the provider calls it. `context` is what a prompt may have, so the smaller input bound
 * where a vendor has one. Prices are USD per million tokens; SAME: cached tokens cost what input does. A
 * price with steps stands here with its highest one, because budgets rely on bounds. `source` says where
 * the facts come from and of when they are: Anthropic's own table has 128,000 for the output of Sonnet
 * 4.6, where the source has 64,000.
 *
 * Not from there but ours: `speed` and `intelligence` (0 to 1, to compare these models with each other,
 * until speed was measured), and the flags of contract pages rather than catalogues: who refuses a forced
 * tool, stop sequences, tools with reasoning, and who still continues an assistant's message. What a
 * source leaves open is not set. Facts of the file win over all of this. */

#define ANTHROPIC "anthropic"
#define OPENAI    "openai"
#define GOOGLE    "google"
#define MISTRAL   "mistral"
#define DEEPSEEK  "deepseek"
#define GROQ      "groq"

#define JULY "models.dev@f3fc692 (MIT), 2026-07-02"

/* GPT-5: reasons; the newer ones take tools without that only. */
#define GPT5       (IMAGE | STRUCTURED | REASONING | NO_TEMPERATURE | NO_STOP | COMPLETION_TOKENS)
/* Mistral's own members and bounds, where they are others than OpenAI's. */
#define MISTRAL_WAYS \
	(NINE_CHARACTER_IDS | NO_USER_AFTER_TOOL | AUDIO_AS_STRING | NO_USER_ID | NO_STREAM_OPTIONS | TEMPERATURE_TO_1_5)

MODEL("claude-haiku-4-5", ANTHROPIC, 200000, 64000, 1, 5, 0.1, 1.25, 0.75, 0.55, IMAGE | PREFILL, JULY)
MODEL("claude-sonnet-4-6", ANTHROPIC, 1000000, 128000, 3, 15, 0.3, 3.75, 0.6, 0.8, IMAGE, JULY)
MODEL("claude-sonnet-5", ANTHROPIC, 1000000, 128000, 2, 10, 0.2, 2.5, 0.6, 0.84, IMAGE | NO_TEMPERATURE, JULY)
MODEL("claude-opus-4-8", ANTHROPIC, 1000000, 128000, 5, 25, 0.5, 6.25, 0.45, 0.9, IMAGE | NO_TEMPERATURE, JULY)
MODEL("claude-fable-5", ANTHROPIC, 1000000, 128000, 10, 50, 1, 12.5, 0.4, 0.95, IMAGE | NO_TEMPERATURE, JULY)
MODEL("claude-sonnet-5-5", ANTHROPIC, 1000000, 128000, 2, 10, 0.1, 2.5, 0.6, 0.88,
      IMAGE | NO_TEMPERATURE | STRUCTURED | NO_FORCED_TOOL, "models.dev@482fb01 (MIT), 2026-10-03")
MODEL("claude-opus-5-5", ANTHROPIC, 1000000, 128000, 4, 20, 0.2, 5, 0.45, 0.95,
      IMAGE | NO_TEMPERATURE | STRUCTURED | NO_FORCED_TOOL, "release notes, 2026-09-22")
/* 0.1, 0.5, 0.01 and 0.125 up to 100,000 tokens of prompt */
MODEL("claude-haiku-5-5", ANTHROPIC, 1000000, 128000, 0.5, 2.5, 0.05, 0.625, 0.85, 0.68, IMAGE | NO_TEMPERATURE,
      "write-ups of its release, 2026-10-07")

MODEL("gpt-4.1", OPENAI, 1047576, 32768, 2, 8, 0.5, SAME, 0.6, 0.6, IMAGE | STRUCTURED | COMPLETION_TOKENS, JULY)
MODEL("gpt-4.1-mini", OPENAI, 1047576, 32768, 0.4, 1.6, 0.1, SAME, 0.75, 0.45, IMAGE | STRUCTURED | COMPLETION_TOKENS,
      JULY)
MODEL("gpt-4o-mini", OPENAI, 128000, 16384, 0.15, 0.6, 0.075, SAME, 0.75, 0.35, IMAGE | STRUCTURED | COMPLETION_TOKENS,
      JULY)
MODEL("gpt-5-mini", OPENAI, 272000, 128000, 0.25, 2, 0.025, SAME, 0.65, 0.65, GPT5, JULY)
MODEL("gpt-5.4", OPENAI, 922000, 128000, 2.5, 15, 0.25, SAME, 0.5, 0.88, GPT5 | EFFORT_NONE, JULY)
MODEL("gpt-5.4-mini", OPENAI, 272000, 128000, 0.75, 4.5, 0.075, SAME, 0.7, 0.7, GPT5 | EFFORT_NONE, JULY)
MODEL("gpt-5.6-terra", OPENAI, 922000, 128000, 2.5, 15, 0.25, SAME, 0.5, 0.92, GPT5 | EFFORT_NONE,
      "models.dev@89b873e (MIT)")

/* The two whose audio costs more than their text (1.0) do not take any here: by the price of text too little would be settled. */
MODEL("gemini-2.5-flash", GOOGLE, 1048576, 65536, 0.3, 2.5, 0.03, SAME, 0.75, 0.6, IMAGE | STRUCTURED, JULY)
MODEL("gemini-2.5-pro", GOOGLE, 1048576, 65536, 1.25, 10, 0.125, SAME, 0.5, 0.78, IMAGE | AUDIO | STRUCTURED, JULY)
MODEL("gemini-3-flash-preview", GOOGLE, 1048576, 65536, 0.5, 3, 0.05, SAME, 0.75, 0.72, IMAGE | STRUCTURED, JULY)
MODEL("gemini-3.5-flash", GOOGLE, 1048576, 65536, 1.5, 9, 0.15, SAME, 0.7, 0.8, IMAGE | AUDIO | STRUCTURED, JULY)
MODEL("gemini-3.1-pro-preview", GOOGLE, 1048576, 65536, 2, 12, 0.2, SAME, 0.5, 0.88, IMAGE | AUDIO | STRUCTURED, JULY)

MODEL("mistral-large-latest", MISTRAL, 262144, 262144, 0.5, 1.5, SAME, SAME, 0.55, 0.62, IMAGE | MISTRAL_WAYS, JULY)
MODEL("mistral-medium-latest", MISTRAL, 262144, 262144, 0.4, 2, SAME, SAME, 0.65, 0.55, IMAGE | MISTRAL_WAYS, JULY)
MODEL("mistral-small-latest", MISTRAL, 256000, 256000, 0.15, 0.6, SAME, SAME, 0.75, 0.45, IMAGE | MISTRAL_WAYS, JULY)

/* The first two think unless told not to, and then want their reasoning back with every call of a tool. */
MODEL("deepseek-v4-pro", DEEPSEEK, 1000000, 384000, 0.435, 0.87, 0.003625, SAME, 0.4, 0.8, STRUCTURED, JULY)
MODEL("deepseek-v4-flash", DEEPSEEK, 1000000, 384000, 0.14, 0.28, 0.0028, SAME, 0.6, 0.65, STRUCTURED, JULY)
MODEL("deepseek-chat", DEEPSEEK, 1000000, 384000, 0.14, 0.28, 0.0028, SAME, 0.55, 0.6, NOTHING, JULY)

MODEL("llama-3.3-70b-versatile", GROQ, 131072, 32768, 0.59, 0.79, SAME, SAME, 0.9, 0.4, COMPLETION_TOKENS, JULY)
MODEL("openai/gpt-oss-120b", GROQ, 131072, 65536, 0.15, 0.6, 0.075, SAME, 0.95, 0.55, STRUCTURED | COMPLETION_TOKENS,
      JULY)
MODEL("qwen/qwen3-32b", GROQ, 131072, 40960, 0.29, 0.59, SAME, SAME, 0.9, 0.45, COMPLETION_TOKENS | THINK_TAGS, JULY)

#undef ANTHROPIC
#undef OPENAI
#undef GOOGLE
#undef MISTRAL
#undef DEEPSEEK
#undef GROQ
#undef JULY
#undef GPT5
#undef MISTRAL_WAYS
