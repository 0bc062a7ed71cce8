/* wrap.h - `sluice wrap -- COMMAND ARG ...`: an unmodified stdio MCP server whose samplings a gateway answers.
 *
 * One process between a client and the server that it starts as its child: lines go through both ways, but for what
 * wrap_session.h does. Exit status and signals are the child's. One thread. */
#ifndef GATEWAY_WRAP_WRAP_H
#define GATEWAY_WRAP_WRAP_H

/* argv as in main: argv[1] is the command. 2 on wrong usage; else it ends as the child does. */
int command_wrap(int argc, char **argv);

#endif
