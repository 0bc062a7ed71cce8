/* control_listen.h - how a server stops listening without losing a caller.
 *
 * A connection is made by the kernel before anybody accepts it, so that one can be lost between the
 * last accept and the end of listening: its caller has sent a request by then and cannot tell whether
 * it was taken. Therefore new connections are held off first, those under way are accepted, and only
 * then the sockets stop listening. */
#ifndef GATEWAY_CONTROL_CONTROL_LISTEN_H
#define GATEWAY_CONTROL_CONTROL_LISTEN_H

#include <stddef.h>

/* From now on no connection is made any more; those whose first segment (SYN) has come are made and can be
 * accepted. The kernel drops first segments; callers repeat them after a second, and are refused or
 * reach somebody else by then. Where this process may not have them dropped, callers are refused at once.
 * Where the kernel knows neither, stderr says so and connections are made as before. */
void control_listen_hold(const int *fds, size_t count);

/* Nobody can connect any more: in this process or any other that shares the sockets. */
void control_listen_end(const int *fds, size_t count);

#endif
