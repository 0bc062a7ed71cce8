/* fronts.h - the fronts and their paths: FRONT(path, symbol of a struct front)
 *
 * A path that ends in '/' stands for all that begin so, but for "/" itself; the first row that fits counts. The first
 * row's front also answers for paths that nobody has. */
FRONT("/v1/sampling", rpc_front)
FRONT("/mcp/", mcp_front)
FRONT("/.well-known/oauth-protected-resource/mcp/", mcp_oauth_front)
FRONT("/v1/messages", direct_messages_front)
FRONT("/v1/messages/count_tokens", direct_count_front)
FRONT("/v1/chat/completions", direct_chat_front)
FRONT("/v1/models", direct_models_front)
FRONT("/v1/models/", direct_models_front)
FRONT("/", direct_hello_front)
FRONT("/api/hello", direct_hello_front)
FRONT("/v1/", direct_nowhere_front)
