/* health_rig.h - one worker's knowledge of providers, over a configuration of two: whole attempts at them in
 * one call. The clock is the test's. */
#ifndef TESTS_UNIT_GATEWAY_HEALTH_RIG_H
#define TESTS_UNIT_GATEWAY_HEALTH_RIG_H

#include "gateway/providers/health.h"
#include "tests/unit/gateway/settings/settings_rig.h"

#include <string.h>

static const char two_of_each[] =
	"zone: a\n"
	"retries: {budget: 0.1, floor: 2}\n"
	"providers:\n"
	"  one:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://a.example/v1\", concurrent: 4, queue: 2},\n"
	"                {url: \"https://b.example/v1\", concurrent: 4, queue: 2}]\n"
	"    keys: [key-number-one, key-number-two]\n"
	"    breaker: {failures: 3, open: 2s, open_max: 8s, slow_start: 0s}\n"
	"  other:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://b.example/v1\"}]\n"
	"models:\n"
	"  - {id: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: n, provider: other, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: same, name: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: else, provider: one, context: 8000, price: {input: 1, output: 2}}\n";

enum { M, N, SAME, ELSE };

struct bench {
	struct rig rig, next;
	struct health *health;
	struct health_view *view;
	nsec_t now;
	uint64_t random;
};

static inline void load(struct rig *rig, const char *text)
{
	rig_load(rig, text);
	if (rig->config == NULL)
		fail_msg("%s", rig->problems);
}

static inline int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	load(&b->rig, two_of_each);
	b->health = health_new();
	assert_non_null(b->health);
	b->view = health_view_new(b->health, b->rig.config, 1);
	assert_non_null(b->view);
	b->now = 1000 * SEC;
	*state = b;
	return 0;
}

/* health_free insists that every state was let go of. */
static inline int tear_down(void **state)
{
	struct bench *b = *state;

	health_view_free(b->view);
	health_free(b->health);
	rig_fini(&b->rig);
	if (b->next.problems != NULL)
		rig_fini(&b->next);
	free(b);
	return 0;
}

static inline enum err choose(struct bench *b, uint32_t model, struct health_choice *choice)
{
	nsec_t wait;

	return health_choose(b->view, model, NULL, b->now, b->random++, choice, &wait);
}

static const struct health_outcome well = { .retry_after_ms = -1,
					    .status = 200,
					    .took = 500 * MSEC,
					    .answered = true,
					    .output_tokens = 50 };
static const struct health_outcome cut = { .err = ERR_PROVIDER_DOWN,
					   .retry_after_ms = -1,
					   .took = 10 * MSEC };

static inline struct health_outcome refused(enum err err, enum blame blame, uint16_t status)
{
	return (struct health_outcome){ .err = err,
					.blame = blame,
					.status = status,
					.retry_after_ms = -1,
					.took = 50 * MSEC,
					.answered = true };
}

/* A whole attempt at `model`; the endpoint it went to. */
static inline uint32_t attempt(struct bench *b, uint32_t model,
			       const struct health_outcome *outcome)
{
	struct health_choice choice = { 0 };

	assert_int_equal(choose(b, model, &choice), ERR_OK);
	health_began(&choice, b->now);
	health_ended(&choice, outcome, b->now);
	return choice.endpoint;
}

/* Fails endpoint `e` of model M until its breaker opens. */
static inline void break_endpoint(struct bench *b, uint32_t e)
{
	const struct health_tried tried = { .endpoints = e == 0 ? 2 : 1 };

	for (int i = 0; i < 3; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, e);
		health_began(&choice, b->now);
		health_ended(&choice, &cut, b->now);
	}
	assert_int_equal(health_breaker(b->view, 0, e, b->now), 2);
}

#endif
