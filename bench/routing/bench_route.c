/* bench_route.c - what choosing a model costs: prints nanoseconds per route_pick (DESIGN 6).
 *
 * usage: bench_route [ROUNDS]
 *
 * A row is the median of ROUNDS rounds (default 31) of PICKS picks, each timed alone and with the time that
 * asking the clock takes: a pick that is interrupted spoils no other. "cold": every request brings a hint that
 * was never seen, and the catalogue has left the first-level cache in between; "seen": the same few hints
 * again. */
#include "routing/route.h"

#include "codec/base/arena.h"
#include "codec/base/clock.h"
#include "codec/base/must.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MODELS = 500, PICKS = 2000, ROUNDS_MAX = 1001, TEXT = 48, FLUSH_BYTES = 64 << 10 };

struct bench {
	struct arena_pool pool;
	struct arena arena;
	struct model models[MODELS];
	char names[MODELS][2][TEXT];
	char hints[PICKS][TEXT];
	struct bitset permitted;
	struct model_speed speeds[MODELS];
	struct slice hint;
	struct model_preferences prefer;
	struct route_query query;
	struct catalog catalog;
	struct hint_memory memory;
	uint8_t other[FLUSH_BYTES]; /* read between two cold picks */
	uint32_t sink;
};

static nsec_t now(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	return (nsec_t)t.tv_sec * SEC + (nsec_t)t.tv_nsec;
}

/* Names as providers give them: families that share most of their letters. */
static void name_models(struct bench *b)
{
	static const char *const families[] = { "claude-sonnet", "claude-haiku", "claude-opus",
						"gpt-5.4",       "gpt-5.4-mini", "gemini-3-pro",
						"llama-4-70b",   "qwen3-coder",  "mistral-large",
						"deepseek-v4" };

	for (uint32_t i = 0; i < MODELS; i++) {
		const char *family = families[i % COUNT_OF(families)];
		(void)snprintf(b->names[i][0], TEXT, "%s-%u", family, i / 10);
		(void)snprintf(b->names[i][1], TEXT, "%s-%u-2026%04u", family, i / 10, i);
		b->models[i] = (struct model){
			.id = slice_str(b->names[i][0]),
			.name = slice_str(b->names[i][1]),
			.enabled = true,
			.context = 200000,
			.price_input = 100000 * (i % 37),
			.price_output = 300000 * (i % 41),
			.speed = 0.01 * (i % 100),
			.intelligence = 0.01 * (i * 7 % 100),
			.profile = { .max_output = 64000, .image = true },
		};
		bitset_add(&b->permitted, i);
		/* Half of them in no order, as traffic has it. */
		b->speeds[i] =
			(struct model_speed){ (i * 2654435761u >> 16 & 1) != 0,
					      (float)(200 + i % 13 * 50), (float)(5 + i % 7) };
	}
}

static void set_up(struct bench *b, uint32_t models)
{
	*b = (struct bench){ .prefer = { .cost = 0.3, .speed = 0.5, .intelligence = 0.8 } };
	arena_init(&b->arena, &b->pool, 1 << 20);
	name_models(b);
	b->catalog = (struct catalog){ .models = b->models, .count = models };
	must(catalog_index(&b->catalog, &b->arena));
	b->prefer.hints = &b->hint;
	b->query = (struct route_query){
		.prefer = &b->prefer,
		.permitted = &b->permitted,
		.default_model = -1,
		.input_tokens = 1000,
		.max_tokens = 1000,
		.speeds = b->speeds,
		.memory = &b->memory,
	};
}

static void tear_down(struct bench *b)
{
	arena_give(&b->arena);
	arena_pool_fini(&b->pool);
}

static void flush(struct bench *b)
{
	for (size_t i = 0; i < sizeof(b->other); i += 64)
		b->sink += b->other[i];
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds of each of PICKS picks; the n-th with hint n, or without hints. */
static void round_of(struct bench *b, bool hinted, bool cold, double *ns)
{
	b->prefer.hint_count = hinted ? 1 : 0;
	for (uint32_t i = 0; i < PICKS; i++) {
		b->hint = slice_str(b->hints[i]);
		if (cold)
			flush(b);
		const nsec_t begin = now();
		const struct route route = route_pick(&b->catalog, &b->query, NULL);
		ns[i] = (double)(now() - begin);
		must(route.err == ERR_OK);
		b->sink += route.model;
	}
}

static void measure(const char *name, uint32_t models, bool hinted, bool cold, int rounds)
{
	static struct bench b;
	static double ns[ROUNDS_MAX * PICKS];
	const size_t count = (size_t)rounds * PICKS;

	set_up(&b, models);
	for (int r = 0; r < rounds; r++) {
		for (uint32_t i = 0; i < PICKS; i++) {
			const uint32_t number = cold ? (uint32_t)r * PICKS + i : i % 8;
			const char *of = b.names[number % models][number / models % 2];
			(void)snprintf(b.hints[i], TEXT, cold ? "%.*s%u" : "%.*s",
				       cold ? 12 : TEXT - 12, of, number);
		}
		round_of(&b, hinted, cold, &ns[(size_t)r * PICKS]);
	}
	qsort(ns, count, sizeof(ns[0]), by_size);
	printf("%-44s %8.0f ns (of ten picks nine in %.0f)\n", name, ns[count / 2],
	       ns[count * 9 / 10]);
	tear_down(&b);
}

int main(int argc, char **argv)
{
	const int asked = argc > 1 ? atoi(argv[1]) : 31;
	const int rounds = asked < 1 ? 1 : asked > ROUNDS_MAX ? ROUNDS_MAX : asked;

	measure("100 models, no hint, cold", 100, false, true, rounds);
	measure("100 models, a hint never seen, cold", 100, true, true, rounds);
	measure("500 models, a hint never seen, cold", 500, true, true, rounds);
	measure("500 models, hints seen before", 500, true, false, rounds);
	measure("500 models, no hint", 500, false, false, rounds);
	return 0;
}
