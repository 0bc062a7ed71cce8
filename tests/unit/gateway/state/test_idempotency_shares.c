/* Two tenants, one of which makes more requests by idempotency keys than are remembered: the other's stay. */
#include "gateway/state/idempotency.h"

#include "codec/base/err.h"
#include "tests/unit/gateway/net/inbox_rig.h"

enum { FEW = 20, SHARD = IDEMPOTENCY_ENTRIES_MAX / 64 };

static struct some_worker worker;
static struct idempotency *idempotency;
static struct arena_pool pool;
static struct arena arena;
static nsec_t now;

static void decided(struct idempotency_call *call)
{
	(void)call;
	assert_true(false); /* nobody waits here */
}

static int set_up(void **state)
{
	(void)state;
	some_worker_init(&worker);
	idempotency = idempotency_new();
	arena_init(&arena, &pool, SIZE_MAX);
	now = 1000 * SEC;
	return idempotency == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	idempotency_free(idempotency);
	return 0;
}

/* The n-th of a tenant, all in one shard: whoever knows how keys are made can choose them so. */
static struct idempotency_call call_of(uint8_t tenant, uint32_t n)
{
	struct idempotency_call call = { .tenant = { { tenant } },
					 .large_max = IDEMPOTENCY_SMALL,
					 .arena = &arena,
					 .decided = decided };

	call.key.at[3] = tenant;
	(void)memcpy(call.key.at + 4, &n, sizeof(n));
	call.key.at[1] = (uint8_t)n;
	return call;
}

static enum idempotency_verdict ask(struct idempotency_call *call)
{
	arena_give(&arena);
	arena_init(&arena, &pool, SIZE_MAX);
	idempotency_join(idempotency, call, &worker.inbox, ++now);
	return call->verdict;
}

static void answered(uint8_t tenant, uint32_t n, size_t len)
{
	static char text[IDEMPOTENCY_ANSWER_MAX];
	const struct idempotency_answer answer = { .member = slice_of(text, len),
						   .retry_after_s = -1 };
	struct idempotency_call call = call_of(tenant, n);

	assert_int_equal(ask(&call), IDEMPOTENCY_LEADS);
	idempotency_end(&call, &answer, now);
}

/* How many of them are answered so when they come again. */
static uint32_t again(uint8_t tenant, uint32_t first, uint32_t count,
		      enum idempotency_verdict verdict)
{
	uint32_t found = 0;

	for (uint32_t n = first; n < first + count; n++) {
		struct idempotency_call call = call_of(tenant, n);
		found += ask(&call) == verdict;
		(void)idempotency_leave(&call);
	}
	return found;
}

static void keys_without_end_drive_out_their_own_tenant_s(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < FEW; n++)
		answered(1, n, 10);
	for (uint32_t n = 0; n < 3 * SHARD; n++)
		answered(2, n, 10);
	assert_int_equal(again(1, 0, FEW, IDEMPOTENCY_ANSWERED), FEW);
	assert_int_equal(again(2, 3 * SHARD - FEW, FEW, IDEMPOTENCY_ANSWERED), FEW);
	assert_int_equal(again(2, 0, FEW, IDEMPOTENCY_LEADS), FEW); /* forgotten */
}

/* A shard keeps a mebibyte of them. */
static void long_answers_drive_out_their_own_tenant_s(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < FEW; n++)
		answered(1, n, 1000);
	for (uint32_t n = 0; n < 200; n++)
		answered(2, n, 60000);
	assert_int_equal(again(1, 0, FEW, IDEMPOTENCY_ANSWERED), FEW);
	assert_int_equal(again(2, 199, 1, IDEMPOTENCY_ANSWERED), 1);
	assert_int_equal(again(2, 0, 100, IDEMPOTENCY_DONE), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(keys_without_end_drive_out_their_own_tenant_s),
		IN(long_answers_drive_out_their_own_tenant_s),
#undef IN
	};
	return cmocka_run_group_tests_name("idempotency_shares", tests, NULL, NULL);
}
