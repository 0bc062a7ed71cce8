/* What the reader takes for JSON, and what its calls give. */
#include "tests/unit/codec/json/json_rig.h"

/* ---- what is JSON ---- */

static void texts_are_judged_by_rfc_8259(void **state)
{
	static const struct {
		const char *name;
		struct slice text;
		enum err err;
		uint32_t offset;
	} rows[] = {
		{ "scalar", SLICE_INIT(" 0 "), ERR_OK, 0 },
		{ "everything", SLICE_INIT("{\"a\":[1,-2.5e+3,true,false,null,\"x\"],\"b\":{}}"),
		  ERR_OK, 0 },
		{ "white space", SLICE_INIT("\t\r\n [ 1 , 2 ] \n"), ERR_OK, 0 },
		{ "long indentation", SLICE_INIT("[\n                         1\n]"), ERR_OK, 0 },
		{ "all escapes", SLICE_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\""), ERR_OK, 0 },
		{ "surrogate pair", SLICE_INIT("\"\\ud83d\\uDE00\""), ERR_OK, 0 },
		{ "escaped NUL", SLICE_INIT("\"\\u0000\""), ERR_OK, 0 },
		{ "DEL", SLICE_INIT("\"\x7f\""), ERR_OK, 0 },
		{ "nothing", SLICE_INIT(""), ERR_JSON, 0 },
		{ "only space", SLICE_INIT("   "), ERR_JSON, 3 },
		{ "BOM", SLICE_INIT("\xef\xbb\xbf{}"), ERR_JSON, 0 },
		{ "NUL behind", SLICE_INIT("{}\0"), ERR_JSON, 2 },
		{ "NUL in a string", SLICE_INIT("\"a\0b\""), ERR_JSON, 2 },
		{ "two values", SLICE_INIT("{} {}"), ERR_JSON, 3 },
		{ "form feed", SLICE_INIT("\f1"), ERR_JSON, 0 },
		{ "trailing comma", SLICE_INIT("[1,]"), ERR_JSON, 3 },
		{ "trailing comma in an object", SLICE_INIT("{\"a\":1,}"), ERR_JSON, 7 },
		{ "leading comma", SLICE_INIT("[,1]"), ERR_JSON, 1 },
		{ "no comma", SLICE_INIT("[1 2]"), ERR_JSON, 3 },
		{ "no colon", SLICE_INIT("{\"a\" 1}"), ERR_JSON, 5 },
		{ "no value", SLICE_INIT("{\"a\":}"), ERR_JSON, 5 },
		{ "bare key", SLICE_INIT("{a:1}"), ERR_JSON, 1 },
		{ "number as key", SLICE_INIT("{1:1}"), ERR_JSON, 1 },
		{ "wrong closer", SLICE_INIT("[1}"), ERR_JSON, 2 },
		{ "closer alone", SLICE_INIT("]"), ERR_JSON, 0 },
		{ "open array", SLICE_INIT("[1"), ERR_JSON, 2 },
		{ "open object", SLICE_INIT("{\"a\":1"), ERR_JSON, 6 },
		{ "open string", SLICE_INIT("\"abcdefghijk"), ERR_JSON, 12 },
		{ "lone backslash", SLICE_INIT("\"\\"), ERR_JSON, 2 },
		{ "half an escape", SLICE_INIT("\"\\u00"), ERR_JSON, 1 },
		{ "bad escape", SLICE_INIT("\"abc\\x\""), ERR_JSON, 4 },
		{ "bad hex", SLICE_INIT("\"\\u00g0\""), ERR_JSON, 1 },
		{ "control character", SLICE_INIT("\"a\nb\""), ERR_JSON, 2 },
		{ "control character, word end", SLICE_INIT("\"abcdefg\x1f\""), ERR_JSON, 8 },
		{ "lone high surrogate", SLICE_INIT("\"\\ud800\""), ERR_JSON, 1 },
		{ "lone low surrogate", SLICE_INIT("\"x\\udc00\""), ERR_JSON, 2 },
		{ "two high surrogates", SLICE_INIT("\"\\ud800\\ud800\""), ERR_JSON, 1 },
		{ "high surrogate at the end", SLICE_INIT("\"\\ud800\\u"), ERR_JSON, 1 },
		{ "leading zero", SLICE_INIT("01"), ERR_JSON, 0 },
		{ "minus alone", SLICE_INIT("-"), ERR_JSON, 1 },
		{ "plus", SLICE_INIT("+1"), ERR_JSON, 0 },
		{ "no digit before the dot", SLICE_INIT(".5"), ERR_JSON, 0 },
		{ "no digit behind the dot", SLICE_INIT("[1.]"), ERR_JSON, 3 },
		{ "no exponent", SLICE_INIT("1e"), ERR_JSON, 2 },
		{ "no exponent behind the sign", SLICE_INIT("[1e+]"), ERR_JSON, 4 },
		{ "hex", SLICE_INIT("0x1"), ERR_JSON, 1 },
		{ "NaN", SLICE_INIT("NaN"), ERR_JSON, 0 },
		{ "Infinity", SLICE_INIT("-Infinity"), ERR_JSON, 1 },
		{ "half a word", SLICE_INIT("tru"), ERR_JSON, 0 },
		{ "long word", SLICE_INIT("truey"), ERR_JSON, 4 },
		{ "upper case", SLICE_INIT("True"), ERR_JSON, 0 },
		{ "single quotes", SLICE_INIT("'a'"), ERR_JSON, 0 },
		{ "comment", SLICE_INIT("[1/**/]"), ERR_JSON, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fault fault;
		enum err err = judge(rows[i].text, &fault);
		if (err != rows[i].err || (err != ERR_OK && fault.offset != rows[i].offset))
			fail_msg("%s: err %d at %u (%s)", rows[i].name, (int)err, fault.offset,
				 fault.detail == NULL ? "" : fault.detail);
		if (err != ERR_OK)
			assert_non_null(fault.detail);
	}
}

static void strings_are_utf8_of_rfc_3629(void **state)
{
	static const struct {
		const char *bytes;
		bool ok;
	} rows[] = {
		{ "\xc2\x80", true },
		{ "\xdf\xbf", true },
		{ "\xe0\xa0\x80", true },
		{ "\xed\x9f\xbf", true },
		{ "\xee\x80\x80", true },
		{ "\xef\xbf\xbf", true },
		{ "\xf0\x90\x80\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\x80", false },
		{ "\xbf", false },
		{ "\xc0\x80", false },
		{ "\xc1\xbf", false },
		{ "\xc2", false },
		{ "\xc2\x41", false },
		{ "\xe0\x9f\xbf", false },
		{ "\xed\xa0\x80", false },
		{ "\xed\xbf\xbf", false },
		{ "\xe1\x80", false },
		{ "\xe1\x80\x41", false },
		{ "\xf0\x8f\xbf\xbf", false },
		{ "\xf4\x90\x80\x80", false },
		{ "\xf5\x80\x80\x80", false },
		{ "\xf1\x80\x80", false },
		{ "\xf1\x80\x80\xc0", false },
		{ "\xff", false },
		{ "\xfe", false },
	};

	(void)state;
	/* at every distance from the eight-byte words the scanner takes */
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (int before = 0; before < 10; before++)
			for (int after = 0; after < 10; after++) {
				char text[64];
				int len =
					snprintf(text, sizeof(text), "\"%.*s%s%.*s\"", before,
						 "abcdefghij", rows[i].bytes, after, "klmnopqrst");
				enum err err = judge(slice_of(text, (size_t)len), NULL);
				assert_int_equal(err, rows[i].ok ? ERR_OK : ERR_JSON);
			}
}

/* RFC 3629, 4. */
static bool is_of_three_bytes(int first, int second, int third)
{
	const int least = first == 0xe0 ? 0xa0 : 0x80, most = first == 0xed ? 0x9f : 0xbf;

	return second >= least && second <= most && third >= 0x80 && third <= 0xbf;
}

/* Two at a time, of which either may be wrong, on behind an escape, and up to the end. */
static void characters_of_three_bytes_are_judged_amid_others(void **state)
{
	static const int thirds[] = { 0x41, 0x7f, 0x80, 0xa5, 0xbf, 0xc0, 0xff };
	static const char *const behind[] = { "", "字", "x", "字字字\\t字", "\\n\\n" };

	(void)state;
	for (int i = 0; i < 16 * 256 * (int)COUNT_OF(thirds) * 4 * (int)COUNT_OF(behind); i++) {
		const int first = 0xe0 + i % 16, second = i / 16 % 256;
		int rest = i / 16 / 256;
		const int third = thirds[rest % (int)COUNT_OF(thirds)];
		rest /= (int)COUNT_OF(thirds);
		const int before = rest % 4;
		char text[64];
		struct fault fault;
		if (second == 0 || second == '"' || second == '\\')
			continue;
		int len = snprintf(text, sizeof(text), "\"\\n%.*s%c%c%c%s\"", 3 * before, "字漢字",
				   first, second, third, behind[rest / 4]);
		enum err err = judge(slice_of(text, (size_t)len), &fault);
		const bool good = is_of_three_bytes(first, second, third);
		if (err != (good ? ERR_OK : ERR_JSON) ||
		    (!good && fault.offset != (uint32_t)(3 + 3 * before)))
			fail_msg("%02x %02x %02x behind %d before %s: err %d at %u", first, second,
				 third, before, behind[rest / 4], (int)err, fault.offset);
	}
}

/* Characters and escapes are taken together: a mistake behind them is where it was. */
static void an_escape_behind_characters_is_judged_where_it_stands(void **state)
{
	static const struct {
		const char *text;
		uint32_t offset;
	} rows[] = {
		{ "\"字\\", 5 },
		{ "\"字\\\"", 6 },
		{ "\"字\\x\"", 4 },
		{ "\"字\\u12\"", 4 },
		{ "\"字\\n\\q\"", 6 },
		{ "\"字\\n字\\", 10 },
		{ "\"字字字\\ud800\"", 10 },
		{ "\"字\\n", 6 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fault fault;
		enum err err = judge(slice_str(rows[i].text), &fault);
		if (err != ERR_JSON || fault.offset != rows[i].offset)
			fail_msg("%s: err %d at %u", rows[i].text, (int)err, fault.offset);
	}
}

static bool is_hex4(const char *at)
{
	return strspn(at, "0123456789abcdefABCDEF") >= 4;
}

/* Where the first escape with a u is that is not good; FAULT_NO_OFFSET if none is. All the others are. */
static uint32_t first_wrong_character(const char *text)
{
	for (const char *at = text; (at = strchr(at, '\\')) != NULL;) {
		const uint32_t offset = (uint32_t)(at - text);
		if (at[1] != 'u') {
			at += 2;
			continue;
		}
		if (!is_hex4(at + 2))
			return offset;
		const unsigned long code =
			strtoul((char[]){ at[2], at[3], at[4], at[5], 0 }, NULL, 16);
		at += 6;
		if (code < 0xd800 || code > 0xdfff)
			continue;
		const bool low = at[0] == '\\' && at[1] == 'u' && is_hex4(at + 2) &&
				 strchr("dD", at[2]) != NULL && strchr("cdefCDEF", at[3]) != NULL;
		if (code > 0xdbff || !low)
			return offset;
		at += 6;
	}
	return FAULT_NO_OFFSET;
}

/* Whole blocks of them are judged at once, but for halves of pairs and those across the end of a block. */
static void escaped_characters_are_judged_wherever_they_stand(void **state)
{
	static const char escapes[] =
		"\\u8a9e\\uAbCd\\ud83d\\uDE00\\uD7fF\\u00e9\\n\\u0dd0\\uDBFF\\udfff";
	static const char wrong[] = "gG:@`/dD8Fu\x7f";
	char text[4 * sizeof(escapes) + 80];

	(void)state;
	for (int lead = 0; lead < 64; lead++) {
		const int len =
			sprintf(text, "\"%.*s%s%s%s\"", lead,
				"a text of sixty-four characters, none of which says anything....",
				escapes, escapes, escapes);
		assert_int_equal(judge(slice_of(text, (size_t)len), NULL), ERR_OK);
		for (int at = 1 + lead; at < len - 1; at++) {
			const char was = text[at];
			if (was == '\\' || was == 'u' || was == 'n')
				continue;
			struct fault fault = { .err = ERR_OK };
			text[at] = wrong[(size_t)(at + lead) % (sizeof(wrong) - 1)];
			const uint32_t offset = first_wrong_character(text);
			enum err err = judge(slice_of(text, (size_t)len), &fault);
			if ((err == ERR_OK) != (offset == FAULT_NO_OFFSET) ||
			    (err != ERR_OK && fault.offset != offset))
				fail_msg("err %d at %u, not %u: %s", (int)err, fault.offset, offset,
					 text);
			text[at] = was;
		}
	}
}

static void every_single_byte_in_a_string_is_judged_wherever_it_stands(void **state)
{
	(void)state;
	for (int byte = 0; byte < 256; byte++)
		for (size_t at = 1; at < 20; at++) {
			char text[21];
			(void)memset(text, 'x', sizeof(text));
			text[0] = text[20] = '"';
			text[at] = (char)byte;
			bool ok = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
			assert_int_equal(judge(slice_of(text, 21), NULL), ok ? ERR_OK : ERR_JSON);
		}
}

static void no_prefix_of_a_text_is_valid(void **state)
{
	static const struct slice text = SLICE_INIT("{\"k\\u00e9y\":[1.5e3,-0,true,false,null,"
						    "\"\xe2\x82\xac\\ud83d\\ude00\",{\"a\":{}}]}");

	(void)state;
	assert_int_equal(judge(text, NULL), ERR_OK);
	for (size_t len = 0; len < text.len; len++)
		assert_int_equal(judge(slice_of(text.at, len), NULL), ERR_JSON);
}

/* ---- limits ---- */

static void depth_is_bounded_and_the_bound_itself_is_allowed(void **state)
{
	char text[4 * JSON_DEPTH_MAX];
	struct fault fault;

	(void)state;
	for (uint32_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
		(void)memset(text, '[', depth);
		(void)memset(text + depth, ']', depth);
		enum err err = judge(slice_of(text, (size_t)2 * depth), &fault);
		assert_int_equal(err, depth <= JSON_DEPTH_MAX ? ERR_OK : ERR_TOO_DEEP);
	}
	assert_int_equal(fault.offset, JSON_DEPTH_MAX);
	const struct json_limits shallow = { .depth_max = 1, .keys_max = 8 };
	assert_true(json_valid(SLICE("[1]"), &shallow, work, NULL));
	assert_false(json_valid(SLICE("[{}]"), &shallow, work, NULL));
}

/* ---- pulling ---- */

static void tokens_are_slices_of_the_text(void **state)
{
	static const struct slice text =
		SLICE_INIT(" {\"s\" : \"a\\nb\" , \"n\":-1.5e2,\"t\":true,\"z\":null,\"list\":[ 1 "
			   ", {\"x\":[]} ] } ");
	struct json_reader r;
	struct slice key, raw;
	bool flag = false;

	(void)state;
	json_open(&r, text, NULL, work);
	assert_int_equal(json_peek(&r), JSON_OBJECT);
	assert_true(json_enter_object(&r));
	assert_true(json_next_key(&r, &key) && slice_eq(key, SLICE("s")));
	assert_int_equal(json_peek(&r), JSON_STRING);
	assert_true(json_string(&r, &raw) && slice_eq(raw, SLICE("a\\nb")));
	assert_true(raw.at > text.at && raw.at < text.at + text.len);
	assert_true(json_next_key(&r, &key));
	assert_true(json_number(&r, &raw) && slice_eq(raw, SLICE("-1.5e2")));
	assert_true(json_next_key(&r, &key));
	assert_true(json_bool(&r, &flag) && flag);
	assert_true(json_next_key(&r, &key));
	assert_true(json_null(&r));
	assert_true(json_next_key(&r, &key));
	assert_true(json_enter_array(&r));
	assert_true(json_next_item(&r));
	assert_int_equal(json_peek(&r), JSON_NUMBER);
	assert_true(json_skip(&r, &raw) && slice_eq(raw, SLICE("1")));
	assert_true(json_next_item(&r));
	assert_true(json_skip(&r, &raw) && slice_eq(raw, SLICE("{\"x\":[]}")));
	assert_false(json_next_item(&r));
	assert_false(json_next_key(&r, &key));
	assert_true(json_finish(&r));
	assert_int_equal(r.fault.err, ERR_OK);
	assert_int_equal(json_offset(&r), text.len);
}

static void the_wrong_kind_is_an_error_that_names_what_was_expected(void **state)
{
	static const struct {
		const char *text, *detail;
		bool (*take)(struct json_reader *r, struct slice *raw);
	} rows[] = {
		{ "1", "expected a string", json_string },
		{ "\"1\"", "expected a number", json_number },
	};
	struct json_reader r;
	struct slice raw;
	bool flag;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		json_open(&r, slice_str(rows[i].text), NULL, work);
		assert_false(rows[i].take(&r, &raw));
		assert_int_equal(r.fault.err, ERR_JSON);
		assert_string_equal(r.fault.detail, rows[i].detail);
	}
	json_open(&r, SLICE("1"), NULL, work);
	assert_false(json_bool(&r, &flag));
	json_open(&r, SLICE("[]"), NULL, work);
	assert_false(json_enter_object(&r));
	json_open(&r, SLICE("{}"), NULL, work);
	assert_false(json_enter_array(&r));
}

static void the_first_error_stays_and_every_later_call_fails(void **state)
{
	struct json_reader r;
	struct slice raw;
	bool flag;

	(void)state;
	json_open(&r, SLICE("[1, x, \"\\q\"]"), NULL, work);
	assert_true(json_enter_array(&r));
	assert_true(json_next_item(&r) && json_skip(&r, NULL) && json_next_item(&r));
	assert_false(json_skip(&r, NULL));
	const struct fault first = r.fault;
	assert_int_equal(first.offset, 4);
	assert_int_equal(json_peek(&r), JSON_BAD);
	assert_false(json_next_item(&r));
	assert_false(json_next_key(&r, &raw));
	assert_false(json_string(&r, &raw) || json_number(&r, &raw) || json_bool(&r, &flag));
	assert_false(json_null(&r) || json_skip(&r, &raw) || json_finish(&r));
	assert_false(json_enter_array(&r) || json_enter_object(&r));
	assert_false(json_fail(&r, ERR_FIELD, "later"));
	assert_memory_equal(&r.fault, &first, sizeof(first));
}

static void a_rule_of_the_caller_fails_the_reader_where_it_stands(void **state)
{
	struct json_reader r;
	struct slice key;

	(void)state;
	json_open(&r, SLICE("{\"a\": 1, \"b\": 2}"), NULL, work);
	assert_true(json_enter_object(&r) && json_next_key(&r, &key));
	assert_false(json_fail(&r, ERR_FIELD, "a is not welcome"));
	assert_false(json_next_key(&r, &key));
	assert_int_equal(r.fault.err, ERR_FIELD);
	assert_int_equal(r.fault.offset, 6);
	assert_string_equal(r.fault.detail, "a is not welcome");
}

static void what_is_left_over_is_not_finished(void **state)
{
	struct json_reader r;

	(void)state;
	json_open(&r, SLICE("[1]"), NULL, work);
	assert_true(json_enter_array(&r) && json_next_item(&r) && json_skip(&r, NULL));
	assert_false(json_finish(&r));
}

static void another_text_can_be_validated_while_a_reader_is_under_way(void **state)
{
	struct json_reader r;
	struct slice key;

	(void)state;
	json_open(&r, SLICE("{\"a\":1,\"b\":2,\"a\":3}"), NULL, work);
	assert_true(json_enter_object(&r));
	assert_true(json_next_key(&r, &key) && json_skip(&r, NULL));
	assert_true(json_valid(SLICE("{\"a\":1,\"b\":{\"a\":2}}"), NULL, work, NULL));
	assert_true(json_next_key(&r, &key) && json_skip(&r, NULL));
	assert_false(json_valid(SLICE("{\"x\":1,\"x\":2"), NULL, work, NULL));
	assert_false(json_next_key(&r, &key)); /* still knows its own keys */
	assert_int_equal(r.fault.err, ERR_DUPLICATE_KEY);
}

static void a_text_validated_before_needs_no_work_area(void **state)
{
	struct json_reader r;
	struct slice raw;

	(void)state;
	json_open(&r, SLICE("{\"a\":[{\"b\":1}]}"), NULL, NULL);
	assert_true(json_skip(&r, &raw) && json_finish(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_judged_by_rfc_8259),
		cmocka_unit_test(strings_are_utf8_of_rfc_3629),
		cmocka_unit_test(characters_of_three_bytes_are_judged_amid_others),
		cmocka_unit_test(an_escape_behind_characters_is_judged_where_it_stands),
		cmocka_unit_test(escaped_characters_are_judged_wherever_they_stand),
		cmocka_unit_test(every_single_byte_in_a_string_is_judged_wherever_it_stands),
		cmocka_unit_test(no_prefix_of_a_text_is_valid),
		cmocka_unit_test(depth_is_bounded_and_the_bound_itself_is_allowed),
		cmocka_unit_test(tokens_are_slices_of_the_text),
		cmocka_unit_test(the_wrong_kind_is_an_error_that_names_what_was_expected),
		cmocka_unit_test(the_first_error_stays_and_every_later_call_fails),
		cmocka_unit_test(a_rule_of_the_caller_fails_the_reader_where_it_stands),
		cmocka_unit_test(what_is_left_over_is_not_finished),
		cmocka_unit_test(another_text_can_be_validated_while_a_reader_is_under_way),
		cmocka_unit_test(a_text_validated_before_needs_no_work_area),
	};
	return cmocka_run_group_tests_name("json_read", tests, open_work, close_work);
}
