// simdjson's DOM: validates everything but duplicate keys, and decodes every string. What it decoded has
// to be escaped again where it holds something to escape, by a writer as good as we know how to make one.
#include "bench/codec/rival.hh"

#include "bench/codec/escape.hh"

#include <algorithm>
#include <charconv>
#include <simdjson.h>
#include <stdexcept>

using namespace simdjson;

namespace
{

class Dom : public Rival
{
      public:
	const char *name() const override
	{
		return "DOM";
	}

	void run(struct rig *rig, enum task task, slice text) override
	{
		lists.clear();
		(void)rig_begin(rig);
		store.resize(std::max(store.size(), 8 * text.len + 65536));
		free = store.data();
		dom::object document = parser.parse(text.at, text.len, false);
		if (task == TASK_ANSWER_ANTHROPIC)
			anthropic(document);
		else if (task == TASK_ANSWER_OPENAI)
			openai(document);
		else
			envelope(document);
		lists.tie();
		enum err err = task == TASK_ANSWER_ANTHROPIC || task == TASK_ANSWER_OPENAI
				       ? rig_write_answer(rig, &lists.result)
				       : rig_write_request(rig, task, &lists.request);
		if (err != ERR_OK)
			throw std::runtime_error(err_info(err)->reason);
	}

      private:
	dom::parser parser, inner_parser;
	Lists lists;
	std::string arguments;
	std::vector<char> scratch,
		store; // kept from run to run; of `store` what is behind `free` is
	char *free = nullptr;

	// ---- values ----
	char *memory(size_t size)
	{
		char *bytes = free;
		if (size > size_t(store.data() + store.size() - free))
			throw std::bad_alloc();
		free += size;
		return bytes;
	}

	// As the inside of a JSON string: itself, unless something in it has to be escaped.
	slice string(dom::element value)
	{
		std::string_view text = value;
		if (escape_clean(text) == text.size())
			return slice{ text.data(), text.size() };
		char *bytes = memory(escape_room(text.size()));
		free = escape_put(bytes, text);
		return slice{ bytes, size_t(free - bytes) };
	}

	slice number(dom::element value)
	{
		char *bytes = memory(32);
		return slice{ bytes, size_t(put_number(bytes, value) - bytes) };
	}

	char *put_number(char *at, dom::element value)
	{
		if (value.type() == dom::element_type::INT64)
			return std::to_chars(at, at + 24, int64_t(value)).ptr;
		if (value.type() == dom::element_type::UINT64)
			return std::to_chars(at, at + 24, uint64_t(value)).ptr;
		return internal::to_chars(at, at + 32, double(value));
	}

	// As compact JSON text.
	slice opaque(dom::object value)
	{
		scratch.resize(scratch.capacity());
		size_t len = put(0, value);
		char *bytes = memory(len);
		memcpy(bytes, scratch.data(), len);
		return slice{ bytes, len };
	}

	char *room(size_t at, size_t need)
	{
		if (scratch.size() < at + need)
			scratch.resize(2 * (at + need));
		return scratch.data() + at;
	}

	size_t put(size_t at, std::string_view text)
	{
		char *begin = room(at, escape_room(text.size()) + 2), *end = begin;
		*end++ = '"';
		end = escape_put(end, text);
		*end++ = '"';
		return at + size_t(end - begin);
	}

	size_t put(size_t at, char sign)
	{
		*room(at, 1) = sign;
		return at + 1;
	}

	size_t put(size_t at, dom::object object)
	{
		char next = '{';
		for (dom::key_value_pair field : object) {
			at = put(at, next);
			at = put(at, field.key);
			at = put(at, ':');
			at = put(at, field.value);
			next = ',';
		}
		if (next == '{')
			at = put(at, '{');
		return put(at, '}');
	}

	size_t put(size_t at, dom::array array)
	{
		char next = '[';
		for (dom::element item : array) {
			at = put(at, next);
			at = put(at, item);
			next = ',';
		}
		if (next == '[')
			at = put(at, '[');
		return put(at, ']');
	}

	// As deep as the input is: our corpus is shallow, and this is no server.
	size_t put(size_t at, dom::element value)
	{
		switch (value.type()) {
		case dom::element_type::OBJECT:
			return put(at, dom::object(value));
		case dom::element_type::ARRAY:
			return put(at, dom::array(value));
		case dom::element_type::STRING:
			return put(at, std::string_view(value));
		case dom::element_type::BOOL:
			return word(at, bool(value) ? "true" : "false");
		case dom::element_type::NULL_VALUE:
			return word(at, "null");
		default:
			return at + size_t(put_number(room(at, 32), value) - (scratch.data() + at));
		}
	}

	size_t word(size_t at, std::string_view text)
	{
		memcpy(room(at, text.size()), text.data(), text.size());
		return at + text.size();
	}

	// ---- requests ----
	void envelope(dom::object object)
	{
		for (dom::key_value_pair field : object) {
			if (field.key == "params")
				params(field.value);
			else if (field.key == "method")
				expect(field.value, "sampling/createMessage");
			else if (field.key == "jsonrpc")
				expect(field.value, "2.0");
		}
	}

	void expect(std::string_view value, std::string_view text)
	{
		if (value != text)
			throw std::runtime_error("envelope");
	}

	void params(dom::object object)
	{
		for (dom::key_value_pair field : object) {
			if (field.key == "messages")
				messages(field.value);
			else if (field.key == "maxTokens")
				lists.request.max_tokens = field.value;
			else if (field.key == "systemPrompt")
				lists.request.system = string(field.value);
			else if (field.key == "temperature")
				lists.request.temperature = number(field.value);
			else if (field.key == "modelPreferences")
				preferences(field.value);
			else if (field.key == "tools")
				tools(field.value);
			else if (field.key == "toolChoice")
				lists.request.tool_mode = tool_mode_of(field.value["mode"]);
			else if (field.key == "stopSequences")
				for (dom::element item : dom::array(field.value))
					lists.stop.push_back(string(item));
			else if (field.key == "metadata")
				lists.request.user_id = string(field.value["user_id"]);
		}
	}

	void preferences(dom::object object)
	{
		for (dom::key_value_pair field : object) {
			if (field.key == "hints")
				for (dom::element hint : dom::array(field.value))
					lists.hints.push_back(string(hint["name"]));
			else if (field.key == "costPriority")
				lists.request.prefer.cost = field.value;
			else if (field.key == "speedPriority")
				lists.request.prefer.speed = field.value;
			else if (field.key == "intelligencePriority")
				lists.request.prefer.intelligence = field.value;
		}
	}

	void tools(dom::array array)
	{
		lists.request.tools_present = true;
		for (dom::object object : array) {
			lists.open_tool();
			for (dom::key_value_pair field : object) {
				if (field.key == "name")
					lists.tools.back().name = string(field.value);
				else if (field.key == "description")
					lists.tools.back().description = string(field.value);
				else if (field.key == "inputSchema")
					lists.tools.back().schema = opaque(field.value);
			}
		}
	}

	void messages(dom::array array)
	{
		for (dom::object object : array) {
			lists.open_message();
			for (dom::key_value_pair field : object) {
				if (field.key == "role")
					lists.messages.back().assistant = is_assistant(field.value);
				else if (field.key == "content")
					content(field.value, lists.blocks);
			}
			lists.close_message();
		}
	}

	bool is_assistant(std::string_view role)
	{
		if (role != "assistant" && role != "user")
			throw std::runtime_error("role");
		return role == "assistant";
	}

	void content(dom::element value, std::vector<block> &blocks)
	{
		if (value.is_object()) {
			add_block(value, blocks);
			return;
		}
		for (dom::object object : dom::array(value))
			add_block(object, blocks);
	}

	void add_block(dom::object object, std::vector<block> &blocks)
	{
		std::string_view type = object["type"];
		block made = {};
		if (type == "text") {
			made.type = BLOCK_TEXT;
			made.text.text = string(object["text"]);
		} else if (type == "tool_use") {
			made.type = BLOCK_TOOL_USE;
			lists.request
				.call_turns++; // at most too many: whether there are any counts
			made.use.id = string(object["id"]);
			made.use.name = string(object["name"]);
			made.use.input = opaque(object["input"]);
		} else if (type == "tool_result") {
			made.type = BLOCK_TOOL_RESULT;
			made.is_error = object["isError"];
			made.result.id = string(object["toolUseId"]);
			made.result.first = uint32_t(lists.inner.size());
			content(object["content"], lists.inner);
			made.result.count = uint32_t(lists.inner.size()) - made.result.first;
		} else if (type == "image") {
			made.type = BLOCK_IMAGE;
			made.media.data = string(object["data"]);
			made.media.mime = string(object["mimeType"]);
			lists.request.images++;
		} else
			throw std::runtime_error("type");
		blocks.push_back(made);
	}

	// ---- answers ----
	void anthropic(dom::object object)
	{
		for (dom::object part : dom::array(object["content"])) {
			result_block made = {};
			made.is_tool_use = std::string_view(part["type"]) == "tool_use";
			if (made.is_tool_use) {
				made.id = string(part["id"]);
				made.name = string(part["name"]);
				made.input = opaque(part["input"]);
			} else
				made.text = string(part["text"]);
			lists.results.push_back(made);
		}
		dom::element counters = object["usage"];
		struct usage &usage = lists.result.usage;
		usage.known = true;
		usage.output = counters["output_tokens"];
		usage.cache_read = counters["cache_read_input_tokens"];
		usage.cache_write = counters["cache_creation_input_tokens"];
		usage.input =
			uint64_t(counters["input_tokens"]) + usage.cache_read + usage.cache_write;
		lists.result.model = string(object["model"]);
		lists.result.stop = stop_reason_of(object["stop_reason"]);
	}

	void openai(dom::object object)
	{
		dom::element choice = dom::array(object["choices"]).at(0),
			     message = choice["message"];
		result_block made = {};
		made.text = string(message["content"]);
		lists.results.push_back(made);
		dom::array calls;
		if (message["tool_calls"].get(calls) == SUCCESS)
			for (dom::element call : calls)
				openai_call(call);
		lists.result.usage.known = true;
		lists.result.usage.input = object["usage"]["prompt_tokens"];
		lists.result.usage.output = object["usage"]["completion_tokens"];
		lists.result.model = string(object["model"]);
		lists.result.stop = stop_reason_of(choice["finish_reason"]);
	}

	void openai_call(dom::element call)
	{
		std::string_view text = call["function"]["arguments"];
		arguments.assign(text);
		arguments.reserve(arguments.size() + SIMDJSON_PADDING);
		(void)dom::object(inner_parser.parse(arguments.data(), arguments.size(), false));
		result_block made = {};
		made.is_tool_use = true;
		made.id = string(call["id"]);
		made.name = string(call["function"]["name"]);
		made.input = slice{ text.data(), text.size() };
		lists.results.push_back(made);
	}
};

} // namespace

std::unique_ptr<Rival> rival_dom()
{
	return std::make_unique<Dom>();
}
