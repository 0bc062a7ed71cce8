/* main.c - one row per command. */
#include "codec/base/attr.h"
#include "gateway/command_config.h"
#include "gateway/command_walk.h"
#include "gateway/metrics.h"
#include "gateway/no_dump.h"
#include "gateway/supervisor.h"
#include "gateway/version.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

typedef int command_fn(int argc, char **argv);

static command_fn command_serve, command_metrics, command_version, command_help;

static const struct command {
	const char *name;
	command_fn *run;
	const char *usage, *does;
} commands[] = {
	{ "serve", command_serve, "--config F", "run the gateway in the foreground" },
	{ "check", command_check, "[--verbose] F",
	  "validate a configuration; every problem with its line. --verbose: models as they are in "
	  "force" },
	{ "explain", command_explain,
	  "--config F (--tenant T [--server S] [--revision R] <request.json | --log LINE) "
	  "[--format text|json]",
	  "the rules and the routing decision for a request, or for a line of the log: candidates, "
	  "scores, winner" },
	{ "translate", command_translate,
	  "--config F --tenant T [--server S] [--revision R] [--format text|json] <request.json",
	  "the provider request that would be sent" },
	{ "key", command_key, "", "make a tenant key: the secret, and its digest for the file" },
	{ "schema", command_schema, "", "JSON Schema of the configuration" },
	{ "settings", command_settings, "", "every setting with unit, default and meaning" },
	{ "metrics", command_metrics, "", "every metric with type, labels, unit and meaning" },
	{ "version", command_version, "", "the version" },
	{ "help", command_help, "", "this text" },
};

static void print_usage(FILE *out)
{
	(void)fprintf(out, "usage: sluice COMMAND ...\n\n");
	for (size_t i = 0; i < COUNT_OF(commands); i++)
		(void)fprintf(out, "  %s %s\n      %s\n", commands[i].name, commands[i].usage,
			      commands[i].does);
}

static int wrong_usage(const char *what)
{
	(void)fprintf(stderr, "sluice: %s\n\n", what);
	print_usage(stderr);
	return EXIT_USAGE;
}

static int command_serve(int argc, char **argv)
{
	if (argc != 4 || strcmp(argv[2], "--config") != 0)
		return wrong_usage("serve wants exactly: --config FILE");
	return supervisor_run(argv[3]);
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
	(void)argc;
	(void)argv;
	(void)printf("sluice %s\n", SLUICE_VERSION);
	return 0;
}

static int command_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	print_usage(stdout);
	return 0;
}

/* --help is help, -h too. */
static const char *command_name(const char *word)
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return "help";
	return strcmp(word, "--version") == 0 ? "version" : word;
}

int main(int argc, char **argv)
{
	no_dump();
	if (argc < 2)
		return wrong_usage("a command is missing");
	for (size_t i = 0; i < COUNT_OF(commands); i++) {
		if (strcmp(commands[i].name, command_name(argv[1])) != 0)
			continue;
		int code = commands[i].run(argc, argv);
		return fflush(stdout) == 0 ? code : 1;
	}
	return wrong_usage("there is no such command");
}
