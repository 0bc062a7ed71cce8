/* command_walk.h - the two commands that run the walk of a request without a network.
 *
 *   sluice explain   --config F --tenant T [--server S] [--revision R] [--format text|json] <request.json
 *   sluice explain   --config F [--tenant T] --log LINE [--format text|json]
 *   sluice explain   --config F --server S [--format text|json]
 *   sluice translate --config F --tenant T [--server S] [--revision R] [--format text|json] <request.json
 *   sluice explain|translate … --front messages|chat [--header 'NAME: VALUE']… <body.json
 *
 * A line of the log says itself of which tenant it is; another --tenant beside it is refused. Without a
 * tenant an MCP server of the configuration is explained. The others take a JSON-RPC sampling/createMessage on standard
 * input, or with --front what is sent to /v1/messages or /v1/chat/completions. Exit code 0 when a provider would be
 * asked, 1 when the request is refused (the error is printed), 2 on wrong usage. */
#ifndef GATEWAY_COMMAND_COMMAND_WALK_H
#define GATEWAY_COMMAND_COMMAND_WALK_H

/* argv as in main: argv[1] is the command. */
int command_explain(int argc, char **argv);
int command_translate(int argc, char **argv);

#endif
