/* command_walk.h - the two commands that run the walk of a request without a network.
 *
 *   sluice explain   --config F --tenant T [--format text|json] <request.json
 *   sluice translate --config F --tenant T [--format text|json] <request.json
 *
 * Both take a JSON-RPC sampling/createMessage on standard input. Exit code 0 when a provider would be
 * asked, 1 when the request is refused (the error is printed), 2 on wrong usage. */
#ifndef GATEWAY_COMMAND_WALK_H
#define GATEWAY_COMMAND_WALK_H

/* argv as in main: argv[1] is the command. */
int command_explain(int argc, char **argv);
int command_translate(int argc, char **argv);

#endif
