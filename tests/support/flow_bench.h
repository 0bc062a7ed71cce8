/* flow_bench.h - a flow with a store, a configuration and a clock of the test's own: the test is its
 * driver. Included once, by a test's only source. */
#ifndef TESTS_SUPPORT_FLOW_BENCH_H
#define TESTS_SUPPORT_FLOW_BENCH_H

#include "codec/set.h"
#include "gateway/flow/flow.h"
#include "gateway/front/rpc/rpc.h"
#include "gateway/settings/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BENCH_WALL_S = 1790000000 };

struct bench {
	struct config *config;
	struct limit_table *table;
	struct limiter_memory memory;
	struct json_work *work;
	struct stream_slab streams; /* one */
	struct arena_pool pool;
	struct health *health;
	struct health_view *view;
	struct flow flow;
	struct rpc_call call;    /* whose request it is; its arena is the flow's */
	struct http_incoming in; /* the call's */
	nsec_t now;
	bool crowded;               /* as the worker tells its flows */
	struct flow_bodies *bodies; /* likewise; NULL: not counted */
	bool stateful;              /* likewise */
	bool leaving;
	int fd;
};

/* `text` is the file; its %s are filled with the SHA-256 of `keys`, which end in NULL. */
static inline struct config *bench_config(const char *text, const char *const *keys)
{
	char *whole = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&whole, &len);

	assert_non_null(out);
	for (const char *hole; (hole = strstr(text, "%s")) != NULL; text = hole + 2, keys++) {
		uint8_t digest[SHA256_BYTES];
		char hex[64];
		assert_non_null(*keys);
		sha256(slice_str(*keys), digest);
		sha256_hex(digest, sizeof(hex), hex);
		(void)fprintf(out, "%.*s%.64s", (int)(hole - text), text, hex);
	}
	(void)fprintf(out, "%s", text);
	assert_int_equal(fclose(out), 0);
	const struct config_file file = { SLICE("/test/sluice.yaml"), slice_of(whole, len) };
	const struct settings_source source = { .path = "/test/sluice.yaml",
						.files = &file,
						.file_count = 1 };
	struct config *config = settings_load(&source, stderr);
	free(whole);
	return config;
}

/* Takes the configuration over. */
static inline struct bench *bench_new(struct config *config)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	assert_non_null(config);
	b->config = config;
	b->now = 1000 * SEC;
	b->fd = limit_table_create(64);
	b->table = limit_table_map(b->fd);
	assert_non_null(b->table);
	limiter_memory_init(&b->memory, b->table);
	b->work = json_work_new(codec_set_best());
	assert_true(stream_slab_init(&b->streams, 1));
	b->health = health_new();
	b->view = health_view_new(b->health, b->config, 1);
	assert_non_null(b->view);
	return b;
}

/* A reload. */
static inline void bench_use(struct bench *b, struct config *config)
{
	assert_non_null(config);
	struct health_view *view = health_view_new(b->health, config, 1);
	assert_non_null(view);
	health_view_free(b->view);
	settings_free(&b->config);
	b->view = view;
	b->config = config;
}

static inline void give_stream(struct bench *b)
{
	if (b->flow.reading.stream != NULL)
		stream_give(&b->streams, b->flow.reading.stream);
	b->flow.reading.stream = NULL;
}

static inline void bench_free(struct bench *b)
{
	give_stream(b);
	arena_give(&b->call.arena);
	arena_pool_fini(&b->pool);
	stream_slab_fini(&b->streams);
	health_ended(&b->flow.walk.choice, NULL, b->now);
	health_view_free(b->view);
	health_free(b->health);
	json_work_free(b->work);
	limit_table_unmap(b->table);
	(void)close(b->fd);
	settings_free(&b->config);
	free(b);
}

static inline struct http_incoming incoming(const char *key, const char *body)
{
	static char header[300];
	struct http_incoming in = { .method = SLICE("POST"),
				    .path = SLICE("/v1/sampling"),
				    .body = slice_str(body) };

	(void)snprintf(header, sizeof(header), "Bearer %s", key);
	in.headers[HTTP_AUTHORIZATION] = slice_str(header);
	in.headers[HTTP_CONTENT_TYPE] = SLICE("application/json");
	return in;
}

static const struct front_path bench_paths[] = { { SLICE_INIT("/v1/sampling"), &rpc_front } };

/* What the worker lends its fronts. */
static inline struct front_host bench_host(struct bench *b)
{
	return (struct front_host){ .paths = bench_paths,
				    .path_count = COUNT_OF(bench_paths),
				    .json = b->work,
				    .config = b->config,
				    .leaving = b->leaving };
}

/* As a worker's: the answer is written, where the flow ends in one. */
static inline enum flow_effect run(struct bench *b, enum flow_event event)
{
	const struct flow_env env = { .config = b->config,
				      .health = b->view,
				      .json = b->work,
				      .streams = &b->streams,
				      .bodies = b->bodies,
				      .crowded = b->crowded,
				      .stateful = b->stateful,
				      .now = b->now,
				      .wall_ns = (uint64_t)BENCH_WALL_S * SEC };

	const enum flow_effect effect = flow_run(&b->flow, &env, event);
	if (effect == FLOW_SEND && rpc_progress_wanted(&b->call.progress))
		rpc_progress_admit(&b->call.progress, b->now);
	if (effect == FLOW_ANSWER)
		rpc_write(&b->call, &b->flow.out);
	return effect;
}

static inline enum flow_effect start(struct bench *b, const struct http_incoming *in)
{
	static const uint8_t random[SAMPLING_CHANCE_BYTES] = { 1, 2, 3 };
	const struct front_host host = bench_host(b);

	health_ended(&b->flow.walk.choice, NULL,
		     b->now); /* of a request that a test left in the midst */
	give_stream(b);
	arena_give(&b->call.arena);
	arena_init(&b->call.arena, &b->pool, REQUEST_ARENA_MAX);
	b->in = *in;
	b->in.came_at = b->now;
	sampling_ids_make(&b->call.ids, random, b->in.headers[HTTP_TRACEPARENT]);
	rpc_init(&b->call, &b->in, (uint64_t)BENCH_WALL_S * SEC);
	flow_init(&b->flow, &b->call.ask, &rpc_sampling, &b->call);
	if (!rpc_read_head(&b->call, &host, front_find(&host, in->path) != NULL) ||
	    !rpc_read_body(&b->call, b->work)) {
		b->flow.end.err = b->call.wrote;
		return FLOW_ANSWER;
	}
	flow_init(&b->flow, &b->call.ask, &rpc_sampling, &b->call);
	return run(b, FLOW_START);
}

/* As the core tells the front of a provider's stream. */
static inline void bench_follow(struct bench *b)
{
	const bool counts =
		b->flow.reading.form != FLOW_WHOLE && b->flow.retries.phase != FLOW_PREPARING;

	b->call.progress.streams |= b->flow.reading.form != FLOW_WHOLE;
	b->call.progress.output = counts ? b->flow.reading.stream->progress.output_bytes : 0;
}

static inline nsec_t bench_due(struct bench *b)
{
	bench_follow(b);
	return rpc_progress_due(&b->call.progress);
}

/* The notification that is due. */
static inline struct slice bench_notify(struct bench *b)
{
	bench_follow(b);
	if (!rpc_progress_begun(&b->call.progress))
		rpc_write_stream_head(&b->call);
	return rpc_progress_notify(&b->call.progress, b->now);
}

static inline enum flow_effect reserve(struct bench *b)
{
	struct limiter *limiter = &b->memory.limiter;

	assert_int_equal(limiter->reserve(limiter, &b->flow.reservation), LIMITER_DONE);
	return run(b, FLOW_RESERVED);
}

static inline enum flow_effect settle(struct bench *b)
{
	struct limiter *limiter = &b->memory.limiter;

	b->flow.charge.overrun = limiter->settle(limiter, &b->flow.reservation,
						 b->flow.charge.tokens, b->flow.charge.usd, b->now);
	return run(b, FLOW_SETTLED);
}

static inline void release(struct bench *b)
{
	b->memory.limiter.release(&b->memory.limiter, flow_place(&b->flow));
}

/* The provider's whole answer. */
static inline enum flow_effect provider_says(struct bench *b, uint16_t status, const char *body)
{
	b->flow.call.err = ERR_OK;
	b->flow.call.bytes_sent = true;
	b->flow.call.answer = (struct provider_answer){ .status = status, .body = slice_str(body) };
	return run(b, FLOW_PROVIDER_DONE);
}

static inline const char *text_of(struct bench *b, const struct gather *g)
{
	struct slice flat = gather_flat(g, &b->call.arena);

	return arena_copy(&b->call.arena, flat).at;
}

static inline const char *answer_text(struct bench *b)
{
	return text_of(b, &b->call.answer.body);
}

static inline void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("expected %s in %s", part, text);
}

static inline struct limit_state limits_of(struct bench *b, const char *tenant)
{
	const struct tenant *t = tenants_by_id(&b->config->tenants, slice_str(tenant));

	return limit_read(limit_table_slot(b->table, t->limit_key), BENCH_WALL_S);
}

#endif
