/* flow_report.c - what log and metrics are told of a call. */
#include "gateway/flow/flow.h"

static void report_route(const struct flow *flow, struct log_route *out)
{
	const struct route *route = &flow->made->route;
	const struct model_preferences *prefer = &flow->ask->request->prefer;

	*out = (struct log_route){
		.config_digest = flow->walk.config_digest,
		.seed = flow->walk.draws == 0 ? 0 : flow->ask->ids->seed,
		.hint = flow->walk.hint,
		.alias = route->alias,
		.input_tokens = route->input_tokens,
		.max_tokens = route->max_tokens,
		.image = route->image,
		.audio = route->audio,
		.held = flow->walk.choice.held ? LOG_HELD_ENDPOINT
			: route->held          ? LOG_HELD_MODEL
					       : LOG_HELD_NOTHING,
		.cost = prefer->cost,
		.speed = prefer->speed,
		.intelligence = prefer->intelligence,
		.candidate_count = route->scored_count,
		.drawn_count = flow->walk.choice.drawn_count,
	};

	_Static_assert((int)ROUTE_SCORED_MAX <= (int)LOG_CANDIDATES, "every score fits the line");
	for (uint32_t i = 0; i < route->scored_count; i++)
		out->candidates[i] =
			(struct log_candidate){ route->scored[i].model, route->scored[i].score };
	_Static_assert((int)POOL_DRAWN_MAX <= (int)LOG_DRAWN, "every draw fits the line");
	for (uint32_t i = 0; i < flow->walk.choice.drawn_count; i++)
		out->drawn[i] = (struct log_drawn){ flow->walk.choice.drawn[i].member,
						    (double)flow->walk.choice.drawn[i].cost };
}

static void report_call(const struct flow *flow, struct log_request *line,
			struct metrics_request *metrics)
{
	const struct upstream_call *call = &flow->call;

	line->attempts = flow->retries.attempts;
	for (uint32_t i = 0; i < flow->retries.attempts; i++)
		line->attempt_classes[i] = flow->retries.tried[i].err;
	metrics->attempted = true;
	line->queue = metrics->queue = call->queued_ns;
	if (call->first_byte_at > call->sent_at && call->sent_at != 0)
		line->provider_ttfb = call->first_byte_at - call->sent_at;
	if (call->done_at > call->sent_at && call->sent_at != 0)
		line->provider_total = call->done_at - call->sent_at;
}

void flow_report(const struct flow *flow, nsec_t now, struct log_request *line,
		 struct metrics_request *metrics)
{
	const struct caller *caller = flow->ask->caller;
	const struct slice nobody = { NULL, 0 };
	const struct slice tenant = caller == NULL ? nobody : caller->tenant;

	*line = (struct log_request){
		.wall_ns = flow->ask->started_wall_ns,
		.tenant = tenant,
		.server = caller == NULL ? nobody : caller->server,
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.endpoint = flow->walk.endpoint_url,
		.usage = flow->totals.usage,
		.usd_nano = flow->totals.usd,
		.estimated_tokens = flow->totals.estimated_tokens,
		.err = flow->end.err,
		.detail = flow->end.detail,
		.total = now - flow->ask->started,
	};
	(void)memcpy(line->request_id, flow->ask->ids->request_id, sizeof(line->request_id));
	if (flow->ask->ids->traceparent[0] != '\0')
		line->traceparent = slice_of(flow->ask->ids->traceparent, TRACEPARENT_LEN);
	if (flow->walk.config_digest[0] != '\0')
		report_route(flow, &line->route);
	if (flow->state != NULL)
		line->session = flow_session_report(flow->state);
	if (flow->end.err == ERR_OK && flow->end.result != NULL)
		line->stop = stop_reason_name(flow->end.result->stop);
	*metrics = (struct metrics_request){
		.tenant_series = UINT32_MAX,
		.tenant = tenant,
		.outcome = flow->end.err,
		.model = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.tokens_in = flow->totals.usage.input,
		.tokens_out = flow->totals.usage.output,
		.usd_nano = flow->totals.usd,
		.duration = line->total,
		.unknown_calls = flow->state != NULL ? flow->state->loop.unknown : 0,
	};
	if (flow->retries.attempts != 0)
		report_call(flow, line, metrics);
}
