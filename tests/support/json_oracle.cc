#include "tests/support/json_oracle.h"

#include <simdjson.h>

using namespace simdjson;

uint64_t json_oracle_add(uint64_t sum, const char *plain, size_t len)
{
	sum = (sum ^ len) * 0x100000001b3u;
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ static_cast<unsigned char>(plain[i])) * 0x100000001b3u;
	return sum;
}

// As deep as the parser went, which its own limit bounds.
static void add_strings(dom::element value, uint64_t *sum)
{
	switch (value.type()) {
	case dom::element_type::OBJECT:
		for (dom::key_value_pair field : dom::object(value)) {
			*sum = json_oracle_add(*sum, field.key.data(), field.key.size());
			add_strings(field.value, sum);
		}
		break;
	case dom::element_type::ARRAY:
		for (dom::element item : dom::array(value))
			add_strings(item, sum);
		break;
	case dom::element_type::STRING: {
		std::string_view text = value;
		*sum = json_oracle_add(*sum, text.data(), text.size());
		break;
	}
	default:
		break;
	}
}

enum json_verdict json_oracle(const char *text, size_t len, uint64_t *strings)
{
	static dom::parser parser; // kept: the tests run on one thread
	dom::element root;

	error_code error = parser.parse(text, len).get(root); // copies, for its padding
	switch (error) {
	case SUCCESS:
		*strings = 0;
		add_strings(root, strings);
		return JSON_VERDICT_VALID;
	case NUMBER_ERROR: // what is no number, and what is too large for one
	case DEPTH_ERROR:
	case CAPACITY:
	case MEMALLOC:
		return JSON_VERDICT_UNKNOWN;
	default:
		return JSON_VERDICT_INVALID;
	}
}
