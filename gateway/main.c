/* main.c - one row per command. */
#include "codec/base/attr.h"
#include "gateway/base/no_dump.h"
#include "gateway/base/version.h"
#include "gateway/command/command_config.h"
#include "gateway/command/command_walk.h"
#include "gateway/process/supervisor.h"
#include "gateway/telemetry/metrics.h"
#include "gateway/tls/tls_memory.h"
#include "gateway/wrap/wrap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

typedef int command_fn(int argc, char **argv);

static command_fn command_serve, command_metrics, command_version, command_help;

static const struct command {
	const char *name;
	command_fn *run;
	const char *usage, *also; /* NULL: there is one form only */
	const char *does;
} commands[] = {
	{ "serve", command_serve, " --config F", NULL, "run the gateway in the foreground" },
	{ "check", command_check, " [--verbose] F", NULL,
	  "validate a configuration: every problem with its line; --verbose: the models and "
	  "MCP servers in force" },
	{ "explain", command_explain,
	  " --config F --tenant T [--server S] [--revision R] [--format text|json] <request.json",
	  " --config F --tenant T [--server S] --front messages|chat [--header H]... [--format "
	  "text|json] <body.json\n"
	  "  explain --config F [--tenant T] --log LINE [--format text|json]\n"
	  "  explain --config F --server NAME [--format text|json]",
	  "the rules and the routing decision for a request, or for a line of the log: candidates, "
	  "scores, winner; or where an MCP server is, who may use it, and who answers it" },
	{ "translate", command_translate,
	  " --config F --tenant T [--server S] [--revision R] [--format text|json] <request.json",
	  " --config F --tenant T [--server S] --front messages|chat [--header H]... [--format "
	  "text|json] <body.json",
	  "the provider request that would be sent, and what was changed in it; with --front of a "
	  "request "
	  "to /v1/messages or /v1/chat/completions" },
	{ "wrap", command_wrap,
	  " [--sampling backfill|force|relay|refuse] --gateway URL [--key-file F] -- COMMAND "
	  "ARG...",
	  " --provider anthropic|openai [--model NAME] [--base-url URL] [--usd-per-day USD] "
	  "-- COMMAND ARG...",
	  "run an MCP server on standard input and output, and answer what it samples; `sluice "
	  "wrap "
	  "--help` says more" },
	{ "key", command_key, "", NULL,
	  "make a tenant key: the secret, and its digest for the file" },
	{ "schema", command_schema, "", NULL, "JSON Schema of the configuration" },
	{ "settings", command_settings, "", NULL, "every setting with unit, default and meaning" },
	{ "metrics", command_metrics, "", NULL,
	  "every metric with type, labels, unit and meaning" },
	{ "version", command_version, "", NULL, "the version" },
	{ "help", command_help, " [COMMAND]", NULL, "this text, or that of one command" },
};

static void print_command(FILE *out, const struct command *command)
{
	(void)fprintf(out, "  %s%s\n", command->name, command->usage);
	if (command->also != NULL)
		(void)fprintf(out, "  %s%s\n", command->name, command->also);
	(void)fprintf(out, "      %s\n", command->does);
}

static void print_usage(FILE *out)
{
	(void)fprintf(out, "usage: sluice COMMAND ...\n\n");
	for (size_t i = 0; i < COUNT_OF(commands); i++)
		print_command(out, &commands[i]);
}

static int wrong_usage(const char *what)
{
	(void)fprintf(stderr, "sluice: %s\n\n", what);
	print_usage(stderr);
	return EXIT_USAGE;
}

static int command_serve(int argc, char **argv)
{
	static const char flag[] = "--config=";

	if (argc == 4 && strcmp(argv[2], "--config") == 0)
		return supervisor_run(argv[3]);
	if (argc == 3 && strncmp(argv[2], flag, sizeof(flag) - 1) == 0)
		return supervisor_run(argv[2] + sizeof(flag) - 1);
	return wrong_usage("serve wants exactly: --config FILE");
}

static int command_metrics(int argc, char **argv)
{
	(void)argv;
	if (argc != 2)
		return wrong_usage("metrics takes no arguments");
	metrics_print_manual(stdout);
	return 0;
}

static int command_version(int argc, char **argv)
{
	(void)argv;
	if (argc != 2)
		return wrong_usage("version takes no arguments");
	(void)printf("sluice %s\n", SLUICE_VERSION);
	return 0;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* NULL: there is none of that name. */
static const struct command *find_command(const char *word)
{
	const char *name = asks_for_help(word)              ? "help"
			   : strcmp(word, "--version") == 0 ? "version"
							    : word;

	for (size_t i = 0; i < COUNT_OF(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int help_about(const struct command *command)
{
	if (command == NULL)
		return wrong_usage("there is no such command");
	(void)printf("usage: sluice COMMAND ...\n\n");
	print_command(stdout, command);
	return 0;
}

static int command_help(int argc, char **argv)
{
	if (argc > 3)
		return wrong_usage("help takes one command at most");
	if (argc == 3)
		return help_about(find_command(argv[2]));
	print_usage(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	no_dump();
	tls_memory_install();
	if (argc < 2)
		return wrong_usage("a command is missing");
	const struct command *command = find_command(argv[1]);
	if (command == NULL)
		return wrong_usage("there is no such command");
	const bool help = argc == 3 && asks_for_help(argv[2]) && command->run != command_wrap;
	int code = help ? help_about(command) : command->run(argc, argv);
	return fflush(stdout) == 0 ? code : 1;
}
