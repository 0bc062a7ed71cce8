/* supervisor.h - binds the listeners and keeps the server process alive (DESIGN 2).
 *
 * It owns what must outlive a crash: listening sockets, the limit table, the texts of the last
 * configuration that loaded. It accepts nothing and parses nothing after its start. With the setting `user` its
 * servers are that user from their first moment, and a second child reads files for them (config_reader.h). One
 * thread. */
#ifndef GATEWAY_PROCESS_SUPERVISOR_H
#define GATEWAY_PROCESS_SUPERVISOR_H

/* `sluice serve`: runs in the foreground until SIGTERM or SIGINT, to it or to its server; problems go to stderr. Exit code 0
 * after a clean drain, 1 otherwise. Returns in the supervisor's process only. */
int supervisor_run(const char *config_path);

#endif
