/* api_rig.h - a request in a provider's own API, read for one test row. */
#ifndef TESTS_UNIT_CODEC_API_API_RIG_H
#define TESTS_UNIT_CODEC_API_API_RIG_H

#include "codec/api/api_request.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct api_reading {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
	struct api_request request;
	struct fault fault;
	enum err err;
};

static inline void api_rig_begin(struct api_reading *r, enum api api, struct slice body)
{
	*r = (struct api_reading){ .work = json_work_new(codec_set_best()),
				   .pool = { .keep_max = 4 } };
	assert_non_null(r->work);
	arena_init(&r->arena, &r->pool, 1 << 22);
	r->err = api_request_read(api, body, r->work, &r->arena, &r->request, &r->fault);
}

static inline void api_rig_end(struct api_reading *r)
{
	arena_give(&r->arena);
	arena_pool_fini(&r->pool);
	json_work_free(r->work);
}

/* Of a row that is to be read. */
static inline void api_rig_read(struct api_reading *r, enum api api, const char *body)
{
	api_rig_begin(r, api, slice_str(body));
	if (r->err != ERR_OK)
		fail_msg("%s: %s at %.*s: %s", body, err_info(r->err)->reason,
			 (int)r->fault.path.len, r->fault.path.at == NULL ? "" : r->fault.path.at,
			 r->fault.detail == NULL ? "" : r->fault.detail);
}

/* `want` NULL: absent. */
static inline void assert_slice(struct slice have, const char *want)
{
	if (slice_absent(have) != (want == NULL) || !slice_eq(have, slice_str(want)))
		fail_msg("%.*s instead of %s", (int)have.len, have.at == NULL ? "" : have.at,
			 want == NULL ? "nothing" : want);
}

/* Bodies that have all that is required, with `more` members. */
#define API_M(more)                                                                              \
	"{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}" \
	"]" more "}"
#define API_C(more) \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
/* and with one message's content, a part or block. */
#define API_MB(block)                                                                            \
	"{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[" block \
	"]}]}"
#define API_CB(part) "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]}"

#endif
