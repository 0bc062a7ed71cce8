/* What gateways say to each other of clients' GETs: every message is read as it was written, and nothing else is one. */
#include "codec/base/attr.h"
#include "gateway/front/mcp/mcp_remote_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* clang-format off */
#define WHO { .key = { "session........" }, .tenant = { "tenant........." }, .server = { "server........." } }
/* clang-format on */

static const struct {
	const char *name;
	enum peer_kind kind;
	struct mcp_remote_message message;
	size_t head;
} rows[] = {
	{ "attach", PEER_MCP_ATTACH, { .name = 1, .who = WHO, .text = SLICE_INIT("id") }, 61 },
	{ "attach, no id", PEER_MCP_ATTACH, { .name = UINT64_MAX, .who = WHO }, 61 },
	{ "credit", PEER_MCP_CREDIT, { .name = 0x0102030405060708, .taken = 1ULL << 40 }, 17 },
	{ "detach", PEER_MCP_DETACH, { .name = 256 }, 9 },
	{ "events",
	  PEER_MCP_EVENTS,
	  { .name = 2, .number = UINT32_MAX, .text = SLICE_INIT("data: x\n\n") },
	  17 },
	{ "open", PEER_MCP_END, { .name = 3, .number = 4, .taken = 5, .is = MCP_REMOTE_OPEN }, 22 },
	{ "other", PEER_MCP_END, { .name = 3, .is = MCP_REMOTE_OTHER }, 22 },
};

/* The whole message; returns its length. */
static size_t write(size_t row, char room[256])
{
	const struct mcp_remote_message *message = &rows[row].message;
	const size_t head = mcp_remote_pack(rows[row].kind, message, room);

	assert_int_equal(head, rows[row].head);
	if (message->text.len != 0)
		(void)memcpy(room + head, message->text.at, message->text.len);
	return head + message->text.len;
}

static void a_message_is_read_as_it_was_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct mcp_remote_message *from = &rows[i].message;
		char room[256];
		struct mcp_remote_message read;
		const size_t len = write(i, room);
		if (!mcp_remote_unpack(rows[i].kind, slice_of(room, len), &read))
			fail_msg("%s", rows[i].name);
		assert_true(read.name == from->name && read.number == from->number &&
			    read.taken == from->taken && read.is == from->is);
		assert_memory_equal(&read.who, &from->who, sizeof(read.who));
		assert_true(slice_eq(read.text, from->text));
	}
}

static void numbers_are_little_endian(void **state)
{
	static const char credit[] = "\1\10\7\6\5\4\3\2\1\0\0\0\0\0\1\0\0";
	char room[256];

	(void)state;
	assert_int_equal(write(2, room), sizeof(credit) - 1);
	assert_memory_equal(room, credit, sizeof(credit) - 1);
}

/* In memory of exactly its length, so that ASan sees a byte read too far. */
static bool is_read(enum peer_kind kind, const char *bytes, size_t len)
{
	char *exact = test_malloc(len + (len == 0));
	struct mcp_remote_message read;

	(void)memcpy(exact, bytes, len);
	const bool good = mcp_remote_unpack(kind, slice_of(exact, len), &read);
	test_free(exact);
	return good;
}

static void what_is_cut_or_longer_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char room[256] = "";
		const size_t len = write(i, room);
		for (size_t cut = 0; cut < len; cut++)
			assert_false(is_read(rows[i].kind, room, cut));
		assert_true(is_read(rows[i].kind, room, len));
		assert_false(is_read(rows[i].kind, room, len + 1));
	}
}

static void what_nobody_says_is_none(void **state)
{
	char room[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const size_t len = write(i, room);
		assert_false(is_read(PEER_MCP_SHARED, room, len));
		assert_false(is_read(PEER_KINDS, room, len));
		room[0]++; /* another version */
		assert_false(is_read(rows[i].kind, room, len));
		room[0]--;
		(void)memset(room + 1, 0, 8); /* no name */
		assert_false(is_read(rows[i].kind, room, len));
	}
	const size_t attach = write(0, room);
	(void)memset(room + 9, 0, STATE_KEY_BYTES); /* no session */
	assert_false(is_read(PEER_MCP_ATTACH, room, attach));
	const size_t end = write(COUNT_OF(rows) - 1, room);
	room[end - 1] = MCP_REMOTE_IS;
	assert_false(is_read(PEER_MCP_END, room, end));
	room[end - 1] = (char)0xff;
	assert_false(is_read(PEER_MCP_END, room, end));
	(void)write(4, room);
	(void)memset(room + rows[4].head - 4, 0, 4); /* events that are empty */
	assert_false(is_read(PEER_MCP_EVENTS, room, rows[4].head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_read_as_it_was_written),
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(what_is_cut_or_longer_is_none),
		cmocka_unit_test(what_nobody_says_is_none),
	};

	return cmocka_run_group_tests_name("mcp_remote_wire", tests, NULL, NULL);
}
