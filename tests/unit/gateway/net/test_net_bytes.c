/* net_bytes: what is kept of input, and how a list leaves piece by piece. */
#include "gateway/net/net_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_buffer_holds_what_it_was_made_of(void **state)
{
	(void)state;
	struct net_buffer *buffer = net_buffer_of("four", 4);
	size_t len;

	assert_memory_equal(net_buffer_bytes(buffer, &len), "four", 4);
	assert_int_equal(len, 4);
	net_buffer_free(buffer);
}

static void a_buffer_of_nothing_is_one(void **state)
{
	(void)state;
	struct net_buffer *buffer = net_buffer_of(NULL, 0);
	size_t len = 1;

	assert_non_null(buffer);
	(void)net_buffer_bytes(buffer, &len);
	assert_int_equal(len, 0);
	net_buffer_free(buffer);
	net_buffer_free(NULL);
}

static void a_buffer_grows_by_doubling_and_keeps_its_bytes(void **state)
{
	(void)state;
	struct net_buffer *buffer = net_buffer_of("ab", 2);
	size_t len, moves = 0, room = buffer->room;

	for (size_t i = 0; i < 10000; i++) {
		assert_true(net_buffer_reserve(&buffer, 1));
		buffer->bytes[buffer->end++] = (char)('a' + i % 26);
		moves += buffer->room != room;
		room = buffer->room;
	}
	assert_in_range(moves, 1, 14);
	const char *bytes = net_buffer_bytes(buffer, &len);
	assert_int_equal(len, 10002);
	assert_memory_equal(bytes, "ababcdef", 8);
	assert_int_equal(bytes[10001], 'a' + 9999 % 26);
	net_buffer_free(buffer);
}

static void what_was_consumed_is_not_told_again(void **state)
{
	(void)state;
	struct net_buffer *buffer = net_buffer_of("abcd", 4);
	size_t len;

	buffer->begin = 3;
	assert_int_equal(*net_buffer_bytes(buffer, &len), 'd');
	assert_int_equal(len, 1);
	net_buffer_free(buffer);
}

/* As of a stream each piece of which ends within a line: one byte is always left. */
static void what_was_consumed_makes_room(void **state)
{
	(void)state;
	struct net_buffer *buffer = net_buffer_of("x", 1);

	for (size_t i = 0; i < 10000; i++) {
		assert_true(net_buffer_reserve(&buffer, 100));
		memset(buffer->bytes + buffer->end, 'a' + (int)(i % 26), 100);
		buffer->end += 100;
		buffer->begin += 100;
		assert_in_range(buffer->room, 101, 1000);
	}
	size_t len;
	assert_int_equal(*net_buffer_bytes(buffer, &len), 'a' + 9999 % 26);
	assert_int_equal(len, 1);
	net_buffer_free(buffer);
}

/* "one", "", "two", "" */
static struct net_output begin(struct iovec list[4])
{
	static char text[] = "onetwo";

	list[0] = (struct iovec){ text, 3 };
	list[1] = (struct iovec){ NULL, 0 };
	list[2] = (struct iovec){ text + 3, 3 };
	list[3] = (struct iovec){ NULL, 0 };
	return (struct net_output){ .v = list, .count = 4, .busy = true };
}

static void what_is_left_after_any_first_piece_is_the_rest(void **state)
{
	(void)state;
	for (size_t sent = 0; sent <= 6; sent++) {
		for (int own = 0; own < 2; own++) {
			struct iovec list[4];
			struct net_output out = begin(list);
			char rest[8] = "";

			net_output_advance(&out, sent);
			if (own == 1) {
				assert_true(net_output_own(&out));
				memset(list, 0xff, sizeof(list)); /* it may go */
				assert_int_equal(out.offset, 0);
			}
			assert_int_equal(net_output_flatten(&out, rest, sizeof(rest)), 6 - sent);
			assert_string_equal(rest, &"onetwo"[sent]);
			assert_int_equal(out.count, 0);
			net_output_done(&out);
			assert_false(out.busy);
		}
	}
}

static void a_list_that_is_its_own_can_go_on_in_pieces(void **state)
{
	(void)state;
	struct iovec list[4];
	struct net_output out = begin(list);

	for (size_t i = 0; i < 6; i++) {
		assert_true(net_output_own(&out));
		assert_int_equal(*(char *)out.v->iov_base, "onetwo"[i]);
		net_output_advance(&out, 1);
	}
	assert_int_equal(out.count, 0);
	assert_true(net_output_own(&out));
	net_output_done(&out);
}

static void pieces_are_as_large_as_their_room(void **state)
{
	(void)state;
	struct iovec list[4];
	struct net_output out = begin(list);
	char piece[4];

	assert_int_equal(net_output_flatten(&out, piece, 4), 4);
	assert_memory_equal(piece, "onet", 4);
	assert_int_equal(net_output_flatten(&out, piece, 4), 2);
	assert_memory_equal(piece, "wo", 2);
	assert_int_equal(net_output_flatten(&out, piece, 4), 0);
}

static void a_list_of_nothing_is_done_at_once(void **state)
{
	(void)state;
	struct iovec empty[2] = { { NULL, 0 }, { NULL, 0 } };
	struct net_output out = { .v = empty, .count = 2 };

	net_output_advance(&out, 0);
	assert_int_equal(out.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_holds_what_it_was_made_of),
		cmocka_unit_test(a_buffer_of_nothing_is_one),
		cmocka_unit_test(a_buffer_grows_by_doubling_and_keeps_its_bytes),
		cmocka_unit_test(what_was_consumed_is_not_told_again),
		cmocka_unit_test(what_was_consumed_makes_room),
		cmocka_unit_test(what_is_left_after_any_first_piece_is_the_rest),
		cmocka_unit_test(a_list_that_is_its_own_can_go_on_in_pieces),
		cmocka_unit_test(pieces_are_as_large_as_their_room),
		cmocka_unit_test(a_list_of_nothing_is_done_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
