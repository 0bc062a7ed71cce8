/* command_explain.c - the routing decision in words and in JSON, of a request or of a line of the log. */
#include "codec/set.h"
#include "gateway/command/command_server.h"
#include "gateway/command/command_walk_parts.h"

#include "codec/base/must.h"
#include "tenants/policy.h"

#include <math.h>

/* What is explained: one decision, with its trace. */
struct explained {
	struct walk *walk;
	const struct plan *plan;
	struct route_query query;
	struct model_preferences prefer; /* of a log line */
	struct slice hint;               /* likewise */
	struct bitset held;              /* likewise: the model where its tool loop was before */
	struct bitset named; /* the models that a request in a provider's own API may go to */
	struct route route;
	const struct route_candidate *trace;
	bool has_policy; /* there is a request, so its rules can be asked */
};

static const struct model *model_at(const struct explained *e, uint32_t index)
{
	return &e->walk->config->catalog.models[index];
}

/* The provider that gets the call; NULL without a winner. */
static const struct provider *winner_provider(const struct explained *e)
{
	return e->route.err != ERR_OK
		       ? NULL
		       : &e->walk->config->providers[model_at(e, e->route.model)->provider];
}

static struct slice winner(const struct explained *e)
{
	return e->route.err != ERR_OK ? slice_of(NULL, 0) : model_at(e, e->route.model)->id;
}

/* Raw. */
static struct slice matched_hint(const struct explained *e)
{
	return e->route.err == ERR_OK && e->route.hint >= 0 ? e->query.prefer->hints[e->route.hint]
							    : slice_of(NULL, 0);
}

/* The alias by which the hint matched; absent: by a name of the model. */
static struct slice matched_alias(const struct explained *e)
{
	return e->route.err == ERR_OK && e->route.alias >= 0 ? e->query.aliases[e->route.alias].hint
							     : slice_of(NULL, 0);
}

/* ---- policy ---- */

/* The request as it was sent: policy has changed the one that was walked. */
static struct verdict rule_verdict(const struct explained *e, size_t n)
{
	return policy_rule_check(n, e->walk->tenant, e->plan, &e->walk->asked);
}

static void policy_json(const struct explained *e)
{
	const char *name;

	(void)fputs("[", stdout);
	for (size_t n = 0; (name = policy_rule_name(n)) != NULL; n++) {
		const struct verdict verdict = rule_verdict(e, n);
		(void)printf("%s{\"rule\":\"%s\",\"verdict\":\"%s\"", n == 0 ? "" : ",", name,
			     verdict.err == ERR_OK ? "permits" : "refuses");
		if (verdict.err != ERR_OK)
			(void)printf(",\"reason\":\"%s\"", err_info(verdict.err)->reason);
		(void)fputs(",\"adjustments\":[", stdout);
		walk_print_adjustments(verdict.adjustments, "\"", ",");
		(void)fputs("]}", stdout);
	}
	(void)fputs("]", stdout);
}

static void policy_text(const struct explained *e)
{
	const char *name;

	for (size_t n = 0; (name = policy_rule_name(n)) != NULL; n++) {
		const struct verdict verdict = rule_verdict(e, n);
		(void)printf("%-32s %s", name, verdict.err == ERR_OK ? "permits" : "refuses: ");
		if (verdict.err != ERR_OK)
			(void)fputs(verdict.detail != NULL ? verdict.detail
							   : err_info(verdict.err)->text,
				    stdout);
		else if (verdict.adjustments != 0)
			(void)fputs(", ", stdout);
		walk_print_adjustments(verdict.adjustments, "", ", ");
		(void)fputs("\n", stdout);
	}
	(void)fputs("\n", stdout);
}

/* ---- in JSON ---- */

static void put_number(const char *name, double value, const char *format)
{
	(void)printf(",\"%s\":", name);
	if (isnan(value))
		(void)fputs("null", stdout);
	else
		(void)printf(format, value);
}

static void put_text(const struct explained *e, const char *name, struct slice text)
{
	(void)printf(",\"%s\":", name);
	walk_print_string(e->walk, text);
}

static void json_asked(const struct explained *e)
{
	const struct route_query *query = &e->query;

	(void)printf(",\"asked\":{\"input\":%llu,\"output\":%u,\"image\":%s,\"audio\":%s",
		     (unsigned long long)query->input_tokens, query->max_tokens,
		     query->image ? "true" : "false", query->audio ? "true" : "false");
	put_number("cost", query->prefer->cost, "%.6f");
	put_number("speed", query->prefer->speed, "%.6f");
	put_number("intelligence", query->prefer->intelligence, "%.6f");
	(void)fputs("}", stdout);
}

static void json_row(const struct explained *e, const struct route_candidate *row)
{
	const struct model *model = model_at(e, row->model);

	(void)fputs("{\"model\":", stdout);
	walk_print_string(e->walk, model->id);
	put_text(e, "provider", e->walk->config->providers[model->provider].name);
	(void)printf(",\"verdict\":\"%s\"", route_reason_name(row->reason));
	if (row->reason == ROUTE_CANDIDATE) {
		(void)printf(",\"hinted\":%s", row->hinted ? "true" : "false");
		put_number("score", row->score, "%.6f");
		put_number("usd", row->usd, "%.9f");
		put_number("cheapness", row->cheapness, "%.6f");
		put_number("speed", row->speed, "%.6f");
		put_number("intelligence", row->intelligence, "%.6f");
	}
	(void)fputs("}", stdout);
}

static void json_candidates(const struct explained *e)
{
	(void)fputs(",\"candidates\":[", stdout);
	for (uint32_t i = 0; i < e->walk->config->catalog.count; i++) {
		(void)fputs(i == 0 ? "" : ",", stdout);
		json_row(e, &e->trace[i]);
	}
	(void)fputs("],\"winner\":", stdout);
	walk_print_string(e->walk, winner(e));
	if (e->route.err != ERR_OK)
		(void)printf(",\"reason\":\"%s\"", err_info(e->route.err)->reason);
}

/* Between which endpoints the walked request's was chosen, and which that is: by a pool that knows of no
 * latency, so by weight and chance alone. */
static const char *draw_of(const struct explained *e, uint32_t endpoint)
{
	const struct health_choice *choice = &e->walk->flow.walk.choice;

	if (e->walk->log != NULL || e->walk->refused)
		return NULL;
	if (choice->endpoint == endpoint)
		return "chosen";
	for (uint32_t i = 0; i < choice->drawn_count; i++)
		if (choice->drawn[i].member == endpoint)
			return "drawn";
	return NULL;
}

static void json_endpoints(const struct explained *e)
{
	const struct provider *provider = winner_provider(e);

	(void)fputs(",\"endpoints\":[", stdout);
	for (uint32_t i = 0; provider != NULL && i < provider->endpoint_count; i++) {
		const struct endpoint *endpoint = &provider->endpoints[i];
		(void)printf("%s{\"endpoint\":%u", i == 0 ? "" : ",", i);
		put_text(e, "url", endpoint->url);
		(void)printf(",\"weight\":%u", endpoint->weight);
		put_text(e, "zone", endpoint->zone);
		put_text(e, "draw", slice_str(draw_of(e, i)));
		(void)fputs("}", stdout);
	}
	(void)fputs("]", stdout);
}

static bool same_config(const struct explained *e)
{
	return slice_eq(e->walk->logged.config, slice_str(e->walk->config->digest));
}

/* The model of a number in the log; absent where this configuration has none. */
static struct slice logged_model(const struct explained *e, uint32_t index)
{
	return index < e->walk->config->catalog.count ? model_at(e, index)->id : slice_of(NULL, 0);
}

/* The endpoint of a number in the log, of the provider that it names; absent likewise. */
static struct slice logged_endpoint(const struct explained *e, uint32_t index)
{
	const struct config *config = e->walk->config;

	for (uint32_t p = 0; p < config->provider_count; p++)
		if (slice_eq(config->providers[p].name, e->walk->logged.provider) &&
		    index < config->providers[p].endpoint_count)
			return config->providers[p].endpoints[index].url;
	return slice_of(NULL, 0);
}

static void json_log(const struct explained *e)
{
	const struct logged *logged = &e->walk->logged;
	const struct log_route *route = &logged->route;

	(void)fputs(",\"log\":{\"config\":", stdout);
	walk_print_string(e->walk, logged->config);
	(void)printf(",\"same_config\":%s", same_config(e) ? "true" : "false");
	put_text(e, "model", logged->model);
	(void)printf(",\"same_model\":%s", slice_eq(logged->model, winner(e)) ? "true" : "false");
	put_text(e, "provider", logged->provider);
	put_text(e, "endpoint", logged->endpoint);
	put_text(e, "error", logged->error);
	put_text(e, "seed", logged->seed);
	put_text(e, "held", logged->held);
	(void)printf(",\"attempts\":%u,\"attempt_classes\":", logged->attempts);
	if (slice_absent(logged->classes))
		(void)fputs("null", stdout);
	else
		walk_print_slice(logged->classes);
	(void)fputs(",\"scores\":[", stdout);
	for (uint32_t i = 0; i < route->candidate_count; i++) {
		(void)printf("%s{\"model\":", i == 0 ? "" : ",");
		walk_print_string(e->walk, logged_model(e, route->candidates[i].model));
		put_number("score", route->candidates[i].score, "%.6f");
		(void)fputs("}", stdout);
	}
	(void)fputs("],\"drawn\":[", stdout);
	for (uint32_t i = 0; i < route->drawn_count; i++) {
		(void)printf("%s{\"url\":", i == 0 ? "" : ",");
		walk_print_string(e->walk, logged_endpoint(e, route->drawn[i].endpoint));
		put_number("cost", route->drawn[i].cost, "%.6f");
		(void)fputs("}", stdout);
	}
	(void)fputs("]}", stdout);
}

static void explain_json(const struct explained *e)
{
	const struct slice hint = matched_hint(e);

	(void)printf("{\"config\":\"%s\"", e->walk->config->digest);
	put_text(e, "tenant", e->walk->tenant->id);
	if (e->walk->mcp_server != NULL) {
		(void)fputs(",\"mcp_server\":", stdout);
		server_print_json(e->walk, e->walk->mcp_server, e->walk->tenant);
	}
	if (e->has_policy) {
		(void)fputs(",\"policy\":", stdout);
		policy_json(e);
	}
	json_asked(e);
	(void)fputs(slice_absent(hint) ? ",\"hint\":null" : ",\"hint\":\"", stdout);
	walk_print_slice(hint);
	(void)fputs(slice_absent(hint) ? "" : "\"", stdout);
	put_text(e, "alias", matched_alias(e));
	json_candidates(e);
	json_endpoints(e);
	if (e->walk->log != NULL)
		json_log(e);
	(void)fputs("}\n", stdout);
}

/* ---- in words ---- */

/* Without priorities nothing is scored. */
static void print_score(double score)
{
	if (isnan(score))
		(void)printf(" %9s", "-");
	else
		(void)printf(" %9.6f", score);
}

/* What the log says of the model's score; NAN: nothing. */
static double logged_score(const struct explained *e, uint32_t model)
{
	const struct log_route *route = &e->walk->logged.route;

	for (uint32_t i = 0; e->walk->log != NULL && i < route->candidate_count; i++)
		if (route->candidates[i].model == model)
			return route->candidates[i].score;
	return NAN;
}

static void text_row(const struct explained *e, const struct route_candidate *row)
{
	const struct model *model = model_at(e, row->model);

	(void)printf("%-32.*s %-20s", (int)model->id.len, model->id.at,
		     route_reason_name(row->reason));
	if (row->reason == ROUTE_CANDIDATE) {
		(void)printf(" %-7s", row->hinted ? "yes" : "no");
		print_score(row->score);
		(void)printf(" %12.9f %9.6f %9.6f %9.6f", row->usd, row->cheapness, row->speed,
			     row->intelligence);
		if (!isnan(logged_score(e, row->model)))
			print_score(logged_score(e, row->model));
	}
	(void)fputs("\n", stdout);
}

static void text_candidates(const struct explained *e)
{
	(void)printf("%-32s %-20s %-7s %9s %12s %9s %9s %9s%s\n", "model", "verdict", "hinted",
		     "score", "usd", "cheap", "speed", "intel",
		     e->walk->log != NULL && e->walk->logged.route.candidate_count != 0
			     ? "    logged"
			     : "");
	for (uint32_t i = 0; i < e->walk->config->catalog.count; i++)
		text_row(e, &e->trace[i]);
}

static void text_hint(const struct explained *e)
{
	const struct slice hint = matched_hint(e), alias = matched_alias(e);

	if (slice_absent(hint))
		return;
	(void)printf("\nhint: \"%.*s\"", (int)hint.len, hint.at);
	if (!slice_absent(alias))
		(void)printf(", by the alias \"%.*s\"", (int)alias.len, alias.at);
	(void)fputs("\n", stdout);
}

static void text_winner(const struct explained *e)
{
	const struct provider *provider = winner_provider(e);

	if (provider == NULL) {
		(void)printf("\nno winner: %s: %s\n", err_info(e->route.err)->reason,
			     err_info(e->route.err)->text);
		return;
	}
	(void)printf("\nwinner: %.*s%s\n", (int)winner(e).len, winner(e).at,
		     e->route.held ? ", held for its tool loop" : "");
	(void)printf("endpoints of %.*s:\n", (int)provider->name.len, provider->name.at);
	for (uint32_t i = 0; i < provider->endpoint_count; i++) {
		const struct endpoint *endpoint = &provider->endpoints[i];
		(void)printf("  %.*s, weight %u", (int)endpoint->url.len, endpoint->url.at,
			     endpoint->weight);
		if (!slice_absent(endpoint->zone))
			(void)printf(", zone %.*s", (int)endpoint->zone.len, endpoint->zone.at);
		if (draw_of(e, i) != NULL)
			(void)printf(", %s", draw_of(e, i));
		(void)fputs("\n", stdout);
	}
}

/* Whatever decides beside the configuration and the request. */
static void text_comparison(const struct explained *e)
{
	const struct slice logged = e->walk->logged.model;

	if (slice_eq(logged, winner(e)))
		(void)fputs("  the same model as here\n", stdout);
	else if (slice_absent(logged))
		(void)fputs("  no model was called\n", stdout);
	else
		(void)fputs("  another model than here: by measured speed or by the health of "
			    "endpoints and keys at that time, neither of which is known here, by a "
			    "further attempt after a failure, or by another configuration\n",
			    stdout);
}

static void text_log(const struct explained *e)
{
	const struct logged *logged = &e->walk->logged;

	(void)printf("the log: configuration %.*s", (int)logged->config.len, logged->config.at);
	if (same_config(e))
		(void)fputs(", the same as here\n", stdout);
	else
		(void)printf(", but this file is %s: numbers may mean other models and endpoints, "
			     "and the decision may be another\n",
			     e->walk->config->digest);
	if (!slice_absent(logged->model))
		(void)printf("  %.*s of %.*s at %.*s\n", (int)logged->model.len, logged->model.at,
			     (int)logged->provider.len, logged->provider.at,
			     (int)logged->endpoint.len, logged->endpoint.at);
	if (!slice_absent(logged->held))
		(void)printf(
			"  held: the %.*s where the last round of its tool loop was answered\n",
			(int)logged->held.len, logged->held.at);
	text_comparison(e);
	for (uint32_t i = 0; i < logged->route.drawn_count; i++) {
		const struct slice url = logged_endpoint(e, logged->route.drawn[i].endpoint);
		(void)printf("  drawn: endpoint %u (%.*s), cost %.6f\n",
			     logged->route.drawn[i].endpoint, slice_absent(url) ? 1 : (int)url.len,
			     slice_absent(url) ? "?" : url.at, logged->route.drawn[i].cost);
	}
	if (logged->attempts != 0)
		(void)printf("  attempts: %u %.*s\n", logged->attempts, (int)logged->classes.len,
			     slice_absent(logged->classes) ? "" : logged->classes.at);
	if (!slice_absent(logged->error))
		(void)printf("  error: %.*s\n", (int)logged->error.len, logged->error.at);
	(void)fputs("\n", stdout);
}

static void explain_text(const struct explained *e)
{
	if (e->has_policy)
		policy_text(e);
	if (e->walk->log != NULL)
		text_log(e);
	text_candidates(e);
	text_hint(e);
	text_winner(e);
}

/* ---- a request ---- */

/* Refused by policy, or before or after it: then nothing was routed. */
static void explain_refusal(const struct explained *e)
{
	const bool judged = e->walk->flow.walk.judged;

	if (e->walk->json && judged) {
		(void)fputs("{\"policy\":", stdout);
		policy_json(e);
		(void)fputs(",\"refusal\":", stdout);
	} else if (judged) {
		policy_text(e);
	}
	walk_print_answer(e->walk);
	(void)fputs(e->walk->json && judged ? "}\n" : "\n", stdout);
}

static void read_asked(struct walk *walk)
{
	struct jsonrpc rpc;
	struct fault fault;

	if (!walk->flow.walk.judged || walk->front != NULL)
		return;
	enum err err = sampling_read(walk->body, walk->revision, &sampling_limits_default,
				     walk->work, &walk->call.arena, &rpc, &walk->asked, &fault);
	if (err != ERR_OK) /* the walk has read it, but twice is more than the arena may hold */
		walk->asked = *walk->call.ask.request;
}

/* ---- a line of the log ---- */

/* What its loop knew was decisive, and is not known here but by the model that it led to. */
static const struct bitset *held_again(struct explained *e)
{
	const struct logged *logged = &e->walk->logged;
	const int32_t model = catalog_find(&e->walk->config->catalog, logged->model);

	if (slice_absent(logged->held) || model < 0)
		return NULL;
	bitset_add(&e->held, (size_t)model);
	return &e->held;
}

/* Hints before the one that matched did not, so they may be missing. */
static void ask_again(struct explained *e)
{
	const struct log_route *route = &e->walk->logged.route;

	e->hint = route->hint;
	e->prefer = (struct model_preferences){
		.cost = route->cost,
		.speed = route->speed,
		.intelligence = route->intelligence,
		.hints = &e->hint,
		.hint_count = slice_absent(route->hint) ? 0 : 1,
	};
	e->query = (struct route_query){
		.prefer = &e->prefer,
		.permitted = &e->plan->models,
		.aliases = e->plan->aliases,
		.alias_count = e->plan->alias_count,
		.default_model = e->plan->default_model,
		.image = route->image,
		.audio = route->audio,
		.input_tokens = route->input_tokens,
		.max_tokens = route->max_tokens,
		.held = held_again(e),
	};
}

static void explain_decision(struct walk *walk)
{
	const struct catalog *catalog = &walk->config->catalog;
	struct route_candidate *trace =
		arena_zero(&walk->call.arena, (catalog->count + 1) * sizeof(*trace));
	struct explained e = { .walk = walk,
			       .plan = walk->call.caller.plan,
			       .trace = trace,
			       .has_policy = walk->log == NULL };

	must(trace != NULL);
	if (walk->log != NULL) {
		ask_again(&e);
		walk_log_front(walk);
	} else {
		read_asked(walk);
		if (walk->refused && walk->flow.walk.verdict.max_tokens == 0) {
			explain_refusal(&e);
			return;
		}
		e.query = flow_route_query(&walk->flow, e.plan);
	}
	if (walk_is_named(walk, &e.named))
		e.query.permitted = &e.named;
	e.route = route_pick(catalog, &e.query, trace);
	if (e.route.err == ERR_MODEL_FORBIDDEN && e.query.permitted == &e.named)
		e.route.err = ERR_MODEL_UNKNOWN;
	walk->refused = walk->refused || e.route.err != ERR_OK;
	if (walk->json)
		explain_json(&e);
	else
		explain_text(&e);
}

/* ---- a server ---- */

static void explain_server(struct walk *walk)
{
	if (walk->json) {
		server_print_json(walk, walk->mcp_server, walk->tenant);
		(void)fputs("\n", stdout);
		return;
	}
	server_print(walk->config, walk->mcp_server);
	server_print_users(walk->config, walk->mcp_server, walk->tenant);
}

void walk_explain(struct walk *walk)
{
	if (walk->mcp_server != NULL && (walk->tenant == NULL || !walk->json))
		explain_server(walk);
	if (walk->tenant == NULL)
		return;
	if (walk->mcp_server != NULL && !walk->json)
		(void)fputs("\n", stdout);
	explain_decision(walk);
}
