#include "gateway/redis/redis_sniff.h"

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#define SNIFF_MAX (1 * SEC)

static void end(struct redis_sniff *sniff, enum store_fault fault)
{
	net_timer_stop(sniff->loop, &sniff->limit);
	net_close(sniff->conn);
	sniff->conn = NULL;
	sniff->found(sniff, fault);
}

static void on_opened(struct net_conn *conn, void *arg)
{
	const struct redis_sniff *sniff = arg;
	const struct slice question = store_fault_question(sniff->tls);
	const struct iovec v = { (void *)(uintptr_t)question.at, question.len };

	(void)net_write(conn, &v, 1);
}

static void on_readable(struct net_conn *conn, void *arg)
{
	struct redis_sniff *sniff = arg;
	size_t len;
	const char *bytes = net_input(conn, &len);
	const enum store_fault fault = store_fault_of_answer(sniff->tls, slice_of(bytes, len));

	net_consume(conn, len);
	end(sniff, fault);
}

static void on_written(struct net_conn *conn, void *arg)
{
	(void)conn;
	(void)arg;
}

static void on_ended(struct net_conn *conn, enum net_end how, void *arg)
{
	(void)conn;
	(void)how;
	end(arg, STORE_FAULT_NONE);
}

static void on_limit(struct net_timer *timer)
{
	end(CONTAINER_OF(timer, struct redis_sniff, limit), STORE_FAULT_NONE);
}

static const struct net_conn_events events = {
	.opened = on_opened,
	.readable = on_readable,
	.written = on_written,
	.ended = on_ended,
};

void redis_sniff_begin(struct redis_sniff *sniff, const struct sockaddr *address, socklen_t len)
{
	if (sniff->conn != NULL)
		return;
	sniff->conn = net_connect(sniff->loop, address, len, NULL, NULL, &events, sniff);
	if (sniff->conn == NULL)
		return; /* no descriptor: the next attempt asks again */
	sniff->limit.fire = on_limit;
	net_timer_set(sniff->loop, &sniff->limit, net_now(sniff->loop) + SNIFF_MAX);
}
