#include "gateway/command_walk.h"

#include "codec/base/must.h"
#include "gateway/flow.h"
#include "gateway/provider_head.h"
#include "gateway/settings.h"
#include "tenants/policy.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { BODY_MAX = 64 << 20, EXIT_USAGE = 2 };

struct walk {
	const char *config_path, *tenant_id, *server;
	enum revision revision;
	bool json;
	struct config *config;
	const struct tenant *tenant;
	struct tenant_key principal;
	struct slice body;
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
	struct health *health; /* nothing is known of any endpoint */
	struct health_view *view;
	struct flow flow;
	struct sampling_request asked; /* after explain_asked: before policy changed anything */
	bool refused;
};

static int usage(const char *command)
{
	(void)fprintf(stderr,
		      "usage: sluice %s --config FILE --tenant ID [--server NAME] [--revision R] "
		      "[--format text|json] <request.json\n",
		      command);
	return EXIT_USAGE;
}

static bool parse_options(struct walk *walk, int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "tenant", required_argument, NULL, 't' },
		{ "server", required_argument, NULL, 's' },
		{ "revision", required_argument, NULL, 'r' },
		{ "format", required_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	walk->revision = REVISION_2025_11_25;
	optind = 2;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			walk->config_path = optarg;
		else if (option == 't')
			walk->tenant_id = optarg;
		else if (option == 's')
			walk->server = optarg;
		else if (option == 'f' &&
			 (strcmp(optarg, "json") == 0 || strcmp(optarg, "text") == 0))
			walk->json = optarg[0] == 'j';
		else if (option != 'r' || !revision_find(slice_str(optarg), &walk->revision))
			return false;
	}
	return optind == argc && walk->config_path != NULL && walk->tenant_id != NULL;
}

static bool read_stdin(struct walk *walk)
{
	char *bytes = malloc(BODY_MAX);

	if (bytes == NULL)
		return false;
	size_t len = fread(bytes, 1, BODY_MAX, stdin);
	walk->body = slice_of(bytes, len);
	if (ferror(stdin) != 0 || len == BODY_MAX) {
		(void)fputs("sluice: standard input cannot be read, or is over 64 MiB\n", stderr);
		return false;
	}
	return true;
}

static bool prepare(struct walk *walk)
{
	const struct settings_source source = { .path = walk->config_path };

	walk->config = settings_load(&source, stderr);
	if (walk->config == NULL)
		return false;
	walk->tenant = tenants_by_id(&walk->config->tenants, slice_str(walk->tenant_id));
	if (walk->tenant == NULL) {
		(void)fprintf(stderr, "sluice: %s has no tenant \"%s\"\n", walk->config_path,
			      walk->tenant_id);
		return false;
	}
	walk->principal.tenant = walk->tenant;
	walk->principal.server = slice_str(walk->server);
	walk->work = json_work_new();
	walk->health = health_new();
	if (walk->health != NULL)
		walk->view = health_view_new(walk->health, walk->config, 1);
	if (walk->work == NULL || walk->view == NULL)
		return false;
	arena_init(&walk->arena, &walk->pool, REQUEST_ARENA_MAX);
	return read_stdin(walk);
}

/* Up to the point where the store would be asked, or to the refusal. */
static void run(struct walk *walk)
{
	const struct http_incoming in = { .method = SLICE("POST"),
					  .path = SLICE("/v1/sampling"),
					  .body = walk->body };
	const struct flow_env env = {
		.config = walk->config,
		.health = walk->view,
		.json = walk->work,
		.wall_ns = (uint64_t)time(NULL) * SEC,
	};
	uint8_t random[FLOW_CHANCE_BYTES];

	must(getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random));
	flow_init(&walk->flow, &in, &walk->arena, random, 0, env.wall_ns);
	flow_begin_as(&walk->flow, &walk->principal, walk->revision);
	walk->refused = flow_run(&walk->flow, &env, FLOW_START) != FLOW_RESERVE;
}

static void print_gather(const struct gather *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		(void)fwrite(g->v[i].iov_base, 1, g->v[i].iov_len, stdout);
}

static void print_slice(struct slice s)
{
	(void)fwrite(s.at, 1, s.len, stdout);
}

static void print_json_string(struct walk *walk, struct slice plain)
{
	struct gather g;

	gather_init(&g, &walk->arena);
	gather_plain(&g, plain);
	if (gather_done(&g) == ERR_OK)
		print_gather(&g);
	else
		(void)fputs("null", stdout); /* no memory for it, and still JSON */
}

static void print_adjustments(adjust_set set, const char *quote, const char *between)
{
	bool first = true;

	for (int i = 0; i < ADJUST_COUNT; i++) {
		if ((set & ADJUST_BIT(i)) == 0)
			continue;
		(void)printf("%s%s%s%s", first ? "" : between, quote,
			     adjustment_code((enum adjustment)i), quote);
		first = false;
	}
}

/* ---- translate ---- */
/* The head as it would be sent, with the secret's place shown. */
static struct slice public_head(struct walk *walk, const struct provider *provider)
{
	return provider_head(provider, &provider->endpoints[walk->flow.endpoint],
			     provider->key_count == 0 ? (struct slice){ NULL, 0 }
						      : SLICE("(secret)"),
			     walk->config->model_versions[walk->flow.route.model],
			     walk->flow.encoded.body.total, &walk->arena);
}

/* One header line of `head`, which advances; absent at the empty line. */
static struct slice next_line(struct slice *head)
{
	struct slice line = slice_cut(head, '\n');

	if (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	return line.len == 0 ? (struct slice){ NULL, 0 } : line;
}

static void translate_json(struct walk *walk, const struct provider *provider, struct slice head)
{
	const struct endpoint *endpoint = &provider->endpoints[walk->flow.endpoint];
	bool first = true;

	(void)fputs("{\"method\":\"POST\",\"url\":", stdout);
	struct slice url = endpoint->url;
	struct gather g;
	gather_init(&g, &walk->arena);
	gather_raw(&g, url);
	gather_raw(&g, slice_str(dialect_get(provider->dialect)->path));
	gather_raw(&g, provider->query);
	print_json_string(walk, gather_flat(&g, &walk->arena));
	(void)fputs(",\"headers\":{", stdout);
	(void)next_line(&head);
	for (struct slice line = next_line(&head); !slice_absent(line); line = next_line(&head)) {
		struct slice name = slice_cut(&line, ':');
		(void)fputs(first ? "" : ",", stdout);
		print_json_string(walk, name);
		(void)fputs(":", stdout);
		print_json_string(walk, slice_trim(line));
		first = false;
	}
	(void)fputs("},\"body\":", stdout);
	print_gather(&walk->flow.encoded.body);
	(void)fputs(",\"adjustments\":[", stdout);
	print_adjustments(walk->flow.adjustments, "\"", ",");
	(void)fputs("]}\n", stdout);
}

static void translate_text(struct walk *walk, const struct provider *provider, struct slice head)
{
	const struct endpoint *endpoint = &provider->endpoints[walk->flow.endpoint];

	(void)fputs("POST ", stdout);
	print_slice(endpoint->url);
	(void)printf("%s\n", dialect_get(provider->dialect)->path);
	(void)next_line(&head);
	for (struct slice line = next_line(&head); !slice_absent(line); line = next_line(&head)) {
		print_slice(line);
		(void)fputs("\n", stdout);
	}
	(void)fputs("\n", stdout);
	print_gather(&walk->flow.encoded.body);
	(void)fputs("\n\nadjustments: ", stdout);
	print_adjustments(walk->flow.adjustments, "", ", ");
	(void)fputs(walk->flow.adjustments == 0 ? "none\n" : "\n", stdout);
}

static void print_translation(struct walk *walk)
{
	if (walk->refused) {
		print_gather(&walk->flow.answer.body);
		(void)fputs("\n", stdout);
		return;
	}
	const struct provider *provider = &walk->config->providers[walk->flow.provider];
	struct slice head = public_head(walk, provider);
	must(!slice_absent(head));
	if (walk->json)
		translate_json(walk, provider, head);
	else
		translate_text(walk, provider, head);
}

/* ---- explain ---- */
static void print_number(const char *name, double value, const char *format)
{
	(void)printf(",\"%s\":", name);
	if (isnan(value))
		(void)fputs("null", stdout);
	else
		(void)printf(format, value);
}

static const struct plan *walk_plan(const struct walk *walk)
{
	return plan_for(walk->tenant->plan, walk->principal.server);
}

/* The request as it was sent: policy has changed the one that was walked. */
static struct verdict rule_verdict(const struct walk *walk, size_t n)
{
	return policy_rule_check(n, walk->tenant, walk_plan(walk), &walk->asked);
}

static void policy_json(struct walk *walk)
{
	const char *name;

	(void)fputs("[", stdout);
	for (size_t n = 0; (name = policy_rule_name(n)) != NULL; n++) {
		const struct verdict verdict = rule_verdict(walk, n);
		(void)printf("%s{\"rule\":\"%s\",\"verdict\":\"%s\"", n == 0 ? "" : ",", name,
			     verdict.err == ERR_OK ? "permits" : "refuses");
		if (verdict.err != ERR_OK)
			(void)printf(",\"reason\":\"%s\"", err_info(verdict.err)->reason);
		(void)fputs(",\"adjustments\":[", stdout);
		print_adjustments(verdict.adjustments, "\"", ",");
		(void)fputs("]}", stdout);
	}
	(void)fputs("]", stdout);
}

static void policy_text(struct walk *walk)
{
	const char *name;

	for (size_t n = 0; (name = policy_rule_name(n)) != NULL; n++) {
		const struct verdict verdict = rule_verdict(walk, n);
		(void)printf("%-32s %s", name, verdict.err == ERR_OK ? "permits" : "refuses: ");
		if (verdict.err != ERR_OK)
			(void)fputs(verdict.detail != NULL ? verdict.detail
							   : err_info(verdict.err)->text,
				    stdout);
		else if (verdict.adjustments != 0)
			(void)fputs(", ", stdout);
		print_adjustments(verdict.adjustments, "", ", ");
		(void)fputs("\n", stdout);
	}
	(void)fputs("\n", stdout);
}

static void explain_json_row(struct walk *walk, const struct route_candidate *row)
{
	const struct model *model = &walk->config->catalog.models[row->model];

	(void)fputs("{\"model\":", stdout);
	print_json_string(walk, model->id);
	(void)fputs(",\"provider\":", stdout);
	print_json_string(walk, walk->config->providers[model->provider].name);
	(void)printf(",\"verdict\":\"%s\"", route_reason_name(row->reason));
	if (row->reason == ROUTE_CANDIDATE) {
		(void)printf(",\"hinted\":%s", row->hinted ? "true" : "false");
		print_number("score", row->score, "%.6f");
		print_number("usd", row->usd, "%.9f");
		print_number("cheapness", row->cheapness, "%.6f");
		print_number("speed", row->speed, "%.6f");
		print_number("intelligence", row->intelligence, "%.6f");
	}
	(void)fputs("}", stdout);
}

static void explain_json(struct walk *walk, const struct route *route,
			 const struct route_candidate *trace)
{
	const struct catalog *catalog = &walk->config->catalog;

	(void)printf("{\"config\":\"%s\",\"tenant\":", walk->config->digest);
	print_json_string(walk, walk->tenant->id);
	(void)fputs(",\"policy\":", stdout);
	policy_json(walk);
	(void)fputs(",\"hint\":", stdout);
	if (route->err == ERR_OK && route->hint >= 0) {
		(void)fputs("\"", stdout);
		print_slice(walk->flow.request.prefer.hints[route->hint]);
		(void)fputs("\"", stdout);
	} else {
		(void)fputs("null", stdout);
	}
	(void)fputs(",\"candidates\":[", stdout);
	for (uint32_t i = 0; i < catalog->count; i++) {
		(void)fputs(i == 0 ? "" : ",", stdout);
		explain_json_row(walk, &trace[i]);
	}
	(void)fputs("],\"winner\":", stdout);
	if (route->err == ERR_OK)
		print_json_string(walk, catalog->models[route->model].id);
	else
		(void)printf("null,\"reason\":\"%s\"", err_info(route->err)->reason);
	(void)fputs("}\n", stdout);
}

/* Without priorities nothing is scored. */
static void print_score(double score)
{
	if (isnan(score))
		(void)printf(" %9s", "-");
	else
		(void)printf(" %9.6f", score);
}

static void explain_text(struct walk *walk, const struct route *route,
			 const struct route_candidate *trace)
{
	const struct catalog *catalog = &walk->config->catalog;

	(void)printf("%-32s %-20s %-7s %9s %12s %9s %9s %9s\n", "model", "verdict", "hinted",
		     "score", "usd", "cheap", "speed", "intel");
	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct route_candidate *row = &trace[i];
		const struct model *model = &catalog->models[row->model];
		(void)printf("%-32.*s %-20s", (int)model->id.len, model->id.at,
			     route_reason_name(row->reason));
		if (row->reason == ROUTE_CANDIDATE) {
			(void)printf(" %-7s", row->hinted ? "yes" : "no");
			print_score(row->score);
			(void)printf(" %12.9f %9.6f %9.6f %9.6f", row->usd, row->cheapness,
				     row->speed, row->intelligence);
		}
		(void)fputs("\n", stdout);
	}
	if (route->err == ERR_OK)
		(void)printf("\nwinner: %.*s\n", (int)catalog->models[route->model].id.len,
			     catalog->models[route->model].id.at);
	else
		(void)printf("\nno winner: %s: %s\n", err_info(route->err)->reason,
			     err_info(route->err)->text);
}

/* Refused by policy, or before or after it: then nothing was routed. */
static void explain_refusal(struct walk *walk)
{
	if (walk->json && walk->flow.judged) {
		(void)fputs("{\"policy\":", stdout);
		policy_json(walk);
		(void)fputs(",\"refusal\":", stdout);
	} else if (walk->flow.judged) {
		policy_text(walk);
	}
	print_gather(&walk->flow.answer.body);
	(void)fputs(walk->json && walk->flow.judged ? "}\n" : "\n", stdout);
}

static void explain_asked(struct walk *walk)
{
	struct jsonrpc rpc;
	struct fault fault;

	if (!walk->flow.judged)
		return;
	enum err err = sampling_read(walk->body, walk->revision, &sampling_limits_default,
				     walk->work, &walk->arena, &rpc, &walk->asked, &fault);
	if (err != ERR_OK) /* the walk has read it, but twice is more than the arena may hold */
		walk->asked = walk->flow.request;
}

static void print_explanation(struct walk *walk)
{
	const struct catalog *catalog = &walk->config->catalog;
	struct route_candidate *trace =
		arena_zero(&walk->arena, (catalog->count + 1) * sizeof(*trace));

	explain_asked(walk);
	if (walk->refused && walk->flow.verdict.max_tokens == 0) {
		explain_refusal(walk);
		return;
	}
	must(trace != NULL);
	const struct route_query query = flow_route_query(&walk->flow, walk_plan(walk));
	const struct route route = route_pick(catalog, &query, trace);
	if (walk->json) {
		explain_json(walk, &route, trace);
	} else {
		policy_text(walk);
		explain_text(walk, &route, trace);
	}
}

static int walk_command(int argc, char **argv, void (*print)(struct walk *walk))
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int status = EXIT_FAILURE;

	if (walk == NULL)
		return EXIT_FAILURE;
	if (!parse_options(walk, argc, argv)) {
		status = usage(argv[1]);
	} else if (prepare(walk)) {
		run(walk);
		print(walk);
		status = walk->refused ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	arena_give(&walk->arena);
	arena_pool_fini(&walk->pool);
	free((void *)(uintptr_t)walk->body.at);
	health_ended(&walk->flow.choice, NULL, 0);
	health_view_free(walk->view);
	health_free(walk->health);
	json_work_free(walk->work);
	settings_free(&walk->config);
	free(walk);
	return status;
}

int command_translate(int argc, char **argv)
{
	return walk_command(argc, argv, print_translation);
}

int command_explain(int argc, char **argv)
{
	return walk_command(argc, argv, print_explanation);
}
