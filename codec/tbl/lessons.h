/* lessons.h - what a refusal can teach about a model: LESSON(symbol, name, meaning)
 *
 * The names are those of the admin listener's GET /lessons. The order is that in which lessons are applied: an
 * effort is left out before one is written. */
LESSON(NO_TEMPERATURE, "no_temperature", "no temperature is sent")
LESSON(NO_STOP, "no_stop", "stop sequences are searched in the answer")
LESSON(COMPLETION_TOKENS, "max_completion_tokens", "the limit of tokens is called max_completion_tokens")
LESSON(MAX_TOKENS, "max_tokens", "the limit of tokens is called max_tokens")
LESSON(NO_EFFORT, "no_reasoning_effort", "no reasoning effort is sent")
LESSON(EFFORT_NONE, "reasoning_effort_none", "tools are sent with the reasoning effort none")
LESSON(NO_FORCED_TOOL, "no_forced_tool", "a required tool is asked for with mode auto, and the answer is checked")
LESSON(NO_TOOL_CHOICE, "no_tool_choice", "no tool_choice is sent, and the answer is checked")
LESSON(NO_STRUCTURED, "no_response_format", "structured output is asked for as a tool, and the answer is checked")
LESSON(NO_PARALLEL, "no_parallel_tool_calls", "parallel tool calls are not ruled out")
LESSON(NO_USER_ID, "no_user_id", "metadata.user_id is not sent")
LESSON(NO_STREAM_OPTIONS, "no_stream_options", "a stream is not asked for its usage")
