// rival.hh - the same tasks by simdjson: it reads, and our encoders write what it read.
//
// That is the best case for it: no tree is walked twice, and its strings are borrowed like ours. What
// our reader judges and a rival does not is left out: duplicate keys, the pairing of calls and results,
// base64, most of MCP's rules; and, with raw spans, all that is inside strings and opaque values.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

extern "C" {
#include "bench/codec/rig.h"
}

class Rival
{
      public:
	virtual ~Rival() = default;
	virtual const char *name() const = 0;

	// Reads `text`, behind which simdjson's padding is readable, and writes it by way of `rig`. Throws
	// simdjson_error, or std::runtime_error for what is JSON and not our corpus'.
	virtual void run(struct rig *rig, enum task task, slice text) = 0;
};

// "haswell" or "fallback": what this program was compiled for, and both halves of simdjson use it.
const char *rival_implementation();

std::unique_ptr<Rival> rival_ondemand(bool validate_all);
std::unique_ptr<Rival> rival_dom();

// The lists of one request or answer; their memory is kept from run to run.
struct Lists {
	std::vector<message> messages;
	std::vector<block> blocks, inner;
	std::vector<tool> tools;
	std::vector<slice> stop, hints;
	std::vector<result_block> results;
	sampling_request request;
	sampling_result result;

	void clear();
	// Points request and result to the lists: after the last push.
	void tie();
	// The roots of our corpus' schemas all have properties: rivals need not look.
	void open_tool()
	{
		tools.push_back(tool{ {}, {}, {}, SCHEMA_ROOT_PROPERTIES });
	}
	void open_message()
	{
		messages.push_back(message{ false, uint32_t(blocks.size()), 0 });
	}
	void close_message()
	{
		messages.back().count = uint32_t(blocks.size()) - messages.back().first;
	}
};

tool_mode tool_mode_of(std::string_view name);
stop_reason stop_reason_of(std::string_view name);
