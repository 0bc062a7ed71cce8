#include "gateway/command/command_walk.h"

#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/set.h"
#include "gateway/command/command_walk_parts.h"
#include "gateway/flow/flow_steps.h"
#include "gateway/providers/provider_head.h"
#include "gateway/settings/settings.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { BODY_MAX = 64 << 20, EXIT_USAGE = 2 };

static int usage(const char *command)
{
	(void)fprintf(stderr,
		      "usage: sluice %s --config FILE --tenant ID [--server NAME] [--revision R] "
		      "[--format text|json] <request.json\n",
		      command);
	(void)fprintf(
		stderr,
		"       sluice %s --config FILE --tenant ID [--server NAME] --front messages|chat "
		"[--header 'NAME: VALUE']... [--format text|json] <body.json\n",
		command);
	if (strcmp(command, "explain") == 0)
		(void)fputs(
			"       sluice explain --config FILE [--tenant ID] --log LINE "
			"[--format text|json]\n"
			"              (LINE: a line of the log as it stands; - reads it from "
			"standard input)\n"
			"       sluice explain --config FILE --server NAME [--format text|json]\n"
			"              (NAME: an MCP server of the file)\n",
			stderr);
	return EXIT_USAGE;
}

/* `text`: "NAME: VALUE", as curl takes it. */
static bool add_header(struct walk *walk, const char *text)
{
	if (walk->header_count == WALK_HEADERS_MAX || strchr(text, ':') == NULL ||
	    strpbrk(text, "\r\n") != NULL)
		return false;
	walk->headers[walk->header_count++] = text;
	return true;
}

static bool set_front(struct walk *walk, const char *name)
{
	walk->front = walk_front_named(slice_str(name));
	return walk->front != NULL;
}

/* What was said goes together. A line of the log says itself of whom and of which revision it is. */
static bool options_fit(const struct walk *walk, bool explains)
{
	if (walk->front == NULL
		    ? walk->header_count != 0
		    : walk->revision_said || walk->log != NULL || walk->tenant_id == NULL)
		return false;
	if (walk->log != NULL)
		return walk->server == NULL && !walk->revision_said;
	return walk->tenant_id != NULL ||
	       (explains && walk->server != NULL && !walk->revision_said);
}

static bool parse_options(struct walk *walk, int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "tenant", required_argument, NULL, 't' },
		{ "server", required_argument, NULL, 's' },
		{ "revision", required_argument, NULL, 'r' },
		{ "format", required_argument, NULL, 'f' },
		{ "log", required_argument, NULL, 'l' },
		{ "front", required_argument, NULL, 'a' },
		{ "header", required_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const bool explains = strcmp(argv[1], "explain") == 0;
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
		else if (option == 'l' && explains)
			walk->log = optarg;
		else if (option == 'f' &&
			 (strcmp(optarg, "json") == 0 || strcmp(optarg, "text") == 0))
			walk->json = optarg[0] == 'j';
		else if (option == 'r' && revision_find(slice_str(optarg), &walk->revision))
			walk->revision_said = true;
		else if (!(option == 'a' && set_front(walk, optarg)) &&
			 !(option == 'h' && add_header(walk, optarg)))
			return false;
	}
	return optind == argc && walk->config_path != NULL && options_fit(walk, explains);
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

static bool find_tenant(struct walk *walk, struct slice id, struct slice server)
{
	walk->tenant = tenants_by_id(&walk->config->tenants, id);
	if (walk->tenant == NULL)
		(void)fprintf(stderr, "sluice: %s has no tenant \"%.*s\"\n", walk->config_path,
			      (int)id.len, id.at);
	if (walk->tenant == NULL)
		return false;
	walk->call.caller = (struct caller){ .tenant = walk->tenant->id,
					     .server = server,
					     .account = walk->tenant,
					     .plan = plan_for(walk->tenant->plan, server) };
	return true;
}

static bool read_log(struct walk *walk)
{
	const char *problem;

	if (strcmp(walk->log, "-") == 0 && !read_stdin(walk))
		return false;
	const struct slice line = slice_absent(walk->body) ? slice_str(walk->log) : walk->body;
	const struct slice *tenant = &walk->logged.tenant;
	if (!logged_read(line, walk->work, &walk->call.arena, &walk->logged, &problem)) {
		(void)fprintf(stderr, "sluice: --log: %s\n", problem);
		return false;
	}
	if (walk->tenant_id == NULL || slice_eq(*tenant, slice_str(walk->tenant_id)))
		return find_tenant(walk, *tenant, walk->logged.server);
	(void)fprintf(stderr, "sluice: --log: the line is of tenant \"%.*s\", not of \"%s\"\n",
		      (int)tenant->len, tenant->at, walk->tenant_id);
	return false;
}

/* An MCP server that is explained without a request has to be there. */
static bool find_server(struct walk *walk)
{
	if (walk->server != NULL)
		walk->mcp_server = config_mcp_named(walk->config, slice_str(walk->server));
	if (walk->mcp_server == NULL && walk->tenant_id == NULL && walk->log == NULL)
		(void)fprintf(stderr, "sluice: %s has no MCP server \"%s\" in mcp_servers\n",
			      walk->config_path, walk->server);
	return walk->mcp_server != NULL || walk->tenant_id != NULL || walk->log != NULL;
}

static bool prepare(struct walk *walk)
{
	const struct settings_source source = { .path = walk->config_path };

	walk->config = settings_load(&source, stderr);
	if (walk->config == NULL)
		return false;
	walk->work = json_work_new(codec_set_best());
	walk->health = health_new();
	if (walk->health != NULL)
		walk->view = health_view_new(walk->health, walk->config, 1);
	if (walk->work == NULL || walk->view == NULL)
		return false;
	arena_init(&walk->call.arena, &walk->pool, REQUEST_ARENA_MAX);
	if (walk->log != NULL)
		return read_log(walk);
	if (!find_server(walk))
		return false;
	return walk->tenant_id == NULL ||
	       (find_tenant(walk, slice_str(walk->tenant_id), slice_str(walk->server)) &&
		read_stdin(walk));
}

static void run_rpc(struct walk *walk, const struct flow_env *env,
		    const uint8_t random[SAMPLING_CHANCE_BYTES])
{
	struct rpc_call *call = &walk->call;

	sampling_ids_make(&call->ids, random, (struct slice){ NULL, 0 });
	rpc_init(call, &walk->in, env->wall_ns);
	call->ask.caller = &call->caller;
	call->revision = walk->revision;
	call->takes_json = true;
	if (!rpc_read_body(call, walk->work))
		return;
	flow_init(&walk->flow, &call->ask, &rpc_sampling, call);
	walk->refused = flow_run(&walk->flow, env, FLOW_START) != FLOW_RESERVE;
	if (walk->refused)
		rpc_write(call, &walk->flow.out);
}

/* Up to the point where the store would be asked, or to the refusal. */
static void run(struct walk *walk)
{
	const struct flow_env env = {
		.config = walk->config,
		.health = walk->view,
		.json = walk->work,
		.wall_ns = (uint64_t)time(NULL) * SEC,
	};
	uint8_t random[SAMPLING_CHANCE_BYTES];

	must(getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random));
	walk->in = (struct http_incoming){ .method = SLICE("POST"), .body = walk->body };
	walk->refused = true;
	if (walk->front != NULL)
		walk_run_direct(walk, &env, random);
	else
		run_rpc(walk, &env, random);
}

/* ---- translate ---- */
/* The head as it would be sent, with the secret's place shown. */
static struct slice public_head(struct walk *walk, const struct provider *provider)
{
	struct provider_call call = {
		.key = provider->key_count == 0 ? (struct slice){ NULL, 0 } : SLICE("(secret)"),
		.version = walk->config->model_versions[walk->flow.made->route.model],
		.body_bytes = walk->flow.made->encoded.body.total,
	};

	if (walk->front != NULL && !slice_absent(walk->flow.ask->raw->version))
		call.version = walk->flow.ask->raw->version;
	const struct slice head = provider_head(
		provider, &provider->endpoints[walk->flow.walk.endpoint], &call, &walk->call.arena);
	return walk->front == NULL ? head : flow_raw_head(&walk->flow, head);
}

/* Those of a direct request are what its caller is told (Sluice-Adjustments). */
static void put_adjustments(const struct walk *walk, const char *quote, const char *between)
{
	const struct direct_asked *asked = walk->front == NULL ? NULL : walk->direct.asked;
	const adjust_set set = asked == NULL ? walk->flow.totals.adjustments : asked->adjustments;

	walk_print_adjustments(set, quote, between);
	if (asked != NULL && asked->store_disabled)
		(void)printf("%s%sstore_disabled%s", set == 0 ? "" : between, quote, quote);
	else if (set == 0 && *quote == '\0')
		(void)fputs("none", stdout);
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
	const struct endpoint *endpoint = &provider->endpoints[walk->flow.walk.endpoint];
	bool first = true;

	(void)fputs("{\"method\":\"POST\",\"url\":", stdout);
	struct slice url = endpoint->url;
	struct gather g;
	gather_init(&g, &walk->call.arena);
	gather_raw(&g, url);
	gather_raw(&g, slice_str(dialect_get(provider->dialect)->path));
	gather_raw(&g, provider->query);
	walk_print_string(walk, gather_flat(&g, &walk->call.arena));
	(void)fputs(",\"headers\":{", stdout);
	(void)next_line(&head);
	for (struct slice line = next_line(&head); !slice_absent(line); line = next_line(&head)) {
		struct slice name = slice_cut(&line, ':');
		(void)fputs(first ? "" : ",", stdout);
		walk_print_string(walk, name);
		(void)fputs(":", stdout);
		walk_print_string(walk, slice_trim(line));
		first = false;
	}
	(void)fputs("},\"body\":", stdout);
	walk_print_gather(&walk->flow.made->encoded.body);
	(void)fputs(",\"adjustments\":[", stdout);
	put_adjustments(walk, "\"", ",");
	if (walk->front != NULL) {
		(void)fputs("],\"changes\":[", stdout);
		walk_print_changes(walk, "\"", ",");
	}
	(void)fputs("]}\n", stdout);
}

static void translate_text(struct walk *walk, const struct provider *provider, struct slice head)
{
	const struct endpoint *endpoint = &provider->endpoints[walk->flow.walk.endpoint];

	(void)fputs("POST ", stdout);
	walk_print_slice(endpoint->url);
	(void)printf("%s", dialect_get(provider->dialect)->path);
	walk_print_slice(provider->query);
	(void)printf("\n");
	(void)next_line(&head);
	for (struct slice line = next_line(&head); !slice_absent(line); line = next_line(&head)) {
		walk_print_slice(line);
		(void)fputs("\n", stdout);
	}
	(void)fputs("\n", stdout);
	walk_print_gather(&walk->flow.made->encoded.body);
	(void)fputs("\n\nadjustments: ", stdout);
	put_adjustments(walk, "", ", ");
	if (walk->front != NULL) {
		(void)fputs("\nchanges: ", stdout);
		walk_print_changes(walk, "", ", ");
	}
	(void)fputs("\n", stdout);
}

static void print_translation(struct walk *walk)
{
	if (walk->refused) {
		walk_print_answer(walk);
		(void)fputs("\n", stdout);
		return;
	}
	const struct provider *provider = &walk->config->providers[walk->flow.walk.provider];
	struct slice head = public_head(walk, provider);
	must(!slice_absent(head));
	if (walk->json)
		translate_json(walk, provider, head);
	else
		translate_text(walk, provider, head);
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
		if (walk->tenant != NULL && walk->log == NULL)
			run(walk);
		print(walk);
		status = walk->refused ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	arena_give(&walk->call.arena);
	arena_give(&walk->direct.arena);
	arena_pool_fini(&walk->pool);
	free((void *)(uintptr_t)walk->body.at);
	health_ended(&walk->flow.walk.choice, NULL, 0);
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
	return walk_command(argc, argv, walk_explain);
}
