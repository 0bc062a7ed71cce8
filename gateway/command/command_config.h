/* command_config.h - the commands that are about the configuration file (DESIGN 4.1).
 *
 *   sluice check F     every problem as "F:line: key: what is wrong, and what would be right"
 *   sluice settings    every setting: type, bounds, default, meaning
 *   sluice schema      its JSON Schema (draft 2020-12)
 *   sluice key         a new tenant key: the secret once, and the digest for the file
 *
 * argv as in main: argv[1] is the command. Exit code 0; 1 when the file has problems or the output
 * cannot be written; 2 on wrong usage. */
#ifndef GATEWAY_COMMAND_COMMAND_CONFIG_H
#define GATEWAY_COMMAND_COMMAND_CONFIG_H

int command_check(int argc, char **argv);
int command_settings(int argc, char **argv);
int command_schema(int argc, char **argv);
int command_key(int argc, char **argv);

#endif
