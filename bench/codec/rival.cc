#include "bench/codec/rival.hh"

#include <cmath>
#include <simdjson.h>
#include <stdexcept>

const char *rival_implementation()
{
	return SIMDJSON_STRINGIFY(SIMDJSON_BUILTIN_IMPLEMENTATION);
}

void Lists::clear()
{
	messages.clear();
	blocks.clear();
	inner.clear();
	tools.clear();
	stop.clear();
	hints.clear();
	results.clear();
	request = {};
	request.revision = REVISION_2025_11_25;
	request.prefer.cost = request.prefer.speed = request.prefer.intelligence = NAN;
	result = {};
}

void Lists::tie()
{
	request.messages = messages.data();
	request.message_count = uint32_t(messages.size());
	request.blocks = blocks.data();
	request.block_count = uint32_t(blocks.size());
	request.inner = inner.data();
	request.inner_count = uint32_t(inner.size());
	request.tools = tools.data();
	request.tool_count = uint32_t(tools.size());
	request.stop = stop.data();
	request.stop_count = uint32_t(stop.size());
	request.prefer.hints = hints.data();
	request.prefer.hint_count = uint32_t(hints.size());
	result.blocks = results.data();
	result.block_count = uint32_t(results.size());
}

tool_mode tool_mode_of(std::string_view name)
{
	if (name == "auto")
		return TOOL_MODE_AUTO;
	if (name == "required")
		return TOOL_MODE_REQUIRED;
	if (name == "none")
		return TOOL_MODE_NONE;
	throw std::runtime_error("toolChoice.mode");
}

stop_reason stop_reason_of(std::string_view name)
{
	if (name == "end_turn" || name == "stop")
		return STOP_END_TURN;
	if (name == "tool_use" || name == "tool_calls")
		return STOP_TOOL_USE;
	if (name == "max_tokens" || name == "length")
		return STOP_MAX_TOKENS;
	throw std::runtime_error("stop reason");
}
