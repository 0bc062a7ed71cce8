/* grants.h - what a plan grants, and an MCP server of its own: rows that stand in both places.
 *
 * GRANT(key, type, field, minimum, default, maximum, meaning), GRANT_CHOICE(key, field, choices, default,
 * meaning), GRANT_LIST(key, type, field, maximum count, meaning), GRANT_ENTRIES(key, field, entry scope,
 * maximum count, meaning): as SETTING, CHOICE, LIST and ENTRIES (of a list) of settings.h, without the
 * scope; a change needs a reload. Rows of a group stand together. */
GRANT("capabilities.tools", BOOL, tools, 0, "false", 1, "may offer tools")
GRANT("capabilities.context", BOOL, context, 0, "false", 1, "initialize declares sampling.context, so that servers may ask for includeContext; the gateway has no context to add: it is taken from everybody and reported as include_context_ignored")
GRANT("capabilities.images", BOOL, images, 0, "false", 1, "may send images")
GRANT("capabilities.audio", BOOL, audio, 0, "false", 1, "may send audio")
GRANT_LIST("models.allow", GLOB, allow, 1024, "permitted models: globs over their ids; none without this")
GRANT_LIST("models.deny", GLOB, deny, 1024, "wins over allow")
GRANT_ENTRIES("models.aliases", aliases, ALIAS, 64, "models that do as well as what a hint names: they are meant where no permitted model answers to it")
GRANT("models.default", ID, default_model, 1, "(none)", 128, "taken when a request states no priorities")
GRANT("policy.max_messages", COUNT, max_messages, 1, "(no bound)", 1000000, "messages of a request")
GRANT("policy.max_blocks", COUNT, max_blocks, 1, "(no bound)", 1000000, "content blocks of a request, those in tool results too")
GRANT("policy.max_tools", COUNT, max_tools, 0, "(no bound)", 1000000, "tools of a request")
GRANT("policy.schema_bytes", SIZE, schema_bytes, 0, "(no bound)", 1073741824, "input schemas of all tools of a request together")
GRANT("policy.image_bytes", SIZE, image_bytes, 0, "(no bound)", 1073741824, "images of a request together, decoded, those in tool results too")
GRANT("policy.system_bytes", SIZE, system_bytes, 0, "(no bound)", 1073741824, "system prompt of a request, before policy adds its own; 0: none is taken")
GRANT_LIST("policy.tools.allow", GLOB, tools_allow, 1024, "globs that the names of offered tools must match (__schema__ too); empty: every name")
GRANT_LIST("policy.tools.deny", GLOB, tools_deny, 1024, "wins over allow")
GRANT("policy.tool_choice.auto", BOOL, choice_auto, 0, "true", 1, "false: tools with toolChoice auto, or none said, are refused")
GRANT("policy.tool_choice.required", BOOL, choice_required, 0, "true", 1, "false: toolChoice required is refused")
GRANT("policy.tool_choice.none", BOOL, choice_none, 0, "true", 1, "false: tools with toolChoice none are refused")
GRANT_CHOICE("policy.metadata.user_id", user_id, "pass|drop|refuse", "pass", "metadata.user_id: to the provider, left out, or the request is refused; other metadata never goes on")
GRANT("policy.system.prefix", PROMPT, system_prefix, 1, "(none)", 65536, "put before the system prompt of every request")
GRANT("policy.system.fixed", PROMPT, system_fixed, 1, "(none)", 65536, "sent instead of the system prompt of every request")
