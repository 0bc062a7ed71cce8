#include "gateway/front/front.h"

#include <string.h>

/* Every server takes the absolute form: the path is what stands behind the scheme and the host. */
struct slice front_path_of(struct slice target)
{
	static const struct slice schemes[] = { SLICE_INIT("http://"), SLICE_INIT("https://") };

	for (size_t i = 0; i < COUNT_OF(schemes); i++) {
		const size_t len = schemes[i].len;
		if (target.len <= len || !slice_eq_nocase(slice_of(target.at, len), schemes[i]))
			continue;
		const char *path = memchr(target.at + len, '/', target.len - len);
		if (path != NULL)
			return slice_of(path, target.len - (size_t)(path - target.at));
	}
	return target;
}

static const struct front_path *find(const struct front_host *host, struct slice path)
{
	for (size_t i = 0; i < host->path_count; i++) {
		const struct front_path *row = &host->paths[i];
		const bool below = row->path.len > 1 && row->path.at[row->path.len - 1] == '/';
		if (below ? slice_starts(path, row->path) : slice_eq(path, row->path))
			return row;
	}
	return NULL;
}

const struct front_path *front_find(const struct front_host *host, struct slice target)
{
	const struct front_path *row = find(host, target);

	return row != NULL ? row : find(host, front_path_of(target));
}

/* The row of a target; as nearly all of them are, the first is looked at first. */
static inline const struct front_path *row_of(const struct front_host *host, struct slice target)
{
	return slice_eq(target, host->paths[0].path) ? host->paths : front_find(host, target);
}

static void *on_begin(void *owner, struct http_exchange *exchange, const struct http_incoming *in)
{
	struct front_host *host = owner;
	const struct front_path *row = row_of(host, in->path);
	const struct front *front = row != NULL ? row->front : host->paths[0].front;

	return front->begin(host, exchange, in, row != NULL);
}

static bool on_expects(void *owner, struct http_early *early, const struct http_incoming *in)
{
	struct front_host *host = owner;
	const struct front_path *row = row_of(host, in->path);
	const struct front *front = row != NULL ? row->front : host->paths[0].front;

	return front->expects(host, early, in, row != NULL);
}

static const struct front *front_of(const void *request)
{
	const struct front_request *r = request;

	return r->front;
}

static void on_gone(void *owner, void *request)
{
	(void)owner;
	front_of(request)->gone(request);
}

static void on_sent(void *owner, void *request)
{
	(void)owner;
	front_of(request)->sent(request);
}

static void on_ready(void *owner, void *request)
{
	(void)owner;
	front_of(request)->ready(request);
}

bool front_host_init(struct front_host *host)
{
	size_t bytes = 0;

	for (size_t i = 0; i < host->path_count; i++)
		if (host->paths[i].front->record_bytes > bytes)
			bytes = host->paths[i].front->record_bytes;
	return slab_init(&host->records, bytes, REQUESTS_MAX);
}

struct http_handler front_handler(struct front_host *host)
{
	return (struct http_handler){ .owner = host,
				      .begin = on_begin,
				      .gone = on_gone,
				      .sent = on_sent,
				      .ready = on_ready,
				      .expects = on_expects };
}
