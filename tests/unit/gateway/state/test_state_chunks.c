/* Texts in chunks: nothing is lost, nothing is mixed, and full is an answer. */
#include "gateway/state/state_chunks.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char text[4 * STATE_CHUNK_BYTES], back[sizeof(text)];

static struct slice text_of(size_t len, char first)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(first + (char)(i % 89));
	return slice_of(text, len);
}

static void expect_text(const struct state_chunks *chunks, uint32_t name, struct slice expected)
{
	(void)memset(back, 0, sizeof(back));
	state_chunks_copy(chunks, name, back, expected.len);
	assert_memory_equal(back, expected.at, expected.len);
}

static void a_text_of_any_length_comes_back(void **state)
{
	static const size_t lengths[] = {
		0,
		1,
		STATE_CHUNK_BYTES - 1,
		STATE_CHUNK_BYTES,
		STATE_CHUNK_BYTES + 1,
		3 * STATE_CHUNK_BYTES,
	};
	struct state_chunks *chunks = state_chunks_new(8 * STATE_CHUNK_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct slice in = text_of(lengths[i], (char)('a' + i));
		const uint32_t name = state_chunks_keep(chunks, in);
		assert_int_not_equal(name, 0);
		expect_text(chunks, name, in);
		state_chunks_give(chunks, name);
	}
	assert_int_equal(state_chunks_used(chunks), 0);
	state_chunks_free(chunks);
}

static void what_has_no_room_takes_none(void **state)
{
	struct state_chunks *chunks = state_chunks_new(3 * STATE_CHUNK_BYTES + 1000);

	(void)state;
	assert_int_equal(state_chunks_room(chunks), 3 * STATE_CHUNK_BYTES);
	assert_int_equal(state_chunks_keep(chunks, text_of(3 * STATE_CHUNK_BYTES + 1, 'a')), 0);
	assert_int_equal(state_chunks_used(chunks), 0);
	const uint32_t name = state_chunks_keep(chunks, text_of(STATE_CHUNK_BYTES + 1, 'a'));
	assert_int_equal(state_chunks_used(chunks), 2 * STATE_CHUNK_BYTES);
	assert_int_equal(state_chunks_keep(chunks, text_of(STATE_CHUNK_BYTES + 1, 'b')), 0);
	assert_int_equal(state_chunks_used(chunks), 2 * STATE_CHUNK_BYTES);
	expect_text(chunks, name, text_of(STATE_CHUNK_BYTES + 1, 'a'));
	state_chunks_free(chunks);
}

static void room_of_nothing_keeps_nothing(void **state)
{
	struct state_chunks *chunks = state_chunks_new(0);

	(void)state;
	assert_int_equal(state_chunks_keep(chunks, slice_of("", 0)), 0);
	assert_int_equal(state_chunks_keep(chunks, slice_of("a", 1)), 0);
	state_chunks_free(chunks);
}

static void chunks_are_used_again_in_any_order(void **state)
{
	enum { ROOM = 8, ROUNDS = 200 };
	struct state_chunks *chunks = state_chunks_new(ROOM * STATE_CHUNK_BYTES);
	uint32_t names[ROOM / 2];
	struct slice texts[ROOM / 2];
	static char kept[ROOM / 2][2 * STATE_CHUNK_BYTES];

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		const size_t i = round * 5 % (ROOM / 2);
		if (round >= ROOM / 2)
			state_chunks_give(chunks, names[i]);
		else
			must(i < ROOM / 2);
		const struct slice in =
			text_of(STATE_CHUNK_BYTES + 1 + round, (char)('a' + round % 7));
		(void)memcpy(kept[i], in.at, in.len);
		texts[i] = slice_of(kept[i], in.len);
		names[i] = state_chunks_keep(chunks, in);
		assert_int_not_equal(names[i], 0);
		for (size_t k = 0; round >= ROOM / 2 && k < ROOM / 2; k++)
			expect_text(chunks, names[k], texts[k]);
	}
	assert_int_equal(state_chunks_used(chunks), ROOM * STATE_CHUNK_BYTES);
	state_chunks_free(chunks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_of_any_length_comes_back),
		cmocka_unit_test(what_has_no_room_takes_none),
		cmocka_unit_test(room_of_nothing_keeps_nothing),
		cmocka_unit_test(chunks_are_used_again_in_any_order),
	};
	return cmocka_run_group_tests_name("state_chunks", tests, NULL, NULL);
}
