// simdjson On-Demand. Without `Full` strings and opaque values are taken as the spans where they stand,
// which is what On-Demand is fast at: nothing inside them is looked at but UTF-8. With it every string is
// decoded and every value of an opaque object visited, so that bad escapes, numbers and grammar are found.
#include "bench/codec/rival.hh"

#include <simdjson.h>
#include <stdexcept>

using namespace simdjson;
using od_value = ondemand::value;

namespace
{

slice span(std::string_view text)
{
	while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' ||
				 text.back() == '\t'))
		text.remove_suffix(1);
	return slice{ text.data(), text.size() };
}

template <bool Full> class OnDemand : public Rival
{
      public:
	const char *name() const override
	{
		return Full ? "On-Demand, all validated" : "On-Demand, raw spans";
	}

	void run(struct rig *rig, enum task task, slice text) override
	{
		lists.clear();
		(void)rig_begin(rig);
		ondemand::document document =
			parser.iterate(text.at, text.len, text.len + SIMDJSON_PADDING);
		if (task == TASK_ANSWER_ANTHROPIC)
			anthropic(document.get_object());
		else if (task == TASK_ANSWER_OPENAI)
			openai(document.get_object());
		else
			envelope(document.get_object());
		lists.tie();
		enum err err = task == TASK_ANSWER_ANTHROPIC || task == TASK_ANSWER_OPENAI
				       ? rig_write_answer(rig, &lists.result)
				       : rig_write_request(rig, task, &lists.request);
		if (err != ERR_OK)
			throw std::runtime_error(err_info(err)->reason);
	}

      private:
	ondemand::parser parser, inner_parser;
	Lists lists;
	std::string arguments;

	// ---- values ----
	// A string as it stands, without its quotes.
	slice string(od_value value)
	{
		slice raw = span(value.raw_json_token());
		if (raw.len < 2 || raw.at[0] != '"')
			throw std::runtime_error("no string");
		if (Full)
			(void)std::string_view(value.get_string());
		return slice{ raw.at + 1, raw.len - 2 };
	}

	slice number(od_value value)
	{
		slice raw = span(value.raw_json_token());
		(void)double(value.get_double());
		return raw;
	}

	slice opaque(od_value value)
	{
		ondemand::object object = value.get_object();
		slice raw = span(object.raw_json());
		if (Full) {
			(void)bool(object.reset());
			visit(object);
		}
		return raw;
	}

	// As deep as the input is: our corpus is shallow, and this is no server.
	void visit(ondemand::object object)
	{
		for (ondemand::field field : object) {
			(void)std::string_view(field.unescaped_key());
			visit(field.value());
		}
	}

	void visit(od_value value)
	{
		switch (ondemand::json_type(value.type())) {
		case ondemand::json_type::object:
			return visit(ondemand::object(value.get_object()));
		case ondemand::json_type::array:
			for (od_value item : value.get_array())
				visit(item);
			return;
		case ondemand::json_type::string:
			(void)std::string_view(value.get_string());
			return;
		case ondemand::json_type::number:
			(void)ondemand::number(value.get_number());
			return;
		case ondemand::json_type::boolean:
			(void)bool(value.get_bool());
			return;
		default:
			if (!value.is_null())
				throw std::runtime_error("no JSON");
		}
	}

	// What nobody asked for: On-Demand steps over it, unless all is to be validated.
	void other(ondemand::field &field)
	{
		if (Full) {
			(void)std::string_view(field.unescaped_key());
			visit(field.value());
		}
	}

	// ---- requests ----
	void envelope(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "params")
				params(field.value().get_object());
			else if (key == "method")
				expect(field.value(), "sampling/createMessage");
			else if (key == "jsonrpc")
				expect(field.value(), "2.0");
			else
				other(field);
		}
	}

	void expect(od_value value, std::string_view text)
	{
		if (std::string_view(value.get_string()) != text)
			throw std::runtime_error("envelope");
	}

	void params(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "messages")
				messages(field.value().get_array());
			else if (key == "maxTokens")
				lists.request.max_tokens = field.value().get_int64();
			else if (key == "systemPrompt")
				lists.request.system = string(field.value());
			else if (key == "temperature")
				lists.request.temperature = number(field.value());
			else if (key == "modelPreferences")
				preferences(field.value().get_object());
			else if (key == "tools")
				tools(field.value().get_array());
			else if (key == "toolChoice")
				choice(field.value().get_object());
			else if (key == "stopSequences")
				for (od_value item : field.value().get_array())
					lists.stop.push_back(string(item));
			else if (key == "metadata")
				metadata(field.value().get_object());
			else
				other(field);
		}
	}

	void preferences(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "hints")
				for (ondemand::object hint : field.value().get_array())
					lists.hints.push_back(string(hint["name"]));
			else if (key == "costPriority")
				lists.request.prefer.cost = field.value().get_double();
			else if (key == "speedPriority")
				lists.request.prefer.speed = field.value().get_double();
			else if (key == "intelligencePriority")
				lists.request.prefer.intelligence = field.value().get_double();
			else
				other(field);
		}
	}

	void metadata(ondemand::object object)
	{
		for (ondemand::field field : object) {
			if (field.key() == "user_id")
				lists.request.user_id = string(field.value());
			else
				other(field);
		}
	}

	void choice(ondemand::object object)
	{
		for (ondemand::field field : object) {
			if (field.key() == "mode")
				lists.request.tool_mode = tool_mode_of(field.value().get_string());
			else
				other(field);
		}
	}

	void tools(ondemand::array array)
	{
		lists.request.tools_present = true;
		for (ondemand::object object : array) {
			lists.open_tool();
			for (ondemand::field field : object) {
				ondemand::raw_json_string key = field.key();
				if (key == "name")
					lists.tools.back().name = string(field.value());
				else if (key == "description")
					lists.tools.back().description = string(field.value());
				else if (key == "inputSchema")
					lists.tools.back().schema = opaque(field.value());
				else
					other(field);
			}
		}
	}

	void messages(ondemand::array array)
	{
		for (ondemand::object object : array) {
			lists.open_message();
			for (ondemand::field field : object) {
				ondemand::raw_json_string key = field.key();
				if (key == "role")
					lists.messages.back().assistant =
						is_assistant(field.value());
				else if (key == "content")
					content(field.value(), lists.blocks);
				else
					other(field);
			}
			lists.close_message();
		}
	}

	bool is_assistant(od_value value)
	{
		ondemand::raw_json_string role = value.get_raw_json_string();
		if (role == "assistant")
			return true;
		if (role != "user")
			throw std::runtime_error("role");
		return false;
	}

	void content(od_value value, std::vector<block> &into)
	{
		if (value.type() == ondemand::json_type::object) {
			add_block(value.get_object(), into);
			return;
		}
		for (ondemand::object object : value.get_array())
			add_block(object, into);
	}

	// The members come in any order: what they are for is known at the end.
	struct Found {
		slice text, data, mime, id, name, input, result_id;
		uint32_t first = 0, count = 0;
		bool is_error = false;
		ondemand::raw_json_string type;
	};

	void member(ondemand::field &field, Found &found)
	{
		ondemand::raw_json_string key = field.key();
		if (key == "type")
			found.type = field.value().get_raw_json_string();
		else if (key == "text")
			found.text = string(field.value());
		else if (key == "id")
			found.id = string(field.value());
		else if (key == "name")
			found.name = string(field.value());
		else if (key == "input")
			found.input = opaque(field.value());
		else if (key == "toolUseId")
			found.result_id = string(field.value());
		else if (key == "content") {
			found.first = uint32_t(lists.inner.size());
			content(field.value(), lists.inner);
			found.count = uint32_t(lists.inner.size()) - found.first;
		} else if (key == "isError")
			found.is_error = field.value().get_bool();
		else if (key == "data")
			found.data = string(field.value());
		else if (key == "mimeType")
			found.mime = string(field.value());
		else
			other(field);
	}

	void add_block(ondemand::object object, std::vector<block> &into)
	{
		Found found = {};
		for (ondemand::field field : object)
			member(field, found);
		block made = {};
		if (found.type == "text") {
			made.type = BLOCK_TEXT;
			made.text.text = found.text;
		} else if (found.type == "tool_use") {
			made.type = BLOCK_TOOL_USE;
			lists.request
				.call_turns++; // at most too many: whether there are any counts
			made.use.id = found.id;
			made.use.name = found.name;
			made.use.input = found.input;
		} else if (found.type == "tool_result") {
			made.type = BLOCK_TOOL_RESULT;
			made.is_error = found.is_error;
			made.result.id = found.result_id;
			made.result.first = found.first;
			made.result.count = found.count;
		} else if (found.type == "image") {
			made.type = BLOCK_IMAGE;
			made.media.data = found.data;
			made.media.mime = found.mime;
			lists.request.images++;
		} else
			throw std::runtime_error("type");
		into.push_back(made);
	}

	// ---- answers ----
	void anthropic(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "content")
				for (ondemand::object part : field.value().get_array())
					anthropic_block(part);
			else if (key == "model")
				lists.result.model = string(field.value());
			else if (key == "stop_reason")
				lists.result.stop = stop_reason_of(field.value().get_string());
			else if (key == "usage")
				usage(field.value().get_object());
			else
				other(field);
		}
	}

	void anthropic_block(ondemand::object object)
	{
		Found found = {};
		for (ondemand::field field : object)
			member(field, found);
		result_block made = {};
		made.is_tool_use = found.type == "tool_use";
		if (!made.is_tool_use && !(found.type == "text"))
			throw std::runtime_error("type");
		made.text = found.text;
		made.id = found.id;
		made.name = found.name;
		made.input = found.input;
		lists.results.push_back(made);
	}

	void usage(ondemand::object object)
	{
		struct usage &usage = lists.result.usage;
		usage.known = true;
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "input_tokens" || key == "prompt_tokens")
				usage.input += uint64_t(field.value().get_uint64());
			else if (key == "output_tokens" || key == "completion_tokens")
				usage.output = uint64_t(field.value().get_uint64());
			else if (key == "cache_read_input_tokens")
				usage.cache_read = uint64_t(field.value().get_uint64());
			else if (key == "cache_creation_input_tokens")
				usage.cache_write = uint64_t(field.value().get_uint64());
			else
				other(field);
		}
		usage.input += usage.cache_read + usage.cache_write;
	}

	void openai(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "choices")
				for (ondemand::object choice : field.value().get_array())
					openai_choice(choice);
			else if (key == "model")
				lists.result.model = string(field.value());
			else if (key == "usage")
				usage(field.value().get_object());
			else
				other(field);
		}
	}

	void openai_choice(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "message")
				openai_message(field.value().get_object());
			else if (key == "finish_reason")
				lists.result.stop = stop_reason_of(field.value().get_string());
			else
				other(field);
		}
	}

	void openai_message(ondemand::object object)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "content") {
				result_block made = {};
				made.text = string(field.value());
				lists.results.push_back(made);
			} else if (key == "tool_calls")
				for (ondemand::object call : field.value().get_array())
					openai_call(call);
			else
				other(field);
		}
	}

	void openai_call(ondemand::object object)
	{
		result_block made = {};
		made.is_tool_use = true;
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "id")
				made.id = string(field.value());
			else if (key == "function")
				openai_function(field.value().get_object(), made);
			else
				other(field);
		}
		lists.results.push_back(made);
	}

	void openai_function(ondemand::object object, result_block &made)
	{
		for (ondemand::field field : object) {
			ondemand::raw_json_string key = field.key();
			if (key == "name")
				made.name = string(field.value());
			else if (key == "arguments")
				made.input = unescaped(field.value().get_string());
			else
				other(field);
		}
	}

	// JSON that was in a string; it stays in the parser's memory until the next document.
	slice unescaped(std::string_view text)
	{
		if (Full) {
			arguments.assign(text);
			arguments.reserve(arguments.size() + SIMDJSON_PADDING);
			ondemand::document document = inner_parser.iterate(arguments);
			visit(ondemand::object(document.get_object()));
		}
		return slice{ text.data(), text.size() };
	}
};

} // namespace

std::unique_ptr<Rival> rival_ondemand(bool validate_all)
{
	if (validate_all)
		return std::make_unique<OnDemand<true>>();
	return std::make_unique<OnDemand<false>>();
}
